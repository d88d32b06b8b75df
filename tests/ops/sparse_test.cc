// Sparse gradients: what they are, what they add up to, and where tables get them.
#include "weft/ops/sparse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"

namespace weft {
namespace {

using testing::close;
using testing::expect_equal;
using testing::ramp;

Tensor numbers(const std::vector<int64_t>& values) { return from_data(values); }
// Rows 1, 3 and 1 of a table of four rows.
Tensor three_rows() {
  return sparse_tensor(numbers({1, 3, 1}).unsqueeze(0), ramp({3, 2}), SymInts{SymInt(4), SymInt(2)});
}

TEST(SparseTensor, HasRowsAtItsIndices) {
  Tensor sparse = three_rows();
  EXPECT_TRUE(is_sparse(sparse));
  EXPECT_FALSE(is_sparse(ramp({2})));
  EXPECT_EQ(layout_of(sparse), "sparse_coo");
  EXPECT_EQ(sparse.size(0), 4);
  EXPECT_EQ(sparse.size(1), 2);
  EXPECT_EQ(sparse.dtype(), kFloat64);
  Tensor rows = ramp({3, 2}), dense = zeros({4, 2}, kFloat64);
  dense[1].copy_(rows[0] + rows[2]);
  dense[3].copy_(rows[1]);
  expect_equal(to_dense(sparse), dense);
  expect_equal(dense_form(sparse), dense);
  expect_equal(to_dense(dense), dense);
}

TEST(SparseTensor, CoalescedHasEachIndexOnceInOrder) {
  Tensor sparse = coalesce(three_rows());
  expect_equal(sparse_indices(sparse), numbers({1, 3}).unsqueeze(0));
  Tensor rows = ramp({3, 2});
  expect_equal(sparse_values(sparse), stack({rows[0] + rows[2], rows[1]}));
  expect_equal(to_dense(sparse), to_dense(three_rows()));
}

TEST(SparseTensor, AddsUp) {
  Tensor sparse = three_rows(), dense = ramp({4, 2}, -1, 1), plain = to_dense(sparse);
  Tensor both = sparse + sparse;
  EXPECT_TRUE(is_sparse(both));
  expect_equal(to_dense(both), plain + plain);
  expect_equal(to_dense(sub(sparse, sparse, 0.5)), plain * 0.5);
  for (const Tensor& sum : {sparse + dense, dense + sparse}) {
    EXPECT_FALSE(is_sparse(sum));
    expect_equal(sum, plain + dense);
  }
  expect_equal(add(dense, sparse, -2), dense - 2 * plain);
  Tensor target = dense.clone();
  EXPECT_TRUE(target.add_(sparse, 3).is_same(target));
  expect_equal(target, dense + 3 * plain);
  target.copy_(sparse);
  expect_equal(target, plain);
}

TEST(SparseTensor, TakesFactorsCopiesAndConversions) {
  Tensor sparse = three_rows(), plain = to_dense(sparse), mask = ramp({4, 2}, 0, 1);
  EXPECT_TRUE(is_sparse(sparse * 2.0));
  EXPECT_TRUE(close(to_dense(sparse * 2.0), plain * 2.0, 1e-6, 1e-6));
  EXPECT_TRUE(close(to_dense(sparse / 4), plain / 4, 1e-6, 1e-6));
  expect_equal(to_dense(-sparse), -plain);
  EXPECT_TRUE(close(to_dense(sparse * full({}, 3, kFloat64)), plain * 3, 1e-6, 1e-6));
  EXPECT_TRUE(close(to_dense(mask * sparse), plain * mask, 1e-6, 1e-6));
  Tensor copy = sparse.clone();
  EXPECT_TRUE(is_sparse(copy));
  EXPECT_FALSE(sparse_values(copy).is_same(sparse_values(sparse)));
  EXPECT_EQ(sparse.to(kFloat32).dtype(), kFloat32);
  EXPECT_TRUE(close(to_dense(sparse.to(kFloat32)), plain.to(kFloat32), 1e-6, 1e-6));
}

TEST(SparseTensor, RefusesWhatItDoesNotKnow) {
  EXPECT_ERROR(three_rows().sin(), "sparse tensors do not support it; take the dense form, to_dense(tensor)");
  EXPECT_ERROR(three_rows() + ramp({3, 2}), "expected tensors of the same sizes");
  EXPECT_ERROR(sparse_values(ramp({2})), "expected a sparse tensor, but got f64[2]");
  EXPECT_ERROR(sparse_tensor(numbers({1}), ramp({1, 2}), SymInts{SymInt(4), SymInt(2)}),
               "int64 indices of [dims, count]");
  EXPECT_ERROR(sparse_tensor(numbers({1, 2}).unsqueeze(0), ramp({3, 2}), SymInts{SymInt(4), SymInt(2)}),
               "expected a value for each index");
  EXPECT_ERROR(sparse_tensor(numbers({1}).unsqueeze(0), ramp({1, 3}), SymInts{SymInt(4), SymInt(2)}),
               "do not fit the sizes");
}

// --- gradients -------------------------------------------------------------------------------------------

TEST(SparseGradients, AreThoseOfTheRowsThatWereLookedUp) {
  nn::Embedding table(5, 3, {.padding_idx = 0, .sparse = true}), dense(5, 3, {.padding_idx = 0});
  {
    NoGrad no_grad;
    dense.weight.copy_(table.weight);
  }
  Tensor indices = numbers({2, 0, 2, 4});
  Tensor factors = ramp({4, 3}).to(kFloat32);
  for (nn::Embedding* one : {&table, &dense}) ((*one)(indices)*factors).sum().backward();
  Tensor grad = table.weight.grad();
  ASSERT_TRUE(is_sparse(grad));
  expect_equal(sparse_indices(grad), numbers({2, 2, 4}).unsqueeze(0));
  EXPECT_TRUE(close(to_dense(grad), dense.weight.grad(), 1e-6, 1e-6));
  // A second backward pass adds to them.
  (table(indices) * factors).sum().backward();
  ASSERT_TRUE(is_sparse(table.weight.grad()));
  EXPECT_TRUE(close(to_dense(table.weight.grad()), 2 * dense.weight.grad(), 1e-6, 1e-6));
  // Beside a dense one they are dense.
  table.weight.sum().backward();
  EXPECT_FALSE(is_sparse(table.weight.grad()));
  EXPECT_TRUE(close(table.weight.grad(), 2 * dense.weight.grad() + 1, 1e-6, 1e-6));
}

TEST(SparseGradients, ComeOfSeveralUsesInOneBackwardPass) {
  nn::Embedding table(4, 2, {.sparse = true});
  Tensor a = numbers({1, 2}), b = numbers({2, 3});
  (table(a).sum() + 2 * table(b).sum()).backward();
  ASSERT_TRUE(is_sparse(table.weight.grad()));
  expect_equal(to_dense(table.weight.grad()),
               numbers({0, 1, 3, 2}).to(kFloat32).unsqueeze(1).expand({4, 2}).contiguous());
}

TEST(SparseGradients, CountHowOftenARowWasLookedUp) {
  Tensor weight = ramp({4, 2}).set_requires_grad(), other = ramp({4, 2}).set_requires_grad();
  Tensor indices = numbers({1, 1, 3});
  embedding(weight, indices, -1, true, true).sum().backward();
  embedding(other, indices, -1, true, false).sum().backward();
  EXPECT_TRUE(close(to_dense(weight.grad()), other.grad(), 1e-6, 1e-6));
}

TEST(SparseGradients, AreDenseWhereTheyAreRecordedOrTransformed) {
  Tensor weight = ramp({4, 2}).set_requires_grad();
  Tensor indices = numbers({1, 3});
  Tensor out = (embedding(weight, indices, -1, false, true) * 2).sum();
  Tensor grad = autograd::grad({out}, {weight}, {}, {.create_graph = true})[0];
  EXPECT_FALSE(is_sparse(grad));
  auto f = [&](const Tensor& table) { return embedding(table, indices, -1, false, true).sum(); };
  GraphModule graph = make_graph(func::grad(f))(ramp({4, 2}));
  EXPECT_THAT(graph.code(), ::testing::HasSubstr("embedding_dense_backward"));
}

TEST(SparseGradients, OfBagsAreThoseOfTheirRows) {
  for (auto mode : {nn::functional::BagMode::kSum, nn::functional::BagMode::kMean}) {
    nn::EmbeddingBag sparse(5, 3, {.mode = mode, .sparse = true}), dense(5, 3, {.mode = mode});
    {
      NoGrad no_grad;
      dense.weight.copy_(sparse.weight);
    }
    Tensor indices = numbers({2, 0, 2, 4}), offsets = numbers({0, 3});
    for (nn::EmbeddingBag* one : {&sparse, &dense})
      ((*one)(indices, offsets) * ramp({2, 3}).to(kFloat32)).sum().backward();
    ASSERT_TRUE(is_sparse(sparse.weight.grad()));
    EXPECT_TRUE(close(to_dense(sparse.weight.grad()), dense.weight.grad(), 1e-6, 1e-6));
  }
}

TEST(SparseGradients, MoveParametersUnderSgdAndAreRefusedByOthers) {
  nn::Embedding table(4, 2, {.sparse = true});
  Tensor before = table.weight.detach().clone();
  table(numbers({1, 1, 3})).sum().backward();
  optim::SGD sgd(table.parameters(), {.lr = 0.5});
  sgd.step();
  Tensor moved = numbers({0, 2, 0, 1}).to(kFloat32).unsqueeze(1).expand({4, 2}).contiguous();
  expect_equal(table.weight.detach(), before - 0.5 * moved);
  optim::Adam adam(table.parameters(), {.lr = 0.5});
  EXPECT_ERROR(adam.step(), "sparse tensors do not support it");
}

}  // namespace
}  // namespace weft
