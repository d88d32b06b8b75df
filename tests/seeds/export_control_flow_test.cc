// The rows of TestExport about branches and loops: what they close over, their graphs, regions of another
// grad mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_texts.h"
#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/core/from_data.h"
#include "weft/func/control_flow.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using testing::code_text;
using ::testing::ElementsAre;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

// The graph modules at and below this one, parents first.
void add_graphs_below(const GraphModule& module, std::vector<GraphModule>& found) {
  found.push_back(module);
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr) continue;
    if (std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string())))
      add_graphs_below(*inner, found);
  }
}
std::vector<GraphModule> graphs_of(const GraphModule& module) {
  std::vector<GraphModule> found;
  add_graphs_below(module, found);
  return found;
}
GraphModule graph_at(const GraphModule& module, std::string_view path) {
  return *graph_module_in(module.find(path));
}

struct BufferCosine : nn::Module {
  Tensor own = buffer("buffer", ones({6, 4}));
  Tensor forward() { return own.cos(); }
  WEFT_ARGS()
};
struct BranchesOnSize : nn::Module {
  BufferCosine a = child("a", BufferCosine());
  Tensor forward(const Tensor& x) {
    auto on_true = [this](const Tensor& x) { return x.cos() + a().sum(); };
    auto on_false = [](const Tensor& x) { return x.sin(); };
    return func::cond(x.size(0) > 4, on_true, on_false, x);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_cond) {
  for_each_variant([](const Exporter& exports) {
    const BranchesOnSize module;
    const Tensor x = ones({6, 4});
    EXPECT_TRUE(close(only_tensor(exports(module, {x}).module().call({x})), module(x)));
  });
}

struct BranchesWithState : nn::Module {
  Tensor param = parameter("param", ones({2, 3})), own = buffer("buffer", ones({2, 3}) + 1);
  BranchesWithState() { requires_grad(false); }
  Tensor true_fn(const Tensor& x) { return x + param; }
  Tensor false_fn(const Tensor& x) { return x + own; }
  Tensor forward(const Tensor& x) {
    return func::cond(
        x.size(0) == 4, [this](const Tensor& x) { return true_fn(x); },
        [this](const Tensor& x) { return false_fn(x); }, x);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_cond_buffers) {
  for_each_variant([](const Exporter& exports) {
    const BranchesWithState module;
    const GraphModule callable = exports(module, {ones({2, 3})}).module();
    const Tensor x = randn({2, 3});
    EXPECT_TRUE(close(only_tensor(callable.call({x})), module(x)));
    EXPECT_EQ(callable.graph().placeholders().size(), 1u);
  });
}

struct MapsSum : nn::Module {
  Tensor forward(const Tensor& xs, const Tensor& y, const Tensor& z) {
    return func::map([](const Tensor& x, const Tensor& y, const Tensor& z) { return x + y + z; }, xs, y, z);
  }
  WEFT_ARGS(xs, y, z)
};

TEST(TestExport, test_map) {
  for_each_variant([](const Exporter& exports) {
    const Tensor xs = ones({6, 4}), y = from_data<int64_t>({5}, {}), z = from_data<int64_t>({4}, {});
    const ExportedProgram program = exports(MapsSum(), {xs, y, z});
    EXPECT_EQ(graphs_of(program.graph_module()).size(), 2u);
    EXPECT_TRUE(close(only_tensor(program.module().call({xs, y, z})), MapsSum()(xs, y, z)));
  });
}

struct ForeignState : nn::Module {
  Tensor param = parameter("param", from_data<float>({5}, {})),
         own = buffer("buffer", from_data<float>({6}, {}) + 1);
};
struct MapsWithForeignState : nn::Module {
  ForeignState m1;  // no child: what it has are constants of the program
  Tensor forward(const Tensor& xs, const Tensor& y) {
    auto body = [this](const Tensor& x, const Tensor& y) {
      Tensor z = x + y + m1.param + m1.own;
      z.add_(4);
      return z;
    };
    return func::map(body, xs, y);
  }
  WEFT_ARGS(xs, y)
};

TEST(TestExport, test_map_buffers) {
  for_each_variant([](const Exporter& exports) {
    const MapsWithForeignState module;
    const Tensor xs = ones({3, 2}), y = from_data<int64_t>({3}, {});
    const GraphModule callable = exports(module, {xs, y}).module();
    EXPECT_TRUE(close(only_tensor(callable.call({xs, y})), module(xs, y)));
    EXPECT_EQ(callable.graph().placeholders().size(), 2u);
  });
}

struct LinearBranches : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) {
    return func::cond(
        x.size(0) > 4, [this](const Tensor& x) { return linear(x).cos(); },
        [this](const Tensor& x) { return linear(x).sin(); }, x);
  }
  WEFT_ARGS(x)
};
struct AroundBranches : nn::Module {
  LinearBranches bar = child("bar", LinearBranches());
  Tensor forward(const Tensor& x) {
    const Tensor cosine = x.cos();
    return cosine + bar(x);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_cond_with_module_stack_export_with) {
  for_each_variant([](const Exporter& exports) {
    const AroundBranches module;
    const Tensor x = randn({4, 4});
    const ExportedProgram program = exports(module, {x});
    EXPECT_EQ(code_text(program.graph_module()),
              R"(def forward(self, p_bar_linear_weight, p_bar_linear_bias, x):
    cos = torch.ops.aten.cos.default(x)
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    conditional = torch.ops.higher_order.cond(False, true_graph_0, false_graph_0, [p_bar_linear_bias, p_bar_linear_weight, x]);  true_graph_0 = false_graph_0 = p_bar_linear_bias = p_bar_linear_weight = x = None
    getitem = conditional[0];  conditional = None
    add = torch.ops.aten.add.Tensor(cos, getitem);  cos = getitem = None
    return (add,))");
    const Node* branch = program.graph().find("true_graph_0");
    ASSERT_NE(branch, nullptr);
    ASSERT_NE(branch->meta_or_null(), nullptr);
    ASSERT_FALSE(branch->meta_or_null()->modules.empty());
    EXPECT_EQ(branch->meta_or_null()->modules.back().class_name, "LinearBranches");
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x), 1e-6, 1e-6));
  });
}

