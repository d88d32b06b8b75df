#pragma once

#include <cstddef>
#include <span>

#include "weft/base/stack_trace.h"

namespace weft::detail {

// What the open calls of this thread return to, innermost first, as far as there is room: those that led to
// the function that calls this one, which its own `__builtin_frame_address(0)` stands for. Says how many.
size_t follow_calls(const void* frame, std::span<const void*> into) noexcept;

// The innermost frame among these that is not the library's; unknown when there is none.
SourceFrame user_frame_of(std::span<const void* const> addresses);

}  // namespace weft::detail
