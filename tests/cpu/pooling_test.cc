#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/base/parallel.h"

namespace weft {
namespace {

using testing::close;
using testing::values;

struct Pool {
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool ceil = false, include_pad = true;
  std::optional<int64_t> divisor;

  Ints k() const { return {kernel[0], kernel[1]}; }
  Ints s() const { return {stride[0], stride[1]}; }
  Ints p() const { return {padding[0], padding[1]}; }
  Ints d() const { return {dilation[0], dilation[1]}; }
};

struct Case {
  Pool pool;
  Tensor input;  // f64, contiguous
};

Case random_case(unsigned seed, bool dilates) {
  std::mt19937 random(seed);
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  Case c;
  Ints sizes{between(1, 3), between(1, 37)};
  for (int i = 0; i < 2; ++i) {
    c.pool.kernel[i] = between(1, 4);
    c.pool.stride[i] = between(1, 3);
    c.pool.padding[i] = between(0, c.pool.kernel[i] / 2);
    c.pool.dilation[i] = dilates ? between(1, 2) : 1;
    sizes.push_back((c.pool.kernel[i] - 1) * c.pool.dilation[i] + between(1, 12));
  }
  c.pool.ceil = between(0, 2) == 0;
  c.pool.include_pad = between(0, 1) == 0;
  if (between(0, 4) == 0) c.pool.divisor = between(1, 5);
  c.input = empty(sizes, kFloat64);
  for (int64_t i = 0; i < c.input.plain_numel(); ++i)
    c.input.data<double>()[i] =
        static_cast<double>(between(-7, 7));  // equal values are common, sums fit int8
  return c;
}

// Maxima and their indices, straight from the definition.
std::pair<std::vector<double>, std::vector<double>> expected_maxima(const Case& c, const Tensor& out) {
  const IntSpan in = c.input.plain_sizes(), o = out.plain_sizes();
  std::vector<double> maxima, indices;
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane)
    for (int64_t i = 0; i < o[2]; ++i)
      for (int64_t j = 0; j < o[3]; ++j) {
        double best = -std::numeric_limits<double>::infinity();
        int64_t index = -1;
        for (int64_t a = 0; a < c.pool.kernel[0]; ++a)
          for (int64_t b = 0; b < c.pool.kernel[1]; ++b) {
            const int64_t r = i * c.pool.stride[0] - c.pool.padding[0] + a * c.pool.dilation[0];
            const int64_t s = j * c.pool.stride[1] - c.pool.padding[1] + b * c.pool.dilation[1];
            if (r < 0 || s < 0 || r >= in[2] || s >= in[3]) continue;
            const double x = c.input.data<double>()[(plane * in[2] + r) * in[3] + s];
            if (x > best) std::tie(best, index) = std::pair(x, r * in[3] + s);
          }
        maxima.push_back(best);
        indices.push_back(static_cast<double>(index));
      }
  return {maxima, indices};
}

constexpr DType kTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8};

TEST(MaxPool, IsTheDefinitionForEveryTypeAndLayout) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const Case c = random_case(seed, true);
    for (const DType type : {kTypes[seed % 8], kFloat32})
      for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
        const Tensor x = c.input.to(type).contiguous(format);
        const auto [y, at] =
            max_pool2d_with_indices(x, c.pool.k(), c.pool.s(), c.pool.p(), c.pool.d(), c.pool.ceil);
        const auto [maxima, indices] = expected_maxima(c, y);
        ASSERT_EQ(values(y), maxima) << seed << " " << dtype_name(type);
        ASSERT_EQ(values(at), indices) << seed << " " << dtype_name(type);
      }
  }
}

TEST(MaxPool, BackwardAddsEachGradientAtItsIndex) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed, true);
    for (const DType type : {kFloat64, kFloat32, kBFloat16})
      for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
        const Tensor x = c.input.to(type).contiguous(format);
        const auto [y, at] =
            max_pool2d_with_indices(x, c.pool.k(), c.pool.s(), c.pool.p(), c.pool.d(), c.pool.ceil);
        const Tensor dx = max_pool2d_with_indices_backward(ones_like(y), x, c.pool.k(), c.pool.s(),
                                                           c.pool.p(), c.pool.d(), c.pool.ceil, at);
        const Tensor flat = flatten(zeros_like(c.input), -2, -1), indices = flatten(at, -2, -1);
        const Tensor expected = scatter_add(flat, -1, indices, ones(indices.sizes(), kFloat64));
        ASSERT_EQ(values(dx), values(expected)) << seed << " " << dtype_name(type);
      }
  }
}

