#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/arithmetic.h"

namespace weft::cpu::baseline::loops {
WEFT_POINTWISE_ARITHMETIC(WEFT_DEFINE_LOOP)
}
