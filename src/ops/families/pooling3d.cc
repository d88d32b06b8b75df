// Pooling over volumes, and over signals, which are images of height 1.
#include <cmath>
#include <utility>

#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "weft/base/parallel.h"

namespace weft::ops {
namespace {

// --- windows ---------------------------------------------------------------------------------------------

using Triple = std::array<int64_t, 3>;
struct Window {
  Triple size, stride, padding, dilation;
  bool ceil;
};
Triple three(IntSpan values, const char* op, const char* name) {
  const Ints all = expand_param(values, 3, op, name);
  return {all[0], all[1], all[2]};
}
Window window_of(const char* op, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                 bool ceil) {
  Window w{three(kernel, op, "kernel_size"), three(stride.empty() ? kernel : stride, op, "stride"),
           three(padding, op, "padding"), three(dilation, op, "dilation"), ceil};
  for (size_t i = 0; i < 3; ++i) {
    for (const int64_t number : {w.size[i], w.stride[i], w.padding[i], w.dilation[i]})
      require(
          std::in_range<int32_t>(number),
          "{}: integer out of range: kernel_size, stride, padding and dilation fit in int32, but {} does not",
          op, number);
    require(w.size[i] > 0, "{}: kernel size should be greater than zero, but got {}", op, w.size[i]);
    require(w.stride[i] > 0, "{}: stride should be greater than zero, but got {}", op, w.stride[i]);
    require(w.dilation[i] > 0, "{}: dilation should be greater than zero, but got {}", op, w.dilation[i]);
    require(w.padding[i] >= 0, "pad must be non-negative, but got pad: {}", w.padding[i]);
    const int64_t reach = (w.size[i] - 1) * w.dilation[i] + 1;
    require(
        w.padding[i] <= reach / 2,
        "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
        w.padding[i], w.size[i], w.dilation[i]);
  }
  return w;
}
SymInt pooled(const SymInt& in, const Window& w, size_t i) {
  const SymInt room = in + 2 * w.padding[i] - w.dilation[i] * (w.size[i] - 1) - 1;
  SymInt out = floor_div(room + (w.ceil ? w.stride[i] - 1 : 0), SymInt(w.stride[i])) + 1;
  // The last window begins inside of the input or of its front padding.
  if (w.ceil && guard_or((out - 1) * w.stride[i] >= in + w.padding[i], false)) out = out - 1;
  return out;
}
void check_volume(const char* op, const Tensor& self) {
  bool fits = self.dim() == 4 || self.dim() == 5;
  for (int64_t d = self.dim() == 5 ? 1 : 0; fits && d < self.dim(); ++d)
    fits = !guard_or(self.size(d) == 0, false);
  require(fits, "{}: non-empty 4D or 5D (batch mode) tensor expected for input, but got {}", op,
          describe(self));
}
SymInts pooled_sizes(const char* op, const Tensor& self, const Window& w) {
  check_volume(op, self);
  SymInts sizes(self.sizes());
  for (size_t i = 0; i < 3; ++i) {
    SymInt& size = sizes[sizes.size() - 3 + i];
    size = pooled(size, w, i);
    require(!guard_or(size < 1, false),
            "{}: Given input size {}: calculated output size in dim {} is too small: {}", op,
            describe_sizes(self.sizes()), i, size.to_string());
  }
  return sizes;
}

// The volumes of a dense tensor: how many, and their sizes.
struct Volumes {
  int64_t count, d, h, w;
  explicit Volumes(const Tensor& t) {
    IntSpan sizes = t.plain_sizes();
    const size_t rank = sizes.size();
    d = sizes[rank - 3];
    h = sizes[rank - 2];
    w = sizes[rank - 1];
    count = d * h * w == 0 ? 0 : t.plain_numel() / (d * h * w);
  }
  int64_t numel() const { return d * h * w; }
  int64_t size(size_t i) const { return i == 0 ? d : i == 1 ? h : w; }
};
// Calls f(volume) for all of them on the pool.
template <typename F>
void for_each_volume(int64_t count, F f) {
  parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    for (int64_t v = first; v < last; ++v) f(v);
  });
}
template <typename F>
void for_each_place(const Volumes& volumes, F f) {
  int64_t at = 0;
  for (int64_t z = 0; z < volumes.d; ++z)
    for (int64_t y = 0; y < volumes.h; ++y)
      for (int64_t x = 0; x < volumes.w; ++x) f(at++, Triple{z, y, x});
}
template <typename F>
void visit_reals(DType dtype, F f) {
  if (dtype == kFloat64) f.template operator()<double>();
  else if (is_floating(dtype)) f.template operator()<float>();
  else f.template operator()<int64_t>();
}
DType compute_type(DType dtype) { return is_floating(dtype) ? wide_type(dtype) : kInt64; }

