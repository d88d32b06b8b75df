#pragma once

#include <cstdint>

// Which instruction set the kernels use. The files of isa/ are compiled once for each set, in a namespace of
// its own, so that no symbol is shared between sets; the choice is made at run time.
namespace weft::cpu {

enum class IsaLevel : uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kIsaCount = 3;

// The name of a set's namespace.
const char* isa_name(IsaLevel isa);

namespace detail {
extern int8_t active_isa;  // -1 until the first use
IsaLevel detect_isa();
}  // namespace detail

// The best set that both this build and this processor have.
IsaLevel best_isa();

// The best set, or the one that the environment variable WEFT_ISA names.
inline IsaLevel active_isa() {
  int8_t isa = __atomic_load_n(&detail::active_isa, __ATOMIC_RELAXED);
  return isa >= 0 ? static_cast<IsaLevel>(isa) : detail::detect_isa();
}

// For tests and benchmarks: uses `isa` (at most `best_isa()`) from now on.
void set_active_isa(IsaLevel isa);

// What a kernel has for each set, by IsaLevel; null for those that the build leaves out.
template <typename Table>
using IsaTables = const Table* const[kIsaCount];
template <typename Table>
const Table& active_table(IsaTables<Table>& tables) {
  return *tables[static_cast<int>(active_isa())];
}

}  // namespace weft::cpu

// Declarations that hold in the namespace of every set.
#define WEFT_IN_EVERY_ISA(...) \
  namespace baseline {         \
  __VA_ARGS__                  \
  }                            \
  namespace avx2 {             \
  __VA_ARGS__                  \
  }                            \
  namespace avx512 {           \
  __VA_ARGS__                  \
  }

// The initialiser of IsaTables: the tables of that name in the namespaces of the sets.
#if defined(WEFT_BASELINE_ONLY)
#define WEFT_ISA_TABLES(name) {&baseline::name, nullptr, nullptr}
#else
#define WEFT_ISA_TABLES(name) {&baseline::name, &avx2::name, &avx512::name}
#endif
