// Layer and batch normalisation.
#include "ops/cpu/layer_norm.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/reduction.h"

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
const char* bytes_or_null(const Tensor& t) { return t.defined() ? static_cast<const char*>(t.raw_data()) : nullptr; }
char* bytes(const Tensor& t) { return t.defined() ? static_cast<char*>(t.raw_data()) : nullptr; }

// --- layer norm ---------------------------------------------------------------------------------------------------------------

void check_layer_norm(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias) {
  require(!shape.empty(), "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {}", describe_sizes(shape));
  auto ends = static_cast<size_t>(input.dim());
  bool fits = ends >= shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = guard_or(input.sizes()[ends - shape.size() + i] == shape[i], true);
  require(fits, "Given normalized_shape={}, expected input with shape [*, {}], but got input of size {}", describe_sizes(shape), describe_sizes(shape), describe_sizes(input.sizes()));
  // Sizes that only data can tell are taken for equal, here as above.
  auto agree = [&](SymIntSpan sizes) {
    bool same = sizes.size() == shape.size();
    for (size_t i = 0; same && i < shape.size(); ++i) same = guard_or(sizes[i] == shape[i], true);
    return same;
  };
  for (const Tensor* t : {&weight, &bias})
    if (t->defined() && !agree(t->sizes()))
      fail("Expected weight and bias to be of same shape as normalized_shape, but got {} of shape {} and normalized_shape = {}", t == &weight ? "weight" : "bias",
           describe_sizes(t->sizes()), describe_sizes(shape));
  require(is_floating(input.dtype()), "\"LayerNormKernelImpl\" not implemented for '{}'", dtype_name(input.dtype()));
}
SymInts moment_sizes(const Tensor& input, SymIntSpan shape) {
  SymInts sizes(input.sizes());
  for (size_t i = sizes.size() - shape.size(); i < sizes.size(); ++i) sizes[i] = 1;
  return sizes;
}
DType moment_type(const Tensor& input, const Tensor& weight) { return weight.defined() ? promote(input.dtype(), weight.dtype()) : input.dtype(); }

std::tuple<TensorSpec, TensorSpec, TensorSpec> layer_norm_meta(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias, double) {
  check_layer_norm(input, shape, weight, bias);
  SymInts moments = moment_sizes(input, shape);
  DType type = moment_type(input, weight);
  return {contiguous_spec(input.sizes(), input.dtype(), input.device()), contiguous_spec(moments, type, input.device()), contiguous_spec(moments, type, input.device())};
}
cpu::LayerNormArgs layer_norm_args(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias, DType moments, double eps) {
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
void layer_norm_into(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias, double eps, const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  Tensor x = dense(input), w = dense(weight), b = dense(bias);
  cpu::layer_norm(layer_norm_args(x, shape, w, b, mean.dtype(), eps), bytes(out), bytes(mean), bytes(rstd));
}

std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> layer_norm_backward_meta(const Tensor&, const Tensor& input, SymIntSpan shape, const Tensor&, const Tensor&, const Tensor& weight,
                                                                     const Tensor& bias, Mask mask) {
  DType type = weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : input.dtype();
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0]) std::get<0>(specs) = contiguous_spec(input.sizes(), input.dtype(), input.device());
  if (mask[1]) std::get<1>(specs) = contiguous_spec(shape, type, input.device());
  if (mask[2]) std::get<2>(specs) = contiguous_spec(shape, type, input.device());
  return specs;
}
Tensor made(const MaybeSpec& spec) { return spec ? allocate(*spec) : Tensor(); }
std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_kernel(const Tensor& grad, const Tensor& input, SymIntSpan shape, const Tensor& mean, const Tensor& rstd,
                                                              const Tensor& weight, const Tensor& bias, Mask mask) {
  auto [in_spec, weight_spec, bias_spec] = layer_norm_backward_meta(grad, input, shape, mean, rstd, weight, bias, mask);
  Tensor g = dense(grad), x = dense(input), m = dense(mean), r = dense(rstd), w = dense(weight), b = dense(bias);
  std::tuple<Tensor, Tensor, Tensor> results{made(in_spec), made(weight_spec), made(bias_spec)};
  auto& [dx, dw, db] = results;
  if (x.plain_numel() == 0) {
    for (const Tensor* t : {&dx, &dw, &db})
      if (t->defined()) fill_values(*t, 0);
    return results;
  }
  cpu::layer_norm_backward(layer_norm_args(x, shape, w, b, m.dtype(), 0), bytes_or_null(g), bytes_or_null(m), bytes_or_null(r), {bytes(dx), bytes(dw), bytes(db)});
  return results;
}
Tensor layer_norm_composite(const Tensor& input, SymIntSpan shape, const Tensor& weight, const Tensor& bias, double eps, bool) {
  return std::get<0>(native_layer_norm(input, shape, weight, bias, eps));
}

