#include "weft/capture/functional_capture.h"

#include "capture/graph_recorder.h"
#include "weft/base/error.h"
#include "weft/func/functionalize.h"
#include "weft/nn/functional_call.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

// A tensor of the program: what the recorder knows, and the functional tensor that the program sees.
struct Tracked {
  Tensor value, functional;
};

class Capture {
 public:
  Capture(const nn::Module& module, const FunctionalCaptureOptions& options)
      : module_(module),
        recorder_options_{
            .mode = options.mode, .pre_dispatch = options.pre_dispatch, .allow_real_inputs = true},
        recorder_(recorder_options_, nullptr),
        position_(options.pre_dispatch ? func::FunctionalPosition::kUpper
                                       : func::FunctionalPosition::kLower) {
    if (options.mode == CaptureMode::kReal) return;
    FakeOptions fake{.allow_real_inputs = true};
    if (options.mode == CaptureMode::kSymbolic) fake.shape_env = ShapeEnv::create();
    fake_.emplace(fake);
  }

  FunctionalCapture run(const ValueFunction& forward, const ValueList& args) {
    FunctionalCapture result;
    nn::NamedTensors substitutes;
    std::vector<std::pair<std::string, Tracked>> buffers;
    for (const auto& [name, tensor] : module_.named_parameters()) {
      result.parameters.push_back(name);
      substitutes.emplace_back(name, add(tensor, true).functional);
    }
    for (const auto& [name, tensor] : module_.named_buffers()) {
      result.buffers.push_back(name);
      buffers.emplace_back(name, add(tensor, true));
      substitutes.emplace_back(name, buffers.back().second.functional);
    }
    FlatTree flat = tree_flatten(Value::tuple(args));
    result.arguments = flat.spec;
    std::vector<std::optional<Tracked>> inputs;
    for (Value& leaf : flat.leaves) {
      inputs.emplace_back();
      if (leaf.is_tensor()) {
        inputs.back() = add(leaf.to_tensor(), false);
        leaf = inputs.back()->functional;
      } else {
        recorder_.add_input(next_name(), leaf);
      }
    }
    Value given = tree_unflatten(flat.leaves, flat.spec);
    Value returned;
    {
      GraphRecorder::Scope recording(recorder_);
      func::FunctionalizeScope functional(position_);
      nn::Substitution substitution(module_, substitutes);
      returned = forward(given.elements());
    }
    refuse_shared_writes();
    refuse_metadata_changes();
    FlatTree flat_result = tree_flatten(returned);
    result.result = flat_result.spec;
    RecorderScope recording(recorder_, recorder_.position());
    ValueList outputs;
    for (const auto& [name, tracked] : buffers)
      if (was_written(tracked)) {
        result.written_buffers.push_back(name);
        outputs.push_back(now(tracked.functional));
      }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] && was_written(*inputs[i])) {
        result.written_inputs.push_back(i);
        outputs.push_back(now(inputs[i]->functional));
      }
    for (const Value& leaf : flat_result.leaves) outputs.push_back(now(leaf));
    recorder_.graph().output(recorder_.as_nodes(Value::tuple(outputs)));
    result.module = recorder_.finish(false);
    return result;
  }

 private:
  std::string next_name() { return fmt::format("arg{}_1", next_input_++); }

  Tracked add(const Tensor& tensor, bool is_state) {
    Tensor value = tensor;
    if (fake_)
      value = is_state
                  ? fake_->fake_of(tensor, FakeRequest::fixed(tensor.dim()).without_base())
                  : fake_->fake_of(tensor, FakeRequest(fmt::format("arg{}", next_input_)).without_base());
    if (recorder_knows(value)) value = alias(value);
    const std::string name = next_name();
    recorder_.add_input(name, value);
    seen_.push_back(value);
    Tracked tracked{value, func::to_functional(value, position_)};
    given_.push_back({name, tensor, tracked});
    return tracked;
  }
  // Each input has memory of its own in the graph: one that others share must not be written to.
  void refuse_shared_writes() const {
    for (const Given& written : given_) {
      if (!was_written(written.tracked)) continue;
      for (const Given& other : given_) {
        if (&other == &written || other.tensor.storage() != written.tensor.storage()) continue;
        const bool is_same = other.tensor.is_same(written.tensor);
        fail(
            "Encountered {} inputs that are mutated in the graph: '{}' is written to, and '{}' {}. Clone one "
            "of them, "
            "or let the program make the view itself",
            is_same ? "duplicated" : "aliased", written.name, other.name,
            is_same ? "is the same tensor" : "shares its memory");
      }
    }
  }
  bool recorder_knows(const Tensor& tensor) const {
    for (const Tensor& other : seen_)
      if (other.is_same(tensor)) return true;
    return false;
  }
  static bool was_written(const Tracked& tracked) {
    return func::functional_changes(tracked.functional).has_data_mutation();
  }
  // What a graph gives are values: an input cannot come back with other sizes or other memory.
  void refuse_metadata_changes() const {
    for (const Given& given : given_) {
      const func::FunctionalChanges changes = func::functional_changes(given.tracked.functional);
      if (changes.has_metadata_mutation() || changes.was_storage_resized() || changes.resized)
        unsupported(
            "the program changes sizes, strides or memory of its input '{}' itself; only values can be given "
            "back. Let it change a clone or a view of it",
            given.name);
    }
  }
  static Value now(const Value& leaf) {
    if (!leaf.is_tensor() || !func::is_functional(leaf.tensor_ref())) return leaf;
    return func::from_functional(leaf.tensor_ref());
  }

  const nn::Module& module_;
  MakeGraphOptions recorder_options_;
  std::optional<FakeMode> fake_;
  GraphRecorder recorder_;
  func::FunctionalPosition position_;
  std::vector<Tensor> seen_;
  struct Given {
    std::string name;
    Tensor tensor;
    Tracked tracked;
  };
  std::vector<Given> given_;
  int next_input_ = 0;
};

}  // namespace

FunctionalCapture capture_functional(const nn::Module& module, const ValueFunction& forward,
                                     const ValueList& args, const FunctionalCaptureOptions& options) {
  return Capture(module, options).run(forward, args);
}

}  // namespace weft
