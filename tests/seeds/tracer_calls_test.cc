// Ports of TestTracer: what was traced before is called while something else is traced.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "seeds/support/file_check.h"
#include "support/expect_error.h"
#include "weft/capture/fork.h"
#include "weft/capture/inlining.h"
#include "weft/func/func.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::args;
using testing::expect_equal;
using testing::expect_values;
using testing::FileCheck;

GraphModule forward_of(const TracedModule& traced) { return traced.method("forward").graph_module(); }

ScriptOptions method_of(const TracedModule& traced, bool inline_calls = true) {
  return {.inline_calls = inline_calls, .self_type = "__torch__." + traced.original_name()};
}

TracedFunction negated() {
  return trace([](const Tensor& x) { return neg(x); }, rand({3, 4}), {.arg_names = "x", .name = "traced_fn"});
}

struct CallsFunction : nn::Module {
  Tensor param = parameter("param", rand({4, 5}));
  TracedFunction traced_fn = negated();
  Tensor forward(const Tensor& x) { return traced_fn(mm(x, param)); }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_call_traced_fn_from_traced_module) {
  NoInlineScope keep_calls;
  CallsFunction net;
  Tensor x = rand({3, 4});
  TracedModule tm = trace(net, x);
  std::string text = script_text(forward_of(tm), method_of(tm));
  FileCheck().check("aten::mm").check("name=\"traced_fn\"").check_next("prim::CallFunction").run(text);
  EXPECT_EQ(text,
            "graph(%self : __torch__.CallsFunction,\n"
            "      %x : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"
            "  %param : Tensor = prim::GetAttr[name=\"param\"](%self)\n"
            "  %3 : Float(3, 5, strides=[5, 1], requires_grad=1, device=cpu) = aten::mm(%x, %param)\n"
            "  %4 : Function = prim::Constant[name=\"traced_fn\"]()\n"
            "  %5 : Float(3, 5, strides=[5, 1], requires_grad=1, device=cpu) = prim::CallFunction(%4, %3)\n"
            "  return (%5)\n");
  EXPECT_EQ(script_code(forward_of(tm), method_of(tm)),
            "def forward(self,\n"
            "    x: Tensor) -> Tensor:\n"
            "  param = self.param\n"
            "  _0 = __torch__.traced_fn(torch.mm(x, param), )\n"
            "  return _0\n");
  expect_equal(tm(x), net(x));
  EXPECT_EQ(tm.state_dict().size(), 1u);
}

struct Multiplies : nn::Module {
  Tensor param = parameter("param", rand({5, 7}));
  Tensor forward(const Tensor& x) { return mm(x, param); }
  WEFT_ARGS(x)
};
struct CallsModule : nn::Module {
  Tensor param = parameter("param", rand({4, 5}));
  // A unit of its own: the name of the type is the same wherever it is traced.
  TracedModule mod = child("mod", trace(Multiplies(), rand({3, 5}), {.compilation_unit = CompilationUnit()}));
  Tensor forward(const Tensor& x) { return mod(mm(x, param)) + 1.0; }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_call_traced_module_from_traced_module) {
  NoInlineScope keep_calls;
  CallsModule net;
  Tensor x = rand({3, 4});
  TracedModule tm = trace(net, x);
  std::string text = script_text(forward_of(tm), method_of(tm));
  FileCheck().check("aten::mm").check("prim::CallMethod").check_same("forward").check("aten::add").run(text);
  EXPECT_EQ(text,
            "graph(%self : __torch__.CallsModule,\n"
            "      %x : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"
            "  %mod : __torch__.Multiplies = prim::GetAttr[name=\"mod\"](%self)\n"
            "  %param : Tensor = prim::GetAttr[name=\"param\"](%self)\n"
            "  %4 : Float(3, 5, strides=[5, 1], requires_grad=1, device=cpu) = aten::mm(%x, %param)\n"
            "  %5 : Float(3, 7, strides=[7, 1], requires_grad=1, device=cpu) = "
            "prim::CallMethod[name=\"forward\"](%mod, %4)\n"
            "  %6 : Double(requires_grad=0, device=cpu) = prim::Constant[value={1}]()\n"
            "  %7 : int = prim::Constant[value=1]()\n"
            "  %8 : Float(3, 7, strides=[7, 1], requires_grad=1, device=cpu) = aten::add(%5, %6, %7)\n"
            "  return (%8)\n");
  expect_equal(tm(x), net(x));
}

