// Batch normalisation.
#include <algorithm>
#include <iterator>

#include "ops/decompositions/decompositions.h"
#include "ops/silent_mutation.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using Mask = std::array<bool, 3>;
using MaybeSpec = std::optional<TensorSpec>;

void check_batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, bool training) {
  require(input.dim() >= 2, "batch_norm: expected an input of at least 2 dims [N, C, ...], but got {}",
          describe(input));
  require(is_floating(input.dtype()), "\"batch_norm\" not implemented for '{}'", dtype_name(input.dtype()));
  const char* names[] = {"weight", "bias", "running_mean", "running_var"};
  const Tensor* tensors[] = {&weight, &bias, &mean, &var};
  for (size_t i = 0; i < 4; ++i)
    if (tensors[i]->defined() && !guard_or(tensors[i]->numel() == input.sizes()[1], true))
      fail("{} should contain {} elements not {}", names[i], input.sizes()[1].to_string(),
           tensors[i]->numel().to_string());
  require(training || (mean.defined() && var.defined()),
          "running_mean and running_var must be defined in evaluation mode");
  for (size_t i = 2; i < 4; ++i)
    if (tensors[i]->defined() && tensors[i]->dim() != 1)
      fail("batch_norm: expected {} to be 1-dimensional, but got {}", names[i], describe(*tensors[i]));
}
SymInts same_layout(const Tensor& input) {
  bool last = input.dim() == 4 && !input.is_contiguous() &&
              (input.is_contiguous(MemoryFormat::kChannelsLast) ||
               suggested_format(input) == MemoryFormat::kChannelsLast);
  return last ? strides_of_format(input.sizes(), MemoryFormat::kChannelsLast)
              : contiguous_strides(input.sizes());
}
std::tuple<TensorSpec, TensorSpec, TensorSpec> batch_norm_meta(const Tensor& input, const Tensor& weight,
                                                               const Tensor& bias, const Tensor& mean,
                                                               const Tensor& var, bool training, double,
                                                               double) {
  check_batch_norm(input, weight, bias, mean, var, training);
  SymInts saved{training ? input.sizes()[1] : SymInt(0)};
  DType type = check_parameter_types(
      "batch_norm", input,
      {{"weight", weight}, {"bias", bias}, {"running_mean", mean}, {"running_var", var}});
  return {TensorSpec{input.dtype(), input.device(), SymInts(input.sizes()), same_layout(input)},
          contiguous_spec(saved, type, input.device()), contiguous_spec(saved, type, input.device())};
}
Tensor along_channels(const Tensor& t, int64_t rank) {
  SymInts sizes(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 0);
  sizes[1] = t.sizes()[0];
  strides[1] = t.strides()[0];
  return alias_with(t, sizes, strides, t.storage_offset());
}
// A weight or bias may have any shape of as many elements as there are channels.
Tensor flat(const Tensor& t) {
  if (!t.defined() || t.dim() == 1) return t;
  Tensor dense = dense_as(t, t.dtype());
  return alias_with(dense, SymInts{t.numel()}, SymInts{1}, dense.storage_offset());
}
uint64_t all_but_channels(const Tensor& input) { return ((uint64_t{1} << input.dim()) - 1) & ~uint64_t{2}; }

// What a batch says of each channel, in the wide type.
struct Observed {
  const Tensor &mean, &variance;  // the variance over n
  int64_t n;                      // elements of a channel
};

float as_bf16(float value) { return static_cast<float>(static_cast<BFloat16>(value)); }

// Statistics of 16 bits are rounded where PyTorch's kernels round. Of a dense bf16 input it keeps the sums,
// the momentum and the products with it in bf16; else it computes in wide types, and only the mean of a
// strided input is rounded before.
class NarrowUpdate {
 public:
  NarrowUpdate(const Tensor& input, const Observed& observed, double momentum)
      : observed_(observed),
        momentum_(momentum),
        is_dense_(input.is_contiguous() || input.is_contiguous(MemoryFormat::kChannelsLast)) {}

