#include "aot/trace_call.h"

#include <fmt/format.h>

#include "aot/functional_values.h"
#include "aot/split_joint.h"
#include "capture/graph_recorder.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"
#include "weft/ops/sparse.h"

namespace weft::aot {
namespace {

// A tensor of its own over the same memory: two inputs are two, also where one tensor is given for both.
Tensor input_value(const Tensor& given) {
  return alias_with(given, given.sizes(), given.strides(), given.storage_offset());
}

// Writes what a call does into a graph: what the operators below functionalisation are asked for.
class CallTracer {
 public:
  CallTracer(const CallDescription& description, const TraceOptions& options)
      : description_(description),
        options_{.mode = CaptureMode::kFake,
                 .decompositions = options.decompositions,
                 .pre_dispatch = options.pre_dispatch,
                 .allow_real_inputs = true},
        recorder_(options_, nullptr),
        position_(options.pre_dispatch ? func::FunctionalPosition::kUpper : func::FunctionalPosition::kLower),
        loss_(options.loss),
        input_names_(options.input_names),
        sparse_gradients_(options.sparse_gradients),
        keep_dead_code_(options.keep_dead_code) {
    recorder_.note_size_values();
  }

  TracedCall inference(const ValueFunction& f, const ValueList& inputs) {
    add_inputs(inputs, "arg{}_1", 0);
    ValueList outputs;
    {
      GraphRecorder::Scope recording(recorder_);
      func::FunctionalizeScope functional(position_);
      fill_storages();
      seen_ = given_;
      outputs = graph_outputs(tree_leaves(f(seen_)));
    }
    outputs = finished(outputs);
    write_in_graph(outputs);
    traced_.outputs = trees_of(outputs);
    recorder_.graph().output(recorder_.as_nodes(Value::tuple(flatten(traced_.outputs, outputs))));
    return finish();
  }

  TracedCall joint(const ValueFunction& f, const ValueList& inputs) {
    if (loss_) {
      add_inputs(inputs, "arg{}_1", 0);
      tangents_.resize(description_.num_graph_outputs());
    } else {
      add_inputs(inputs, "primals_{}", 1);
      add_tangents();
    }
    ValueList outputs, gradients;
    {
      GraphRecorder::Scope recording(recorder_);
      func::FunctionalizeScope functional(func::FunctionalPosition::kLower);
      fill_storages();
      make_fresh();
      outputs = graph_outputs(tree_leaves(f(seen_)));
      const std::vector<func::FunctionalChanges> before = changes_of_inputs();
      // Whoever asks for the backward fills what the forward emptied.
      for (size_t i = 0; i < seen_.size(); ++i)
        if (description_.inputs[i].empties_storage()) func::expect_filled_again(seen_[i].tensor_ref());
      gradients = gradients_of(outputs);
      note_backward_writes(before);
    }
    outputs = finished(outputs);
    write_in_graph(outputs);
    write_in_backward();
    gradients = finished(gradients);
    traced_.outputs = trees_of(outputs);
    traced_.gradients = trees_of(gradients);
    ValueList all = flatten(traced_.outputs, outputs);
    for (Value& gradient : flatten(traced_.gradients, gradients))
      if (!loss_ || !gradient.is_none()) all.push_back(std::move(gradient));
    recorder_.graph().output(
        recorder_.as_nodes(loss_ ? Value::tuple(std::move(all)) : Value::list(std::move(all))));
    return finish();
  }

 private:
  // --- what goes in

  TracedCall finish() {
    traced_.module = recorder_.finish(keep_dead_code_);
    return std::move(traced_);
  }

  void add_inputs(const ValueList& inputs, std::string_view name, int first) {
    next_ = first;
    traced_.inputs = trees_of(inputs);
    for (const Value& input : inputs) add_input(input, name);
  }

