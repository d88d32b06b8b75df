// Sums, means, extremes and truth over dims.
#include "ops/support/reduction.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;

// The layout of a reduced result: dense in the order of dims that the input has.
TensorSpec reduced_spec(const Tensor& self, uint64_t mask, bool keepdim, DType dtype) {
  return contiguous_spec(reduced_sizes(self.sizes(), mask, keepdim), dtype, self.device());
}

DType sum_type(const Tensor& self, const MaybeType& dtype) {
  if (dtype) return *dtype;
  return self.dtype() <= kInt64 ? kInt64 : self.dtype();
}

TensorSpec sum_dim_meta(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype) {
  return reduced_spec(self, dim_mask(self, dim), keepdim, sum_type(self, dtype));
}
ReductionCall sum_dim_lower(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype) {
  const DType type = sum_type(self, dtype);
  return {&cpu::kSum, type <= kInt64 ? kInt64 : type, dim_mask(self, dim), keepdim};
}
using SumDim = LoweredReduction<&sum_dim_lower>;
// Without a type of its own, the sum is made in the type of the target.
const Tensor& sum_dim_out_kernel(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype,
                                 const Tensor& out) {
  if (dtype) check_out_type(OutType::kExact, {*dtype, self.device(), {}, {}}, out);
  return StructuredForms<&sum_dim_meta, &SumDim::into>::out(self, dim, keepdim, out.dtype(), out);
}
TensorSpec sum_meta(const Tensor& self, MaybeType dtype) { return sum_dim_meta(self, {}, false, dtype); }
ReductionCall sum_lower(const Tensor& self, MaybeType dtype) { return sum_dim_lower(self, {}, false, dtype); }

DType mean_type(const Tensor& self, const MaybeType& dtype) {
  DType type = dtype.value_or(self.dtype());
  require(is_floating(type) || is_complex(type),
          "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
          "dtype. Got: {}",
          dtype_name(type));
  return type;
}
TensorSpec mean_dim_meta(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype) {
  return reduced_spec(self, dim_mask(self, dim), keepdim, mean_type(self, dtype));
}
ReductionCall mean_dim_lower(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype) {
  return {&cpu::kMean, mean_type(self, dtype), dim_mask(self, dim), keepdim};
}
using MeanDim = LoweredReduction<&mean_dim_lower>;
// Without a type of its own, the mean is made in the type of the target where that has fractions.
const Tensor& mean_dim_out_kernel(const Tensor& self, OptionalIntSpan dim, bool keepdim, MaybeType dtype,
                                  const Tensor& out) {
  if (dtype) check_out_type(OutType::kExact, {*dtype, self.device(), {}, {}}, out);
  DType type = mean_type(self, dtype);
  if (is_floating(out.dtype()) || is_complex(out.dtype())) type = out.dtype();
  return StructuredForms<&mean_dim_meta, &MeanDim::into>::out(self, dim, keepdim, type, out);
}
const Tensor& mean_out_kernel(const Tensor& self, MaybeType dtype, const Tensor& out) {
  return mean_dim_out_kernel(self, {}, false, dtype, out);
}
TensorSpec mean_meta(const Tensor& self, MaybeType dtype) { return mean_dim_meta(self, {}, false, dtype); }
ReductionCall mean_lower(const Tensor& self, MaybeType dtype) {
  return mean_dim_lower(self, {}, false, dtype);
}

// How many elements go into one result.
SymInt reduced_count(SymIntSpan sizes, uint64_t mask) {
  SymInt count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count = count * sizes[d];
  return count;
}

// Extremes need an element to begin with.
template <const cpu::ReductionKernel& kernel>
struct Extreme {
  static uint64_t checked_mask(const Tensor& self, IntSpan dim) {
    require(!self.is_complex(), "{}(): not implemented for {}", kernel.name, dtype_name(self.dtype()));
    uint64_t mask = dim_mask(dim, self.dim());
    if (dim.empty() && self.dim() > 0)
      require(!guard_or(self.numel() == 0, false),
              "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
              "dim with the 'dim' argument.",
              kernel.name);
    for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d)
      if (mask >> d & 1)
        require(!guard_or(self.sizes()[d] == 0, false),
                "{}(): Expected reduction dim {} to have non-zero size.", kernel.name, d);
    return mask;
  }
  static TensorSpec meta(const Tensor& self, IntSpan dim, bool keepdim) {
    return reduced_spec(self, checked_mask(self, dim), keepdim, self.dtype());
  }
  static ReductionCall lower(const Tensor& self, IntSpan dim, bool keepdim) {
    return {&kernel, self.dtype(), checked_mask(self, dim), keepdim};
  }
  static constexpr KernelSet kernels() { return structured_exact<&meta, &LoweredReduction<&lower>::into>(); }
};
using Amax = Extreme<cpu::kAmax>;
using Amin = Extreme<cpu::kAmin>;

