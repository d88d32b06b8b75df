#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/pointwise_loops.h"
#include "ops/scalar/elementary.h"

namespace weft::cpu::baseline::loops {
WEFT_POINTWISE_ELEMENTARY(WEFT_DEFINE_LOOP)
}