  void add_input(const Value& input, std::string_view name) {
    if (!input.is_tensor() || !input.tensor_ref().defined()) {
      recorder_.add_input(next_name(name), input);
      placeholders_.push_back(input);
      given_.push_back(input);
      return;
    }
    const Tensor& given = input.tensor_ref();
    const size_t before = recorder_.graph().size();
    placeholders_.emplace_back(with_placeholders(given, name));
    const InputUse& use = description_.inputs[placeholders_.size() - 1];
    if (use.is_written || use.replaces_storage) mark_new_placeholders(before);
    given_.emplace_back(functional_input(placeholders_.back().tensor_ref(), given));
  }

  Tensor functional_input(const Tensor& placeholder, const Tensor& given) const {
    if (position_ == func::FunctionalPosition::kUpper) {
      // Autograd is below, and has the tensor that the placeholder stands for.
      if (given.requires_grad()) placeholder.set_requires_grad();
      return func::to_functional(placeholder, position_);
    }
    Tensor functional = functional_form(placeholder);
    // No leaf: the program may write to it, where it may do so at all.
    if (given.requires_grad()) make_given_result(functional);
    return functional;
  }

  // The same tensor with a placeholder for it, or for each of the tensors that it is made of.
  Tensor with_placeholders(const Tensor& given, std::string_view name) {
    if (extension_of(given))
      return map_inner(given, [&](const Tensor& inner) { return with_placeholders(inner, name); });
    Tensor value = input_value(given);
    recorder_.add_input(next_name(name), value);
    return value;
  }

  // What is written to holds something else when the backward runs.
  void mark_new_placeholders(size_t before) {
    Node* node = recorder_.graph().back();
    for (size_t count = recorder_.graph().size() - before; count > 0; --count, node = node->previous())
      mark_written(*node);
  }

  std::string next_name(std::string_view name) {
    if (!input_names_.empty()) return input_names_.at(static_cast<size_t>(next_++));
    return fmt::format(fmt::runtime(name), next_++);
  }

  void add_tangents() {
    next_ = 1;
    for (size_t i = 0; i < description_.num_graph_outputs(); ++i) {
      Tensor tangent;
      if (description_.has_tangent(i)) {
        const Tensor like = tangent_like(i);
        traced_.tangents.push_back(ExtensionTree::of(like));
        tangent = functional_form(with_placeholders(like, "tangents_{}"));
      }
      tangents_.push_back(tangent);
    }
  }

  // Gradients are dense, whatever the output is.
  Tensor tangent_like(size_t graph_output) {
    const size_t written = description_.written_back.size();
    const Value& like = graph_output < written
                            ? description_.inputs[description_.written_back[graph_output]].after
                            : example(graph_output - written);
    return dense_fake(like.to_tensor());
  }
  const Value& example(size_t output) const {
    return output < description_.outputs.size() ? description_.outputs[output].like
                                                : description_.bases[output - description_.outputs.size()];
  }
  static Tensor dense_fake(const Tensor& like) {
    if (extension_of(like)) return map_inner(like, dense_fake);
    auto impl = make_ref<TensorImpl>(Storage::without_memory(0, like.device()), like.dtype(), like.device());
    impl->set_contiguous(like.sizes());
    impl->set_flags(layer::kFake);
    return Tensor(std::move(impl));
  }

  // Gradients are asked for what the inputs were: the program writes to copies of them, and changes the
  // geometry of views.
  void make_fresh() {
    for (size_t i = 0; i < given_.size(); ++i) {
      const InputUse& use = description_.inputs[i];
      const bool is_written_back = use.write_back == WriteBack::kOutside;
      Value seen = given_[i];
      if (is_written_back && use.is_written && use.requires_grad_after) seen = given_[i].tensor_ref().clone();
      else if (is_written_back && use.changes_metadata)
        seen = given_[i].tensor_ref().view(given_[i].tensor_ref().sizes());
      seen_.push_back(std::move(seen));
    }
  }

  // --- what comes out

