#include "ops/cpu/isa/packs.h"
#include "ops/cpu/pooling_loops.h"

namespace weft::cpu::WEFT_ISA {
extern const PoolLoops<float> pool_f32;
extern const PoolLoops<double> pool_f64;
extern const PoolLoops<int32_t> pool_i32;
extern const PoolLoops<int64_t> pool_i64;
constinit const PoolLoops<float> pool_f32 = PoolOf<float, Isa>::kLoops;
constinit const PoolLoops<double> pool_f64 = PoolOf<double, Isa>::kLoops;
constinit const PoolLoops<int32_t> pool_i32 = PoolOf<int32_t, Isa>::kLoops;
constinit const PoolLoops<int64_t> pool_i64 = PoolOf<int64_t, Isa>::kLoops;
}  // namespace weft::cpu::WEFT_ISA
