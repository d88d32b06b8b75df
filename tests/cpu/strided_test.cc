// The engine around the loops: any strides, broadcasts, dtypes and thread counts give what a plain loop
// gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "ops/cpu/pointwise_kernels.h"
#include "raw_array.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"

namespace weft::cpu::testing {
namespace {

// A random array for `sizes`: permuted, padded, reversed or broadcast dimensions.
RawArray random_array(DType t, const std::vector<int64_t>& sizes, std::mt19937& rng, bool may_broadcast) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  if (rng() % 3 == 0) std::iota(order.begin(), order.end(), 0);
  std::vector<int64_t> strides(sizes.size());
  int64_t next = rng() % 4 == 0 ? 2 : 1;
  for (size_t k = order.size(); k-- > 0;) {
    size_t d = order[k];
    if (may_broadcast && rng() % 4 == 0) continue;  // stride 0
    strides[d] = rng() % 6 == 0 ? -next : next;
    next *= sizes[d] + (rng() % 4 == 0 ? 1 : 0);
  }
  RawArray array(t, sizes, strides, rng() % 3);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, random_value(t, rng));
  return array;
}
std::vector<int64_t> random_sizes(std::mt19937& rng) {
  static const int64_t choices[] = {1, 2, 3, 5, 8, 17, 33, 70};
  std::vector<int64_t> sizes(rng() % 5);
  int64_t n = 1;
  for (int64_t& size : sizes) {
    size = choices[rng() % std::size(choices)];
    if (n * size > 40000) size = 1;
    n *= size;
  }
  return sizes;
}

// What add does to two numbers of a compute type, by plain C++.
Number plain_add(DType t, Number a, Number b) {
  a = round_to(t, a), b = round_to(t, b);
  return visit_dtype(t, [&]<typename T>() -> Number {
    if constexpr (std::is_same_v<T, bool>) return stored<bool>(a) || stored<bool>(b);
    else if constexpr (std::is_integral_v<T>)
      return widened(
          static_cast<T>(static_cast<uint64_t>(stored<T>(a)) + static_cast<uint64_t>(stored<T>(b))));
    else return round_to(t, a + b);
  });
}

TEST(Strided, AnyLayoutAndDtypeAgreesWithAPlainLoop) {
  std::mt19937 rng(7);
  for (int round = 0; round < 1500; ++round) {
    std::vector<int64_t> sizes = random_sizes(rng);
    auto pick = [&] { return all_dtypes()[rng() % kDTypeCount]; };
    DType compute = pick(), types[3];
    for (DType& t : types) t = rng() % 2 ? compute : pick();
    // Casts of floats out of an integer's range are the machine's business.
    if (is_integer_like(types[0]) != is_integer_like(compute)) types[0] = compute;
    RawArray out = random_array(types[0], sizes, rng, false), a = random_array(types[1], sizes, rng, true),
             b = random_array(types[2], sizes, rng, true);
    if (compute == DType::kUInt8)
      for (RawArray* x : {&a, &b})
        for (int64_t i = 0; i < x->count(); ++i) x->set(i, std::abs(x->get(i)));
    RawArray want = out;
    for (int64_t i = 0; i < want.count(); ++i) want.set(i, plain_add(compute, a.get(i), b.get(i)));
    UseIsa use(available_isas()[rng() % available_isas().size()]);
    Operand operands[] = {out.operand(), a.operand(), b.operand()};
    run_strided(kAdd, compute, operands, sizes);
    ASSERT_EQ(out.storage, want.storage)
        << "round " << round << " compute " << dtype_name(compute) << " from " << dtype_name(types[1])
        << " and " << dtype_name(types[2]) << " to " << dtype_name(types[0]) << " rank " << sizes.size();
  }
}

TEST(Strided, CopiesAndFillsAnyLayout) {
  std::mt19937 rng(8);
  for (int round = 0; round < 1500; ++round) {
    std::vector<int64_t> sizes = random_sizes(rng);
    DType from = all_dtypes()[rng() % kDTypeCount], to = rng() % 2 ? from : all_dtypes()[rng() % kDTypeCount];
    RawArray src = random_array(from, sizes, rng, true), dst = random_array(to, sizes, rng, false);
    if (to == DType::kUInt8 && !is_integer_like(from))
      for (int64_t i = 0; i < src.count(); ++i) src.set(i, std::abs(src.get(i)));
    RawArray want = dst;
    for (int64_t i = 0; i < want.count(); ++i) want.set(i, src.get(i));
    copy_strided(dst.operand(), src.operand(), sizes);
    ASSERT_EQ(dst.storage, want.storage)
        << "round " << round << " " << dtype_name(from) << " to " << dtype_name(to);
    for (int64_t i = 0; i < want.count(); ++i) want.set(i, Number(3));
    const int64_t three = 3;
    fill_strided(dst.operand(), sizes, &three, DType::kInt64);
    ASSERT_EQ(dst.storage, want.storage);
  }
}

