// Variance and standard deviation.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using MaybeScalar = std::optional<Scalar>;
using Pair = std::tuple<Tensor, Tensor>;

double correction_of(const MaybeScalar& correction) { return correction ? correction->to_double() : 1; }

TensorSpec spread_spec(const char* op, const Tensor& self, const OptionalIntSpan& dim, bool keepdim) {
  require(is_floating(self.dtype()) || self.is_complex(),
          "{}: std and var only support floating point and complex dtypes, but got {}", op, describe(self));
  DType type = self.is_complex() ? real_type(self.dtype()) : self.dtype();
  return contiguous_spec(reduced_sizes(self.sizes(), dim_mask(self, dim), keepdim), type, self.device());
}
// The real or imaginary parts of complex memory.
Tensor part_of(const Tensor& self, int64_t part) {
  SymInts strides;
  for (const SymInt& stride : self.strides()) strides.push_back(stride * 2);
  Tensor parts = alias_with(self, self.sizes(), self.strides(), 0);
  parts.impl()->set_dtype(real_type(self.dtype()));
  parts.impl()->set_geometry(self.sizes(), strides, self.storage_offset() * 2 + part);
  return parts;
}
// The variance of complex numbers is the sum of those of their parts.
void run_complex_variance(const Tensor& self, uint64_t mask, double correction, bool root,
                          const Tensor& out) {
  Tensor other = allocate({out.dtype(), out.device(), SymInts(out.sizes()), SymInts(out.strides())});
  Tensor real = part_of(self, 0), imaginary = part_of(self, 1);
  run_reduction(cpu::kVar, out.dtype(), real, mask, {&out}, correction);
  run_reduction(cpu::kVar, out.dtype(), imaginary, mask, {&other}, correction);
  run_pointwise(cpu::kAdd, out.dtype(), out, {&out, &other});
  if (root) run_pointwise(cpu::kSqrt, out.dtype(), out, {&out});
}

template <bool root>
struct Spread {
  static constexpr const char* kName = root ? "std" : "var";
  static TensorSpec meta(const Tensor& self, OptionalIntSpan dim, const MaybeScalar&, bool keepdim) {
    return spread_spec(kName, self, dim, keepdim);
  }
  template <const cpu::ReductionKernel& kernel>
  static Lowering lower(const Tensor& self, OptionalIntSpan dim, const MaybeScalar& correction,
                        bool keepdim) {
    if (self.is_complex())
      return NotLowered{"the variance of complex numbers is two reductions, of their parts"};
    return ReductionCall{.kernel = &kernel,
                         .compute = self.dtype(),
                         .dims = dim_mask(self, dim),
                         .keepdim = keepdim,
                         .correction = correction_of(correction)};
  }
  static constexpr auto& kKernel = root ? cpu::kStd : cpu::kVar;
  static constexpr auto& kMeanKernel = root ? cpu::kStdMean : cpu::kVarMean;
  static void into(const Tensor& self, OptionalIntSpan dim, const MaybeScalar& correction, bool keepdim,
                   const Tensor& out) {
    const Lowering lowering = lower<kKernel>(self, dim, correction, keepdim);
    if (lowering.reduction()) run_call(*lowering.reduction(), self, {&out});
    else run_complex_variance(self, dim_mask(self, dim), correction_of(correction), root, out);
  }
  static std::tuple<TensorSpec, TensorSpec> mean_meta(const Tensor& self, OptionalIntSpan dim,
                                                      const MaybeScalar&, bool keepdim) {
    TensorSpec spread = spread_spec(kName, self, dim, keepdim);
    return {spread, contiguous_spec(spread.sizes, self.dtype(), self.device())};
  }
  static void mean_into(const Tensor& self, OptionalIntSpan dim, const MaybeScalar& correction, bool keepdim,
                        const Tensor& spread, const Tensor& mean) {
    const Lowering lowering = lower<kMeanKernel>(self, dim, correction, keepdim);
    if (lowering.reduction()) return run_call(*lowering.reduction(), self, {&spread, &mean});
    uint64_t mask = dim_mask(self, dim);
    run_complex_variance(self, mask, correction_of(correction), root, spread);
    run_reduction(cpu::kMean, self.dtype(), self, mask, {&mean});
  }

