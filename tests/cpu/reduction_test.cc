// Reductions against plain loops in long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "ops/cpu/reduction.h"
#include "raw_array.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu::testing {
namespace {

using Real = long double;

// The elements that each result reduces, in logical order; results in row-major order of the kept dimensions.
std::vector<std::vector<Number>> grouped(const RawArray& x, uint64_t mask) {
  int64_t results = 1;
  for (size_t d = 0; d < x.sizes.size(); ++d)
    if (!((mask >> d) & 1)) results *= x.sizes[d];
  std::vector<std::vector<Number>> groups(results);
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t rest = i, at = 0, weight = 1;
    for (size_t d = x.sizes.size(); d-- > 0; rest /= x.sizes[d]) {
      if ((mask >> d) & 1) continue;
      at += rest % x.sizes[d] * weight;
      weight *= x.sizes[d];
    }
    groups[at].push_back(x.get(i));
  }
  return groups;
}

struct Reduced {
  std::vector<RawArray> outputs;
};
// Runs a kernel into outputs that keep reduced dimensions at size 1.
Reduced reduce(const ReductionKernel& kernel, DType compute, RawArray& x, uint64_t mask,
               std::vector<DType> output_types, double param = 0, bool transposed_output = false) {
  std::vector<int64_t> sizes = x.sizes;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((mask >> d) & 1) sizes[d] = 1;
  Reduced result;
  std::vector<Operand> operands;
  for (DType t : output_types) {
    RawArray out = RawArray::contiguous(t, sizes);
    if (transposed_output && sizes.size() == 2) out = RawArray(t, sizes, {1, sizes[0] + 1});
    result.outputs.push_back(std::move(out));
  }
  for (RawArray& out : result.outputs) operands.push_back(out.operand());
  run_reduction(kernel, compute, x.operand(), operands, x.sizes, mask, param);
  return result;
}

RawArray random_input(DType t, std::vector<int64_t> sizes, std::mt19937& rng, int layout) {
  RawArray x = RawArray::contiguous(t, sizes);
  if (layout == 1 && sizes.size() >= 2) {  // last two dimensions swapped in memory
    std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
    RawArray transposed = RawArray::contiguous(t, sizes);
    std::swap(transposed.sizes[sizes.size() - 1], transposed.sizes[sizes.size() - 2]);
    std::swap(transposed.strides[sizes.size() - 1], transposed.strides[sizes.size() - 2]);
    x = transposed;
  } else if (layout == 2) {  // every second element, backwards
    std::vector<int64_t> strides = x.strides;
    for (int64_t& s : strides) s *= -2;
    x = RawArray(t, sizes, strides);
  }
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, random_value(t, rng));
  return x;
}

const std::vector<std::vector<int64_t>>& shapes() {
  static const std::vector<std::vector<int64_t>> all = {
      {},       {1},       {7},       {1000},      {3, 5},        {40, 70},  {300, 2},
      {2, 300}, {70, 130}, {5, 6, 7}, {17, 1, 33}, {2, 3, 40, 9}, {600, 700}};
  return all;
}

template <typename F>
void for_each_case(DType t, const F& f) {
  std::mt19937 rng(5);
  for (IsaLevel isa : available_isas())
    for (const auto& sizes : shapes())
      for (int layout : {0, 1, 2})
        for (uint64_t mask = 0; mask < (1u << sizes.size()); ++mask) {
          // One shape is large enough to be split; once is enough for it.
          bool large = std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>()) > 100000;
          if (large && (layout != 0 || t != DType::kFloat32 || isa != active_isa())) continue;
          UseIsa use(isa);
          RawArray x = random_input(t, sizes, rng, layout);
          f(x, mask, grouped(x, mask));
        }
}

Real tolerance(DType t) {
  return t == DType::kFloat64 || t == DType::kComplex128 ? 1e-14L
         : t == DType::kFloat16                          ? 1e-3L
         : t == DType::kBFloat16                         ? 8e-3L
                                                         : 6e-7L;
}

