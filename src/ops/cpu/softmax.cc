#include "ops/cpu/softmax.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/float_rows.h"
#include "ops/cpu/thread_elements.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const SoftmaxLoops<float> softmax_f32;
                  extern const SoftmaxLoops<double> softmax_f64;)

namespace {

// Columns of a tile, a multiple of every pack. Rows of many columns follow each other in memory, and what is
// known of each column stays in the nearest cache; tiles that are converted first have copies of their own,
// which are small.
constexpr int64_t kMostColumns = 1024, kFewestColumns = 64;

template <typename T>
const SoftmaxLoops<T>& softmax_loops();
template <>
const SoftmaxLoops<float>& softmax_loops() {
  return active_table<SoftmaxLoops<float>>(WEFT_ISA_TABLES(softmax_f32));
}
template <>
const SoftmaxLoops<double>& softmax_loops() {
  return active_table<SoftmaxLoops<double>>(WEFT_ISA_TABLES(softmax_f64));
}

// How many columns a tile has: as many as leave some tiles for each thread. Columns do not meet, so that the
// results are the same for any width.
int64_t tile_columns(const SoftmaxShape& shape, bool is_converted) {
  if (is_converted) return std::min(shape.inner, kFewestColumns);
  const int64_t threads = usable_threads();
  const int64_t parts = threads == 1 ? 1 : (2 * threads + shape.outer - 1) / shape.outer;
  const int64_t width = (shape.inner + parts - 1) / parts;
  return std::min(
      {(width + kFewestColumns - 1) / kFewestColumns * kFewestColumns, shape.inner, kMostColumns});
}

// Calls f(offset, width) for tiles that cover the shape: a row each, or some columns of one outer index.
template <typename F>
void for_each_tile(SoftmaxShape shape, int64_t width, const F& f) {
  int64_t tiles = (shape.inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kThreadElements / std::max<int64_t>(1, shape.n * width));
  parallel_for(0, shape.outer * tiles, grain, [&](int64_t begin, int64_t end) {
    auto tile = f();
    for (int64_t t = begin; t < end; ++t) {
      int64_t column = t % tiles * width;
      tile(t / tiles * shape.n * shape.inner + column, std::min(width, shape.inner - column));
    }
  });
}

// PyTorch keeps the sum of a row and its logarithm in the tensor's own type, which shows in 16-bit floats.
template <typename T, typename Narrow>
T rounded(T value) {
  return static_cast<T>(static_cast<float>(Narrow(static_cast<float>(value))));
}
template <typename T>
auto rounding_of(DType in_type, DType out_type) -> T (*)(T) {
  if (in_type != out_type) return nullptr;
  if (in_type == DType::kFloat16) return rounded<T, Half>;
  return in_type == DType::kBFloat16 ? rounded<T, BFloat16> : nullptr;
}

template <typename T>
void forward(SoftmaxKind kind, SoftmaxShape shape, const char* in, DType in_type, char* out, DType out_type) {
  T (*round)(T) = rounding_of<T>(in_type, out_type);
  const int64_t columns = tile_columns(shape, in_type != dtype_of<T> || out_type != dtype_of<T>);
  for_each_tile(shape, columns, [&] {
    return [&, x = FloatTile<T>(in, in_type, shape.inner), y = FloatTile<T>(out, out_type, shape.inner),
            scratch = std::vector<T>(shape.inner == 1 ? 0 : 3 * columns)](int64_t offset,
                                                                          int64_t width) mutable {
      const T* source = x.read(offset, shape.n, width);
      T* target = y.begin_write(offset, shape.n, width);
      int64_t stride = y.stride();
      if (shape.inner == 1) softmax_loops<T>().row(kind, shape.n, source, target, round);
      else if (x.stride() == stride)
        softmax_loops<T>().columns(kind, shape.n, width, stride, source, target, scratch.data());
      else {
        // Mixed widths: bring the input into the output's tile first.
        x.copy(source, target, shape.n, width, stride);
        softmax_loops<T>().columns(kind, shape.n, width, stride, target, target, scratch.data());
      }
      y.end_write(offset, shape.n, width);
    };
  });
}

template <typename T>
void backward(SoftmaxKind kind, SoftmaxShape shape, const char* grad, const char* output, DType type,
              char* grad_in, DType grad_in_type) {
  const int64_t columns = tile_columns(shape, type != dtype_of<T> || grad_in_type != dtype_of<T>);
  for_each_tile(shape, columns, [&] {
    return [&, g = FloatTile<T>(grad, type, shape.inner), y = FloatTile<T>(output, type, shape.inner),
            x = FloatTile<T>(grad_in, grad_in_type, shape.inner),
            scratch = std::vector<T>(shape.inner == 1 ? 0 : 3 * columns),
            same = std::vector<T>()](int64_t offset, int64_t width) mutable {
      const T* gradient = g.read(offset, shape.n, width);
      const T* result = y.read(offset, shape.n, width);
      T* target = x.begin_write(offset, shape.n, width);
      if (shape.inner == 1) {
        softmax_loops<T>().row_backward(kind, shape.n, gradient, result, target);
      } else {
        if (x.stride() != g.stride()) {
          same.resize(shape.n * g.stride());
          softmax_loops<T>().columns_backward(kind, shape.n, width, g.stride(), gradient, result, same.data(),
                                              scratch.data());
          g.copy(same.data(), target, shape.n, width, x.stride());
        } else {
          softmax_loops<T>().columns_backward(kind, shape.n, width, g.stride(), gradient, result, target,
                                              scratch.data());
        }
      }
      x.end_write(offset, shape.n, width);
    };
  });
}

}  // namespace

void softmax(SoftmaxKind kind, SoftmaxShape shape, const char* in, DType in_type, char* out, DType out_type) {
  if (shape.outer == 0 || shape.n == 0 || shape.inner == 0) return;
  if (in_type == DType::kFloat64) forward<double>(kind, shape, in, in_type, out, out_type);
  else forward<float>(kind, shape, in, in_type, out, out_type);
}

void softmax_backward(SoftmaxKind kind, SoftmaxShape shape, const char* grad, const char* output, DType type,
                      char* grad_in, DType grad_in_type) {
  if (shape.outer == 0 || shape.n == 0 || shape.inner == 0) return;
  if (type == DType::kFloat64) backward<double>(kind, shape, grad, output, type, grad_in, grad_in_type);
  else backward<float>(kind, shape, grad, output, type, grad_in, grad_in_type);
}

}  // namespace weft::cpu
