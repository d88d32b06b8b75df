#include "ops/support/pointwise.h"

#include "ops/support/dense.h"
#include "ops/support/fill.h"
#include "ops/support/number_range.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// Strides of the operands along the dims of the result, on the stack.
class Operands {
 public:
  Operands(SymIntSpan sizes) : rank_(sizes.size()) {  // NOLINT(google-explicit-constructor)
    require(rank_ <= 64, "only tensors with up to 64 dims are supported");
    sizes_.reserve(rank_);
    for (const SymInt& size : sizes) sizes_.push_back(size.plain());
    strides_.reserve(4 * rank_ + 1);
  }
  void add(const Tensor& tensor) {
    auto rank = static_cast<size_t>(tensor.dim());
    size_t missing = rank_ - rank;
    IntSpan sizes = tensor.plain_sizes(), strides = tensor.plain_strides();
    for (size_t d = 0; d < rank_; ++d) {
      bool broadcast = d < missing || (sizes[d - missing] == 1 && sizes_[d] != 1);
      strides_.push_back(broadcast ? 0 : strides[d - missing]);
    }
    operands_.push_back({static_cast<char*>(tensor.raw_data()), tensor.dtype(), nullptr});
  }
  std::span<const cpu::Operand> get() {
    for (size_t i = 0; i < operands_.size(); ++i) operands_[i].strides = strides_.data() + i * rank_;
    return {operands_.data(), operands_.size()};
  }
  std::span<const int64_t> sizes() const { return {sizes_.data(), sizes_.size()}; }

 private:
  size_t rank_;
  SmallVector<int64_t, 6> sizes_;
  SmallVector<int64_t, 24> strides_;
  SmallVector<cpu::Operand, 5> operands_;
};

}  // namespace

namespace {

// The operands as plain arrays of one length. An input that broadcasts to the result and has as many elements
// has the same ones in the same order, so that sizes need not be looked at. A single element of another type,
// or beside few others, is a number. False where some operand is not contiguous.
bool run_as_arrays(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                   std::span<const Tensor* const> inputs, std::span<const cpu::ParamValue> params) {
  cpu::Operand operands[cpu::kMaxOperands];
  const int64_t n = out.plain_numel();
  size_t count = 0;
  uint32_t numbers = 0;
  auto add = [&](const TensorImpl& tensor) {
    operands[count++] = {static_cast<char*>(tensor.data()), tensor.dtype(), nullptr};
    return tensor.plain_numel() == n && tensor.is_contiguous();
  };
  if (!add(*out.impl())) return false;
  for (const Tensor* input : inputs) {
    if (input->is_symbolic()) return false;
    const bool fits = add(*input->impl());
    const bool is_number = input->impl()->plain_numel() == 1 && n <= cpu::kFewElements && n > 0;
    if (is_number && (!fits || operands[count - 1].dtype != compute)) numbers |= 1u << (count - 1);
    else if (!fits) return false;
  }
  return cpu::run_contiguous(kernel, compute, {operands, count}, n, params, numbers);
}

}  // namespace

void run_pointwise(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                   std::span<const Tensor* const> inputs, std::span<const cpu::ParamValue> params) {
  if (run_as_arrays(kernel, compute, out, inputs, params)) return;
  Operands operands(out.sizes());
  operands.add(out);
  for (const Tensor* input : inputs) operands.add(*input);
  cpu::run_strided(kernel, compute, operands.get(), operands.sizes(), params);
}

namespace {

// As the kernel sees them: a number may become 0 in the type that computes.
void require_divisors(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& other) {
  Tensor divisors = dense_as(other, compute);
  visit_dtype(compute, [&]<typename T>() {
    const T* values = static_cast<const T*>(divisors.raw_data());
    bool has_zero = false;
    for (int64_t i = 0, n = divisors.plain_numel(); i < n; ++i) has_zero |= values[i] == T(0);
    require(!has_zero, "ZeroDivisionError: {}: an integer was divided by zero", kernel.name);
  });
}

}  // namespace

void run_special(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                 std::span<const Tensor* const> inputs, std::span<const cpu::ParamValue> params) {
  if (kernel.role == cpu::KernelRole::kCopies) return copy_values(out, *inputs[0]);
  if (kernel.role == cpu::KernelRole::kFills) return fill_values(out, params[0].integer);
  if (is_integral(compute) && out.plain_numel() > 0) {
    bool overwrites = false;
    for (const Tensor* input : inputs) overwrites |= out.storage() == input->storage();
    if (overwrites) require_divisors(kernel, compute, *inputs.back());
  }
  run_pointwise(kernel, compute, out, inputs, params);
}

cpu::ParamValue param_of(const Scalar& number, DType compute) {
  require_fits_computation(number, compute);
  if (compute == kBool) return static_cast<int64_t>(number.to_bool());
  if (is_complex(compute)) {
    Complex<double> z = number.to_complex();
    return {z.re, z.im};
  }
  if (is_floating(compute)) return number.to_double();
  if (number.is_floating()) return number.to_double();
  return number.to_int();
}

Tensor wrapped_number(const Scalar& number) {
  Tensor tensor = allocate_contiguous({}, number.dtype());
  visit_dtype(number.dtype(), [&]<typename T>() { *static_cast<T*>(tensor.raw_data()) = number.to<T>(); });
  tensor.impl()->set_flags(tensor_flag::kWrappedNumber);
  return tensor;
}

void require_supported(const cpu::PointwiseKernel& kernel, DType compute) {
  if (!kernel.supports(compute)) [[unlikely]]
    fail("\"{}_cpu\" not implemented for '{}'", kernel.name, dtype_name(compute));
}

}  // namespace weft
