// Convolutions of sizes that take every way of cutting and copying, against the same in f64.
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"

namespace weft {
namespace {

struct Case {
  int64_t batch, in, out, size, kernel, stride, groups;
  bool channels_last;
};

struct Results {
  Tensor output, input_grad, weight_grad, bias_grad;
};

Results run(const Case& c, DType dtype) {
  manual_seed(7);
  Tensor x = randn({c.batch, c.in, c.size, c.size}, kFloat64),
         w = randn({c.out, c.in / c.groups, c.kernel, c.kernel}, kFloat64);
  Tensor b = randn({c.out}, kFloat64);
  auto leaf = [&](const Tensor& t) { return t.to(dtype).clone().set_requires_grad(); };
  Tensor input = leaf(x), weight = leaf(w), bias = leaf(b);
  Tensor given = c.channels_last ? input.contiguous(MemoryFormat::kChannelsLast) : input;
  Tensor output =
      conv2d(given, weight, bias, {c.stride, c.stride}, {c.kernel / 2, c.kernel / 2}, {1, 1}, c.groups);
  (output * output).sum().backward();
  return {output, input.grad(), weight.grad(), bias.grad()};
}

double relative_error(const Tensor& got, const Tensor& wanted) {
  Tensor difference = (got.detach().to(kFloat64) - wanted.detach()).abs().max();
  return (difference / wanted.detach().abs().max()).item().to_double();
}

TEST(ConvolutionSizes, AgreeWithDoubles) {
  std::vector<Case> cases;
  for (int64_t batch : {1, 2, 5})
    for (int64_t size : {8, 33})
      for (int64_t kernel : {1, 3})
        for (int64_t stride : {1, 2}) {
          cases.push_back({batch, 64, 64, size, kernel, stride, 1, false});
          cases.push_back({batch, 48, 80, size, kernel, stride, 1, true});
          cases.push_back({batch, 20, 33, size, kernel, stride, 1, false});
          cases.push_back({batch, 32, 32, size, kernel, stride, 32, false});
          cases.push_back({batch, 32, 64, size, kernel, stride, 4, false});
        }
  for (const Case& c : cases) {
    SCOPED_TRACE(
        fmt::format("batch {}, {} to {} channels, {}x{}, kernel {}, stride {}, {} groups, channels_last {}",
                    c.batch, c.in, c.out, c.size, c.size, c.kernel, c.stride, c.groups, c.channels_last));
    Results got = run(c, kFloat32), wanted = run(c, kFloat64);
    EXPECT_LT(relative_error(got.output, wanted.output), 1e-5);
    EXPECT_LT(relative_error(got.input_grad, wanted.input_grad), 1e-5);
    EXPECT_LT(relative_error(got.weight_grad, wanted.weight_grad), 1e-4);
    EXPECT_LT(relative_error(got.bias_grad, wanted.bias_grad), 1e-4);
  }
}

// output_padding makes more outputs than inputs, though the kernel is one element wide.
TEST(ConvolutionSizes, OutputPaddingOfASingleElementIsZero) {
  for (DType dtype : {kFloat32, kFloat64}) {
    Tensor x = ones({1, 2, 3, 3}, dtype).set_requires_grad(), w = ones({2, 1, 1, 1}, dtype);
    Tensor y = convolution(x, w, Tensor(), {1, 1}, {0, 0}, {2, 2}, true, {1, 1}, 1);
    Tensor expected = zeros({1, 1, 4, 4}, dtype);
    expected.slice(2, 0, 3).slice(3, 0, 3).fill_(2);
    testing::expect_equal(y.detach(), expected);
    y.sum().backward();
    testing::expect_equal(x.grad(), ones({1, 2, 3, 3}, dtype));
  }
}

TEST(ConvolutionSizes, NoInputChannelsGiveTheBias) {
  Tensor bias = arange(4, kFloat32);
  Tensor y = conv2d(ones({1, 0, 3, 3}), ones({4, 0, 1, 1}), bias);
  testing::expect_equal(y, bias.reshape({1, 4, 1, 1}).expand({1, 4, 3, 3}));
}

}  // namespace
}  // namespace weft