// The derivative of the backward, by the formula written in operators.
Grads layer_norm_backward_vjp(const Vjp& v) {
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
  if (g_normal.defined()) g_input = rstd * (g_normal - average(g_normal) - normal * average(g_normal * normal));
  if (g_rstd.defined()) add_to(g_input, -(g_rstd * rstd * rstd) * normal / Scalar(input.numel() / rstd.numel()));
  return {g_grad, g_input, Tensor(), Tensor(), g_weight, Tensor()};
}

// --- batch norm -----------------------------------------------------------------------------------------------------------------

void check_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool training) {
  require(input.dim() >= 2, "batch_norm: expected an input of at least 2 dims [N, C, ...], but got {}", describe(input));
  require(is_floating(input.dtype()), "\"batch_norm\" not implemented for '{}'", dtype_name(input.dtype()));
  const char* names[] = {"weight", "bias", "running_mean", "running_var"};
  const Tensor* tensors[] = {&weight, &bias, &mean, &var};
  for (size_t i = 0; i < 4; ++i)
    if (tensors[i]->defined() && !guard_or(tensors[i]->numel() == input.sizes()[1], true))
      fail("{} should contain {} elements not {}", names[i], input.sizes()[1].to_string(), tensors[i]->numel().to_string());
  require(training || (mean.defined() && var.defined()), "running_mean and running_var must be defined in evaluation mode");
}
SymInts same_layout(const Tensor& input) {
  bool last = input.dim() == 4 && input.is_contiguous(MemoryFormat::kChannelsLast) && !input.is_contiguous();
  return last ? strides_of_format(input.sizes(), MemoryFormat::kChannelsLast) : contiguous_strides(input.sizes());
}
DType statistics_type(const Tensor& input, const Tensor& weight, const Tensor& mean) {
  if (weight.defined()) return weight.dtype();
  return mean.defined() ? mean.dtype() : input.dtype();
}
std::tuple<TensorSpec, TensorSpec, TensorSpec> batch_norm_meta(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
                                                               bool training, double, double) {
  check_batch_norm(input, weight, bias, mean, var, training);
  SymInts saved{training ? input.sizes()[1] : SymInt(0)};
  DType type = statistics_type(input, weight, mean);
  return {TensorSpec{input.dtype(), input.device(), SymInts(input.sizes()), same_layout(input)}, contiguous_spec(saved, type, input.device()), contiguous_spec(saved, type, input.device())};
}
Tensor along_channels(const Tensor& t, int64_t rank) {
  SymInts sizes(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 0);
  sizes[1] = t.sizes()[0];
  strides[1] = t.strides()[0];
  return alias_with(t, sizes, strides, t.storage_offset());
}
uint64_t all_but_channels(const Tensor& input) { return ((uint64_t{1} << input.dim()) - 1) & ~uint64_t{2}; }
DType wide(DType dtype) { return dtype == kFloat64 ? kFloat64 : kFloat32; }

