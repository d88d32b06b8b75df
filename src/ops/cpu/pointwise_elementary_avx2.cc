#include "ops/cpu/pack_avx2.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/elementary.h"

namespace weft::cpu::avx2::loops {
WEFT_POINTWISE_ELEMENTARY(WEFT_DEFINE_LOOP)
}
