// GEMM of 16-bit floats has the bits of widened, dense copies of its operands in the f32 GEMM, rounded once,
// for any strides and any number of threads, and makes no such copies.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cpu/gemm/convert_matrix.h"
#include "ops/cpu/gemm/driver.h"
#include "ops/cpu/isa.h"
#include "stored_matrix.h"
#include "weft/base/allocator.h"
#include "weft/base/parallel.h"

namespace weft::cpu {
namespace {

using testing::GuardedVector;
using testing::kMatrixLayouts;
using testing::MatrixLayout;
using testing::random_matrix;
using testing::StoredMatrix;

struct WideningSizes {
  int64_t m, n, k;
};
// Single elements, ragged tiles, dot products, several blocks along k, several blocks of rows and of columns.
constexpr WideningSizes kWideningSizes[] = {{1, 1, 1},     {1, 1, 100},   {5, 3, 7},       {1, 70, 33},
                                            {40, 3, 50},   {70, 1, 333},  {3, 40, 50},     {13, 31, 600},
                                            {50, 33, 129}, {90, 8, 1537}, {530, 140, 517}, {29, 1100, 1030}};

template <typename S>
class WideningGemmTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set_active_isa(isa_);
    set_num_threads(threads_);
  }
  const int threads_ = num_threads();
  const IsaLevel isa_ = active_isa();
  std::mt19937 bits_{11};
};
using WideningTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(WideningGemmTest, WideningTypes);

template <typename S>
using Narrow = Gemm<float, S, S>;

template <typename S>
std::vector<float> widened(const MatrixView<S>& x, int64_t rows, int64_t columns) {
  std::vector<float> result(static_cast<size_t>(rows * columns));
  convert_matrix(x, rows, columns, result.data(), columns, 1);
  return result;
}

// c as it must be, gaps included.
template <typename S>
GuardedVector<S> expected_result(const Narrow<S>& g, GuardedVector<S> c) {
  const std::vector<float> a = widened(g.a, g.m, g.k), b = widened(g.b, g.k, g.n);
  std::vector<float> wide(static_cast<size_t>(g.m * g.n));
  if (g.addend.data) wide = widened(g.addend, g.m, g.n);
  const MatrixView<float> addend{g.addend.data ? wide.data() : nullptr, g.n, 1};
  run_gemm<float>(
      {g.m, g.n, g.k, g.alpha, g.beta, {a.data(), g.k, 1}, {b.data(), g.n, 1}, addend, wide.data(), g.n, 1});
  convert_matrix(MatrixView<float>{wide.data(), g.n, 1}, g.m, g.n, c.data(), g.c_row_stride, 1);
  return c;
}

template <typename S>
bool has_same_bits(const GuardedVector<S>& x, const GuardedVector<S>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(S)) == 0;
}

template <typename S>
std::string describe(const Narrow<S>& g) {
  return std::to_string(g.m) + "x" + std::to_string(g.n) + "x" + std::to_string(g.k) + " on " +
         std::to_string(num_threads()) + " threads, " + isa_name(active_isa());
}

template <typename S>
void expect_bits_of_widened_copies(Narrow<S> g, GuardedVector<S>& c) {
  const GuardedVector<S> expected = expected_result(g, c);
  run_widening_gemm(g);
  EXPECT_TRUE(has_same_bits(c, expected)) << describe(g);
}

TYPED_TEST(WideningGemmTest, EveryLayoutHasTheBitsOfWidenedCopies) {
  using S = TypeParam;
  for (int isa = 0; isa <= static_cast<int>(best_isa()); ++isa) {
    set_active_isa(static_cast<IsaLevel>(isa));
    for (const WideningSizes& s : kWideningSizes)
      for (MatrixLayout left : kMatrixLayouts)
        for (MatrixLayout right : kMatrixLayouts) {
          const StoredMatrix<S> a = random_matrix<S>(s.m, s.k, left, this->bits_),
                                b = random_matrix<S>(s.k, s.n, right, this->bits_);
          StoredMatrix<S> c = random_matrix<S>(s.m, s.n + 2, MatrixLayout::kRows, this->bits_);
          expect_bits_of_widened_copies(
              Narrow<S>{s.m, s.n, s.k, 1, 0, a.view, b.view, {}, c.memory.data(), s.n + 2, 1}, c.memory);
        }
  }
}

