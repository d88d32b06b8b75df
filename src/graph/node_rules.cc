#include "graph/node_rules.h"

#include "weft/base/error.h"

namespace weft {

void check_target(NodeKind kind, const Target& target, std::string_view doing) {
  if ((kind == NodeKind::kCallFunction) != target.is_function()) [[unlikely]]
    fail("{}: a {} node {} a function for its target, but '{}' was given", doing, kind_name(kind),
         kind == NodeKind::kCallFunction ? "needs" : "cannot have", target.to_string());
}

void check_arguments(NodeKind kind, const Target& target, const ValueList& args, const Kwargs& kwargs,
                     std::string_view doing) {
  auto expect = [&](bool holds, std::string_view wanted) {
    if (!holds) [[unlikely]]
      fail("{}: {} '{}' takes {}, but has {} arguments and {} by name", doing, kind_name(kind),
           target.to_string(), wanted, args.size(), kwargs.size());
  };
  switch (kind) {
    case NodeKind::kPlaceholder:
      expect(args.size() <= 1 && kwargs.empty(), "nothing but a default");
      if (!args.empty())
        for_each_node(args[0], [&](const Node& node) {
          fail("{}: the default of placeholder '{}' must be a constant, but is made of '{}'", doing,
               target.to_string(), node.name());
        });
      break;
    case NodeKind::kGetAttr:
      expect(args.empty() && kwargs.empty(), "no arguments");
      break;
    case NodeKind::kCallMethod:
      expect(!args.empty(), "the value that it is called on as its first argument");
      break;
    case NodeKind::kOutput:
      expect(args.size() <= 1 && kwargs.empty(), "nothing but the result");
      break;
    case NodeKind::kCallFunction:
    case NodeKind::kCallModule:
      break;
  }
}

}  // namespace weft