// running = (1 - momentum) * running + momentum * observed. As in PyTorch, the schema does not call this a write, and
// no version is counted: the backward pass of training does not read the running statistics.
void update_running(const Tensor& running, const Tensor& observed, double momentum) {
  if (!running.defined()) return;
  Tensor weight = wrapped_number(momentum);
  run_pointwise(cpu::kLerp, running.dtype(), running, {&running, &observed, &weight});
}
void batch_norm_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
                     double eps, const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd) {
  DType type = wide(input.dtype());
  SymInts channels{input.sizes()[1]};
  Tensor mean_ = allocate_contiguous(channels, type), var_ = allocate_contiguous(channels, type), eps_number = wrapped_number(eps), invstd = allocate_contiguous(channels, type);
  if (training) {
    run_reduction(cpu::kVarMean, type, input, all_but_channels(input), {&var_, &mean_}, 0);
    int64_t n = input.plain_numel() / std::max<int64_t>(input.plain_sizes()[1], 1);
    Tensor unbiased = allocate_contiguous(channels, type), factor = wrapped_number(n > 1 ? static_cast<double>(n) / static_cast<double>(n - 1) : std::numeric_limits<double>::infinity());
    run_pointwise(cpu::kMul, type, unbiased, {&var_, &factor});
    update_running(running_mean, mean_, momentum);
    update_running(running_var, unbiased, momentum);
  } else {
    copy_values(mean_, running_mean);
    copy_values(var_, running_var);
  }
  run_pointwise(cpu::kAdd, type, invstd, {&var_, &eps_number});
  run_pointwise(cpu::kRsqrt, type, invstd, {&invstd});
  if (training) {
    copy_values(save_mean, mean_);
    copy_values(save_invstd, invstd);
  }
  // out = input * scale + shift, with scale and shift for each channel.
  Tensor scale = allocate_contiguous(channels, type), shift = allocate_contiguous(channels, type), zero = wrapped_number(0);
  if (weight.defined()) run_pointwise(cpu::kMul, type, scale, {&invstd, &weight});
  else copy_values(scale, invstd);
  run_pointwise(cpu::kMul, type, shift, {&mean_, &scale});
  run_pointwise(cpu::kSub, type, shift, {bias.defined() ? &bias : &zero, &shift});
  Tensor scaled = out.dtype() == type ? out : allocate({type, out.device(), SymInts(out.sizes()), SymInts(out.strides())});
  Tensor s = along_channels(scale, input.dim()), h = along_channels(shift, input.dim());
  run_pointwise(cpu::kMul, type, scaled, {&input, &s});
  run_pointwise(cpu::kAdd, type, scaled, {&scaled, &h});
  if (!scaled.is_same(out)) copy_values(out, scaled);
}

