// The script view as text: a line a node.
#include "graph/script/constants.h"
#include "weft/base/error.h"

namespace weft {

const Value* ScriptNode::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

const ScriptValue& ScriptNode::output() const {
  require(outputs.size() == 1, "{} gives {} values, not one", kind, outputs.size());
  return *outputs[0];
}

size_t ScriptGraph::count(std::string_view kind) const {
  size_t result = 0;
  for (const ScriptNode* node : nodes_) result += node->kind == kind;
  return result;
}

namespace {

std::string value_list(const std::vector<const ScriptValue*>& values) {
  std::string text;
  for (const ScriptValue* value : values) (text += text.empty() ? "%" : ", %") += value->name;
  return text;
}

std::string typed_value(const ScriptValue& value, bool with_types) {
  return fmt::format("%{} : {}", value.name,
                     with_types ? value.type.to_string() : value.type.erased().to_string());
}

std::string attributes_text(const ScriptNode& node) {
  if (node.attributes.empty()) return "";
  std::string text;
  for (const auto& [key, value] : node.attributes) {
    bool is_value = key == "value" && !node.outputs.empty();
    std::string shown =
        constant_text(value, is_value ? node.outputs[0]->type : ScriptType{.kind = ScriptType::Kind::kAny});
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, shown);
  }
  return "[" + text + "]";
}

std::string call_text(const ScriptNode& node) {
  std::string attributes = attributes_text(node), inputs = value_list(node.inputs);
  if (node.function.empty()) return fmt::format("{}{}({})", node.kind, attributes, inputs);
  return fmt::format("^{}{}({})({})", node.function, attributes, scalars_text(node.scalars), inputs);
}

}  // namespace

std::string script_line(const ScriptNode& node, bool with_types) {
  std::string text;
  for (size_t i = 0; i < node.outputs.size(); ++i)
    text += (i ? ", " : "") + typed_value(*node.outputs[i], with_types);
  text += " = " + call_text(node);
  if (!node.scope.empty()) text += ", scope: " + node.scope;
  return text;
}

std::string ScriptGraph::to_string() const {
  std::string text = "graph(";
  for (size_t i = 0; i < inputs_.size(); ++i)
    text += (i ? ",\n      " : "") + typed_value(*inputs_[i], with_types_);
  text += "):\n";
  std::string forked;
  size_t fork_count = 0;
  for (const ScriptNode* node : nodes_) {
    text += "  ";
    for (size_t i = 0; i < node->outputs.size(); ++i)
      text += (i ? ", " : "") + typed_value(*node->outputs[i], with_types_);
    if (node->body) {
      std::string name = fmt::format("{}_{}", node->kind, fork_count++);
      text += fmt::format(" = {}({})", name, value_list(node->inputs));
      forked += fmt::format("with {} = {}", name, node->body->to_string());
    } else {
      text += " = " + call_text(*node);
    }
    if (!node->scope.empty()) text += ", scope: " + node->scope;
    if (with_sources_ && !node->source.empty()) text += " # " + node->source;
    text += "\n";
  }
  return text + fmt::format("  return ({})\n", value_list(outputs_)) + forked;
}

}  // namespace weft
