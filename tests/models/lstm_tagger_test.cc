// A tagger learns what its backward direction alone can know, and is exported for any batch. Its steps are
// counted when it is captured, as PyTorch's are: the length is the example's.
#include "weft/models/lstm_tagger.h"

#include <gtest/gtest.h>

#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/export/export_program.h"
#include "weft/nn/functional.h"
#include "weft/nn/optim.h"
#include "weft/ops/close.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

models::LstmTagger small_tagger() {
  manual_seed(1);
  return models::LstmTagger({.vocab_size = 4, .num_tags = 4, .embedding_dim = 8, .hidden_size = 16});
}

TEST(LstmTagger, LearnsTheTokenThatFollows) {
  models::LstmTagger model = small_tagger();
  optim::AdamW optimizer(model.parameters(), {.lr = 2e-2});
  const Tensor tokens = randint(4, {16, 9});
  // The last token has none behind it.
  const Tensor followers = slice(tokens, 1, 1).reshape({-1});
  double loss_now = 0;
  for (int step = 0; step < 60; ++step) {
    const Tensor scores = slice(model(tokens), 1, 0, -1).reshape({-1, 4});
    const Tensor loss = cross_entropy_loss(scores, followers);
    loss_now = loss.item().to_double();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  EXPECT_LT(loss_now, 0.1);
}

TEST(LstmTagger, IsExportedForAnyBatch) {
  models::LstmTagger model = small_tagger();
  const Dim batch("batch", {.min = 1, .max = 8});
  const ExportOptions options{.dynamic_shapes = {{"tokens", {{0, batch}}}}};
  NoGrad no_grad;
  const GraphModule module = export_for_training(model, {randint(4, {3, 7})}, options).module();
  for (const int64_t rows : {1, 3, 8}) {
    const Tensor tokens = randint(4, {rows, 7});
    assert_close(module(tokens), model(tokens));
  }
  EXPECT_THROW(module(randint(4, {9, 7})), AssertionError);
  EXPECT_THROW(module(randint(4, {3, 8})), AssertionError);
}

}  // namespace
}  // namespace weft
