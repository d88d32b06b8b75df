// The three plain views of a graph: code, a line a node, a table.
#include "graph/text.h"

#include <algorithm>
#include <array>

#include "weft/graph/graph.h"

namespace weft {
namespace {

std::string leaf_code(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kDType:
      return fmt::format("torch.{}", dtype_name(value.to_dtype()));
    case Value::Kind::kLayout:
      return "torch.strided";
    case Value::Kind::kMemoryFormat:
      return "torch." + value.to_string();
    case Value::Kind::kDevice: {
      std::string text = value.to_device().to_string();
      size_t colon = text.find(':');
      if (colon == std::string::npos) return fmt::format("device(type='{}')", text);
      return fmt::format("device(type='{}', index={})", text.substr(0, colon), text.substr(colon + 1));
    }
    default:
      return value.to_string();
  }
}

std::string leaf_graph_text(const Value& value) {
  if (const Node* node = node_in(value)) return "%" + node->name();
  if (value.is_string()) return std::string(value.to_string_view());
  if (value.kind() == Value::Kind::kDevice) return value.to_string();
  return leaf_code(value);
}

// Containers alike in both: what differs is the leaves, and how keys of dictionaries are written.
template <typename Leaf>
std::string containers(const Value& value, const Leaf& leaf) {
  if (value.is_dict()) {
    std::string text;
    for (const auto& [key, element] : value.to_dict())
      text += (text.empty() ? "" : ", ") + leaf(key) + ": " + containers(element, leaf);
    return "{" + text + "}";
  }
  if (!value.is_sequence()) return leaf(value);
  std::string text;
  for (const Value& element : value.elements())
    text += (text.empty() ? "" : ", ") + containers(element, leaf);
  if (value.is_list()) return "[" + text + "]";
  return "(" + text + (value.elements().size() == 1 ? ",)" : ")");
}

std::string tuple_of(const ValueList& values) { return graph_text(Value::tuple(values)); }
std::string dict_of(const Kwargs& kwargs) {
  std::string text;
  for (const auto& [key, value] : kwargs) text += (text.empty() ? "" : ", ") + key + ": " + graph_text(value);
  return "{" + text + "}";
}

}  // namespace

std::string python_code(const Value& value) { return containers(value, leaf_code); }
std::string graph_text(const Value& value) { return containers(value, leaf_graph_text); }

// --- a line a node ---------------------------------------------------------------------------------------

std::string Node::line() const {
  if (kind_ == NodeKind::kOutput) return "return " + (args_.empty() ? "None" : python_code(args_[0]));
  std::string type = meta_ && !meta_->type.empty() ? meta_->type + " " : "";
  std::string text = fmt::format("%{} : {}[num_users={}] = {}[target={}]", name_, type, users_.size(),
                                 kind_name(kind_), target_.to_string());
  if (kind_ == NodeKind::kGetAttr) return text;
  if (kind_ == NodeKind::kPlaceholder)
    return args_.empty() ? text : text + "(default=" + graph_text(args_[0]) + ")";
  return text + fmt::format("(args = {}, kwargs = {})", tuple_of(args_), dict_of(kwargs_));
}

std::string Graph::to_string() const {
  std::string text = "graph():";
  for (const Node& node : *this) text += "\n    " + node.line();
  return text;
}

// --- a table ---------------------------------------------------------------------------------------------

std::string Graph::tabular() const {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows{{"opcode", "name", "target", "args", "kwargs"}};
  for (const Node& node : *this) {
    std::string args = python_code(Value::tuple(node.args()));
    std::string kwargs;
    for (const auto& [key, value] : node.kwargs())
      kwargs += fmt::format("{}'{}': {}", kwargs.empty() ? "" : ", ", key, python_code(value));
    rows.push_back({std::string(kind_name(node.kind())), node.name(), node.target().to_string(), args,
                    "{" + kwargs + "}"});
  }
  std::array<size_t, 5> widths{};
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  auto add_row = [&](const Row& row) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c)
      line += fmt::format("{:<{}}{}", row[c], widths[c], c + 1 < row.size() ? "  " : "");
    line.erase(line.find_last_not_of(' ') + 1);
    text += (text.empty() ? "" : "\n") + line;
  };
  add_row(rows[0]);
  add_row({std::string(widths[0], '-'), std::string(widths[1], '-'), std::string(widths[2], '-'),
           std::string(widths[3], '-'), std::string(widths[4], '-')});
  for (size_t i = 1; i < rows.size(); ++i) add_row(rows[i]);
  return text;
}

