#include "ops/cpu/pack_baseline.h"
#include "ops/cpu/softmax_loops.h"

namespace weft::cpu::baseline {
extern const SoftmaxLoops<float> softmax_f32;
extern const SoftmaxLoops<double> softmax_f64;
constinit const SoftmaxLoops<float> softmax_f32 = SoftmaxOf<float, Isa>::kLoops;
constinit const SoftmaxLoops<double> softmax_f64 = SoftmaxOf<double, Isa>::kLoops;
}  // namespace weft::cpu::baseline
