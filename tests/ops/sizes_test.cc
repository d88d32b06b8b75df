// Operators whose results are sizes or C++ values: what they answer for tensors of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/dispatch/operator.h"
#include "weft/func/func.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

std::vector<int64_t> plain(const Ints& list) { return {list.begin(), list.end()}; }
std::vector<std::string> texts(const SymInts& list) {
  std::vector<std::string> all;
  for (const SymInt& value : list) all.push_back(value.to_string());
  return all;
}

TEST(Sizes, AreReadOffPlainTensors) {
  Tensor x = transpose(ones({2, 3, 4}), 0, 2).slice(0, 1);
  EXPECT_THAT(plain(size(x)), ElementsAre(3, 3, 2));
  EXPECT_THAT(plain(stride(x)), ElementsAre(1, 4, 12));
  EXPECT_EQ(size(x, -1), 2);
  EXPECT_EQ(stride(x, 1), 4);
  EXPECT_EQ(numel(x), 18);
  EXPECT_EQ(storage_offset(x), 1);
  EXPECT_EQ(dim(x), 3);
  EXPECT_EQ(sym_size(x, 0).plain(), 3);
  EXPECT_EQ(sym_stride(x, -1).plain(), 12);
  EXPECT_EQ(sym_numel(x).plain(), 18);
  EXPECT_EQ(sym_storage_offset(x).plain(), 1);
  EXPECT_ERROR(sym_size(x, 3), "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  EXPECT_ERROR(sym_size(ones({}), 0), "Dimension specified as 0 but tensor has no dimensions");
}

TEST(Sizes, StaySymbolicAndAreFixedOnlyAsIntegers) {
  Tensor real = testing::ramp({4, 3});
  Ref<ShapeEnv> env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  Tensor x = mode.fake_of(real, "x");
  EXPECT_THAT(texts(sym_size(x)), ElementsAre("s0", "s1"));
  EXPECT_THAT(texts(sym_stride(x)), ElementsAre("s1", "1"));
  EXPECT_EQ(sym_size(x, 1).to_string(), "s1");
  EXPECT_EQ(sym_numel(x).to_string(), "s0*s1");
  // As Values they keep their symbols, whatever the schema calls them.
  EXPECT_EQ(call("aten::size.int", {x, 0}).to_string(), "s0");
  EXPECT_EQ(call("aten::numel", {x}).to_string(), "s0*s1");
  EXPECT_TRUE(env->guards().empty());
  EXPECT_EQ(size(x, 0), 4);
  ASSERT_EQ(env->guards().size(), 1u);
  EXPECT_EQ(sym_size(x, 1).to_string(), "s1");
}

TEST(Sizes, OfABatchedTensorAreThoseOfAnExample) {
  func::vmap([](const Tensor& x) {
    EXPECT_THAT(plain(size(x)), ElementsAre(3));
    EXPECT_EQ(sym_numel(x).plain(), 3);
    return x;
  })(ones({2, 3}));
}

TEST(Sizes, CarryNoGradient) {
  Tensor x = ones({2, 3}).set_requires_grad();
  Tensor y = x * Scalar(sym_size(x, 0));
  y.sum().backward();
  EXPECT_EQ(testing::values(x.grad()), std::vector<double>(6, 2.0));
}

TEST(Answers, AreBooleans) {
  Tensor x = testing::vec({1, 2, 3});
  EXPECT_TRUE(equal(x, x.clone()));
  EXPECT_FALSE(equal(x, testing::vec({1, 2, 4})));
  EXPECT_FALSE(equal(x, x.view({1, 3})));
  EXPECT_TRUE(equal(x, x.to(kInt64)));
  EXPECT_TRUE(allclose(x, x + 1e-9));
  EXPECT_FALSE(allclose(x, x + 1e-3));
  Tensor nan = testing::vec({std::nan("")});
  EXPECT_FALSE(equal(nan, nan));
  EXPECT_FALSE(allclose(nan, nan));
  EXPECT_TRUE(allclose(nan, nan, 0, 0, true));
  EXPECT_ERROR(allclose(x, x.to(kFloat32)), "float64 did not match float32");
}

TEST(Answers, OfFakeTensorsAreNotKnown) {
  Tensor real = testing::ramp({4});
  Ref<ShapeEnv> env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  Tensor x = mode.fake_of(real, "x"), y = mode.fake_of(real, "y");
  EXPECT_EQ(call("aten::equal", {x, y}).kind_name(), "a symbolic bool");
  EXPECT_THROW(equal(x, y), Error);
  EXPECT_FALSE(equal(x, x.view({1, -1})));  // another rank
}

}  // namespace
}  // namespace weft
