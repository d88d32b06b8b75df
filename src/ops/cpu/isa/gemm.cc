#include "ops/cpu/gemm/dot_kernel.h"
#include "ops/cpu/gemm/kernels.h"
#include "ops/cpu/gemm/macro_kernel.h"
#include "ops/cpu/isa/packs.h"

namespace weft::cpu {

template <typename T, typename Isa>
constexpr GemmKernels<T> make_gemm_kernels() {
  using Micro = MicroKernel<T, Isa>;
  using Macro = MacroKernel<T, T, Isa>;
  return {Micro::kRows,           Micro::kColumns,    Packing<T, T, Isa>::kColumnsAtOnce,
          Macro::tiles,           Macro::pack_panels, Macro::tiles_of_panels,
          DotKernel<T, Isa>::dots};
}

}  // namespace weft::cpu

namespace weft::cpu::WEFT_ISA {
extern const GemmKernels<float> gemm_f32;
extern const GemmKernels<double> gemm_f64;
constinit const GemmKernels<float> gemm_f32 = make_gemm_kernels<float, Isa>();
constinit const GemmKernels<double> gemm_f64 = make_gemm_kernels<double, Isa>();

// The f32 micro-kernel is not compiled again for these: only what packs, and the loop around it.
extern const WideningKernels<Half> gemm_f16;
extern const WideningKernels<BFloat16> gemm_bf16;
constinit const WideningKernels<Half> gemm_f16 = {MacroKernel<float, Half, Isa>::tiles};
constinit const WideningKernels<BFloat16> gemm_bf16 = {MacroKernel<float, BFloat16, Isa>::tiles};
}  // namespace weft::cpu::WEFT_ISA
