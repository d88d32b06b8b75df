// GEMM against plain sums in f64, for every layout of the operands, and the promise that a part of c has the
// bits of the whole.
#include "ops/cpu/gemm/driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "guarded_memory.h"
#include "ops/cpu/gemm/blocking.h"
#include "ops/cpu/isa.h"
#include "stored_matrix.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

using testing::GuardedVector;
using testing::kMatrixLayouts;
using testing::MatrixLayout;
using testing::random_matrix;
using testing::StoredMatrix;

struct GemmSizes {
  int64_t m, n, k;
};
// Where blocks of rows share packed panels of b.
const int64_t kManyRows = block_rows<float>(60) + 20;
const GemmSizes kGemmSizes[] = {
    {1, 1, 1},      {1, 1, 100},   {1, 70, 33},         {5, 40, 64},    {40, 3, 50},   {70, 1, 33},
    {6, 16, 8},     {7, 17, 9},    {13, 31, 600},       {50, 33, 129},  {90, 8, 513},  {12, 200, 20},
    {130, 140, 70}, {22, 200, 20}, {kManyRows, 40, 60}, {26, 110, 530}, {29, 400, 300}};

template <typename T>
class GemmTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set_active_isa(isa_);
    set_num_threads(threads_);
  }
  const int threads_ = num_threads();
  const IsaLevel isa_ = active_isa();
  std::mt19937 bits_{7};
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(GemmTest, Types);

// Differences from sums in f64 that rounding explains: each step errs by up to half a unit of its sum, in
// either direction, so that errors add up as the root of their squares. Eight times that is never seen.
template <typename T>
double allowed_difference(double squares_of_sums, double result) {
  constexpr double kUnit = std::numeric_limits<T>::epsilon();
  // OpenBLAS adds in an order of its own, whose sums may be larger on the way.
  const double times = kOwnGemm ? 4 : 8;
  return kUnit * (times * std::sqrt(squares_of_sums / 3) + 4 * std::max(1.0, std::fabs(result)));
}

template <typename T>
void expect_gemm(const Gemm<T>& p, const GuardedVector<T>& before, const std::string& what) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0, squares = 0;
      for (int64_t x = 0; x < p.k; ++x) {
        const double term = static_cast<double>(*p.a.at(i, x)) * static_cast<double>(*p.b.at(x, j));
        sum += term;
        squares += sum * sum + term * term;
      }
      double expected = static_cast<double>(p.alpha) * sum;
      if (p.addend.data) {
        const bool is_c = p.addend.data == p.c;
        expected += static_cast<double>(p.beta) *
                    static_cast<double>(is_c ? before[static_cast<size_t>(i * p.c_row_stride + j)]
                                             : *p.addend.at(i, j));
      }
      const double got = static_cast<double>(p.c[i * p.c_row_stride + j * p.c_column_stride]);
      ASSERT_NEAR(got, expected, allowed_difference<T>(squares, expected))
          << what << " at " << i << ", " << j;
    }
}

TYPED_TEST(GemmTest, EveryLayoutGivesTheSumOfProducts) {
  using T = TypeParam;
  for (int isa = 0; isa <= static_cast<int>(best_isa()); ++isa) {
    set_active_isa(static_cast<IsaLevel>(isa));
    this->bits_.seed(7);
    for (const GemmSizes& s : kGemmSizes)
      for (MatrixLayout left : kMatrixLayouts)
        for (MatrixLayout right : kMatrixLayouts) {
          StoredMatrix<T> a = random_matrix<T>(s.m, s.k, left, this->bits_),
                          b = random_matrix<T>(s.k, s.n, right, this->bits_);
          // What c holds must not matter, and nothing beside it may be written.
          const int64_t pitch = s.n + 2;
          GuardedVector<T> c(static_cast<size_t>(s.m * pitch), std::numeric_limits<T>::quiet_NaN());
          Gemm<T> p{s.m, s.n, s.k, 1, 0, a.view, b.view, {}, c.data(), pitch, 1};
          run_gemm(p);
          expect_gemm(p, {},
                      std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
                          " layouts " + std::to_string(static_cast<int>(left)) +
                          std::to_string(static_cast<int>(right)));
          for (int64_t i = 0; i < s.m; ++i)
            for (int64_t j = s.n; j < pitch; ++j)
              ASSERT_TRUE(std::isnan(c[static_cast<size_t>(i * pitch + j)]));
        }
  }
}

