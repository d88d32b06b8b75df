#include "ops/cpu/isa/packs.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/division.h"

namespace weft::cpu::WEFT_ISA::loops {
WEFT_POINTWISE_DIVISION(WEFT_DEFINE_LOOP)
}
