#include "ops/support/reduction.h"

#include "ops/support/pointwise.h"

namespace weft {
namespace {

// Strides of an output along the dims of the input; those of reduced dims are not read.
Ints strides_along(const Tensor& output, const Tensor& self, uint64_t mask) {
  bool kept = output.dim() == self.dim();
  Ints strides;
  size_t next = 0;
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    bool reduced = mask >> d & 1;
    strides.push_back(reduced ? 0 : output.plain_strides()[kept ? d : next]);
    if (!reduced) ++next;
  }
  return strides;
}

}  // namespace

void run_reduction(const cpu::ReductionKernel& kernel, DType compute, const Tensor& self, uint64_t mask,
                   std::initializer_list<const Tensor*> outputs, double param) {
  SmallVector<Ints, 2> strides;
  SmallVector<cpu::Operand, 2> operands;
  strides.reserve(outputs.size());
  for (const Tensor* output : outputs) {
    strides.push_back(strides_along(*output, self, mask));
    operands.push_back({static_cast<char*>(output->raw_data()), output->dtype(), strides.back().data()});
  }
  IntSpan sizes = self.plain_sizes();
  cpu::run_reduction(kernel, compute,
                     {static_cast<char*>(self.raw_data()), self.dtype(), self.plain_strides().data()},
                     {operands.data(), operands.size()}, {sizes.data(), sizes.size()}, mask, param);
}

namespace {

void run_step(const ReductionStep& step, const Tensor& in, const Tensor& out) {
  if (!step.operand) return run_pointwise(*step.kernel, step.compute, out, {&in});
  const Tensor number = wrapped_number(*step.operand);
  run_pointwise(*step.kernel, step.compute, out, {&in, &number});
}
// Each element after the step, in memory that is written over where it has the type already.
Tensor stepped(const ReductionStep& step, const Tensor& in, bool is_own) {
  const DType type = step.kernel->result_dtype(step.compute);
  Tensor out = is_own && in.dtype() == type ? in : allocate(contiguous_spec(in.sizes(), type, in.device()));
  run_step(step, in, out);
  return out;
}
[[gnu::noinline]] void run_steps(const ReductionCall& call, const Tensor& self, const Tensor& out) {
  Tensor in = self;
  for (const ReductionStep& step : call.before) in = stepped(step, in, !in.is_same(self));
  if (call.after.empty())
    return run_reduction(*call.kernel, call.compute, in, call.dims, {&out}, call.correction);
  // What is reduced waits in the type that the next step computes in.
  const SymInts sizes(out.sizes()), strides(out.strides());
  Tensor result = allocate({call.after[0].compute, out.device(), sizes, strides});
  run_reduction(*call.kernel, call.compute, in, call.dims, {&result}, call.correction);
  for (const ReductionStep& step : call.after) {
    const bool is_last = &step == &call.after.back();
    const DType type = step.kernel->result_dtype(step.compute);
    Tensor next = is_last ? out : allocate({type, out.device(), sizes, strides});
    run_step(step, result, next);
    result = next;
  }
}

}  // namespace

void run_call(const ReductionCall& call, const Tensor& self, std::initializer_list<const Tensor*> outputs) {
  if (!call.before.empty() || !call.after.empty()) [[unlikely]]
    return run_steps(call, self, **outputs.begin());
  run_reduction(*call.kernel, call.compute, self, call.dims, outputs, call.correction);
}

}  // namespace weft