TYPED_TEST(GemmTest, ManyLongRowsGiveTheSumOfProducts) {
  using T = TypeParam;
  const GemmSizes s{block_rows<T>(block_depth<T>(700)) + 20, 110, 700};
  StoredMatrix<T> a = random_matrix<T>(s.m, s.k, MatrixLayout::kRows, this->bits_),
                  b = random_matrix<T>(s.k, s.n, MatrixLayout::kRows, this->bits_);
  for (int isa = 0; isa <= static_cast<int>(best_isa()); ++isa) {
    set_active_isa(static_cast<IsaLevel>(isa));
    GuardedVector<T> c(static_cast<size_t>(s.m * s.n), std::numeric_limits<T>::quiet_NaN());
    Gemm<T> p{s.m, s.n, s.k, 1, 0, a.view, b.view, {}, c.data(), s.n, 1};
    run_gemm(p);
    expect_gemm(p, {}, isa_name(static_cast<IsaLevel>(isa)));
  }
}

TYPED_TEST(GemmTest, AddsAMatrixARowAColumnANumberOrTheResultItself) {
  using T = TypeParam;
  for (const GemmSizes& s : kGemmSizes) {
    StoredMatrix<T> a = random_matrix<T>(s.m, s.k, MatrixLayout::kRows, this->bits_),
                    b = random_matrix<T>(s.k, s.n, MatrixLayout::kColumns, this->bits_),
                    added = random_matrix<T>(s.m, s.n, MatrixLayout::kGaps, this->bits_);
    GuardedVector<T> c(static_cast<size_t>(s.m * s.n));
    const T* data = added.view.data;
    const MatrixView<T> addends[] = {added.view,   {data, 0, 1}, {data, 0, 2},
                                     {data, 1, 0}, {data, 0, 0}, {c.data(), s.n, 1}};
    for (const MatrixView<T>& addend : addends) {
      for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<T>(i % 7) - 3;
      const GuardedVector<T> before = c;
      Gemm<T> p{s.m, s.n, s.k, T(0.5), T(-2), a.view, b.view, addend, c.data(), s.n, 1};
      run_gemm(p);
      expect_gemm(p, before, std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k));
    }
  }
}

TYPED_TEST(GemmTest, HasTheSameBitsForAnyNumberOfThreads) {
  using T = TypeParam;
  const int64_t many = block_rows<T>(260) + 20;
  for (GemmSizes s : {GemmSizes{150, 333, 700}, GemmSizes{many, 90, 260}, GemmSizes{many, 400, 260},
                      GemmSizes{5, 4000, 300}, GemmSizes{4000, 2, 300}})
    for (MatrixLayout right : kMatrixLayouts) {
      StoredMatrix<T> a = random_matrix<T>(s.m, s.k, MatrixLayout::kRows, this->bits_),
                      b = random_matrix<T>(s.k, s.n, right, this->bits_);
      auto run = [&](int threads) {
        set_num_threads(threads);
        GuardedVector<T> c(static_cast<size_t>(s.m * s.n));
        run_gemm(Gemm<T>{s.m, s.n, s.k, 1, 0, a.view, b.view, {}, c.data(), s.n, 1});
        return c;
      };
      const GuardedVector<T> once = run(1);
      for (int threads : {2, 3, 7, 16}) {
        const GuardedVector<T> again = run(threads);
        EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(T)), 0)
            << s.m << "x" << s.n << "x" << s.k << " on " << threads << " threads";
      }
    }
}

TYPED_TEST(GemmTest, NansAndInfinitiesReachExactlyTheirRowsAndColumns) {
  using T = TypeParam;
  const GemmSizes s{20, 35, 50};
  StoredMatrix<T> a = random_matrix<T>(s.m, s.k, MatrixLayout::kRows, this->bits_),
                  b = random_matrix<T>(s.k, s.n, MatrixLayout::kRows, this->bits_);
  a.memory[7 * 50 + 3] = std::numeric_limits<T>::quiet_NaN();
  b.memory[2 * 35 + 34] = std::numeric_limits<T>::infinity();
  GuardedVector<T> c(20 * 35);
  run_gemm(Gemm<T>{s.m, s.n, s.k, 1, 0, a.view, b.view, {}, c.data(), s.n, 1});
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 35; ++j) {
      const T value = c[static_cast<size_t>(i * 35 + j)];
      EXPECT_EQ(std::isnan(value), i == 7) << i << ", " << j;
      EXPECT_EQ(std::isfinite(value), i != 7 && j != 34) << i << ", " << j;
    }
}

}  // namespace
}  // namespace weft::cpu
