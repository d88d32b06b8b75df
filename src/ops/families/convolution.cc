// Convolutions, plain and transposed, of one to three spatial dims.
#include "ops/cpu/convolution.h"
#include "ops/cpu/onednn_convolution.h"
#include "ops/cpu/pointwise_convolution.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/reduction.h"
#include "ops/view_replay.h"

namespace weft::ops {
namespace {

using Mask = std::array<bool, 3>;
using Sizes = SymIntSpan;

// The arguments of a convolution with the list arguments expanded to one entry a spatial dim.
struct Conv {
  SymInts stride, padding, dilation, output_padding;
  bool transposed;
  SymInt groups;
};

Conv conv_of(const Tensor& input, Sizes stride, Sizes padding, Sizes dilation, bool transposed,
             Sizes output_padding, const SymInt& groups) {
  require(input.dim() >= 3,
          "Expected 2D (unbatched) or 3D (batched) or higher input to convolution, but got input of size: {}",
          describe_sizes(input.sizes()));
  auto rank = static_cast<size_t>(input.dim()) - 2;
  Conv conv{expand_param(stride, rank, "convolution", "stride"),
            expand_param(padding, rank, "convolution", "padding"),
            expand_param(dilation, rank, "convolution", "dilation"),
            expand_param(output_padding, rank, "convolution", "output_padding"),
            transposed,
            groups};
  for (const SymInt& s : conv.stride)
    require(s.is_symbolic() || s.plain() > 0, "non-positive stride is not supported");
  for (const SymInt& p : conv.padding)
    require(p.is_symbolic() || p.plain() >= 0, "negative padding is not supported");
  for (const SymInt& d : conv.dilation)
    require(d.is_symbolic() || d.plain() > 0, "dilation should be greater than zero");
  require(groups.is_symbolic() || groups.plain() > 0, "non-positive groups is not supported");
  return conv;
}

void check_channels(const Tensor& input, const Tensor& weight, const Tensor& bias, const Conv& conv) {
  require(input.dim() == weight.dim(),
          "Expected {}-dimensional input for {}-dimensional weight {}, but got {}-dimensional input of size "
          "{} instead",
          weight.dim(), weight.dim(), describe_sizes(weight.sizes()), input.dim(),
          describe_sizes(input.sizes()));
  require(input.dtype() == weight.dtype(), "Input type ({}) and weight type ({}) should be the same",
          dtype_name(input.dtype()), dtype_name(weight.dtype()));
  require(!bias.defined() || bias.dtype() == input.dtype(),
          "Input type ({}) and bias type ({}) should be the same", dtype_name(input.dtype()),
          dtype_name(bias.defined() ? bias.dtype() : input.dtype()));
  SymInt expected = conv.transposed ? weight.sizes()[0] : weight.sizes()[1] * conv.groups;
  if (!guard_or(input.sizes()[1] == expected, true))
    fail(
        "Given groups={}, weight of size {}, expected input{} to have {} channels, but got {} channels "
        "instead",
        conv.groups.to_string(), describe_sizes(weight.sizes()), describe_sizes(input.sizes()),
        expected.to_string(), input.sizes()[1].to_string());
  if (!guard_or(mod(weight.sizes()[0], conv.groups) == 0, true))
    fail(
        "Given groups={}, expected weight to be divisible by {} at dimension 0, but got weight of size {} "
        "instead",
        conv.groups.to_string(), conv.groups.to_string(), describe_sizes(weight.sizes()));
  SymInt out_channels = conv.transposed ? weight.sizes()[1] * conv.groups : weight.sizes()[0];
  if (bias.defined() && (bias.dim() != 1 || !guard_or(bias.sizes()[0] == out_channels, true)))
    fail(
        "Given weight of size {}, expected bias to be 1-dimensional with {} elements, but got bias of size "
        "{} instead",
        describe_sizes(weight.sizes()), out_channels.to_string(), describe_sizes(bias.sizes()));
}

SymInts output_sizes(const Tensor& input, const Tensor& weight, const Conv& conv) {
  SymInts sizes{input.sizes()[0], conv.transposed ? weight.sizes()[1] * conv.groups : weight.sizes()[0]};
  for (size_t d = 0; d < conv.stride.size(); ++d) {
    const SymInt& in = input.sizes()[d + 2];
    SymInt reach = conv.dilation[d] * (weight.sizes()[d + 2] - 1);
    if (conv.transposed) {
      sizes.push_back((in - 1) * conv.stride[d] - 2 * conv.padding[d] + reach + conv.output_padding[d] + 1);
      continue;
    }
    SymInt padded = in + 2 * conv.padding[d];
    if (guard_or(padded < reach + 1, false))
      fail(
          "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater "
          "than actual input size",
          padded.to_string(), (reach + 1).to_string());
    sizes.push_back(floor_div(padded - reach - 1, conv.stride[d]) + 1);
  }
  return sizes;
}

bool is_channels_last(const Tensor& t) {
  return t.dim() == 4 && t.is_contiguous(MemoryFormat::kChannelsLast) && !t.is_contiguous();
}

// A signal is an image of height 1, in the strides that the height gets.
bool suggests_channels_last(const Tensor& t) {
  if (t.dim() != 3) return suggested_format(t) == MemoryFormat::kChannelsLast;
  SymIntSpan sizes = t.sizes(), strides = t.strides();
  return suggested_format(alias_with(t, SymInts{sizes[0], sizes[1], 1, sizes[2]},
                                     SymInts{strides[0], strides[1], sizes[2] * strides[2], strides[2]},
                                     t.storage_offset())) == MemoryFormat::kChannelsLast;
}
// Signals are made contiguous before they are seen as images; the parts of complex ones always are.
bool input_suggests_channels_last(const Tensor& input) {
  if (input.dim() == 3 && (input.is_complex() || !input.is_contiguous())) return false;
  return suggests_channels_last(input);
}
SymInts channels_last_strides(SymIntSpan sizes) {
  if (sizes.size() != 3) return strides_of_format(sizes, MemoryFormat::kChannelsLast);
  return {sizes[1] * sizes[2], 1, sizes[1]};
}

TensorSpec convolution_meta(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                            Sizes padding, Sizes dilation, bool transposed, Sizes output_padding,
                            const SymInt& groups) {
  Conv conv = conv_of(input, stride, padding, dilation, transposed, output_padding, groups);
  check_channels(input, weight, bias, conv);
  SymInts sizes = output_sizes(input, weight, conv);
  for (const SymInt& size : sizes)
    if (!size.is_symbolic())
      require(size.plain() >= 0,
              "Given input size per channel: {}. Calculated output size per channel: {}. Output size is too "
              "small",
              describe_sizes(input.sizes()), describe_sizes(sizes));
  bool last = input_suggests_channels_last(input) || suggests_channels_last(weight);
  SymInts strides = last ? channels_last_strides(sizes) : contiguous_strides(sizes);
  // The parts of a complex result are put together, which takes row-major for the layout of what is both.
  if (last && input.is_complex() && same_strides(strides, contiguous_strides(sizes), sizes))
    strides = contiguous_strides(sizes);
  return {input.dtype(), input.device(), sizes, strides};
}

// --- kernels ---------------------------------------------------------------------------------------------

// The type that the convolution computes in.
DType compute_dtype(DType dtype) { return dtype == kFloat16 || dtype == kBFloat16 ? kFloat32 : dtype; }
Tensor dense(const Tensor& t, DType dtype) {
  if (t.is_contiguous() && t.dtype() == dtype) return t;
  Tensor copy = allocate_contiguous(t.sizes(), dtype);
  copy_values(copy, t);
  return copy;
}
char* bytes(const Tensor& t) { return static_cast<char*>(t.raw_data()); }

// In a layout that the code paths for f32 read as it is.
Tensor readable(const Tensor& t, DType dtype) {
  return is_channels_last(t) && t.dtype() == dtype ? t : dense(t, dtype);
}
cpu::ConvolutionOperand operand_of(const Tensor& t) {
  IntSpan strides = t.plain_strides();
  return {static_cast<float*>(t.raw_data()), {strides.begin(), strides.end()}};
}

// The code paths that take f32 in either layout, the best first; false if none of them takes the problem.
bool convolve(const cpu::ConvolutionShape& shape, const Tensor& x, const Tensor& w, const Tensor& bias,
              const Tensor& y) {
  const float* b = bias.defined() ? bias.data<float>() : nullptr;
  return cpu::pointwise_convolution_forward(shape, operand_of(x), operand_of(w), b, operand_of(y)) ||
         cpu::onednn_convolution_forward(shape, operand_of(x), operand_of(w), b, operand_of(y));
}
bool input_gradient(const cpu::ConvolutionShape& shape, const Tensor& grad, const Tensor& w,
                    const Tensor& dx) {
  return cpu::pointwise_convolution_backward_input(shape, operand_of(grad), operand_of(w), operand_of(dx)) ||
         cpu::onednn_convolution_backward_input(shape, operand_of(grad), operand_of(w), operand_of(dx));
}
bool weight_gradient(const cpu::ConvolutionShape& shape, const Tensor& grad, const Tensor& x,
                     const Tensor& dw) {
  return cpu::pointwise_convolution_backward_weight(shape, operand_of(grad), operand_of(x), operand_of(dw)) ||
         cpu::onednn_convolution_backward_weight(shape, operand_of(grad), operand_of(x), operand_of(dw));
}

// The shape of the plain convolution from `in` to `out`; a transposed convolution is that of the opposite
// direction.
cpu::ConvolutionShape shape_of(const Tensor& in, const Tensor& weight, const Tensor& out, const Conv& conv) {
  cpu::ConvolutionShape s;
  s.batch = in.plain_sizes()[0];
  s.groups = conv.groups.plain();
  s.in_channels = in.plain_sizes()[1] / s.groups;
  s.out_channels = out.plain_sizes()[1] / s.groups;
  for (size_t d = 0; d < conv.stride.size(); ++d) {
    s.in.push_back(in.plain_sizes()[d + 2]);
    s.kernel.push_back(weight.plain_sizes()[d + 2]);
    s.out.push_back(out.plain_sizes()[d + 2]);
    s.stride.push_back(conv.stride[d].plain());
    s.padding.push_back(conv.padding[d].plain());
    s.dilation.push_back(conv.dilation[d].plain());
  }
  return s;
}

Tensor along_channels(const Tensor& bias, int64_t rank) {
  SymInts sizes(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 0);
  sizes[1] = bias.sizes()[0];
  strides[1] = bias.strides()[0];
  return alias_with(bias, sizes, strides, bias.storage_offset());
}

void convolution_into(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                      Sizes padding, Sizes dilation, bool transposed, Sizes output_padding,
                      const SymInt& groups, const Tensor& out) {
  Conv conv = conv_of(input, stride, padding, dilation, transposed, output_padding, groups);
  if (out.plain_numel() == 0) return;
  DType type = compute_dtype(input.dtype());
  Tensor x = readable(input, type), w = readable(weight, type), b = bias.defined() ? dense(bias, type) : bias;
  auto in_f32 = [&](const Tensor& y) {
    if (transposed) return input_gradient(shape_of(y, w, x, conv), x, w, y);
    return convolve(shape_of(x, w, y, conv), x, w, b, y);
  };
  auto unfolding = [&](const Tensor& y) {
    Tensor dense_x = dense(x, type), dense_w = dense(w, type);
    if (transposed)
      cpu::convolution_backward_input(type, shape_of(y, w, x, conv), bytes(dense_x), bytes(dense_w),
                                      bytes(y));
    else cpu::convolution_forward(type, shape_of(x, w, y, conv), bytes(dense_x), bytes(dense_w), bytes(y));
  };
  bool fits = out.dtype() == type && (out.is_contiguous() || is_channels_last(out));
  Tensor y = fits ? out : allocate_contiguous(out.sizes(), type);
  bool has_bias = false;
  if (type == kFloat32 && in_f32(y)) {
    has_bias = !transposed;
  } else {
    if (!y.is_contiguous()) y = allocate_contiguous(out.sizes(), type);
    unfolding(y);
  }
  if (b.defined() && !has_bias) {
    Tensor along = along_channels(b, y.dim());
    run_pointwise(cpu::kAdd, type, y, {&y, &along});
  }
  if (!y.is_same(out)) copy_values(out, y);
}

using MaybeSpec = std::optional<TensorSpec>;
std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> convolution_backward_meta(
    const Tensor& grad, const Tensor& input, const Tensor& weight, OptionalSymIntSpan, Sizes stride,
    Sizes padding, Sizes dilation, bool transposed, Sizes output_padding, const SymInt& groups, Mask mask) {
  const char* op = "convolution_backward";
  require(weight.dim() >= 3, "{}: weight should have at least three dimensions, but it is {}", op,
          describe(weight));
  Conv conv = conv_of(input, stride, padding, dilation, transposed, output_padding, groups);
  check_channels(input, weight, Tensor(), conv);
  require(!is_integral(input.dtype()) && input.dtype() != kBool, "\"{}\" not implemented for '{}'", op,
          dtype_name(input.dtype()));
  check_dtype(op, "grad_output", grad, input.dtype());
  require(grad.dim() == input.dim(),
          "{}: Expected input and grad_output to have the same number of dimensions, but got: {} and {}", op,
          input.dim(), grad.dim());
  check_sizes(op, "grad_output", grad, output_sizes(input, weight, conv));
  bool last = is_channels_last(input) || is_channels_last(weight);
  auto spec = [&](const Tensor& t) -> TensorSpec {
    return {t.dtype(), t.device(), SymInts(t.sizes()),
            last && t.dim() == 4 ? strides_of_format(t.sizes(), MemoryFormat::kChannelsLast)
                                 : contiguous_strides(t.sizes())};
  };
  std::tuple<MaybeSpec, MaybeSpec, MaybeSpec> specs;
  if (mask[0]) std::get<0>(specs) = spec(input);
  if (mask[1]) std::get<1>(specs) = spec(weight);
  if (mask[2]) std::get<2>(specs) = contiguous_spec({grad.sizes()[1]}, grad.dtype(), grad.device());
  return specs;
}
// Writes what `fast` computes, which takes f32 in either layout and may decline, or else `plain`, which takes
// dense memory.
template <typename Fast, typename Plain>
void compute_into(const Tensor& out, DType type, const Fast& fast, const Plain& plain) {
  Tensor result = out.dtype() == type
                      ? out
                      : allocate({type, out.device(), SymInts(out.sizes()), SymInts(out.strides())});
  if (type != kFloat32 || !fast(result)) {
    if (!result.is_contiguous()) result = allocate_contiguous(out.sizes(), type);
    plain(result);
  }
  if (!result.is_same(out)) copy_values(out, result);
}

void convolution_backward_into(const Tensor& grad, const Tensor& input, const Tensor& weight,
                               OptionalSymIntSpan, Sizes stride, Sizes padding, Sizes dilation,
                               bool transposed, Sizes output_padding, const SymInt& groups, Mask,
                               const Tensor& to_input, const Tensor& to_weight, const Tensor& to_bias) {
  Conv conv = conv_of(input, stride, padding, dilation, transposed, output_padding, groups);
  DType type = compute_dtype(input.dtype());
  Tensor g = readable(grad, type), x = readable(input, type), w = readable(weight, type);
  // In the plain convolution that this is the backward of, or whose backward it is the forward of.
  cpu::ConvolutionShape shape = transposed ? shape_of(g, w, x, conv) : shape_of(x, w, g, conv);
  if (to_input.defined() && (g.plain_numel() == 0 || w.plain_numel() == 0)) {
    fill_values(to_input, 0);
  } else if (to_input.defined()) {
    auto in_f32 = [&](const Tensor& dx) {
      return transposed ? convolve(shape, g, w, Tensor(), dx) : input_gradient(shape, g, w, dx);
    };
    auto unfolding = [&](const Tensor& dx) {
      Tensor dense_g = dense(g, type), dense_w = dense(w, type);
      if (transposed) cpu::convolution_forward(type, shape, bytes(dense_g), bytes(dense_w), bytes(dx));
      else cpu::convolution_backward_input(type, shape, bytes(dense_g), bytes(dense_w), bytes(dx));
    };
    compute_into(to_input, type, in_f32, unfolding);
  }
  if (to_weight.defined() && (g.plain_numel() == 0 || x.plain_numel() == 0)) {
    fill_values(to_weight, 0);
  } else if (to_weight.defined()) {
    const Tensor &from = transposed ? g : x, &to = transposed ? x : g;
    auto in_f32 = [&](const Tensor& dw) { return weight_gradient(shape, to, from, dw); };
    auto unfolding = [&](const Tensor& dw) {
      Tensor dense_to = dense(to, type), dense_from = dense(from, type);
      cpu::convolution_backward_weight(type, shape, bytes(dense_to), bytes(dense_from), bytes(dw));
    };
    compute_into(to_weight, type, in_f32, unfolding);
  }
  if (to_bias.defined())
    run_reduction(cpu::kSum, type, g, ((uint64_t{1} << g.dim()) - 1) & ~uint64_t{2}, {&to_bias});
}

// --- rules -----------------------------------------------------------------------------------------------

Grads convolution_vjp(const Vjp& v) {
  auto stride = boxing::Unboxed<Sizes>(v.arg(3)), padding = boxing::Unboxed<Sizes>(v.arg(4)),
       dilation = boxing::Unboxed<Sizes>(v.arg(5)), extra = boxing::Unboxed<Sizes>(v.arg(7));
  SymInts bias_size{v.has(2) ? v.sizes(2)[0] : SymInt(0)};
  OptionalSymIntSpan bias_sizes;
  if (v.has(2)) bias_sizes = SymIntSpan(bias_size);
  auto [input, weight, bias] =
      convolution_backward(v.grad(), conj_of(v.input(0)), conj_of(v.input(1)), bias_sizes, stride.get(),
                           padding.get(), dilation.get(), v.arg<bool>(6), extra.get(), v.arg<SymInt>(8),
                           {v.wants(0), v.wants(1), v.has(2) && v.wants(2)});
  return {input, weight, bias};
}

// The sum of the convolutions with one operand's tangent each, and the bias's own.
std::vector<Tensor> convolution_jvp(const Jvp& j) {
  Tensor sum;
  auto add = [&](const Tensor& input, const Tensor& weight, const Tensor& bias) {
    auto stride = boxing::Unboxed<Sizes>(j.arg(3)), padding = boxing::Unboxed<Sizes>(j.arg(4)),
         dilation = boxing::Unboxed<Sizes>(j.arg(5)), extra = boxing::Unboxed<Sizes>(j.arg(7));
    Tensor term = convolution(input, weight, bias, stride.get(), padding.get(), dilation.get(),
                              j.arg(6).to_bool(), extra.get(), j.arg(8).to_sym_int());
    sum = sum.defined() ? sum + term : term;
  };
  Tensor input = j.tangent(0), weight = j.tangent(1), bias = j.tangent(2);
  if (input.defined()) add(input, j.input(1), bias);
  if (weight.defined()) add(j.input(0), weight, input.defined() ? Tensor() : bias);
  if (!sum.defined() && bias.defined()) {
    Tensor result = j.output();
    SymInts shape(static_cast<size_t>(result.dim()), 1);
    shape[1] = bias.size(0);
    sum = expand(reshape(bias, shape), result.sizes());
  }
  return {sum};
}

// (grad, input, weight) -> gradients; each gradient is linear in two of the three, so its derivative is again
// a convolution or the backward of one.
Grads convolution_backward_vjp(const Vjp& v) {
  Tensor grad = conj_of(v.input(0)), input = conj_of(v.input(1)), weight = conj_of(v.input(2));
  auto stride = boxing::Unboxed<Sizes>(v.arg(4)), padding = boxing::Unboxed<Sizes>(v.arg(5)),
       dilation = boxing::Unboxed<Sizes>(v.arg(6)), extra = boxing::Unboxed<Sizes>(v.arg(8));
  bool transposed = v.arg<bool>(7);
  SymInt groups = v.arg<SymInt>(9);
  const Tensor &to_input = v.grad(0), &to_weight = v.grad(1), &to_bias = v.grad(2);
  Tensor g_grad, g_input, g_weight;
  auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; };
  auto forward = [&](const Tensor& x, const Tensor& w) {
    return convolution(x, w, Tensor(), stride.get(), padding.get(), dilation.get(), transposed, extra.get(),
                       groups);
  };
  auto backward = [&](const Tensor& x, const Tensor& w, Mask mask) {
    return convolution_backward(grad, x, w, std::nullopt, stride.get(), padding.get(), dilation.get(),
                                transposed, extra.get(), groups, mask);
  };
  if (to_input.defined()) {
    if (v.wants(0)) add_to(g_grad, forward(to_input, weight));
    if (v.wants(2)) add_to(g_weight, std::get<1>(backward(to_input, weight, {false, true, false})));
  }
  if (to_weight.defined()) {
    if (v.wants(0)) add_to(g_grad, forward(input, to_weight));
    if (v.wants(1)) add_to(g_input, std::get<0>(backward(input, to_weight, {true, false, false})));
  }
  if (to_bias.defined() && v.wants(0)) {
    SymInts shape(static_cast<size_t>(grad.dim()), 1);
    shape[1] = to_bias.size(0);
    add_to(g_grad, expand(reshape(to_bias, shape), grad.sizes()));
  }
  return {g_grad, g_input, g_weight};
}

// A batch of inputs is a larger batch; everything else goes one by one.
Batched convolution_batch(const Batch& call) {
  bool only_input = call.batch_dim(0) >= 0 && call.batch_dim(1) < 0 && call.batch_dim(2) < 0;
  if (!only_input) return loop_batch(call);
  Tensor input = batch_first(call.tensor(0), call.batch_dim(0));
  SymInt outer = input.size(0), inner = input.size(1);
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = flatten(input, 0, 1);
  Tensor result = weft::call(call.op(), args).to_tensor();
  SymInts sizes{outer, inner};
  for (size_t d = 1; d < result.sizes().size(); ++d) sizes.push_back(result.sizes()[d]);
  return {reshape(result, sizes), {0}};
}

Tensor conv_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                      Sizes padding, Sizes dilation, const SymInt& groups, size_t rank) {
  require(weight.dim() == static_cast<int64_t>(rank) + 2,
          "conv{}d: expected a {}-dimensional weight, but got {}", rank, rank + 2, describe(weight));
  bool batched = input.dim() == static_cast<int64_t>(rank) + 2;
  require(batched || input.dim() == static_cast<int64_t>(rank) + 1,
          "Expected {}D (unbatched) or {}D (batched) input to conv{}d, but got input of size: {}", rank + 1,
          rank + 2, rank, describe_sizes(input.sizes()));
  SymInts none(rank, 0);
  Tensor result = convolution(batched ? input : unsqueeze(input, 0), weight, bias, stride, padding, dilation,
                              false, none, groups);
  return batched ? result : squeeze(result, 0);
}
Tensor conv1d_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                        Sizes padding, Sizes dilation, const SymInt& groups) {
  return conv_composite(input, weight, bias, stride, padding, dilation, groups, 1);
}
Tensor conv2d_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                        Sizes padding, Sizes dilation, const SymInt& groups) {
  return conv_composite(input, weight, bias, stride, padding, dilation, groups, 2);
}

Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                      Sizes padding, Sizes output_padding, const SymInt& groups, Sizes dilation,
                      size_t rank) {
  require(weight.dim() == static_cast<int64_t>(rank) + 2,
          "conv_transpose{}d: expected a {}-dimensional weight, but got {}", rank, rank + 2,
          describe(weight));
  bool batched = input.dim() == static_cast<int64_t>(rank) + 2;
  require(batched || input.dim() == static_cast<int64_t>(rank) + 1,
          "Expected {}D (unbatched) or {}D (batched) input to conv_transpose{}d, but got input of size: {}",
          rank + 1, rank + 2, rank, describe_sizes(input.sizes()));
  Tensor result = convolution(batched ? input : unsqueeze(input, 0), weight, bias, stride, padding, dilation,
                              true, output_padding, groups);
  return batched ? result : squeeze(result, 0);
}
template <size_t rank>
Tensor conv_transpose_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                                Sizes padding, Sizes output_padding, const SymInt& groups, Sizes dilation) {
  return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation, rank);
}
Tensor conv3d_composite(const Tensor& input, const Tensor& weight, const Tensor& bias, Sizes stride,
                        Sizes padding, Sizes dilation, const SymInt& groups) {
  return conv_composite(input, weight, bias, stride, padding, dilation, groups, 3);
}

}  // namespace

