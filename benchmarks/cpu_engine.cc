// Times the CPU engine alone, on the sizes that compare with PyTorch's: one line "name ms(1 thread) ms(2
// threads)". Built by hand; not part of the default build.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "ops/cpu/cumulative.h"
#include "ops/cpu/layer_norm.h"
#include "ops/cpu/pointwise_kernels.h"
#include "ops/cpu/reduction.h"
#include "ops/cpu/softmax.h"
#include "weft/base/parallel.h"

using namespace weft;
using namespace weft::cpu;

namespace {

constexpr int64_t kN = 10'000'000, kRows = 2500, kColumns = 4000;

// Memory aligned as a tensor's.
template <typename T>
struct Array {
  explicit Array(int64_t n)
      : n(n), memory(static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64))) {}
  Array(const Array& other) : Array(other.n) { std::memcpy(memory, other.memory, n * sizeof(T)); }
  ~Array() { std::free(memory); }
  T* data() { return memory; }
  T* begin() { return memory; }
  T* end() { return memory + n; }
  int64_t n;
  T* memory;
};

template <typename T>
Array<T> random_data(int64_t n, double low = -3, double high = 3) {
  Array<T> data(n);
  uint64_t state = 12345;
  for (T& x : data) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<float>(low + (high - low) * static_cast<double>(state >> 40) / 0x1p24));
  }
  return data;
}

// Wall time; the thread's own CPU time for one thread, which a busy machine disturbs less.
double now_ms(int threads) {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double time_ms(const std::function<void()>& f, int inner, int threads) {
  f();
  f();
  double best = 1e30;
  for (int i = 0; i < 15; ++i) {
    double start = now_ms(threads);
    for (int k = 0; k < inner; ++k) f();
    best = std::min(best, (now_ms(threads) - start) / inner);
  }
  return best;
}

struct Bench {
  std::vector<std::string> only;

  void operator()(const std::string& name, const std::function<void()>& f, int inner = 3) const {
    if (!only.empty() && std::find(only.begin(), only.end(), name) == only.end()) return;
    double times[2];
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      times[threads - 1] = time_ms(f, inner, threads);
    }
    std::printf("%s %.6g %.6g\n", name.c_str(), times[0], times[1]);
    std::fflush(stdout);
  }
};

template <typename T>
Operand operand(Array<T>& data, const int64_t* strides) {
  return {reinterpret_cast<char*>(data.data()), dtype_of<T>, strides};
}

const int64_t kFlat[] = {1}, kEvery[] = {2}, kFlatSize[] = {kN};