  void mean(const Tensor& running) const {
    for_each_channel(running, [&]<typename T>(double before, float mean, float) {
      if (std::same_as<T, BFloat16> && is_dense_)
        return as_bf16(as_bf16(momentum()) * as_bf16(mean)) + kept(before);
      return mixed(before, is_dense_ ? mean : static_cast<float>(static_cast<T>(mean)));
    });
  }
  void variance(const Tensor& running) const {
    const auto n = static_cast<float>(observed_.n);
    for_each_channel(running, [&]<typename T>(double before, float, float variance) {
      if (std::same_as<T, BFloat16> && is_dense_)
        return momentum() * as_bf16(as_bf16(variance * n) / as_bf16(n - 1)) + kept(before);
      return mixed(before, variance * n / (n - 1));
    });
  }

 private:
  float momentum() const { return as_bf16(static_cast<float>(momentum_)); }
  float kept(double before) const { return as_bf16(as_bf16(1 - momentum()) * static_cast<float>(before)); }
  float mixed(double before, double observed) const {
    return static_cast<float>(momentum_ * observed + (1 - momentum_) * before);
  }
  template <typename F>
  void for_each_channel(const Tensor& running, const F& next) const {
    auto run = [&]<typename T>(T* at) {
      const auto* means = static_cast<const float*>(observed_.mean.raw_data());
      const auto* variances = static_cast<const float*>(observed_.variance.raw_data());
      const int64_t count = running.plain_sizes()[0], step = running.plain_strides()[0];
      for (int64_t c = 0; c < count; ++c) {
        T& value = at[c * step];
        value =
            static_cast<T>(next.template operator()<T>(static_cast<float>(value), means[c], variances[c]));
      }
    };
    if (running.dtype() == kBFloat16) run(static_cast<BFloat16*>(running.raw_data()));
    else run(static_cast<Half*>(running.raw_data()));
  }

  const Observed& observed_;
  const double momentum_;
  const bool is_dense_;
};

// running = (1 - momentum) * running + momentum * observed, of the mean and the unbiased variance. As in
// PyTorch, the schema does not call this a write, and no version is counted: the backward pass of training is
// given the running statistics, but does not read them.
void update_running(const Tensor& input, const Observed& observed, double momentum, const Tensor& mean,
                    const Tensor& variance) {
  const NarrowUpdate narrow(input, observed, momentum);
  const Tensor weight = wrapped_number(momentum);
  auto lerp = [&](const Tensor& running, const Tensor& value) {
    run_pointwise(cpu::kLerp, running.dtype(), running, {&running, &value, &weight});
  };
  if (mean.defined() && item_size(mean.dtype()) == 2) narrow.mean(mean);
  else if (mean.defined()) lerp(mean, observed.mean);
  if (!variance.defined()) return;
  if (item_size(variance.dtype()) == 2) return narrow.variance(variance);
  const auto n = static_cast<double>(observed.n);
  const Tensor factor = wrapped_number(n > 1 ? n / (n - 1) : std::numeric_limits<double>::infinity());
  Tensor unbiased = allocate(spec_of(observed.variance));
  run_pointwise(cpu::kMul, unbiased.dtype(), unbiased, {&observed.variance, &factor});
  lerp(variance, unbiased);
}
void batch_norm_into(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool training, double momentum,
                     double eps, const Tensor& out, const Tensor& save_mean, const Tensor& save_invstd) {
  DType type = wide_type(input.dtype());
  SymInts channels{input.sizes()[1]};
  Tensor mean_ = allocate_contiguous(channels, type), var_ = allocate_contiguous(channels, type),
         eps_number = wrapped_number(eps), invstd = allocate_contiguous(channels, type);
  if (training) {
    run_reduction(cpu::kVarMean, type, input, all_but_channels(input), {&var_, &mean_}, 0);
    const int64_t n = input.plain_numel() / std::max<int64_t>(input.plain_sizes()[1], 1);
    update_running(input, {mean_, var_, n}, momentum, running_mean, running_var);
  } else {
    copy_values(mean_, running_mean);
    copy_values(var_, running_var);
  }
  run_pointwise(cpu::kAdd, type, invstd, {&var_, &eps_number});
  run_pointwise(cpu::kRsqrt, type, invstd, {&invstd});
  if (training) {
    // What the backward pass will see is what the forward pass uses: statistics as they are saved, rounded to
    // their type.
    copy_values(save_mean, mean_);
    copy_values(save_invstd, invstd);
    copy_values(mean_, save_mean);
    copy_values(invstd, save_invstd);
  }
  // out = input * scale + shift, with scale and shift for each channel.
  Tensor scale = allocate_contiguous(channels, type), shift = allocate_contiguous(channels, type),
         zero = wrapped_number(0);
  Tensor w = flat(weight), b = flat(bias);
  if (w.defined()) run_pointwise(cpu::kMul, type, scale, {&invstd, &w});
  else copy_values(scale, invstd);
  run_pointwise(cpu::kMul, type, shift, {&mean_, &scale});
  run_pointwise(cpu::kSub, type, shift, {b.defined() ? &b : &zero, &shift});
  Tensor s = along_channels(scale, input.dim()), h = along_channels(shift, input.dim());
  const cpu::ParamValue once(1.0);
  run_pointwise(cpu::kAddCMul, type, out, {&h, &input, &s}, {&once, 1});
}

