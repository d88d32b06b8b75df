#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "ops/cpu/onednn_convolution.h"
#include "support/tensors.h"
#include "weft/base/parallel.h"

// Convolutions of f32 go to oneDNN where it pays; those of f64 never do, so each checks the other.

namespace weft {
namespace {

using testing::close;

struct Problem {
  Tensor input, weight, bias;
  Ints stride, padding, dilation, extra;
  bool transposed = false;
  int64_t groups = 1;

  std::string to_string() const {
    auto text = [](const Ints& v) {
      std::string s;
      for (const int64_t i : v) s += std::to_string(i) + " ";
      return s;
    };
    return describe(input).str() + " " + describe(weight).str() + " stride " + text(stride) + "padding " +
           text(padding) + "dilation " + text(dilation) + "extra " + text(extra) +
           (transposed ? "transposed " : "") + "groups " + std::to_string(groups);
  }
  Tensor run() const {
    return convolution(input, weight, bias, stride, padding, dilation, transposed, extra, groups);
  }
  std::vector<Tensor> run_backward(const Tensor& grad) const {
    const SymInts bias_size{grad.size(1)};
    auto [dx, dw, db] = convolution_backward(grad, input, weight, SymIntSpan(bias_size), stride, padding,
                                             dilation, transposed, extra, groups, {true, true, true});
    return {dx, dw, db};
  }
  Problem to(DType dtype) const {
    Problem other = *this;
    other.input = input.to(dtype);
    other.weight = weight.to(dtype);
    if (bias.defined()) other.bias = bias.to(dtype);
    return other;
  }
};

Tensor random_tensor(const Ints& sizes, std::mt19937& random) {
  Tensor t = empty(sizes, kFloat32);
  for (int64_t i = 0; i < t.plain_numel(); ++i)
    t.data<float>()[i] = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
  return t;
}

Problem random_problem(unsigned seed) {
  std::mt19937 random(seed);
  auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<unsigned>(high - low + 1));
  };
  Problem p;
  const int64_t rank = between(1, 3);
  const bool is_depthwise = between(0, 4) == 0;
  p.groups = is_depthwise ? between(2, 40) : between(0, 2) == 0 ? between(2, 4) : 1;
  const int64_t in = is_depthwise ? 1 : between(1, 40), out = is_depthwise ? between(1, 2) : between(1, 40);
  p.transposed = between(0, 3) == 0;
  Ints sizes{between(0, 12) == 0 ? 0 : between(1, 4), p.groups * in};
  Ints kernel = p.transposed ? Ints{p.groups * in, out} : Ints{p.groups * out, in};
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t k = between(1, rank == 3 ? 3 : 5);
    p.stride.push_back(between(1, 3));
    p.dilation.push_back(between(1, 2));
    p.padding.push_back(between(0, k - 1));
    p.extra.push_back(p.transposed ? between(0, std::max(p.stride.back(), p.dilation.back()) - 1) : 0);
    sizes.push_back((k - 1) * p.dilation.back() + between(1, rank == 1 ? 200 : rank == 2 ? 20 : 6));
    kernel.push_back(k);
  }
  p.input = random_tensor(sizes, random);
  p.weight = random_tensor(kernel, random);
  if (between(0, 1)) p.bias = random_tensor({p.groups * out}, random);
  if (rank == 2 && between(0, 2) == 0) p.input = p.input.contiguous(MemoryFormat::kChannelsLast);
  if (rank == 2 && between(0, 4) == 0) p.weight = p.weight.contiguous(MemoryFormat::kChannelsLast);
  if (between(0, 6) == 0) p.input = p.input.transpose(0, 1).contiguous().transpose(0, 1);
  return p;
}

// Sums of up to some thousand products of numbers below 1.
constexpr double kRelative = 1e-4, kAbsolute = 2e-4;

TEST(Convolution, F32AgreesWithF64OnRandomProblems) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Problem narrow = random_problem(seed), wide = narrow.to(kFloat64);
    const Tensor y = narrow.run(), expected = wide.run();
    ASSERT_TRUE(close(y, expected, kRelative, kAbsolute)) << seed << ": " << narrow.to_string();
    std::mt19937 random(seed + 1000);
    Ints sizes(y.plain_sizes().begin(), y.plain_sizes().end());
    Tensor grad = random_tensor(sizes, random);
    if (seed % 3 == 0 && grad.dim() == 4) grad = grad.contiguous(MemoryFormat::kChannelsLast);
    const std::vector<Tensor> grads = narrow.run_backward(grad),
                              wanted = wide.run_backward(grad.to(kFloat64));
    for (size_t i = 0; i < grads.size(); ++i)
      ASSERT_TRUE(close(grads[i], wanted[i], kRelative, 1e-3))
          << seed << ", gradient " << i << ": " << narrow.to_string();
  }
}

