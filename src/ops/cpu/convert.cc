#include "ops/cpu/convert.h"

namespace weft::cpu {

namespace baseline {
extern const ConvertTable converters;
}
namespace avx2 {
extern const ConvertTable converters;
}

Loop converter(DType to, DType from) {
  const ConvertTable* table = &baseline::converters;
#if defined(WEFT_HAS_AVX2)
  if (active_isa() == IsaLevel::kAvx2) table = &avx2::converters;
#endif
  return table->loops[static_cast<int>(to)][static_cast<int>(from)];
}

}  // namespace weft::cpu