// --- maxima ----------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> max_meta(const Tensor& self, IntSpan kernel, IntSpan stride,
                                            IntSpan padding, IntSpan dilation, bool ceil) {
  const char* op = "max_pool3d";
  SymInts sizes = pooled_sizes(op, self, window_of(op, kernel, stride, padding, dilation, ceil));
  require(!self.is_complex() && self.dtype() != kBool, "\"max_pool3d\" not implemented for '{}'",
          dtype_name(self.dtype()));
  return {contiguous_spec(sizes, self.dtype(), self.device()), contiguous_spec(sizes, kInt64, self.device())};
}
void max_into(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
              bool ceil, const Tensor& out, const Tensor& indices) {
  const Window w = window_of("max_pool3d", kernel, stride, padding, dilation, ceil);
  const DType type = compute_type(self.dtype());
  Tensor in = dense_as(self, type), values = allocate_contiguous(out.sizes(), type),
         places = allocate_contiguous(out.sizes(), kInt64);
  const Volumes from(in), to(values);
  visit_reals(type, [&]<typename T>() {
    for_each_volume(to.count, [&](int64_t volume) {
      const T* data = in.data<T>() + volume * from.numel();
      for_each_place(to, [&](int64_t at, Triple place) {
        Triple start, end;
        for (size_t i = 0; i < 3; ++i) {
          start[i] = place[i] * w.stride[i] - w.padding[i];
          end[i] = std::min(start[i] + (w.size[i] - 1) * w.dilation[i] + 1, from.size(i));
          while (start[i] < 0) start[i] += w.dilation[i];
        }
        int64_t best = (start[0] * from.h + start[1]) * from.w + start[2];
        T largest = std::numeric_limits<T>::lowest();
        if constexpr (std::floating_point<T>) largest = -std::numeric_limits<T>::infinity();
        for (int64_t z = start[0]; z < end[0]; z += w.dilation[0])
          for (int64_t y = start[1]; y < end[1]; y += w.dilation[1])
            for (int64_t x = start[2]; x < end[2]; x += w.dilation[2]) {
              const int64_t element = (z * from.h + y) * from.w + x;
              bool is_nan = false;
              if constexpr (std::floating_point<T>) is_nan = std::isnan(data[element]);
              if (data[element] > largest || is_nan) {
                largest = data[element];
                best = element;
              }
            }
        values.data<T>()[volume * to.numel() + at] = largest;
        places.data<int64_t>()[volume * to.numel() + at] = best;
      });
    });
  });
  copy_values(out, values);
  copy_values(indices, places);
}
TensorSpec max_backward_meta(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                             IntSpan padding, IntSpan dilation, bool ceil, const Tensor& indices) {
  const char* op = "max_pool3d_with_indices_backward";
  SymInts sizes = pooled_sizes(op, self, window_of(op, kernel, stride, padding, dilation, ceil));
  check_sizes(op, "grad_output", grad, sizes);
  check_sizes(op, "indices", indices, sizes);
  check_dtype(op, "indices", indices, kInt64);
  check_dtype(op, "grad_output", grad, self.dtype());
  require(is_floating(self.dtype()), "\"max_pool3d_backward\" not implemented for '{}'",
          dtype_name(self.dtype()));
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void max_backward_into(const Tensor& grad, const Tensor& self, IntSpan, IntSpan, IntSpan, IntSpan, bool,
                       const Tensor& indices, const Tensor& out) {
  const DType type = compute_type(self.dtype());
  Tensor g = dense_as(grad, type), places = dense_as(indices, kInt64), sums = zeros(self.sizes(), type);
  const Volumes from(g), to(sums);
  visit_reals(type, [&]<typename T>() {
    for_each_volume(from.count, [&](int64_t volume) {
      T* data = sums.data<T>() + volume * to.numel();
      for (int64_t i = volume * from.numel(); i < (volume + 1) * from.numel(); ++i) {
        const int64_t at = places.data<int64_t>()[i];
        require(at >= 0 && at < to.numel(), "max_pool3d: index {} is outside of a volume of {} elements", at,
                to.numel());
        data[at] += g.data<T>()[i];
      }
    });
  });
  copy_values(out, sums);
}
// The elements at the indices where the forward pool found its maxima.
Tensor at_maxima(const Tensor& t, const Tensor& indices) {
  auto flat = [](const Tensor& x) { return flatten(x, -3); };
  return reshape(gather(flat(t), -1, flat(indices)), indices.sizes());
}
Tensor max_composite(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation,
                     bool ceil) {
  return std::get<0>(max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil));
}

