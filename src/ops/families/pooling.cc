// Pooling over windows of two spatial dims.
#include "ops/cpu/pooling.h"
#include "base/ceil_div.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/image.h"

namespace weft::ops {
namespace {

using MaybeInt = std::optional<int64_t>;

struct Window {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool ceil;
};

Window window_of(const char* op, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                 bool ceil) {
  Window w;
  Ints k = expand_param(kernel, 2, op, "kernel_size"),
       s = stride.empty() ? k : expand_param(stride, 2, op, "stride"),
       p = expand_param(padding, 2, op, "padding"), d = expand_param(dilation, 2, op, "dilation");
  for (size_t i = 0; i < 2; ++i) {
    // As long as a window can be, its extent (kernel - 1) * dilation is a number.
    for (const int64_t number : {k[i], s[i], p[i], d[i]})
      require(
          std::in_range<int32_t>(number),
          "{}: integer out of range: kernel_size, stride, padding and dilation fit in int32, but {} does not",
          op, number);
    require(k[i] > 0, "kernel size should be greater than zero, but got kH: {} kW: {}", k[0], k[1]);
    require(s[i] > 0, "stride should be greater than zero, but got dH: {} dW: {}", s[0], s[1]);
    require(d[i] > 0, "dilation should be greater than zero, but got dilationH: {} dilationW: {}", d[0],
            d[1]);
    require(
        p[i] >= 0 && p[i] <= ((k[i] - 1) * d[i] + 1) / 2,
        "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
        p[i], k[i], d[i]);
    w.kernel[i] = k[i];
    w.stride[i] = s[i];
    w.padding[i] = p[i];
    w.dilation[i] = d[i];
  }
  w.ceil = ceil;
  return w;
}

SymInt pooled(const SymInt& in, const Window& w, size_t i) {
  SymInt span = in + 2 * w.padding[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
  if (!w.ceil) return floor_div(span, w.stride[i]) + 1;
  SymInt out = floor_div(span + w.stride[i] - 1, w.stride[i]) + 1;
  // The last window must start inside the input or its left padding.
  if (guard_or((out - 1) * w.stride[i] >= in + w.padding[i], false)) out = out - 1;
  return out;
}

// [N, C, H, W] or [C, H, W], of which the last `dims` are not empty.
void check_pool_input(const char* op, const Tensor& self, int64_t dims = 3) {
  require(self.dim() == 3 || self.dim() == 4,
          "{}: expected 3D (unbatched) or 4D (batched) input, but got sizes: {}", op,
          describe_sizes(self.sizes()));
  for (int64_t d = self.dim() - dims; d < self.dim(); ++d)
    require(!guard_or(self.size(d) == 0, false),
            "{}: Expected input to have non-zero size for non-batch dimensions, but got {}", op,
            describe_sizes(self.sizes()));
}

bool is_channels_last(const Tensor& self) { return suggested_format(self) == MemoryFormat::kChannelsLast; }
// The result keeps the memory format of the input.
TensorSpec pooled_spec(const Tensor& self, SymInts sizes, DType dtype) {
  SymInts strides = is_channels_last(self) ? strides_of_format(sizes, MemoryFormat::kChannelsLast)
                                           : contiguous_strides(sizes);
  return {dtype, self.device(), std::move(sizes), std::move(strides)};
}
SymInts pooled_sizes(const char* op, const Tensor& self, const Window& w) {
  check_pool_input(op, self);
  SymInts sizes(self.sizes());
  size_t n = sizes.size();
  for (size_t i = 0; i < 2; ++i) {
    SymInt& size = sizes[n - 2 + i];
    size = pooled(size, w, i);
    require(size.is_symbolic() || size.plain() > 0,
            "Given input size: {}. Calculated output size is too small", describe_sizes(self.sizes()));
  }
  return sizes;
}

// The arrays of a call have the layout of its image.
ImageArrays arrays_like(const Tensor& self) {
  return ImageArrays(is_channels_last(self) ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous);
}
// Height (0) or width (1) of an image.
int64_t extent(const Tensor& image, size_t i) {
  return image.plain_sizes()[static_cast<size_t>(image.dim()) - 2 + i];
}

// --- max -------------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> max_pool_meta(const Tensor& self, IntSpan kernel, IntSpan stride,
                                                 IntSpan padding, IntSpan dilation, bool ceil) {
  Window w = window_of("max_pool2d", kernel, stride, padding, dilation, ceil);
  SymInts sizes = pooled_sizes("max_pool2d", self, w);
  require(!self.is_complex() && self.dtype() != kBool, "\"max_pool2d\" not implemented for '{}'",
          dtype_name(self.dtype()));
  return {pooled_spec(self, sizes, self.dtype()), pooled_spec(self, sizes, kInt64)};
}
// The parts of the windows of one dim that lie inside the image.
std::vector<cpu::PoolSpan> spans_of(const Window& w, size_t i, int64_t in, int64_t out) {
  std::vector<cpu::PoolSpan> spans;
  for (int64_t o = 0; o < out; ++o) {
    int64_t first = o * w.stride[i] - w.padding[i],
            last = std::min(first + (w.kernel[i] - 1) * w.dilation[i] + 1, in);
    if (first < 0) first += ceil_div(-first, w.dilation[i]) * w.dilation[i];
    spans.push_back({first, last, 0});
  }
  return spans;
}
void max_pool_into(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                   bool ceil, const Tensor& out, const Tensor& indices) {
  if (out.plain_numel() == 0) return;
  Window w = window_of("max_pool2d", kernel, stride, padding, dilation, ceil);
  ImageArrays arrays = arrays_like(self);
  Tensor in = arrays.to_read(self), values = arrays.to_write(out), argmax = arrays.to_write(indices);
  cpu::PoolWindows windows{spans_of(w, 0, extent(self, 0), extent(out, 0)),
                           spans_of(w, 1, extent(self, 1), extent(out, 1)), w.dilation[0], w.dilation[1]};
  cpu::max_pool(windows, arrays.array(in), arrays.array(values), arrays.array(argmax));
  copy_back(values, out);
  copy_back(argmax, indices);
}
TensorSpec max_pool_backward_meta(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                                  IntSpan padding, IntSpan dilation, bool ceil, const Tensor& indices) {
  const char* op = "max_pool2d_with_indices_backward";
  SymInts sizes = pooled_sizes(op, self, window_of(op, kernel, stride, padding, dilation, ceil));
  require(is_floating(self.dtype()), "\"max_pool2d_backward\" not implemented for '{}'",
          dtype_name(self.dtype()));
  check_dtype(op, "grad_output", grad, self.dtype());
  check_dtype(op, "indices", indices, kInt64);
  check_sizes(op, "grad_output", grad, sizes);
  check_sizes(op, "indices", indices, sizes);
  return pooled_spec(self, SymInts(self.sizes()), self.dtype());
}
void max_pool_backward_into(const Tensor& grad, const Tensor& self, IntSpan, IntSpan, IntSpan, IntSpan, bool,
                            const Tensor& indices, const Tensor& out) {
  ImageArrays arrays = arrays_like(self);
  Tensor g = arrays.to_read(grad), argmax = arrays.to_read(indices), result = arrays.to_write(out);
  cpu::max_pool_backward(arrays.array(g), arrays.array(argmax), arrays.array(result));
  copy_back(result, out);
}
Tensor max_pool_composite(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding,
                          IntSpan dilation, bool ceil) {
  return std::get<0>(max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil));
}
// The values of `t` at the indices where the forward pool found its maxima.
Tensor gather_planes(const Tensor& t, const Tensor& indices) {
  Tensor flat = flatten(t, -2, -1);
  return view(gather(flat, -1, flatten(indices, -2, -1)), indices.sizes());
}

// --- average ---------------------------------------------------------------------------------------------

struct Average {
  Window window;
  bool include_pad;
  MaybeInt divisor;
};
Average average_of(IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil, bool include_pad,
                   MaybeInt divisor) {
  require(!divisor || *divisor != 0, "divisor must be not zero");
  return {window_of("avg_pool2d", kernel, stride, padding, {1}, ceil), include_pad, divisor};
}
// A window counts its padding, but nothing beyond it.
std::vector<cpu::PoolSpan> spans_of(const Average& a, size_t i, int64_t in, int64_t out) {
  const Window& w = a.window;
  std::vector<cpu::PoolSpan> spans;
  for (int64_t o = 0; o < out; ++o) {
    int64_t first = o * w.stride[i] - w.padding[i], last = std::min(first + w.kernel[i], in + w.padding[i]),
            padded = last - first;
    first = std::max<int64_t>(first, 0);
    last = std::min(last, in);
    spans.push_back(first < last ? cpu::PoolSpan{first, last, a.include_pad ? padded : last - first}
                                 : cpu::PoolSpan{0, 0, 1});
  }
  return spans;
}
// Of an output that has elements: the windows of one that has none may be more than fit in memory.
cpu::PoolWindows windows_of(const Average& a, const Tensor& in, const Tensor& out) {
  return {spans_of(a, 0, extent(in, 0), extent(out, 0)), spans_of(a, 1, extent(in, 1), extent(out, 1)), 1, 1,
          a.divisor.value_or(0)};
}
void average_into(const cpu::PoolWindows& windows, const Tensor& self, const Tensor& out) {
  ImageArrays arrays = arrays_like(self);
  Tensor in = arrays.to_read(self), result = arrays.to_write(out);
  cpu::average_pool(windows, arrays.array(in), arrays.array(result));
  copy_back(result, out);
}
void average_backward_into(const cpu::PoolWindows& windows, const Tensor& grad, const Tensor& self,
                           const Tensor& out) {
  ImageArrays arrays = arrays_like(self);
  Tensor g = arrays.to_read(grad), result = arrays.to_write(out);
  cpu::average_pool_backward(windows, arrays.array(g), arrays.array(result));
  copy_back(result, out);
}

// Of the integers only i64 has averages.
void check_average_type(const char* op, const Tensor& self) {
  require(is_floating(self.dtype()) || self.dtype() == kInt64, "\"{}\" not implemented for '{}'", op,
          dtype_name(self.dtype()));
}
TensorSpec avg_pool_meta(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil,
                         bool include_pad, MaybeInt divisor) {
  Average a = average_of(kernel, stride, padding, ceil, include_pad, divisor);
  check_average_type("avg_pool2d", self);
  return pooled_spec(self, pooled_sizes("avg_pool2d", self, a.window), self.dtype());
}
void avg_pool_into(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil,
                   bool include_pad, MaybeInt divisor, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  average_into(windows_of(average_of(kernel, stride, padding, ceil, include_pad, divisor), self, out), self,
               out);
}
TensorSpec avg_pool_backward_meta(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                                  IntSpan padding, bool ceil, bool include_pad, MaybeInt divisor) {
  const char* op = "avg_pool2d_backward";
  Average a = average_of(kernel, stride, padding, ceil, include_pad, divisor);
  check_average_type(op, self);
  check_dtype(op, "grad_output", grad, self.dtype());
  check_sizes(op, "grad_output", grad, pooled_sizes(op, self, a.window));
  return pooled_spec(self, SymInts(self.sizes()), self.dtype());
}
void avg_pool_backward_into(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                            IntSpan padding, bool ceil, bool include_pad, MaybeInt divisor,
                            const Tensor& out) {
  if (out.plain_numel() == 0) return;
  average_backward_into(
      windows_of(average_of(kernel, stride, padding, ceil, include_pad, divisor), self, grad), grad, self,
      out);
}

// --- adaptive average ------------------------------------------------------------------------------------

int64_t bin_start(int64_t i, int64_t bins, int64_t size) { return i * size / bins; }
int64_t bin_end(int64_t i, int64_t bins, int64_t size) { return ceil_div((i + 1) * size, bins); }
TensorSpec adaptive_meta(const Tensor& self, SymIntSpan output_size) {
  check_pool_input("adaptive_avg_pool2d", self, 2);
  require(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2, but got {}",
          output_size.size());
  require(is_floating(self.dtype()), "\"adaptive_avg_pool2d\" not implemented for '{}'",
          dtype_name(self.dtype()));
  SymInts sizes(self.sizes());
  for (size_t i = 0; i < 2; ++i) sizes[sizes.size() - 2 + i] = output_size[i];
  return pooled_spec(self, sizes, self.dtype());
}
std::vector<cpu::PoolSpan> bins(int64_t in, int64_t out) {
  std::vector<cpu::PoolSpan> spans;
  for (int64_t i = 0; i < out; ++i) {
    int64_t first = bin_start(i, out, in), last = bin_end(i, out, in);
    spans.push_back({first, last, last - first});
  }
  return spans;
}
cpu::PoolWindows bins_of(const Tensor& in, const Tensor& out) {
  return {bins(extent(in, 0), extent(out, 0)), bins(extent(in, 1), extent(out, 1))};
}
void adaptive_into(const Tensor& self, SymIntSpan, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  average_into(bins_of(self, out), self, out);
}
TensorSpec adaptive_backward_meta(const Tensor& grad, const Tensor& self) {
  const char* op = "adaptive_avg_pool2d_backward";
  check_pool_input(op, self, 2);
  check_pool_input(op, grad, 2);
  require(is_floating(self.dtype()), "\"{}\" not implemented for '{}'", op, dtype_name(self.dtype()));
  check_dtype(op, "grad_output", grad, self.dtype());
  SymInts sizes(self.sizes());
  for (int64_t d : {-2, -1})
    if (grad.dim() == self.dim()) sizes[sizes.size() - static_cast<size_t>(-d)] = grad.size(d);
  check_sizes(op, "grad_output", grad, sizes);
  return pooled_spec(self, SymInts(self.sizes()), self.dtype());
}
void adaptive_backward_into(const Tensor& grad, const Tensor& self, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  average_backward_into(bins_of(self, grad), grad, self, out);
}
Tensor adaptive_composite(const Tensor& self, SymIntSpan output_size) {
  require(output_size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  if (guard_or(output_size[0] == 1, false) && guard_or(output_size[1] == 1, false)) {
    Tensor averaged = mean(self, {-1, -2}, true);
    if (is_channels_last(self))
      return as_strided(averaged, averaged.sizes(),
                        {averaged.size(1), 1, averaged.size(1), averaged.size(1)});
    return averaged;
  }
  return _adaptive_avg_pool2d(self, output_size);
}

Samples max_samples() {
  return {{"plain", {f64({1, 2, 5, 5}), ints({2, 2})}},
          {"padded", {f64({2, 4, 4}), ints({3, 3}), ints({2, 2}), ints({1, 1})}}};
}

}  // namespace

WEFT_OPERATOR(max_pool2d_with_indices) = {
    .schema =
        "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
        "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    .out =
        "aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
        "padding=0, int[2] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> "
        "(Tensor(a!), Tensor(b!))",
    .traits = Traits::kCore,
    .meta = function<&max_pool_meta>(),
    .kernel = structured_exact<&max_pool_meta, &max_pool_into>(),
    .vjp = {.saves = inputs(0) | outputs(1),
            .rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(1)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(2)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(3)),
                       dilation = boxing::Unboxed<IntSpan>(v.arg(4));
                  return Grads{max_pool2d_with_indices_backward(v.grad(0), v.input(0), kernel.get(),
                                                                stride.get(), padding.get(), dilation.get(),
                                                                v.arg<bool>(5), v.output(1))};
                },
            .differentiable_results = 1},
    .batch = image_batch,
    .samples = max_samples,
};