TEST(Strided, CopiesBackwards) {
  std::mt19937 rng(10);
  for (DType t : all_dtypes())
    for (int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 70, 5000}) {
      RawArray src(t, {3, n}, {n, -1}), dst = RawArray::contiguous(t, {3, n});
      for (int64_t i = 0; i < src.count(); ++i) src.set(i, random_value(t, rng));
      copy_strided(dst.operand(), src.operand(), src.sizes);
      for (int64_t i = 0; i < src.count(); ++i)
        ASSERT_EQ(dst.get(i), src.get(i)) << dtype_name(t) << " " << n;
    }
}

TEST(Strided, EmptyAndZeroDimensional) {
  RawArray empty = RawArray::contiguous(DType::kFloat32, {3, 0, 2});
  Operand operands[] = {empty.operand(), empty.operand(), empty.operand()};
  EXPECT_NO_THROW(run_strided(kAdd, DType::kFloat32, operands, empty.sizes));
  RawArray a = RawArray::contiguous(DType::kFloat32, {}), out = a;
  a.set(0, 2);
  Operand scalars[] = {out.operand(), a.operand(), a.operand()};
  run_strided(kAdd, DType::kFloat32, scalars, {});
  EXPECT_EQ(out.get(0), Number(4));
}

TEST(Strided, InPlaceThroughTransposedViews) {
  RawArray x = RawArray::contiguous(DType::kFloat32, {50, 70});
  std::mt19937 rng(3);
  for (int64_t i = 0; i < x.count(); ++i) x.set(i, random_value(x.dtype, rng));
  RawArray want = x;
  for (int64_t i = 0; i < x.count(); ++i) want.set(i, x.get(i) + x.get(i));
  const int64_t sizes[] = {70, 50}, transposed[] = {1, 70};
  Operand view = {x.data(), x.dtype, transposed}, operands[] = {view, view, view};
  run_strided(kAdd, DType::kFloat32, operands, sizes);
  EXPECT_EQ(x.storage, want.storage);
}

// Large enough to be split, in every plan the engine has.
TEST(Strided, SameBitsForAnyNumberOfThreads) {
  std::mt19937 rng(11);
  struct Layout {
    std::vector<int64_t> sizes, out, a, b;
  };
  const Layout layouts[] = {{{200000}, {1}, {1}, {1}},
                            {{400, 500}, {500, 1}, {500, 1}, {1, 400}},
                            {{400, 500}, {500, 1}, {500, 1}, {1, 0}},
                            {{400, 500}, {500, 1}, {0, 1}, {500, 1}},
                            {{60000, 3}, {3, 1}, {4, 1}, {0, 1}},
                            {{70, 50, 60}, {3000, 60, 1}, {1, 70, 3500}, {3000, 1, 50}}};
  int before = num_threads();
  for (const Layout& layout : layouts) {
    RawArray a(DType::kFloat32, layout.sizes, layout.a), b(DType::kBFloat16, layout.sizes, layout.b),
        out(DType::kFloat32, layout.sizes, layout.out);
    for (RawArray* x : {&a, &b})
      for (int64_t i = 0; i < x->count(); ++i) x->set(i, random_value(x->dtype, rng));
    GuardedVector<char> first;
    for (int threads : {1, 2, 3, 8}) {
      set_num_threads(threads);
      Operand operands[] = {out.operand(), a.operand(), b.operand()};
      run_strided(kHypot, DType::kFloat32, operands, layout.sizes);
      if (threads == 1) first = out.storage;
      EXPECT_EQ(out.storage, first);
    }
  }
  set_num_threads(before);
}

