// Norms of vectors: (sum of |x|^p)^(1/p) over dims, with the limits for 0 and both infinities.
#include <cmath>

#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeScalar = std::optional<Scalar>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// --- what the result is ----------------------------------------------------------------------------------

void check_type(const Tensor& self, const MaybeType& dtype) {
  require(is_floating(self.dtype()) || self.is_complex(),
          "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
          dtype_name(self.dtype()));
  if (!dtype) return;
  require(is_floating(*dtype) || is_complex(*dtype),
          "linalg.vector_norm: dtype should be floating point or complex, but got {}", dtype_name(*dtype));
  require(self.is_complex() == is_complex(*dtype),
          "linalg.vector_norm: dtype should be {} for {} inputs, but got {}",
          self.is_complex() ? "complex" : "real", self.is_complex() ? "complex" : "real", dtype_name(*dtype));
  require(promote(self.dtype(), *dtype) == *dtype,
          "linalg.vector_norm: the dtype of the input ({}) should be convertible without narrowing to the "
          "specified dtype ({})",
          dtype_name(self.dtype()), dtype_name(*dtype));
}
// The extremes among the norms need an element.
void check_elements(const Tensor& self, double p, IntSpan dims) {
  if (!(p < 0 || p == kInfinity) || !guard_or(self.numel() == 0, false)) return;
  require(!dims.empty(),
          "linalg.vector_norm cannot compute the {} norm on an empty tensor because the operation does not "
          "have an identity",
          p);
  for (int64_t dim : dims)
    require(!guard_or(self.size(dim) == 0, false),
            "linalg.vector_norm cannot compute the {} norm on the dimension {} because this dimension is "
            "empty and the operation does not have an identity",
            p, dim);
}
double order_of(const Scalar& p) {
  require(!p.is_complex(), "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
  return p.to_double();
}
DType real_type_of(DType type) { return is_complex(type) ? real_type(type) : type; }
TensorSpec norm_spec(const Tensor& self, const Scalar& p, IntSpan dims, bool keepdim,
                     const MaybeType& dtype) {
  check_type(self, dtype);
  uint64_t mask = dim_mask(dims, self.dim());
  check_elements(self, order_of(p), dims);
  const DType type = real_type_of(dtype.value_or(self.dtype()));
  return contiguous_spec(reduced_sizes(self.sizes(), mask, keepdim), type, self.device());
}

// --- the kernel ------------------------------------------------------------------------------------------

// How many elements go into one result.
SymInt count_of(SymIntSpan sizes, uint64_t mask) {
  SymInt count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count = count * sizes[d];
  return count;
}

// Magnitudes, their powers and sums are numbers of the wide type; `type` is that of the result.
ReductionCall norm_call(const Tensor& self, double p, uint64_t mask, bool keepdim, DType type) {
  const DType wide = wide_type(type);
  ReductionCall call{.kernel = &cpu::kSum, .compute = wide, .dims = mask, .keepdim = keepdim};
  if (p == 0) {
    call.before.push_back({&cpu::kNe, self.dtype(), 0.0});
    return call;
  }
  // A vector of one element is its magnitude, even where a power of it is no number of the type.
  const bool is_single = guard(count_of(self.sizes(), mask) == 1);
  if (p == 2 && !self.is_complex() && !is_single) {
    call.kernel = &cpu::kSumSquares;
    call.after.push_back({&cpu::kSqrt, wide, {}});
    return call;
  }
  call.before.push_back({&cpu::kAbs, self.is_complex() ? complex_type(wide) : wide, {}});
  if (is_single || p == 1) return call;
  if (p == kInfinity) {
    call.kernel = &cpu::kAmax;
  } else if (p == -kInfinity) {
    call.kernel = &cpu::kAmin;
  } else if (p == 2) {
    call.kernel = &cpu::kSumSquares;
    call.after.push_back({&cpu::kSqrt, wide, {}});
  } else {
    call.before.push_back({&cpu::kPow, wide, p});
    call.after.push_back({&cpu::kPow, wide, 1 / p});
  }
  return call;
}

// --- the derivative --------------------------------------------------------------------------------------

// x |x|^(p-2) / norm^(p-1), written so that zeros among the elements, or nothing but zeros, give zero.
Tensor norm_gradient(const Tensor& grad_, const Tensor& self_, double p, const Tensor& norm_, IntSpan dims,
                     bool keepdim) {
  if (p == 0) return {};
  // A norm of a wider type has a derivative that the input's own type may not hold on the way.
  Tensor grad = grad_, norm = norm_,
         self = self_.to(self_.is_complex() ? complex_type(norm_.dtype()) : norm_.dtype());
  if (!keepdim) {
    grad = unsqueeze_reduced(grad, self.dim(), dims);
    norm = unsqueeze_reduced(norm, self.dim(), dims);
  }
  if (p == 1) return sgn(self) * grad;
  if (p == 2) {
    Tensor direction = self / norm;
    return grad * masked_fill_(direction, norm == 0, 0);
  }
  if (std::isinf(p)) {
    // Elements that reach the extreme share the gradient, and so do NaNs.
    Tensor size = abs(self), reached = logical_or(size == norm, isnan(size));
    Tensor count = self.dim() == 0 ? reached.to(kInt64) : sum(reached, dims, true);
    return sgn(self) * (grad / count * reached);
  }
  if (p < 1) {
    Tensor steep = masked_fill(pow(abs(self), p - 1), self == 0, 0);
    return sgn(self) * steep * grad * pow(norm, 1 - p);
  }
  Tensor share = masked_fill(grad / pow(norm, p - 1), norm == 0, 0);
  return (p < 2 ? sgn(self) * pow(abs(self), p - 1) : self * pow(abs(self), p - 2)) * share;
}

// --- linalg_vector_norm ----------------------------------------------------------------------------------

IntSpan dims_or_all(const OptionalIntSpan& dim) { return dim ? *dim : IntSpan(); }

TensorSpec vector_norm_meta(const Tensor& self, const Scalar& ord, OptionalIntSpan dim, bool keepdim,
                            MaybeType dtype) {
  return norm_spec(self, ord, dims_or_all(dim), keepdim, dtype);
}
ReductionCall vector_norm_lower(const Tensor& self, const Scalar& ord, OptionalIntSpan dim, bool keepdim,
                                MaybeType dtype) {
  return norm_call(self, order_of(ord), dim_mask(dims_or_all(dim), self.dim()), keepdim,
                   real_type_of(dtype.value_or(self.dtype())));
}
Grads vector_norm_vjp(const Vjp& v) {
  auto dims = boxing::Unboxed<OptionalIntSpan>(v.arg(2));
  return {norm_gradient(v.grad(), v.input(0), order_of(v.arg<Scalar>(1)), v.output(), dims_or_all(dims.get()),
                        v.arg<bool>(3))};
}

// --- norm ------------------------------------------------------------------------------------------------

void check_norm_type(const char* what, DType type) {
  require(is_floating(type) || is_complex(type),
          "norm(): {} dtype should be either floating point or complex. Got {} instead.", what,
          dtype_name(type));
}
Scalar order_or_two(const MaybeScalar& p) { return p ? *p : Scalar(2); }

TensorSpec dim_meta(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim) {
  check_norm_type("input", self.dtype());
  return norm_spec(self, order_or_two(p), dim, keepdim, {});
}
ReductionCall dim_lower(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim) {
  return norm_call(self, order_of(order_or_two(p)), dim_mask(dim, self.dim()), keepdim,
                   real_type_of(self.dtype()));
}
TensorSpec dim_dtype_meta(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim, DType dtype) {
  check_norm_type("the desired output", dtype);
  return norm_spec(self, order_or_two(p), dim, keepdim, dtype);
}
ReductionCall dim_dtype_lower(const Tensor& self, const MaybeScalar& p, IntSpan dim, bool keepdim,
                              DType dtype) {
  return norm_call(self, order_of(order_or_two(p)), dim_mask(dim, self.dim()), keepdim, real_type_of(dtype));
}
TensorSpec whole_meta(const Tensor& self, const Scalar& p) { return dim_meta(self, p, {}, false); }
ReductionCall whole_lower(const Tensor& self, const Scalar& p) { return dim_lower(self, p, {}, false); }
TensorSpec whole_dtype_meta(const Tensor& self, const MaybeScalar& p, DType dtype) {
  return dim_dtype_meta(self, p, {}, false, dtype);
}
ReductionCall whole_dtype_lower(const Tensor& self, const MaybeScalar& p, DType dtype) {
  return dim_dtype_lower(self, p, {}, false, dtype);
}

Grads dim_vjp(const Vjp& v) {
  auto dims = boxing::Unboxed<IntSpan>(v.arg(2));
  return {norm_gradient(v.grad(), v.input(0), order_of(order_or_two(v.arg<MaybeScalar>(1))), v.output(),
                        dims.get(), v.arg<bool>(3))};
}
Grads whole_vjp(const Vjp& v) {
  return {norm_gradient(v.grad(), v.input(0), order_of(order_or_two(v.arg<MaybeScalar>(1))), v.output(), {},
                        false)};
}

// Over all dims that the user sees.
struct Rows {
  Tensor self;
  Ints dims;
};
Rows rows_of(const Batch& call) {
  Rows rows{batch_first(call.tensor(0), call.batch_dim(0)), {}};
  if (rows.self.dim() == 1) rows.self = unsqueeze(rows.self, -1);
  for (int64_t d = 1; d < rows.self.dim(); ++d) rows.dims.push_back(d);
  return rows;
}
Batched whole_batch(const Batch& call) {
  Rows rows = rows_of(call);
  return {norm(rows.self, MaybeScalar(call.arg<Scalar>(1)), rows.dims, false), {0}};
}
Batched whole_dtype_batch(const Batch& call) {
  Rows rows = rows_of(call);
  return {norm(rows.self, call.arg<MaybeScalar>(1), rows.dims, false, call.arg<DType>(2)), {0}};
}

Samples dim_samples() {
  return {{"row", {f64({3, 4}), 2, ints({1})}},
          {"default", {f64({3, 4}), Value(), ints({0}), true}},
          {"cubes", {f64({2, 3, 4}), 3, ints({0, -1})}},
          {"complex", {c128({2, 3}), 1.5, ints({1})}}};
}

}  // namespace

