// Patterns replaced in graph modules: what the replacement names comes along, what is not named any more
// goes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/parse.h"
#include "weft/graph/pattern.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using testing::expect_equal;
using ::testing::IsEmpty;

Graph code(std::string_view parameters, std::initializer_list<std::string_view> lines) {
  std::string text = fmt::format("def forward(self, {}):\n", parameters);
  for (std::string_view line : lines) text += fmt::format("    {}\n", line);
  return parse_code(text);
}

std::vector<std::string> names_of(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& entry : tensors) names.push_back(entry.first);
  return names;
}

GraphModule twice_negated() {
  return GraphModule(code("x", {"neg = -x", "neg_1 = -neg", "add = neg_1 + x", "return add"}));
}
Graph twice() { return code("x", {"a = -x", "b = -a", "return b"}); }

TEST(ReplaceInModule, CopiesTheTensorsThatTheReplacementNames) {
  GraphModule module = twice_negated();
  const Tensor weight = full({2}, 3.0).set_requires_grad(), offset = full({2}, 4.0);
  GraphModule replacement(
      {{"w", weight}, {"deep.offset", offset}, {"unused", ones({2})}},
      code("x", {"w = self.w", "m = x * w", "o = self.deep.offset", "s = m + o", "return s"}));
  EXPECT_EQ(replace_pattern(module, twice(), replacement).size(), 1u);
  EXPECT_EQ(module.code(),
            "\n\n\ndef forward(self, x):\n"
            "    w = self.w\n"
            "    m = x * w;  w = None\n"
            "    o = self.deep.offset\n"
            "    s = m + o;  m = o = None\n"
            "    add = s + x;  s = x = None\n"
            "    return add\n    ");
  EXPECT_THAT(names_of(module.named_parameters()), ElementsAre("w"));
  EXPECT_THAT(names_of(module.named_buffers()), ElementsAre("deep.offset"));
  expect_equal(module(full({2}, 5.0)), full({2}, 24.0));
  // They are copies, as in PyTorch: what happens to the replacement is none of the module's business.
  EXPECT_TRUE(module.find("w").to_tensor().requires_grad());
  weight.detach().zero_();
  offset.zero_();
  expect_equal(module(full({2}, 5.0)), full({2}, 24.0));
}

TEST(ReplaceInModule, TensorsThatAreOneStayOne) {
  GraphModule module = twice_negated();
  const Tensor weight = full({4}, 3);
  GraphModule replacement({{"w", weight}, {"again", weight}, {"half", weight.slice(0, 0, 1)}},
                          code("x", {"w = self.w", "a = self.again", "h = self.half", "m = x * w",
                                     "n = m * a", "o = n * h", "return o"}));
  replace_pattern(module, twice(), replacement);
  const Tensor w = module.find("w").to_tensor();
  EXPECT_FALSE(w.is_same(weight));
  EXPECT_TRUE(w.is_same(module.find("again").to_tensor()));
  EXPECT_EQ(w.storage(), module.find("half").to_tensor().storage());
}

TEST(ReplaceInModule, BringsModulesAlong) {
  GraphModule module = twice_negated();
  struct Owner : nn::Module {
    nn::Linear fc = child("fc", nn::Linear(2, 2));
  } owner;
  GraphModule replacement(owner, code("x", {"fc = self.fc(x)", "return fc"}));
  replace_pattern(module, twice(), replacement);
  const Tensor x = randn({3, 2});
  expect_equal(module(x), owner.fc(x) + x);
  EXPECT_THAT(names_of(module.named_parameters()), ElementsAre("fc.weight", "fc.bias"));
  // Its code has its own tensors, so that it is the layer itself.
  EXPECT_TRUE(module.find("fc.weight").to_tensor().is_same(owner.fc.weight));

  GraphModule inner({{"w", full({2}, 2)}}, code("x", {"w = self.w", "m = x * w", "return m"}));
  GraphModule with_graph({{"sub.inner", Ref<ValueObject>(inner.callable())}},
                         code("x", {"s = self.sub.inner(x)", "return s"}));
  GraphModule other = twice_negated();
  replace_pattern(other, twice(), with_graph);
  inner.find("w").to_tensor().zero_();
  expect_equal(other(ones({2})), full({2}, 3.0));  // a graph is copied with its tensors
  EXPECT_THAT(names_of(other.named_buffers()), ElementsAre("sub.inner.w"));
}

