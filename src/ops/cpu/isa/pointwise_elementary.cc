#include "ops/cpu/isa/packs.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/elementary.h"

namespace weft::cpu::WEFT_ISA::loops {
WEFT_POINTWISE_ELEMENTARY(WEFT_DEFINE_LOOP)
}