std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> batch_norm_backward_meta(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor& running_mean, const Tensor&,
                                                                     const Tensor& save_mean, const Tensor&, bool, double, Mask mask) {
  DType type = statistics_type(input, weight, running_mean.defined() ? running_mean : save_mean);
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0]) std::get<0>(specs) = TensorSpec{input.dtype(), input.device(), SymInts(input.sizes()), same_layout(input)};
  if (mask[1]) std::get<1>(specs) = contiguous_spec({input.sizes()[1]}, type, input.device());
  if (mask[2]) std::get<2>(specs) = contiguous_spec({input.sizes()[1]}, type, input.device());
  return specs;
}
// The formula on plain tensors, in the wide type; the caller has no layers left.
std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean_, const Tensor& invstd, bool train) {
  int64_t rank = input.dim();
  Ints dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  SymInts shape(static_cast<size_t>(rank), 1);
  shape[1] = input.size(1);
  Tensor m = view(mean_, shape), r = view(invstd, shape);
  Tensor normal = (input - m) * r;
  Tensor to_bias = sum(grad, dims), to_weight = sum(grad * normal, dims);
  Tensor scale = weight.defined() ? r * view(weight, shape) : r;
  Tensor to_input = grad * scale;
  if (train) {
    Scalar n(input.numel() / input.size(1));
    to_input = scale * (grad - view(to_bias, shape) / n - normal * (view(to_weight, shape) / n));
  }
  return {to_input, to_weight, to_bias};
}
std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& running_mean, const Tensor& running_var,
                                                              const Tensor& save_mean, const Tensor& save_invstd, bool train, double eps, Mask mask) {
  auto [in_spec, weight_spec, bias_spec] = batch_norm_backward_meta(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask);
  DType type = wide(input.dtype());
  Tensor m = (train ? save_mean : running_mean).to(type), r = train ? save_invstd.to(type) : rsqrt(running_var.to(type) + eps);
  auto [dx, dw, db] = batch_norm_gradients(grad.to(type), input.to(type), weight.defined() ? weight.to(type) : weight, m, r, train);
  auto finish = [](const MaybeSpec& spec, const Tensor& value) {
    if (!spec) return Tensor();
    Tensor result = allocate(*spec);
    copy_values(result, value);
    return result;
  };
  return {finish(in_spec, dx), finish(weight_spec, dw), finish(bias_spec, db)};
}
Tensor batch_norm_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool training, double momentum, double eps, bool) {
  return std::get<0>(native_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
}
// Differentiates the formula itself: its parts are operators.
Grads batch_norm_backward_vjp(const Vjp& v) {
  bool train = v.arg<bool>(7);
  Tensor grad = v.input(0), input = v.input(1), weight = v.has(2) ? v.input(2) : Tensor();
  Tensor running_mean = v.has(3) ? v.input(3) : Tensor(), running_var = v.has(4) ? v.input(4) : Tensor();
  double eps = v.arg<double>(8);
  int64_t rank = input.dim();
  Ints dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  SymInts shape(static_cast<size_t>(rank), 1);
  shape[1] = input.size(1);
  auto average = [&](const Tensor& t) { return mean(t, dims, true); };
  Tensor m = train ? average(input) : view(running_mean, shape);
  Tensor r = rsqrt((train ? average((input - m) * (input - m)) : view(running_var, shape)) + eps);
  Tensor normal = (input - m) * r, w = weight.defined() ? view(weight, shape) : Tensor();
  const Tensor &u = v.grad(0), &uw = v.grad(1), &ub = v.grad(2);
  Tensor g_grad, g_normal, g_input, g_weight;
  auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; };
  if (u.defined()) {
    Tensor scale = w.defined() ? r * w : r;
    if (!train) {
      add_to(g_grad, u * scale);
      if (w.defined()) g_weight = sum(u * grad * r, dims);
    } else {
      Tensor centered = u - average(u) - normal * average(u * normal);
      Tensor slope = grad - average(grad) - normal * average(grad * normal);
      add_to(g_grad, scale * centered);
      add_to(g_normal, -scale * (u * average(grad * normal) + grad * average(u * normal)));
      if (w.defined()) g_weight = sum(u * r * slope, dims);
      Tensor g_r = sum(u * slope * (w.defined() ? w : ones_like(r)), dims, true);
      g_input = -(g_r * r * r) * normal / Scalar(input.numel() / input.size(1));
    }
  }
  if (uw.defined()) {
    add_to(g_grad, normal * view(uw, shape));
    add_to(g_normal, grad * view(uw, shape));
  }
  if (ub.defined()) add_to(g_grad, expand(view(ub, shape), grad.sizes()));
  if (g_normal.defined()) add_to(g_input, train ? r * (g_normal - average(g_normal) - normal * average(g_normal * normal)) : r * g_normal);
  return {g_grad, g_input, g_weight, Tensor(), Tensor(), Tensor(), Tensor()};
}