// The gradient goes in equal parts to all elements that reach the extreme.
Grads extreme_vjp(const Vjp& v) {
  auto holder = boxing::Unboxed<IntSpan>(v.arg(1));
  IntSpan dims = holder.get();
  bool keepdim = v.arg<bool>(2);
  Tensor self = v.input(0);
  SymInts kept(self.sizes());
  const uint64_t mask = dim_mask(dims, self.dim());
  for (size_t d = 0; d < kept.size(); ++d)
    if (mask >> d & 1) kept[d] = 1;
  auto restored = [&](const Tensor& reduced) { return keepdim ? reduced : view(reduced, kept); };
  Tensor reached = restored(v.output()) == self, grad = restored(v.grad());
  return {grad / sum(reached, dims, true) * reached};
}

// Sums over the dims that broadcasting would have made of `size`.
Tensor sum_to_size_composite(const Tensor& self, SymIntSpan size) {
  auto rank = static_cast<size_t>(self.dim());
  if (size.size() > rank)
    fail("size {} is not expandable to size {}.", describe_sizes(size), describe_sizes(self.sizes()));
  if (size.empty()) return sum(self);
  size_t extra = rank - size.size();
  Ints dims;
  for (size_t d = 0; d < rank; ++d) {
    if (d < extra) {
      dims.push_back(static_cast<int64_t>(d));
      continue;
    }
    const SymInt& have = self.sizes()[d];
    const SymInt& want = size[d - extra];
    if (have.same_as(want) || guard_or(have == want, false)) continue;
    if (guard_or(want == 1, false)) {
      dims.push_back(static_cast<int64_t>(d));
      continue;
    }
    // Sizes that only data can tell are taken for equal, and checked when the program runs.
    if ((have == want).hint())
      fail("size {} is not expandable to size {}.", describe_sizes(size), describe_sizes(self.sizes()));
    check(have == want, "sum_to_size: the sizes must be equal");
  }
  if (dims.empty()) return alias(self);
  Tensor summed = sum(self, dims, true);
  return extra ? view(summed, size) : summed;
}

uint64_t any_mask(const Tensor& self, const OptionalIntSpan& dim) {
  return dim_mask(dim ? *dim : IntSpan(), self.dim(), !dim);
}
DType truth_type(const Tensor& self) { return self.dtype() == kUInt8 ? kUInt8 : kBool; }
// A target is bool, or uint8 for the sake of old programs, whatever the input is.
bool takes_truth(Args, DType, DType target) { return target == kBool || target == kUInt8; }
constexpr KernelSet into_truth(KernelSet set) {
  set.takes_out_type = &takes_truth;
  return set;
}
template <const cpu::ReductionKernel& kernel>
struct Truth {
  static TensorSpec dims_meta(const Tensor& self, OptionalIntSpan dim, bool keepdim) {
    return reduced_spec(self, any_mask(self, dim), keepdim, truth_type(self));
  }
  static ReductionCall dims_lower(const Tensor& self, OptionalIntSpan dim, bool keepdim) {
    return {&kernel, kBool, any_mask(self, dim), keepdim};
  }
  static TensorSpec meta(const Tensor& self) { return dims_meta(self, {}, false); }
  static ReductionCall lower(const Tensor& self) { return dims_lower(self, {}, false); }
  static TensorSpec dim_meta(const Tensor& self, int64_t dim, bool keepdim) {
    return dims_meta(self, IntSpan(&dim, 1), keepdim);
  }
  static ReductionCall dim_lower(const Tensor& self, int64_t dim, bool keepdim) {
    return dims_lower(self, IntSpan(&dim, 1), keepdim);
  }
  static const Tensor& dims_out(const Tensor& self, OptionalIntSpan dim, bool keepdim, const Tensor& out) {
    require(takes_truth({}, kBool, out.dtype()), "{} only supports bool tensor for result, got: {}",
            kernel.name, dtype_name(out.dtype()));
    TensorSpec spec = dims_meta(self, dim, keepdim);
    spec.dtype = out.dtype();
    check_no_internal_overlap(out);
    const bool is_apart = out.storage() != self.storage();
    if (is_apart) prepare_out(spec, out);
    else if (!resizes_out(spec, out)) check_overlap(out, self);
    // What it also reads is read to the end before it is resized.
    Tensor result = is_apart ? out : allocate(spec);
    run_call(dims_lower(self, dim, keepdim), self, {&result});
    if (is_apart) return out;
    prepare_out(spec, out);
    copy_values(out, result);
    return out;
  }
  static const Tensor& out(const Tensor& self, const Tensor& out) { return dims_out(self, {}, false, out); }
  static const Tensor& dim_out(const Tensor& self, int64_t dim, bool keepdim, const Tensor& out) {
    return dims_out(self, IntSpan(&dim, 1), keepdim, out);
  }
  static constexpr KernelSet kernels() {
    return into_truth(with_out<&out>(structured<&meta, &LoweredReduction<&lower>::into>()));
  }
  static constexpr KernelSet dim_kernels() {
    return into_truth(with_out<&dim_out>(structured<&dim_meta, &LoweredReduction<&dim_lower>::into>()));
  }
  static constexpr KernelSet dims_kernels() {
    return into_truth(with_out<&dims_out>(structured<&dims_meta, &LoweredReduction<&dims_lower>::into>()));
  }
};
using Any = Truth<cpu::kAny>;
using All = Truth<cpu::kAll>;

