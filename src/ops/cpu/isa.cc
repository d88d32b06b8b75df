#include "ops/cpu/isa.h"

#include "weft/base/error.h"

namespace weft::cpu {

int8_t detail::active_isa = -1;

IsaLevel best_isa() {
#if defined(WEFT_HAS_AVX2) && defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
    return IsaLevel::kAvx2;
#endif
  return IsaLevel::kBaseline;
}

IsaLevel detail::detect_isa() {
  IsaLevel best = best_isa();
  __atomic_store_n(&active_isa, static_cast<int8_t>(best), __ATOMIC_RELAXED);
  return best;
}

void set_active_isa(IsaLevel isa) {
  invariant(isa <= best_isa(), "set_active_isa: instruction set {} is not available here",
            static_cast<int>(isa));
  __atomic_store_n(&detail::active_isa, static_cast<int8_t>(isa), __ATOMIC_RELAXED);
}

}  // namespace weft::cpu
