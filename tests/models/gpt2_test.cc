// GPT-2 against PyTorch's numbers.
#include "weft/models/gpt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/recorded_model.h"
#include "support/expect_error.h"
#include "weft/aot/train_step.h"
#include "weft/autograd/autograd.h"
#include "weft/ops/fake.h"

namespace weft::models {
namespace {

using testing::values;

const Gpt2Options kTiny{
    .vocab_size = 29, .n_positions = 12, .n_embd = 24, .n_layer = 2, .n_head = 4, .dropout = 0};

Tensor tokens_of(int64_t batch, int64_t length) {
  return remainder(arange(batch * length) * 7, 29).view({batch, length});
}
Tensor next_token_loss(const Tensor& logits, const Tensor& next) {
  return cross_entropy_loss(flatten(logits, 0, 1), flatten(next));
}

TEST(Gpt2, HasTheStateOfHuggingFaces) {
  FakeMode no_data;
  expect_state(gpt2_small(), recorded(WEFT_SOURCE_DIR, "gpt2"));
}

TEST(Gpt2, GivesPyTorchsLogitsAndGradients) {
  const Json wanted = recorded(WEFT_SOURCE_DIR, "gpt2");
  Gpt2 net(kTiny);
  net.to(kFloat64);
  fill(net);
  const Tensor tokens = tokens_of(2, 9);
  const Tensor logits = net(tokens.slice(1, 0, 8));
  expect_close(values(logits), wanted.at("logits"), "logits");
  Tensor loss = next_token_loss(logits, tokens.slice(1, 1));
  EXPECT_NEAR(loss.item().to_double(), wanted.at("loss").as_double(), 1e-9);
  loss.backward();
  size_t gradients = 0;
  for (const auto& [name, parameter] : net.named_parameters()) {
    expect_close(sums(parameter.grad()), wanted.at("gradients").at(name), "gradient of " + name);
    ++gradients;
  }
  EXPECT_EQ(gradients, wanted.at("gradients").size());
}

TEST(Gpt2, TheOutputWeightsAreTheEmbeddings) {
  Gpt2 net(kTiny);
  EXPECT_TRUE(net.lm_head.weight.is_same(net.transformer.wte.weight));
  Gpt2 copy = nn::deep_copy(net);
  EXPECT_TRUE(copy.lm_head.weight.is_same(copy.transformer.wte.weight));
  EXPECT_FALSE(copy.lm_head.weight.is_same(net.lm_head.weight));
}

TEST(Gpt2, APositionSeesNoLaterOne) {
  Gpt2 net(kTiny);
  Tensor tokens = tokens_of(1, 6), other = clone(tokens);
  {
    NoGrad no_grad;
    other.select(1, 5).fill_(3);
  }
  const Tensor a = net(tokens), b = net(other);
  EXPECT_TRUE(equal(a.slice(1, 0, 5), b.slice(1, 0, 5)));
  EXPECT_FALSE(equal(a, b));
}

TEST(Gpt2, RefusesWhatItCannotRead) {
  Gpt2 net(kTiny);
  EXPECT_ERROR(net(arange(4)), "reads tokens of [batch, length], but got i64[4]");
  EXPECT_ERROR(net(tokens_of(1, 13)), "i64[1, 13] has 13 positions, but the model knows 12");
  EXPECT_ERROR(Gpt2({.n_embd = 10, .n_layer = 1, .n_head = 3}), "n_embd = 10 is no multiple of n_head = 3");
}

// Dropout, tied weights, decay of matrices only, and a clean step for every length with symbolic sizes.
TEST(Gpt2, ACompiledStepTrainsAsEagerOnesDo) {
  auto train = [](bool is_compiled) {
    manual_seed(1);
    Gpt2Options options = kTiny;
    options.dropout = 0.1;
    Gpt2 net(options);
    std::vector<Tensor> matrices, vectors;
    for (const Tensor& p : net.parameters()) (p.dim() > 1 ? matrices : vectors).push_back(p);
    optim::AdamW optimizer({{matrices, {.lr = 1e-2}}, {vectors, {.lr = 1e-2, .weight_decay = 0}}});
    TrainStep step = aot_train_step(net, next_token_loss, optimizer, {.dynamic = true});
    std::vector<double> losses;
    for (int64_t length : {9, 9, 6, 9, 12}) {
      const Tensor tokens = tokens_of(3, length);
      const Tensor x = tokens.slice(1, 0, length - 1).contiguous(), y = tokens.slice(1, 1).contiguous();
      if (is_compiled) {
        losses.push_back(step(x, y).item().to_double());
        continue;
      }
      optimizer.zero_grad();
      Tensor loss = next_token_loss(net(x), y);
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item().to_double());
    }
    EXPECT_LT(losses.back(), losses.front());
    for (const Tensor& p : net.parameters()) losses.push_back(p.detach().sum().item().to_double());
    return losses;
  };
  EXPECT_EQ(train(true), train(false));
}

}  // namespace
}  // namespace weft::models