WEFT_OPERATOR(max_pool2d_with_indices_backward) = {
    .schema =
        "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
        "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .out =
        "aten::max_pool2d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[2] "
        "kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&max_pool_backward_meta>(),
    .kernel = structured_exact<&max_pool_backward_meta, &max_pool_backward_into>(),
    .vjp = {.saves = inputs(7),
            .rule =
                [](const Vjp& v) {
                  return Grads{gather_planes(v.grad(), v.input(7)), zeros_like(v.grad()), Tensor()};
                }},
    .batch = image_batch,
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({1, 1, 2, 2}), f64({1, 1, 4, 4}), ints({2, 2}), ints({2, 2}), ints({0, 0}),
                           ints({1, 1}), false, i64({1, 1, 2, 2}, 0, 16)}}};
        },
};

WEFT_OPERATOR(max_pool2d) = {
    .schema =
        "aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
        "dilation=1, bool ceil_mode=False) -> Tensor",
    .composite = {.functional = function<&max_pool_composite>()},
    .samples = max_samples,
};

WEFT_OPERATOR(avg_pool2d) = {
    .schema =
        "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .out =
        "aten::avg_pool2d.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&avg_pool_meta>(),
    .kernel = structured_exact<&avg_pool_meta, &avg_pool_into>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(1)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(2)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(3));
                  return Grads{avg_pool2d_backward(v.grad(), v.input(0), kernel.get(), stride.get(),
                                                   padding.get(), v.arg<bool>(4), v.arg<bool>(5),
                                                   v.arg<MaybeInt>(6))};
                }},
    .batch = image_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({1, 2, 4, 4}), ints({2, 2})}},
                         {"padded", {f64({2, 5, 5}), ints({3, 3}), ints({2, 2}), ints({1, 1}), true, false}}};
        },
};

