// The graph text that reads back.
#include <fmt/format.h>

#include <algorithm>

#include "graph/text/value_text.h"
#include "weft/base/error.h"
#include "weft/graph/text.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

// Containers aside.
bool has_text(const Value& value) {
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::kTensor:
    case Kind::kGenerator:
    case Kind::kSymInt:
    case Kind::kSymFloat:
    case Kind::kSymBool:
      return false;
    case Kind::kObject:
      return node_in(value) != nullptr || holds_operator(value);
    default:
      return true;
  }
}

void check_value(const Node& node, const Value& value, int depth) {
  require(
      has_text(value),
      "quoted_text: node '{}' has {} among its arguments ({}), which has no text; make it an attribute of "
      "the module, or a node",
      node.name(), value.kind_name(), value.to_string());
  require(depth <= kDeepestValue,
          "quoted_text: node '{}' has more than {} containers inside each other among its arguments",
          node.name(), kDeepestValue);
  if (value.is_sequence())
    for (const Value& element : value.elements()) check_value(node, element, depth + 1);
  if (!value.is_dict()) return;
  for (const auto& [key, element] : value.to_dict()) {
    require(!node_in(key), "quoted_text: node '{}' has the node '{}' for the key of a dictionary",
            node.name(), key.to_string());
    check_value(node, key, depth + 1);
    check_value(node, element, depth + 1);
  }
}

void append_exact(std::string& out, const Node& node, const Value& value) {
  check_value(node, value, 0);
  append_value(out, value, ValueStyle::kQuoted);
}

// As it is where nothing in it could be taken for what comes after it.
template <typename IsPlain>
void append_plain_or_quoted(std::string& out, std::string_view text, IsPlain is_plain) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) out += text;
  else append_quoted(out, text);
}

bool is_word(char c) { return is_identifier({&c, 1}) || (c >= '0' && c <= '9'); }

void append_target(std::string& out, const Node& node) {
  if (node.kind() == NodeKind::kCallFunction) append_target(out, node.target());
  else
    append_plain_or_quoted(out, node.target().to_string(),
                           [](char c) { return is_word(c) || c == '.' || c == '*'; });
}

void append_arguments(std::string& out, const Node& node) {
  out += "(args = (";
  for (const Value& value : node.args()) {
    if (&value != node.args().data()) out += ", ";
    append_exact(out, node, value);
  }
  out += node.args().size() == 1 ? ",), kwargs = {" : "), kwargs = {";
  bool first = true;
  for (const auto& [key, value] : node.kwargs()) {
    if (!first) out += ", ";
    first = false;
    if (is_identifier(key)) out += key;
    else append_quoted(out, key);
    out += ": ";
    append_exact(out, node, value);
  }
  out += "})";
}

constexpr const char* kOutputName = "output";  // what Graph::output gives it

void append_quoted_line(std::string& out, const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  const bool has_type = meta && meta->type, has_kwargs = !node.kwargs().empty();
  const size_t args = node.args().size();
  if (node.kind() == NodeKind::kOutput && node.name() == kOutputName &&
      node.target() == Target(kOutputName) && args == 1 && !has_kwargs && !has_type) {
    out += "return ";
    return append_exact(out, node, node.args()[0]);
  }
  fmt::format_to(std::back_inserter(out), "%{} : ", node.name());
  if (has_type) {
    append_type(out, type_text(node));
    out += ' ';
  }
  fmt::format_to(std::back_inserter(out), "[num_users={}] = {}[target=", node.users().size(),
                 kind_name(node.kind()));
  append_target(out, node);
  out += ']';
  const bool may_be_bare = node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kGetAttr;
  if (may_be_bare && args == 0 && !has_kwargs) return;
  if (node.kind() == NodeKind::kPlaceholder && args == 1 && !has_kwargs) {
    out += "(default=";
    append_exact(out, node, node.args()[0]);
    out += ')';
  } else {
    append_arguments(out, node);
  }
}

}  // namespace

bool has_exact_text(const Value& value, int depth) {
  if (!has_text(value) || depth > kDeepestValue) return false;
  auto has_inner = [&](const Value& inner) { return has_exact_text(inner, depth + 1); };
  if (value.is_sequence()) return std::all_of(value.elements().begin(), value.elements().end(), has_inner);
  return !value.is_dict() ||
         std::all_of(value.to_dict().begin(), value.to_dict().end(), [&](const Dict::Entry& entry) {
           return !node_in(entry.first) && has_inner(entry.first) && has_inner(entry.second);
         });
}

bool has_quoted_text(const Graph& graph) {
  for (const Node& node : graph) {
    for (const Value& value : node.args())
      if (!has_exact_text(value)) return false;
    for (const auto& [key, value] : node.kwargs())
      if (!has_exact_text(value)) return false;
  }
  return true;
}

std::string quoted_text(const Graph& graph) {
  constexpr size_t kUsualLine = 128;
  std::string text = "graph():";
  text.reserve(kUsualLine * (graph.size() + 1));
  for (const Node& node : graph) {
    text += "\n    ";
    append_quoted_line(text, node);
  }
  return text;
}

}  // namespace weft