// --- averages --------------------------------------------------------------------------------------------

using Divisor = std::optional<int64_t>;
struct Average {
  Window window;
  bool include_pad;
  Divisor divisor;
};
Average average_of(const char* op, IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil,
                   bool include_pad, Divisor divisor) {
  require(!divisor || *divisor != 0, "divisor must be not zero");
  return {window_of(op, kernel, stride, padding, {1}, ceil), include_pad, divisor};
}
// Calls f(first, last, divisor) with the part of the input that a window covers.
template <typename F>
void with_cover(const Average& a, const Volumes& from, const Triple& place, F f) {
  Triple first, last;
  int64_t padded = 1, covered = 1;
  for (size_t i = 0; i < 3; ++i) {
    first[i] = place[i] * a.window.stride[i] - a.window.padding[i];
    last[i] = std::min(first[i] + a.window.size[i], from.size(i) + a.window.padding[i]);
    padded *= last[i] - first[i];
    first[i] = std::max<int64_t>(first[i], 0);
    last[i] = std::min(last[i], from.size(i));
    covered *= std::max<int64_t>(last[i] - first[i], 0);
  }
  f(first, last, covered == 0 ? 0 : a.divisor ? *a.divisor : a.include_pad ? padded : covered);
}
template <typename F>
void for_each_element(const Volumes& from, const Triple& first, const Triple& last, F f) {
  for (int64_t z = first[0]; z < last[0]; ++z)
    for (int64_t y = first[1]; y < last[1]; ++y)
      for (int64_t x = first[2]; x < last[2]; ++x) f((z * from.h + y) * from.w + x);
}
void check_average(const char* op, const Tensor& self) {
  require(is_floating(self.dtype()) || self.dtype() == kInt64, "\"{}_out_frame\" not implemented for '{}'",
          op, dtype_name(self.dtype()));
}
TensorSpec avg_meta(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil,
                    bool include_pad, Divisor divisor) {
  Average a = average_of("avg_pool3d", kernel, stride, padding, ceil, include_pad, divisor);
  SymInts sizes = pooled_sizes("avg_pool3d", self, a.window);
  check_average("avg_pool3d", self);
  return contiguous_spec(sizes, self.dtype(), self.device());
}
template <typename Cover>
void average_into(const Tensor& self, const Tensor& out, Cover cover) {
  const DType type = compute_type(self.dtype());
  Tensor in = dense_as(self, type), values = allocate_contiguous(out.sizes(), type);
  const Volumes from(in), to(values);
  visit_reals(type, [&]<typename T>() {
    for_each_volume(to.count, [&](int64_t volume) {
      const T* data = in.data<T>() + volume * from.numel();
      for_each_place(to, [&](int64_t at, Triple place) {
        cover(from, to, place, [&](const Triple& first, const Triple& last, int64_t divisor) {
          T sum = 0;
          for_each_element(from, first, last, [&](int64_t element) { sum += data[element]; });
          values.data<T>()[volume * to.numel() + at] = divisor == 0 ? T(0) : sum / static_cast<T>(divisor);
        });
      });
    });
  });
  copy_values(out, values);
}
template <typename Cover>
void average_backward_into(const Tensor& grad, const Tensor& self, const Tensor& out, Cover cover) {
  const DType type = compute_type(self.dtype());
  Tensor g = dense_as(grad, type), sums = zeros(self.sizes(), type);
  const Volumes from(sums), to(g);
  visit_reals(type, [&]<typename T>() {
    for_each_volume(to.count, [&](int64_t volume) {
      T* data = sums.data<T>() + volume * from.numel();
      for_each_place(to, [&](int64_t at, Triple place) {
        cover(from, to, place, [&](const Triple& first, const Triple& last, int64_t divisor) {
          if (divisor == 0) return;
          const T share = g.data<T>()[volume * to.numel() + at] / static_cast<T>(divisor);
          for_each_element(from, first, last, [&](int64_t element) { data[element] += share; });
        });
      });
    });
  });
  copy_values(out, sums);
}
void avg_into(const Tensor& self, IntSpan kernel, IntSpan stride, IntSpan padding, bool ceil,
              bool include_pad, Divisor divisor, const Tensor& out) {
  const Average a = average_of("avg_pool3d", kernel, stride, padding, ceil, include_pad, divisor);
  average_into(self, out, [&](const Volumes& from, const Volumes&, const Triple& place, auto f) {
    with_cover(a, from, place, f);
  });
}
TensorSpec avg_backward_meta(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                             IntSpan padding, bool ceil, bool include_pad, Divisor divisor) {
  const char* op = "avg_pool3d_backward";
  Average a = average_of(op, kernel, stride, padding, ceil, include_pad, divisor);
  check_sizes(op, "grad_output", grad, pooled_sizes(op, self, a.window));
  check_dtype(op, "grad_output", grad, self.dtype());
  check_average(op, self);
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void avg_backward_into(const Tensor& grad, const Tensor& self, IntSpan kernel, IntSpan stride,
                       IntSpan padding, bool ceil, bool include_pad, Divisor divisor, const Tensor& out) {
  const Average a = average_of("avg_pool3d_backward", kernel, stride, padding, ceil, include_pad, divisor);
  average_backward_into(grad, self, out,
                        [&](const Volumes& from, const Volumes&, const Triple& place, auto f) {
                          with_cover(a, from, place, f);
                        });
}

// --- to given sizes --------------------------------------------------------------------------------------

// Place i of n is the mean of elements [floor(i size / n), ceil((i + 1) size / n)).
template <typename F>
void with_share(const Volumes& from, const Volumes& to, const Triple& place, F f) {
  Triple first, last;
  int64_t count = 1;
  for (size_t i = 0; i < 3; ++i) {
    first[i] = place[i] * from.size(i) / to.size(i);
    last[i] = ((place[i] + 1) * from.size(i) + to.size(i) - 1) / to.size(i);
    count *= last[i] - first[i];
  }
  f(first, last, count);
}
TensorSpec adaptive_meta(const Tensor& self, SymIntSpan output_size) {
  require(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3, but got {}",
          output_size.size());
  require(self.dim() == 4 || self.dim() == 5, "adaptive_avg_pool3d(): Expected 4D or 5D tensor, but got {}",
          describe_sizes(self.sizes()));
  for (int64_t d = 1; d < self.dim(); ++d)
    require(!guard_or(self.size(d) == 0, false),
            "adaptive_avg_pool3d(): Expected input to have non-zero size for non-batch dimensions, but input "
            "has sizes {} "
            "with dimension {} being empty",
            describe_sizes(self.sizes()), d);
  require(is_floating(self.dtype()), "\"adaptive_avg_pool3d_cpu\" not implemented for '{}'",
          dtype_name(self.dtype()));
  SymInts sizes(self.sizes());
  for (size_t i = 0; i < 3; ++i) {
    require(!guard_or(output_size[i] < 0, false),
            "adaptive_avg_pool3d: elements of output_size must be greater than or equal to 0 but received {}",
            describe_sizes(output_size));
    sizes[sizes.size() - 3 + i] = output_size[i];
  }
  return contiguous_spec(sizes, self.dtype(), self.device());
}
void adaptive_into(const Tensor& self, SymIntSpan, const Tensor& out) {
  average_into(self, out, [](const Volumes& from, const Volumes& to, const Triple& place, auto f) {
    with_share(from, to, place, f);
  });
}
TensorSpec adaptive_backward_meta(const Tensor& grad, const Tensor& self) {
  const char* op = "adaptive_avg_pool3d_backward";
  require(self.dim() == 4 || self.dim() == 5, "{}: Expected 4D or 5D tensor, but got {}", op, describe(self));
  require(grad.dim() == self.dim(), "{}: expected gradients of as many dims as the input, but got {} and {}",
          op, describe(grad), describe(self));
  for (int64_t d = 0; d < self.dim() - 3; ++d)
    require(guard_or(grad.size(d) == self.size(d), true), "{}: {} is no gradient of a pool of {}", op,
            describe(grad), describe(self));
  check_dtype(op, "grad_output", grad, self.dtype());
  require(is_floating(self.dtype()), "\"{}\" not implemented for '{}'", op, dtype_name(self.dtype()));
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void adaptive_backward_into(const Tensor& grad, const Tensor& self, const Tensor& out) {
  average_backward_into(grad, self, out,
                        [](const Volumes& from, const Volumes& to, const Triple& place, auto f) {
                          with_share(from, to, place, f);
                        });
}
bool is_one(const SymInt& size) { return !size.is_symbolic() && size.plain() == 1; }
Tensor adaptive_composite(const Tensor& self, SymIntSpan output_size) {
  require(output_size.size() == 3, "adaptive_avg_pool3d: output_size must be 3");
  if (is_one(output_size[0]) && is_one(output_size[1]) && is_one(output_size[2]) && self.dim() >= 4)
    return mean(self, {-1, -2, -3}, true);
  return _adaptive_avg_pool3d(self, output_size);
}

// --- signals ---------------------------------------------------------------------------------------------

Tensor adaptive_1d_composite(const Tensor& self, IntSpan output_size) {
  require(output_size.size() == 1,
          "adaptive_avg_pool1d() argument 'output_size' should contain one int (got {})", output_size.size());
  require(self.dim() == 2 || self.dim() == 3,
          "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking "
          "arguments "
          "for adaptive_avg_pool1d)",
          self.dim());
  return squeeze(adaptive_avg_pool2d(unsqueeze(self, -2), {1, output_size[0]}), -2);
}
int64_t only(IntSpan values, const char* name, int64_t otherwise) {
  require(values.size() <= 1, "max_pool1d() {} must be one number, but got {} of them", name, values.size());
  return values.empty() ? otherwise : values[0];
}
Tensor max_1d_composite(const Tensor& self, IntSpan kernel_, IntSpan stride_, IntSpan padding_,
                        IntSpan dilation_, bool ceil) {
  bool fits = self.dim() == 2 || self.dim() == 3;
  for (int64_t d = self.dim() - 2; fits && d < self.dim(); ++d) fits = !guard_or(self.size(d) == 0, false);
  require(fits,
          "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
          "got:{}",
          describe_sizes(self.sizes()));
  const int64_t kernel = only(kernel_, "kernel_size", 0), stride = only(stride_, "stride", kernel),
                padding = only(padding_, "padding", 0), dilation = only(dilation_, "dilation", 1);
  require(kernel > 0, "max_pool1d() kernel_size must be greater than zero, but got {}", kernel);
  require(stride > 0, "max_pool1d() stride must be greater than zero, but got {}", stride);
  require(padding >= 0, "max_pool1d() padding must be non-negative, but got {}", padding);
  require(padding <= ((kernel - 1) * dilation + 1) / 2,
          "max_pool1d() padding should be at most half of effective kernel size, but got padding={}, "
          "kernel_size={} and "
          "dilation={}",
          padding, kernel, dilation);
  require(dilation > 0, "max_pool1d() dilation must be greater than zero, but got {}", dilation);
  const Window w{{1, 1, kernel}, {1, 1, stride}, {0, 0, padding}, {1, 1, dilation}, ceil};
  const SymInt size = pooled(self.size(-1), w, 2);
  require(!guard_or(size <= 0, false), "max_pool1d() Invalid computed output size: {}", size.to_string());
  Tensor image = unsqueeze(self, -2);
  return squeeze(std::get<0>(max_pool2d_with_indices(image, {1, kernel}, {1, stride}, {0, padding},
                                                     {1, dilation}, ceil)),
                 -2);
}

// The batch dim joins the batch of volumes, and comes back out of every result.
Batched volume_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  bool joins = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const int at = static_cast<int>(i);
    Tensor all = with_batch_first(call.tensor(at), call.batch_dim(at), call.batch_size());
    joins = all.dim() == 6;
    args[i] = joins ? flatten(all, 0, 1) : all;
  }
  Value result = weft::call(call.op(), args);
  ValueList split;
  const bool is_tuple = result.is_sequence();
  for (const Value& one : is_tuple ? result.elements() : ValueList{result}) {
    Tensor t = one.to_tensor();
    SymInts sizes(t.sizes());
    if (joins) {
      sizes[0] = floor_div(sizes[0], call.batch_size());
      sizes.insert(0, call.batch_size());
    }
    split.push_back(joins ? reshape(t, sizes) : t);
  }
  std::vector<int64_t> dims(split.size(), 0);
  return {is_tuple ? Value::tuple(std::move(split)) : split[0], dims};
}

}  // namespace

