#include "aot/call_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "aot/input_steps.h"
#include "ops/view_replay.h"
#include "weft/autograd/data.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft::aot {

using Kind = OutputOrigin::Kind;

ValueList CallSteps::run_from(size_t first, Args inputs) const {
  auto rest = [&](Args given) { return run_from(first + 1, given); };
  return steps_[first]->run(inputs, rest);
}

std::string CallSteps::text() const {
  std::string text;
  for (const auto& step : steps_) text += step->text() + "\n";
  return text;
}

// --- CopyBack --------------------------------------------------------------------------------------------

namespace {

// Writes to the caller's tensor as the program did: with or without autograd.
void write(const Tensor& input, const Tensor& value, const InputUse& use) {
  if (use.is_hidden_from_autograd) {
    copy_(autograd::untracked_data(input), value);
  } else if (use.is_under_no_grad) {
    NoGrad no_grad;
    copy_(input, value);
  } else {
    copy_(input, value);
  }
}

}  // namespace

std::string CopyBack::text() const {
  std::vector<size_t> written;
  for (size_t input : description_.written_back)
    if (description_.inputs[input].is_written) written.push_back(input);
  return fmt::format("copy back: inputs {}", fmt::join(written, ", "));
}

ValueList CopyBack::run(Args inputs, const Rest& rest) const {
  ValueList outputs = rest(inputs);
  for (size_t i = 0; i < description_.written_back.size(); ++i) {
    const size_t input = description_.written_back[i];
    const InputUse& use = description_.inputs[input];
    if (!use.is_written) continue;
    // The value is of the input as the program left it, which still has the geometry it came with.
    const Tensor& target = inputs[input].tensor_ref();
    write(use.steps ? replay_view(use.steps, target) : target, outputs[i].tensor_ref(), use);
  }
  return outputs;
}

// --- RegenerateOutputs -----------------------------------------------------------------------------------

bool has_symbols(const ViewStep& last) {
  for (const ViewStep* step = &last; step; step = step->previous.get())
    for (const Value& argument : step->args) {
      if (argument.kind() == Value::Kind::kSymInt) return true;
      if (argument.is_sequence() && std::ranges::any_of(argument.elements(), [](const Value& v) {
            return v.kind() == Value::Kind::kSymInt;
          }))
        return true;
    }
  return false;
}

namespace {

// Where the view of `source` begins that the graph gave as `like`, which must look at the same memory.
SymInt offset_in(const Tensor& source, const Tensor& like) {
  if (like.dtype() != source.dtype() || like.storage() != source.storage())
    unsupported(
        "a view of symbolic sizes, {}, of something that was written to, or of another type, {}, cannot be "
        "made anew; "
        "compile for static sizes, or write to a clone",
        describe(like), describe(source));
  return like.storage_offset();
}

// The view of `source` that the call gave. Steps over symbols are of other sizes than this call's: the
// graph's own output has the right ones.
Tensor replayed(const OutputOrigin& origin, const Tensor& base, const Value& given) {
  GradModeScope recording(is_grad_enabled() && !origin.is_silent_view);
  const bool detaches = base.requires_grad() && !origin.requires_grad;
  const Tensor source = detaches ? detach(base) : base;
  if (!origin.steps) return detaches ? source : alias(source);
  if (!has_symbols(*origin.steps)) return replay_view(origin.steps, source);
  const Tensor& like = given.tensor_ref();
  return as_strided(source, like.sizes(), like.strides(), offset_in(source, like));
}

Tensor view_of(const OutputOrigin& origin, const Tensor& source, const Value& given) {
  Tensor view = replayed(origin, source, given);
  // The program made it a leaf: x.view(-1).requires_grad_().
  if (origin.requires_grad && origin.is_leaf && is_grad_enabled() && !view.requires_grad())
    view.set_requires_grad();
  return view;
}

}  // namespace

std::string RegenerateOutputs::text() const {
  std::vector<size_t> made;
  for (size_t i = 0; i < description_.outputs.size(); ++i)
    if (description_.outputs[i].is_regenerated()) made.push_back(i);
  return fmt::format("regenerate aliases: outputs {}", fmt::join(made, ", "));
}

ValueList RegenerateOutputs::run(Args inputs, const Rest& rest) const {
  ValueList outputs = rest(inputs);
  const size_t first = description_.written_back.size(), bases = first + description_.outputs.size();
  for (size_t i = 0; i < description_.outputs.size(); ++i)
    if (description_.outputs[i].is_silent_leaf() && is_grad_enabled())
      outputs[first + i].tensor_ref().set_requires_grad();
  // An output that others are views of is never made anew itself, or is so from an input.
  for (Kind kind : {Kind::kInput, Kind::kViewOfInput, Kind::kViewOfBase, Kind::kViewOfOutput, Kind::kOutput})
    for (size_t i = 0; i < description_.outputs.size(); ++i) {
      const OutputOrigin& origin = description_.outputs[i];
      if (origin.kind != kind) continue;
      Value& output = outputs[first + i];
      if (kind == Kind::kInput) output = inputs[origin.source];
      else if (kind == Kind::kViewOfInput)
        output = view_of(origin, inputs[origin.source].tensor_ref(), output);
      else if (kind == Kind::kOutput) output = outputs[first + origin.source];
      else if (kind == Kind::kViewOfBase)
        output = view_of(origin, outputs[bases + origin.source].tensor_ref(), output);
      else output = view_of(origin, outputs[first + origin.source].tensor_ref(), output);
    }
  return outputs;
}

// --- ChangeMetadata --------------------------------------------------------------------------------------

std::string ChangeMetadata::text() const {
  std::vector<size_t> changed;
  for (size_t input : description_.written_back)
    if (description_.inputs[input].changes_metadata) changed.push_back(input);
  return fmt::format("change metadata: inputs {}", fmt::join(changed, ", "));
}

ValueList ChangeMetadata::run(Args inputs, const Rest& rest) const {
  for (size_t input : description_.written_back)
    if (description_.inputs[input].changes_metadata) count_change(inputs[input].tensor_ref());
  ValueList outputs = rest(inputs);
  const size_t written = description_.written_back.size();
  for (size_t i = 0; i < written; ++i) {
    const InputUse& use = description_.inputs[description_.written_back[i]];
    if (!use.changes_metadata) continue;
    change_geometry(inputs[description_.written_back[i]].tensor_ref(), use.steps,
                    use.is_leaf && use.requires_grad);
  }
  outputs.erase(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(written));
  outputs.resize(description_.outputs.size());
  return outputs;
}

}  // namespace weft::aot
