#include "ops/cpu/convert_loops.h"
#include "ops/cpu/isa/packs.h"

namespace weft::cpu::WEFT_ISA {
extern const ConvertTable converters;
constinit const ConvertTable converters = convert_table<Isa>();
}  // namespace weft::cpu::WEFT_ISA
