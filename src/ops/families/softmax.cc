// Softmax and its logarithm.
#include "ops/cpu/softmax.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using cpu::SoftmaxKind;
using MaybeType = std::optional<DType>;

cpu::SoftmaxShape shape_around(const Tensor& t, int64_t dim) {
  int64_t d = normalize_dim(dim, t.dim());
  cpu::SoftmaxShape shape{1, t.dim() == 0 ? 1 : t.plain_sizes()[static_cast<size_t>(d)], 1};
  for (int64_t i = 0; i < t.dim(); ++i) {
    if (i < d) shape.outer *= t.plain_sizes()[static_cast<size_t>(i)];
    if (i > d) shape.inner *= t.plain_sizes()[static_cast<size_t>(i)];
  }
  return shape;
}
Tensor dense(const Tensor& t, DType dtype) {
  if (t.is_contiguous() && t.dtype() == dtype) return t;
  Tensor copy = allocate_contiguous(t.sizes(), dtype);
  copy_values(copy, t);
  return copy;
}
// Runs `fill` on memory that is row-major, and copies where `out` is not.
template <typename F>
void into_dense(const Tensor& out, F fill) {
  if (out.is_contiguous()) return fill(out);
  Tensor memory = allocate_contiguous(out.sizes(), out.dtype());
  fill(memory);
  copy_values(out, memory);
}

template <SoftmaxKind kind>
struct Softmax {
  static constexpr const char* kName = kind == SoftmaxKind::kSoftmax ? "softmax" : "log_softmax";
  // Nothing may be of any type.
  static void check_type(const char* name, const char* suffix, const Tensor& t) {
    require(is_floating(t.dtype()) || guard_or(t.numel() == 0, false),
            "\"{}{}_lastdim_kernel_impl\" not implemented for '{}'", name, suffix, dtype_name(t.dtype()));
  }
  static TensorSpec meta(const Tensor& self, int64_t dim, bool half_to_float) {
    normalize_dim(dim, self.dim());
    check_type(kName, "", self);
    require(!half_to_float, "{} with half to float conversion is not supported on CPU", kName);
    return contiguous_spec(self.sizes(), self.dtype(), self.device());
  }
  static void into(const Tensor& self, int64_t dim, bool, const Tensor& out) {
    if (self.plain_numel() == 0) return;
    Tensor in = dense(self, self.dtype());
    into_dense(out, [&](const Tensor& memory) {
      cpu::softmax(kind, shape_around(self, dim), static_cast<const char*>(in.raw_data()), in.dtype(),
                   static_cast<char*>(memory.raw_data()), memory.dtype());
    });
  }
  static TensorSpec backward_meta(const Tensor& grad, const Tensor& output, int64_t dim, DType input_dtype) {
    const char* op = kind == SoftmaxKind::kSoftmax ? "_softmax_backward_data" : "_log_softmax_backward_data";
    normalize_dim(dim, grad.dim());
    check_sizes(op, "grad_output", grad, output.sizes());
    check_dtype(op, "grad_output", grad, output.dtype());
    check_type(kName, "_backward", output);
    require(input_dtype == grad.dtype() || input_dtype != kFloat16,
            "{} with half to float conversion is not supported on CPU", op);
    // As in PyTorch, the gradient decides: another input_dtype has no effect.
    return contiguous_spec(output.sizes(), grad.dtype(), grad.device());
  }
  static void backward_into(const Tensor& grad, const Tensor& output, int64_t dim, DType, const Tensor& out) {
    if (output.plain_numel() == 0) return;
    Tensor g = dense(grad, output.dtype()), y = dense(output, output.dtype());
    into_dense(out, [&](const Tensor& memory) {
      cpu::softmax_backward(kind, shape_around(output, dim), static_cast<const char*>(g.raw_data()),
                            static_cast<const char*>(y.raw_data()), y.dtype(),
                            static_cast<char*>(memory.raw_data()), memory.dtype());
    });
  }
};
using Plain = Softmax<SoftmaxKind::kSoftmax>;
using Log = Softmax<SoftmaxKind::kLogSoftmax>;

Tensor softmax_composite(const Tensor& self, int64_t dim, MaybeType dtype) {
  return _softmax(dtype ? self.to(*dtype) : self, dim, false);
}
Tensor log_softmax_composite(const Tensor& self, int64_t dim, MaybeType dtype) {
  return _log_softmax(dtype ? self.to(*dtype) : self, dim, false);
}

