#pragma once

#include <span>

#include "weft/dispatch/op_def.h"

namespace weft {

// An in-place operator that only takes the sizes and type of what it writes to, and functional calls that
// give the same from its arguments: what a recording without mutation holds instead.
struct OutplaceRule {
  const OpDef* def;
  Function calls;
};
std::span<const OutplaceRule> outplace_rules();

}  // namespace weft
