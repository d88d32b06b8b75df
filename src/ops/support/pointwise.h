#pragma once

#include "ops/cpu/pointwise_kernels.h"
#include "ops/lowering.h"
#include "ops/structured.h"
#include "ops/support/shapes.h"
#include "ops/support/type_promotion.h"

// Pointwise operators from their scalar kernels: type rule, meta function and all forms in a line each.
// `exact_kernels` are for those whose out= tensor must have the result's own type.

namespace weft {

// Computes `out = kernel(inputs)`, broadcasting and converting.
void run_pointwise(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                   std::span<const Tensor* const> inputs, std::span<const cpu::ParamValue> params = {});
inline void run_pointwise(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                          std::initializer_list<const Tensor*> inputs,
                          std::span<const cpu::ParamValue> params = {}) {
  run_pointwise(kernel, compute, out, std::span(inputs.begin(), inputs.size()), params);
}
// Computes what a call was lowered to. Where integers are written over what is divided, the divisors are
// looked at before: an error leaves everything as it was.
void run_special(const cpu::PointwiseKernel& kernel, DType compute, const Tensor& out,
                 std::span<const Tensor* const> inputs, std::span<const cpu::ParamValue> params);
[[gnu::always_inline]] inline void run_lowered(const PointwiseCall& call, const Tensor& out,
                                               std::span<const Tensor* const> inputs) {
  // A call without parameters need not be in memory.
  std::span<const cpu::ParamValue> params;
  if (call.param_count > 0) params = {call.params, call.param_count};
  if (call.kernel->role == cpu::KernelRole::kPlain) [[likely]]
    run_pointwise(*call.kernel, call.compute, out, inputs, params);
  else run_special(*call.kernel, call.compute, out, inputs, params);
}
// A number as a kernel of this type takes it; an error where the type cannot hold it.
cpu::ParamValue param_of(const Scalar& number, DType compute);

// A 0-dim tensor that stands for a number: weak in type promotion.
Tensor wrapped_number(const Scalar& number);

namespace detail {
inline const Tensor* operand(const Tensor& tensor) { return &tensor; }
template <typename T>
const Tensor* operand(const T&) {
  return nullptr;
}
// The operand number k of a call. Which argument that is, the compiler mostly knows.
template <typename... A>
[[gnu::always_inline]] inline const Tensor* operand_of(const PointwiseCall& call, int k, const A&... args) {
  const uint8_t wanted = call.inputs[k];
  const Tensor* found = nullptr;
  [[maybe_unused]] uint8_t i = 0;
  ((found = i++ == wanted ? operand(args) : found), ...);
  return found;
}
template <typename... A>
[[gnu::always_inline]] inline void run_tensors(const PointwiseCall& call, const Tensor& out,
                                               const A&... args) {
  const Tensor* const inputs[] = {operand_of(call, 0, args...), operand_of(call, 1, args...),
                                  operand_of(call, 2, args...)};
  run_lowered(call, out, {inputs, call.inputs.size()});
}

inline const Tensor& tensor_of(const Tensor& tensor, bool) { return tensor; }
inline Tensor tensor_of(const Scalar& number, bool is_read) {
  return is_read ? wrapped_number(number) : Tensor();
}
template <typename T>
const T& tensor_of(const T& other, bool) {
  return other;
}
template <typename... A>
[[gnu::always_inline]] inline bool reads_number(const PointwiseCall& call) {
  [[maybe_unused]] uint8_t i = 0;
  bool reads = false;
  ((reads |= call.inputs.has(i++) && std::same_as<A, Scalar>), ...);
  return reads;
}
}  // namespace detail

// The kernel of a call with these arguments. Inline: most of a lowering is known when the program is
// compiled.
template <typename... A>
[[gnu::always_inline]] inline void run_call(const PointwiseCall& call, const Tensor& out, const A&... args) {
  if (!detail::reads_number<A...>(call)) return detail::run_tensors(call, out, args...);
  [&]<size_t... i>(std::index_sequence<i...>) {
    detail::run_tensors(call, out, detail::tensor_of(args, call.inputs.has(i))...);
  }(std::index_sequence_for<A...>{});
}

// A kernel for `structured` that runs what the typed lowering `fn` says.
template <auto fn, typename Signature = decltype(fn)>
struct LoweredKernel;
template <auto fn, typename... A>
struct LoweredKernel<fn, PointwiseCall (*)(A...)> {
  static void into(A... args, const Tensor& out) { run_call(fn(args...), out, args...); }
};
// All forms of a pointwise operator from its meta function and its lowering.
template <auto meta, auto lower, OutType out_type = OutType::kConverted,
          Elements elements = Elements::kDistinct>
constexpr KernelSet lowered() {
  return structured<+meta, &LoweredKernel<+lower>::into, true, out_type, elements>();
}
template <auto meta, auto lower, Elements elements = Elements::kDistinct>
constexpr KernelSet lowered_exact() {
  return lowered<meta, lower, OutType::kExact, elements>();
}

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
  static TensorSpec spec(const Tensor& self, DType type) {
    return pointwise_spec({&self}, kernel.result_dtype(type));
  }
  static TensorSpec meta(const Tensor& self) { return spec(self, compute(self)); }
  static PointwiseCall lower(const Tensor& self) { return {kernel, compute(self), {0}}; }
  static Tensor functional(const Tensor& self) {
    const PointwiseCall call = lower(self);
    Tensor out = allocate(spec(self, call.compute));
    run_call(call, out, self);
    return out;
  }
  static constexpr KernelSet kernels() { return with_functional<&functional>(lowered<&meta, &lower>()); }
  static constexpr KernelSet exact_kernels() {
    return with_functional<&functional>(lowered_exact<&meta, &lower>());
  }
  static constexpr Function meta_function() { return function<&meta>(); }
  static constexpr LowerRule lower_rule() { return lowering<&lower>(); }
};