TYPED_TEST(WideningGemmTest, AddsAMatrixARowAColumnANumberOrTheResultItself) {
  using S = TypeParam;
  for (const WideningSizes& s : kWideningSizes) {
    const StoredMatrix<S> a = random_matrix<S>(s.m, s.k, MatrixLayout::kColumns, this->bits_),
                          b = random_matrix<S>(s.k, s.n, MatrixLayout::kRows, this->bits_),
                          added = random_matrix<S>(s.m, s.n, MatrixLayout::kGaps, this->bits_);
    StoredMatrix<S> c = random_matrix<S>(s.m, s.n, MatrixLayout::kRows, this->bits_);
    const S* data = added.view.data;
    const MatrixView<S> addends[] = {added.view, {data, 0, 1}, {data, 1, 0}, {data, 0, 0}, c.view};
    for (const MatrixView<S>& addend : addends)
      expect_bits_of_widened_copies(
          Narrow<S>{s.m, s.n, s.k, 0.75f, -1.5f, a.view, b.view, addend, c.memory.data(), s.n, 1}, c.memory);
  }
}

TYPED_TEST(WideningGemmTest, HasTheSameBitsForAnyNumberOfThreads) {
  using S = TypeParam;
  for (const WideningSizes& s :
       {WideningSizes{150, 333, 1100}, {600, 1050, 70}, {1, 3000, 700}, {3000, 4, 70}})
    for (MatrixLayout right : kMatrixLayouts) {
      const StoredMatrix<S> a = random_matrix<S>(s.m, s.k, MatrixLayout::kRows, this->bits_),
                            b = random_matrix<S>(s.k, s.n, right, this->bits_);
      GuardedVector<S> c(static_cast<size_t>(s.m * s.n));
      for (int threads : {1, 2, 3, 4}) {
        set_num_threads(threads);
        std::fill(c.begin(), c.end(), S(-3.0f));
        expect_bits_of_widened_copies(
            Narrow<S>{s.m, s.n, s.k, 1, 0.5f, a.view, b.view, {a.view.data, 0, 0}, c.data(), s.n, 1}, c);
      }
    }
}

// Sums that f32 holds and 16 bits do not: they may be rounded only after the last block along k.
TYPED_TEST(WideningGemmTest, RoundsOnceForManyBlocksAlongK) {
  using S = TypeParam;
  const int64_t k = 4096;
  const std::vector<S> ones(static_cast<size_t>(8 * k), S(1.0f));
  GuardedVector<S> c(64);
  c[0] = S(0.0f);
  run_widening_gemm(Narrow<S>{8, 8, k, 1, 0, {ones.data(), k, 1}, {ones.data(), 8, 1}, {}, c.data(), 8, 1});
  // 4096 is a number of either type, but 2048 + 1 and 256 + 1 are not: sums in 16 bits would stop there.
  for (const S& x : c) EXPECT_EQ(static_cast<float>(x), 4096.0f);
}

TYPED_TEST(WideningGemmTest, CopiesNoWholeOperand) {
  using S = TypeParam;
  if (!kOwnGemm) GTEST_SKIP() << "OpenBLAS reads f32 only";
  set_num_threads(1);
  const int64_t n = 1536;
  const std::vector<S> x(static_cast<size_t>(n * n), S(0.5f));
  std::vector<S> c(x.size());
  const Narrow<S> g{n, n, n, 1, 0, {x.data(), n, 1}, {x.data(), 1, n}, {}, c.data(), n, 1};
  allocator_for(Device()).reset_peak();
  const size_t before = allocator_stats().bytes_in_use;
  run_widening_gemm(g);
  const size_t in_f32 = static_cast<size_t>(n * n) * sizeof(float);
  EXPECT_LT(allocator_stats().peak_bytes - before, in_f32 / 2);
}

}  // namespace
}  // namespace weft::cpu
