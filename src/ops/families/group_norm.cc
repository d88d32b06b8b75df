// Group normalisation, and instance normalisation, which is the batch's of one sample.
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using Mask = std::array<bool, 3>;
using MaybeSpec = std::optional<TensorSpec>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// --- checks ----------------------------------------------------------------------------------------------

void check_groups(const Tensor& input, const Tensor& weight, const Tensor& bias, const SymInt& channels,
                  int64_t groups) {
  require(groups > 0, "Expected num groups to be greater than 0, got {}", groups);
  if (!guard_or(mod(channels, groups) == 0, true))
    fail(
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {} and "
        "num_groups={}",
        describe_sizes(input.sizes()), groups);
  for (const Tensor* t : {&weight, &bias}) {
    bool fits = !t->defined() || (t->dim() == 1 && guard_or(t->numel() == channels, true));
    if (!fits)
      fail(
          "Expected {} to be a vector of size equal to the number of channels in input, but got {} of shape "
          "{} and input of shape {}",
          t == &weight ? "weight" : "bias", t == &weight ? "weight" : "bias", describe_sizes(t->sizes()),
          describe_sizes(input.sizes()));
  }
}
// f32 weights beside a 16-bit input keep the statistics in f32; other mixtures are refused.
DType statistics_type(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  require(is_floating(input.dtype()), "\"GroupNormKernelImpl\" not implemented for '{}'",
          dtype_name(input.dtype()));
  bool narrow = input.dtype() == kFloat16 || input.dtype() == kBFloat16, mixed = false;
  for (const Tensor* t : {&weight, &bias})
    if (t->defined() && t->dtype() != input.dtype()) {
      require(narrow && t->dtype() == kFloat32,
              "mixed dtype (CPU): all inputs must share same datatype, but got {} beside {}", describe(*t),
              describe(input));
      mixed = true;
    }
  return mixed ? kFloat32 : input.dtype();
}
TensorSpec image_spec(const Tensor& input) {
  return {input.dtype(), input.device(), SymInts(input.sizes()),
          strides_of_format(input.sizes(), suggested_format(input))};
}

// --- forward ---------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec, TensorSpec> group_norm_meta(const Tensor& input, const Tensor& weight,
                                                               const Tensor& bias, const SymInt& n,
                                                               const SymInt& channels, const SymInt& pixels,
                                                               int64_t groups, double) {
  check_groups(input, weight, bias, channels, groups);
  if (!guard_or(input.numel() == n * channels * pixels, true))
    fail("native_group_norm: expected {} to have N * C * HxW = {} elements", describe(input),
         (n * channels * pixels).to_string());
  DType type = statistics_type(input, weight, bias);
  TensorSpec moments = contiguous_spec({n, SymInt(groups)}, type, input.device());
  return {image_spec(input), moments, moments};
}

// Row-major memory seen with other sizes.
Tensor seen_as(const Tensor& dense, SymIntSpan sizes) {
  return alias_with(dense, sizes, contiguous_strides(sizes), dense.storage_offset());
}
// `moments` of [N, groups] broadcast over the channels of each group: [N, groups, channels of a group].
Tensor over_channels(const Tensor& moments) {
  SymIntSpan sizes = moments.sizes(), strides = moments.strides();
  return alias_with(moments, SymInts{sizes[0], sizes[1], 1}, SymInts{strides[0], strides[1], 0},
                    moments.storage_offset());
}