  // The written inputs, the outputs and the bases, as the program sees them.
  ValueList graph_outputs(const ValueList& returned) const {
    invariant(returned.size() == description_.outputs.size(),
              "a call gave {} outputs when it was described, and {} when it was traced",
              description_.outputs.size(), returned.size());
    ValueList outputs;
    for (size_t input : description_.written_back) outputs.push_back(seen_[input]);
    outputs.insert(outputs.end(), returned.begin(), returned.end());
    std::vector<Tensor> bases(description_.bases.size());
    for (size_t i = 0; i < returned.size(); ++i) {
      const OutputOrigin& origin = description_.outputs[i];
      if (origin.kind == OutputOrigin::Kind::kViewOfBase)
        bases[origin.source] = returned[i].tensor_ref().impl()->view->base;
    }
    for (const Tensor& base : bases) outputs.emplace_back(base);
    return outputs;
  }

  ValueList gradients_of(const ValueList& outputs) {
    std::vector<Tensor> differentiated, tangents, inputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool is_wanted = loss_ ? i == *loss_ : description_.has_tangent(i);
      if (!is_wanted || !outputs[i].to_tensor().requires_grad()) continue;
      differentiated.push_back(outputs[i].to_tensor());
      if (!loss_) tangents.push_back(tangents_[i]);
    }
    for (const Value& given : given_)
      if (requires_grad(given)) inputs.push_back(given.to_tensor());
    std::vector<Tensor> found(inputs.size());
    SparseGradientScope sparse(sparse_gradients_);
    if (!differentiated.empty() && !inputs.empty())
      found = autograd::grad(differentiated, inputs, tangents, {.allow_unused = true});
    ValueList gradients;
    size_t next = 0;
    for (const Value& given : given_) {
      Value gradient;
      if (requires_grad(given))
        if (const Tensor& one = found[next++]; one.defined()) gradient = one;
      gradients.push_back(std::move(gradient));
    }
    return gradients;
  }
  static bool requires_grad(const Value& value) {
    return value.is_tensor() && value.tensor_ref().requires_grad();
  }

  // --- writes of the backward

  std::vector<func::FunctionalChanges> changes_of_inputs() const {
    std::vector<func::FunctionalChanges> all;
    for (const Value& input : seen_)
      all.push_back(input.is_tensor() && input.tensor_ref().defined() ? changes_of(input.tensor_ref())
                                                                      : func::FunctionalChanges());
    return all;
  }
  void note_backward_writes(const std::vector<func::FunctionalChanges>& before) {
    for (const Tensor& tangent : tangents_)
      if (tangent.defined() && (changes_of(tangent).writes > 0 || changes_of(tangent).metadata))
        fail(
            "Found an input to the backward that was mutated during the backward pass: a gradient that a "
            "function "
            "is given is not its own. Write to a clone of it");
    const std::vector<func::FunctionalChanges> after = changes_of_inputs();
    for (size_t i = 0; i < after.size(); ++i) {
      require(
          after[i].metadata == before[i].metadata,
          "Found an input that had its metadata mutated in the backward pass: input {} got other sizes or "
          "strides. Let the backward change a view of it",
          i);
      if (after[i].writes == before[i].writes) continue;
      if (description_.inputs[i].is_changed())
        unsupported(
            "input {} is written to by the forward and by the backward; write to a clone in one of them", i);
      backward_writes_.push_back(i);
      traced_.backward_writes_differentiable_input |= description_.inputs[i].requires_grad;
    }
  }
  void write_in_backward() {
    RecorderScope recording(recorder_, recorder_.position());
    MaskScope below(layer::at_and_below(layer::kRecorderLower));
    NoGrad no_grad;
    for (size_t i : backward_writes_)
      write_input(placeholders_[i].tensor_ref(), seen_[i].tensor_ref(), /*is_backward=*/true);
  }

  // The values below the functional tensors; what follows from them is still recorded.
  ValueList finished(const ValueList& functional) {
    RecorderScope recording(recorder_, recorder_.position());
    ValueList values;
    for (const Value& value : functional) values.push_back(current_value(value));
    return values;
  }