TEST(ReplaceInModule, WhatTheModuleHasByThatPathCounts) {
  GraphModule module({{"w", full({2}, 10)}},
                     code("x", {"w = self.w", "mul = x * w", "neg = -mul", "return neg"}));
  GraphModule replacement({{"w", full({2}, 3)}}, code("x", {"w = self.w", "a = x + w", "return a"}));
  replace_pattern(module, code("x", {"a = -x", "return a"}), replacement);
  expect_equal(module(ones({2})), full({2}, 20.0));
}

TEST(ReplaceInModule, DropsWhatIsNotNamedAnyMore) {
  struct Net : nn::Module {
    nn::Linear first = child("first", nn::Linear(2, 2));
    nn::Linear second = child("second", nn::Linear(2, 2));
    Tensor scale = parameter("scale", ones({2}));
  } net;
  GraphModule module(net, code("x", {"first = self.first(x)", "second = self.second(first)",
                                     "scale = self.scale", "mul = second * scale", "return mul"}));
  replace_pattern(module, code("x", {"a = self.second(x)", "s = self.scale", "m = a * s", "return m"}),
                  GraphModule(code("x", {"n = -x", "return n"})));
  EXPECT_THAT(names_of(module.named_parameters()), ElementsAre("first.weight", "first.bias"));
  EXPECT_THAT(module.child_names(), ElementsAre("first"));
  const Tensor x = randn({3, 2});
  expect_equal(module(x), -net.first(x));
  // The weights of a layer without its call: the layer itself, which is the net's, stays whole.
  replace_pattern(module, code("x", {"a = self.first(x)", "return a"}),
                  GraphModule(code("x", {"w = self.first.weight", "m = torch.ops.aten.matmul.default(x, w)", "return m"})));
  EXPECT_EQ(net.first.named_parameters().size(), 2u);
  expect_equal(module(x), -matmul(x, net.first.weight));
  EXPECT_THAT(names_of(net.named_parameters()),
              ElementsAre("scale", "first.weight", "first.bias", "second.weight", "second.bias"));
}

TEST(ReplaceInModule, TakesNothingFromAnOwner) {
  struct Net : nn::Module {
    Tensor scale = parameter("scale", ones({2}));
    Tensor other = parameter("other", ones({2}));
  } net;
  GraphModule module =
      GraphModule::over(net, GraphModule(net, code("x", {"s = self.scale", "m = x * s", "return m"})));
  EXPECT_FALSE(module.owns_attributes());
  replace_pattern(module, code("x", {"s = self.scale", "m = x * s", "return m"}),
                  GraphModule(code("x", {"n = -x", "return n"})));
  EXPECT_THAT(names_of(net.named_parameters()), ElementsAre("scale", "other"));
}

TEST(ReplaceInModule, APathThatLeadsNowhereChangesNothing) {
  GraphModule module = twice_negated();
  const std::string before = module.code();
  GraphModule replacement(code("x", {"w = self.deep.w", "m = x * w", "return m"}));
  EXPECT_ERROR(replace_pattern(module, twice(), replacement),
               "the replacement's get_attr 'w' names 'deep.w', which neither the replacement nor the module "
               "has; give it to one of them (set_attribute)");
  EXPECT_EQ(module.code(), before);
  EXPECT_THAT(names_of(module.named_buffers()), IsEmpty());
}

}  // namespace
}  // namespace weft
