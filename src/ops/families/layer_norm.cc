// Layer normalisation.
#include "ops/cpu/layer_norm.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"

namespace weft::ops {
namespace {

using Mask = std::array<bool, 3>;
using MaybeSpec = std::optional<TensorSpec>;

Tensor dense(const Tensor& t) {
  if (!t.defined() || t.is_contiguous()) return t;
  Tensor copy = allocate_contiguous(t.sizes(), t.dtype());
  copy_values(copy, t);
  return copy;
}
const char* bytes_or_null(const Tensor& t) {
  return t.defined() ? static_cast<const char*>(t.raw_data()) : nullptr;
}
char* bytes(const Tensor& t) { return t.defined() ? static_cast<char*>(t.raw_data()) : nullptr; }

// --- layer norm ------------------------------------------------------------------------------------------

void check_layer_norm(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias) {
  require(!shape.empty(),
          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
          "but got normalized_shape = {}",
          describe_sizes(shape));
  auto ends = static_cast<size_t>(input.dim());
  bool fits = ends >= shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = guard_or(input.sizes()[ends - shape.size() + i] == shape[i], true);
  require(fits, "Given normalized_shape={}, expected input with shape [*, {}], but got input of size {}",
          describe_sizes(shape), describe_sizes(shape), describe_sizes(input.sizes()));
  // Sizes that only data can tell are taken for equal, here as above.
  auto agree = [&](SymIntSpan sizes) {
    bool same = sizes.size() == shape.size();
    for (size_t i = 0; same && i < shape.size(); ++i) same = guard_or(sizes[i] == shape[i], true);
    return same;
  };
  for (const Tensor* t : {&weight, &bias})
    if (t->defined() && !agree(t->sizes()))
      fail(
          "Expected weight and bias to be of same shape as normalized_shape, but got {} of shape {} and "
          "normalized_shape = {}",
          t == &weight ? "weight" : "bias", describe_sizes(t->sizes()), describe_sizes(shape));
  require(is_floating(input.dtype()), "\"LayerNormKernelImpl\" not implemented for '{}'",
          dtype_name(input.dtype()));
}
SymInts moment_sizes(const Tensor& input, SymIntSpan shape) {
  SymInts sizes(input.sizes());
  for (size_t i = sizes.size() - shape.size(); i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}
std::tuple<TensorSpec, TensorSpec, TensorSpec> layer_norm_meta(const Tensor& input, SymIntSpan shape,
                                                               const Tensor& weight, const Tensor& bias,
                                                               double) {
  check_layer_norm(input, shape, weight, bias);
  SymInts moments = moment_sizes(input, shape);
  DType type = check_parameter_types("native_layer_norm", input, {{"weight", weight}, {"bias", bias}});
  return {contiguous_spec(input.sizes(), input.dtype(), input.device()),
          contiguous_spec(moments, type, input.device()), contiguous_spec(moments, type, input.device())};
}
cpu::LayerNormArgs layer_norm_args(const Tensor& input, SymIntSpan shape, const Tensor& weight,
                                   const Tensor& bias, DType moments, double eps) {
  int64_t n = 1;
  for (const SymInt& size : shape) n *= size.plain();
  cpu::LayerNormArgs args;
  args.rows = n == 0 ? 0 : input.plain_numel() / n;
  args.n = n;
  args.type = input.dtype();
  args.weight_type = weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : input.dtype();
  args.moment_type = moments;
  args.eps = eps;
  args.in = bytes_or_null(input);
  args.weight = bytes_or_null(weight);
  args.bias = bytes_or_null(bias);
  return args;
}
void layer_norm_into(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias,
                     double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  Tensor x = dense(input), w = dense(weight), b = dense(bias);
  cpu::layer_norm(layer_norm_args(x, shape, w, b, mean.dtype(), eps), bytes(out), bytes(mean), bytes(rstd));
}

std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> layer_norm_backward_meta(const Tensor& grad, const Tensor& input,
                                                                     SymIntSpan shape, const Tensor& mean,
                                                                     const Tensor& rstd, const Tensor& weight,
                                                                     const Tensor& bias, Mask mask) {
  const char* op = "native_layer_norm_backward";
  check_layer_norm(input, shape, weight, bias);
  check_parameter_types(op, input, {{"weight", weight}, {"bias", bias}});
  check_dtype(op, "grad_out", grad, input.dtype());
  check_sizes(op, "grad_out", grad, input.sizes());
  // A parameter that decided the type of the moments need not be among the arguments.
  check_parameter_types(op, input, {{"mean", mean}, {"rstd", rstd}});
  SymInt rows = 1;
  for (const SymInt& size : moment_sizes(input, shape)) rows = rows * size;
  check_numel(op, "mean", mean, rows);
  check_numel(op, "rstd", rstd, rows);
  DType type = weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : input.dtype();
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0]) std::get<0>(specs) = contiguous_spec(input.sizes(), input.dtype(), input.device());
  if (mask[1]) std::get<1>(specs) = contiguous_spec(shape, type, input.device());
  if (mask[2]) std::get<2>(specs) = contiguous_spec(shape, type, input.device());
  return specs;
}
void layer_norm_backward_into(const Tensor& grad, const Tensor& input, SymIntSpan shape, const Tensor& mean,
                              const Tensor& rstd, const Tensor& weight, const Tensor& bias, Mask,
                              const Tensor& dx, const Tensor& dw, const Tensor& db) {
  Tensor g = dense(grad), x = dense(input), m = dense(mean), r = dense(rstd), w = dense(weight),
         b = dense(bias);
  if (x.plain_numel() == 0) {
    for (const Tensor* t : {&dx, &dw, &db})
      if (t->defined()) fill_values(*t, 0);
    return;
  }
  cpu::layer_norm_backward(layer_norm_args(x, shape, w, b, m.dtype(), 0), bytes_or_null(g), bytes_or_null(m),
                           bytes_or_null(r), {bytes(dx), bytes(dw), bytes(db)});
}
Tensor layer_norm_composite(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias,
                            double eps, bool) {
  return std::get<0>(native_layer_norm(input, shape, weight, bias, eps));
}

// The derivative of the backward, by the formula written in operators.
Grads layer_norm_backward_vjp(const Vjp& v) {
  refuse_gradients(v, "native_layer_norm_backward", {{3, "mean"}, {4, "rstd"}});
  Tensor grad = v.input(0), input = v.input(1), mean_ = v.input(3), rstd = v.input(4);
  Tensor weight = v.has(5) ? v.input(5) : Tensor();
  auto holder = boxing::Unboxed<SymIntSpan>(v.arg(2));
  auto inner = static_cast<int64_t>(holder.get().size());
  Ints dims, outer;
  for (int64_t d = 0; d < input.dim(); ++d) (d >= input.dim() - inner ? dims : outer).push_back(d);
  // x^ = (x - m) r, dy = g w; gradients of (g, x, w) from those of dx = r (dy - <dy> - x^ <dy x^>), dw, db.
  Tensor normal = (input - mean_) * rstd, scaled = weight.defined() ? grad * weight : grad;
  auto average = [&](const Tensor& t) { return mean(t, dims, true); };
  Tensor g_scaled, g_normal, g_rstd, g_grad, g_weight;
  auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; };
  const Tensor &u = v.grad(0), &uw = v.grad(1), &ub = v.grad(2);
  if (u.defined()) {
    Tensor centered = u - average(u) - normal * average(u * normal);
    add_to(g_scaled, rstd * centered);
    add_to(g_normal, -rstd * (u * average(scaled * normal) + scaled * average(u * normal)));
    g_rstd = sum(u * (scaled - average(scaled) - normal * average(scaled * normal)), dims, true);
  }
  if (g_scaled.defined()) {
    g_grad = weight.defined() ? g_scaled * weight : g_scaled;
    if (weight.defined()) g_weight = outer.empty() ? g_scaled * grad : sum(g_scaled * grad, outer);
  }
  if (uw.defined()) {
    add_to(g_grad, normal * uw);
    add_to(g_normal, grad * uw);
  }
  if (ub.defined()) add_to(g_grad, expand(ub, grad.sizes()));
  // mean and rstd are functions of x: x^ = (x - m(x)) r(x), and dr/dx = -r^2 x^ / n.
  Tensor g_input;
  if (g_normal.defined())
    g_input = rstd * (g_normal - average(g_normal) - normal * average(g_normal * normal));
  if (g_rstd.defined()) {
    SymInt n = 1;
    for (const SymInt& size : holder.get()) n = n * size;
    add_to(g_input, -(g_rstd * rstd * rstd) * normal / Scalar(n));
  }
  return {g_grad, g_input, Tensor(), Tensor(), g_weight, Tensor()};
}