std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> batch_norm_backward_meta(
    const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& running_mean,
    const Tensor& running_var, const Tensor& save_mean, const Tensor& save_invstd, bool train, double,
    Mask mask) {
  const char* op = "native_batch_norm_backward";
  require(input.dim() >= 2, "{}: expected an input of at least 2 dims [N, C, ...], but got {}", op,
          describe(input));
  require(is_floating(input.dtype()), "\"batch_norm_backward_cpu\" not implemented for '{}'",
          dtype_name(input.dtype()));
  check_dtype(op, "grad_out", grad, input.dtype());
  check_sizes(op, "grad_out", grad, input.sizes());
  DType type = check_parameter_types(op, input,
                                     {{"weight", weight},
                                      {"running_mean", running_mean},
                                      {"running_var", running_var},
                                      {"save_mean", save_mean},
                                      {"save_invstd", save_invstd}});
  // Statistics that are not read may have any sizes: in evaluation the saved ones have none.
  const NamedTensor read[] = {
      train ? NamedTensor{"save_mean", save_mean} : NamedTensor{"running_mean", running_mean},
      train ? NamedTensor{"save_invstd", save_invstd} : NamedTensor{"running_var", running_var}};
  for (const auto& [name, tensor] : read) {
    require(tensor.defined(), "{}: '{}' must be defined when train is {}", op, name, train);
    check_numel(op, name, tensor, input.sizes()[1]);
  }
  if (weight.defined()) check_numel(op, "weight", weight, input.sizes()[1]);
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0])
    std::get<0>(specs) =
        TensorSpec{input.dtype(), input.device(), SymInts(input.sizes()), same_layout(input)};
  if (mask[1]) std::get<1>(specs) = contiguous_spec({input.sizes()[1]}, type, input.device());
  if (mask[2]) std::get<2>(specs) = contiguous_spec({input.sizes()[1]}, type, input.device());
  return specs;
}
// The formula on plain tensors, in the wide type; the caller has no layers left.
std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(const Tensor& grad, const Tensor& input,
                                                        const Tensor& weight, const Tensor& mean_,
                                                        const Tensor& invstd, bool train) {
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
void batch_norm_backward_into(const Tensor& grad, const Tensor& input, const Tensor& weight,
                              const Tensor& running_mean, const Tensor& running_var, const Tensor& save_mean,
                              const Tensor& save_invstd, bool train, double eps, Mask, const Tensor& dx,
                              const Tensor& dw, const Tensor& db) {
  DType type = wide_type(input.dtype());
  Tensor m = (train ? save_mean : running_mean).to(type),
         r = train ? save_invstd.to(type) : rsqrt(running_var.to(type) + eps);
  auto [to_input, to_weight, to_bias] = batch_norm_gradients(
      grad.to(type), input.to(type), weight.defined() ? weight.to(type).reshape({-1}) : weight, m, r, train);
  if (dx.defined()) copy_values(dx, to_input);
  if (dw.defined()) copy_values(dw, to_weight);
  if (db.defined()) copy_values(db, to_bias);
}

// --- the forms that say what they do to the running statistics -------------------------------------------

using Three = std::tuple<Tensor, Tensor, Tensor>;

// Gives the new running statistics as results.
std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec, TensorSpec> functional_meta(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
    bool training, double momentum, double eps) {
  auto [out, save_mean, save_invstd] =
      batch_norm_meta(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, contiguous_spec(mean.sizes(), mean.dtype(), mean.device()),
          contiguous_spec(var.sizes(), var.dtype(), var.device())};
}
void functional_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                     const Tensor& var, bool training, double momentum, double eps, const Tensor& out,
                     const Tensor& save_mean, const Tensor& save_invstd, const Tensor& new_mean,
                     const Tensor& new_var) {
  copy_values(new_mean, mean);
  copy_values(new_var, var);
  batch_norm_into(input, weight, bias, new_mean, new_var, training, momentum, eps, out, save_mean,
                  save_invstd);
}
// Writes the new running statistics over the old ones.
Three legit_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, bool training, double momentum, double eps) {
  auto [out, save_mean, save_invstd, new_mean, new_var] =
      _native_batch_norm_legit_functional(input, weight, bias, mean, var, training, momentum, eps);
  if (training) {
    copy_(mean, new_mean);
    copy_(var, new_var);
  }
  return {out, save_mean, save_invstd};
}
Three legit_out(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                const Tensor& var, bool training, double momentum, double eps, const Tensor& out,
                const Tensor& save_mean, const Tensor& save_invstd) {
  auto [result, result_mean, result_invstd] =
      legit_composite(input, weight, bias, mean, var, training, momentum, eps);
  copy_composed_out(OutType::kExact, out, result);
  copy_composed_out(OutType::kExact, save_mean, result_mean);
  copy_composed_out(OutType::kExact, save_invstd, result_invstd);
  return {out, save_mean, save_invstd};
}
// Has none.
using ThreeSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec>;
ThreeSpecs no_stats_meta(const Tensor& input, const Tensor& weight, const Tensor& bias, bool training,
                         double momentum, double eps) {
  return batch_norm_meta(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}
void no_stats_into(const Tensor& input, const Tensor& weight, const Tensor& bias, bool training,
                   double momentum, double eps, const Tensor& out, const Tensor& save_mean,
                   const Tensor& save_invstd) {
  batch_norm_into(input, weight, bias, Tensor(), Tensor(), training, momentum, eps, out, save_mean,
                  save_invstd);
}
// Only reads them.
ThreeSpecs no_training_meta(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                            const Tensor& var, double momentum, double eps) {
  return batch_norm_meta(input, weight, bias, mean, var, false, momentum, eps);
}
void no_training_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, double momentum, double eps, const Tensor& out,
                      const Tensor& save_mean, const Tensor& save_invstd) {
  batch_norm_into(input, weight, bias, mean, var, false, momentum, eps, out, save_mean, save_invstd);
}
// By the forms that say what they do. In training with statistics the call writes to them, which a graph says
// by another operator.
Three native_batch_norm_parts(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              const Tensor& mean, const Tensor& var, bool training, double momentum,
                              double eps) {
  if (!training) return _native_batch_norm_legit_no_training(input, weight, bias, mean, var, momentum, eps);
  if (!mean.defined() && !var.defined())
    return _native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  return native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
}
// Beside the results, what a vendor's implementation would reserve (nothing) and which implementation it was
// (the own one).
std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t> impl_index_composite(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var,
    bool training, double momentum, double eps, bool) {
  auto [out, save_mean, save_invstd] =
      native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, empty({0}, kUInt8, std::nullopt, input.device()), 0};
}
Tensor batch_norm_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                            const Tensor& var, bool training, double momentum, double eps, bool) {
  // Nothing to normalise, whatever the shape: the affine part alone carries the gradients.
  if (guard_or(input.numel() == 0, false)) {
    Tensor out = clone(input);
    if (weight.defined()) out = out * select(weight, 0, 0);
    return bias.defined() ? out + select(bias, 0, 0) : out;
  }
  return std::get<0>(native_batch_norm(input, weight, bias, mean, var, training, momentum, eps));
}

