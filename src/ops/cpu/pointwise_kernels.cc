#include "ops/cpu/pointwise_kernels.h"

#include "ops/scalar/activation.h"
#include "ops/scalar/arithmetic.h"
#include "ops/scalar/comparison.h"
#include "ops/scalar/division.h"
#include "ops/scalar/elementary.h"
#include "ops/scalar/scalar_expr.h"
#include "weft/base/error.h"

namespace weft::cpu {

// The loops live in the files of each instruction set.
#define WEFT_X(symbol, name, functor, inputs, params, dtypes) extern const LoopTable symbol;
WEFT_IN_EVERY_ISA(namespace loops{WEFT_POINTWISE_KERNELS(WEFT_X)})
#undef WEFT_X

namespace {

using scalar::Category;
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
template <typename T>
T leaf(int index, int inputs) {
  auto make = index < inputs ? &ScalarExpr::input : &ScalarExpr::param;
  int number = index < inputs ? index : index - inputs;
  if constexpr (scalar::IsComplex<T>) {
    return T(typename T::Real(make(number, Part::kReal, Category::kReal)),
             typename T::Real(make(number, Part::kImaginary, Category::kReal)));
  } else {
    return T(make(number, Part::kWhole, T::kCategory));
  }
}
template <typename F, typename T, int index, int inputs>
auto argument() {
  if constexpr ((mask_inputs<F>() >> index) & 1)
    return MaskExpr{ScalarExpr::input(index, Part::kWhole, Category::kBool)};
  else return leaf<T>(index, inputs);
}
template <typename F, typename T, int inputs, int... index>
auto call(std::integer_sequence<int, index...>) {
  return F{}(argument<F, T, index, inputs>()...);
}
template <typename F, typename T, int inputs, int params>
auto formula() {
  return call<F, T, inputs>(std::make_integer_sequence<int, inputs + params>());
}

template <typename R>
struct Collect {
  static constexpr int kOutputs = 1;
  static void into(ScalarFunction& f, const R& r) {
    if constexpr (requires { r.expr; }) {
      f.outputs.push_back(r.expr);
    } else {
      f.outputs.push_back(r.re.expr);
      f.outputs.push_back(r.im.expr);
    }
  }
};
template <typename T>
struct Collect<scalar::Checked<T>> {
  static constexpr int kOutputs = 1;
  static void into(ScalarFunction& f, const scalar::Checked<T>& r) {
    Collect<T>::into(f, r.value);
    f.error = r.error.expr;
  }
};
template <typename T>
struct Collect<scalar::Two<T>> {
  static constexpr int kOutputs = 2;
  static void into(ScalarFunction& f, const scalar::Two<T>& r) {
    Collect<T>::into(f, r.first);
    Collect<T>::into(f, r.second);
  }
};

template <typename F, typename T, int inputs, int params>
ScalarFunction build_for() {
  ScalarFunction result;
  auto value = formula<F, T, inputs, params>();
  Collect<decltype(value)>::into(result, value);
  return result;
}

// One number type of each category stands for all of them.
constexpr uint16_t kUnsignedSet = dtype_bit(DType::kUInt8);
template <typename F, int inputs, int params, uint16_t dtypes>
ScalarFunction build(DType compute) {
  if (compute == DType::kBool) {
    if constexpr (dtypes & kBooleans) return build_for<F, Expr<Category::kBool>, inputs, params>();
  } else if (compute == DType::kUInt8) {
    if constexpr (dtypes & kUnsignedSet) return build_for<F, Expr<Category::kUnsigned>, inputs, params>();
  } else if (is_integral(compute)) {
    if constexpr (dtypes & kIntegers) return build_for<F, Expr<Category::kSigned>, inputs, params>();
  } else if (is_complex(compute)) {
    if constexpr (dtypes & kComplexes)
      return build_for<F, ComplexPair<Expr<Category::kReal>>, inputs, params>();
  } else {
    if constexpr (dtypes & kFloats) return build_for<F, Expr<Category::kReal>, inputs, params>();
  }
  unsupported("the operator has no formula for {}", dtype_name(compute));
}

template <typename F, int inputs, int params, uint16_t dtypes>
constexpr ResultKind result_kind() {
  using Real = Expr<Category::kReal>;
  if constexpr (dtypes & kComplexes) {
    using R = decltype(formula<F, ComplexPair<Real>, inputs, params>());
    if constexpr (std::is_same_v<R, MaskExpr>) return ResultKind::kBoolean;
    else if constexpr (std::is_same_v<R, Real>) return ResultKind::kReal;
    else return ResultKind::kSame;
  } else if constexpr (dtypes & kFloats) {
    using R = decltype(formula<F, Real, inputs, params>());
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
