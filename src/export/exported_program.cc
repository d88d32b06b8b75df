#include "weft/export/exported_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/graph/text.h"

namespace weft {

std::string_view kind_name(InputSpec::Kind kind) {
  switch (kind) {
    case InputSpec::Kind::kUserInput:
    case InputSpec::Kind::kConstantInput:
      return "USER_INPUT";
    case InputSpec::Kind::kParameter:
      return "PARAMETER";
    case InputSpec::Kind::kBuffer:
      return "BUFFER";
    case InputSpec::Kind::kTensorConstant:
      return "CONSTANT_TENSOR";
    case InputSpec::Kind::kCustomObject:
      return "CUSTOM_OBJ";
    case InputSpec::Kind::kToken:
      return "TOKEN";
  }
  __builtin_unreachable();
}

std::string_view kind_name(OutputSpec::Kind kind) {
  switch (kind) {
    case OutputSpec::Kind::kUserOutput:
      return "USER_OUTPUT";
    case OutputSpec::Kind::kLossOutput:
      return "LOSS_OUTPUT";
    case OutputSpec::Kind::kBufferMutation:
      return "BUFFER_MUTATION";
    case OutputSpec::Kind::kParameterMutation:
      return "PARAMETER_MUTATION";
    case OutputSpec::Kind::kUserInputMutation:
      return "USER_INPUT_MUTATION";
    case OutputSpec::Kind::kGradientToParameter:
      return "GRADIENT_TO_PARAMETER";
    case OutputSpec::Kind::kGradientToUserInput:
      return "GRADIENT_TO_USER_INPUT";
    case OutputSpec::Kind::kToken:
      return "TOKEN";
  }
  __builtin_unreachable();
}

namespace {

using Parts = ExportedProgram::Parts;

constexpr const char* kConsumers = "source_fn_stack";  // as PyTorch calls this note

bool is_state(const InputSpec& spec) {
  return spec.kind == InputSpec::Kind::kParameter ||
         (spec.kind == InputSpec::Kind::kBuffer && spec.persistent);
}
bool is_constant(const InputSpec& spec) {
  return spec.kind == InputSpec::Kind::kTensorConstant ||
         (spec.kind == InputSpec::Kind::kBuffer && !spec.persistent);
}
bool is_user_input(const InputSpec& spec) {
  return spec.kind == InputSpec::Kind::kUserInput || spec.kind == InputSpec::Kind::kConstantInput;
}

std::unordered_set<std::string_view> names_of(const ExportedProgram::NamedTensors& tensors,
                                              const char* what) {
  std::unordered_set<std::string_view> names;
  for (const auto& [name, tensor] : tensors)
    require(names.insert(name).second, "exported program: there are two {} '{}'", what, name);
  return names;
}

void check_inputs(const Parts& parts) {
  const std::vector<Node*> placeholders = parts.graph_module.graph().placeholders();
  require(placeholders.size() == parts.inputs.size(),
          "exported program: its graph has {} placeholders, its signature {} inputs", placeholders.size(),
          parts.inputs.size());
  const auto state = names_of(parts.state, "parameters or buffers"),
             constants = names_of(parts.constants, "constants");
  size_t leaves = 0;
  for (size_t i = 0; i < parts.inputs.size(); ++i) {
    const InputSpec& spec = parts.inputs[i];
    leaves += is_user_input(spec);
    require(!is_state(spec) || state.contains(spec.target),
            "exported program: input '{}' is the {} '{}', of which there is no tensor",
            placeholders[i]->name(), spec.kind == InputSpec::Kind::kParameter ? "parameter" : "buffer",
            spec.target);
    require(!is_constant(spec) || constants.contains(spec.target),
            "exported program: input '{}' is the constant '{}', of which there is no tensor",
            placeholders[i]->name(), spec.target);
  }
  const ProgramCall& call = parts.call;
  require(call.arguments.num_leaves() == leaves,
          "exported program: its arguments have {} leaves, but {} of its inputs are the caller's",
          call.arguments.num_leaves(), leaves);
  require(call.arguments.kind() == TreeSpec::Kind::kTuple && call.arguments.children().size() == 2 &&
              call.arguments.children()[0].kind() == TreeSpec::Kind::kTuple &&
              call.arguments.children()[1].kind() == TreeSpec::Kind::kDict,
          "exported program: its arguments must be a pair of a tuple and a dictionary, but are {}",
          call.arguments.to_string());
  const size_t arguments =
      call.arguments.children()[0].children().size() + call.arguments.children()[1].children().size();
  require(call.names.size() == arguments, "exported program: it has {} arguments and {} names for them",
          arguments, call.names.size());
}

void check_outputs(const Parts& parts) {
  const Node* output = parts.graph_module.graph().output_node();
  require(output != nullptr && output->returned().is_sequence(), "exported program: its graph gives no list");
  const size_t count = output->returned().elements().size();
  require(count == parts.outputs.size(),
          "exported program: its graph gives {} values, its signature has {} outputs", count,
          parts.outputs.size());
  size_t leaves = 0;
  for (const OutputSpec& spec : parts.outputs)
    leaves += spec.kind == OutputSpec::Kind::kUserOutput || spec.kind == OutputSpec::Kind::kLossOutput;
  require(parts.call.result.num_leaves() == leaves,
          "exported program: its result has {} leaves, but {} of its outputs are the caller's",
          parts.call.result.num_leaves(), leaves);
}

// What takes a parameter or buffer: "layer1_conv,Conv2d", for the module whose call does first.
void note_consumers(const Parts& parts) {
  const std::vector<Node*> placeholders = parts.graph_module.graph().placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec::Kind kind = parts.inputs[i].kind;
    const bool is_state = kind == InputSpec::Kind::kParameter || kind == InputSpec::Kind::kBuffer;
    const Node* consumer =
        is_state && !placeholders[i]->users().empty() ? placeholders[i]->users().list()[0] : nullptr;
    const NodeMeta* noted = consumer ? consumer->meta_or_null() : nullptr;
    if (!noted || noted->modules.empty()) continue;
    NodeMeta& meta = placeholders[i]->meta();
    if (meta.extra.contains(kConsumers)) continue;
    const ModuleScope& module = noted->modules.back();
    std::string path = module.path;
    std::ranges::replace(path, '.', '_');
    meta.extra.set(kConsumers, fmt::format("{},{}", path, module.class_name));
  }
}

// Each size of an input that may vary, as PyTorch notes it of the graph.
void note_varying_sizes(const Parts& parts) {
  const std::vector<Node*> placeholders = parts.graph_module.graph().placeholders();
  ValueList constraints;
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const NodeMeta* noted = placeholders[i]->meta_or_null();
    if (parts.inputs[i].kind != InputSpec::Kind::kUserInput || !noted || !noted->value.is_tensor()) continue;
    const SymIntSpan sizes = noted->value.tensor_ref().sizes();
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!sizes[d].is_symbolic()) continue;
      auto range = std::ranges::find(parts.ranges, sizes[d].expr(), &RangeConstraint::expr);
      const sym::ValueRange allowed = range == parts.ranges.end() ? sym::ValueRange() : range->range;
      Dict constraint;
      constraint.set("input", placeholders[i]->name());
      constraint.set("dim", static_cast<int64_t>(d));
      constraint.set("min", allowed.lo);
      constraint.set("max", allowed.hi);
      constraints.emplace_back(std::move(constraint));
    }
  }
  parts.graph_module.meta().set("input_shape_constraints", Value::list(std::move(constraints)));
}

}  // namespace