// An element's result does not depend on where it stands: alignment, length and tails change no bit.
TEST(Strided, SameBitsAtAnyOffsetAndLength) {
  std::mt19937 rng(12);
  for (const PointwiseKernel* kernel : pointwise_kernels()) {
    if (kernel->inputs != 1 || kernel->params) continue;
    for (DType t : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kComplex64}) {
      if (!kernel->supports(t)) continue;
      DType result = kernel->result_dtype(t);
      RawArray x = RawArray::contiguous(t, {100}), all = RawArray::contiguous(result, {100});
      for (int64_t i = 0; i < 100; ++i) x.set(i, random_value(t, rng));
      Operand whole[] = {all.operand(), x.operand()};
      run_strided(*kernel, t, whole, x.sizes);
      for (int64_t start : {0, 1, 3, 17})
        for (int64_t n : {1, 2, 5, 8, 13, 31}) {
          RawArray part = RawArray::contiguous(result, {n}, start % 5);
          const int64_t sizes[] = {n};
          Operand operands[] = {part.operand(), {x.data() + start * item_size(t), t, x.strides.data()}};
          run_strided(*kernel, t, operands, sizes);
          for (int64_t i = 0; i < n; ++i)
            ASSERT_EQ(std::memcmp(part.data() + i * item_size(result),
                                  all.data() + (start + i) * item_size(result), item_size(result)),
                      0)
                << kernel->name << " " << dtype_name(t) << " element " << start + i;
        }
    }
  }
}

TEST(Strided, InstructionSetsAgreeToAFewUnits) {
  if (available_isas().size() < 2) GTEST_SKIP() << "one instruction set only";
  std::mt19937 rng(13);
  for (const PointwiseKernel* kernel : pointwise_kernels()) {
    for (DType t : {DType::kFloat32, DType::kFloat64}) {
      if (!kernel->supports(t) || kernel->mask_inputs) continue;
      constexpr int64_t n = 500;
      DType result = kernel->result_dtype(t);
      std::vector<RawArray> arrays(kernel->inputs + 1, RawArray::contiguous(t, {n}));
      arrays[0] = RawArray::contiguous(result, {n});
      std::vector<Operand> operands = {arrays[0].operand()};
      for (int k = 1; k <= kernel->inputs; ++k) {
        for (int64_t i = 0; i < n; ++i) arrays[k].set(i, random_value(t, rng));
        operands.push_back(arrays[k].operand());
      }
      std::vector<ParamValue> params(kernel->params, ParamValue(0.5));
      std::vector<RawArray> results;
      for (IsaLevel isa : available_isas()) {
        UseIsa use(isa);
        run_strided(*kernel, t, operands, arrays[0].sizes, params);
        results.push_back(arrays[0]);
      }
      for (size_t other = 1; other < results.size(); ++other)
        for (int64_t i = 0; i < n; ++i) {
          long double a = results[0].get(i).real(), b = results[other].get(i).real();
          long double eps = t == DType::kFloat32 ? 0x1p-23L : 0x1p-52L;
          if (std::isnan(a) && std::isnan(b)) continue;
          ASSERT_LE(std::fabs(a - b), 16 * eps * std::max({std::fabs(a), std::fabs(b), 1.0L}))
              << kernel->name << " " << dtype_name(t);
        }
      // AVX2 and AVX-512 round alike, but SLEEF's logarithms take numbers apart by other instructions there,
      // and tanh and the normal distribution come from tables.
      static constexpr std::string_view kLogarithms[] = {"log", "log2", "log10"};
      static constexpr std::string_view kLookedUp[] = {"tanh",          "normal_cdf", "gelu",
                                                       "gelu_backward", "gelu_tanh",  "gelu_tanh_backward"};
      const bool differs =
          std::ranges::count(kLogarithms, std::string_view(kernel->name)) ||
          (t == DType::kFloat32 && std::ranges::count(kLookedUp, std::string_view(kernel->name)));
      if (results.size() == 3 && !differs) {
        EXPECT_TRUE(results[1].bits() == results[2].bits()) << kernel->name << " " << dtype_name(t);
      }
    }
  }
}

TEST(Strided, RefusesWhatItDoesNotHave) {
  RawArray x = RawArray::contiguous(DType::kBool, {4});
  Operand operands[] = {x.operand(), x.operand(), x.operand()};
  EXPECT_THROW(run_strided(kSub, DType::kBool, operands, x.sizes), UnsupportedError);
}

}  // namespace
}  // namespace weft::cpu::testing