WEFT_OPERATOR(max_pool3d_with_indices) = {
    .schema =
        "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
        "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
    .out =
        "aten::max_pool3d_with_indices.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
        "padding=0, int[3] dilation=1, bool ceil_mode=False, *, Tensor(a!) out, Tensor(b!) indices) -> "
        "(Tensor(a!), Tensor(b!))",
    .traits = Traits::kCore,
    .meta = function<&max_meta>(),
    .kernel = structured_exact<&max_meta, &max_into>(),
    .vjp = {.saves = inputs(0) | outputs(1),
            .rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(1)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(2)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(3)),
                       dilation = boxing::Unboxed<IntSpan>(v.arg(4));
                  return Grads{max_pool3d_with_indices_backward(v.grad(0), v.input(0), kernel.get(),
                                                                stride.get(), padding.get(), dilation.get(),
                                                                v.arg<bool>(5), v.output(1))};
                },
            .differentiable_results = 1},
    .batch = volume_batch,
    .samples =
        [] {
          return Samples{{"volume", {f64({2, 4, 4, 4}), ints({2})}},
                         {"batch",
                          {f64({1, 2, 3, 5, 4}), ints({2, 3, 2}), ints({1, 2, 1}), ints({1, 1, 0}),
                           ints({1, 1, 2}), true}}};
        },
};