// With the statistics that the backward pass is given; undefined where there are none.
Grads with_statistics(const Vjp& v, const Tensor& mean, const Tensor& var, bool training, double eps) {
  Mask mask{v.wants(0), v.has(1) && v.wants(1), v.has(2) && v.wants(2)};
  auto [input, weight, bias] =
      native_batch_norm_backward(v.grad(0), v.input(0), v.has(1) ? v.input(1) : Tensor(), mean, var,
                                 v.output(1), v.output(2), training, eps, mask);
  return {input, weight, bias, Tensor(), Tensor()};
}
void refuse_gradients_of_statistics(const Vjp& v) {
  refuse_gradients(v, "native_batch_norm", {{3, "running_mean"}, {4, "running_var"}});
}
Grads batch_norm_vjp(const Vjp& v) {
  refuse_gradients_of_statistics(v);
  auto maybe = [&](int i) { return v.has(i) ? v.input(i) : Tensor(); };
  return with_statistics(v, maybe(3), maybe(4), v.arg<bool>(5), v.arg<double>(7));
}
// The statistics that the call gives are those that whoever wrote them back has now.
Grads legit_functional_vjp(const Vjp& v) {
  refuse_gradients_of_statistics(v);
  return with_statistics(v, v.output(3), v.output(4), v.arg<bool>(5), v.arg<double>(7));
}
Grads no_stats_vjp(const Vjp& v) {
  Grads grads = with_statistics(v, Tensor(), Tensor(), v.arg<bool>(3), v.arg<double>(5));
  grads.resize(3);
  return grads;
}
Grads no_training_vjp(const Vjp& v) {
  refuse_gradients_of_statistics(v);
  return with_statistics(v, v.input(3), v.input(4), false, v.arg<double>(6));
}
// Differentiates the formula itself: its parts are operators. In training the statistics are functions of the
// input.
Grads batch_norm_backward_vjp(const Vjp& v) {
  refuse_gradients(v, "native_batch_norm_backward",
                   {{3, "running_mean"}, {4, "running_var"}, {5, "save_mean"}, {6, "save_invstd"}});
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
  if (g_normal.defined())
    add_to(g_input,
           train ? r * (g_normal - average(g_normal) - normal * average(g_normal * normal)) : r * g_normal);
  return {g_grad, g_input, g_weight, Tensor(), Tensor(), Tensor(), Tensor()};
}