  // `unbiased` stands for a correction of 1 or 0.
  static Tensor of(const Tensor& self, OptionalIntSpan dim, const Scalar& correction, bool keepdim) {
    return root ? std(self, dim, correction, keepdim) : var(self, dim, correction, keepdim);
  }
  static Tensor whole(const Tensor& self, bool unbiased) { return of(self, {}, unbiased ? 1 : 0, false); }
  static Tensor along(const Tensor& self, OptionalIntSpan dim, bool unbiased, bool keepdim) {
    return of(self, dim, unbiased ? 1 : 0, keepdim);
  }
  static Pair mean_of(const Tensor& self, OptionalIntSpan dim, const Scalar& correction, bool keepdim) {
    return root ? std_mean(self, dim, correction, keepdim) : var_mean(self, dim, correction, keepdim);
  }
  static Pair mean_whole(const Tensor& self, bool unbiased) {
    return mean_of(self, {}, unbiased ? 1 : 0, false);
  }
  static Pair mean_along(const Tensor& self, OptionalIntSpan dim, bool unbiased, bool keepdim) {
    return mean_of(self, dim, unbiased ? 1 : 0, keepdim);
  }
};
using Var = Spread<false>;
using Std = Spread<true>;

// --- derivatives -----------------------------------------------------------------------------------------

struct Reduced {
  IntSpan dims;
  bool keepdim;
  bool whole;  // no dims were given
};
SymInt count_of(SymIntSpan sizes, IntSpan dims) {
  uint64_t mask = dim_mask(dims, static_cast<int64_t>(sizes.size()));
  SymInt count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count = count * sizes[d];
  return count;
}
// d var / dx = 2 (x - mean) / (n - correction). Without degrees of freedom left, PyTorch answers infinity,
// and NaN at the mean.
Tensor variance_gradient(const Tensor& grad, const Tensor& self, const Reduced& over, double correction) {
  SymFloat degrees = sym_float(count_of(self.sizes(), over.dims)) - correction;
  Tensor spread = over.keepdim || self.dim() < 2 ? grad : unsqueeze_reduced(grad, self.dim(), over.dims);
  Tensor centered = self - (over.whole && !over.keepdim ? mean(self) : mean(self, over.dims, true));
  if (over.whole && guard_or(degrees <= SymFloat(0.0), false)) {
    double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    return spread * where(centered == 0, nan, infinity);
  }
  return spread * Scalar(SymFloat(2.0) / degrees) * centered;
}
Tensor mean_gradient(const Tensor& grad, const Tensor& self, const Reduced& over) {
  return restore_reduced(grad, self.sizes(), over.dims, over.keepdim) /
         Scalar(count_of(self.sizes(), over.dims));
}
// A deviation of zero has no slope; PyTorch takes zero.
Tensor root_gradient(const Tensor& grad, const Tensor& result) {
  Tensor slope = grad / (result * 2);
  return masked_fill_(slope, result == 0, 0);
}
template <bool root, bool with_mean>
Grads spread_vjp(const Vjp& v) {
  auto holder = boxing::Unboxed<OptionalIntSpan>(v.arg(1));
  OptionalIntSpan dim = holder.get();
  Reduced over{dim ? *dim : IntSpan(), v.arg<bool>(3), !dim};
  Tensor self = widened(v.input(0)), total;
  if (v.grad(0).defined()) {
    Tensor grad = widened(v.grad(0));
    if constexpr (root) grad = root_gradient(grad, widened(v.output(0)));
    total = variance_gradient(grad, self, over, correction_of(v.arg<MaybeScalar>(2)));
  }
  if constexpr (with_mean) {
    if (v.grad(1).defined()) {
      Tensor part = mean_gradient(widened(v.grad(1)), self, over);
      total = total.defined() ? total + part : part;
    }
  }
  return {total};
}

