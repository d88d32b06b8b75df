// Extremes and where they are.
#include "ops/cpu/selection.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using MaybeInt = std::optional<int64_t>;

void check_ordered(const char* op, const Tensor& self) {
  require(!self.is_complex(), "{}(): does not support complex inputs, but got {}", op, describe(self));
}
// An extreme needs an element.
void check_whole(const char* op, const Tensor& self) {
  check_ordered(op, self);
  require(!guard_or(self.numel() == 0, false),
          "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
          "with the 'dim' argument.",
          op);
}
uint64_t mask_along(const char* op, const Tensor& self, int64_t dim) {
  check_ordered(op, self);
  int64_t d = normalize_dim(dim, self.dim());
  if (self.dim() == 0) return 0;
  require(!guard_or(self.size(d) == 0, false), "{}(): Expected reduction dim {} to have non-zero size.", op,
          d);
  return uint64_t{1} << d;
}
uint64_t all_dims(const Tensor& self) { return dim_mask(IntSpan(), self.dim()); }

// --- argmax, argmin --------------------------------------------------------------------------------------

template <const cpu::ReductionKernel& kernel>
struct Position {
  static uint64_t mask(const Tensor& self, const MaybeInt& dim) {
    require(self.dtype() != kBool, "{}(): does not support bool input", kernel.name);
    if (dim) return mask_along(kernel.name, self, *dim);
    check_whole(kernel.name, self);
    return all_dims(self);
  }
  static TensorSpec meta(const Tensor& self, MaybeInt dim, bool keepdim) {
    return contiguous_spec(reduced_sizes(self.sizes(), mask(self, dim), keepdim), kInt64, self.device());
  }
  static ReductionCall lower(const Tensor& self, MaybeInt dim, bool keepdim) {
    return {&kernel, self.dtype(), mask(self, dim), keepdim};
  }
  static constexpr KernelSet kernels() { return structured_exact<&meta, &LoweredReduction<&lower>::into>(); }
};
using Argmax = Position<cpu::kArgmax>;
using Argmin = Position<cpu::kArgmin>;

// Without a dim, positions count all elements that the user sees.
Batched position_batch(const Batch& call) {
  if (call.arg<MaybeInt>(1)) return call_with_dim_shifted(call, 1);
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim() - 1;
  std::vector<Value> args{reshape(self, {self.size(0), -1}), 1, false};
  Tensor result = weft::call(call.op(), args).to_tensor();
  if (call.arg<bool>(2))
    for (int64_t d = 0; d < rank; ++d) result = unsqueeze(result, 1);
  return {result, {0}};
}

// --- max, min --------------------------------------------------------------------------------------------

template <const cpu::ReductionKernel& whole, const cpu::ReductionKernel& with_position>
struct Extreme {
  static constexpr const char* kName = &whole == &cpu::kAmax ? "max" : "min";
  static TensorSpec meta(const Tensor& self) {
    check_whole(kName, self);
    return contiguous_spec({}, self.dtype(), self.device());
  }
  static ReductionCall lower(const Tensor& self) { return {&whole, self.dtype(), all_dims(self)}; }
  static constexpr KernelSet kernels() { return structured<&meta, &LoweredReduction<&lower>::into>(); }
  static std::tuple<TensorSpec, TensorSpec> dim_meta(const Tensor& self, int64_t dim, bool keepdim) {
    SymInts sizes = reduced_sizes(self.sizes(), mask_along(kName, self, dim), keepdim);
    return {contiguous_spec(sizes, self.dtype(), self.device()),
            contiguous_spec(sizes, kInt64, self.device())};
  }
  static ReductionCall dim_lower(const Tensor& self, int64_t dim, bool keepdim) {
    return {&with_position, self.dtype(), mask_along(kName, self, dim), keepdim};
  }
  static constexpr KernelSet dim_kernels() {
    return structured_exact<&dim_meta, &LoweredReduction<&dim_lower>::pair_into>();
  }
};
using Max = Extreme<cpu::kAmax, cpu::kMaxDim>;
using Min = Extreme<cpu::kAmin, cpu::kMinDim>;

// The gradient goes in equal parts to all elements that are the extreme, or to all NaN.
Grads whole_vjp(const Vjp& v) {
  Tensor self = v.input(0), extreme = v.output();
  Tensor reached = logical_or(self == extreme, logical_and(isnan(self), isnan(extreme)));
  Tensor share = reached.to(v.grad().dtype());
  return {v.grad() * share / sum(share)};
}
Batched whole_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  bool is_max = call.op().def().meta.typed == function<&Max::meta>().typed;
  Tensor rows = reshape(self, {self.size(0), -1});
  Ints last{1};
  return {is_max ? amax(rows, last) : amin(rows, last), {0}};
}