struct BranchesOfGradModes : nn::Module {
  Tensor pred = buffer("pred", from_data<bool>({false}, {})), t = buffer("t", from_data<int64_t>({10}, {}));
  Tensor forward(const Tensor& x, const Tensor& y) {
    auto on_true = [this](const Tensor& x, const Tensor& y) {
      const EnableGrad grad;
      return x - 1 + t + y;
    };
    return func::cond(
        pred, on_true, [this](const Tensor& x, const Tensor& y) { return x + 1 - t + y; }, x, y);
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_predispatch_cond) {
  const NoGrad no_grad;
  const BranchesOfGradModes module;
  const Tensor x = from_data<int64_t>({10}, {}), y = from_data<int64_t>({12}, {});
  for_each_variant([&](const Exporter& exports) {
    const ExportedProgram program = exports(module, {x, y});
    EXPECT_EQ(code_text(program.graph_module()), R"(def forward(self, b_pred, b_t, x, y):
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    conditional = torch.ops.higher_order.cond(b_pred, true_graph_0, false_graph_0, [b_t, x, y]);  b_pred = true_graph_0 = false_graph_0 = b_t = x = y = None
    getitem = conditional[0];  conditional = None
    return (getitem,))");
    EXPECT_TRUE(close(only_tensor(program.module().call({x, y})), module(x, y)));
    if (exports.is_decomposed()) return;  // decompositions are of what runs below autograd
    const GraphModule branch = graph_at(program.graph_module(), "true_graph_0");
    EXPECT_EQ(code_text(branch), R"(def forward(self, b_t, x, y):
    submod_1 = self.submod_1
    wrap_with_set_grad_enabled = torch.ops.higher_order.wrap_with_set_grad_enabled(True, submod_1, x, b_t, y);  submod_1 = x = b_t = y = None
    return (wrap_with_set_grad_enabled,))");
    EXPECT_EQ(code_text(graph_at(branch, "submod_1")), R"(def forward(self, x, b_t, y):
    sub = torch.ops.aten.sub.Tensor(x, 1);  x = None
    add = torch.ops.aten.add.Tensor(sub, b_t);  sub = b_t = None
    add_1 = torch.ops.aten.add.Tensor(add, y);  add = y = None
    return add_1)");
  });
}

struct TwoGradModes : nn::Module {
  Tensor forward(Tensor x, const Tensor& y) {
    {
      const EnableGrad grad;
      x = x - y;
    }
    const NoGrad no_grad;
    return x + y;
  }
  WEFT_ARGS(x, y)
};

// The first operator of the one region that the program has.
const Operator* first_of_region(const ExportedProgram& program) {
  const std::vector<GraphModule> graphs = graphs_of(program.graph_module());
  EXPECT_EQ(graphs.size(), 2u) << code_text(program.graph_module());
  for (const Node& node : graphs.at(1).graph())
    if (node.kind() == NodeKind::kCallFunction) return node.target().op();
  return nullptr;
}

TEST(TestExport, test_predispatch_grad_wrappers) {
  const ValueList args = {from_data<int64_t>({10}, {}), from_data<int64_t>({12}, {})};
  using testing::ExportVariant;
  for (const ExportVariant variant :
       {ExportVariant::kPlain, ExportVariant::kRetraced, ExportVariant::kSaved}) {
    const Exporter exports(variant);
    {
      const NoGrad no_grad;
      const ExportedProgram program = exports(TwoGradModes(), args);
      EXPECT_EQ(first_of_region(program), &operator_named("aten::sub.Tensor"));
      EXPECT_EQ(only_tensor(program.module().call(args)).item().to_int(), 10);
    }
    const ExportedProgram program = exports(TwoGradModes(), args);
    EXPECT_EQ(first_of_region(program), &operator_named("aten::add.Tensor"));
    EXPECT_EQ(only_tensor(program.module().call(args)).item().to_int(), 10);
  }
}

struct NamedAsBranches : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& mul, const Tensor& mul_1) {
    const Tensor product = x * x;
    Tensor y = func::cond(
        product.sum() > 0, [](const Tensor& x, const Tensor& y, const Tensor& z) { return x * y * z; },
        [](const Tensor& x, const Tensor& y, const Tensor& z) { return x + y + z; }, product, mul, mul_1);
    const EnableGrad grad;
    y = y * y;
    return y;
  }
  WEFT_ARGS(x, mul, mul_1)
};
struct NamedAsGraphs : nn::Module {
  Tensor forward(const Tensor& input, const std::tuple<Tensor, Tensor>& true_graph,
                 const std::tuple<Tensor>& body_graph) {
    Tensor x =
        func::map([](const Tensor& x, const Tensor& y) { return x + y; }, input, std::get<0>(body_graph));
    x = x + std::get<0>(true_graph) + std::get<1>(true_graph);
    for (int i = 0; i < 2; ++i)
      x = func::cond(
          x.sum() > 0, [](const Tensor& x) { return x * 2.0; }, [](const Tensor& x) { return x + 2.0; }, x);
    return x;
  }
  WEFT_ARGS(input, true_graph, body_graph)
};

