#include "ops/cpu/pack_avx2.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/activation.h"
#include "ops/scalar/elementary.h"

namespace weft::cpu::avx2::loops {
WEFT_POINTWISE_ACTIVATION(WEFT_DEFINE_LOOP)
}
