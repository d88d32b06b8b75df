#include "ops/cpu/layer_norm.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/float_rows.h"
#include "ops/cpu/reduction.h"
#include "ops/cpu/stream_copy.h"
#include "ops/cpu/thread_elements.h"
#include "weft/base/parallel.h"

namespace weft::cpu {

WEFT_IN_EVERY_ISA(extern const LayerNormLoops<float> layer_norm_f32;
                  extern const LayerNormLoops<double> layer_norm_f64;)

namespace {

constexpr int64_t kPrefetchBytes = 8192;  // of the next row, asked for before this one is written

template <typename T>
const LayerNormLoops<T>& layer_norm_loops();
template <>
const LayerNormLoops<float>& layer_norm_loops() {
  return active_table<LayerNormLoops<float>>(WEFT_ISA_TABLES(layer_norm_f32));
}
template <>
const LayerNormLoops<double>& layer_norm_loops() {
  return active_table<LayerNormLoops<double>>(WEFT_ISA_TABLES(layer_norm_f64));
}

// One element of a float array of any width.
template <typename T>
T read_one(const char* data, DType type, int64_t i) {
  T value;
  char* pointers[] = {reinterpret_cast<char*>(&value), const_cast<char*>(data) + i * item_size(type)};
  converter(dtype_of<T>, type)(1, pointers, nullptr);
  return value;
}
template <typename T>
void write_one(char* data, DType type, int64_t i, T value) {
  char* pointers[] = {data + i * item_size(type), reinterpret_cast<char*>(&value)};
  converter(type, dtype_of<T>)(1, pointers, nullptr);
}

int64_t rows_per_thread(const LayerNormArgs& args) {
  return std::max<int64_t>(1, kThreadElements / std::max<int64_t>(1, args.n));
}

template <typename T>
void forward(const LayerNormArgs& args, char* out, char* mean, char* rstd) {
  FloatTile<T> weights(args.weight, args.weight_type, args.n), biases(args.bias, args.weight_type, args.n);
  const T* weight = args.weight ? weights.read(0, 1, args.n) : nullptr;
  const T* bias = args.bias ? biases.read(0, 1, args.n) : nullptr;
  const int64_t row_bytes = args.n * item_size(args.type);
  parallel_for(0, args.rows, rows_per_thread(args), [&](int64_t begin, int64_t end) {
    FloatTile<T> x(args.in, args.type, args.n), y(out, args.type, args.n);
    for (int64_t r = begin; r < end; ++r) {
      T m, s;
      prefetch(args.in + (r + 1) * row_bytes, std::min<int64_t>(row_bytes, kPrefetchBytes));
      T* target = y.begin_write(r * args.n, 1, args.n);
      layer_norm_loops<T>().row(args.n, x.read(r * args.n, 1, args.n), weight, bias, static_cast<T>(args.eps),
                                target, &m, &s);
      y.end_write(r * args.n, 1, args.n);
      write_one(mean, args.moment_type, r, m);
      write_one(rstd, args.moment_type, r, s);
    }
  });
}

// Sums [chunks, n] over the chunks into a result of the weights' type.
template <typename T>
void sum_chunks(std::vector<T>& partial, int64_t chunks, int64_t n, char* out, DType type) {
  const int64_t sizes[] = {chunks, n}, strides[] = {n, 1}, out_strides[] = {0, 1};
  Operand in = {reinterpret_cast<char*>(partial.data()), dtype_of<T>, strides};
  Operand outputs[] = {{out, type, out_strides}};
  run_reduction(kSum, dtype_of<T>, in, outputs, sizes, 1);
}

template <typename T>
void backward(const LayerNormArgs& args, const char* grad, const char* mean, const char* rstd,
              const LayerNormGradients& gradients) {
  FloatTile<T> weights(args.weight, args.weight_type, args.n);
  const T* weight = args.weight ? weights.read(0, 1, args.n) : nullptr;
  // Sums over rows are taken in at most 64 chunks of rows, whatever the number of threads.
  int64_t chunk = std::max<int64_t>(rows_per_thread(args), (args.rows + 63) / 64);
  int64_t chunks = (args.rows + chunk - 1) / chunk;
  std::vector<T> weight_sums(gradients.weight ? chunks * args.n : 0),
      bias_sums(gradients.bias ? chunks * args.n : 0);
  parallel_for(0, args.rows, chunk, [&](int64_t begin, int64_t end) {
    FloatTile<T> x(args.in, args.type, args.n), g(grad, args.type, args.n),
        dx(gradients.in, args.type, args.n);
    T* weight_sum = gradients.weight ? weight_sums.data() + begin / chunk * args.n : nullptr;
    T* bias_sum = gradients.bias ? bias_sums.data() + begin / chunk * args.n : nullptr;
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = r * args.n;
      T* target = gradients.in ? dx.begin_write(at, 1, args.n) : nullptr;
      layer_norm_loops<T>().row_backward(args.n, g.read(at, 1, args.n), x.read(at, 1, args.n), weight,
                                         read_one<T>(mean, args.moment_type, r),
                                         read_one<T>(rstd, args.moment_type, r), target, weight_sum,
                                         bias_sum);
      if (target) dx.end_write(at, 1, args.n);
    }
  });
  if (gradients.weight) sum_chunks(weight_sums, chunks, args.n, gradients.weight, args.weight_type);
  if (gradients.bias) sum_chunks(bias_sums, chunks, args.n, gradients.bias, args.weight_type);
}

}  // namespace

void layer_norm(const LayerNormArgs& args, char* out, char* mean, char* rstd) {
  if (args.type == DType::kFloat64) forward<double>(args, out, mean, rstd);
  else forward<float>(args, out, mean, rstd);
}

void layer_norm_backward(const LayerNormArgs& args, const char* grad, const char* mean, const char* rstd,
                         const LayerNormGradients& gradients) {
  if (args.type == DType::kFloat64) backward<double>(args, grad, mean, rstd, gradients);
  else backward<float>(args, grad, mean, rstd, gradients);
}

}  // namespace weft::cpu
