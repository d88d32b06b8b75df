#include "ops/cpu/isa/packs.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/activation.h"
#include "ops/scalar/elementary.h"

namespace weft::cpu::WEFT_ISA::loops {
WEFT_POINTWISE_ACTIVATION(WEFT_DEFINE_LOOP)
}
