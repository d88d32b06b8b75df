// Shape propagation, verification and the runner of passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/func/functionalize.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/passes/pass_runner.h"
#include "weft/passes/shape_prop.h"

namespace weft {
namespace {

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor forward(const Tensor& x) { return relu(fc(x)) * 2; }
  WEFT_ARGS(x)
};

TEST(ShapeProp, NotesWhatNodesGive) {
  Net net;
  GraphModule module = symbolic_trace(net);
  for (bool fake : {true, false}) {
    Value result = ShapeProp(module, fake).propagate({randn({5, 4})});
    EXPECT_EQ(describe(result.to_tensor()).str(), "f32[5, 3]");
    for (const Node& node : module.graph()) {
      EXPECT_EQ(node.meta_or_null()->value.to_tensor().requires_grad(), node.name() != "x");
      std::string wanted = node.name() == "x" ? "f32[5, 4]" : "f32[5, 3]";
      EXPECT_EQ(describe(node.meta_or_null()->value.to_tensor()).str(), wanted);
    }
  }
  EXPECT_ERROR(ShapeProp(module).propagate({randn({5, 7})}), "while running %fc");
}

struct Counting : nn::Module {
  nn::BatchNorm1d bn = child("bn", nn::BatchNorm1d(3));
  Tensor calls = buffer("calls", zeros({2}));
  Tensor forward(const Tensor& x) {
    calls.add_(1);
    return bn(x) + calls.sum();
  }
  WEFT_ARGS(x)
};

TEST(ShapeProp, LeavesTheModuleAsItWas) {
  Counting net;
  auto no_leaves = [](const nn::ModuleState&, std::string_view) { return false; };
  GraphModule module = symbolic_trace(net, {.is_leaf_module = no_leaves});
  ShapeProp(module).propagate({randn({4, 3})});
  ShapeProp(symbolic_trace(net)).propagate({randn({4, 3})});
  EXPECT_EQ(net.calls.sum().item().to_double(), 0);
  EXPECT_EQ(net.bn.num_batches_tracked.item().to_int(), 0);
  EXPECT_EQ(net.bn.running_mean.sum().item().to_double(), 0);
  net(randn({4, 3}));
  EXPECT_EQ(net.calls.sum().item().to_double(), 2);
  EXPECT_EQ(net.bn.num_batches_tracked.item().to_int(), 1);
}

TEST(Verify, SaysWhatDoesNotHold) {
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.add_(1);
    return y;
  };
  GraphModule eager = make_graph(f)(randn({3})), functional = make_graph(func::functionalize(f))(randn({3}));
  verify(eager, Stage::kCaptured);
  verify(functional, Stage::kFunctional);
  EXPECT_ERROR(verify(eager, Stage::kFunctional),
               "'add_' writes in place, which a functional graph must not");
  GraphModule writes_input =
      make_graph(func::functionalize([](const Tensor& x) { return x.add_(1) * 2; }))(randn({3}));
  verify(writes_input, Stage::kFunctional);
  functional.graph().find("add")->set_args({value_of(*functional.graph().find("clone")), Value("one")});
  EXPECT_ERROR(verify(functional), "'add': argument 'other' must be Tensor, not 'one'");
  functional.graph().find("add")->set_args({});
  EXPECT_ERROR(verify(functional), "argument 'self' is missing");
  Graph empty;
  EXPECT_ERROR(verify(empty, Stage::kCaptured), "the graph has no output");
}

TEST(PassRunner, TimesDumpsAndVerifies) {
  Net net;
  GraphModule module = symbolic_trace(net);
  std::vector<std::string> dumped;
  PassRunnerOptions options{.verify = true};
  options.dump = [&](const std::string& name, const std::string& before, const std::string& after) {
    EXPECT_NE(before, after);
    dumped.push_back(name);
  };
  auto to_sigmoid = [](GraphModule& m) {
    for (Node& node : m.graph())
      if (node.target() == Target(operator_named("aten::relu"))) {
        node.set_target(operator_named("aten::sigmoid"));
        return true;
      }
    return false;
  };
  std::vector<PassReport> reports =
      run_passes(module,
                 {{"to sigmoid", to_sigmoid},
                  {"again", to_sigmoid},
                  {"never", to_sigmoid, [](const GraphModule&) { return false; }}},
                 options);
  EXPECT_THAT(dumped, ::testing::ElementsAre("to sigmoid"));
  EXPECT_TRUE(reports[0].changed && reports[1].ran && !reports[1].changed && !reports[2].ran);
  auto breaks = [](GraphModule& m) {
    m.graph().find("mul")->set_args({});
    return true;
  };
  EXPECT_ERROR(run_passes(module, {{"breaker", breaks}}, options), "while running pass 'breaker'");
}

}  // namespace
}  // namespace weft
