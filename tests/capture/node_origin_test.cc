// Where nodes come from: the calls of modules around them, and the operator that a decomposition replaced.
#include <gtest/gtest.h>

#include "support/sanitizers.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/capture/trace.h"
#include "weft/func/control_flow.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

struct Half : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return fc(x) / 2; }
  WEFT_ARGS(x)
};
// The half runs twice; what is done in between is the net's own.
struct Twice : nn::Module {
  Half half = child("half", Half());
  Tensor forward(const Tensor& x) { return half(half(x).sin()); }
  WEFT_ARGS(x)
};

// "path:Class path:Class", outermost first.
std::string modules_of(const Node& node) {
  std::string text;
  if (const NodeMeta* meta = node.meta_or_null())
    for (const ModuleScope& scope : meta->modules)
      text += (text.empty() ? "" : " ") + scope.path + ":" + scope.class_name;
  return text;
}
std::vector<const Node*> calls_of(const Graph& graph, std::string_view op) {
  std::vector<const Node*> found;
  for (const Node& node : graph)
    if (node.target().op() && node.target().op()->schema().name == op) found.push_back(&node);
  return found;
}

TEST(ModulesOfNodes, OfACaptureAreThoseThatRan) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(Twice(), {.mode = mode})(randn({3, 4}));
    auto linears = calls_of(g.graph(), "addmm"), halves = calls_of(g.graph(), "div");
    ASSERT_EQ(linears.size(), 2u);
    ASSERT_EQ(halves.size(), 2u);
    for (int i : {0, 1}) {
      EXPECT_EQ(modules_of(*linears[i]), ":Twice half:Half half.fc:Linear");
      EXPECT_EQ(modules_of(*halves[i]), ":Twice half:Half");
    }
    EXPECT_EQ(modules_of(*g.graph().find("sin")), ":Twice");
    EXPECT_EQ(modules_of(*g.graph().output_node()), "");
    // Two calls of one module are told apart; the nodes of one share what they note.
    const ModuleStack &first = linears[0]->meta_or_null()->modules,
                      &second = linears[1]->meta_or_null()->modules;
    EXPECT_NE(first, second);
    EXPECT_EQ(first[0], second[0]);
    EXPECT_NE(first[1].call, second[1].call);
    EXPECT_EQ(first[1], halves[0]->meta_or_null()->modules[1]);
    EXPECT_EQ(nn::ModuleObserver::current(), nullptr);
  }
}

TEST(ModulesOfNodes, AreNotedByEveryWayOfCapturing) {
  GraphModule layers = symbolic_trace(Twice());
  EXPECT_EQ(modules_of(*layers.graph().find("half_fc")), ":Twice half:Half half.fc:Linear");
  EXPECT_EQ(modules_of(*layers.graph().find("sin")), ":Twice");
  TracedModule traced = trace(Twice(), randn({3, 4}));
  EXPECT_EQ(modules_of(*calls_of(traced.graph(), "div")[0]), "__module:Twice __module.half:Half");
}

TEST(ModulesOfNodes, OutliveCopiesAndPasses) {
  GraphModule g = make_graph(Twice())(randn({3, 4}));
  Graph copy = g.graph().copy();
  EXPECT_EQ(modules_of(*copy.find("sin")), ":Twice");
  copy.eliminate_dead_code();
  EXPECT_EQ(modules_of(*calls_of(copy, "div")[1]), ":Twice half:Half");
}

// Calls a module that is none of its children.
struct Outer : nn::Module {
  explicit Outer(Twice& guest) : stranger(guest) {}
  Twice& stranger;
  Tensor forward(const Tensor& x) { return stranger(x.cos()); }
  WEFT_ARGS(x)
};

TEST(ModulesOfNodes, AreThoseOfTheCapturedModuleOnly) {
  Twice net, other;
  Outer outer(other);
  GraphModule g = make_graph(outer)(randn({3, 4}));
  EXPECT_EQ(modules_of(*g.graph().find("cos")), ":Outer");
  EXPECT_EQ(modules_of(*g.graph().find("sin")), ":Outer");
  // A function has none.
  GraphModule f = make_graph([net](const Tensor& x) mutable { return net(x); })(randn({3, 4}));
  EXPECT_EQ(modules_of(*f.graph().find("sin")), "");
}