WEFT_OPERATOR(convolution) = {
    .schema =
        "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
        "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    .out =
        "aten::convolution.out(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
        "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kAutocastNarrow,
    .meta = function<&convolution_meta>(),
    .kernel = structured_exact<&convolution_meta, &convolution_into>(),
    .vjp = {.saves = inputs(0, 1) | sizes(2), .rule = convolution_vjp},
    .jvp = convolution_jvp,
    .batch = convolution_batch,
    .samples =
        [] {
          return Samples{{"bias",
                          {f64({2, 2, 4, 4}), f64({3, 2, 3, 3}), f64({3}), ints({1, 1}), ints({1, 1}),
                           ints({1, 1}), false, ints({0, 0}), 1}},
                         {"grouped",
                          {f64({1, 4, 5}), f64({4, 2, 3}), Value(), ints({2}), ints({1}), ints({1}), false,
                           ints({0}), 2}},
                         {"transposed",
                          {f64({1, 2, 3, 3}), f64({2, 3, 2, 2}), Value(), ints({2, 2}), ints({0, 0}),
                           ints({1, 1}), true, ints({1, 1}), 1}}};
        },
};

WEFT_OPERATOR(convolution_backward) = {
    .schema =
        "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
        "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
        "SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .out =
        "aten::convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
        "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] "
        "output_padding, SymInt groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) "
        "out2) -> (Tensor(a!), Tensor(b!), Tensor(c!))",
    .traits = Traits::kCore,
    .meta = function<&convolution_backward_meta>(),
    .kernel = structured_exact<&convolution_backward_meta, &convolution_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2), .rule = convolution_backward_vjp},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{
              {"all",
               {f64({2, 3, 4, 4}), f64({2, 2, 4, 4}), f64({3, 2, 3, 3}), ints({3}), ints({1, 1}),
                ints({1, 1}), ints({1, 1}), false, ints({0, 0}), 1, Value::list({true, true, true})}}};
        },
};

