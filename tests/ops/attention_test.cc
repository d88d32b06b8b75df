#include "weft/ops/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using ::testing::HasSubstr;

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return scaled_dot_product_attention(q, k, v, {}, 0.0, true);
}
std::string attention_code(const Tensor& x) { return make_graph(attention)(x, x, x).code(); }

TEST(AttentionBackends, ChooseAmongThoseThatAreAllowed) {
  const Tensor x = randn({1, 2, 4, 8});
  EXPECT_THAT(attention_code(x), HasSubstr("_scaled_dot_product_flash_attention_for_cpu"));
  {
    const AttentionBackends only({AttentionBackend::kMath});
    EXPECT_THAT(attention_code(x), HasSubstr("_softmax"));
    {
      const AttentionBackends both({AttentionBackend::kFlash, AttentionBackend::kMath});
      EXPECT_THAT(attention_code(x), HasSubstr("_scaled_dot_product_flash_attention_for_cpu"));
    }
    EXPECT_THAT(attention_code(x), HasSubstr("_softmax"));
  }
  const AttentionBackends only({AttentionBackend::kFlash});
  EXPECT_USER_ERROR(attention(x[0], x[0], x[0]), "No available kernel");
}

TEST(FlashAttention, OnAnAcceleratorIsWhatTheFormulaGives) {
  const Device device("sim");
  const Tensor q = randn({2, 3, 4, 8}), k = randn({2, 3, 5, 8}), v = randn({2, 3, 5, 8});
  auto run = [&](Device where, DType type) {
    std::vector<Tensor> given;
    for (const Tensor& tensor : {q, k, v}) given.push_back(tensor.to(type).to(where).set_requires_grad());
    const Tensor result = attention(given[0], given[1], given[2]);
    std::vector<Tensor> all = autograd::grad({result.to(kFloat32).sum()}, given);
    all.push_back(result);
    for (Tensor& tensor : all) tensor = tensor.detach().to(kCpu).to(kFloat32);
    return all;
  };
  const std::vector<Tensor> got = run(device, kFloat16), wanted = run(kCpu, kFloat32);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(close(got[i], wanted[i], 0.02, 0.02)) << i;
  const Tensor half = q.to(kBFloat16).to(device);
  EXPECT_THAT(attention_code(half), HasSubstr("_scaled_dot_product_flash_attention.default("));
}

}  // namespace
}  // namespace weft
