#include "ops/cpu/isa/packs.h"
#include "ops/cpu/product_loops.h"

namespace weft::cpu::WEFT_ISA {
extern const ProductLoops<float> product_f32;
extern const ProductLoops<double> product_f64;
constinit const ProductLoops<float> product_f32 = ProductOf<float, Isa>::kLoops;
constinit const ProductLoops<double> product_f64 = ProductOf<double, Isa>::kLoops;
}  // namespace weft::cpu::WEFT_ISA