Value ints(std::initializer_list<int64_t> values) { return Value::list_of(std::vector<int64_t>(values)); }
Samples layer_samples() { return {{"affine", {f64({3, 4}), ints({4}), f64({4}), f64({4}), 1e-5}}, {"plain", {f64({2, 3, 4}), ints({3, 4}), Value(), Value(), 1e-5}}}; }
Samples batch_samples() {
  return {{"train", {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), true, 0.1, 1e-5}}, {"eval", {f64({4, 3}), f64({3}), f64({3}), f64({3}), positive({3}), false, 0.1, 1e-5}},
          {"bare", {f64({4, 3}), Value(), Value(), Value(), Value(), true, 0.1, 1e-5}}};
}

}  // namespace

WEFT_OPERATOR(native_layer_norm) = {
    .schema = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    .out = "aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .traits = Traits::kAutocastWide,
    .meta = function<&layer_norm_meta>(),
    .kernel = structured<&layer_norm_meta, &layer_norm_into>(),
    .vjp = {.saves = inputs(0, 2) | outputs(1, 2) | sizes(3),
            .rule = [](const Vjp& v) {
              auto shape = boxing::Unboxed<SymIntSpan>(v.arg(1));
              Tensor weight = v.has(2) ? v.input(2) : Tensor();
              Mask mask{v.wants(0), v.has(2) && v.wants(2), v.has(3) && v.wants(3)};
              auto [input, dw, db] = native_layer_norm_backward(v.grad(0), v.input(0), shape.get(), v.output(1), v.output(2), weight, Tensor(), mask);
              return Grads{input, dw, db};
            },
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples = layer_samples,
};

WEFT_OPERATOR(native_layer_norm_backward) = {
    .schema = "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .meta = function<&layer_norm_backward_meta>(),
    .kernel = {.functional = function<&layer_norm_backward_kernel>()},
    .vjp = {.saves = inputs(0, 1, 3, 4, 5), .rule = layer_norm_backward_vjp},
    .batch = loop_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), f64({3, 4}), ints({4}), f64({3, 1}), positive({3, 1}), f64({4}), f64({4}), Value::list({true, true, true})}}}; },
};

WEFT_OPERATOR(layer_norm) = {
    .schema = "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
    .composite = {.functional = function<&layer_norm_composite>()},
    .samples = layer_samples,
};

WEFT_OPERATOR(native_batch_norm) = {
    .schema = "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .out = "aten::native_batch_norm.out(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .meta = function<&batch_norm_meta>(),
    .kernel = structured<&batch_norm_meta, &batch_norm_into>(),
    .vjp = {.saves = inputs(0, 1, 3, 4) | outputs(1, 2) | sizes(2),
            .rule = [](const Vjp& v) {
              auto maybe = [&](int i) { return v.has(i) ? v.input(i) : Tensor(); };
              Mask mask{v.wants(0), v.has(1) && v.wants(1), v.has(2) && v.wants(2)};
              auto [input, weight, bias] = native_batch_norm_backward(v.grad(0), v.input(0), maybe(1), maybe(3), maybe(4), v.output(1), v.output(2), v.arg<bool>(5), v.arg<double>(7), mask);
              return Grads{input, weight, bias, Tensor(), Tensor()};
            },
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples = batch_samples,
};

WEFT_OPERATOR(native_batch_norm_backward) = {
    .schema = "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .meta = function<&batch_norm_backward_meta>(),
    .kernel = {.functional = function<&batch_norm_backward_kernel>()},
    .vjp = {.saves = inputs(0, 1, 2, 3, 4), .rule = batch_norm_backward_vjp},
    .batch = loop_batch,
    .samples = [] { return Samples{{"train", {f64({4, 3}), f64({4, 3}), f64({3}), f64({3}), positive({3}), f64({3}), positive({3}), true, 1e-5, Value::list({true, true, true})}}}; },
};

WEFT_OPERATOR(batch_norm) = {
    .schema = "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .composite = {.functional = function<&batch_norm_composite>()},
    .samples = [] { return Samples{{"train", {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), true, 0.1, 1e-5, false}}}; },
};

}  // namespace weft::ops
