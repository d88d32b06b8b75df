#pragma once

#include <cstdint>

// Which instruction set the kernels use. Every kernel is compiled once for each set, in files of its own
// whose symbols all carry a type of that set; the choice is made at run time.
namespace weft::cpu {

enum class IsaLevel : uint8_t { kBaseline, kAvx2 };
inline constexpr int kIsaCount = 2;

namespace detail {
extern int8_t active_isa;  // -1 until the first use
IsaLevel detect_isa();
}  // namespace detail

// The best set that both this build and this processor have.
IsaLevel best_isa();

inline IsaLevel active_isa() {
  int8_t isa = __atomic_load_n(&detail::active_isa, __ATOMIC_RELAXED);
  return isa >= 0 ? static_cast<IsaLevel>(isa) : detail::detect_isa();
}

// For tests and benchmarks: uses `isa` (at most `best_isa()`) from now on.
void set_active_isa(IsaLevel isa);

}  // namespace weft::cpu