ExportedProgram ExportedProgram::make(Parts parts) {
  check_inputs(parts);
  check_outputs(parts);
  note_consumers(parts);
  note_varying_sizes(parts);
  return ExportedProgram(std::make_shared<const Parts>(std::move(parts)));
}

const Tensor& ExportedProgram::tensor(std::string_view name) const {
  for (const NamedTensors* tensors : {&state_dict(), &constants()})
    for (const auto& [known, tensor] : *tensors)
      if (known == name) return tensor;
  fail("the program has no parameter, buffer or constant '{}'", name);
}

ExportedProgram::NamedTensors ExportedProgram::tensors_of(InputSpec::Kind kind) const {
  NamedTensors found;
  for (const InputSpec& spec : inputs())
    if (spec.kind == kind) found.emplace_back(spec.target, tensor(spec.target));
  return found;
}

namespace {

std::optional<Tensor> state_of(const ExportedProgram& program, const Node& node, InputSpec::Kind kind) {
  if (node.kind() != NodeKind::kPlaceholder) return std::nullopt;
  const std::vector<Node*> placeholders = program.graph().placeholders();
  const auto at = std::ranges::find(placeholders, &node);
  if (at == placeholders.end()) return std::nullopt;
  const InputSpec& spec = program.inputs()[static_cast<size_t>(at - placeholders.begin())];
  return spec.kind == kind ? std::optional<Tensor>(program.tensor(spec.target)) : std::nullopt;
}

}  // namespace

std::optional<Tensor> ExportedProgram::parameter_of(const Node& node) const {
  return state_of(*this, node, InputSpec::Kind::kParameter);
}
std::optional<Tensor> ExportedProgram::buffer_of(const Node& node) const {
  return state_of(*this, node, InputSpec::Kind::kBuffer);
}

namespace {

std::string indented(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    result += (line.empty() ? "" : "    ") + std::string(line) + "\n";
    at = end + 1;
  }
  return result;
}

std::string bound(int64_t value, bool is_infinite, const char* infinity) {
  return is_infinite ? infinity : std::to_string(value);
}

}  // namespace

std::string ExportedProgram::to_string() const {
  std::string text =
      "ExportedProgram:\n" + indented(readable(graph_module())) + "\nGraph signature:\n    # inputs\n";
  const std::vector<Node*> placeholders = graph().placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const InputSpec& spec = inputs()[i];
    text += fmt::format("    {}: {}", placeholders[i]->name(), kind_name(spec.kind));
    if (!spec.target.empty()) text += fmt::format(" target='{}'", spec.target);
    if (spec.kind == InputSpec::Kind::kBuffer)
      text += fmt::format(" persistent={}", spec.persistent ? "True" : "False");
    text += "\n";
  }
  text += "\n    # outputs\n";
  const Value returned = graph().output_node()->returned();
  for (size_t i = 0; i < outputs().size(); ++i) {
    text += fmt::format("    {}: {}", returned.elements()[i].to_string(), kind_name(outputs()[i].kind));
    if (!outputs()[i].target.empty()) text += fmt::format(" target='{}'", outputs()[i].target);
    text += "\n";
  }
  text += "\nRange constraints: {";
  for (size_t i = 0; i < range_constraints().size(); ++i) {
    const auto& [expr, range] = range_constraints()[i];
    text += fmt::format("{}{}: VR[{}, {}]", i ? ", " : "", expr->to_string(),
                        bound(range.lo, range.lo == sym::ValueRange::kNegInf, "-int_oo"),
                        bound(range.hi, range.hi == sym::ValueRange::kInf, "int_oo"));
  }
  return text + "}\n";
}

std::ostream& operator<<(std::ostream& out, const ExportedProgram& program) {
  return out << program.to_string();
}

}  // namespace weft