Samples correction_samples() {
  return {{"row", {f64({3, 4}), ints({1})}},
          {"keep", {f64({3, 4}), ints({0}), 0, true}},
          {"both", {f64({2, 3, 4}), ints({0, -1}), 2}},
          {"all", {f64({2, 3})}},
          {"half", {f64({5}), Value(), 0.5}},
          {"complex", {c128({2, 3}), ints({1})}}};
}
Samples along_samples() {
  return {{"row", {f64({3, 4}), ints({1})}}, {"biased", {f64({3, 4}), ints({0}), false, true}}};
}
Samples whole_samples() { return {{"matrix", {f64({3, 4})}}, {"biased", {f64({3, 4}), false}}}; }

}  // namespace

WEFT_OPERATOR(var_correction) = {
    .schema =
        "aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        "-> Tensor",
    .out =
        "aten::var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&Var::meta>(),
    .kernel = structured<&Var::meta, &Var::into>(),
    .lower = lowering<&Var::lower<Var::kKernel>>(),
    .vjp = {.saves = inputs(0), .rule = spread_vjp<false, false>},
    .batch = dims_batch<1>,
    .samples = correction_samples,
};

WEFT_OPERATOR(var) = {
    .schema = "aten::var(Tensor self, bool unbiased=True) -> Tensor",
    .composite = {.functional = function<&Var::whole>()},
    .samples = whole_samples,
};

WEFT_OPERATOR(var_dim) = {
    .schema = "aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    .out =
        "aten::var.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kCore,
    .composite = composite<&Var::along>(),
    .samples = along_samples,
};

WEFT_OPERATOR(std_correction) = {
    .schema =
        "aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        "-> Tensor",
    .out =
        "aten::std.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&Std::meta>(),
    .kernel = structured<&Std::meta, &Std::into>(),
    .lower = lowering<&Std::lower<Std::kKernel>>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = spread_vjp<true, false>},
    .batch = dims_batch<1>,
    .decompose = function<&std_parts>(),
    .samples = correction_samples,
};

WEFT_OPERATOR(std) = {
    .schema = "aten::std(Tensor self, bool unbiased=True) -> Tensor",
    .composite = {.functional = function<&Std::whole>()},
    .samples = whole_samples,
};

WEFT_OPERATOR(std_dim) = {
    .schema = "aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
    .out =
        "aten::std.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out) "
        "-> Tensor(a!)",
    .composite = composite<&Std::along>(),
    .samples = along_samples,
};

WEFT_OPERATOR(var_mean_correction) = {
    .schema =
        "aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .out =
        "aten::var_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kReduction,
    .meta = function<&Var::mean_meta>(),
    .kernel = structured_exact<&Var::mean_meta, &Var::mean_into>(),
    .lower = lowering<&Var::lower<Var::kMeanKernel>>(),
    .vjp = {.saves = inputs(0), .rule = spread_vjp<false, true>},
    .batch = dims_batch<1>,
    .samples = correction_samples,
};

WEFT_OPERATOR(var_mean) = {
    .schema = "aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .composite = {.functional = function<&Var::mean_whole>()},
    .samples = whole_samples,
};

WEFT_OPERATOR(var_mean_dim) = {
    .schema =
        "aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
        "Tensor)",
    .composite = {.functional = function<&Var::mean_along>()},
    .samples = along_samples,
};

WEFT_OPERATOR(std_mean_correction) = {
    .schema =
        "aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False) -> (Tensor, Tensor)",
    .out =
        "aten::std_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
        "keepdim=False, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kReduction,
    .meta = function<&Std::mean_meta>(),
    .kernel = structured_exact<&Std::mean_meta, &Std::mean_into>(),
    .lower = lowering<&Std::lower<Std::kMeanKernel>>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = spread_vjp<true, true>},
    .batch = dims_batch<1>,
    .decompose = function<&std_mean_parts>(),
    .samples = correction_samples,
};

WEFT_OPERATOR(std_mean) = {
    .schema = "aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .composite = {.functional = function<&Std::mean_whole>()},
    .samples = whole_samples,
};

WEFT_OPERATOR(std_mean_dim) = {
    .schema =
        "aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, "
        "Tensor)",
    .composite = {.functional = function<&Std::mean_along>()},
    .samples = along_samples,
};

}  // namespace weft::ops