// --- beyond the two rows ---------------------------------------------------------------------------------

TEST(CallsInTraces, AreOpenedUpUnlessAScopeKeepsThem) {
  CallsFunction calls_function;
  CallsModule calls_module;
  Tensor x = rand({3, 4});
  TracedModule first = trace(calls_function, x), second = trace(calls_module, x);
  ScriptGraph one = script_view(forward_of(first), method_of(first));
  EXPECT_EQ(one.count("prim::CallFunction"), 0u);
  EXPECT_EQ(one.count("prim::GetAttr"), 1u);  // the function is no part of self
  EXPECT_EQ(one.count("aten::neg"), 1u);
  EXPECT_EQ(script_view(forward_of(second), method_of(second)).count("aten::mm"), 2u);
  expect_equal(second(x), calls_module(x));
}

TEST(CallsInTraces, FollowTheChildsTensorsAndHaveGradients) {
  NoInlineScope keep_calls;
  CallsModule net;
  Tensor x = rand({3, 4});
  TracedModule traced = trace(net, x);
  Tensor other = rand({5, 7}).set_requires_grad();
  traced.set_attribute("mod.param", other);
  Tensor result = traced(x);
  expect_equal(result, mm(mm(x, net.param), other) + 1.0);
  std::vector<Tensor> grads = autograd::grad({result.sum()}, {net.param, other});
  expect_equal(grads[1], mm(mm(x, net.param).t(), ones({3, 7})));
  // A child that was traced keeps its code.
  expect_equal(callable_in(traced.find("mod"))->call(ValueList{rand({2, 5}) * 0}).to_tensor(), zeros({2, 7}));
}

TEST(CallsInTraces, SeeWhatIsReplacedInTheChildByItself) {
  for (bool keeps_calls : {true, false}) {
    std::optional<NoInlineScope> keep_calls;
    if (keeps_calls) keep_calls.emplace();
    Tensor x = rand({3, 4});
    CallsModule net;
    TracedModule outer = trace(net, x);
    outer(x);
    Tensor other = rand({5, 7});
    net.mod.set_attribute("param", other);
    expect_equal(outer(x), mm(mm(x, net.param), other) + 1.0);
  }
}

TEST(CallsInTraces, AreKeptInFiles) {
  NoInlineScope keep_calls;
  Tensor x = rand({3, 4});
  for (const TracedModule& traced : {trace(CallsFunction(), x), trace(CallsModule(), x)}) {
    GraphModule loaded = testing::saved_and_loaded(forward_of(traced));
    expect_equal(loaded(x), traced(x));
    EXPECT_EQ(script_text(loaded, {.canonical = true, .self_type = "S"}),
              script_text(forward_of(traced), {.canonical = true, .self_type = "S"}));
  }
}

TEST(CallsInTraces, OfOneFunctionShareIts) {
  NoInlineScope keep_calls;
  TracedFunction fn = negated(),
                 other = trace([](const Tensor& x) { return std::tuple(x + 1, x.size(0) * x); }, rand({3}),
                               {.name = "traced_fn"});
  auto twice = [&](const Tensor& x) {
    Value pair = other.call({fn(fn(x))});
    return pair.elements()[0].to_tensor() * pair.elements()[1].to_tensor();
  };
  TracedFunction traced = trace(twice, rand({3}));
  size_t reads = 0;
  for (const Node& node : traced.graph()) reads += node.kind() == NodeKind::kGetAttr;
  EXPECT_EQ(reads, 2u);
  EXPECT_EQ(script_view(traced.graph_module()).count("prim::CallFunction"), 3u);
  Tensor x = rand({5});
  expect_equal(traced(x), twice(x));
}

