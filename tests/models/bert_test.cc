// BERT: names of the state dict, sizes, a mask that hides padding; exported for any batch and length.
#include "weft/models/bert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/autograd/autograd.h"
#include "weft/export/export_program.h"
#include "weft/ops/close.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using ::testing::Contains;

models::Bert small_bert() {
  models::Bert model({.vocab_size = 50,
                      .max_position_embeddings = 16,
                      .hidden_size = 16,
                      .intermediate_size = 32,
                      .num_hidden_layers = 2,
                      .num_attention_heads = 4});
  model.eval();
  return model;
}
Tensor tokens_of(SymIntSpan sizes) { return randint(50, sizes); }

TEST(Bert, HasTheNamesOfHuggingFace) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : small_bert().state_dict()) names.push_back(name);
  for (const char* name :
       {"embeddings.word_embeddings.weight", "embeddings.LayerNorm.bias",
        "encoder.layer.1.attention.self.query.weight", "encoder.layer.0.attention.output.dense.bias",
        "encoder.layer.0.attention.output.LayerNorm.weight", "encoder.layer.1.intermediate.dense.weight",
        "encoder.layer.1.output.LayerNorm.bias", "pooler.dense.weight"})
    EXPECT_THAT(names, Contains(name));
  EXPECT_EQ(names.size(), 5u + 2 * 16 + 2);
}

TEST(Bert, PaddingChangesNothing) {
  NoGrad no_grad;
  models::Bert model = small_bert();
  const Tensor tokens = tokens_of({2, 5});
  const auto [short_one, summary] = model(tokens, ones({2, 5}));
  const Tensor padded = cat({tokens, zeros({2, 3}, kInt64)}, 1), mask = cat({ones({2, 5}), zeros({2, 3})}, 1);
  const auto [long_one, same_summary] = model(padded, mask);
  EXPECT_EQ(describe(long_one).str(), "f32[2, 8, 16]");
  assert_close(slice(long_one, 1, 0, 5), short_one);
  assert_close(same_summary, summary);
}

TEST(Bert, IsExportedForAnyBatchAndLength) {
  NoGrad no_grad;
  models::Bert model = small_bert();
  const Dim batch("batch", {.min = 1, .max = 8}), length("length", {.min = 2, .max = 16});
  const ShapeSpec both = {{0, batch}, {1, length}};
  const DynamicShapes shapes = {{"input_ids", both}, {"attention_mask", both}};
  const ValueList example = {tokens_of({3, 7}), ones({3, 7})};
  for (const ExportedProgram& program : {export_for_training(model, example, {.dynamic_shapes = shapes}),
                                         export_program(model, example, {.dynamic_shapes = shapes})}) {
    const GraphModule module = program.module();
    for (const auto& [rows, columns] : {std::pair{1, 2}, {3, 7}, {8, 16}}) {
      const Tensor tokens = tokens_of({rows, columns}), mask = ones({rows, columns});
      const auto [features, summary] = model(tokens, mask);
      const ValueList results = tree_leaves(module.call({tokens, mask}));
      assert_close(results[0].to_tensor(), features);
      assert_close(results[1].to_tensor(), summary);
    }
    EXPECT_THROW(module.call({tokens_of({9, 7}), ones({9, 7})}), AssertionError);
  }
}

}  // namespace
}  // namespace weft
