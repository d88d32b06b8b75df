#include "ops/cpu/convert_loops.h"
#include "ops/cpu/pack_baseline.h"

namespace weft::cpu::baseline {
extern const ConvertTable converters;
constinit const ConvertTable converters = convert_table<Isa>();
}  // namespace weft::cpu::baseline