WEFT_OPERATOR(linalg_vector_norm) = {
    .schema =
        "aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .out =
        "aten::linalg_vector_norm.out(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&vector_norm_meta>(),
    .kernel = structured_exact<&vector_norm_meta, &LoweredReduction<&vector_norm_lower>::into>(),
    .lower = lowering<&vector_norm_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = vector_norm_vjp},
    .batch = dims_batch<2>,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4})}},
                         {"rows", {transposed(f64({3, 4})), 1, ints({1}), true}},
                         {"largest", {f64({2, 3}), kInfinity, ints({0})}},
                         {"smallest", {f64({2, 3}), -kInfinity, ints({-1})}},
                         {"count", {f64({2, 3}), 0, ints({0})}},
                         {"half", {f64({4}), 0.5}},
                         {"between", {f64({4}), 1.5}},
                         {"cubes", {f64({4}), 3}},
                         {"inverse", {f64({4}), -1}},
                         {"complex", {c128({2, 3}), 2, ints({1})}},
                         {"scalar", {f64({}), 3}},
                         {"typed", {f32({3}), 2, Value(), false, kFloat64}}};
        },
};

WEFT_OPERATOR(norm_scalar) = {
    .schema = "aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
    .out = "aten::norm.Scalar_out(Tensor self, Scalar p=2, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&whole_meta>(),
    .kernel = structured_exact<&whole_meta, &LoweredReduction<&whole_lower>::into>(),
    .lower = lowering<&whole_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = whole_vjp},
    .batch = whole_batch,
    .decompose = function<&norm_scalar_parts>(),
    .samples =
        [] { return Samples{{"plain", {f64({3, 4})}}, {"one", {f64({2, 3}), 1}}, {"scalar", {f64({})}}}; },
};

