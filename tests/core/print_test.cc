#include <gtest/gtest.h>

#include "support/tensors.h"

namespace weft {
namespace {

TEST(Print, FollowsPyTorchsLayout) {
  EXPECT_EQ(full({}, 1.5).to_string(), "tensor(1.5000)");
  EXPECT_EQ(from_data(std::vector<float>{1, 2, 3}).to_string(), "tensor([1., 2., 3.])");
  EXPECT_EQ(from_data(std::vector<float>{0.5f, -10}).to_string(), "tensor([  0.5000, -10.0000])");
  EXPECT_EQ(from_data(std::vector<float>{1e-6f, 1}).to_string(), "tensor([1.0000e-06, 1.0000e+00])");
  EXPECT_EQ(from_data(std::vector<int64_t>{1, -20, 3, 4}, {2, 2}).to_string(),
            "tensor([[  1, -20],\n        [  3,   4]])");
  EXPECT_EQ(from_data(std::vector<double>{1, 2}).to_string(), "tensor([1., 2.], dtype=torch.float64)");
  EXPECT_EQ(ones({2}, kBool).to_string(), "tensor([True, True])");
  EXPECT_EQ(zeros({0}).to_string(), "tensor([])");
  EXPECT_EQ(zeros({2, 0}).to_string(), "tensor([], size=(2, 0))");
  EXPECT_EQ(full({1}, Complex<double>(1, -2), kComplex64).to_string(), "tensor([1.-2.j])");
}

TEST(Print, SummarisesLongTensors) {
  std::string text = zeros({2000}).to_string();
  EXPECT_EQ(text, "tensor([0., 0., 0.,  ..., 0., 0., 0.])");
}

TEST(Print, ReadsViewsThroughTheirStrides) {
  Tensor x = from_data(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(x.t().to_string(), "tensor([[1, 3],\n        [2, 4]])");
  EXPECT_EQ(empty({2}, std::nullopt, std::nullopt, kMeta).to_string(),
            "tensor(..., device='meta', size=(2,))");
}

}  // namespace
}  // namespace weft