WEFT_OPERATOR(conv1d) = {
    .schema =
        "aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] "
        "padding=[0], SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
    .composite = {.functional = function<&conv1d_composite>()},
    .samples = [] { return Samples{{"plain", {f64({1, 2, 5}), f64({3, 2, 3})}}}; },
};

WEFT_OPERATOR(conv2d) = {
    .schema =
        "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] "
        "padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
    .composite = {.functional = function<&conv2d_composite>()},
    .samples = [] { return Samples{{"plain", {f64({1, 2, 5, 5}), f64({3, 2, 3, 3}), f64({3})}}}; },
};

WEFT_OPERATOR(conv3d) = {
    .schema =
        "aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] "
        "padding=[0, 0, 0], SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
    .composite = {.functional = function<&conv3d_composite>()},
    .samples = [] { return Samples{{"plain", {f64({1, 2, 3, 4, 4}), f64({3, 2, 2, 3, 3}), f64({3})}}}; },
};

WEFT_OPERATOR(conv_transpose1d) = {
    .schema =
        "aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], "
        "SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> "
        "Tensor",
    .composite = {.functional = function<&conv_transpose_composite<1>>()},
    .samples = [] { return Samples{{"plain", {f64({1, 2, 5}), f64({2, 3, 3})}}}; },
};

WEFT_OPERATOR(conv_transpose2d_input) = {
    .schema =
        "aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, "
        "1], SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] "
        "dilation=[1, 1]) -> Tensor",
    .composite = {.functional = function<&conv_transpose_composite<2>>()},
    .samples =
        [] {
          return Samples{
              {"plain",
               {f64({1, 2, 3, 3}), f64({2, 3, 2, 2}), f64({3}), ints({2, 2}), ints({1, 1}), ints({1, 1})}}};
        },
};

WEFT_OPERATOR(conv_transpose3d_input) = {
    .schema =
        "aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, "
        "1, 1], SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] "
        "dilation=[1, 1, 1]) -> Tensor",
    .composite = {.functional = function<&conv_transpose_composite<3>>()},
    .samples = [] { return Samples{{"plain", {f64({1, 2, 2, 2, 3}), f64({2, 1, 2, 2, 2})}}}; },
};

}  // namespace weft::ops