TEST(Reduction, SumsAndMeans) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kComplex64,
                  DType::kComplex128})
    for_each_case(t, [&](RawArray& x, uint64_t mask, const auto& groups) {
      Reduced sum = reduce(kSum, t, x, mask, {t}, 0, true), mean = reduce(kMean, t, x, mask, {t});
      for (size_t i = 0; i < groups.size(); ++i) {
        Number want = 0;
        Real size = 1e-30L;
        for (Number v : groups[i]) want += v, size += std::abs(v);
        ASSERT_LE(std::abs(sum.outputs[0].get(i) - want), tolerance(t) * size)
            << dtype_name(t) << " " << mask;
        Real count = static_cast<Real>(groups[i].size());
        ASSERT_LE(std::abs(mean.outputs[0].get(i) - want / count), 2 * tolerance(t) * size / count)
            << dtype_name(t);
      }
    });
}

TEST(Reduction, SumOfSquaresAndProducts) {
  for_each_case(DType::kFloat32, [&](RawArray& x, uint64_t mask, const auto& groups) {
    Reduced squares = reduce(kSumSquares, DType::kFloat32, x, mask, {DType::kFloat32});
    Reduced prod = reduce(kProd, DType::kFloat64, x, mask, {DType::kFloat64});
    for (size_t i = 0; i < groups.size(); ++i) {
      Real want = 0, product = 1;
      for (Number v : groups[i]) want += v.real() * v.real(), product *= v.real();
      ASSERT_LE(std::fabs(squares.outputs[0].get(i).real() - want), 1e-6L * want + 1e-30L);
      if (groups[i].size() <= 1000) {
        ASSERT_LE(std::fabs(prod.outputs[0].get(i).real() - product), 1e-12L * std::fabs(product));
      }
    }
  });
}

TEST(Reduction, IntegersSumInSixtyFourBits) {
  for (DType t : {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt32, DType::kInt64})
    for_each_case(t, [&](RawArray& x, uint64_t mask, const auto& groups) {
      Reduced sum = reduce(kSum, DType::kInt64, x, mask, {DType::kInt64});
      for (size_t i = 0; i < groups.size(); ++i) {
        Real want = 0;
        for (Number v : groups[i]) want += v.real();
        ASSERT_EQ(sum.outputs[0].get(i).real(), want) << dtype_name(t) << " " << mask;
      }
    });
}

TEST(Reduction, Extremes) {
  for (DType t : {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                  DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64})
    for_each_case(t, [&](RawArray& x, uint64_t mask, const auto& groups) {
      Reduced high = reduce(kAmax, t, x, mask, {t}), low = reduce(kAmin, t, x, mask, {t});
      Reduced first = reduce(kMaxDim, t, x, mask, {t, DType::kInt64}),
              last = reduce(kArgmin, t, x, mask, {DType::kInt64});
      for (size_t i = 0; i < groups.size(); ++i) {
        auto less = [](Number a, Number b) { return a.real() < b.real(); };
        auto largest = std::max_element(groups[i].begin(), groups[i].end(), less);
        auto smallest = std::min_element(groups[i].begin(), groups[i].end(), less);
        ASSERT_EQ(high.outputs[0].get(i), *largest) << dtype_name(t) << " mask " << mask;
        ASSERT_EQ(low.outputs[0].get(i), *smallest);
        ASSERT_EQ(first.outputs[0].get(i), *largest);
        ASSERT_EQ(first.outputs[1].get(i).real(), largest - groups[i].begin())
            << dtype_name(t) << " mask " << mask;
        ASSERT_EQ(last.outputs[0].get(i).real(), smallest - groups[i].begin());
      }
    });
}

