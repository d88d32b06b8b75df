// Random programs of views and in-place writes over shared memory: eager, functionalised, captured and both
// give the same values, gradients and sharing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/random_programs.h"
#include "support/sanitizers.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"

namespace weft {
namespace {

using testing::close;
using testing::RandomProgram;

std::vector<Tensor> make_inputs(uint64_t seed) {
  manual_seed(seed);
  return {randn({4, 6}, kFloat64), randn({4, 6}, kFloat64)};
}

// For every pair of tensors, whether they share memory.
std::vector<bool> sharing(const std::vector<Tensor>& tensors) {
  std::vector<bool> shares;
  for (const Tensor& a : tensors)
    for (const Tensor& b : tensors) shares.push_back(a.storage() == b.storage());
  return shares;
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_same(const std::vector<Tensor>& got, const std::vector<Tensor>& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(close(got[i], wanted[i], 1e-12, 1e-12)) << what << " " << i;
}

bool writes_in_place(const GraphModule& module) {
  for (const Node& node : module.graph())
    if (const Operator* op = node.target().op()) {
      bool is_final_write =
          op->name() == "aten::copy_" && node_in(node.args()[0])->kind() == NodeKind::kPlaceholder;
      if (op->info().is_mutable && !is_final_write) return true;
    }
  return false;
}

constexpr int kPrograms = testing::kSanitized ? 100 : 2000;

TEST(FunctionalizeProperty, RandomProgramsKeepValuesAndSharing) {
  for (uint64_t seed = 0; static_cast<int>(seed) < kPrograms && !::testing::Test::HasFailure(); ++seed) {
    RandomProgram program(seed, seed % 2 == 0);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.to_string()));
    std::vector<Tensor> eager_inputs = make_inputs(seed), own_inputs = make_inputs(seed),
                        graph_inputs = make_inputs(seed);
    std::vector<Tensor> eager = program(eager_inputs);
    auto functional = func::functionalize([&](const std::vector<Tensor>& inputs) { return program(inputs); });
    std::vector<Tensor> own = functional(own_inputs);
    expect_same(own, eager, "functionalised result");
    expect_same(own_inputs, eager_inputs, "functionalised input");
    EXPECT_EQ(sharing(joined(own, own_inputs)), sharing(joined(eager, eager_inputs)));
    GraphModule graph = make_graph(functional)(graph_inputs[0], graph_inputs[1]);
    EXPECT_FALSE(writes_in_place(graph)) << graph.code();
    std::vector<Tensor> again = make_inputs(seed);
    Value results = graph.call({again[0], again[1]});
    std::vector<Tensor> captured;
    for (const Value& result : results.elements()) captured.push_back(result.to_tensor());
    expect_same(captured, eager, "captured result");
    expect_same(again, eager_inputs, "captured input");
    EXPECT_EQ(sharing(joined(captured, again)), sharing(joined(eager, eager_inputs))) << graph.code();
  }
}

TEST(FunctionalizeProperty, RandomProgramsKeepGradients) {
  int compared = 0;
  for (uint64_t seed = 0; compared < kPrograms && !::testing::Test::HasFailure(); ++seed) {
    RandomProgram program(seed, false, true);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.to_string()));
    auto loss = [&](const std::vector<Tensor>& inputs) {
      Tensor total;
      double weight = 1;
      for (const Tensor& result : program(inputs)) {
        Tensor part = (result * result).sum() * (weight += 0.5);
        total = total.defined() ? total + part : part;
      }
      return std::vector<Tensor>{total};
    };
    std::vector<Tensor> inputs = make_inputs(seed);
    func::Fn plain = loss;
    std::vector<Tensor> wanted;
    try {
      wanted = func::grad_of(plain, {0, 1})(inputs);
    } catch (const Error& error) {
      // A program that writes over what its own derivative needs.
      ASSERT_THAT(error.what(), ::testing::HasSubstr("modified by an inplace operation"));
      continue;
    }
    ++compared;
    std::vector<Tensor> inside = func::grad_of(func::functionalize_of(plain).fn(), {0, 1})(inputs);
    std::vector<Tensor> outside = func::functionalize_of(func::grad_of(plain, {0, 1}).fn())(inputs);
    expect_same(inside, wanted, "gradient of the functionalised program");
    expect_same(outside, wanted, "functionalised gradient");
    GraphModule graph =
        make_graph(func::functionalize_of(func::grad_of(plain, {0, 1}).fn()))(inputs[0], inputs[1]);
    EXPECT_FALSE(writes_in_place(graph)) << graph.code();
    std::vector<Tensor> other = make_inputs(seed + 1);
    Value captured = graph.call({other[0], other[1]});
    std::vector<Tensor> eager = func::grad_of(plain, {0, 1})(other);
    expect_same({captured.elements()[0].to_tensor(), captured.elements()[1].to_tensor()}, eager,
                "captured gradient");
  }
  EXPECT_EQ(compared, kPrograms);
}

}  // namespace
}  // namespace weft
