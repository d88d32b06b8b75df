// What exported programs make of control flow: operands, names, regions of another grad mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/export/export_program.h"
#include "weft/func/control_flow.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using ::testing::HasSubstr;
using ::testing::Not;

GraphModule function_in(const GraphModule& module, std::string_view path) {
  return *graph_module_in(module.find(path));
}

// The program, saved and loaded, exported again, and decomposed, gives what the module gives.
template <typename M>
void expect_same_in_all_forms(const M& module, const Tensor& x) {
  const Tensor wanted = module(x);
  auto results_of = [&](const ExportedProgram& program) { return tree_leaves(program.module().call({x})); };
  const ExportedProgram program = export_program(module, {x});
  for (const ExportedProgram& form : {program, export_for_training(module, {x}),
                                      export_program(program.module(), {x}), program.run_decompositions()})
    EXPECT_TRUE(close(results_of(form)[0].to_tensor(), wanted, 1e-6, 1e-6)) << form;
}

struct SeveralRegions : nn::Module {
  Tensor w = parameter("w", ones({3}));
  Tensor forward(const Tensor& x) {
    Tensor a = x * w, b;
    {
      const NoGrad no_grad;
      b = a * 2;
      a = a + b;
    }
    const Tensor c = a * b;
    const NoGrad no_grad;
    return c + a;
  }
  WEFT_ARGS(x)
};

TEST(GradModeRegions, AreFunctionsThatGiveWhatIsUsedBehindThem) {
  const Tensor x = randn({3});
  const GraphModule graph = export_program(SeveralRegions(), {x}).graph_module();
  EXPECT_THAT(graph.code(), Not(HasSubstr("_set_grad_enabled(False)")));
  EXPECT_THAT(graph.code(), HasSubstr("wrap_with_set_grad_enabled(False, submod_1, mul)"));
  EXPECT_EQ(function_in(graph, "submod_1").graph().output_node()->returned().elements().size(), 2u);
  EXPECT_THAT(graph.code(), HasSubstr("submod_3"));
  expect_same_in_all_forms(SeveralRegions(), x);
}

TEST(GradModeRegions, KeepGradientsOut) {
  const SeveralRegions module;
  const Tensor x = randn({3});
  const GraphModule callable = export_for_training(module, {x}).module();
  const Tensor result = tree_leaves(callable.call({x}))[0].to_tensor();
  EXPECT_EQ(result.requires_grad(), module(x).requires_grad());
}

struct BranchInRegion : nn::Module {
  Tensor b = buffer("b", ones({3}) * 3);
  Tensor forward(const Tensor& x) {
    Tensor y = x + 1;
    {
      const NoGrad no_grad;
      y = func::cond(
          y.sum() > 0, [this](const Tensor& y) { return y * b; }, [](const Tensor& y) { return y - 1; }, y);
    }
    return y * 2;
  }
  WEFT_ARGS(x)
};

TEST(GradModeRegions, MayHaveBranches) {
  const Tensor x = ones({3});
  const GraphModule graph = export_program(BranchInRegion(), {x}).graph_module();
  const GraphModule region = function_in(graph, "submod_1");
  EXPECT_THAT(region.code(), HasSubstr("cond(gt, true_graph_0, false_graph_0, [b_b, add])")) << graph.code();
  EXPECT_THAT(function_in(region, "true_graph_0").code(), HasSubstr("def forward(self, b_b, add)"));
  expect_same_in_all_forms(BranchInRegion(), x);
}

struct Loops : nn::Module {
  Tensor scale = parameter("scale", ones({3}) * 2);
  Tensor forward(const Tensor& x) {
    const Value results = func::scan(
        [this](Args args) {
          const Tensor next = args[0].to_tensor() + args[1].to_tensor() * scale;
          return Value::tuple({next, next * 2});
        },
        Value(zeros({3})), Value(x));
    return results.elements()[1].to_tensor();
  }
  WEFT_ARGS(x)
};

TEST(Branches, OfLoopsTakeTheStateToo) {
  const Tensor x = randn({4, 3});
  const GraphModule graph = export_program(Loops(), {x}).graph_module();
  EXPECT_THAT(function_in(graph, "scan_combine_graph_0").code(),
              HasSubstr("def forward(self, zeros, x, p_scale)"))
      << graph.code();
  expect_same_in_all_forms(Loops(), x);
}

struct NestedBranches : nn::Module {
  Tensor w = parameter("w", ones({3})), v = parameter("v", ones({3}) * 2);
  Tensor forward(const Tensor& x) {
    auto inner = [this](const Tensor& x) {
      return func::cond(
          x.sum() > 10, [this](const Tensor& x) { return x * w; }, [this](const Tensor& x) { return x * v; },
          x);
    };
    return func::cond(x.sum() > 0, inner, [](const Tensor& x) { return x.sin(); }, x);
  }
  WEFT_ARGS(x)
};

TEST(Branches, WithinBranchesAreArrangedAlike) {
  const Tensor x = ones({3});
  const GraphModule graph = export_program(NestedBranches(), {x}).graph_module();
  EXPECT_THAT(graph.code(), HasSubstr("false_graph_0, [p_v, p_w, x])"));
  const GraphModule outer = function_in(graph, "true_graph_0");
  EXPECT_THAT(outer.code(), HasSubstr("def forward(self, p_v, p_w, x)"));
  EXPECT_THAT(outer.code(), HasSubstr("false_graph_0, [p_v, p_w, x])"));
  expect_same_in_all_forms(NestedBranches(), x);
  expect_same_in_all_forms(NestedBranches(), x * 10);
  expect_same_in_all_forms(NestedBranches(), -x);
}

}  // namespace
}  // namespace weft
