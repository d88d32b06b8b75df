#include "ops/cpu/pointwise_kernels.h"

#include "ops/scalar/activation.h"
#include "ops/scalar/arithmetic.h"
#include "ops/scalar/comparison.h"
#include "ops/scalar/division.h"
#include "ops/scalar/elementary.h"
#include "ops/scalar/formula.h"
#include "weft/base/error.h"

namespace weft::cpu {

// The loops live in the files of each instruction set.
#define WEFT_X(symbol, name, functor, inputs, params, dtypes) extern const LoopTable symbol;
WEFT_IN_EVERY_ISA(namespace loops{WEFT_POINTWISE_KERNELS(WEFT_X)})
#undef WEFT_X

namespace {

using scalar::ComplexPair;
using scalar::Expr;
using scalar::MaskExpr;
using scalar::Part;
using scalar::ScalarExpr;
using scalar::ScalarFunction;

template <typename F>
constexpr unsigned mask_inputs() {
  if constexpr (requires { F::kMaskInputs; }) return F::kMaskInputs;
  else return 0;
}

// Leaves of a functor's formula: the first `inputs` arguments are inputs, the rest parameters.
template <typename F, typename T, int index, int inputs>
auto argument(DType compute) {
  if constexpr ((mask_inputs<F>() >> index) & 1)
    return MaskExpr{ScalarExpr::input(index, Part::kWhole, DType::kBool)};
  else if constexpr (index < inputs) return scalar::leaf<T>(&ScalarExpr::input, index, compute);
  else return scalar::leaf<T>(&ScalarExpr::param, index - inputs, param_dtype(compute));
}
template <typename F, typename T, int inputs, int... index>
auto call(DType compute, std::integer_sequence<int, index...>) {
  return F{}(argument<F, T, index, inputs>(compute)...);
}
template <typename F, typename T, int inputs, int params>
auto formula(DType compute) {
  return call<F, T, inputs>(compute, std::make_integer_sequence<int, inputs + params>());
}

template <typename R>
void collect(ScalarFunction& f, const R& result, DType compute) {
  scalar::append_parts(f.outputs, result, compute);
}
template <typename T>
void collect(ScalarFunction& f, const scalar::Checked<T>& result, DType compute) {
  collect(f, result.value, compute);
  f.error = result.error.expr;
}
template <typename T>
void collect(ScalarFunction& f, const scalar::Two<T>& result, DType compute) {
  collect(f, result.first, compute);
  collect(f, result.second, compute);
}

template <typename F, int inputs, int params, uint16_t dtypes>
ScalarFunction build(DType compute) {
  ScalarFunction result;
#define WEFT_X(cpp, name)                                               \
  if constexpr (dtypes & dtype_bit(DType::name)) {                      \
    if (compute == DType::name) {                                       \
      using T = typename scalar::ComputeExpr<DType::name>::type;        \
      collect(result, formula<F, T, inputs, params>(compute), compute); \
      return result;                                                    \
    }                                                                   \
  }
  WEFT_FOR_EACH_DTYPE(WEFT_X)
#undef WEFT_X
  unsupported("the operator has no formula for {}", dtype_name(compute));
}

template <typename F, int inputs, int params, uint16_t dtypes>
constexpr KernelRole role_of() {
  if (std::is_same_v<F, scalar::Copy>) return KernelRole::kCopies;
  if (std::is_same_v<F, scalar::Fill>) return KernelRole::kFills;
  if constexpr (dtypes & dtype_bit(DType::kInt64)) {
    using T = Expr<DType::kInt64>;
    using R = decltype(formula<F, T, inputs, params>(DType::kInt64));
    if (std::is_same_v<R, scalar::Checked<T>>) return KernelRole::kDivides;
  }
  return KernelRole::kPlain;
}

template <typename F, int inputs, int params, uint16_t dtypes>
constexpr ResultKind result_kind() {
  using Real = Expr<DType::kFloat32>;
  if constexpr (dtypes & kComplexes) {
    using R = decltype(formula<F, ComplexPair<Real>, inputs, params>(DType::kComplex64));
    if constexpr (std::is_same_v<R, MaskExpr>) return ResultKind::kBoolean;
    else if constexpr (std::is_same_v<R, Real>) return ResultKind::kReal;
    else return ResultKind::kSame;
  } else if constexpr (dtypes & kFloats) {
    using R = decltype(formula<F, Real, inputs, params>(DType::kFloat32));
    return std::is_same_v<R, MaskExpr> ? ResultKind::kBoolean : ResultKind::kSame;
  } else {
    return ResultKind::kSame;
  }
}

}  // namespace

#define WEFT_X(symbol, name, functor, inputs, params, dtypes)                                       \
  constinit const PointwiseKernel symbol = {name,                                                   \
                                            inputs,                                                 \
                                            1,                                                      \
                                            params,                                                 \
                                            result_kind<scalar::functor, inputs, params, dtypes>(), \
                                            mask_inputs<scalar::functor>(),                         \
                                            role_of<scalar::functor, inputs, params, dtypes>(),     \
                                            WEFT_ISA_TABLES(loops::symbol),                         \
                                            build<scalar::functor, inputs, params, dtypes>};
WEFT_POINTWISE_KERNELS(WEFT_X)
#undef WEFT_X

std::span<const PointwiseKernel* const> pointwise_kernels() {
#define WEFT_X(symbol, name, functor, inputs, params, dtypes) &symbol,
  static constexpr const PointwiseKernel* kAll[] = {WEFT_POINTWISE_KERNELS(WEFT_X)};
#undef WEFT_X
  return kAll;
}

}  // namespace weft::cpu
