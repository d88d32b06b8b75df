#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/division.h"

namespace weft::cpu::baseline::loops {
WEFT_POINTWISE_DIVISION(WEFT_DEFINE_LOOP)
}
