#include "ops/support/reduction.h"

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

}  // namespace weft