// --- code ------------------------------------------------------------------------------------------------

namespace {

bool is_identifier(std::string_view text) {
  bool legal = !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0]));
  for (char c : text) legal &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  return legal;
}

// "self.layer1" for what can be written so; `getattr(self.layer1, "0").conv1` otherwise.
std::string attribute_code(std::string_view object, std::string_view path) {
  std::string text(object);
  while (!path.empty()) {
    size_t dot = path.find('.');
    std::string_view part = path.substr(0, dot);
    text = is_identifier(part) ? fmt::format("{}.{}", text, part)
                               : fmt::format("getattr({}, \"{}\")", text, part);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return text;
}

std::string arguments_code(std::span<const Value> args, const Kwargs& kwargs) {
  std::string text;
  for (const Value& value : args) text += (text.empty() ? "" : ", ") + python_code(value);
  for (const auto& [key, value] : kwargs)
    text += (text.empty() ? "" : ", ") + key + " = " + python_code(value);
  return text;
}

std::string function_code(const Node& node) {
  const PythonFunction* function = node.target().function();
  const ValueList& args = node.args();
  if (function && node.kwargs().empty() && !function->symbol.empty()) {
    if (function->symbol == "[]" && args.size() == 2)
      return fmt::format("{}[{}]", python_code(args[0]), python_code(args[1]));
    if (args.size() == 2)
      return fmt::format("{} {} {}", python_code(args[0]), function->symbol, python_code(args[1]));
    if (args.size() == 1) return fmt::format("{}{}", function->symbol, python_code(args[0]));
  }
  return fmt::format("{}({})", node.target().to_string(), arguments_code(args, node.kwargs()));
}

std::string statement(const Node& node) {
  const ValueList& args = node.args();
  switch (node.kind()) {
    case NodeKind::kGetAttr:
      return node.name() + " = " + attribute_code("self", node.target().to_string());
    case NodeKind::kCallFunction:
      return node.name() + " = " + function_code(node);
    case NodeKind::kCallMethod:
      return fmt::format("{} = {}.{}({})", node.name(), python_code(args[0]), node.target().to_string(),
                         arguments_code(std::span(args).subspan(1), node.kwargs()));
    case NodeKind::kCallModule:
      return fmt::format("{} = {}({})", node.name(), attribute_code("self", node.target().to_string()),
                         arguments_code(args, node.kwargs()));
    case NodeKind::kOutput:
      return "return " + python_code(args[0]);
    case NodeKind::kPlaceholder:
      break;
  }
  return "";
}

// For each node: the values that nobody needs after it, in the order of its arguments.
std::unordered_map<const Node*, std::vector<const Node*>> last_uses(const Graph& graph) {
  std::unordered_map<const Node*, std::vector<const Node*>> result;
  std::unordered_set<const Node*> seen;
  for (const Node* node = graph.back(); node; node = node->previous())
    for (const Node* input : node->inputs())
      if (seen.insert(input).second) result[node].push_back(input);
  return result;
}

}  // namespace

std::string Graph::code() const {
  std::string parameters = "self", body;
  auto dying = last_uses(*this);
  for (const Node& node : *this) {
    if (node.kind() == NodeKind::kPlaceholder) {
      std::string target = node.target().to_string(), raw = target;
      std::erase(raw, '*');
      parameters += ", " + target + (node.args().empty() ? "" : " = " + python_code(node.args()[0]));
      if (raw != node.name()) body += fmt::format("    {} = {}\n", node.name(), raw);
      continue;
    }
    body += "    " + statement(node);
    if (node.kind() != NodeKind::kOutput) {
      std::vector<const Node*> last = dying[&node];
      if (node.users().empty()) last.push_back(&node);
      std::string names;
      for (const Node* value : last) names += value->name() + " = ";
      if (!names.empty()) body += ";  " + names + "None";
    }
    body += "\n";
  }
  if (body.empty()) body = "    pass\n";
  return fmt::format("\n\n\ndef forward({}):\n{}    ", parameters, body);
}

}  // namespace weft
