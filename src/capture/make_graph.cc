#include "weft/capture/make_graph.h"

#include <unordered_set>

#include "capture/graph_recorder.h"
#include "weft/base/error.h"
#include "weft/ops/fake.h"

namespace weft {

Value detail::packed(const std::vector<Tensor>& tensors) {
  if (tensors.size() == 1) return tensors[0];
  return Value::tuple({tensors.begin(), tensors.end()});
}

std::vector<Tensor> detail::unpacked(Args values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values) tensors.push_back(from_value<Tensor>(value));
  return tensors;
}

const Decompositions& standard_decompositions() {
  static const Decompositions* all = [] {
    auto* table = new Decompositions;
    for (const Operator* op : all_operators())
      if (op->form() == OpForm::kFunctional && op->def().decompose)
        table->emplace(op, [op](Args args) { return op->def().decompose.boxed(args); });
    return table;
  }();
  return *all;
}

namespace {

std::vector<std::string> names_of_arguments(const std::string& given, size_t count) {
  ArgumentNames names(given);
  std::vector<std::string> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(i < names.entries().size() ? names.entries()[i].name : fmt::format("arg{}", i));
  return all;
}

// The inputs as the function sees them: every leaf a tensor of its own.
class Inputs {
 public:
  Inputs(const MakeGraphOptions& options, const FakeMode* fake) : options_(options), fake_(fake) {}

  Value leaf(const Value& value, const sym::Source& source) {
    if (value.is_tensor()) return tensor(value.tensor_ref(), source);
    if (value.kind() == Value::Kind::kInt && options_.mode == CaptureMode::kSymbolic)
      return fake_->options().shape_env->create_value(value.to_int(), source, sym::DimPolicy::kDuck);
    return value;
  }

 private:
  Tensor tensor(const Tensor& given, const sym::Source& source) {
    const Tensor own = fake_ && !is_fake(given) ? fake_->fake_of(given, request_for(given, source)) : given;
    return seen_.insert(own.impl()->serial()).second ? own : second_input(own);
  }

  FakeRequest request_for(const Tensor& given, const sym::Source& source) const {
    FakeRequest request(source);
    if (options_.mode == CaptureMode::kFake) request.dims = FakeRequest::fixed(given.dim()).dims;
    return request.without_base();
  }

  // Two arguments that are one tensor are two inputs, which share their memory.
  static Tensor second_input(const Tensor& given) {
    if (!given.is_leaf()) return alias(given);
    Tensor other;
    {
      GradModeScope off(false);
      other = alias(given);
    }
    return given.requires_grad() ? other.set_requires_grad() : other;
  }

  const MakeGraphOptions& options_;
  const FakeMode* fake_;
  std::unordered_set<uint64_t> seen_;
};

// Where each leaf of an argument is: "x", "x['k'][0]".
std::vector<sym::Source> sources_of(const std::string& name, const Value& argument) {
  std::vector<sym::Source> sources;
  for (const PathLeaf& leaf : tree_flatten_with_path(argument)) {
    sym::Source source = sym::Source::argument(name);
    for (const PathKey& key : leaf.path) source = source.step(to_string(KeyPath{key}));
    sources.push_back(std::move(source));
  }
  return sources;
}

bool all_leaves(const TreeSpec& arguments) {
  for (const TreeSpec& argument : arguments.children())
    if (!argument.is_leaf()) return false;
  return true;
}

void check_result(const Value& result) {
  for (const PathLeaf& leaf : tree_flatten_with_path(result))
    require(
        !leaf.value.is_object(),
        "make_graph: a captured function gives tensors, numbers, strings, None and containers of them, but "
        "its result{} is {}",
        leaf.path.empty() ? "" : " at " + to_string(leaf.path), leaf.value.kind_name());
}

}  // namespace

GraphModule GraphMaker::capture(const ValueList& args) const {
  std::optional<FakeMode> fake;
  if (options_.mode != CaptureMode::kReal) {
    // The recorder knows which real ones may be there. Sizes that only data can tell are symbols also where
    // those of the inputs are numbers.
    fake.emplace(FakeOptions{.shape_env = options_.shape_env ? options_.shape_env : ShapeEnv::create(),
                             .allow_real_inputs = true});
  }
  GraphRecorder recorder(options_, root_.get());
  FlatTree flat = tree_flatten(Value::tuple(args));
  std::vector<std::string> names = names_of_arguments(options_.arg_names, args.size());
  Inputs inputs(options_, fake ? &*fake : nullptr);
  ValueList leaves;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::vector<sym::Source> sources = sources_of(names[i], args[i]);
    for (size_t k = 0; k < sources.size(); ++k) {
      recorder.note_given(flat.leaves[leaves.size()]);
      leaves.push_back(inputs.leaf(flat.leaves[leaves.size()], sources[k]));
      recorder.add_input(fmt::format("{}_{}", names[i], k + 1), leaves.back());
    }
  }
  Value result;
  {
    GraphRecorder::Scope scope(recorder);
    result = f_(tree_unflatten(leaves, flat.spec).elements());
  }
  check_result(result);
  if (all_leaves(flat.spec)) {
    recorder.graph().output(recorder.as_nodes(result));
    return recorder.finish(options_.keep_dead_code);
  }
  FlatTree flat_result = tree_flatten(result);
  recorder.graph().output(recorder.as_nodes(Value::list(flat_result.leaves)));
  GraphModule module = recorder.finish(options_.keep_dead_code);
  module.set_call_spec({names, flat.spec, flat_result.spec});
  return module;
}

}  // namespace weft