TEST(CallsInTraces, ByNameAreInTheOrderOfTheArguments) {
  NoInlineScope keep_calls;
  TracedFunction minus = trace([](const Tensor& a, const Tensor& b) { return a - b; },
                               args({rand({2}), rand({2})}), {.arg_names = "a, b"});
  auto f = [&](const Tensor& x, const Tensor& y) { return minus.call({}, {{"b", y}, {"a", x}}).to_tensor(); };
  TracedFunction traced = trace(f, args({rand({2}), rand({2})}));
  expect_equal(traced(ones({2}), full({2}, 3.0)), full({2}, -2.0));
}

// What a function writes happens even where nobody uses what it gives.
TEST(CallsInTraces, ThatWriteStay) {
  NoInlineScope keep_calls;
  TracedFunction writes = trace([](Tensor x) { return x.add_(1); }, zeros({2}));
  auto f = [&](const Tensor& x) {
    Tensor own = x * 2;
    writes.call({own});
    return own * 3;
  };
  TracedFunction traced = trace(f, ones({2}));
  expect_equal(traced(ones({2})), full({2}, 9.0));
}

// Wrappers of a transform are not the tensors that the function was traced on: its operators see through
// them.
TEST(CallsInTraces, UnderATransformAreOpenedUp) {
  NoInlineScope keep_calls;
  TracedFunction fn = negated();
  auto f = [&](const Tensor& x) { return func::vmap([&](const Tensor& row) { return fn(row) * 2; })(x); };
  TracedFunction traced = trace(f, ones({3, 4}));
  EXPECT_EQ(script_view(traced.graph_module()).count("prim::CallFunction"), 0u);
  expect_equal(traced(full({2, 4}, 5.0)), full({2, 4}, -10.0));
}

// --- fork and wait ---------------------------------------------------------------------------------------

struct Forked : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {relu(x), neg(x)}; }
  WEFT_ARGS(x)
};
struct Forks : nn::Module {
  nn::ModuleList<Forked> mods = child("mods", [] {
    nn::ModuleList<Forked> two;
    two.push_back(Forked());
    two.push_back(Forked());
    return two;
  }());
  Tensor forward(const Tensor& x) {
    std::vector<Future<std::tuple<Tensor, Tensor>>> futures;
    for (Forked& mod : mods) futures.push_back(fork(mod, x));
    std::vector<Tensor> results;
    for (const auto& future : futures) results.push_back(std::get<0>(future.wait()));
    return stack(results);
  }
  WEFT_ARGS(x)
};

TEST(TraceDropped, test_trace_fork_join_and_module) {
  Forks net;
  Tensor x = rand({3, 4});
  TracedModule traced = trace(net, x);
  ScriptGraph view = script_view(forward_of(traced), method_of(traced));
  EXPECT_EQ(view.count("prim::fork"), 2u);
  EXPECT_EQ(view.count("aten::wait"), 2u);
  constexpr const char* kType = "Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)";
  std::string text = fmt::format(
      "graph(%self : __torch__.Forks,\n"
      "      %x : {0}):\n"
      "  %2 : Future[({0}, {0})] = prim::fork_0(%x)\n"
      "  %3 : Future[({0}, {0})] = prim::fork_1(%x)\n"
      "  %4 : ({0}, {0}) = aten::wait(%2)\n"
      "  %5 : {0}, %6 : {0} = prim::TupleUnpack(%4)\n"
      "  %7 : ({0}, {0}) = aten::wait(%3)\n"
      "  %8 : {0}, %9 : {0} = prim::TupleUnpack(%7)\n"
      "  %10 : Tensor[] = prim::ListConstruct(%5, %8)\n"
      "  %11 : int = prim::Constant[value=0]()\n"
      "  %12 : Float(2, 3, 4, strides=[12, 4, 1], requires_grad=0, device=cpu) = aten::stack(%10, %11)\n"
      "  return (%12)\n",
      kType);
  for (int i = 0; i < 2; ++i)
    text += fmt::format(
        "with prim::fork_{1} = graph(%x : {0}):\n"
        "  %1 : {0} = aten::relu(%x)\n"
        "  %2 : {0} = aten::neg(%x)\n"
        "  %3 : ({0}, {0}) = prim::TupleConstruct(%1, %2)\n"
        "  return (%3)\n",
        kType, i);
  EXPECT_EQ(view.to_string(), text);
  Tensor other = randn({2, 5});
  expect_equal(traced(other), net(other));
  expect_equal(testing::saved_and_loaded(forward_of(traced))(other), net(other));
}