struct Failing : nn::Module {
  Half half = child("half", Half());
  bool fails = true;
  Tensor forward(const Tensor& x) {
    Tensor y = half(x);
    if (fails) throw std::runtime_error("in the middle");
    return y.sin();
  }
  WEFT_ARGS(x)
};

TEST(ModulesOfNodes, AreRestoredAfterAnError) {
  Failing net;
  EXPECT_THROW(make_graph(net)(randn({3, 4})), std::runtime_error);
  EXPECT_EQ(nn::ModuleObserver::current(), nullptr);
  net.fails = false;
  EXPECT_EQ(modules_of(*make_graph(net)(randn({3, 4})).graph().find("sin")), ":Failing");
}

TEST(OriginalOfNodes, IsWhatTheProgramCalled) {
  const Operator &silu = operator_named("aten::silu"), &mul = operator_named("aten::mul.Tensor");
  Decompositions table;
  table[&silu] = [](Args args) {
    Tensor x = args[0].to_tensor();
    return Value(x * x.sigmoid());
  };
  GraphModule g =
      make_graph([](const Tensor& x) { return x.silu() * 2; }, {.decompositions = table})(randn({3}));
  EXPECT_EQ(g.graph().find("sigmoid")->meta_or_null()->original, &silu);
  EXPECT_EQ(g.graph().find("mul")->meta_or_null()->original, &silu);
  EXPECT_EQ(g.graph().find("mul_1")->meta_or_null()->original, nullptr);

  // The outermost one counts.
  table[&mul] = [](Args args) {
    Tensor x = args[0].to_tensor();
    return Value(x.clone());
  };
  GraphModule nested =
      make_graph([](const Tensor& x) { return x.silu() * 2; }, {.decompositions = table})(randn({3}));
  // A number is an argument of the operator on tensors, as graphs write it.
  EXPECT_EQ(nested.graph().find("clone")->meta_or_null()->original, &silu);
  EXPECT_EQ(nested.graph().find("clone_1")->meta_or_null()->original, &mul);

  // Also when a decomposition fails.
  table[&silu] = [](Args) -> Value { throw std::runtime_error("no"); };
  auto survives = [](const Tensor& x) {
    try {
      x.silu();
    } catch (const std::runtime_error&) {
    }
    return x.sin();
  };
  GraphModule after = make_graph(survives, {.decompositions = table})(randn({3}));
  EXPECT_EQ(after.graph().find("sin")->meta_or_null()->original, nullptr);
}

// --- graphs that run again, and gradients ----------------------------------------------------------------

std::string lines_of(const Graph& graph, std::string_view op) {
  std::string lines;
  for (const Node* node : calls_of(graph, op)) lines += node->source() + "\n";
  return lines;
}

// Sums the sines of its input in a branch, and halves in another.
struct Branching : nn::Module {
  Half half = child("half", Half());
  Tensor forward(const Tensor& x) {
    auto on_true = [this](const Tensor& t) { return half(t); };
    return func::cond(x.sum() > 0, on_true, [](const Tensor& t) { return t.sin(); }, x);
  }
  WEFT_ARGS(x)
};