Samples batch_samples() {
  return {{"train", {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), true, 0.1, 1e-5}},
          {"eval", {f64({4, 3}), f64({3}), f64({3}), f64({3}), positive({3}), false, 0.1, 1e-5}},
          {"bare", {f64({4, 3}), Value(), Value(), Value(), Value(), true, 0.1, 1e-5}}};
}
Samples stats_samples() {
  Samples samples = batch_samples();
  samples.pop_back();
  return samples;
}

// The same by a vendor's library: beside the results, what it reserves (nothing).
using FourSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec>;
FourSpecs vendor_meta(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                      const Tensor& var, bool training, double momentum, double eps) {
  auto [out, save_mean, save_invstd] =
      batch_norm_meta(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, contiguous_spec({0}, kUInt8, input.device())};
}
void vendor_into(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& var, bool training, double momentum, double eps, const Tensor& out,
                 const Tensor& save_mean, const Tensor& save_invstd, const Tensor&) {
  batch_norm_into(input, weight, bias, mean, var, training, momentum, eps, out, save_mean, save_invstd);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> vendor_parts(const Tensor& input, const Tensor& weight,
                                                        const Tensor& bias, const Tensor& mean,
                                                        const Tensor& var, bool training, double momentum,
                                                        double eps) {
  auto [out, save_mean, save_invstd] =
      native_batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, save_mean, save_invstd, full({0}, 0, kUInt8, Layout::kStrided, input.device())};
}

}  // namespace