// (grad, output, dim, type): both tensors batched in front.
Batched backward_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  Tensor grad = with_batch_first(call.tensor(0), call.batch_dim(0), call.batch_size()),
         output = with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size());
  bool scalar = grad.dim() == 1;
  args[0] = scalar ? unsqueeze(grad, 1) : grad;
  args[1] = scalar ? unsqueeze(output, 1) : output;
  args[2] = normalize_dim(call.arg<int64_t>(2), std::max<int64_t>(grad.dim() - 1, 1)) + 1;
  Tensor result = weft::call(call.op(), args).to_tensor();
  return {scalar ? squeeze(result, 1) : result, {0}};
}

Samples forward_samples() {
  return {{"last", {f64({3, 4}), -1, false}},
          {"first", {f64({3, 4}), 0, false}},
          {"transposed", {transposed(f64({3, 4})), 1, false}},
          {"scalar", {f64({}), 0, false}}};
}
Samples backward_samples() {
  return {{"last", {f64({3, 4}), make({3, 4}, kFloat64, 0.01, 0.5), 1, kFloat64}}};
}

}  // namespace

WEFT_OPERATOR(softmax_kernel) = {
    .schema = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .out = "aten::_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&Plain::meta>(),
    .kernel = structured_exact<&Plain::meta, &Plain::into>(),
    .vjp = {.saves = outputs(0) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      _softmax_backward_data(v.grad(), v.output(), v.arg<int64_t>(1), v.shape(0).dtype)};
                }},
    .batch = dim_batch<1>,
    .samples = forward_samples,
};

WEFT_OPERATOR(log_softmax_kernel) = {
    .schema = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .out =
        "aten::_log_softmax.out(Tensor self, int dim, bool half_to_float, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&Log::meta>(),
    .kernel = structured_exact<&Log::meta, &Log::into>(),
    .vjp = {.saves = outputs(0) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      _log_softmax_backward_data(v.grad(), v.output(), v.arg<int64_t>(1), v.shape(0).dtype)};
                }},
    .batch = dim_batch<1>,
    .samples = forward_samples,
};

WEFT_OPERATOR(softmax_backward_data) = {
    .schema =
        "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
        "Tensor",
    .out =
        "aten::_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&Plain::backward_meta>(),
    .kernel = structured_exact<&Plain::backward_meta, &Plain::backward_into>(),
    // With s = sum(grad * output): result = (grad - s) * output.
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(2);
                  Tensor grad = v.input(0), output = v.input(1), g = v.grad();
                  Tensor to_output = v.wants(1) ? g * grad - g * sum(grad * output, {dim}, true) -
                                                      sum(g * output, {dim}, true) * grad
                                                : Tensor();
                  return Grads{_softmax_backward_data(g, output, dim, grad.dtype()), to_output};
                }},
    .batch = backward_batch,
    .decompose = function<&softmax_backward_parts>(),
    .samples = backward_samples,
};

WEFT_OPERATOR(log_softmax_backward_data) = {
    .schema =
        "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype) -> Tensor",
    .out =
        "aten::_log_softmax_backward_data.out(Tensor grad_output, Tensor output, int dim, ScalarType "
        "input_dtype, *, Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&Log::backward_meta>(),
    .kernel = structured_exact<&Log::backward_meta, &Log::backward_into>(),
    // result = grad - exp(output) * sum(grad).
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(2);
                  Tensor grad = v.input(0), p = exp(v.input(1)), g = v.grad();
                  Tensor to_grad = g - sum(g * p, {dim}, true);
                  Tensor to_output = v.wants(1) ? -(g * p) * sum(grad, {dim}, true) : Tensor();
                  return Grads{to_grad, to_output};
                }},
    .batch = backward_batch,
    .decompose = function<&log_softmax_backward_parts>(),
    .samples = backward_samples,
};

WEFT_OPERATOR(softmax_int) = {
    .schema = "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .out =
        "aten::softmax.int_out(Tensor self, int dim, ScalarType? dtype=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .composite = composite_exact<&softmax_composite>(),
    .samples = [] { return Samples{{"plain", {f64({3, 4}), 1}}, {"typed", {f32({3, 4}), 0, kFloat64}}}; },
};

WEFT_OPERATOR(log_softmax_int) = {
    .schema = "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .out =
        "aten::log_softmax.int_out(Tensor self, int dim, ScalarType? dtype=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .composite = composite_exact<&log_softmax_composite>(),
    .samples = [] { return Samples{{"plain", {f64({3, 4}), 1}}}; },
};

}  // namespace weft::ops
