#include "aot/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "autograd/function.h"
#include "ops/view_replay.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft::aot {
namespace {

using Kind = OutputOrigin::Kind;

// --- inputs ----------------------------------------------------------------------------------------------

// What stays in the graph does so without autograd: nothing may have followed the writes.
bool may_stay_in_graph(const InputUse& use) {
  const bool is_plain_write = !use.changes_metadata && !use.requires_grad_after;
  // Only a graph's caller can give a tensor another geometry over the memory it has.
  if (use.changes_metadata && !use.replaces_storage) return false;
  return (use.is_written || use.replaces_storage || use.resizes_storage) &&
         (is_plain_write || use.is_hidden_from_autograd || use.is_under_no_grad);
}

WriteBack write_back_of(const InputUse& use, bool keep_input_mutations) {
  if (!use.is_changed()) return WriteBack::kNone;
  const bool in_graph = keep_input_mutations && may_stay_in_graph(use);
  if (!in_graph && (use.replaces_storage || use.resizes_storage))
    fail(
        "Encountered a {} on a graph input, but the input has other mutations that we cannot keep in the "
        "graph. Every write to such an input must be made without recording (under NoGrad), and "
        "keep_inference_input_mutations must be set",
        use.resizes_storage ? "resize_" : "set_");
  return in_graph ? WriteBack::kInGraph : WriteBack::kOutside;
}

void refuse_changes_of_extension(const InputUse& use, const Tensor& given) {
  const std::string name = extension_of(given)->type_name();
  if (use.changes_metadata)
    unsupported(
        "Metadata mutations are currently not allowed on tensor subclasses: the program changes the sizes or "
        "strides of a {} among its inputs; let it change a view of it",
        name);
  if (use.is_written && !given.is_contiguous())
    unsupported(
        "Mutations on non-contiguous inputs are currently not allowed on tensor subclasses: the program "
        "writes "
        "to a {} among its inputs whose elements are not dense; write to a clone",
        name);
}

// The memory that an input had before `set_` is out of reach for whatever writes back.
void refuse_lost_writes(const Tensor& now) {
  const FunctionalBox* box = functional_box_of(now);
  require(!box || !box->first_memory || box->first_memory->changes.writes == 0,
          "cannot mutate tensors with frozen storage: an input was given other memory (set_), and the memory "
          "that "
          "it had is written to; write to a clone");
}

InputUse use_of(const Value& given, const Value& after, const DescribeOptions& options) {
  InputUse use;
  if (!given.is_tensor() || !given.tensor_ref().defined()) return use;
  const Tensor &before = given.tensor_ref(), &now = after.tensor_ref();
  const func::FunctionalChanges changes = changes_of(now);
  use.is_tensor = true;
  use.is_leaf = before.is_leaf();
  use.requires_grad = before.requires_grad();
  use.requires_grad_after = now.requires_grad();
  use.after = shape_like(now);
  use.is_written = changes.has_data_mutation();
  use.changes_metadata = changes.has_metadata_mutation();
  use.replaces_storage = changes.was_storage_changed();
  use.resizes_storage =
      changes.was_storage_resized() && !known(changes.storage_bytes == changes.storage_bytes_before);
  use.storage_bytes = changes.storage_bytes;
  use.is_hidden_from_autograd = changes.are_all_mutations_hidden_from_autograd();
  use.is_under_no_grad = changes.are_all_mutations_under_no_grad_or_inference_mode();
  if (const FunctionalBox* box = functional_box_of(now); box && use.changes_metadata) use.steps = box->steps;
  if (extension_of(before)) refuse_changes_of_extension(use, before);
  refuse_lost_writes(now);
  use.write_back = write_back_of(use, options.keep_input_mutations);
  return use;
}

// --- outputs ---------------------------------------------------------------------------------------------

bool is_one_of_several(const Tensor& tensor) {
  return tensor.impl()->view && tensor.impl()->view->creation == ViewCreation::kMultiOutput;
}

bool is_custom_result(const Tensor& tensor) {
  const Ref<GradNode> node = autograd::grad_fn(tensor);
  return node && dynamic_cast<autograd::CustomNode*>(node.get());
}

// How the outputs of a call share memory with its inputs and with one another.
class Outputs {
 public:
  Outputs(const ValueList& inputs, const ValueList& outputs) : inputs_(inputs), outputs_(outputs) {
    for (const Value& output : outputs)
      if (is_defined(output)) ++(is_one_of_several(output.tensor_ref()) ? several_ : single_)[memory(output)];
  }