TEST(Convolution, SixteenBitFloatsComputeInF32) {
  Problem p = random_problem(2);
  for (const DType dtype : {kFloat16, kBFloat16}) {
    const Tensor y = p.to(dtype).run();
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_TRUE(close(y, p.to(dtype).to(kFloat64).run(), 1e-2, 1e-2));
  }
}

Problem image_problem(int64_t batch, int64_t in, int64_t size, int64_t out, int64_t kernel, int64_t stride,
                      int64_t groups, bool channels_last = false) {
  std::mt19937 random(7);
  Problem p;
  p.input = random_tensor({batch, in, size, size}, random);
  if (channels_last) p.input = p.input.contiguous(MemoryFormat::kChannelsLast);
  p.weight = random_tensor({out, in / groups, kernel, kernel}, random);
  p.bias = random_tensor({out}, random);
  p.stride = {stride, stride};
  p.padding = {kernel / 2, kernel / 2};
  p.dilation = {1, 1};
  p.extra = {0, 0};
  p.groups = groups;
  return p;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.plain_numel()) * sizeof(float)) == 0;
}

struct ThreadsBack {
  int before = num_threads();
  ~ThreadsBack() { set_num_threads(before); }
};

TEST(Convolution, SameBitsForAnyNumberOfThreads) {
  const ThreadsBack threads_back;
  for (const bool channels_last : {false, true})
    for (const Problem& p : {image_problem(1, 64, 28, 96, 3, 1, 1, channels_last),
                             image_problem(5, 32, 20, 40, 3, 2, 1, channels_last),
                             image_problem(3, 48, 24, 48, 3, 1, 48, channels_last),
                             image_problem(2, 64, 24, 64, 3, 1, 4, channels_last),
                             image_problem(1, 3, 80, 64, 7, 2, 1, channels_last),
                             image_problem(1, 256, 7, 272, 1, 1, 1, channels_last)}) {
      set_num_threads(1);
      const Tensor y = p.run();
      const std::vector<Tensor> grads = p.run_backward(y);
      for (const int threads : {2, 3, 8}) {
        set_num_threads(threads);
        EXPECT_TRUE(same_bits(p.run(), y)) << threads << " threads: " << p.to_string();
        const std::vector<Tensor> again = p.run_backward(y);
        for (size_t i = 0; i < grads.size(); ++i)
          EXPECT_TRUE(same_bits(again[i], grads[i]))
              << threads << " threads, gradient " << i << ": " << p.to_string();
      }
    }
}

TEST(Convolution, LargeBlocksAgreeWithF64) {
  for (const bool channels_last : {false, true})
    for (const Problem& p : {image_problem(2, 130, 16, 520, 3, 1, 1, channels_last),
                             image_problem(17, 24, 14, 40, 3, 1, 1, channels_last),
                             image_problem(3, 84, 30, 84, 3, 1, 84, channels_last),
                             image_problem(2, 512, 7, 528, 3, 1, 1, channels_last)}) {
      const Problem wide = p.to(kFloat64);
      const Tensor y = p.run();
      EXPECT_TRUE(close(y, wide.run(), kRelative, 2e-3)) << p.to_string();
      const std::vector<Tensor> grads = p.run_backward(y), wanted = wide.run_backward(y.to(kFloat64));
      for (size_t i = 0; i < grads.size(); ++i)
        EXPECT_TRUE(close(grads[i], wanted[i], 1e-3, 0.1)) << "gradient " << i << ": " << p.to_string();
    }
}

TEST(Convolution, ChannelsLastStaysChannelsLast) {
  const Problem p = image_problem(2, 16, 12, 24, 3, 1, 1, true);
  const Tensor y = p.run();
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  Problem plain = p;
  plain.input = p.input.contiguous();
  EXPECT_TRUE(close(y, plain.run(), 1e-5, 1e-5));
}

// Which problems oneDNN takes: all but tiny ones.
TEST(OneDnnConvolution, DeclinesTinyProblems) {
  std::vector<float> input(16 * 1024), weight(16 * 16 * 9), output(16 * 1024);
  auto is_taken = [&](int64_t channels, int64_t size) {
    cpu::ConvolutionShape s{1,      1,      channels, channels, {size, size}, {3, 3}, {size, size},
                            {1, 1}, {1, 1}, {1, 1}};
    const int64_t plane = size * size;
    return cpu::onednn_convolution_forward(s, {input.data(), {channels * plane, plane, size, 1}},
                                           {weight.data(), {channels * 9, 9, 3, 1}}, nullptr,
                                           {output.data(), {channels * plane, plane, size, 1}});
  };
  EXPECT_FALSE(is_taken(2, 4));
  EXPECT_TRUE(is_taken(16, 32));
}

}  // namespace
}  // namespace weft