WEFT_OPERATOR(native_batch_norm) = {
    .schema =
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_batch_norm.out(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) "
        "save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .meta = function<&batch_norm_meta>(),
    .kernel = structured_exact<&batch_norm_meta, &batch_norm_into>(),
    .vjp = {.saves = inputs(0, 1, 3, 4) | outputs(1, 2) | sizes(2),
            .rule = batch_norm_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&native_batch_norm_parts>(),
    .samples = batch_samples,
};

WEFT_OPERATOR(native_batch_norm_backward) = {
    .schema =
        "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
        "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::native_batch_norm_backward.out(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
        "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
        "bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> (Tensor(a!), "
        "Tensor(b!), Tensor(c!))",
    .meta = function<&batch_norm_backward_meta>(),
    .kernel = structured_exact<&batch_norm_backward_meta, &batch_norm_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2, 3, 4), .rule = batch_norm_backward_vjp},
    .batch = loop_batch,
    .decompose = function<&native_batch_norm_backward_parts>(),
    .samples =
        [] {
          return Samples{{"train",
                          {f64({4, 3}), f64({4, 3}), f64({3}), f64({3}), positive({3}), f64({3}),
                           positive({3}), true, 1e-5, Value::list({true, true, true})}}};
        },
};

WEFT_OPERATOR(batch_norm) = {
    .schema =
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
    .traits = Traits::kMayAlias,  // it writes to the statistics, though its schema does not say so
    .composite = {.functional = function<&batch_norm_composite>()},
    .samples =
        [] {
          return Samples{
              {"train",
               {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), true, 0.1, 1e-5, false}}};
        },
};

WEFT_OPERATOR(batch_norm_legit_functional) = {
    .schema =
        "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
        "Tensor, Tensor running_mean_out, Tensor running_var_out)",
    .traits = Traits::kCore,
    .meta = function<&functional_meta>(),
    .kernel = {.functional = structured<&functional_meta, &functional_into>().functional},
    .vjp = {.saves = inputs(0, 1) | outputs(1, 2, 3, 4) | sizes(2),
            .rule = legit_functional_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&batch_norm_functional_parts>(),
    .samples = stats_samples,
};

WEFT_OPERATOR(batch_norm_legit) = {
    .schema =
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
        "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::_native_batch_norm_legit.out(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
        "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps, *, Tensor(d!) out, "
        "Tensor(e!) save_mean, Tensor(f!) save_invstd) -> (Tensor(d!), Tensor(e!), Tensor(f!))",
    .traits = Traits::kCore,
    .composite = {.functional = function<&legit_composite>(), .out = function<&legit_out>()},
    .samples = stats_samples,
};

WEFT_OPERATOR(batch_norm_legit_no_stats) = {
    .schema =
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
        "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight, Tensor? bias, bool "
        "training, float momentum, float eps, *, Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) "
        "save_invstd) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .traits = Traits::kCore,
    .meta = function<&no_stats_meta>(),
    .kernel = structured_exact<&no_stats_meta, &no_stats_into>(),
    .vjp = {.saves = inputs(0, 1) | outputs(1, 2) | sizes(2),
            .rule = no_stats_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"train", {f64({4, 3, 2}), f64({3}), f64({3}), true, 0.1, 1e-5}},
                         {"bare", {f64({4, 3}), Value(), Value(), true, 0.1, 1e-5}}};
        },
};