// Rows of every length around the widths of vectors, with neighbours that must not be read into the result.
TEST(Reduction, OfShortRows) {
  std::mt19937 rng(9);
  for (IsaLevel isa : available_isas())
    for (DType t : {DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kFloat16,
                    DType::kBFloat16, DType::kFloat32, DType::kFloat64, DType::kComplex64})
      for (int64_t n = 1; n <= 70; ++n) {
        UseIsa use(isa);
        RawArray x(t, {2, 10, n}, {11 * (n + 3), n + 3, 1}, 1);
        for (int64_t i = 0; i < x.count(); ++i) x.set(i, random_value(t, rng));
        auto groups = grouped(x, 4);
        bool is_whole = is_integer_like(t);
        DType summed = is_whole ? DType::kInt64 : t;
        Reduced sum = reduce(kSum, summed, x, 4, {summed}), high;
        if (!is_complex(t)) high = reduce(kAmax, t, x, 4, {t});
        for (size_t i = 0; i < groups.size(); ++i) {
          Number want = 0;
          Real size = 1e-30L;
          for (Number v : groups[i]) {
            want += v;
            size += std::abs(v);
          }
          ASSERT_LE(std::abs(sum.outputs[0].get(i) - want), (is_whole ? 0 : 2 * tolerance(t)) * size)
              << dtype_name(t) << " rows of " << n;
          if (is_complex(t)) continue;
          Number largest = *std::max_element(groups[i].begin(), groups[i].end(),
                                             [](Number a, Number b) { return a.real() < b.real(); });
          ASSERT_EQ(high.outputs[0].get(i), largest) << dtype_name(t) << " rows of " << n;
        }
      }
}

TEST(Reduction, NanWinsWhereverItIs) {
  Real nan = std::numeric_limits<Real>::quiet_NaN();
  for (IsaLevel isa : available_isas())
    for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16})
      for (uint64_t mask : {1u, 2u, 3u})
        for (int64_t place : {0, 5, 37, 1999}) {
          UseIsa use(isa);
          std::mt19937 rng(3);
          RawArray x = random_input(t, {40, 50}, rng, 0);
          x.set(place, nan);
          auto groups = grouped(x, mask);
          Reduced high = reduce(kAmax, t, x, mask, {t}), low = reduce(kAmin, t, x, mask, {t});
          Reduced at = reduce(kArgmax, t, x, mask, {DType::kInt64});
          for (size_t i = 0; i < groups.size(); ++i) {
            auto found = std::find_if(groups[i].begin(), groups[i].end(),
                                      [](Number v) { return std::isnan(v.real()); });
            bool has = found != groups[i].end();
            ASSERT_EQ(std::isnan(high.outputs[0].get(i).real()), has);
            ASSERT_EQ(std::isnan(low.outputs[0].get(i).real()), has);
            if (has) {
              ASSERT_EQ(at.outputs[0].get(i).real(), found - groups[i].begin());
            }
          }
        }
}

TEST(Reduction, AnyAndAllOfEveryType) {
  std::mt19937 rng(4);
  for (DType t : all_dtypes())
    for (uint64_t mask : {1u, 2u, 3u}) {
      RawArray x = RawArray::contiguous(t, {30, 40});
      for (int64_t i = 0; i < x.count(); ++i) x.set(i, rng() % 30 == 0 || i / 40 == 3 ? 1 : 0);
      auto groups = grouped(x, mask);
      Reduced some = reduce(kAny, DType::kBool, x, mask, {DType::kBool}),
              every = reduce(kAll, DType::kBool, x, mask, {DType::kBool});
      for (size_t i = 0; i < groups.size(); ++i) {
        auto is_true = [](Number v) { return v != Number(0); };
        ASSERT_EQ(some.outputs[0].get(i) != Number(0),
                  std::any_of(groups[i].begin(), groups[i].end(), is_true));
        ASSERT_EQ(every.outputs[0].get(i) != Number(0),
                  std::all_of(groups[i].begin(), groups[i].end(), is_true));
      }
    }
}