Batched whole_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  Ints dims;
  for (int64_t d = 1; d < self.dim(); ++d) dims.push_back(d);
  if (dims.empty()) {
    self = unsqueeze(self, -1);
    dims.push_back(1);
  }
  return {sum(self, dims, false, call.arg<MaybeType>(1)), {0}};
}
Ints all_but_first(const Tensor& self) {
  Ints dims;
  for (int64_t d = 1; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}
Batched whole_mean_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  if (self.dim() == 1) self = unsqueeze(self, -1);
  return {mean(self, all_but_first(self), false, call.arg<MaybeType>(1)), {0}};
}
template <bool every>
Batched whole_truth_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  Ints dims = all_but_first(self);
  return {every ? all(self, IntSpan(dims), false) : any(self, IntSpan(dims), false), {0}};
}

Samples whole_samples() {
  return {{"matrix", {f64({3, 4})}},
          {"scalar", {f64({})}},
          {"empty", {f64({0, 2})}},
          {"transposed", {transposed(f64({3, 4}))}}};
}

}  // namespace

WEFT_OPERATOR(sum) = {
    .schema = "aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .out = "aten::sum.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction | Traits::kLinear,
    .meta = function<&sum_meta>(),
    .kernel = structured_exact<&sum_meta, &LoweredReduction<&sum_lower>::into>(),
    .lower = lowering<&sum_lower>(),
    .vjp = {.saves = sizes(0), .rule = [](const Vjp& v) { return Grads{expand(v.grad(), v.sizes(0))}; }},
    .batch = whole_batch,
    .decompose = function<&sum_parts>(),
    .samples = whole_samples,
};

WEFT_OPERATOR(sum_dim) = {
    .schema =
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
        "Tensor",
    .out =
        "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kLinear,
    .meta = function<&sum_dim_meta>(),
    .kernel = with_out<&sum_dim_out_kernel>(structured<&sum_dim_meta, &SumDim::into>()),
    .lower = lowering<&sum_dim_lower>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto dims = boxing::Unboxed<OptionalIntSpan>(v.arg(1));
                  OptionalIntSpan dim = dims.get();
                  return Grads{restore_reduced(v.grad(), v.sizes(0), dim ? *dim : IntSpan(), v.arg<bool>(2))};
                }},
    .batch = dims_batch<1>,
    .samples =
        [] {
          return Samples{{"row", {f64({3, 4}), ints({1})}},
                         {"keep", {f64({3, 4}), ints({0}), true}},
                         {"both", {f64({2, 3, 4}), ints({0, -1})}},
                         {"none", {f64({2, 3}), Value()}},
                         {"integers", {i64({3}), ints({0})}}};
        },
};

WEFT_OPERATOR(mean) = {
    .schema = "aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .out = "aten::mean.dtype_out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kLinear,
    .meta = function<&mean_meta>(),
    .kernel = with_out<&mean_out_kernel>(structured<&mean_meta, &LoweredReduction<&mean_lower>::into>()),
    .lower = lowering<&mean_lower>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{expand(v.grad(), v.sizes(0)) /
                               Scalar(reduced_count(v.sizes(0), ~uint64_t{0}))};
                }},
    .batch = whole_mean_batch,
    .samples = whole_samples,
};

