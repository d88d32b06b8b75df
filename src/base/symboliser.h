#pragma once

#include <vector>

#include "weft/base/stack_trace.h"

namespace weft::detail {

// The functions and lines that a call belongs to, given the address that it returns to: one frame, and before
// it one for each call that was inlined there, innermost first. Nothing for an address that is in no loaded
// file. Safe on any thread; answers are kept.
std::vector<SourceFrame> symbolise(const void* return_address);

}  // namespace weft::detail