TEST(Reduction, Variances) {
  for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16})
    for_each_case(t, [&](RawArray& x, uint64_t mask, const auto& groups) {
      Reduced both = reduce(kVarMean, t, x, mask, {t, t}, 1), root = reduce(kStd, t, x, mask, {t}, 0);
      for (size_t i = 0; i < groups.size(); ++i) {
        Real n = static_cast<Real>(groups[i].size()), mean = 0, squares = 0;
        for (Number v : groups[i]) mean += v.real() / n;
        for (Number v : groups[i]) squares += (v.real() - mean) * (v.real() - mean);
        Real got = both.outputs[0].get(i).real();
        if (n == 1) ASSERT_TRUE(std::isnan(got));
        else
          ASSERT_LE(std::fabs(got - squares / (n - 1)),
                    4 * tolerance(t) * (squares / (n - 1) + 1e-6L) + (t == DType::kFloat16 ? 0x1p-24L : 0));
        ASSERT_LE(std::fabs(both.outputs[1].get(i).real() - mean), 4 * tolerance(t) * 4);
        ASSERT_LE(std::fabs(root.outputs[0].get(i).real() - std::sqrt(squares / n)), 4 * tolerance(t) * 4);
      }
    });
}

TEST(Reduction, VarianceOfNumbersFarFromZero) {
  RawArray x = RawArray::contiguous(DType::kFloat32, {100000});
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, 10000 + (i % 2));
  Reduced var = reduce(kVar, DType::kFloat32, x, 1, {DType::kFloat32}, 0);
  EXPECT_NEAR(static_cast<double>(var.outputs[0].get(0).real()), 0.25, 1e-6);
}

TEST(Reduction, SumKeepsTheDigitsOfLongArrays) {
  // A tenth has no exact float: a sum in float alone drifts by 1e-4 here.
  RawArray x = RawArray::contiguous(DType::kFloat32, {3'000'000});
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, 0.1f);
  Reduced sum = reduce(kSum, DType::kFloat32, x, 1, {DType::kFloat32});
  Real want = static_cast<Real>(0.1f) * 3'000'000;
  EXPECT_LE(std::fabs(sum.outputs[0].get(0).real() - want) / want, 2e-7L);
}

TEST(Reduction, OfNothing) {
  RawArray x = RawArray::contiguous(DType::kFloat32, {3, 0});
  EXPECT_EQ(reduce(kSum, DType::kFloat32, x, 2, {DType::kFloat32}).outputs[0].get(2), Number(0));
  EXPECT_EQ(reduce(kProd, DType::kFloat32, x, 2, {DType::kFloat32}).outputs[0].get(2), Number(1));
  EXPECT_TRUE(std::isnan(reduce(kMean, DType::kFloat32, x, 2, {DType::kFloat32}).outputs[0].get(0).real()));
  EXPECT_TRUE(std::isnan(reduce(kVar, DType::kFloat32, x, 2, {DType::kFloat32}).outputs[0].get(0).real()));
}

TEST(Reduction, SameBitsForAnyNumberOfThreads) {
  int before = num_threads();
  std::mt19937 rng(6);
  for (std::vector<int64_t> sizes : {std::vector<int64_t>{1000000}, {3000, 300}, {7, 100000}, {50, 60, 70}}) {
    RawArray x = random_input(DType::kFloat32, sizes, rng, 0);
    for (const ReductionKernel* kernel : {&kSum, &kVar, &kAmax, &kProd, &kArgmax})
      for (uint64_t mask = 1; mask < (1u << sizes.size()); ++mask) {
        std::string first;
        for (int threads : {1, 2, 3, 8, 16}) {
          set_num_threads(threads);
          DType out = kernel == &kArgmax ? DType::kInt64 : DType::kFloat32;
          std::string bits = reduce(*kernel, DType::kFloat32, x, mask, {out}, 1).outputs[0].bits();
          if (threads == 1) first = bits;
          EXPECT_EQ(bits, first) << kernel->name;
        }
      }
  }
  set_num_threads(before);
}

TEST(Reduction, RefusesWhatItDoesNotHave) {
  RawArray x = RawArray::contiguous(DType::kComplex64, {3});
  EXPECT_THROW(reduce(kAmax, DType::kComplex64, x, 1, {DType::kComplex64}), UnsupportedError);
}

}  // namespace
}  // namespace weft::cpu::testing
