#include "weft/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>
#include <vector>

#include "weft/base/parallel.h"

namespace weft {
namespace {

// The known answers of Random123 (kat_vectors, philox 4x32, 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32(~0ull, ~0ull, ~0ull), (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  static_assert(philox4x32(0, 0)[0] == 0x6627e8d5, "usable in constants");
}

TEST(Philox, EveryArgumentBitMatters) {
  std::set<PhiloxBlock> blocks = {philox4x32(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    uint64_t x = 1ull << bit;
    blocks.insert({philox4x32(x, 0, 0), philox4x32(0, x, 0), philox4x32(0, 0, x)});
  }
  EXPECT_EQ(blocks.size(), 1u + 3 * 64);
}

TEST(RandomNumbers, UniformIsHalfOpen) {
  EXPECT_EQ(uniform24(0), 0.0f);
  EXPECT_EQ(uniform24(0xffffffff), 1.0f - 0x1p-24f);
  EXPECT_EQ(uniform24(0x80000000), 0.5f);
  EXPECT_EQ(uniform53(0), 0.0);
  EXPECT_EQ(uniform53(~0ull), 1.0 - 0x1p-53);
}

TEST(RandomNumbers, BoundedReachesBothEnds) {
  for (uint64_t range : {1ull, 2ull, 3ull, 10ull, 1ull << 32, (1ull << 63) + 1}) {
    EXPECT_EQ(bounded(0, range), 0u);
    EXPECT_EQ(bounded(~0ull, range), range - 1);
  }
  EXPECT_EQ(bounded(12345, 0), 12345u) << "no range: the whole word";
}

TEST(RandomNumbers, NormalsAreFiniteAtTheCorners) {
  for (uint32_t a : {0u, 1u, 0x7fffffffu, 0xffffff00u, 0xffffffffu}) {
    for (uint32_t b : {0u, 0x40000000u, 0xffffffffu}) {
      NormalPair<float> pair = normal_pair(a, b);
      EXPECT_TRUE(std::isfinite(pair.first) && std::isfinite(pair.second)) << a << " " << b;
      uint64_t wide_a = uint64_t{a} << 32 | a, wide_b = uint64_t{b} << 32 | b;
      NormalPair<double> wide = normal_pair(wide_a, wide_b);
      EXPECT_TRUE(std::isfinite(wide.first) && std::isfinite(wide.second)) << a << " " << b;
    }
  }
  EXPECT_NEAR(normal_pair(0u, 0u).first, 6.76f, 0.01f) << "the longest tail";
}

struct Moments {
  double mean, variance;
};
template <typename F>
Moments moments(int64_t n, F number) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    double x = number(static_cast<uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  double mean = sum / static_cast<double>(n);
  return {mean, squares / static_cast<double>(n) - mean * mean};
}

// Within five standard errors of the mean and of the variance.
TEST(RandomStream, HasTheMomentsOfItsDistributions) {
  constexpr int64_t n = 200'000;
  RandomStream stream{42, 1000};
  double root = std::sqrt(static_cast<double>(n));
  auto expect = [&](Moments m, double mean, double variance, double fourth) {
    EXPECT_NEAR(m.mean, mean, 5 * std::sqrt(variance) / root);
    EXPECT_NEAR(m.variance, variance, 5 * std::sqrt(fourth - variance * variance) / root);
  };
  expect(moments(n, [&](uint64_t i) { return stream.uniform_float(i); }), 0.5, 1.0 / 12, 1.0 / 80);
  expect(moments(n, [&](uint64_t i) { return stream.uniform_double(i); }), 0.5, 1.0 / 12, 1.0 / 80);
  expect(moments(n, [&](uint64_t i) { return stream.normal_float(i); }), 0, 1, 3);
  expect(moments(n, [&](uint64_t i) { return stream.normal_double(i); }), 0, 1, 3);
}

TEST(RandomStream, IntegersAreUniform) {
  RandomStream stream{7, 0};
  std::array<int, 10> counts{};
  constexpr int n = 100'000;
  for (int i = 0; i < n; ++i) ++counts[stream.integer_below(i, 10)];
  double chi_square = 0;
  for (int count : counts) chi_square += (count - n / 10.0) * (count - n / 10.0) / (n / 10.0);
  EXPECT_LT(chi_square, 27.9) << "the 0.999 quantile for 9 degrees of freedom";
}

TEST(RandomStream, ElementsOfOneKernelDoNotShareWords) {
  RandomStream stream{3, 5};
  std::set<uint64_t> words32, words64;
  for (uint64_t i = 0; i < 1000; ++i) {
    words32.insert(stream.word32(i));
    words64.insert(stream.word64(i));
  }
  EXPECT_EQ(words32.size(), 1000u);
  EXPECT_EQ(words64.size(), 1000u);
}

TEST(RandomStream, AnyNumberOfThreadsGivesTheSameBits) {
  int before = num_threads();
  auto draw = [](int threads, int64_t grain) {
    set_num_threads(threads);
    std::vector<float> values(10'001);
    RandomStream stream{1, 2};
    parallel_for(0, static_cast<int64_t>(values.size()), grain, [&](int64_t b, int64_t e) {
      for (; b < e; ++b) values[b] = stream.normal_float(static_cast<uint64_t>(b));
    });
    return values;
  };
  auto expected = draw(1, 20'000);
  for (int threads : {1, 2, 5})
    for (int64_t grain : {1, 7, 1024}) EXPECT_EQ(draw(threads, grain), expected);
  set_num_threads(before);
}

TEST(Generator, AdvancesAndRestores) {
  Generator g(11);
  EXPECT_EQ(g.seed(), 11u);
  EXPECT_EQ(g.offset(), 0u);
  EXPECT_EQ(g.advance(3), 0u);
  EXPECT_EQ(g.advance(2), 3u);
  GeneratorState state = g.state();
  EXPECT_EQ(state, (GeneratorState{11, 5}));
  RandomStream stream = g.reserve(4);
  EXPECT_EQ(stream.seed, 11u);
  EXPECT_EQ(stream.offset, 5u);
  g.set_state(state);
  EXPECT_EQ(g.offset(), 5u);
  g.manual_seed(12);
  EXPECT_EQ(g.state(), (GeneratorState{12, 0}));
}

TEST(Generator, CopiesShareAndClonesDoNot) {
  Generator g(1), copy = g, clone = g.clone();
  EXPECT_TRUE(copy == g);
  EXPECT_FALSE(clone == g);
  g.advance(10);
  EXPECT_EQ(copy.offset(), 10u);
  EXPECT_EQ(clone.offset(), 0u);
}

TEST(Generator, TheDefaultOneIsSeededAndForked) {
  auto outer = fork_rng();
  manual_seed(99);
  EXPECT_EQ(default_generator().state(), (GeneratorState{99, 0}));
  {
    auto scope = fork_rng();
    default_generator().advance(17);
    manual_seed(5);
  }
  EXPECT_EQ(default_generator().state(), (GeneratorState{99, 0}));
}

TEST(RandomScope, StandsInForTheDefaultGenerator) {
  auto outer = fork_rng();
  manual_seed(99);
  EXPECT_EQ(reserve_random(3).offset, 0u);
  EXPECT_EQ(next_random().offset, 3u);
  EXPECT_FALSE(RandomScope::is_open());
  {
    RandomScope scope({7, 100});
    EXPECT_EQ(reserve_random(5).offset, 100u);
    EXPECT_EQ(next_random().seed, 7u);
    {
      RandomScope inner({8, 0});
      EXPECT_EQ(reserve_random(1).seed, 8u);
      std::thread([] { EXPECT_FALSE(RandomScope::is_open()); }).join();
    }
    EXPECT_TRUE(RandomScope::is_open());
    EXPECT_EQ(reserve_random(1).offset, 105u);
  }
  EXPECT_EQ(default_generator().state(), (GeneratorState{99, 3}));
}

TEST(Generator, ThreadsReserveDisjointRanges) {
  Generator g(0);
  std::vector<std::vector<uint64_t>> got(4);
  std::vector<std::thread> threads;
  for (auto& mine : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) mine.push_back(g.advance(2));
    });
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (auto& mine : got) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 4000u);
  EXPECT_EQ(g.offset(), 8000u);
}

}  // namespace
}  // namespace weft
