// The same bits for any number of threads: forward and backward of operators on tensors that are large enough
// to be cut into many blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/base/parallel.h"
#include "weft/base/random.h"
#include "weft/dispatch/operator.h"

namespace weft {
namespace {

using Tensors = std::vector<Tensor>;

struct Program {
  const char* name;
  Tensors (*make)();
  Tensors (*run)(const Tensors&);
};

Tensor normal(SymIntSpan sizes) { return randn(sizes, kFloat32); }
Tensor indices(int64_t count, int64_t below) { return randint(below, {count}, kInt64); }

const Program kPrograms[] = {
    {"pointwise", [] { return Tensors{normal({700, 900}), normal({900})}; },
     [](const Tensors& t) { return Tensors{gelu(exp(t[0]) * t[1] + tanh(t[0]) / 3)}; }},
    {"sums", [] { return Tensors{normal({600, 1100})}; },
     [](const Tensors& t) {
       return Tensors{t[0].sum(), t[0].sum({0}), t[0].mean({1}), var(t[0], {0}, true), t[0].cumsum(1)};
     }},
    {"extremes", [] { return Tensors{normal({600, 1100})}; },
     [](const Tensors& t) {
       return Tensors{t[0].amax({0}), t[0].amin({1}), std::get<0>(max(t[0], 1)), std::get<0>(topk(t[0], 5))};
     }},
    {"softmax and layer_norm", [] { return Tensors{normal({300, 1000}), normal({1000}), normal({1000})}; },
     [](const Tensors& t) {
       return Tensors{softmax(t[0], 1), log_softmax(t[0], 0), layer_norm(t[0], {1000}, t[1], t[2])};
     }},
    {"matmul", [] { return Tensors{normal({300, 400}), normal({400, 350}), normal({350})}; },
     [](const Tensors& t) { return Tensors{addmm(t[2], t[0], t[1]), t[0].t().matmul(t[0])}; }},
    {"batched matmul", [] { return Tensors{normal({12, 60, 70}), normal({12, 70, 50})}; },
     [](const Tensors& t) { return Tensors{bmm(t[0], t[1])}; }},
    {"convolution", [] { return Tensors{normal({4, 16, 30, 30}), normal({32, 16, 3, 3}), normal({32})}; },
     [](const Tensors& t) { return Tensors{conv2d(t[0], t[1], t[2], {1, 1}, {1, 1})}; }},
    {"depthwise convolution", [] { return Tensors{normal({4, 32, 30, 30}), normal({32, 1, 3, 3})}; },
     [](const Tensors& t) { return Tensors{conv2d(t[0], t[1], Tensor(), {2, 2}, {1, 1}, {1, 1}, 32)}; }},
    {"pooling and batch_norm", [] { return Tensors{normal({8, 16, 40, 40}), normal({16}), normal({16})}; },
     [](const Tensors& t) {
       Tensor y = batch_norm(t[0], t[1], t[2], Tensor(), Tensor(), true, 0.1, 1e-5, false);
       return Tensors{max_pool2d(y, {3, 3}, {2, 2}), avg_pool2d(y, {2, 2}), adaptive_avg_pool2d(y, {7, 7})};
     }},
    {"indexing", [] { return Tensors{normal({5000, 40}), normal({20000, 40})}; },
     [](const Tensors& t) {
       manual_seed(5);
       Tensor at = indices(20000, 5000);
       Tensor rows = embedding(t[0], at), added = index_put(t[0], {at}, t[1], true);
       return Tensors{rows, added, index_select(t[0], 0, at)};
     }},
    {"loss", [] { return Tensors{normal({5000, 50})}; },
     [](const Tensors& t) {
       manual_seed(6);
       return Tensors{cross_entropy_loss(t[0], indices(5000, 50))};
     }},
    {"random numbers", [] { return Tensors{normal({400, 500})}; },
     [](const Tensors& t) {
       manual_seed(7);
       return Tensors{dropout(t[0], 0.3, true), t[0] + randn({400, 500}) * rand({400, 500})};
     }},
};

// Results, and the gradients of their sum with weights that differ.
Tensors with_gradients(const Program& program, Tensors inputs) {
  for (Tensor& input : inputs) input = input.detach().set_requires_grad();
  Tensors results = program.run(inputs);
  Tensor total;
  for (const Tensor& result : results) {
    Tensor part = (result * result).sum();
    total = total.defined() ? total + part : part;
  }
  Tensors all = autograd::grad({total}, inputs, {}, {.allow_unused = true});
  for (const Tensor& result : results) all.push_back(result.detach());
  return all;
}

::testing::AssertionResult same_bits(const Tensors& a, const Tensors& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].defined() && !b[i].defined()) continue;
    Tensor x = a[i].contiguous(), y = b[i].contiguous();
    auto bytes = static_cast<size_t>(x.plain_numel() * item_size(x.dtype()));
    if (std::memcmp(x.raw_data(), y.raw_data(), bytes) != 0)
      return ::testing::AssertionFailure() << "tensor " << i << ", " << describe(x).str();
  }
  return ::testing::AssertionSuccess();
}

TEST(Threads, GiveTheSameBits) {
  struct Restore {
    int before = num_threads();
    ~Restore() { set_num_threads(before); }
  } restore;
  auto fork = fork_rng();
  for (const Program& program : kPrograms) {
    manual_seed(1);
    Tensors inputs = program.make();
    set_num_threads(1);
    Tensors expected = with_gradients(program, inputs);
    for (int threads : {2, 3, 8, 16}) {
      set_num_threads(threads);
      EXPECT_TRUE(same_bits(with_gradients(program, inputs), expected))
          << program.name << " with " << threads << " threads";
    }
  }
}

// Whoever cannot promise it says so, and stands in docs/performance.md.
TEST(Threads, NoOperatorIsSensitiveToTheirNumber) {
  for (const Operator* op : all_operators()) EXPECT_FALSE(op->has(Traits::kThreadSensitive)) << op->name();
}

}  // namespace
}  // namespace weft