WEFT_OPERATOR(avg_pool2d_backward) = {
    .schema =
        "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
        "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .out =
        "aten::avg_pool2d_backward.grad_input(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
        "stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&avg_pool_backward_meta>(),
    .kernel = structured_exact<&avg_pool_backward_meta, &avg_pool_backward_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(2)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(3)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(4));
                  return Grads{avg_pool2d(v.grad(), kernel.get(), stride.get(), padding.get(), v.arg<bool>(5),
                                          v.arg<bool>(6), v.arg<MaybeInt>(7)),
                               zeros_like(v.grad())};
                }},
    .batch = image_batch,
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({1, 2, 2, 2}), f64({1, 2, 4, 4}), ints({2, 2}), ints({2, 2}), ints({0, 0}),
                           false, true, Value()}}};
        },
};

WEFT_OPERATOR(adaptive_avg_pool2d_kernel) = {
    .schema = "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
    .out =
        "aten::_adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&adaptive_meta>(),
    .kernel = structured_exact<&adaptive_meta, &adaptive_into>(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{_adaptive_avg_pool2d_backward(v.grad(), v.input(0))}; }},
    .batch = image_batch,
    .samples = [] { return Samples{{"plain", {f64({1, 2, 5, 4}), ints({2, 3})}}}; },
};

WEFT_OPERATOR(adaptive_avg_pool2d_backward) = {
    .schema = "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
    .out =
        "aten::_adaptive_avg_pool2d_backward.out(Tensor grad_output, Tensor self, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&adaptive_backward_meta>(),
    .kernel = structured_exact<&adaptive_backward_meta, &adaptive_backward_into>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  SymIntSpan sizes = v.sizes(0);
                  return Grads{
                      _adaptive_avg_pool2d(v.grad(), {sizes[sizes.size() - 2], sizes[sizes.size() - 1]}),
                      zeros_like(v.grad())};
                }},
    .batch = image_batch,
    .samples = [] { return Samples{{"plain", {f64({1, 2, 2, 3}), f64({1, 2, 5, 4})}}}; },
};

WEFT_OPERATOR(adaptive_avg_pool2d) = {
    .schema = "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
    .out =
        "aten::adaptive_avg_pool2d.out(Tensor self, SymInt[2] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&adaptive_composite>(),
    .samples =
        [] {
          return Samples{{"one", {f64({1, 2, 5, 4}), ints({1, 1})}},
                         {"bins", {f64({1, 2, 5, 4}), ints({2, 2})}}};
        },
};

}  // namespace weft::ops