TEST(Fork, TracesHaveWhatTheFunctionReadsAsOperands) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    Future<Tensor> sum = fork([&](const Tensor& a) { return a + y; }, x);
    return sum.wait();
  };
  TracedFunction traced = trace(f, rand({3, 4}), {.arg_names = "x", .name = "f"});
  EXPECT_EQ(script_text(traced.graph_module(), {.types = false}),
            "graph(%x : Tensor):\n"
            "  %1 : Tensor = prim::Constant[value={2}]()\n"
            "  %2 : Tensor = aten::mul(%x, %1)\n"
            "  %3 : Future[Tensor] = prim::fork_0(%x, %2)\n"
            "  %4 : Tensor = aten::wait(%3)\n"
            "  return (%4)\n"
            "with prim::fork_0 = graph(%x : Tensor,\n"
            "      %mul : Tensor):\n"
            "  %2 : int = prim::Constant[value=1]()\n"
            "  %3 : Tensor = aten::add(%x, %mul, %2)\n"
            "  return (%3)\n");
  EXPECT_EQ(script_code(traced.graph_module(), {.name = "f"}),
            "def f(x: Tensor) -> Tensor:\n"
            "  _0 = torch.mul(x, CONSTANTS.c0)\n"
            "  def __forked_function():\n"
            "    return torch.add(x, _0)\n"
            "  _1 = fork(__forked_function)\n"
            "  return torch.wait(_1)\n");
  Tensor x = rand({2});
  expect_equal(traced(x), f(x));
}

struct Weighted : nn::Module {
  Tensor weight = parameter("weight", rand({4}));
  Tensor forward(const Tensor& x) { return x * weight + x.size(0); }
  WEFT_ARGS(x)
};
struct ForksWeighted : nn::Module {
  Weighted mod = child("mod", Weighted());
  Tensor forward(const Tensor& x) {
    Future<Tensor> inside = fork([&](const Tensor& a) { return fork(mod, a * a).wait() + 1; }, x);
    Tensor own = mod(x) * x.size(0);
    return inside.wait() * own;
  }
  WEFT_ARGS(x)
};

TEST(Fork, NestsAndHasGradientsAndFollowsTheModulesTensors) {
  ForksWeighted net;
  Tensor x = rand({3, 4});
  TracedModule traced = trace(net, x);
  testing::CheckTrace options{.reference = args({x}), .inputs = args({rand({5, 4})})};
  testing::check_trace(net, options);
  auto gradient = [&](const auto& run) { return autograd::grad({run(x).sum()}, {net.mod.weight})[0]; };
  expect_equal(gradient(traced), gradient([&](const Tensor& t) { return net(t); }));
  traced.set_attribute("mod.weight", zeros({4}));
  expect_equal(traced(ones({2, 4})), full({2, 4}, 12.0));
  // Two of one kind inside each other, each numbered in its own graph.
  FileCheck()
      .check_count("prim::fork_0(", 1)
      .check("with prim::fork_0 = graph(")
      .check_count("prim::fork_0(", 1)
      .check("with prim::fork_0 = graph(")
      .check_not("prim::fork")
      .run(script_text(forward_of(traced), method_of(traced)));
}

TEST(Fork, WritesOfTheFunctionAreSeenAfterIt) {
  auto f = [](const Tensor& x) {
    Tensor own = x.clone();
    Future<Tensor> future = fork([](Tensor t) { return t.mul_(3) + 0; }, own);
    return own + future.wait() + own.size(0);
  };
  TracedFunction traced = trace(f, ones({2}));
  Tensor x = rand({5});
  expect_equal(traced(x), f(x));
}

