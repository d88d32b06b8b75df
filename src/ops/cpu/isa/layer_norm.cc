#include "ops/cpu/isa/packs.h"
#include "ops/cpu/layer_norm_loops.h"

namespace weft::cpu::WEFT_ISA {
extern const LayerNormLoops<float> layer_norm_f32;
extern const LayerNormLoops<double> layer_norm_f64;
constinit const LayerNormLoops<float> layer_norm_f32 = LayerNormOf<float, Isa>::kLoops;
constinit const LayerNormLoops<double> layer_norm_f64 = LayerNormOf<double, Isa>::kLoops;
}  // namespace weft::cpu::WEFT_ISA