  // Writes that stay in the graph, at its end. An input that is an output, too, is one after it was written.
  void write_in_graph(ValueList& outputs) {
    RecorderScope recording(recorder_, recorder_.position());
    MaskScope below(layer::at_and_below(layer::kRecorderLower));
    NoGrad no_grad;
    for (size_t i = 0; i < given_.size(); ++i) {
      const InputUse& use = description_.inputs[i];
      if (use.write_back != WriteBack::kInGraph) continue;
      if (use.replaces_storage) replace_memory(use, placeholders_[i].tensor_ref(), seen_[i].tensor_ref());
      else if (use.empties_storage()) resize_storage(placeholders_[i].tensor_ref(), 0);
      else write_input(placeholders_[i].tensor_ref(), seen_[i].tensor_ref(), /*is_backward=*/false);
    }
    for (size_t i = 0; i < description_.outputs.size(); ++i) {
      const OutputOrigin& origin = description_.outputs[i];
      if (origin.kind == OutputOrigin::Kind::kInput &&
          description_.inputs[origin.source].write_back == WriteBack::kInGraph)
        outputs[description_.written_back.size() + i] = placeholders_[origin.source];
    }
  }
  void write_input(const Tensor& placeholder, const Tensor& seen, bool is_backward);

  // The input looks at the memory of what the program gave it from now on.
  void replace_memory(const InputUse& use, const Tensor& placeholder, const Tensor& seen) {
    const Tensor value = func::from_functional(seen);
    if (use.empties_storage()) resize_storage(value, 0);
    set_(placeholder, value);
    mark_side(*recorder_.graph().back(), /*is_backward=*/false);
  }
  void resize_storage(const Tensor& tensor, const SymInt& bytes) {
    resize_storage_bytes_(tensor, bytes);
    mark_side(*recorder_.graph().back(), /*is_backward=*/false);
  }
  // What the program fills in its course has its memory from the beginning.
  void fill_storages() {
    MaskScope below(layer::at_and_below(layer::kRecorderLower));
    NoGrad no_grad;
    for (size_t i = 0; i < placeholders_.size(); ++i) {
      const InputUse& use = description_.inputs[i];
      if (use.write_back == WriteBack::kInGraph && use.fills_storage())
        resize_storage(placeholders_[i].tensor_ref(), use.storage_bytes);
    }
  }

  const CallDescription& description_;
  MakeGraphOptions options_;
  GraphRecorder recorder_;
  func::FunctionalPosition position_;
  std::optional<size_t> loss_;
  const std::vector<std::string>& input_names_;
  bool sparse_gradients_, keep_dead_code_;
  ValueList placeholders_;               // what the recorder knows the inputs by
  ValueList given_;                      // functional, one for each input: what gradients are asked for
  ValueList seen_;                       // what the program is given
  std::vector<Tensor> tangents_;         // by graph output; undefined where it takes none
  std::vector<size_t> backward_writes_;  // inputs
  TracedCall traced_;
  int next_ = 0;
};

void CallTracer::write_input(const Tensor& placeholder, const Tensor& seen, bool is_backward) {
  if (const Extension* whole = extension_of(placeholder)) {
    const std::vector<Tensor> targets = whole->inner_tensors(), values = extension_of(seen)->inner_tensors();
    for (size_t i = 0; i < targets.size(); ++i)
      if (targets[i].defined()) write_input(targets[i], values[i], is_backward);
    return;
  }
  const Tensor value = func::from_functional(seen);
  copy_(placeholder, value);
  Node& copy = *recorder_.graph().back();
  mark_side(copy, is_backward);
  // The statement that wrote the value is the one that writes to the input.
  const Node* written = node_in(copy.args()[1]);
  const NodeMeta* meta = written ? written->meta_or_null() : nullptr;
  if (!meta) return;
  copy.meta().trace = meta->trace;
  copy.meta().source = meta->source;
  copy.meta().modules = meta->modules;
}

}  // namespace

TracedCall trace_inference(const ValueFunction& f, const ValueList& inputs,
                           const CallDescription& description, const TraceOptions& options) {
  return CallTracer(description, options).inference(f, inputs);
}

TracedCall trace_joint(const ValueFunction& f, const ValueList& inputs, const CallDescription& description,
                       const TraceOptions& options) {
  return CallTracer(description, options).joint(f, inputs);
}

}  // namespace weft::aot
