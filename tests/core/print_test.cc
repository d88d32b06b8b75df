// The expected texts are PyTorch's.
#include <gtest/gtest.h>

#include <limits>

#include "support/tensors.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

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

// The width and the notation follow from the finite numbers other than zero.
TEST(Print, NumbersThatDoNotCountMayBeWider) {
  auto text = [](std::vector<float> values) { return from_data(values).to_string(); };
  EXPECT_EQ(text({kNan, 1}), "tensor([nan, 1.])");
  EXPECT_EQ(text({kInf, 1.5f}), "tensor([   inf, 1.5000])");
  EXPECT_EQ(text({-kInf, kNan, 0.25f}), "tensor([  -inf,    nan, 0.2500])");
  EXPECT_EQ(text({-0.0f, 0, 3}), "tensor([-0., 0., 3.])");
  EXPECT_EQ(text({kNan, -kInf, 0}), "tensor([nan, -inf, 0.])");
  EXPECT_EQ(text({1e-5f, kNan, -0.0f}), "tensor([1.0000e-05,        nan, -0.0000e+00])");
  EXPECT_EQ(full({}, kNan, kFloat64).to_string(), "tensor(nan, dtype=torch.float64)");
}

TEST(Print, TheRangeOfTheNumbersChoosesTheNotation) {
  auto text = [](std::vector<double> values) { return from_data(values).to(kFloat32).to_string(); };
  EXPECT_EQ(text({1000, 1}), "tensor([1000.,    1.])");
  EXPECT_EQ(text({1001, 1}), "tensor([1.0010e+03, 1.0000e+00])");
  EXPECT_EQ(text({99999999, 123456}), "tensor([100000000.,    123456.])");
  EXPECT_EQ(text({1e8, 1}), "tensor([1.0000e+08, 1.0000e+00])");
  EXPECT_EQ(text({0.0001, 0.05}), "tensor([1.0000e-04, 5.0000e-02])");
}

TEST(Print, PartsOfComplexNumbersHaveFormatsOfTheirOwn) {
  auto text = [](std::vector<float> pairs) {
    return view_as_complex(from_data(pairs, {static_cast<int64_t>(pairs.size()) / 2, 2})).to_string();
  };
  EXPECT_EQ(text({kNan, 1, 1, kInf}), "tensor([nan+1.j, 1.+infj])");
  EXPECT_EQ(text({-kInf, -kNan}), "tensor([-inf+nanj])");
  EXPECT_EQ(text({1, -0.0f, 0, 0}), "tensor([1.-0.j, 0.+0.j])");
  EXPECT_EQ(text({1e10f, 1, 1, -2}), "tensor([1.0000e+10+1.j, 1.0000e+00-2.j])");
  EXPECT_EQ(text({0.5f, -30, -10, 2.5f}), "tensor([  0.5000-30.0000j, -10.0000+2.5000j])");
  EXPECT_EQ(full({}, Complex<double>(1, 1e-6), kComplex64).to_string(), "tensor(1.+1.0000e-06j)");
}

// --- rows ------------------------------------------------------------------------------------------------

TEST(Print, LinesHoldTheSameNumberOfElements) {
  EXPECT_EQ(zeros({25}).to_string(),
            "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., "
            "0., 0.,\n        0.])");
  EXPECT_EQ(arange(-128, -114, kInt8).to_string(),
            "tensor([-128, -127, -126, -125, -124, -123, -122, -121, -120, -119, -118, -117,\n"
            "        -116, -115], dtype=torch.int8)");
  EXPECT_EQ((remainder(arange(14), 3) == 0).to_string(),
            "tensor([ True, False, False,  True, False, False,  True, False, False,  True,\n"
            "        False, False,  True, False])");
}

