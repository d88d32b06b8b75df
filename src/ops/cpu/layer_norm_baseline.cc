#include "ops/cpu/layer_norm_loops.h"
#include "ops/cpu/pack_baseline.h"

namespace weft::cpu::baseline {
extern const LayerNormLoops<float> layer_norm_f32;
extern const LayerNormLoops<double> layer_norm_f64;
constinit const LayerNormLoops<float> layer_norm_f32 = LayerNormOf<float, Isa>::kLoops;
constinit const LayerNormLoops<double> layer_norm_f64 = LayerNormOf<double, Isa>::kLoops;
}  // namespace weft::cpu::baseline