WEFT_OPERATOR(norm_dtype) = {
    .schema = "aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
    .out =
        "aten::norm.ScalarOpt_dtype_out(Tensor self, Scalar? p, *, ScalarType dtype, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&whole_dtype_meta>(),
    .kernel = structured_exact<&whole_dtype_meta, &LoweredReduction<&whole_dtype_lower>::into>(),
    .lower = lowering<&whole_dtype_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = whole_vjp},
    .batch = whole_dtype_batch,
    .decompose = function<&norm_dtype_parts>(),
    .samples =
        [] { return Samples{{"plain", {f32({3, 4}), Value(), kFloat64}}, {"one", {f64({3}), 1, kFloat64}}}; },
};

WEFT_OPERATOR(norm_dim) = {
    .schema = "aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
    .out =
        "aten::norm.out(Tensor self, Scalar? p, int[1] dim, bool keepdim=False, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&dim_meta>(),
    .kernel = structured_exact<&dim_meta, &LoweredReduction<&dim_lower>::into>(),
    .lower = lowering<&dim_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = dim_vjp},
    .batch = dims_batch<2>,
    .decompose = function<&norm_dim_parts>(),
    .samples = dim_samples,
};

WEFT_OPERATOR(norm_dim_dtype) = {
    .schema =
        "aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType "
        "dtype) -> Tensor",
    .out =
        "aten::norm.dtype_out(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&dim_dtype_meta>(),
    .kernel = structured_exact<&dim_dtype_meta, &LoweredReduction<&dim_dtype_lower>::into>(),
    .lower = lowering<&dim_dtype_lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = dim_vjp},
    .batch = dims_batch<2>,
    .decompose = function<&norm_dim_dtype_parts>(),
    .samples =
        [] {
          return Samples{{"row", {f32({3, 4}), 2, ints({1}), false, kFloat64}},
                         {"keep", {f64({3, 4}), 3, ints({0}), true, kFloat64}}};
        },
};

}  // namespace weft::ops