TEST(Print, SummarisesLongTensors) {
  EXPECT_EQ(zeros({1001}).to_string(), "tensor([0., 0., 0.,  ..., 0., 0., 0.])");
  EXPECT_EQ((arange(1001, kFloat32) / -1001).to_string(),
            "tensor([-0.0000e+00, -9.9900e-04, -1.9980e-03,  ..., -9.9700e-01,\n"
            "        -9.9800e-01, -9.9900e-01])");
  EXPECT_EQ((arange(4000, kFloat32).reshape({2, 2000}) * 100).to_string(),
            "tensor([[0.0000e+00, 1.0000e+02, 2.0000e+02,  ..., 1.9970e+05, 1.9980e+05,\n"
            "         1.9990e+05],\n"
            "        [2.0000e+05, 2.0010e+05, 2.0020e+05,  ..., 3.9970e+05, 3.9980e+05,\n"
            "         3.9990e+05]])");
  Tensor steps = arange(1001, kFloat32);
  EXPECT_EQ(view_as_complex(stack({steps * 1e5, steps - 1000}, 1)).to_string(),
            "tensor([        0.-1000.j,    100000.-999.j,    200000.-998.j,\n"
            "         ...,  99800000.-2.j,  99900000.-1.j,\n"
            "        100000000.+0.j])");
  EXPECT_EQ(arange(2048).reshape({8, 1, 256}).to_string(),
            "tensor([[[   0,    1,    2,  ...,  253,  254,  255]],\n\n"
            "        [[ 256,  257,  258,  ...,  509,  510,  511]],\n\n"
            "        [[ 512,  513,  514,  ...,  765,  766,  767]],\n\n"
            "        ...,\n\n"
            "        [[1280, 1281, 1282,  ..., 1533, 1534, 1535]],\n\n"
            "        [[1536, 1537, 1538,  ..., 1789, 1790, 1791]],\n\n"
            "        [[1792, 1793, 1794,  ..., 2045, 2046, 2047]]])");
}

TEST(Print, ReadsViewsThroughTheirStrides) {
  Tensor x = from_data(std::vector<int64_t>{1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(x.t().to_string(), "tensor([[1, 3],\n        [2, 4]])");
  EXPECT_EQ(slice(arange(24, kFloat32).reshape({2, 3, 4}).transpose(0, 2), 0, 0, std::nullopt, 2).to_string(),
            "tensor([[[ 0., 12.],\n"
            "         [ 4., 16.],\n"
            "         [ 8., 20.]],\n\n"
            "        [[ 2., 14.],\n"
            "         [ 6., 18.],\n"
            "         [10., 22.]]])");
  EXPECT_EQ(conj(full({1, 2}, Complex<double>(1, 2), kComplex128)).to_string(),
            "tensor([[1.-2.j, 1.-2.j]], dtype=torch.complex128)");
}

// --- what stands beside the values -----------------------------------------------------------------------

TEST(Print, WhatPassesTheEndOfTheLineStartsAnother) {
  Tensor x = (arange(8, kFloat64) / 8).set_requires_grad();
  EXPECT_EQ(x.to_string(),
            "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750],\n"
            "       dtype=torch.float64, requires_grad=True)");
  EXPECT_EQ((x * 2).to_string(),
            "tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500],\n"
            "       dtype=torch.float64, grad_fn=<MulBackward0>)");
  EXPECT_EQ(slice(x, 0, 0, 6).to_string(),
            "tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250], dtype=torch.float64,\n"
            "       grad_fn=<SliceBackward0>)");
  EXPECT_EQ(zeros({0, 10, 10, 10, 10, 10, 10, 10, 10}, kFloat16).set_requires_grad().to_string(),
            "tensor([], size=(0, 10, 10, 10, 10, 10, 10, 10, 10), dtype=torch.float16,\n"
            "       requires_grad=True)");
  EXPECT_EQ(full({}, -2.5, kBFloat16).set_requires_grad().to_string(),
            "tensor(-2.5000, dtype=torch.bfloat16, requires_grad=True)");
}

TEST(Print, TensorsWithoutValuesShowTheirSizes) {
  EXPECT_EQ(zeros({0, 3}, kInt64).to_string(), "tensor([], size=(0, 3), dtype=torch.int64)");
  EXPECT_EQ(zeros({0}, kBool).to_string(), "tensor([], dtype=torch.bool)");
  EXPECT_EQ(empty({2}, std::nullopt, std::nullopt, kMeta).to_string(),
            "tensor(..., device='meta', size=(2,))");
  EXPECT_EQ(empty(std::vector<SymInt>(14, 1), kBFloat16, std::nullopt, kMeta).set_requires_grad().to_string(),
            "tensor(..., device='meta', size=(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),\n"
            "       dtype=torch.bfloat16, requires_grad=True)");
  FakeMode mode;
  EXPECT_EQ(empty({2, 3}).to_string(), "FakeTensor(..., size=(2, 3))");
  EXPECT_EQ(empty({2}, kInt64).to_string(), "FakeTensor(..., size=(2,), dtype=torch.int64)");
  EXPECT_EQ((empty({2}).set_requires_grad() * 2).to_string(),
            "FakeTensor(..., size=(2,), grad_fn=<MulBackward0>)");
}

}  // namespace
}  // namespace weft