Grads selecting_vjp(const Vjp& v) {
  return {value_selecting_reduction_backward(v.grad(0), v.arg<int64_t>(1), v.output(1), v.sizes(0),
                                             v.arg<bool>(2))};
}
Tensor value_selecting_backward_composite(const Tensor& grad, int64_t dim, const Tensor& indices,
                                          SymIntSpan sizes, bool keepdim) {
  bool lacks_dim = !keepdim && !sizes.empty();
  Tensor values = lacks_dim ? unsqueeze(grad, dim) : grad, at = lacks_dim ? unsqueeze(indices, dim) : indices;
  return scatter(new_zeros(values, sizes), dim, at, values);
}

// --- topk ------------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> topk_meta(const Tensor& self, const SymInt& k, int64_t dim, bool, bool) {
  int64_t d = normalize_dim(dim, self.dim());
  require(!self.is_complex() && self.dtype() != kBool, "\"topk_cpu\" not implemented for '{}'",
          dtype_name(self.dtype()));
  SymInt size = self.dim() == 0 ? SymInt(1) : self.size(d);
  if (!k.is_symbolic() && !size.is_symbolic())
    require(k.plain() >= 0 && k.plain() <= size.plain(), "selected index k out of range: {} of {} elements",
            k.plain(), size.plain());
  else check(k <= size, "selected index k out of range");
  SymInts sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = k;
  return {contiguous_spec(sizes, self.dtype(), self.device()), contiguous_spec(sizes, kInt64, self.device())};
}
void topk_into(const Tensor& self, const SymInt& k, int64_t dim, bool largest, bool, const Tensor& values,
               const Tensor& indices) {
  Tensor in = dense_as(self, self.dtype());
  DimSplit split = split_at(self, normalize_dim(dim, self.dim()));
  // The one element of a 0-dim tensor is there whatever k is.
  int64_t count = self.dim() == 0 ? 1 : k.plain();
  cpu::topk({split.outer, split.n, split.inner, count}, largest, static_cast<const char*>(in.raw_data()),
            in.dtype(), static_cast<char*>(values.raw_data()), indices.data<int64_t>());
}
Grads topk_vjp(const Vjp& v) {
  return {value_selecting_reduction_backward(v.grad(0), v.arg<int64_t>(2), v.output(1), v.sizes(0), true)};
}

// --- sort ------------------------------------------------------------------------------------------------

using MaybeBool = std::optional<bool>;

std::tuple<TensorSpec, TensorSpec> sort_meta(const Tensor& self, MaybeBool, int64_t dim, bool) {
  normalize_dim(dim, self.dim());
  require(!self.is_complex(), "sort(): does not support complex inputs, but got {}", describe(self));
  SymInts sizes(self.sizes()), strides = preserved_strides(self);
  return {TensorSpec{self.dtype(), self.device(), sizes, strides},
          TensorSpec{kInt64, self.device(), sizes, strides}};
}
// The best n of n. Equal elements keep their order, whether that was asked for or not.
void sort_into(const Tensor& self, MaybeBool, int64_t dim, bool descending, const Tensor& values,
               const Tensor& indices) {
  Tensor in = dense_as(self, self.dtype());
  DimSplit split = split_at(self, normalize_dim(dim, self.dim()));
  write_dense(values, [&](const Tensor& sorted) {
    write_dense(indices, [&](const Tensor& positions) {
      cpu::topk({split.outer, split.n, split.inner, split.n}, descending,
                static_cast<const char*>(in.raw_data()), in.dtype(), static_cast<char*>(sorted.raw_data()),
                positions.data<int64_t>());
    });
  });
}
std::tuple<TensorSpec, TensorSpec> unstable_sort_meta(const Tensor& self, int64_t dim, bool descending) {
  return sort_meta(self, false, dim, descending);
}
void unstable_sort_into(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
                        const Tensor& indices) {
  sort_into(self, false, dim, descending, values, indices);
}
template <int dim>
Grads sort_vjp_along(const Vjp& v) {
  return {value_selecting_reduction_backward(v.grad(0), v.arg<int64_t>(dim), v.output(1), v.sizes(0), true)};
}

Samples position_samples() {
  return {{"row", {f64({3, 4}), 1}},
          {"keep", {f64({3, 4}), 0, true}},
          {"all", {f64({2, 3, 2})}},
          {"scalar", {f64({}), 0}},
          {"all_keep", {i64({2, 5}), Value(), true}},
          {"transposed", {transposed(f64({3, 4}))}}};
}
Samples whole_samples() {
  return {{"matrix", {f64({3, 4})}},
          {"scalar", {f64({})}},
          {"transposed", {transposed(f64({3, 4}))}},
          {"integers", {i64({2, 5})}}};
}
Samples dim_samples() {
  return {{"row", {f64({3, 4}), 1}},
          {"keep", {f64({3, 4}), 0, true}},
          {"scalar", {f64({}), 0, true}},
          {"integers", {i64({2, 5}), -1}}};
}

}  // namespace

WEFT_OPERATOR(argmax) = {
    .schema = "aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .out =
        "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&Argmax::meta>(),
    .kernel = Argmax::kernels(),
    .lower = lowering<&Argmax::lower>(),
    .batch = position_batch,
    .samples = position_samples,
};

