// Nodes that compute the same become one.
#include "weft/passes/merge_nodes.h"

#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"

namespace weft {
namespace {

bool merge(GraphModule& module) {
  return merge_common_subexpressions(module, [](const Node&) { return false; });
}

// The code of `text` after the pass; empty where the pass found nothing to do.
std::string merged(const char* text) {
  GraphModule module(parse_code(text));
  bool changed = merge(module);
  module.graph().lint();
  return changed ? module.graph().code() : "";
}

std::string code_of(const char* text) { return parse_code(text).code(); }

TEST(MergeCommonSubexpressions, MergesWhatDoesTheSame) {
  EXPECT_EQ(merged(R"(
def forward(self, x, y):
    mul = torch.ops.aten.mul.Tensor(x, y)
    tanh = torch.ops.aten.tanh.default(mul)
    mul_1 = torch.ops.aten.mul.Tensor(x, y)
    tanh_1 = torch.ops.aten.tanh.default(mul_1)
    add = torch.ops.aten.add.Tensor(tanh, tanh_1)
    return add
)"),
            code_of(R"(
def forward(self, x, y):
    mul = torch.ops.aten.mul.Tensor(x, y)
    tanh = torch.ops.aten.tanh.default(mul)
    add = torch.ops.aten.add.Tensor(tanh, tanh)
    return add
)"));
}

// Each text has two calls that look alike and must stay two.
TEST(MergeCommonSubexpressions, LeavesAloneWhatDiffers) {
  for (const char* text : {
           // other arguments: order, sign of zero, kind of number, keywords
           "def forward(self, x, y):\n    a = torch.ops.aten.sub.Tensor(x, y)\n"
           "    b = torch.ops.aten.sub.Tensor(y, x)\n    c = torch.ops.aten.mul.Tensor(a, b)\n    return c\n",
           "def forward(self, x):\n    a = torch.ops.aten.div.Tensor(x, 0.0)\n"
           "    b = torch.ops.aten.div.Tensor(x, -0.0)\n    c = torch.ops.aten.mul.Tensor(a, b)\n    return "
           "c\n",
           "def forward(self, x):\n    a = torch.ops.aten.mul.Tensor(x, 1)\n"
           "    b = torch.ops.aten.mul.Tensor(x, 1.0)\n    c = torch.ops.aten.mul.Tensor(a, b)\n    return "
           "c\n",
           "def forward(self, x, y):\n    a = torch.ops.aten.add.Tensor(x, y, alpha = 2)\n"
           "    b = torch.ops.aten.add.Tensor(x, y, alpha = 3)\n"
           "    c = torch.ops.aten.mul.Tensor(a, b)\n    return c\n",
           // random numbers
           "def forward(self, x):\n    a = torch.ops.aten.rand_like.default(x)\n"
           "    b = torch.ops.aten.rand_like.default(x)\n    c = torch.ops.aten.mul.Tensor(a, b)\n    return "
           "c\n",
           // both leave the graph, as themselves or as views
           "def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n"
           "    b = torch.ops.aten.exp.default(x)\n    return (a, b)\n",
           "def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n"
           "    b = torch.ops.aten.exp.default(x)\n    c = torch.ops.aten.t.default(b)\n    return (a, c)\n",
           // something writes
           "def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n"
           "    add_ = torch.ops.aten.add_.Tensor(x, 1)\n    b = torch.ops.aten.exp.default(x)\n"
           "    c = torch.ops.aten.mul.Tensor(a, b)\n    return c\n",
       }) {
    EXPECT_EQ(merged(text), "") << text;
  }
}

TEST(MergeCommonSubexpressions, WhatLeavesStaysByItself) {
  EXPECT_EQ(merged("def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n"
                   "    b = torch.ops.aten.exp.default(x)\n    c = torch.ops.aten.sin.default(b)\n"
                   "    d = torch.ops.aten.exp.default(x)\n    e = torch.ops.aten.exp.default(x)\n"
                   "    f = torch.ops.aten.cos.default(e)\n    return (a, c, d, f)\n"),
            code_of("def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n"
                    "    b = torch.ops.aten.exp.default(x)\n    c = torch.ops.aten.sin.default(b)\n"
                    "    d = torch.ops.aten.exp.default(x)\n    f = torch.ops.aten.cos.default(b)\n"
                    "    return (a, c, d, f)\n"));
}

TEST(MergeCommonSubexpressions, LeavesAloneWhatItIsTold) {
  GraphModule module(parse_code(
      "def forward(self, x):\n    a = torch.ops.aten.exp.default(x)\n    b = torch.ops.aten.exp.default(x)\n"
      "    c = torch.ops.aten.mul.Tensor(a, b)\n    return c\n"));
  EXPECT_FALSE(merge_common_subexpressions(module, [](const Node& node) { return node.name() == "b"; }));
  EXPECT_TRUE(merge(module));
  EXPECT_FALSE(merge(module));
}

TEST(MergeAttributeReads, GoesByWhatIsRead) {
  Tensor shared = testing::ramp({3});
  GraphModule module({{"a", shared}, {"b", shared}, {"c", shared.clone()}},
                     parse_code("def forward(self, x):\n    a = self.a\n    a_1 = self.a\n    b = self.b\n"
                                "    c = self.c\n    mul = torch.ops.aten.mul.Tensor(a, a_1)\n"
                                "    mul_1 = torch.ops.aten.mul.Tensor(b, c)\n"
                                "    add = torch.ops.aten.add.Tensor(mul, mul_1)\n    return add\n"));
  Tensor before = module(shared);
  EXPECT_TRUE(merge_attribute_reads(module));
  EXPECT_FALSE(merge_attribute_reads(module));
  size_t reads = 0;
  for (const Node& node : module.graph()) reads += node.kind() == NodeKind::kGetAttr;
  EXPECT_EQ(reads, 2u);
  testing::expect_equal(module(shared), before);
}

}  // namespace
}  // namespace weft
