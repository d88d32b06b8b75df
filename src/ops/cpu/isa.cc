#include "ops/cpu/isa.h"

#include <cstdlib>
#include <string_view>

#include "weft/base/error.h"

namespace weft::cpu {

int8_t detail::active_isa = -1;

namespace {

constexpr const char* kNames[kIsaCount] = {"baseline", "avx2", "avx512"};

IsaLevel isa_of_name(std::string_view name) {
  for (int level = 0; level <= static_cast<int>(best_isa()); ++level)
    if (name == kNames[level]) return static_cast<IsaLevel>(level);
  fail("WEFT_ISA={}: expected an instruction set that this processor and this build have: baseline{}{}", name,
       best_isa() >= IsaLevel::kAvx2 ? ", avx2" : "", best_isa() >= IsaLevel::kAvx512 ? ", avx512" : "");
}

}  // namespace

const char* isa_name(IsaLevel isa) { return kNames[static_cast<int>(isa)]; }

IsaLevel best_isa() {
#if !defined(WEFT_BASELINE_ONLY) && defined(__x86_64__)
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx2) return has_avx512 ? IsaLevel::kAvx512 : IsaLevel::kAvx2;
#endif
  return IsaLevel::kBaseline;
}

IsaLevel detail::detect_isa() {
  const char* wanted = std::getenv("WEFT_ISA");
  const IsaLevel isa = wanted && *wanted ? isa_of_name(wanted) : best_isa();
  __atomic_store_n(&active_isa, static_cast<int8_t>(isa), __ATOMIC_RELAXED);
  return isa;
}

void set_active_isa(IsaLevel isa) {
  invariant(isa <= best_isa(), "set_active_isa: {} is not available here", isa_name(isa));
  __atomic_store_n(&detail::active_isa, static_cast<int8_t>(isa), __ATOMIC_RELAXED);
}

}  // namespace weft::cpu