WEFT_OPERATOR(max_pool3d_with_indices_backward) = {
    .schema =
        "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
        "stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .out =
        "aten::max_pool3d_with_indices_backward.grad_input(Tensor grad_output, Tensor self, int[3] "
        "kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&max_backward_meta>(),
    .kernel = structured_exact<&max_backward_meta, &max_backward_into>(),
    .vjp = {.saves = inputs(1, 7),
            .rule =
                [](const Vjp& v) {
                  return Grads{at_maxima(v.grad(), v.input(7)), zeros_like(v.input(1)), Tensor()};
                }},
    .batch = volume_batch,
    .samples =
        [] {
          return Samples{{"volume",
                          {f64({2, 2, 2, 2}), f64({2, 4, 4, 4}), ints({2}), ints({2}), ints({0}), ints({1}),
                           false, i64({2, 2, 2, 2}, 0, 64)}}};
        },
};

WEFT_OPERATOR(max_pool3d) = {
    .schema =
        "aten::max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
        "dilation=1, bool ceil_mode=False) -> Tensor",
    .composite = {.functional = function<&max_composite>()},
    .samples = [] { return Samples{{"volume", {f64({2, 4, 4, 4}), ints({2})}}}; },
};

WEFT_OPERATOR(avg_pool3d) = {
    .schema =
        "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .out =
        "aten::avg_pool3d.out(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&avg_meta>(),
    .kernel = structured_exact<&avg_meta, &avg_into>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(1)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(2)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(3));
                  return Grads{avg_pool3d_backward(v.grad(), v.input(0), kernel.get(), stride.get(),
                                                   padding.get(), v.arg<bool>(4), v.arg<bool>(5),
                                                   v.arg<Divisor>(6))};
                }},
    .batch = volume_batch,
    .samples =
        [] {
          return Samples{
              {"volume", {f64({2, 4, 4, 4}), ints({2})}},
              {"batch",
               {f64({1, 2, 3, 5, 4}), ints({2, 3, 2}), ints({1, 2, 1}), ints({1, 1, 0}), true, false}}};
        },
};

