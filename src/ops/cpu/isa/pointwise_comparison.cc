#include "ops/cpu/isa/packs.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/comparison.h"

namespace weft::cpu::WEFT_ISA::loops {
WEFT_POINTWISE_COMPARISON(WEFT_DEFINE_LOOP)
}
