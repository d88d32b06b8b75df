// The reductions by name, each with its loops and its formulas.
#include "ops/cpu/reduction.h"
#include "ops/cpu/reduction_list.h"
#include "ops/scalar/formula.h"
#include "ops/scalar/reductions.h"
#include "weft/base/error.h"

namespace weft::cpu {

// The loops live in the files of each instruction set.
#define WEFT_X(symbol, name, functor, loops, outputs, ordered, dtypes) extern const ReductionTable symbol;
WEFT_IN_EVERY_ISA(namespace reductions{WEFT_REDUCTIONS(WEFT_X)})
#undef WEFT_X

namespace {

using scalar::ReductionFormula;
using scalar::ScalarExpr;
using Wide = scalar::Expr<DType::kFloat64>;
using Index = scalar::Expr<DType::kInt64>;

template <typename T>
T input(int index, DType stored) {
  return scalar::leaf<T>(&ScalarExpr::input, index, stored);
}
Wide count_leaf() { return scalar::leaf<Wide>(&ScalarExpr::param, 0, DType::kFloat64); }
Wide correction_leaf() { return scalar::leaf<Wide>(&ScalarExpr::param, 1, DType::kFloat64); }

template <typename T>
constexpr DType accumulator_type() {
  if constexpr (scalar::IsComplex<T>)
    return T::Real::kDType == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
  else return T::kDType;
}
template <typename T>
void append(std::vector<ScalarExpr>& parts, const T& value) {
  scalar::append_parts(parts, value, accumulator_type<T>());
}

// --- one accumulator -------------------------------------------------------------------------------------

// What values of T accumulate in: single precision in double where the functor widens.
template <typename T, bool widens>
struct AccumulatorOf {
  using type = T;
  static T from(const T& value) { return value; }
};
template <>
struct AccumulatorOf<scalar::Expr<DType::kFloat32>, true> {
  using type = Wide;
  static Wide from(const scalar::Expr<DType::kFloat32>& value) {
    return Wide(value.expr.converted(DType::kFloat64));
  }
};
template <typename T>
T count_as() {
  if constexpr (scalar::IsComplex<T>)
    return T(typename T::Real(count_leaf().expr.converted(T::Real::kDType)));
  else return T(count_leaf().expr.converted(T::kDType));
}

template <typename R, typename T>
struct Formulas {
  static void build(ReductionFormula& f, DType compute) {
    using Widening = AccumulatorOf<T, R::kWidens>;
    using A = typename Widening::type;
    constexpr DType kType = accumulator_type<A>();
    f.accumulators = {kType};
    const A a = input<A>(0, kType);
    append(f.identity, R::template identity<A>());
    append(f.step, R::combine(a, Widening::from(R::step(input<T>(1, compute)))));
    append(f.combine, R::combine(a, input<A>(1, kType)));
    if constexpr (R::kAverages) append(f.finish, R::finish(a, count_as<A>()));
    else append(f.finish, a);
  }
};

// --- positions -------------------------------------------------------------------------------------------

template <bool largest, bool with_value, typename T>
struct Formulas<scalar::PositionReduction<largest, with_value>, T> {
  using R = scalar::PositionReduction<largest, with_value>;
  using Found = scalar::Found<T, Index>;
  static Found found(int first) {
    return {input<T>(first, T::kDType), input<Index>(first + 1, DType::kInt64)};
  }
  static void append_all(std::vector<ScalarExpr>& parts, const Found& value) {
    append(parts, value.value);
    append(parts, value.position);
  }
  static void build(ReductionFormula& f, DType compute) {
    f.accumulators = {T::kDType, DType::kInt64};
    append_all(f.identity, R::template identity<T, Index>());
    append_all(f.step, R::step(found(0), input<T>(2, compute), input<Index>(3, DType::kInt64)));
    append_all(f.combine, R::combine(found(0), found(2)));
    if (with_value) append(f.finish, found(0).value);
    append(f.finish, found(0).position);
  }
};

// --- variance --------------------------------------------------------------------------------------------

template <bool root, bool with_mean, typename T>
struct Formulas<scalar::VarianceFunctor<root, with_mean>, T> {
  using R = scalar::VarianceFunctor<root, with_mean>;
  using Moments = scalar::Moments<Wide>;
  static Moments moments(int first) {
    auto part = [&](int k) { return input<Wide>(first + k, DType::kFloat64); };
    return {part(0), part(1), part(2)};
  }
  static void append_all(std::vector<ScalarExpr>& parts, const Moments& value) {
    for (const Wide& part : {value.count, value.mean, value.deviation}) append(parts, part);
  }
  static void build(ReductionFormula& f, DType compute) {
    f.accumulators = {DType::kFloat64, DType::kFloat64, DType::kFloat64};
    append_all(f.identity, {Wide(0), Wide(0), Wide(0)});
    const Wide x(input<T>(3, compute).expr.converted(DType::kFloat64));
    append_all(f.step, R::step(moments(0), x));
    append_all(f.combine, R::combine(moments(0), moments(3)));
    const scalar::Two<Wide> results = R::finish(moments(0), count_leaf(), correction_leaf());
    append(f.finish, results.first);
    if (with_mean) append(f.finish, results.second);
  }
};

template <typename R, uint16_t dtypes>
ReductionFormula build(DType compute) {
  ReductionFormula result;
#define WEFT_X(cpp, name)                                                                   \
  if constexpr (dtypes & dtype_bit(DType::name)) {                                          \
    if (compute == DType::name) {                                                           \
      Formulas<R, typename scalar::ComputeExpr<DType::name>::type>::build(result, compute); \
      return result;                                                                        \
    }                                                                                       \
  }
  WEFT_FOR_EACH_DTYPE(WEFT_X)
#undef WEFT_X
  unsupported("the reduction has no formula for {}", dtype_name(compute));
}

}  // namespace

#define WEFT_X(symbol, name, functor, loops, outputs, ordered, dtypes)                                   \
  constinit const ReductionKernel symbol = {name, outputs, ordered, WEFT_ISA_TABLES(reductions::symbol), \
                                            build<scalar::functor, dtypes>};
WEFT_REDUCTIONS(WEFT_X)
#undef WEFT_X

}  // namespace weft::cpu