// --- batching --------------------------------------------------------------------------------------------

// The batch is one more dim in front of the rows, unless each example has parameters of its own.
Batched layer_norm_batch(const Batch& call) {
  const Tensor input = batch_first(call.tensor(0), call.batch_dim(0));
  auto shape = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  const int64_t moments_dim = call.batch_dim(0) < 0 ? -1 : 0;
  auto optional = [&](int argument) {
    return call.args()[static_cast<size_t>(argument)].is_none() ? Tensor() : call.tensor(argument);
  };
  const Tensor weight = optional(2), bias = optional(3);
  const double eps = call.arg<double>(4);
  if (call.batch_dim(2) < 0 && call.batch_dim(3) < 0) {
    auto [out, mean, rstd] = native_layer_norm(input, shape.get(), weight, bias, eps);
    return {Value::tuple({out, mean, rstd}), {0, moments_dim, moments_dim}};
  }
  auto [out, mean, rstd] = native_layer_norm(input, shape.get(), Tensor(), Tensor(), eps);
  static const Operator &times = operator_named("aten::mul.Tensor"),
                        &plus = operator_named("aten::add.Tensor");
  Batched scaled{out, {moments_dim}};
  if (weight.defined())
    scaled = call_pointwise(times, {scaled.result, weight}, {scaled.dims[0], call.batch_dim(2)});
  if (scaled.dims[0] == 0 && moments_dim < 0 && call.batch_dim(2) < 0) scaled.dims[0] = -1;
  if (bias.defined())
    scaled = call_pointwise(plus, {scaled.result, bias, 1}, {scaled.dims[0], call.batch_dim(3), -1});
  return {Value::tuple({scaled.result, mean, rstd}), {0, moments_dim, moments_dim}};
}

