#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/comparison.h"

namespace weft::cpu::baseline::loops {
WEFT_POINTWISE_COMPARISON(WEFT_DEFINE_LOOP)
}