TEST(MaxPool, NaNBeatsAllNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType type : {kFloat32, kFloat64, kFloat16}) {
    const Tensor x = from_data(std::vector<double>{1, nan, 3, 4}, {1, 2, 2}).to(type);
    const auto [y, at] = max_pool2d_with_indices(x, {2, 2});
    EXPECT_TRUE(std::isnan(values(y)[0]));
    EXPECT_EQ(values(at), std::vector<double>{1});
  }
}

TEST(MaxPool, LargeIntegersStayExact) {
  const int64_t big = (int64_t{1} << 60) + 1;
  const Tensor x = from_data(std::vector<int64_t>{big - 1, big, 3, -big}, {1, 2, 2});
  EXPECT_EQ(std::get<0>(max_pool2d_with_indices(x, {2, 2})).item().to_int(), big);
}

TEST(MaxPool, BackwardRefusesIndicesOutsideThePlane) {
  const Tensor x = ones({1, 2, 2}), grad = ones({1, 1, 1});
  for (const int64_t index : {-1, 4})
    EXPECT_ERROR(max_pool2d_with_indices_backward(grad, x, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false,
                                                  full({1, 1, 1}, index, kInt64)),
                 "is out of range for a plane of 4 elements");
}

double expected_average(const Case& c, int64_t plane, int64_t i, int64_t j) {
  const IntSpan in = c.input.plain_sizes();
  const int64_t o[] = {i, j};
  int64_t first[2], last[2], padded = 1, inside = 1;
  for (int d = 0; d < 2; ++d) {
    first[d] = o[d] * c.pool.stride[d] - c.pool.padding[d];
    last[d] = std::min(first[d] + c.pool.kernel[d], in[d + 2] + c.pool.padding[d]);
    padded *= last[d] - first[d];
    first[d] = std::max<int64_t>(first[d], 0);
    last[d] = std::min(last[d], in[d + 2]);
    inside *= last[d] - first[d];
  }
  double sum = 0;
  for (int64_t r = first[0]; r < last[0]; ++r)
    for (int64_t s = first[1]; s < last[1]; ++s)
      sum += c.input.data<double>()[(plane * in[2] + r) * in[3] + s];
  return sum / static_cast<double>(c.pool.divisor ? *c.pool.divisor : c.pool.include_pad ? padded : inside);
}

// As in PyTorch, i64 is the one type of integers that has averages.
constexpr DType kAveraged[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64};

TEST(AveragePool, IsTheDefinitionForEveryTypeAndLayout) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const Case c = random_case(seed, false);
    for (const DType type : {kAveraged[seed % 5], kFloat32})
      for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast}) {
        const Tensor x = c.input.to(type).contiguous(format);
        const Tensor y = avg_pool2d(x, c.pool.k(), c.pool.s(), c.pool.p(), c.pool.ceil, c.pool.include_pad,
                                    c.pool.divisor);
        const IntSpan o = y.plain_sizes();
        const std::vector<double> got = values(y);
        for (size_t at = 0; at < got.size(); ++at) {
          const auto index = static_cast<int64_t>(at);
          double expected = expected_average(c, index / (o[2] * o[3]), index / o[3] % o[2], index % o[3]);
          if (!is_floating(type)) expected = std::trunc(expected);
          ASSERT_NEAR(got[at], expected, type == kFloat64 ? 1e-12 : std::abs(expected) / 100 + 1e-5)
              << seed << " " << dtype_name(type) << " at " << at;
        }
      }
  }
}

TEST(AveragePool, LayoutsAgreeForwardAndBackward) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed, false);
    const Tensor x = c.input.to(kFloat32), last = x.contiguous(MemoryFormat::kChannelsLast);
    auto run = [&](const Tensor& image) {
      return avg_pool2d(image, c.pool.k(), c.pool.s(), c.pool.p(), c.pool.ceil, c.pool.include_pad,
                        c.pool.divisor);
    };
    auto back = [&](const Tensor& grad, const Tensor& image) {
      return avg_pool2d_backward(grad, image, c.pool.k(), c.pool.s(), c.pool.p(), c.pool.ceil,
                                 c.pool.include_pad, c.pool.divisor);
    };
    const Tensor y = run(x);
    ASSERT_EQ(values(y), values(run(last))) << seed;
    ASSERT_EQ(values(back(y, x)), values(back(y, last))) << seed;
    // The backward is the transpose: <A x, y> = <x, A' y>.
    ASSERT_NEAR(sum(run(c.input) * y.to(kFloat64)).item().to_double(),
                sum(c.input * back(y.to(kFloat64), c.input)).item().to_double(), 1e-6);
  }
}