// Sums over the dims of the examples in front of those that are normalised.
Batched summed_rows(const Tensor& tensor, bool batched, int64_t normalized) {
  Ints rows;
  for (int64_t d = batched ? 1 : 0; d < tensor.dim() - normalized; ++d) rows.push_back(d);
  return {rows.empty() ? tensor : sum(tensor, rows), {batched ? 0 : -1}};
}

// Without parameters the rows of all examples are those of one call.
Batched layer_norm_backward_batch(const Batch& call) {
  auto shape = boxing::Unboxed<SymIntSpan>(call.args()[2]);
  const auto normalized = static_cast<int64_t>(shape.get().size());
  const bool has_weight = !call.args()[5].is_none(), has_bias = !call.args()[6].is_none();
  const Mask mask = call.arg<Mask>(7);
  static const Operator &minus = operator_named("aten::sub.Tensor"),
                        &times = operator_named("aten::mul.Tensor");
  auto of_two = [](const Operator& op, const Batched& a, const Batched& b) {
    const bool batched = a.dims[0] >= 0 || b.dims[0] >= 0;
    std::vector<Value> args{a.result, b.result};
    if (op.schema().arguments.size() > 2) args.push_back(1);
    Batched result = call_pointwise(op, args, {a.dims[0], b.dims[0], -1});
    if (!batched) result.dims[0] = -1;
    return result;
  };
  auto argument = [&](int i) { return Batched{call.args()[static_cast<size_t>(i)], {call.batch_dim(i)}}; };
  const Batched none{Tensor(), {-1}}, grad = argument(0), input = argument(1);
  auto front = [](const Batched& t) { return batch_first(t.result.to_tensor(), t.dims[0]); };
  Batched to_bias = none, to_weight = none, to_input = none;
  if (mask[2] && has_bias) to_bias = summed_rows(front(grad), grad.dims[0] >= 0, normalized);
  if (mask[1] && has_weight) {
    const Batched normal = of_two(times, of_two(minus, input, argument(3)), argument(4));
    const Batched share = of_two(times, normal, grad);
    to_weight = summed_rows(front(share), share.dims[0] >= 0, normalized);
  }
  if (mask[0]) {
    const Batched scaled = has_weight ? of_two(times, grad, argument(5)) : grad;
    auto whole = [&](const Batched& t) {
      return contiguous(with_batch_first(t.result.to_tensor(), t.dims[0], call.batch_size()));
    };
    const Tensor g = whole(scaled), x = whole(input), mean = whole(argument(3)), rstd = whole(argument(4));
    to_input = {std::get<0>(native_layer_norm_backward(g, x, shape.get(), mean, rstd, Tensor(), Tensor(),
                                                       Mask{true, false, false})),
                {0}};
  }
  std::vector<int64_t> dims;
  for (const Batched* part : {&to_input, &to_weight, &to_bias})
    if (part->result.to_tensor().defined()) dims.push_back(part->dims[0]);
  return {Value::tuple({to_input.result, to_weight.result, to_bias.result}), dims};
}