// operator(self, other)
template <const cpu::PointwiseKernel& kernel, TypeRule rule = TypeRule::kPromote>
struct Binary {
  static DType compute(const Tensor& self, const Tensor& other) {
    DType type = compute_type(rule, common_type(self, other));
    require_supported(kernel, type);
    return type;
  }
  static TensorSpec spec(const Tensor& self, const Tensor& other, DType type) {
    return pointwise_spec({&self, &other}, kernel.result_dtype(type));
  }
  static TensorSpec meta(const Tensor& self, const Tensor& other) {
    return spec(self, other, compute(self, other));
  }
  static PointwiseCall lower(const Tensor& self, const Tensor& other) {
    return {kernel, compute(self, other), {0, 1}};
  }
  static Tensor functional(const Tensor& self, const Tensor& other) {
    const PointwiseCall call = lower(self, other);
    Tensor out = allocate(spec(self, other, call.compute));
    run_call(call, out, self, other);
    return out;
  }
  static constexpr KernelSet kernels() { return with_functional<&functional>(lowered<&meta, &lower>()); }
  static constexpr KernelSet exact_kernels() {
    return with_functional<&functional>(lowered_exact<&meta, &lower>());
  }
  static constexpr Function meta_function() { return function<&meta>(); }
  static constexpr LowerRule lower_rule() { return lowering<&lower>(); }
};

// operator(self, number)
template <const cpu::PointwiseKernel& kernel, TypeRule rule = TypeRule::kPromote>
struct BinaryScalar {
  static DType compute(const Tensor& self, const Scalar& other) {
    DType type = compute_type(rule, common_type(self, other));
    require_supported(kernel, type);
    return type;
  }
  static TensorSpec meta(const Tensor& self, const Scalar& other) {
    return {kernel.result_dtype(compute(self, other)), self.device(), SymInts(self.sizes()),
            strides_beside_number(self)};
  }
  static PointwiseCall lower(const Tensor& self, const Scalar& other) {
    return {kernel, compute(self, other), {0, 1}};
  }
  static constexpr KernelSet kernels() { return lowered<&meta, &lower>(); }
  static constexpr KernelSet exact_kernels() { return lowered_exact<&meta, &lower>(); }
  static constexpr Function meta_function() { return function<&meta>(); }
  static constexpr LowerRule lower_rule() { return lowering<&lower>(); }
};

}  // namespace weft
