// Parts of tensors whose bounds are symbolic: every size is true for every value, or an assertion says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/ceil_div.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UnbackedViews : public ::testing::Test {
 protected:
  Tensor three = testing::ramp({3}), seven = testing::ramp({7}), grid = testing::ramp({7, 3});
  Ref<ShapeEnv> env = ShapeEnv::create();
  FakeMode mode{{.shape_env = env}};
  SymInt data() { return env->create_unbacked_int("y.item()"); }
  Tensor fake(const Tensor& real) { return mode.fake_of(real, "x"); }

  static std::vector<std::string> conditions(std::span<const sym::Guard> guards) {
    std::vector<std::string> all;
    for (const sym::Guard& guard : guards) all.push_back(guard.condition->to_string());
    return all;
  }
  std::vector<std::string> guards() { return conditions(env->guards()); }
  std::vector<std::string> asserts() { return conditions(env->runtime_asserts()); }
};

// Python's slices: where they begin and how many elements they have.
std::pair<int64_t, int64_t> python_slice(int64_t size, int64_t start, int64_t end, int64_t step) {
  auto clamped = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
  int64_t first = clamped(start), length = std::max<int64_t>(clamped(end) - first, 0);
  return {first, ceil_div(length, step)};
}

TEST_F(UnbackedViews, SlicesAreTrueForEveryBound) {
  SymInt start = data(), end = data();
  Tensor x = fake(seven);
  SymInt size = x.size(0);
  for (int64_t step : {1, 3}) {
    Tensor both = x.slice(0, start, end, step), head = x.slice(0, std::nullopt, end, step),
           tail = x.slice(0, start, std::nullopt, step);
    EXPECT_THAT(asserts(), IsEmpty());
    EXPECT_THAT(guards(), IsEmpty());
    for (int64_t n : {2, 7})
      for (int64_t a = -9; a <= 9; ++a)
        for (int64_t b = -9; b <= 9; ++b) {
          sym::Bindings at{{size.expr(), n}, {start.expr(), a}, {end.expr(), b}};
          auto value = [&](const SymInt& number) { return env->evaluate(env->expr_of(number), at); };
          auto [first, length] = python_slice(n, a, b, step);
          EXPECT_EQ(value(both.size(0)), sym::Number(length)) << a << ":" << b;
          EXPECT_EQ(value(both.storage_offset()), sym::Number(first));
          EXPECT_EQ(value(head.size(0)), sym::Number(python_slice(n, 0, b, step).second));
          EXPECT_EQ(value(tail.size(0)), sym::Number(python_slice(n, a, n, step).second));
        }
  }
}

TEST_F(UnbackedViews, ASliceWithinKnownBoundsIsItsLength) {
  SymInt u = data();
  Tensor x = fake(seven);
  check((u >= 0) & (u <= x.size(0)));
  EXPECT_EQ(x.slice(0, 0, u).size(0).to_string(), "u0");
  EXPECT_EQ(x.slice(0, u).size(0).to_string(), "s0 - u0");
}

TEST_F(UnbackedViews, ASizeFromDataIsNotTakenForTwo) {
  SymInt u = data();
  Tensor x = zeros({u});
  EXPECT_EQ(x.slice(0, 0, 1).size(0).to_string(), "Min(1, u0)");
  EXPECT_EQ(x.slice(0, 0, INT64_MAX).size(0).to_string(), "u0");
}

TEST_F(UnbackedViews, SlicesSplitOneCase) {
  Tensor x = fake(three);
  x.slice(0, 0, 3);
  EXPECT_THAT(guards(), ElementsAre("s0 >= 3"));
  EXPECT_EQ(x.slice(0, 2, 3).size(0).plain(), 1);
  EXPECT_THAT(guards(), ElementsAre("s0 >= 3"));
  EXPECT_EQ(x.slice(0, -2).size(0).plain(), 2);
  EXPECT_THAT(guards(), ElementsAre("s0 >= 3"));
  EXPECT_EQ(x.slice(0, 0, 5).size(0).to_string(), "s0");
  EXPECT_THAT(guards(), ElementsAre("s0 >= 3", "s0 < 5"));
}

TEST_F(UnbackedViews, NarrowAssertsItsRange) {
  SymInt u = data();
  Tensor part = fake(seven).narrow(0, 0, u);
  EXPECT_EQ(part.size(0).to_string(), "u0");
  EXPECT_THAT(asserts(), ElementsAre("u0 >= 0", "s0 >= u0"));
}

TEST_F(UnbackedViews, SplitsAssertTheirLengths) {
  SymInt u = data();
  auto parts = split_with_sizes(zeros({10}), {u, 10 - u});
  EXPECT_EQ(parts[1].size(0).to_string(), "10 - u0");
  EXPECT_THAT(asserts(), ElementsAre("u0 >= 0", "u0 <= 10"));
}

TEST_F(UnbackedViews, FactoriesAssertTheirSizes) {
  SymInt u = data(), v = data();
  zeros({u, 3});
  EXPECT_THAT(asserts(), ElementsAre("u0 >= 0"));
  EXPECT_EQ(arange(v, 10).size(0).to_string(), "10 - u1");
  EXPECT_THAT(asserts(), ElementsAre("u0 >= 0", "u1 <= 10"));
  EXPECT_FALSE(guard_or(u == 1, true));  // a size
}

TEST_F(UnbackedViews, SelectTakesIndicesOfBothSigns) {
  SymInt u = data();
  Tensor row = fake(grid).select(0, u);
  EXPECT_THAT(asserts(), ElementsAre("(s0 > u0) & (s0 + u0 >= 0)"));
  for (int64_t index : {-7, -1, 0, 6}) {
    sym::Bindings at{{env->find_symbol("s0")->expr, int64_t{7}},
                     {env->find_symbol("s1")->expr, int64_t{3}},
                     {u.expr(), index}};
    EXPECT_EQ(env->evaluate(env->expr_of(row.storage_offset()), at),
              sym::Number((index < 0 ? index + 7 : index) * 3));
  }
}

}  // namespace
}  // namespace weft