WEFT_OPERATOR(avg_pool3d_backward) = {
    .schema =
        "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
        "int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .out =
        "aten::avg_pool3d_backward.grad_input(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
        "stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&avg_backward_meta>(),
    .kernel = structured_exact<&avg_backward_meta, &avg_backward_into>(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  auto kernel = boxing::Unboxed<IntSpan>(v.arg(2)),
                       stride = boxing::Unboxed<IntSpan>(v.arg(3)),
                       padding = boxing::Unboxed<IntSpan>(v.arg(4));
                  return Grads{avg_pool3d(v.grad(), kernel.get(), stride.get(), padding.get(), v.arg<bool>(5),
                                          v.arg<bool>(6), v.arg<Divisor>(7)),
                               zeros_like(v.input(1))};
                }},
    .batch = volume_batch,
    .samples =
        [] {
          return Samples{{"volume",
                          {f64({2, 2, 2, 2}), f64({2, 4, 4, 4}), ints({2}), ints({2}), ints({0}), false, true,
                           Value()}}};
        },
};

WEFT_OPERATOR(adaptive_avg_pool3d_kernel) = {
    .schema = "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
    .out =
        "aten::_adaptive_avg_pool3d.out(Tensor self, SymInt[3] output_size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&adaptive_meta>(),
    .kernel = structured_exact<&adaptive_meta, &adaptive_into>(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{_adaptive_avg_pool3d_backward(v.grad(), v.input(0))}; }},
    .batch = volume_batch,
    .samples = [] { return Samples{{"volume", {f64({2, 3, 5, 4}), ints({2, 2, 3})}}}; },
};

