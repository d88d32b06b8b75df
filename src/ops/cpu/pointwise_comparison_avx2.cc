#include "ops/cpu/pack_avx2.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/comparison.h"

namespace weft::cpu::avx2::loops {
WEFT_POINTWISE_COMPARISON(WEFT_DEFINE_LOOP)
}