void group_norm_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const SymInt& n,
                     const SymInt& channels, const SymInt& pixels, int64_t groups, double eps,
                     const Tensor& out, const Tensor& mean, const Tensor& rstd) {
  DType type = wide_type(input.dtype());
  SymInt per_group = channels.plain() / groups, wide_groups = groups;
  Tensor x = dense_as(input, input.dtype());
  Tensor mean_ = allocate_contiguous({n, wide_groups}, type),
         rstd_ = allocate_contiguous({n, wide_groups}, type), eps_ = wrapped_number(eps);
  run_reduction(cpu::kVarMean, type, seen_as(x, {n, wide_groups, per_group * pixels}), 4, {&rstd_, &mean_},
                0);
  run_pointwise(cpu::kAdd, type, rstd_, {&rstd_, &eps_});
  run_pointwise(cpu::kRsqrt, type, rstd_, {&rstd_});
  copy_values(mean, mean_);
  copy_values(rstd, rstd_);
  // out = input * scale + shift, with scale and shift for each channel of each sample.
  Tensor scale = allocate_contiguous({n, wide_groups, per_group}, type),
         shift = allocate_contiguous({n, wide_groups, per_group}, type), one = wrapped_number(1),
         zero = wrapped_number(0);
  auto by_group = [&](const Tensor& t, const Tensor& otherwise) {
    return t.defined() ? seen_as(dense_as(t, t.dtype()), {wide_groups, per_group}) : otherwise;
  };
  Tensor w = by_group(weight, one), b = by_group(bias, zero), r = over_channels(rstd_),
         m = over_channels(mean_);
  run_pointwise(cpu::kMul, type, scale, {&r, &w});
  run_pointwise(cpu::kMul, type, shift, {&m, &scale});
  run_pointwise(cpu::kSub, type, shift, {&b, &shift});
  SymInts by_channel{n, channels, 1};
  Tensor s = seen_as(scale, by_channel), h = seen_as(shift, by_channel);
  const cpu::ParamValue once(1.0);
  write_dense(out, [&](const Tensor& dense) {
    Tensor y = seen_as(dense, {n, channels, pixels}), planes = seen_as(x, {n, channels, pixels});
    run_pointwise(cpu::kAddCMul, type, y, {&h, &planes, &s}, {&once, 1});
  });
}

Tensor group_norm_composite(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                            double eps, bool) {
  require(input.dim() >= 2, "group_norm: expected an input of at least 2 dims [N, C, ...], but got {}",
          describe(input));
  check_groups(input, weight, bias, input.sizes()[1], groups);
  SymInt pixels = 1;
  for (const SymInt& size : input.sizes().subspan(2)) pixels = pixels * size;
  Tensor laid_out = contiguous(input, suggested_format(input));
  return std::get<0>(native_group_norm(laid_out, weight.defined() ? contiguous(weight) : weight,
                                       bias.defined() ? contiguous(bias) : bias, input.sizes()[0],
                                       input.sizes()[1], pixels, groups, eps));
}

// --- backward --------------------------------------------------------------------------------------------

std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> backward_meta(const Tensor& grad, const Tensor& input,
                                                          const Tensor& mean, const Tensor& rstd,
                                                          const Tensor& weight, const SymInt& n,
                                                          const SymInt& channels, const SymInt& pixels,
                                                          int64_t groups, Mask mask) {
  const char* op = "native_group_norm_backward";
  check_groups(input, weight, Tensor(), channels, groups);
  require(is_floating(input.dtype()), "\"GroupNormBackwardKernelImpl\" not implemented for '{}'",
          dtype_name(input.dtype()));
  check_dtype(op, "grad_out", grad, input.dtype());
  check_parameter_types(op, input, {{"mean", mean}, {"rstd", rstd}});
  check_parameter_types(op, input, {{"weight", weight}});
  SymInt elements = n * channels * pixels;
  check_numel(op, "grad_out", grad, elements);
  check_numel(op, "input", input, elements);
  check_numel(op, "mean", mean, n * groups);
  check_numel(op, "rstd", rstd, n * groups);
  DType type = weight.defined() ? weight.dtype() : mean.dtype();
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0]) std::get<0>(specs) = image_spec(input);
  if (mask[1]) std::get<1>(specs) = contiguous_spec({channels}, type, input.device());
  if (mask[2]) std::get<2>(specs) = contiguous_spec({channels}, type, input.device());
  return specs;
}

// Tensors of a call as [N, groups, channels of a group, pixels], for formulas in operators.
struct Grouped {
  SymInt n, channels, pixels;
  int64_t groups;

