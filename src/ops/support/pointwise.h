#pragma once

#include "ops/cpu/pointwise_kernels.h"
#include "ops/structured.h"
#include "ops/support/shapes.h"
#include "ops/support/type_promotion.h"

// Pointwise operators from their scalar kernels: type rule, meta function and all forms in a line each.
// `exact_kernels` are for those whose out= tensor must have the result's own type.

namespace weft {

// Computes `out = kernel(inputs)`, broadcasting and converting.
void run_pointwise(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                   std::initializer_list<const Tensor*> inputs, std::span<const cpu::ParamValue> params = {});
// `out = kernel(self, other)` for a kernel that divides. Where integers are written over what is divided, the
// divisors are looked at before: an error leaves everything as it was.
void run_division(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out, const Tensor& self,
                  const Tensor& other);
inline bool divides_integers(const cpu::PointwiseKernel& kernel) {
  return &kernel == &cpu::kDivFloor || &kernel == &cpu::kDivTrunc || &kernel == &cpu::kRemainder ||
         &kernel == &cpu::kFmod;
}
// The same with two results.
void run_pointwise2(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out0, const Tensor& out1,
                    std::initializer_list<const Tensor*> inputs,
                    std::span<const cpu::ParamValue> params = {});
// A number as a kernel of this type takes it; an error where the type cannot hold it.
cpu::ParamValue param_of(const Scalar& number, DType compute);
// The same without the question: what is computed may be infinite in a narrower type.
cpu::ParamValue converted_param(const Scalar& number, DType compute);

// A 0-dim tensor that stands for a number: weak in type promotion.
Tensor wrapped_number(const Scalar& number);

// An error in PyTorch's words where the kernel does not exist for the type.
void require_supported(const cpu::PointwiseKernel& kernel, DType compute);

// How the compute type follows from the common type of the operands.
enum class TypeRule : uint8_t {
  kPromote,  // as it is
  kFloat,    // integers compute in the default real type
  kBool,     // computes in bool (logical operators)
};
inline DType compute_type(TypeRule rule, DType common) {
  if (rule == TypeRule::kBool) return DType::kBool;
  return rule == TypeRule::kFloat ? float_type(common) : common;
}

// operator(self)
template <const cpu::PointwiseKernel& kernel, TypeRule rule = TypeRule::kPromote>
struct Unary {
  static DType compute(const Tensor& self) {
    DType type = compute_type(rule, self.dtype());
    require_supported(kernel, type);
    return type;
  }
  static TensorSpec meta(const Tensor& self) {
    return pointwise_spec({&self}, kernel.result_dtype(compute(self)));
  }
  static void into(const Tensor& self, const Tensor& out) {
    run_pointwise(kernel, compute(self), out, {&self});
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
  static constexpr KernelSet exact_kernels() { return structured_exact<&meta, &into, true>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
};

// operator(self, other)
template <const cpu::PointwiseKernel& kernel, TypeRule rule = TypeRule::kPromote>
struct Binary {
  static DType compute(const Tensor& self, const Tensor& other) {
    DType type = compute_type(rule, common_type(self, other));
    require_supported(kernel, type);
    return type;
  }
  static TensorSpec meta(const Tensor& self, const Tensor& other) {
    return pointwise_spec({&self, &other}, kernel.result_dtype(compute(self, other)));
  }
  static void into(const Tensor& self, const Tensor& other, const Tensor& out) {
    if (divides_integers(kernel)) return run_division(kernel, compute(self, other), out, self, other);
    run_pointwise(kernel, compute(self, other), out, {&self, &other});
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
  static constexpr KernelSet exact_kernels() { return structured_exact<&meta, &into, true>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
};

// operator(self, number)
template <const cpu::PointwiseKernel& kernel, TypeRule rule = TypeRule::kPromote>
struct BinaryScalar {
  using Tensors = Binary<kernel, rule>;
  static TensorSpec meta(const Tensor& self, const Scalar& other) {
    DType type = compute_type(rule, common_type(self, other));
    require_supported(kernel, type);
    return {kernel.result_dtype(type), self.device(), SymInts(self.sizes()), strides_beside_number(self)};
  }
  static void into(const Tensor& self, const Scalar& other, const Tensor& out) {
    Tensors::into(self, wrapped_number(other), out);
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
  static constexpr KernelSet exact_kernels() { return structured_exact<&meta, &into, true>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
};

}  // namespace weft