  std::vector<OutputOrigin> origins() {
    std::vector<OutputOrigin> all;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      all.push_back(origin(outputs_[i]));
      if (all.back().kind != Kind::kInput && is_defined(outputs_[i])) note_repeated(i, all.back());
    }
    return all;
  }
  std::vector<Value> bases() const {
    std::vector<Value> likes;
    for (const Tensor& base : bases_) likes.push_back(shape_like(base));
    return likes;
  }

 private:
  static bool is_defined(const Value& value) { return value.is_tensor() && value.tensor_ref().defined(); }
  static const Storage* memory(const Value& value) { return value.tensor_ref().storage().get(); }

  // One tensor that is returned twice is one tensor.
  void note_repeated(size_t index, OutputOrigin& origin) const {
    for (size_t i = 0; i < index; ++i)
      if (is_defined(outputs_[i]) && outputs_[i].tensor_ref().is_same(outputs_[index].tensor_ref())) {
        origin.kind = Kind::kOutput;
        origin.source = i;
        return;
      }
  }

  OutputOrigin origin(const Value& output) {
    if (!is_defined(output)) return {};
    const Tensor& tensor = output.tensor_ref();
    OutputOrigin found = source_of(tensor);
    found.requires_grad = tensor.requires_grad();
    found.is_leaf = tensor.is_leaf();
    found.is_silent_view = tensor.impl()->view && tensor.impl()->view->creation == ViewCreation::kNoGrad;
    found.like = shape_like(tensor);
    return found;
  }

  OutputOrigin source_of(const Tensor& tensor) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_defined(inputs_[i]) || memory(inputs_[i]) != tensor.storage().get()) continue;
      return source_among_inputs(tensor, i);
    }
    const Ref<ViewStep>& view = tensor.impl()->view;
    if (view && tensor.requires_grad() && view->base.requires_grad()) return source_among_values(tensor);
    return detached_output(tensor);
  }

  // Of an extension only autograd knows what it is a view of, up to where a history was dropped: from there
  // on it must look like the input.
  static Ref<ViewStep> steps_of_extension(const Tensor& source, const Tensor& tensor) {
    const Ref<ViewStep>& view = tensor.impl()->view;
    const Tensor& base = view ? view->base : tensor;
    if (!base.is_same(source) && !same_geometry(base, source))
      unsupported(
          "an output is a view of {}, a tensor subclass among the inputs, by way of a detached tensor that "
          "is {}; "
          "detach the input itself, or return a clone",
          describe(source), describe(base));
    return without_base(view);
  }

  OutputOrigin source_among_inputs(const Tensor& tensor, size_t input) {
    if (tensor.is_same(inputs_[input].tensor_ref())) return {Kind::kInput, input};
    if (is_custom_result(tensor)) return {Kind::kFresh};
    if (autograd::grad_fn(tensor) && single_[tensor.storage().get()] == 0) return {Kind::kHiddenView, input};
    if (const FunctionalBox* box = functional_box_of(tensor)) return {Kind::kViewOfInput, input, box->steps};
    return {Kind::kViewOfInput, input, steps_of_extension(inputs_[input].tensor_ref(), tensor)};
  }

  // A view of an intermediate. Alone it may pass for a value; several views, or a view and its base, must
  // share one history.
  OutputOrigin source_among_values(const Tensor& tensor) {
    const Storage* shared = tensor.storage().get();
    if (single_[shared] + several_[shared] == 1 || single_[shared] == 0) return {Kind::kFresh};
    const Tensor& base = tensor.impl()->view->base;
    const Ref<ViewStep> steps =
        has_other_geometry(base) ? strided_step(base, tensor) : without_base(tensor.impl()->view);
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (is_defined(outputs_[i]) && outputs_[i].tensor_ref().is_same(base))
        return {Kind::kViewOfOutput, i, steps};
    const auto known = std::ranges::find_if(bases_, [&](const Tensor& other) { return other.is_same(base); });
    const auto index = static_cast<size_t>(known - bases_.begin());
    if (known == bases_.end()) bases_.push_back(base);
    return {Kind::kViewOfBase, index, steps};
  }

  // A base that was transposed, say, after views of it were made.
  static bool has_other_geometry(const Tensor& base) {
    const FunctionalBox* box = functional_box_of(base);
    return box && box->metadata_changed;
  }
  static Ref<ViewStep> strided_step(const Tensor& base, const Tensor& view) {
    const Tensor made = as_strided(base, view.sizes(), view.strides(), view.storage_offset());
    return without_base(made.impl()->view);
  }

  // What does not require a gradient, but is the same memory as an output that does: y and y.detach().
  OutputOrigin detached_output(const Tensor& tensor) const {
    if (tensor.requires_grad()) return {Kind::kFresh};
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!is_defined(outputs_[i])) continue;
      const Tensor& other = outputs_[i].tensor_ref();
      if (other.storage() == tensor.storage() && other.requires_grad() && same_geometry(other, tensor))
        return {Kind::kViewOfOutput, i};
    }
    return {Kind::kFresh};
  }

  static bool same_geometry(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.dim() == b.dim() &&
           std::ranges::equal(a.sizes(), b.sizes(),
                              [](const SymInt& x, const SymInt& y) { return x.same_as(y); }) &&
           same_strides(a.strides(), b.strides(), a.sizes()) &&
           a.storage_offset().same_as(b.storage_offset());
  }

  const ValueList &inputs_, &outputs_;
  std::map<const Storage*, int> single_,
      several_;  // how many outputs look at a memory, by how they were made
  std::vector<Tensor> bases_;
};