WEFT_OPERATOR(batch_norm_legit_no_training) = {
    .schema =
        "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, float momentum, float eps, *, Tensor(a!) out0, Tensor(b!) out1, "
        "Tensor(c!) out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .traits = Traits::kCore,
    .meta = function<&no_training_meta>(),
    .kernel = structured_exact<&no_training_meta, &no_training_into>(),
    .vjp = {.saves = inputs(0, 1, 3, 4) | outputs(1, 2) | sizes(2),
            .rule = no_training_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"eval", {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), 0.1, 1e-5}}};
        },
};

WEFT_OPERATOR(batch_norm_impl_index) = {
    .schema =
        "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
        "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, "
        "Tensor, Tensor, Tensor, int)",
    .composite = {.functional = function<&impl_index_composite>()},
    .samples =
        [] {
          return Samples{
              {"train",
               {f64({4, 3, 2}), f64({3}), f64({3}), f64({3}), positive({3}), true, 0.1, 1e-5, false}}};
        },
};

WEFT_OPERATOR(cudnn_batch_norm) = {
    .schema =
        "aten::cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, "
        "Tensor, Tensor)",
    .out =
        "aten::cudnn_batch_norm.out(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float exponential_average_factor, float epsilon, *, Tensor(a!) out0, "
        "Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3) -> (Tensor(a!), Tensor(b!), Tensor(c!), "
        "Tensor(d!))",
    .meta = function<&vendor_meta>(),
    .kernel = structured_exact<&vendor_meta, &vendor_into>(),
    .vjp = {.saves = inputs(0, 1, 3, 4) | outputs(1, 2) | sizes(2),
            .rule = batch_norm_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&vendor_parts>(),
    .samples = stats_samples,
};

}  // namespace weft::ops

// In training, batch norm mutates the running statistics.
bool weft::may_mutate_silently(const Operator& op, Args args) {
  constexpr size_t kMean = 3, kVariance = 4, kTraining = 5;
  const OpDef* const writers[] = {&ops::native_batch_norm_op, &ops::batch_norm_op,
                                  &ops::batch_norm_impl_index_op};
  const bool is_writer = std::find(std::begin(writers), std::end(writers), &op.def()) != std::end(writers);
  if (!is_writer || op.form() != OpForm::kFunctional) return false;
  if (args.size() <= kTraining) return true;
  const bool has_statistics = !args[kMean].is_none() && !args[kVariance].is_none();
  return has_statistics && !(args[kTraining].is_bool() && !args[kTraining].to_bool());
}

const weft::Operator* weft::mutating_equivalent(const Operator& op, Args args) {
  if (&op.def() != &ops::native_batch_norm_op || op.form() != OpForm::kFunctional) return nullptr;
  const bool has_statistics = args[3].is_tensor() && args[4].is_tensor();
  if (!has_statistics || !args[5].to_bool()) return nullptr;
  static const Operator& legit = operator_named("aten::_native_batch_norm_legit");
  return &legit;
}

std::optional<weft::EquivalentCall> weft::writeless_equivalent(const Operator& op, Args args) {
  if (&op.def() != &ops::native_batch_norm_op || op.form() != OpForm::kFunctional) return std::nullopt;
  const bool has_statistics = args[3].is_tensor() && args[4].is_tensor();
  if (!has_statistics || args[5].to_bool()) return std::nullopt;
  static const Operator& in_evaluation = operator_named("aten::_native_batch_norm_legit_no_training");
  return EquivalentCall{&in_evaluation, {args[0], args[1], args[2], args[3], args[4], args[6], args[7]}};
}
