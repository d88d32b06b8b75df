#pragma once

#include <cstdint>

// How many elements are worth the waking of a thread.
namespace weft::cpu {

inline constexpr int64_t kThreadElements = 32768;  // of loops that compute from front to back
inline constexpr int64_t kThreadPlaces = 16384;    // of loops that look for their elements

}  // namespace weft::cpu
