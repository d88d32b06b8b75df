#include "ops/cpu/isa/packs.h"
#include "ops/cpu/softmax_loops.h"

namespace weft::cpu::WEFT_ISA {
extern const SoftmaxLoops<float> softmax_f32;
extern const SoftmaxLoops<double> softmax_f64;
constinit const SoftmaxLoops<float> softmax_f32 = SoftmaxOf<float, Isa>::kLoops;
constinit const SoftmaxLoops<double> softmax_f64 = SoftmaxOf<double, Isa>::kLoops;
}  // namespace weft::cpu::WEFT_ISA