  Tensor image(const Tensor& t) const {
    return reshape(t, {n, SymInt(groups), floor_div(channels, groups), pixels});
  }
  Tensor moments(const Tensor& t) const { return reshape(t, {n, SymInt(groups), 1, 1}); }
  Tensor vector(const Tensor& t) const {
    return reshape(t, {SymInt(1), SymInt(groups), floor_div(channels, groups), 1});
  }
  // Means over what is normalised together; sums over what shares a weight.
  Tensor average(const Tensor& t) const { return mean(t, {2, 3}, true); }
  Tensor total(const Tensor& t) const { return reshape(sum(t, {0, 3}), {channels}); }
  Scalar count() const { return Scalar(floor_div(channels, groups) * pixels); }
};

// dx = r (dy - <dy> - x^ <dy x^>), dw = sum g x^, db = sum g; with x^ = (x - m) r and dy = g w.
struct Gradients {
  Tensor input, weight, bias;
};
Gradients gradients_of(const Grouped& view, const Tensor& grad, const Tensor& input, const Tensor& mean_,
                       const Tensor& rstd, const Tensor& weight, Mask mask) {
  Tensor g = view.image(grad), r = view.moments(rstd), normal = (view.image(input) - view.moments(mean_)) * r;
  Gradients result;
  if (mask[0]) {
    Tensor scaled = weight.defined() ? g * view.vector(weight) : g;
    result.input =
        reshape(r * (scaled - view.average(scaled) - normal * view.average(scaled * normal)), input.sizes());
  }
  if (mask[1]) result.weight = view.total(g * normal);
  if (mask[2]) result.bias = view.total(g);
  return result;
}
void backward_into(const Tensor& grad, const Tensor& input, const Tensor& mean_, const Tensor& rstd,
                   const Tensor& weight, const SymInt& n, const SymInt& channels, const SymInt& pixels,
                   int64_t groups, Mask mask, const Tensor& dx, const Tensor& dw, const Tensor& db) {
  if (input.plain_numel() == 0) {
    for (const Tensor* result : {&dx, &dw, &db})
      if (result->defined()) fill_values(*result, 0);
    return;
  }
  DType type = wide_type(input.dtype());
  Gradients g = gradients_of({n, channels, pixels, groups}, grad.to(type), input.to(type), mean_.to(type),
                             rstd.to(type), weight.defined() ? weight.to(type) : weight, mask);
  if (dx.defined()) copy_values(dx, g.input);
  if (dw.defined()) copy_values(dw, g.weight);
  if (db.defined()) copy_values(db, g.bias);
}

