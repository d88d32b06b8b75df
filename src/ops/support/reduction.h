#pragma once

#include "ops/lowering.h"

namespace weft {

// outputs[rest] = the reduction of `self` over the dims in `mask`, computed in `compute`. Outputs may or may
// not keep the reduced dims.
void run_reduction(const cpu::ReductionKernel& kernel, DType compute, const Tensor& self, uint64_t mask,
                   std::initializer_list<const Tensor*> outputs, double param = 0);
// What a call was lowered to.
void run_call(const ReductionCall& call, const Tensor& self, std::initializer_list<const Tensor*> outputs);

// A kernel for `structured` that runs what the typed lowering `fn` says about its first argument.
template <auto fn, typename Signature = decltype(fn)>
struct LoweredReduction;
template <auto fn, typename... A>
struct LoweredReduction<fn, ReductionCall (*)(A...)> {
  static void into(A... args, const Tensor& out) { run_call(fn(args...), first(args...), {&out}); }
  static void pair_into(A... args, const Tensor& out0, const Tensor& out1) {
    run_call(fn(args...), first(args...), {&out0, &out1});
  }

 private:
  template <typename... Rest>
  static const Tensor& first(const Tensor& self, const Rest&...) {
    return self;
  }
};

}  // namespace weft
