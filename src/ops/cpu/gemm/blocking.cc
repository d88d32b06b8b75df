#include "ops/cpu/gemm/blocking.h"

#include <unistd.h>

namespace weft::cpu {

int64_t second_level_cache() {
  static const int64_t size = [] {
    constexpr long kUsual = 512 * 1024, kLeast = 256 * 1024, kMost = 4096 * 1024;
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long told = sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1: not known
#else
    const long told = 0;
#endif
    return told > 0 ? std::clamp(told, kLeast, kMost) : kUsual;
  }();
  return size;
}

}  // namespace weft::cpu