void pointwise(const Bench& bench) {
  auto x = random_data<float>(2 * kN), y = random_data<float>(kN), out = random_data<float>(kN);
  auto positive = random_data<float>(kN, 0.1, 4);
  auto unary = [&](const char* name, const PointwiseKernel& kernel, Array<float>& in) {
    Operand operands[] = {operand(out, kFlat), operand(in, kFlat)};
    bench(name, [&] { run_pointwise(kernel, DType::kFloat32, operands, kFlatSize); });
  };
  auto binary = [&](const char* name, const PointwiseKernel& kernel, Array<float>& a) {
    Operand operands[] = {operand(out, kFlat), operand(a, kFlat), operand(y, kFlat)};
    bench(name, [&] { run_pointwise(kernel, DType::kFloat32, operands, kFlatSize); });
  };
  binary("add", kAdd, x);
  binary("mul", kMul, x);
  binary("div", kDiv, x);
  unary("exp", kExp, x);
  unary("log", kLog, positive);
  unary("tanh", kTanh, x);
  unary("sigmoid", kSigmoid, x);
  unary("sin", kSin, x);
  unary("erf", kErf, x);
  unary("gelu", kGelu, x);
  unary("gelu_tanh", kGeluTanh, x);
  unary("silu", kSilu, x);
  unary("sqrt", kSqrt, positive);
  binary("pow", kPow, positive);
  const int64_t sizes[] = {kRows, kColumns}, plain[] = {kColumns, 1}, turned[] = {1, kRows}, row[] = {0, 1},
                column[] = {1, 0};
  auto strided = [&](const char* name, const int64_t* strides) {
    Operand operands[] = {operand(out, plain), operand(x, plain), operand(y, strides)};
    bench(name, [&] { run_pointwise(kAdd, DType::kFloat32, operands, sizes); });
  };
  strided("add_transposed", turned);
  strided("add_row", row);
  strided("add_col", column);
  Operand every[] = {operand(out, kFlat), operand(y, kFlat), operand(x, kEvery)};
  bench("add_strided", [&] { run_pointwise(kAdd, DType::kFloat32, every, kFlatSize); });
  const int64_t narrow[] = {kN / 4, 3}, four[] = {4, 1}, three[] = {3, 1};
  Operand narrowed[] = {operand(out, three), operand(x, four), operand(y, four)};
  bench("add_narrow3", [&] { run_pointwise(kAdd, DType::kFloat32, narrowed, narrow); });
  Array<uint8_t> mask(kN);
  Operand compare[] = {
      {reinterpret_cast<char*>(mask.data()), DType::kBool, kFlat}, operand(x, kFlat), operand(y, kFlat)};
  bench("lt", [&] { run_pointwise(kLt, DType::kFloat32, compare, kFlatSize); });
  Operand select[] = {operand(out, kFlat), compare[0], operand(x, kFlat), operand(y, kFlat)};
  bench("where", [&] { run_pointwise(kWhere, DType::kFloat32, select, kFlatSize); });
  Operand copy_turned[] = {operand(out, plain), operand(y, turned)};
  bench("copy_transposed", [&] { copy_strided(copy_turned[0], copy_turned[1], sizes); });
}

void dtypes(const Bench& bench) {
  auto x = random_data<BFloat16>(kN), y = random_data<BFloat16>(kN), out = random_data<BFloat16>(kN);
  Operand bf16[] = {operand(out, kFlat), operand(x, kFlat), operand(y, kFlat)};
  bench("add_bf16", [&] { run_pointwise(kAdd, DType::kBFloat16, bf16, kFlatSize); });
  Operand gelu[] = {operand(out, kFlat), operand(x, kFlat)};
  bench("gelu_bf16", [&] { run_pointwise(kGelu, DType::kBFloat16, gelu, kFlatSize); });
  auto a = random_data<int64_t>(kN, -100, 100), b = random_data<int64_t>(kN, -100, 100), c = b;
  Operand whole[] = {operand(c, kFlat), operand(a, kFlat), operand(b, kFlat)};
  bench("add_i64", [&] { run_pointwise(kAdd, DType::kInt64, whole, kFlatSize); });
  auto f = random_data<float>(kN), g = f;
  Operand mixed[] = {operand(g, kFlat), operand(a, kFlat), operand(f, kFlat)};
  bench("add_i64_f32", [&] { run_pointwise(kAdd, DType::kFloat32, mixed, kFlatSize); });
  auto d = random_data<double>(kN), e = d;
  Operand wide[] = {operand(e, kFlat), operand(d, kFlat)};
  bench("exp_f64", [&] { run_pointwise(kExp, DType::kFloat64, wide, kFlatSize); });
  Operand narrowing[] = {operand(out, kFlat), operand(f, kFlat)},
          whole_copy[] = {operand(c, kFlat), operand(f, kFlat)};
  bench("copy_f32_bf16", [&] { copy_strided(narrowing[0], narrowing[1], kFlatSize); });
  bench("copy_f32_i64", [&] { copy_strided(whole_copy[0], whole_copy[1], kFlatSize); });
}

