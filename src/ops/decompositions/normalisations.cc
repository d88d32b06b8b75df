// The backward passes of normalisations.
#include "ops/decompositions/decompositions.h"
#include "ops/decompositions/steps.h"
#include "ops/support/shapes.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using Mask = std::array<bool, 3>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// A vector along dim 1 of as many dims as `rank`.
Tensor along_channels(const Tensor& vector, int64_t rank) {
  Tensor shaped = unsqueeze(vector, 0);
  for (int64_t d = 2; d < rank; ++d) shaped = unsqueeze(shaped, d);
  return shaped;
}
Tensor unsqueezed_to(const Tensor& tensor, int64_t rank) {
  Tensor shaped = tensor;
  while (shaped.dim() < rank) shaped = unsqueeze(shaped, -1);
  return shaped;
}
Tensor as_type(const Tensor& tensor, DType type) { return tensor.defined() ? tensor.to(type) : tensor; }

}  // namespace

Three native_batch_norm_backward_parts(const Tensor& grad_, const Tensor& input_, const Tensor& weight_,
                                       const Tensor& running_mean, const Tensor& running_var,
                                       const Tensor& save_mean, const Tensor& save_invstd, bool train,
                                       double eps, Mask mask) {
  const Steps steps(input_);
  const int64_t rank = input_.dim();
  Tensor grad = steps.in(grad_), input = steps.in(input_), weight = steps.in(weight_);
  Tensor center = steps.in(train ? save_mean : running_mean);
  Tensor scale = train ? steps.in(save_invstd) : rsqrt(steps.in(running_var) + eps);
  Ints dims{0};
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  const Scalar share(SymFloat(1.0) / sym_float(input.numel() / input.size(1)));

  center = along_channels(center, rank);
  Tensor total = sum(grad, dims), projected = sum(grad * (input - center), dims);
  Tensor average = along_channels(total * share, rank);
  Tensor slope = along_channels((projected * share) * (scale * scale), rank);
  Tensor factor = weight.defined() ? along_channels(scale * weight, rank) : along_channels(scale, rank) * 1.0;
  Tensor to_input = (train ? grad - (input - center) * slope - average : grad) * factor;
  Tensor to_weight = mask[1] ? projected * scale : Tensor(), to_bias = mask[2] ? total : Tensor();
  // Parameters may be wider than a 16-bit input.
  const DType type = (weight_.defined() ? weight_ : train ? save_mean : running_mean).dtype();
  return {mask[0] ? steps.out(to_input) : Tensor(), as_type(to_weight, type), as_type(to_bias, type)};
}

// Of a batch its own statistics, and what the running ones become; or the running ones.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> batch_norm_functional_parts(
    const Tensor& input_, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps) {
  const Steps steps(input_);
  const int64_t rank = input_.dim();
  const DType kept = running_mean.dtype();
  Tensor input = steps.in(input_), save_mean, save_invstd, new_mean = running_mean, new_var = running_var,
         normal;
  if (training) {
    Ints dims{0};
    for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
    auto [variance, center] = var_mean(input, dims, Scalar(0), true);
    Tensor scale = rsqrt(variance + eps);
    normal = (input - center) * scale;
    save_mean = squeeze(center, IntSpan(dims));
    save_invstd = squeeze(scale, IntSpan(dims));
    const SymFloat count = sym_float(input.numel() / input.size(1));
    new_mean = (save_mean * momentum + running_mean * (1 - momentum)).to(kept);
    Tensor unbiased = squeeze(variance, IntSpan(dims)) * Scalar(count / (count - SymFloat(1.0)));
    new_var = (unbiased * momentum + running_var * (1 - momentum)).to(running_var.dtype());
  } else {
    Tensor scale = reciprocal(sqrt(steps.in(running_var) + eps));
    normal = (input - unsqueezed_to(steps.in(running_mean), rank - 1)) * unsqueezed_to(scale, rank - 1);
    new_mean = clone(running_mean);
    new_var = clone(running_var);
    save_mean = full({0}, 0, kept, Layout::kStrided, input.device());
    save_invstd = full({0}, 0, kept, Layout::kStrided, input.device());
  }
  if (weight.defined()) normal = normal * unsqueezed_to(flatten(weight), rank - 1);
  if (bias.defined()) normal = normal + unsqueezed_to(flatten(bias), rank - 1);
  return {steps.out(normal), save_mean.to(kept), save_invstd.to(kept), new_mean, new_var};
}