Samples layer_samples() {
  return {{"affine", {f64({3, 4}), ints({4}), f64({4}), f64({4}), 1e-5}},
          {"plain", {f64({2, 3, 4}), ints({3, 4}), Value(), Value(), 1e-5}},
          {"empty", {f64({0, 3}), ints({3}), f64({3}), f64({3}), 1e-5}}};
}

}  // namespace

WEFT_OPERATOR(native_layer_norm) = {
    .schema =
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
        "float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, "
        "float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), "
        "Tensor(c!))",
    .traits = Traits::kCore,
    .meta = function<&layer_norm_meta>(),
    .kernel = structured_exact<&layer_norm_meta, &layer_norm_into>(),
    .vjp = {.saves = inputs(0, 2, 3) | outputs(1, 2),
            .rule =
                [](const Vjp& v) {
                  auto shape = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  Tensor weight = v.has(2) ? v.input(2) : Tensor(), bias = v.has(3) ? v.input(3) : Tensor();
                  Mask mask{v.wants(0), v.has(2) && v.wants(2), v.has(3) && v.wants(3)};
                  auto [input, dw, db] = native_layer_norm_backward(
                      v.grad(0), v.input(0), shape.get(), v.output(1), v.output(2), weight, bias, mask);
                  return Grads{input, dw, db};
                },
            .differentiable_results = 1},
    .batch = layer_norm_batch,
    .samples = layer_samples,
};

WEFT_OPERATOR(native_layer_norm_backward) = {
    .schema =
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor "
        "mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_layer_norm_backward.out(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
        "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask, *, Tensor(a!) out0, "
        "Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .meta = function<&layer_norm_backward_meta>(),
    .kernel = structured_exact<&layer_norm_backward_meta, &layer_norm_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 3, 4, 5), .rule = layer_norm_backward_vjp},
    .batch = layer_norm_backward_batch,
    .decompose = function<&native_layer_norm_backward_parts>(),
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({3, 4}), f64({3, 4}), ints({4}), f64({3, 1}), positive({3, 1}), f64({4}),
                           f64({4}), Value::list({true, true, true})}}};
        },
};

WEFT_OPERATOR(layer_norm) = {
    .schema =
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
    .composite = {.functional = function<&layer_norm_composite>()},
    .samples = layer_samples,
};

}  // namespace weft::ops