TEST(AdaptiveAveragePool, BinsCoverThePlane) {
  std::mt19937 random(3);
  for (const auto& [in, out] : {std::pair(7, 3), std::pair(5, 5), std::pair(4, 6), std::pair(12, 1)}) {
    Tensor x = testing::ramp({2, 19, in, in + 1});
    const Tensor y = _adaptive_avg_pool2d(x, {out, out});
    const Tensor narrow =
        _adaptive_avg_pool2d(x.to(kFloat32).contiguous(MemoryFormat::kChannelsLast), {out, out});
    EXPECT_TRUE(close(narrow, y, 1e-5, 1e-6));
    // A bin's average times its size, over a partition of the plane, is the plane's sum.
    if (in % out == 0 && (in + 1) % out == 0) {
      EXPECT_TRUE(close(mean(y, {-1, -2}), mean(x, {-1, -2})));
    }
    const Tensor grad = testing::ramp(y.sizes());
    EXPECT_NEAR(sum(y * grad).item().to_double(),
                sum(x * _adaptive_avg_pool2d_backward(grad, x)).item().to_double(), 1e-9);
  }
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.contiguous().raw_data(), b.contiguous().raw_data(),
                     static_cast<size_t>(a.plain_numel() * item_size(a.dtype()))) == 0;
}

TEST(Pooling, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const MemoryFormat format : {MemoryFormat::kContiguous, MemoryFormat::kChannelsLast})
    for (const Ints& sizes : {Ints{1, 64, 40, 40}, Ints{9, 20, 24, 24}}) {
      const Tensor x = testing::ramp(sizes).to(kFloat32).contiguous(format);
      auto run = [&] {
        auto [y, at] = max_pool2d_with_indices(x, {3, 3}, {2, 2}, {1, 1});
        const Tensor a = avg_pool2d(x, {3, 3}, {2, 2}, {1, 1});
        return std::vector<Tensor>{
            y,
            at,
            a,
            max_pool2d_with_indices_backward(a, x, {3, 3}, {2, 2}, {1, 1}, {1, 1}, false, at),
            avg_pool2d_backward(y, x, {3, 3}, {2, 2}, {1, 1}, false, true, std::nullopt),
            _adaptive_avg_pool2d(x, {5, 7})};
      };
      set_num_threads(1);
      const std::vector<Tensor> once = run();
      for (const int threads : {2, 3, 8}) {
        set_num_threads(threads);
        const std::vector<Tensor> again = run();
        for (size_t i = 0; i < once.size(); ++i)
          EXPECT_TRUE(same_bits(once[i], again[i])) << threads << " " << i;
      }
    }
  set_num_threads(before);
}

TEST(NllLoss, WorksOnItsOwnTypeWithAnyThreads) {
  const int before = num_threads();
  const Tensor input = testing::ramp({6, 7, 60, 60});
  Tensor target = empty({6, 60, 60}, kInt64);
  for (int64_t i = 0; i < target.plain_numel(); ++i)
    target.data<int64_t>()[i] = i * 31 % 8 == 7 ? -100 : i * 31 % 8;
  const Tensor weight = testing::ramp({7}, 0.5, 2);
  const Tensor expected = nll_loss_nd(input, target, weight);
  for (const DType type : {kFloat32, kFloat16, kBFloat16})
    EXPECT_TRUE(close(nll_loss_nd(input.to(type), target, weight.to(type)), expected, 2e-2, 1e-2))
        << dtype_name(type);
  set_num_threads(1);
  const Tensor once = nll_loss_nd(input.to(kFloat32), target, weight.to(kFloat32));
  for (const int threads : {2, 3, 8}) {
    set_num_threads(threads);
    EXPECT_TRUE(same_bits(once, nll_loss_nd(input.to(kFloat32), target, weight.to(kFloat32))));
  }
  set_num_threads(before);
  target.data<int64_t>()[20'000] = 7;
  EXPECT_ERROR(nll_loss_nd(input, target, weight), "Target 7 is out of bounds.");
}

}  // namespace
}  // namespace weft
