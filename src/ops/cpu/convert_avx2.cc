#include "ops/cpu/convert_loops.h"
#include "ops/cpu/pack_avx2.h"

namespace weft::cpu::avx2 {
extern const ConvertTable converters;
constinit const ConvertTable converters = convert_table<Isa>();
}  // namespace weft::cpu::avx2