WEFT_OPERATOR(mean_dim) = {
    .schema =
        "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    .out =
        "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kLinear,
    .meta = function<&mean_dim_meta>(),
    .kernel = with_out<&mean_dim_out_kernel>(structured<&mean_dim_meta, &MeanDim::into>()),
    .lower = lowering<&mean_dim_lower>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto holder = boxing::Unboxed<OptionalIntSpan>(v.arg(1));
                  IntSpan dims = holder.get() ? *holder.get() : IntSpan();
                  SymInt count =
                      reduced_count(v.sizes(0), dim_mask(dims, static_cast<int64_t>(v.sizes(0).size())));
                  return Grads{restore_reduced(v.grad(), v.sizes(0), dims, v.arg<bool>(2)) / Scalar(count)};
                }},
    .batch = dims_batch<1>,
    .samples =
        [] {
          return Samples{{"row", {f64({3, 4}), ints({1})}},
                         {"keep", {f64({3, 4}), ints({0}), true}},
                         {"all", {f64({2, 3}), Value()}}};
        },
};

WEFT_OPERATOR(amax) = {
    .schema = "aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .out = "aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&Amax::meta>(),
    .kernel = Amax::kernels(),
    .lower = lowering<&Amax::lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = extreme_vjp},
    .batch = dims_batch<1>,
    .samples =
        [] {
          return Samples{{"row", {f64({3, 4}), ints({1})}},
                         {"keep", {f64({3, 4}), ints({0}), true}},
                         {"all", {f64({2, 3})}},
                         {"integers", {i64({2, 5}), ints({-1})}}};
        },
};

WEFT_OPERATOR(amin) = {
    .schema = "aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .out = "aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&Amin::meta>(),
    .kernel = Amin::kernels(),
    .lower = lowering<&Amin::lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = extreme_vjp},
    .batch = dims_batch<1>,
    .samples =
        [] {
          return Samples{{"row", {f64({3, 4}), ints({1})}},
                         {"keep", {f64({3, 4}), ints({0}), true}},
                         {"all", {f64({2, 3})}},
                         {"integers", {i64({2, 5}), ints({-1})}}};
        },
};

WEFT_OPERATOR(all) = {
    .schema = "aten::all(Tensor self) -> Tensor",
    .out = "aten::all.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&All::meta>(),
    .kernel = All::kernels(),
    .lower = lowering<&All::lower>(),
    .batch = whole_truth_batch<true>,
    .decompose = function<&all_parts>(),
    .samples = [] { return Samples{{"bool", {boolean({3, 4})}}, {"real", {f64({2})}}}; },
};

WEFT_OPERATOR(all_dim) = {
    .schema = "aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    .out = "aten::all.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&All::dim_meta>(),
    .kernel = All::dim_kernels(),
    .lower = lowering<&All::dim_lower>(),
    .batch = dim_batch<1>,
    .decompose = function<&all_dim_parts>(),
    .samples = [] { return Samples{{"row", {boolean({3, 4}), 1}}}; },
};

WEFT_OPERATOR(all_dims) = {
    .schema = "aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .out =
        "aten::all.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&All::dims_meta>(),
    .kernel = All::dims_kernels(),
    .lower = lowering<&All::dims_lower>(),
    .batch = dims_batch<1>,
    .decompose = function<&all_dims_parts>(),
    .samples = [] { return Samples{{"two", {boolean({2, 3, 4}), ints({0, 2})}}}; },
};

WEFT_OPERATOR(sum_to_size) = {
    .schema = "aten::sum_to_size(Tensor self, SymInt[] size) -> Tensor",
    .composite = {.functional = function<&sum_to_size_composite>()},
    .samples =
        [] {
          return Samples{{"leading", {f64({2, 3}), ints({3})}},
                         {"inner", {f64({2, 3}), ints({2, 1})}},
                         {"same", {f64({2}), ints({2})}}};
        },
};

WEFT_OPERATOR(any) = {
    .schema = "aten::any(Tensor self) -> Tensor",
    .out = "aten::any.all_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&Any::meta>(),
    .kernel = Any::kernels(),
    .lower = lowering<&Any::lower>(),
    .batch = whole_truth_batch<false>,
    .samples = [] { return Samples{{"bool", {boolean({3, 4})}}, {"real", {f64({2})}}}; },
};

WEFT_OPERATOR(any_dim) = {
    .schema = "aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    .out = "aten::any.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&Any::dim_meta>(),
    .kernel = Any::dim_kernels(),
    .lower = lowering<&Any::dim_lower>(),
    .batch = dim_batch<1>,
    .samples = [] { return Samples{{"row", {boolean({3, 4}), 1}}, {"keep", {boolean({3, 4}), 0, true}}}; },
};

WEFT_OPERATOR(any_dims) = {
    .schema = "aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .out =
        "aten::any.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&Any::dims_meta>(),
    .kernel = Any::dims_kernels(),
    .lower = lowering<&Any::dims_lower>(),
    .batch = dims_batch<1>,
    .samples = [] { return Samples{{"two", {boolean({2, 3, 4}), ints({0, 2})}}}; },
};

}  // namespace weft::ops
