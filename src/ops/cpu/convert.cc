#include "ops/cpu/convert.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const ConvertTable converters;)

Loop converter(DType to, DType from) {
  const ConvertTable& table = active_table<ConvertTable>(WEFT_ISA_TABLES(converters));
  return table.loops[static_cast<int>(to)][static_cast<int>(from)];
}

}  // namespace weft::cpu
