#pragma once

#include "weft/graph/node.h"

namespace weft {

// Which target, and which arguments, a node of a kind may have. Errors begin with `doing`.
void check_target(NodeKind kind, const Target& target, std::string_view doing);
void check_arguments(NodeKind kind, const Target& target, const ValueList& args, const Kwargs& kwargs,
                     std::string_view doing);

}  // namespace weft