void add_to(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

// The statistics are results too: dm/dx = 1/n, dr/dx = -r^2 x^ / n.
Grads group_norm_vjp(const Vjp& v) {
  Grouped view{v.arg<SymInt>(3), v.arg<SymInt>(4), v.arg<SymInt>(5), v.arg<int64_t>(6)};
  const bool of_statistics = v.grad(1).defined() || v.grad(2).defined();
  // A sum of products of five factors would lose too many bits of a 16-bit type.
  auto wide = [&](const Tensor& t) { return of_statistics ? widened(t) : t; };
  Tensor input = wide(v.input(0)), mean_ = wide(v.output(1)), rstd = wide(v.output(2)),
         weight = v.has(1) ? wide(v.input(1)) : Tensor();
  Mask mask{v.wants(0), v.has(1) && v.wants(1), v.has(2) && v.wants(2)};
  Tensor dx, dw, db;
  if (v.grad(0).defined()) {
    // Its own derivative knows that the statistics are functions of the input.
    Tensor m = mean_.detach(), r = rstd.detach();
    std::tie(dx, dw, db) = native_group_norm_backward(wide(v.grad(0)), input, m, r, weight, view.n,
                                                      view.channels, view.pixels, view.groups, mask);
  }
  if (mask[0] && of_statistics) {
    Tensor m = view.moments(mean_), r = view.moments(rstd), total;
    if (v.grad(1).defined()) total = view.moments(wide(v.grad(1)));
    if (v.grad(2).defined())
      total = -view.moments(wide(v.grad(2))) * r * r * r * (view.image(input) - m) +
              (total.defined() ? total : zeros_like(m));
    Tensor spread = expand(total / view.count(), view.image(input).sizes());
    add_to(dx, reshape(spread, input.sizes()));
  }
  return {dx, dw, db};
}

// The derivative of the backward, by the formula written in operators. Statistics are functions of the input.
Grads backward_vjp(const Vjp& v) {
  refuse_gradients(v, "native_group_norm_backward", {{2, "mean"}, {3, "rstd"}});
  Grouped view{v.arg<SymInt>(5), v.arg<SymInt>(6), v.arg<SymInt>(7), v.arg<int64_t>(8)};
  Tensor grad = view.image(v.input(0)), input = view.image(v.input(1)), r = view.moments(v.input(3)),
         normal = (input - view.moments(v.input(2))) * r;
  Tensor weight = v.has(4) ? view.vector(v.input(4)) : Tensor(),
         scaled = weight.defined() ? grad * weight : grad;
  Tensor to_scaled, to_normal, to_rstd, to_grad, to_input, to_weight;
  if (v.grad(0).defined()) {
    Tensor u = view.image(v.grad(0));
    to_scaled = r * (u - view.average(u) - normal * view.average(u * normal));
    to_normal = -r * (u * view.average(scaled * normal) + scaled * view.average(u * normal));
    to_rstd = sum(u * (scaled - view.average(scaled) - normal * view.average(scaled * normal)), {2, 3}, true);
    to_grad = weight.defined() ? to_scaled * weight : to_scaled;
    if (weight.defined()) to_weight = view.total(to_scaled * grad);
  }
  if (v.grad(1).defined()) {
    Tensor u = view.vector(v.grad(1));
    add_to(to_grad, normal * u);
    add_to(to_normal, grad * u);
  }
  if (v.grad(2).defined()) add_to(to_grad, expand(view.vector(v.grad(2)), grad.sizes()));
  if (to_normal.defined())
    to_input = r * (to_normal - view.average(to_normal) - normal * view.average(to_normal * normal));
  if (to_rstd.defined()) add_to(to_input, -(to_rstd * r * r) * normal / view.count());
  auto shaped = [&](const Tensor& t) { return t.defined() ? reshape(t, v.input(1).sizes()) : t; };
  return {shaped(to_grad), shaped(to_input), Tensor(), Tensor(), to_weight};
}

// Samples are normalised each by itself: the batch dim joins them, unless weights have one of their own.
Batched group_norm_batch(const Batch& call) {
  if (call.batch_dim(1) >= 0 || call.batch_dim(2) >= 0) return loop_batch(call);
  std::vector<Value> args(call.args().begin(), call.args().end());
  SymInt size = call.batch_size();
  Tensor input = batch_first(call.tensor(0), call.batch_dim(0));
  args[0] = flatten(input, 0, 1);
  args[3] = call.arg<SymInt>(3) * size;
  Value results = weft::call(call.op(), args);
  ValueList split;
  for (const Value& result : results.elements()) {
    Tensor t = result.to_tensor();
    SymInts sizes{size, call.arg<SymInt>(3)};
    for (const SymInt& rest : t.sizes().subspan(1)) sizes.push_back(rest);
    split.push_back(reshape(t, sizes));
  }
  return {Value::tuple(std::move(split)), {0, 0, 0}};
}

// --- instance norm ---------------------------------------------------------------------------------------

Tensor repeated(const Tensor& t, const SymInt& times) {
  if (!t.defined()) return t;
  return reshape(expand(unsqueeze(t, 0), {times, t.numel()}), {times * t.numel()});
}
Tensor instance_norm_composite(const Tensor& input, const Tensor& weight, const Tensor& bias,
                               const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                               double momentum, double eps, bool cudnn_enabled) {
  require(use_input_stats || (running_mean.defined() && running_var.defined()),
          "Expected running_mean and running_var to be defined when use_input_stats is false");
  require(input.dim() >= 2, "instance_norm: expected an input of at least 2 dims [N, C, ...], but got {}",
          describe(input));
  SymInt n = input.sizes()[0], channels = input.sizes()[1];
  SymInts joined(input.sizes());
  joined[0] = 1;
  joined[1] = n * channels;
  Tensor mean_ = repeated(running_mean, n), var_ = repeated(running_var, n);
  Tensor out = batch_norm(view(contiguous(input), joined), repeated(weight, n), repeated(bias, n), mean_,
                          var_, use_input_stats, momentum, eps, cudnn_enabled);
  // Every sample has its own statistics; what is kept is their mean. An alias, since the schema says that
  // these are only read.
  auto keep = [&](const Tensor& running, const Tensor& each) {
    if (running.defined()) copy_(alias(running), mean(view(each, {n, channels}), {0}, false));
  };
  keep(running_mean, mean_);
  keep(running_var, var_);
  return view(out, input.sizes());
}

Value all_three() { return Value::list({true, true, true}); }

}  // namespace

