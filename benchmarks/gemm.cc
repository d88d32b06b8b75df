// GEMM in one process, one contender after the other in turns: weft's own loops, OpenBLAS on tiles that
// weft's threads share, OpenBLAS and oneDNN on threads of their own. Prints tables in Markdown: GFLOP/s
// against the libraries and for other types, and whether the number of threads changes the bits.
//   bench-gemm [only the cases whose name contains this]
#include <cblas.h>
#include <omp.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ops/cpu/gemm.h"
#include "weft/base/numbers.h"
#include "weft/base/parallel.h"

extern "C" void openblas_set_num_threads(int);

namespace weft {
namespace {

struct Sizes {
  int64_t m, n, k;

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n * k); }
  std::string name() const {
    return m == n && n == k ? std::to_string(m)
                            : std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
  }
};

template <typename T>
struct Operands {
  Sizes s;
  std::vector<T> a = random(s.m * s.k), b = random(s.k * s.n), c = random(s.m * s.n);

  static std::vector<T> random(int64_t count) {
    std::mt19937 bits(3);
    std::vector<T> result(static_cast<size_t>(count));
    for (T& x : result) x = T(std::uniform_real_distribution<float>(-1, 1)(bits));
    return result;
  }
};

template <typename T>
void weft_gemm(Operands<T>& o) {
  cpu::gemm(dtype_of<T>, o.s.m, o.s.n, o.s.k, 1.0, {reinterpret_cast<const char*>(o.a.data()), o.s.k, 1},
            {reinterpret_cast<const char*>(o.b.data()), o.s.n, 1}, {}, reinterpret_cast<char*>(o.c.data()),
            o.s.n);
}

void blas_rows(Operands<float>& o, int64_t first, int64_t last) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(last - first),
              static_cast<int>(o.s.n), static_cast<int>(o.s.k), 1, o.a.data() + first * o.s.k,
              static_cast<int>(o.s.k), o.b.data(), static_cast<int>(o.s.n), 0, o.c.data() + first * o.s.n,
              static_cast<int>(o.s.n));
}
// A tile a thread, which is what costs OpenBLAS least: every call packs b anew.
void blas_tiles(Operands<float>& o, int threads) {
  openblas_set_num_threads(1);
  set_num_threads(threads);
  const int64_t rows = (o.s.m + threads - 1) / threads;
  parallel_for(0, o.s.m, rows, [&](int64_t first, int64_t last) { blas_rows(o, first, last); });
}
void blas_threads(Operands<float>& o, int threads) {
  openblas_set_num_threads(threads);
  blas_rows(o, 0, o.s.m);
}
void onednn(Operands<float>& o, int threads) {
  omp_set_num_threads(threads);
  dnnl::sgemm('N', 'N', o.s.m, o.s.n, o.s.k, 1, o.a.data(), o.s.k, o.b.data(), o.s.n, 0, o.c.data(), o.s.n);
}

using Run = std::function<void()>;

// One thread is timed by the processor's time that it takes, which leaves out what other programs take;
// several by the clock, which does not.
double now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}
double seconds(const Run& run, int threads, int repeats) {
  const double start = now(threads);
  for (int i = 0; i < repeats; ++i) run();
  return (now(threads) - start) / repeats;
}

// Of the best three turns, each some milliseconds long: what else the machine does hits all contenders, and
// seldom a whole turn. Threads of one contender that spin for work are given the time to go to sleep before
// another's turn.
std::vector<double> rates(double flops, int threads, const std::vector<Run>& contenders) {
  const int turns = flops < 4e9 ? 100 : 25, best = 3;
  std::vector<std::vector<double>> times(contenders.size());
  const int repeats = static_cast<int>(std::max(1.0, 5e8 / flops));
  for (int turn = 0; turn < turns; ++turn)
    for (size_t i = 0; i < contenders.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      contenders[i]();
      times[i].push_back(seconds(contenders[i], threads, repeats));
    }
  std::vector<double> result;
  for (std::vector<double>& of_one : times) {
    std::sort(of_one.begin(), of_one.end());
    result.push_back(flops / (std::accumulate(of_one.begin(), of_one.begin() + best, 0.0) / best) / 1e9);
  }
  return result;
}

void print_row(const std::string& name, int threads, const std::vector<double>& numbers) {
  std::printf("| %s | %d |", name.c_str(), threads);
  for (double x : numbers) std::printf(" %.1f |", x);
  std::printf("\n");
  std::fflush(stdout);
}

constexpr Sizes kSizes[] = {{256, 256, 256}, {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048},
                            {128, 768, 768}, {16, 1000, 2048}, {64, 64, 16384}};

void against_libraries(const std::string& only) {
  std::printf("| f32 | threads | weft | OpenBLAS, tiles | OpenBLAS, its threads | oneDNN, its threads |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const Sizes& s : kSizes)
    for (int threads : {1, 2}) {
      if (s.name().find(only) == std::string::npos) continue;
      set_num_threads(threads);
      Operands<float> o{s};
      print_row(s.name(), threads,
                rates(s.flops(), threads,
                      {[&] { weft_gemm(o); }, [&] { blas_tiles(o, threads); },
                       [&] { blas_threads(o, threads); }, [&] { onednn(o, threads); }}));
    }
}

// For how many of 2 to 8 threads the result has the bits of one thread.
using RunOn = void (*)(Operands<float>&, int threads);
std::string same_bits(const Sizes& s, RunOn run) {
  Operands<float> o{s};
  run(o, 1);
  const std::vector<float> once = o.c;
  int same = 0;
  for (int threads = 2; threads <= 8; ++threads) {
    run(o, threads);
    same += std::memcmp(once.data(), o.c.data(), once.size() * sizeof(float)) == 0;
  }
  return std::to_string(same) + " of 7";
}

void bits_by_threads(const std::string& only) {
  const RunOn weft_on = [](Operands<float>& o, int threads) {
    set_num_threads(threads);
    weft_gemm(o);
  };
  std::printf(
      "\n| bits of one thread | weft | OpenBLAS, a tile a thread | OpenBLAS, its threads | oneDNN |\n");
  std::printf("| --- | --- | --- | --- | --- |\n");
  for (const Sizes& s : kSizes)
    if (s.name().find(only) != std::string::npos)
      std::printf("| %s | %s | %s | %s | %s |\n", s.name().c_str(), same_bits(s, weft_on).c_str(),
                  same_bits(s, blas_tiles).c_str(), same_bits(s, blas_threads).c_str(),
                  same_bits(s, onednn).c_str());
}

void of_other_types(const std::string& only) {
  std::printf("\n| weft | threads | f32 | f64 | bf16 | f16 |\n| --- | --- | --- | --- | --- | --- |\n");
  for (const Sizes& s : kSizes)
    for (int threads : {1, 2}) {
      if (s.name().find(only) == std::string::npos) continue;
      set_num_threads(threads);
      Operands<float> single{s};
      Operands<double> wide{s};
      Operands<BFloat16> brain{s};
      Operands<Half> half{s};
      print_row(s.name(), threads,
                rates(s.flops(), threads,
                      {[&] { weft_gemm(single); }, [&] { weft_gemm(wide); }, [&] { weft_gemm(brain); },
                       [&] { weft_gemm(half); }}));
    }
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  const std::string only = count > 1 ? arguments[1] : "";
  weft::against_libraries(only);
  weft::of_other_types(only);
  weft::bits_by_threads(only);
}
