#include "ops/cpu/pack_avx2.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/division.h"

namespace weft::cpu::avx2::loops {
WEFT_POINTWISE_DIVISION(WEFT_DEFINE_LOOP)
}
