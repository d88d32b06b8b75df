#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_set>

#include "weft/graph/graph.h"

// Which graphs can be written as text at all.
namespace weft::testing {

// Values that no text can hold: quoted_text refuses them.
inline bool has_text(const Value& value) {
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::kTensor:
    case Kind::kGenerator:
    case Kind::kSymInt:
    case Kind::kSymFloat:
    case Kind::kSymBool:
      return false;
    case Kind::kObject:
      return node_in(value) != nullptr;
    case Kind::kList:
    case Kind::kTuple:
      return std::all_of(value.elements().begin(), value.elements().end(), has_text);
    case Kind::kDict:
      return std::all_of(value.to_dict().begin(), value.to_dict().end(), [](const Dict::Entry& entry) {
        return has_text(entry.first) && has_text(entry.second);
      });
    default:
      return true;
  }
}

inline bool has_text(const Graph& graph) {
  for (const Node& node : graph) {
    if (!std::all_of(node.args().begin(), node.args().end(), [](const Value& v) { return has_text(v); }))
      return false;
    for (const auto& [key, value] : node.kwargs())
      if (!has_text(value)) return false;
  }
  return true;
}

// What of a graph Python code has no place for: placeholders after other nodes, of one name, or whose name is
// none; another name of the output than it gets by itself; arguments of nodes that call nothing; methods of
// nothing.
inline bool code_can_say(const Graph& graph) {
  auto is_word = [](char c) { return (std::isalnum(static_cast<unsigned char>(c)) || c == '_'); };
  std::unordered_set<std::string> parameters;
  Names names;
  bool in_front = true;
  for (const Node& node : graph) {
    std::string target = node.target().to_string();
    if (node.kind() == NodeKind::kPlaceholder) {
      target.erase(0, target.find_first_not_of('*'));
      const bool is_name = !target.empty() && std::all_of(target.begin(), target.end(), is_word) &&
                           !std::isdigit(static_cast<unsigned char>(target[0]));
      if (!in_front || !is_name || !parameters.insert(target).second) return false;
      if (node.args().size() > 1 || !node.kwargs().empty()) return false;
    } else if (node.kind() == NodeKind::kCallMethod) {
      if (node.args().empty()) return false;
    } else if (node.kind() == NodeKind::kGetAttr) {
      if (!node.args().empty() || !node.kwargs().empty()) return false;
    } else if (node.kind() == NodeKind::kOutput) {
      if (node.args().size() != 1 || !node.kwargs().empty() || target != "output") return false;
      if (node.name() != names.make("output")) return false;
    }
    if (node.kind() != NodeKind::kPlaceholder) in_front = false;
    names.make(node.name());
  }
  return true;
}

}  // namespace weft::testing