std::vector<std::pair<std::string, NodeKind>> names_and_kinds(const GraphModule& module) {
  std::vector<std::pair<std::string, NodeKind>> nodes;
  for (const Node& node : module.graph()) nodes.emplace_back(node.name(), node.kind());
  return nodes;
}

TEST(TestExport, test_placeholder_naming_collisions_hoo_subgraphs) {
  constexpr auto kInput = NodeKind::kPlaceholder, kCall = NodeKind::kCallFunction,
                 kOutput = NodeKind::kOutput;
  {
    const NoGrad no_grad;
    const ExportedProgram program = export_program(NamedAsBranches(), {randn({4}), randn({4}), randn({4})});
    const GraphModule& module = program.graph_module();
    EXPECT_THAT(
        names_and_kinds(graph_at(module, "true_graph_0")),
        ElementsAre(std::pair("mul_2", kInput), std::pair("mul", kInput), std::pair("mul_1", kInput),
                    std::pair("mul_3", kCall), std::pair("mul_4", kCall), std::pair("output", kOutput)));
    EXPECT_THAT(
        names_and_kinds(graph_at(module, "submod_1")),
        ElementsAre(std::pair("getitem", kInput), std::pair("mul_1", kCall), std::pair("output", kOutput)));
  }
  for_each_variant([&](const Exporter& exports) {
    const ExportedProgram program =
        exports(NamedAsGraphs(),
                {randn({10, 4}), Value::tuple({randn({4}), randn({4})}), Value::tuple({randn({4})})});
    std::vector<std::string> names;
    for (const Node& node : program.graph())
      if (node.kind() == NodeKind::kGetAttr) names.push_back(node.name());
    EXPECT_THAT(
        names, ElementsAre("body_graph_1", "true_graph_2", "false_graph_0", "true_graph_3", "false_graph_1"));
  });
}

struct CallsInBranches : nn::Module {
  struct Cosine : nn::Module {
    Tensor foo(const Tensor& x) { return x.cos(); }
    Tensor forward(const Tensor& x) { return foo(x); }
    WEFT_ARGS(x)
  };
  Cosine subm = child("subm", Cosine());
  Tensor bar(const Tensor& x) { return x.sin(); }
  Tensor forward(const Tensor& x) {
    return func::cond(
        x.size(0) <= 2, [this](const Tensor& x) { return subm.forward(x); },
        [this](const Tensor& x) { return bar(x); }, x);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_cond_preserve_torch_fn_for_subgraphs) {
  for_each_variant([&](const Exporter& exports) {
    CallsInBranches module;
    module.eval();
    std::vector<std::string> noted;
    for (const GraphModule& graph : graphs_of(exports(module, {randn({1, 3, 3, 3})}).module()))
      for (const Node& node : graph.graph()) {
        if (node.name() != "sin" && node.name() != "cos") continue;
        const Value* call = node.meta_or_null() ? node.meta_or_null()->extra.find("torch_fn") : nullptr;
        noted.push_back(call ? call->to_string() : "");
      }
    EXPECT_THAT(noted, ElementsAre("'cos_1;method_descriptor.cos'", "'sin_1;method_descriptor.sin'"));
  });
}

}  // namespace
}  // namespace weft
