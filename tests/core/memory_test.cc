// Tensors that are given other memory, or other sizes over theirs.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::ramp;
using testing::values;
using testing::vec;

TEST(ResizeTest, KeepsWhatFitsAndGrowsTheStorage) {
  Tensor x = vec({1, 2, 3, 4}), alias = x.slice(0, 0, 2);
  x.resize_({2, 3});
  EXPECT_EQ(describe(x).str(), "f64[2, 3]");
  EXPECT_EQ(x.data<double>()[3], 4);
  EXPECT_GE(x.storage()->bytes(), 48u);
  EXPECT_EQ(alias.storage(), x.storage());
  EXPECT_EQ(values(alias), (std::vector<double>{1, 2}));
  EXPECT_EQ(x.version(), 1u);
  x.resize_({2});
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  EXPECT_GE(x.storage()->bytes(), 48u);  // never shrinks
}

TEST(ResizeTest, TheSameSizesKeepTheStrides) {
  Tensor x = ramp({2, 3}).t();
  x.resize_({3, 2});
  EXPECT_EQ(x.stride(0).plain(), 1);
  x.resize_({2, 3, 1, 1}, MemoryFormat::kChannelsLast);
  EXPECT_EQ(x.stride(1).plain(), 1);
}

TEST(ResizeTest, CountsFromTheOffset) {
  Tensor base = vec({0, 1, 2, 3}), tail = base.slice(0, 2, 4);
  tail.resize_({5});
  EXPECT_EQ(base.storage()->bytes(), 56u);
  EXPECT_EQ(tail.data<double>()[1], 3);
}

TEST(ResizeTest, Refusals) {
  Tensor x = vec({1, 2});
  EXPECT_ERROR(x.resize_({-1}), "negative dimension");
  EXPECT_ERROR(x.resize_({int64_t{1} << 40, int64_t{1} << 40}), "Storage size calculation overflowed");
  Tensor leaf = vec({1}).set_requires_grad();
  EXPECT_ERROR(leaf.resize_({3}), "cannot resize variables that require grad");
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  double memory[2] = {1, 2};
  Tensor borrowed(make_ref<TensorImpl>(Storage::borrow(memory, 16, kCpu, nullptr, nullptr), kFloat64, kCpu));
  borrowed.impl()->set_contiguous({2});
  EXPECT_ERROR(borrowed.resize_({3}), "borrowed");
  EXPECT_EQ(describe(borrowed).str(), "f64[2]");
}

TEST(ResizeTest, WorksWithoutMemory) {
  FakeMode mode;
  Tensor x = zeros({2, 3});
  x.resize_({1000, 1000});
  EXPECT_EQ(describe(x).str(), "f32[1000, 1000]");
  x.t_();
  EXPECT_TRUE(is_fake(x));
}

TEST(SetTest, TakesTheMemoryOfAnother) {
  Tensor x = vec({1, 2}), y = ramp({2, 3});
  x.set_(y.t());
  EXPECT_EQ(x.storage(), y.storage());
  EXPECT_EQ(describe(x).str(), "f64[3, 2]");
  EXPECT_EQ(x.stride(0).plain(), 1);
  x.zero_();
  EXPECT_EQ(values(y), std::vector<double>(6, 0));
}

TEST(SetTest, PlacesAWindow) {
  Tensor x = vec({9}), y = vec({0, 1, 2, 3, 4, 5});
  x.set_(y, 1, {2, 2}, {3, 1});
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_ERROR(x.set_(y, -1, {2}), "the storage offset is negative");
  EXPECT_ERROR(x.set_(y, 0, {2, 2}, {1}), "2 sizes but 1 strides");
  EXPECT_ERROR(x.set_(y.to(kFloat32)), "Could not set tensor of type float32 to a tensor of type float64");
}

}  // namespace
}  // namespace weft