WEFT_OPERATOR(adaptive_avg_pool3d_backward) = {
    .schema = "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
    .out =
        "aten::_adaptive_avg_pool3d_backward.out(Tensor grad_output, Tensor self, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&adaptive_backward_meta>(),
    .kernel = structured_exact<&adaptive_backward_meta, &adaptive_backward_into>(),
    .vjp = {.saves = inputs(1) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  SymIntSpan sizes = v.sizes(0);
                  return Grads{_adaptive_avg_pool3d(v.grad(), sizes.subspan(sizes.size() - 3)),
                               zeros_like(v.input(1))};
                }},
    .batch = volume_batch,
    .samples = [] { return Samples{{"volume", {f64({2, 2, 2, 3}), f64({2, 3, 5, 4})}}}; },
};

WEFT_OPERATOR(adaptive_avg_pool3d) = {
    .schema = "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
    .composite = {.functional = function<&adaptive_composite>()},
    .samples =
        [] {
          return Samples{{"volume", {f64({2, 3, 5, 4}), ints({2, 2, 3})}},
                         {"mean", {f64({2, 3, 5, 4}), ints({1, 1, 1})}}};
        },
};

WEFT_OPERATOR(adaptive_avg_pool1d) = {
    .schema = "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    .composite = {.functional = function<&adaptive_1d_composite>()},
    .samples = [] { return Samples{{"signal", {f64({2, 5}), ints({3})}}}; },
};

WEFT_OPERATOR(max_pool1d) = {
    .schema =
        "aten::max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
        "dilation=[1], bool ceil_mode=False) -> Tensor",
    .composite = {.functional = function<&max_1d_composite>()},
    .samples = [] { return Samples{{"signal", {f64({2, 6}), ints({2})}}}; },
};

}  // namespace weft::ops
