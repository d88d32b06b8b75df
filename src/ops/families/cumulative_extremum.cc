// Running extremes and where they are.
#include "ops/cpu/cumulative.h"

#include "ops/support/dense.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

template <bool largest>
struct Running {
  static std::tuple<TensorSpec, TensorSpec> meta(const Tensor& self, int64_t dim) {
    normalize_dim(dim, self.dim());
    require(!self.is_complex(), "\"{}\" not implemented for '{}'",
            largest ? "cummax_helper_cpu" : "cummin_helper_cpu", dtype_name(self.dtype()));
    return {contiguous_spec(self.sizes(), self.dtype(), self.device()),
            contiguous_spec(self.sizes(), kInt64, self.device())};
  }
  static void into(const Tensor& self, int64_t dim, const Tensor& values, const Tensor& indices) {
    Tensor in = dense_as(self, self.dtype());
    DimSplit split = split_at(self, normalize_dim(dim, self.dim()));
    cpu::cumulative_extremum(largest, split.outer, split.n, split.inner,
                             static_cast<const char*>(in.raw_data()), static_cast<char*>(values.raw_data()),
                             indices.data<int64_t>(), in.dtype());
  }
};
using Cummax = Running<true>;
using Cummin = Running<false>;

// `input` is asked for nothing but its sizes and type.
Tensor cummaxmin_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& indices,
                                    int64_t dim) {
  if (guard_or(input.numel() == 0, false)) return input;
  Tensor nothing = zeros(input.sizes(), input.dtype(), std::nullopt, input.device());
  return scatter_add(nothing, dim, indices, grad);
}
// The gradient has the sizes and the type of the input, which need not be kept for them.
Grads running_vjp(const Vjp& v) {
  return {cummaxmin_backward(v.grad(0), v.grad(0), v.output(1), v.arg<int64_t>(1))};
}

Samples running_samples() {
  return {{"last", {f64({3, 4}), -1}},
          {"first", {f64({4, 3}), 0}},
          {"scalar", {f64({}), 0}},
          {"integers", {i64({5}), 0}},
          {"transposed", {transposed(f64({3, 4})), 1}}};
}

}  // namespace

WEFT_OPERATOR(cummax) = {
    .schema = "aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .out =
        "aten::cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) "
        "values, Tensor(b!) indices)",
    .meta = function<&Cummax::meta>(),
    .kernel = structured_exact<&Cummax::meta, &Cummax::into>(),
    .vjp = {.saves = outputs(1), .rule = running_vjp, .differentiable_results = 1},
    .batch = dim_batch<1>,
    .samples = running_samples,
};

WEFT_OPERATOR(cummin) = {
    .schema = "aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .out =
        "aten::cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) "
        "values, Tensor(b!) indices)",
    .meta = function<&Cummin::meta>(),
    .kernel = structured_exact<&Cummin::meta, &Cummin::into>(),
    .vjp = {.saves = outputs(1), .rule = running_vjp, .differentiable_results = 1},
    .batch = dim_batch<1>,
    .samples = running_samples,
};

WEFT_OPERATOR(cummaxmin_backward) = {
    .schema = "aten::cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
    .composite = {.functional = function<&cummaxmin_backward_composite>()},
    .samples = [] { return Samples{{"plain", {f64({3, 4}), f64({3, 4}), i64({3, 4}, 0, 4), 1}}}; },
};

}  // namespace weft::ops