WEFT_OPERATOR(argmin) = {
    .schema = "aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .out =
        "aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kReduction | Traits::kNotDifferentiable,
    .meta = function<&Argmin::meta>(),
    .kernel = Argmin::kernels(),
    .lower = lowering<&Argmin::lower>(),
    .batch = position_batch,
    .samples = position_samples,
};

WEFT_OPERATOR(max) = {
    .schema = "aten::max(Tensor self) -> Tensor",
    .out = "aten::max.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&Max::meta>(),
    .kernel = Max::kernels(),
    .lower = lowering<&Max::lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = whole_vjp},
    .batch = whole_batch,
    .samples = whole_samples,
};

WEFT_OPERATOR(min) = {
    .schema = "aten::min(Tensor self) -> Tensor",
    .out = "aten::min.unary_out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kReduction,
    .meta = function<&Min::meta>(),
    .kernel = Min::kernels(),
    .lower = lowering<&Min::lower>(),
    .vjp = {.saves = inputs(0) | outputs(0), .rule = whole_vjp},
    .batch = whole_batch,
    .samples = whole_samples,
};

WEFT_OPERATOR(max_dim) = {
    .schema = "aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .out =
        "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) "
        "max_values) -> (Tensor(a!) values, Tensor(b!) indices)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&Max::dim_meta>(),
    .kernel = Max::dim_kernels(),
    .lower = lowering<&Max::dim_lower>(),
    .vjp = {.saves = outputs(1) | sizes(0), .rule = selecting_vjp, .differentiable_results = 1},
    .batch = dim_batch<1>,
    .samples = dim_samples,
};

WEFT_OPERATOR(min_dim) = {
    .schema = "aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .out =
        "aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) "
        "min_indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    .traits = Traits::kCore | Traits::kReduction,
    .meta = function<&Min::dim_meta>(),
    .kernel = Min::dim_kernels(),
    .lower = lowering<&Min::dim_lower>(),
    .vjp = {.saves = outputs(1) | sizes(0), .rule = selecting_vjp, .differentiable_results = 1},
    .batch = dim_batch<1>,
    .samples = dim_samples,
};

WEFT_OPERATOR(value_selecting_reduction_backward) = {
    .schema =
        "aten::value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool "
        "keepdim) -> Tensor",
    .composite = {.functional = function<&value_selecting_backward_composite>()},
    .samples =
        [] {
          return Samples{{"row", {f64({2}), 1, i64({2}, 0, 3), Value::list({2, 3}), false}},
                         {"keep", {f64({1, 3}), 0, i64({1, 3}, 0, 2), Value::list({2, 3}), true}}};
        },
};

WEFT_OPERATOR(topk) = {
    .schema =
        "aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
        "values, Tensor indices)",
    .out =
        "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, "
        "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    .traits = Traits::kCore,
    .meta = function<&topk_meta>(),
    .kernel = structured_exact<&topk_meta, &topk_into>(),
    .vjp = {.saves = outputs(1) | sizes(0), .rule = topk_vjp, .differentiable_results = 1},
    .batch = dim_batch<2>,
    .samples =
        [] {
          return Samples{{"last", {f64({3, 5}), 2}},
                         {"smallest", {f64({4, 3}), 3, 0, false}},
                         {"none", {f64({2, 3}), 0}},
                         {"scalar", {f64({}), 1}},
                         {"many", {transposed(f64({4, 6})), 5, 1, true, false}}};
        },
};

WEFT_OPERATOR(sort_stable) = {
    .schema =
        "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor "
        "values, Tensor indices)",
    .out =
        "aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, "
        "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    .meta = function<&sort_meta>(),
    .kernel = structured_exact<&sort_meta, &sort_into>(),
    .vjp = {.saves = outputs(1) | sizes(0), .rule = sort_vjp_along<2>, .differentiable_results = 1},
    .batch = dim_batch<2>,
    .samples =
        [] {
          return Samples{{"last", {f64({3, 5}), true}},
                         {"descending", {f64({4, 3}), Value(), 0, true}},
                         {"scalar", {f64({}), true}},
                         {"transposed", {transposed(f64({3, 4})), false, 1}}};
        },
};

WEFT_OPERATOR(sort) = {
    .schema = "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    .out =
        "aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) "
        "indices) -> (Tensor(a!) values, Tensor(b!) indices)",
    .traits = Traits::kCore,
    .meta = function<&unstable_sort_meta>(),
    .kernel = structured_exact<&unstable_sort_meta, &unstable_sort_into>(),
    .vjp = {.saves = outputs(1) | sizes(0), .rule = sort_vjp_along<1>, .differentiable_results = 1},
    .batch = dim_batch<1>,
    .samples = [] { return Samples{{"last", {f64({3, 5})}}, {"descending", {f64({4, 3}), 0, true}}}; },
};

}  // namespace weft::ops