bool comes_with_gradient(const InputUse& use) {
  return use.is_written && use.requires_grad_after && !use.is_hidden_from_autograd && !use.is_under_no_grad;
}

}  // namespace

bool CallDescription::has_tangent(size_t graph_output) const {
  if (graph_output < written_back.size()) {
    const InputUse& use = inputs[written_back[graph_output]];
    return use.is_written && use.requires_grad_after;
  }
  const size_t output = graph_output - written_back.size();
  if (output >= outputs.size()) return true;
  return outputs[output].requires_grad && !outputs[output].is_regenerated();
}

CallDescription describe_call(const ValueFunction& f, const ValueList& inputs,
                              const DescribeOptions& options) {
  func::FunctionalizeScope functional(func::FunctionalPosition::kLower);
  const FunctionalInputs given(inputs);
  const FlatTree returned = tree_flatten(f(given.values()));
  CallDescription description;
  description.result = returned.spec;
  for (size_t i = 0; i < inputs.size(); ++i) {
    description.inputs.push_back(use_of(inputs[i], given.values()[i], options));
    if (description.inputs.back().write_back == WriteBack::kOutside) description.written_back.push_back(i);
  }
  Outputs outputs(given.values(), returned.leaves);
  description.outputs = outputs.origins();
  description.bases = outputs.bases();
  const bool gives_gradient = std::ranges::any_of(description.outputs, &OutputOrigin::requires_grad) ||
                              std::ranges::any_of(description.inputs, comes_with_gradient);
  description.needs_backward = is_grad_enabled() && gives_gradient;
  return description;
}

void forget_aliases(CallDescription& description) {
  description.bases.clear();
  for (OutputOrigin& origin : description.outputs)
    if (origin.kind != Kind::kPlain) origin.kind = Kind::kFresh;
}

// --- text ------------------------------------------------------------------------------------------------

namespace {

std::string text_of(size_t index, const InputUse& use) {
  std::string what;
  auto add = [&](bool holds, std::string_view word) {
    if (holds) what += fmt::format("{}{}", what.empty() ? "" : ", ", word);
  };
  add(use.is_written, "written");
  add(use.changes_metadata, "metadata changed");
  add(use.replaces_storage, "storage replaced");
  add(use.resizes_storage, "storage resized");
  add(use.is_hidden_from_autograd, "hidden from autograd");
  add(!use.is_hidden_from_autograd && use.is_under_no_grad, "under no_grad");
  return fmt::format(
      "input {}: {}; {}\n", index, what,
      use.write_back == WriteBack::kInGraph ? "the graph writes it" : "written back after the graph");
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kPlain:
      return "a plain value";
    case Kind::kFresh:
      return "a value of its own";
    case Kind::kInput:
      return "input";
    case Kind::kViewOfInput:
      return "a view of input";
    case Kind::kViewOfBase:
      return "a view of base";
    case Kind::kViewOfOutput:
      return "a view of output";
    case Kind::kOutput:
      return "output";
    case Kind::kHiddenView:
      return "a view, hidden from autograd, of input";
  }
  return "";
}

std::string text_of(size_t index, const OutputOrigin& origin) {
  std::string text = fmt::format("output {}: {}", index, name_of(origin.kind));
  if (origin.is_regenerated() || origin.kind == Kind::kHiddenView) text += fmt::format(" {}", origin.source);
  if (origin.requires_grad) text += ", requires grad";
  return text + "\n";
}

}  // namespace

std::string CallDescription::to_string() const {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_changed()) text += text_of(i, inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) text += text_of(i, outputs[i]);
  return text;
}

}  // namespace weft::aot