WEFT_OPERATOR(native_group_norm) = {
    .schema =
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, "
        "int group, float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_group_norm.out(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt "
        "HxW, int group, float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
        "Tensor(b!), Tensor(c!))",
    .traits = Traits::kCore,
    .meta = function<&group_norm_meta>(),
    .kernel = structured_exact<&group_norm_meta, &group_norm_into>(),
    .vjp = {.saves = inputs(0, 1) | outputs(1, 2) | sizes(2), .rule = group_norm_vjp},
    .batch = group_norm_batch,
    .samples =
        [] {
          return Samples{{"affine", {f64({2, 4, 3}), f64({4}), f64({4}), 2, 4, 3, 2, 1e-5}},
                         {"plain", {f64({2, 6}), Value(), Value(), 2, 6, 1, 3, 1e-5}},
                         {"image", {f32({1, 4, 2, 3}), f32({4}), Value(), 1, 4, 6, 1, 1e-5}}};
        },
};

WEFT_OPERATOR(native_group_norm_backward) = {
    .schema =
        "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? "
        "weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_group_norm_backward.out(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
        "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask, *, Tensor(a!) out0, "
        "Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .meta = function<&backward_meta>(),
    .kernel = structured_exact<&backward_meta, &backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2, 3, 4), .rule = backward_vjp},
    .batch = loop_batch,
    .decompose = function<&native_group_norm_backward_parts>(),
    .samples =
        [] {
          return Samples{
              {"affine",
               {f64({2, 4, 3}), f64({2, 4, 3}), f64({2, 2}), positive({2, 2}), f64({4}), 2, 4, 3, 2,
                all_three()}},
              {"plain",
               {f32({2, 6}), f32({2, 6}), f32({2, 3}), f32({2, 3}), Value(), 2, 6, 1, 3, all_three()}}};
        },
};

WEFT_OPERATOR(group_norm) = {
    .schema =
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
    .composite = {.functional = function<&group_norm_composite>()},
    .samples =
        [] {
          return Samples{{"affine", {f64({2, 4, 3}), 2, f64({4}), f64({4})}},
                         {"plain", {f64({2, 6}), 3}},
                         {"transposed", {transposed(f64({2, 4, 3})), 1}}};
        },
};

WEFT_OPERATOR(instance_norm) = {
    .schema =
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .composite = {.functional = function<&instance_norm_composite>()},
    .samples =
        [] {
          return Samples{
              {"affine", {f64({2, 3, 4}), f64({3}), f64({3}), Value(), Value(), true, 0.1, 1e-5, false}},
              {"bare", {f64({2, 3, 2, 2}), Value(), Value(), Value(), Value(), true, 0.1, 1e-5, false}}};
        },
};

}  // namespace weft::ops