TEST(OriginsOfNodes, AreThoseOfTheGraphThatWasCapturedAgain) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule first = make_graph(Twice(), {.record_stack_traces = true})(randn({3, 4}));
    GraphModule again = make_graph(first, {.mode = mode})(randn({3, 4}));
    GraphModule third =
        make_graph(again.function(),
                   {.mode = mode, .record_stack_traces = true, .allow_real_inputs = true})(randn({3, 4}));
    for (const GraphModule& g : {again, third}) {
      for (std::string_view op : {"addmm", "div", "sin"}) {
        EXPECT_EQ(lines_of(g.graph(), op), lines_of(first.graph(), op));
        // Unoptimised, as under sanitizers, weft's own frames below a layer fill a StackTrace (kMostFrames).
        const bool is_too_deep = testing::kSanitized && op == "addmm";
        const bool names_the_test = lines_of(g.graph(), op).find("node_origin_test.cc") != std::string::npos;
        EXPECT_TRUE(names_the_test || is_too_deep) << op;
        for (size_t i = 0; i < calls_of(g.graph(), op).size(); ++i) {
          const Node &was = *calls_of(first.graph(), op)[i], &is = *calls_of(g.graph(), op)[i];
          EXPECT_EQ(modules_of(is), modules_of(was));
          EXPECT_EQ(is.meta_or_null()->modules, was.meta_or_null()->modules);
          EXPECT_EQ(is.meta_or_null()->from_node(), was.name());
        }
      }
    }
  }
  EXPECT_FALSE(Origin::is_wanted());
  EXPECT_EQ(Origin::current(), nullptr);
}

TEST(OriginsOfNodes, OfBranchesAreWhereTheFunctionsWere) {
  GraphModule g = make_graph(Branching(), {.record_stack_traces = true})(randn({3, 4}));
  const Graph& branch = graph_module_in(g.find("true_graph_0"))->graph();
  EXPECT_EQ(modules_of(*calls_of(branch, "div")[0]), ":Branching half:Half");
  EXPECT_NE(lines_of(branch, "div").find("node_origin_test.cc"), std::string::npos);
  const Graph& again = graph_module_in(make_graph(g)(randn({3, 4})).find("true_graph_0"))->graph();
  EXPECT_EQ(modules_of(*calls_of(again, "div")[0]), ":Branching half:Half");
  EXPECT_EQ(lines_of(again, "div"), lines_of(branch, "div"));
}

TEST(OriginsOfNodes, OfGradientsAreTheForwardCalls) {
  Twice net;
  const Tensor weight = net.named_parameters()[0].second;
  auto f = [&](const Tensor& x) {
    Tensor loss = net(x).sum();
    return autograd::grad({loss}, {weight})[0];
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g =
        make_graph(f, {.mode = mode, .record_stack_traces = true, .allow_real_inputs = true})(randn({3, 4}));
    // The sine's gradient is a cosine, and knows where the sine was.
    const Node& cosine = *calls_of(g.graph(), "cos").at(0);
    EXPECT_TRUE(cosine.meta_or_null()->is_backward());
    EXPECT_EQ(cosine.meta_or_null()->from_node(), calls_of(g.graph(), "sin").at(0)->name());
    EXPECT_EQ(cosine.source(), calls_of(g.graph(), "sin").at(0)->source());
    EXPECT_FALSE(calls_of(g.graph(), "sin").at(0)->meta_or_null()->is_backward());
    int backward = 0;
    for (const Node& node : g.graph())
      if (node.target().op() && node.meta_or_null()->is_backward()) ++backward;
    EXPECT_GE(backward, 4);
  }
  // Through another capture: the nodes of the backward pass stay what they are.
  GraphModule g = make_graph(f, {.record_stack_traces = true})(randn({3, 4}));
  GraphModule again = make_graph(g)(randn({3, 4}));
  EXPECT_TRUE(calls_of(again.graph(), "cos").at(0)->meta_or_null()->is_backward());
  EXPECT_EQ(lines_of(again.graph(), "cos"), lines_of(g.graph(), "cos"));
}

TEST(OriginsOfNodes, OfAGradientOfARerunGraphAreTheOriginalLines) {
  GraphModule forward = make_graph(Twice(), {.record_stack_traces = true})(randn({3, 4}));
  auto f = [&](const Tensor& x) {
    Tensor own = x.detach().set_requires_grad();
    return autograd::grad({forward(own).sum()}, {own})[0];
  };
  GraphModule g = make_graph(f)(randn({3, 4}));
  const Node& cosine = *calls_of(g.graph(), "cos").at(0);
  EXPECT_EQ(cosine.source(), calls_of(forward.graph(), "sin").at(0)->source());
  EXPECT_EQ(modules_of(cosine), ":Twice");
}

}  // namespace
}  // namespace weft