TEST(Fork, KeepsErrorsForTheWaiterAndModesOfTheCaller) {
  Future<Tensor> failed = fork([](const Tensor& x) { return x + ones({7}); }, ones({3}));
  for (int i = 0; i < 2; ++i) EXPECT_ERROR(failed.wait(), "The size of tensor a (3) must match the size of tensor b (7)");
  Tensor x = rand({3}).set_requires_grad();
  auto twice = [](const Tensor& t) { return t * 2; };
  EXPECT_TRUE(fork(twice, x).wait().requires_grad());
  NoGrad no_grad;
  EXPECT_FALSE(fork(twice, x).wait().requires_grad());
}

TEST(Fork, WritesBeforeAnErrorStay) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    Future<Tensor> failed = fork([](Tensor t) { return t.add_(5).view({7}); }, y);
    try {
      failed.wait();
    } catch (const Error&) {
    }
    return y + 0;
  };
  expect_equal(trace(f, ones({2}))(full({3}, 4.0)), full({3}, 13.0));
}

TEST(Fork, ErrorsLeaveTheTraceWhole) {
  auto f = [](const Tensor& x) {
    Future<Tensor> failed = fork([](const Tensor& t) { return (t * 5).view({7}); }, x);
    try {
      return failed.wait();
    } catch (const Error&) {
      return x * 3;
    }
  };
  TracedFunction traced = trace(f, ones({2}));
  EXPECT_EQ(testing::operators_in(traced.graph()), std::vector<std::string>{"mul"});
  expect_equal(traced(full({3}, 2.0)), full({3}, 6.0));
}

TEST(Fork, WhatLeavesTheFunctionByAnotherWayIsAnError) {
  auto leaks = [](const Tensor& x) {
    Tensor kept;
    fork([&](const Tensor& t) { return kept = t * 2, t + 1; }, x).wait();
    return kept * 2;
  };
  EXPECT_ERROR(trace(leaks, ones({2})), "left it otherwise than as its result");
  auto leaks_future = [](const Tensor& x) {
    std::optional<Future<Tensor>> kept;
    auto twice = [](const Tensor& t) { return t * 2; };
    fork([&](const Tensor& t) { return kept = fork(twice, t), t + 1; }, x).wait();
    return kept->wait();
  };
  EXPECT_ERROR(trace(leaks_future, ones({2})), "made inside of another forked function");
}

// Two runs that fork different things are different programs.
TEST(Fork, TheCheckerLooksInside) {
  int runs = 0;
  auto f = [&](const Tensor& x) {
    ++runs;
    return fork([&](const Tensor& t) { return runs > 1 ? t.sin() : t.cos(); }, x).wait();
  };
  try {
    (void)testing::warnings_of([&] { trace(f, ones({2})); });
    FAIL() << "the difference went unnoticed";
  } catch (const TracingCheckError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("aten::cos"));
  }
}

TEST(Fork, UnderATransformRunsAsItIs) {
  auto f = [](const Tensor& x) {
    return func::vmap(
        [](const Tensor& row) { return fork([](const Tensor& t) { return t.sum() * t; }, row).wait(); })(x);
  };
  TracedFunction traced = trace(f, rand({3, 4}));
  Tensor x = rand({2, 4});
  expect_equal(traced(x), x.sum({1}, true) * x);
}

// --- two calls of one module -----------------------------------------------------------------------------

struct Twice : nn::Module {
  nn::Linear l = child("l", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return l(l(x)); }
  WEFT_ARGS(x)
};

TEST(CallsInTraces, OfOneModuleOneAfterTheOtherAreTwo) {
  TracedModule traced = trace(Twice(), rand({3, 4}), {.compilation_unit = CompilationUnit()});
  EXPECT_EQ(script_text(forward_of(traced), method_of(traced, false)),
            "graph(%self : __torch__.Twice,\n"
            "      %x : Float(3, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"
            "  %l : __torch__.Linear = prim::GetAttr[name=\"l\"](%self)\n"
            "  %3 : Tensor = prim::CallMethod[name=\"forward\"](%l, %x)\n"
            "  %4 : Tensor = prim::CallMethod[name=\"forward1\"](%l, %3)\n"
            "  return (%4)\n");
}

}  // namespace
}  // namespace weft