Three native_layer_norm_backward_parts(const Tensor& grad_, const Tensor& input_, SymIntSpan shape,
                                       const Tensor& mean, const Tensor& rstd, const Tensor& weight_,
                                       const Tensor& bias, Mask mask) {
  const Steps steps(input_);
  const int64_t rank = input_.dim(), outer = rank - static_cast<int64_t>(shape.size());
  const DType type = weight_.defined() ? weight_.dtype() : bias.defined() ? bias.dtype() : input_.dtype();
  auto zeros = [&](SymIntSpan sizes, DType of) {
    return full(sizes, 0, of, Layout::kStrided, input_.device());
  };
  if (guard_or(input_.numel() == 0, false))
    return {mask[0] ? zeros(input_.sizes(), input_.dtype()) : Tensor(),
            mask[1] ? zeros(shape, type) : Tensor(), mask[2] ? zeros(shape, type) : Tensor()};
  SymInt count = 1;
  for (const SymInt& size : shape) count = count * size;
  Ints inner_dims, outer_dims;
  for (int64_t d = 0; d < rank; ++d) (d < outer ? outer_dims : inner_dims).push_back(d);

  Tensor grad = steps.in(grad_), input = steps.in(input_), weight = steps.in(weight_);
  Tensor factor = unsqueezed_to(rstd, rank);
  Tensor normal = (input - unsqueezed_to(mean, rank)) * factor;
  Tensor scaled = weight.defined() ? grad * weight : grad;
  Tensor whole = scaled * Scalar(count), total = sum(scaled, inner_dims, true);
  Tensor projected = normal * sum(scaled * normal, inner_dims, true);
  auto over_rows = [&](const Tensor& t, bool is_fresh) {
    if (!outer_dims.empty()) return sum(t, outer_dims, false);
    return is_fresh ? t : clone(t);
  };
  Tensor to_input, to_weight, to_bias;
  if (mask[0]) to_input = steps.out(factor / Scalar(count) * (whole - total - projected));
  if (mask[1]) to_weight = over_rows(grad * normal, true).to(type);
  if (mask[2]) to_bias = over_rows(grad, false).to(type);
  return {to_input, to_weight, to_bias};
}

Three native_group_norm_backward_parts(const Tensor& grad_, const Tensor& input_, const Tensor& mean_,
                                       const Tensor& rstd_, const Tensor& weight_, const SymInt& n,
                                       const SymInt& channels, const SymInt& pixels, int64_t groups,
                                       Mask mask) {
  const Steps steps(input_);
  Tensor grad = steps.in(grad_), input = steps.in(input_), m = steps.in(mean_), r = steps.in(rstd_),
         weight = steps.in(weight_);
  const SymInt per_group = floor_div(channels, groups), group_count = groups;
  const DType type = (weight_.defined() ? weight_ : mean_).dtype();
  auto grouped = [&](const Tensor& t) { return reshape(t, {n, group_count, per_group}); };
  Tensor products = sum(reshape(grad * input, {n, channels, pixels}), {2});
  Tensor totals = sum(reshape(grad, {n, channels, pixels}), {2});
  Tensor to_input, to_weight, to_bias;
  if (mask[0]) {
    const Scalar share(SymFloat(1.0) / sym_float(pixels * per_group));
    auto by_group = [&](const Tensor& t) {
      return sum(grouped(weight.defined() ? t * unsqueeze(weight, 0) : t), {2});
    };
    Tensor product = by_group(products), total = by_group(totals), factor = unsqueeze(r, -1);
    Tensor first = weight.defined() ? factor * reshape(weight, {SymInt(1), group_count, per_group})
                                    : factor * full({SymInt(1), group_count, per_group}, 1, r.dtype(),
                                                    Layout::kStrided, r.device());
    Tensor second = (total * m - product) * r * r * r * share;
    Tensor third = -second * m;
    third = third - total * r * share;
    auto images = [&](const Tensor& t) { return reshape(t, {n, group_count, per_group, pixels}); };
    first = unsqueeze(first, -1);
    second = unsqueezed_to(second, 4);
    third = unsqueezed_to(third, 4);
    Tensor of_grad = images(grad) * first, of_input = images(input) * second;
    to_input = steps.out(reshape(of_grad + of_input + third, input.sizes()));
  }
  if (mask[1]) {
    Tensor product = grouped(products), total = grouped(totals);
    Tensor slopes = (product - total * unsqueeze(m, -1)) * unsqueeze(r, -1);
    to_weight = reshape(sum(slopes, {0}), {channels}).to(type);
  }
  if (mask[2]) to_bias = sum(totals, {0}).to(type);
  return {to_input, to_weight, to_bias};
}

}  // namespace weft::ops