void reductions(const Bench& bench) {
  constexpr int64_t rows = 4096, columns = 1024;
  auto x = random_data<float>(rows * columns), out = random_data<float>(rows);
  auto where = random_data<int64_t>(rows);
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1}, fast[] = {1, 0}, slow[] = {0, 1},
                one[] = {0, 0};
  auto reduce = [&](const char* name, const ReductionKernel& kernel, bool over_rows, bool over_columns,
                    double param = 0) {
    const int64_t* out_strides = over_rows && over_columns ? one : over_columns ? fast : slow;
    uint64_t mask = (over_rows ? 1 : 0) | (over_columns ? 2 : 0);
    bool index = &kernel == &kArgmax;
    Operand target = index ? operand(where, out_strides) : operand(out, out_strides);
    bench(
        name,
        [&] {
          run_reduction(kernel, DType::kFloat32, operand(x, strides), {&target, 1}, sizes, mask, param);
        },
        10);
  };
  reduce("sum_all", kSum, true, true);
  reduce("sum_fast", kSum, false, true);
  reduce("sum_slow", kSum, true, false);
  reduce("mean_fast", kMean, false, true);
  reduce("amax_fast", kAmax, false, true);
  reduce("amax_slow", kAmax, true, false);
  reduce("argmax_fast", kArgmax, false, true);
  reduce("argmax_slow", kArgmax, true, false);
  reduce("var_fast", kVar, false, true, 1);
  reduce("var_slow", kVar, true, false, 1);
  reduce("prod_fast", kProd, false, true);
}

void rows(const Bench& bench) {
  constexpr int64_t rows = 4096, columns = 1024;
  auto x = random_data<float>(rows * columns), y = x, g = x, weight = random_data<float>(columns);
  auto mean = random_data<float>(rows), rstd = mean, dw = weight, db = weight;
  auto bytes = [](Array<float>& a) { return reinterpret_cast<char*>(a.data()); };
  constexpr DType f32 = DType::kFloat32;
  using enum SoftmaxKind;
  bench("softmax_fast", [&] { softmax(kSoftmax, {rows, columns, 1}, bytes(x), f32, bytes(y), f32); });
  bench("softmax_slow", [&] { softmax(kSoftmax, {1, rows, columns}, bytes(x), f32, bytes(y), f32); });
  bench("log_softmax_fast", [&] { softmax(kLogSoftmax, {rows, columns, 1}, bytes(x), f32, bytes(y), f32); });
  bench("softmax_backward_fast",
        [&] { softmax_backward(kSoftmax, {rows, columns, 1}, bytes(x), bytes(x), f32, bytes(y), f32); });
  LayerNormArgs args = {rows, columns, f32, f32, f32, 1e-5, bytes(x), bytes(weight), bytes(weight)};
  bench("layer_norm", [&] { layer_norm(args, bytes(y), bytes(mean), bytes(rstd)); });
  bench("layer_norm_backward", [&] {
    layer_norm_backward(args, bytes(y), bytes(mean), bytes(rstd), {bytes(g), bytes(dw), bytes(db)});
  });
  bench("cumsum_fast", [&] { cumsum(rows, columns, 1, bytes(x), bytes(y), f32); });
  bench("cumsum_slow", [&] { cumsum(1, rows, columns, bytes(x), bytes(y), f32); });
}

void overhead(const Bench& bench) {
  auto x = random_data<float>(64), y = x, out = x;
  for (int64_t n : {1, 8, 64}) {
    const int64_t sizes[] = {n};
    Operand operands[] = {operand(out, kFlat), operand(x, kFlat), operand(y, kFlat)};
    // In milliseconds, like the rest: 1e-5 is 10 ns.
    bench("add_" + std::to_string(n), [&] { run_pointwise(kAdd, DType::kFloat32, operands, sizes); }, 100000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench{{argv + 1, argv + argc}};
  pointwise(bench);
  dtypes(bench);
  reductions(bench);
  rows(bench);
  overhead(bench);
}
