// Calls of graphs, replaced by what the graphs do.
#include "weft/passes/inline_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/capture/inlining.h"
#include "weft/capture/trace.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::expect_equal;

size_t calls_in(const GraphModule& module) {
  size_t calls = 0;
  for (const Node& node : module.graph())
    calls += node.kind() == NodeKind::kCallModule || node.target().to_string() == "weft.call";
  return calls;
}

TEST(InlineCalls, OfFunctionsThatCallOthers) {
  Tensor offset = ones({3}), x = randn({3});
  NoInlineScope keep_calls;
  TracedFunction inner = trace([&](const Tensor& t) { return t * 2 + offset; }, x, {.name = "inner"});
  TracedFunction outer = trace([&](const Tensor& t) { return inner(inner(t)).sin(); }, x, {.name = "outer"});
  GraphModule module = trace([&](const Tensor& t) { return outer(t) + inner(t); }, x).graph_module();
  Tensor wanted = module(x);
  EXPECT_EQ(calls_in(module), 2u);
  EXPECT_TRUE(inline_calls(module));
  EXPECT_EQ(calls_in(module), 0u);
  module.graph().lint();
  expect_equal(module(x), wanted);
  EXPECT_FALSE(inline_calls(module));
}

struct Around : nn::Module {
  TracedModule fc = child("fc", trace(nn::Linear(3, 3), randn({2, 3})));
  Tensor forward(const Tensor& x) { return fc(fc(x)).relu(); }
  WEFT_ARGS(x)
};

TEST(InlineCalls, OfModulesWhoseTensorsHavePathsThen) {
  Tensor x = randn({2, 3});
  NoInlineScope keep_calls;
  GraphModule module = trace(Around(), x).forward_method().graph_module();
  Tensor wanted = module(x);
  EXPECT_EQ(calls_in(module), 2u);
  std::vector<std::string> inlined;
  inline_calls(module, [&](const Node& call, Node&) { inlined.push_back(call.name()); });
  EXPECT_EQ(calls_in(module), 0u);
  EXPECT_FALSE(inlined.empty());
  std::vector<std::string> reads;
  for (const Node& node : module.graph())
    if (node.kind() == NodeKind::kGetAttr) reads.push_back(node.target().to_string());
  EXPECT_THAT(reads, ::testing::IsSupersetOf({"fc.weight", "fc.bias"}));
  expect_equal(module(x), wanted);
}

TEST(InlineCalls, OfSeveralResultsAndOfNothing) {
  Tensor x = randn({3});
  NoInlineScope keep_calls;
  TracedFunction both =
      trace([](const Tensor& t) { return std::tuple(t.sin(), t.cos()); }, x, {.name = "both"});
  TracedFunction same = trace([](const Tensor& t) { return t; }, x, {.name = "same"});
  auto f = [&](const Tensor& t) {
    auto [a, b] = from_value<std::tuple<Tensor, Tensor>>(both.call({same(t)}));
    return a - b;
  };
  GraphModule module = trace(f, x).graph_module();
  EXPECT_TRUE(inline_calls(module));
  EXPECT_EQ(calls_in(module), 0u);
  expect_equal(module(x), x.sin() - x.cos());
}

}  // namespace
}  // namespace weft
