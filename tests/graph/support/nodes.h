#pragma once

#include <string_view>

#include "weft/dispatch/operator.h"
#include "weft/graph/node.h"

// Short words for graphs that tests write by hand.
namespace weft::testing {

inline Value v(Node& node) { return value_of(node); }
inline const Operator& op(std::string_view name) { return operator_named(name); }

}  // namespace weft::testing
