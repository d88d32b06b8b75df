// Runs on random numbers that are given: a backward graph draws the masks of the forward again.
#include <gtest/gtest.h>

#include <thread>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/core/value_walk.h"
#include "weft/func/control_flow.h"
#include "weft/func/func.h"
#include "weft/graph/interpreter.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::expect_equal;

constexpr CaptureMode kGivenModes[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

// Draws of every kind; the first is used by nobody.
std::vector<Tensor> many_draws(const Tensor& x) {
  rand_like(x);
  Tensor dropped = std::get<0>(native_dropout(x, 0.5, true));
  Tensor noise = rand_like(x), coins = bernoulli(x * 0.5), normal = randn({x.size(0), 3});
  return {dropped, noise, coins, normal};
}

void expect_same_tensors(const Value& a, const Value& b) {
  const std::vector<Tensor> left = tensors_in(a), right = tensors_in(b);
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) expect_equal(left[i], right[i]);
}

// A graph of copies of some nodes of another, with what they are made of: a function of the same inputs that
// gives them.
Graph copies_of(const Graph& from, const std::vector<std::string>& names) {
  Graph graph;
  std::unordered_map<const Node*, Value> copies;
  auto map = [&](Node& node) { return copies.at(&node); };
  for (const Node* input : from.placeholders()) copies.emplace(input, value_of(graph.node_copy(*input, map)));
  std::function<void(const Node&)> add = [&](const Node& node) {
    if (copies.contains(&node)) return;
    for (const Node* input : node.inputs()) add(*input);
    copies.emplace(&node, value_of(graph.node_copy(node, map)));
  };
  ValueList results;
  for (const std::string& name : names) {
    add(*from.find(name));
    results.push_back(copies.at(from.find(name)));
  }
  graph.output(Value::tuple(results));
  return graph;
}

TEST(GivenNumbers, ARunTellsWhereItBeganAndAnotherOneDrawsTheSame) {
  for (CaptureMode mode : kGivenModes) {
    GraphModule g = make_graph(many_draws, {.mode = mode})(ones({4, 5}));
    const Tensor x = ones({mode == CaptureMode::kSymbolic ? 7 : 4, 5});
    const RandomStream expected = next_random();
    const RunResult first = g.run({x});
    ASSERT_TRUE(first.random.has_value());
    EXPECT_EQ(first.random->seed, expected.seed);
    EXPECT_EQ(first.random->offset, expected.offset);
    const GeneratorState after = default_generator().state();
    EXPECT_GT(after.offset, expected.offset);
    rand({100});
    const GeneratorState now = default_generator().state();
    const RunResult again = g.run({x}, {.random = first.random});
    expect_same_tensors(again.value, first.value);
    EXPECT_EQ(default_generator().state(), now);
    EXPECT_EQ(again.random->offset, first.random->offset);
    // An interpreter, too, takes them from the open scope.
    RandomScope scope(*first.random);
    expect_same_tensors(Interpreter(g).run({x}), first.value);
  }
}

TEST(GivenNumbers, TheCallerSaysWhetherTheGeneratorGoesOn) {
  GraphModule g = make_graph(many_draws)(ones({4, 5}));
  const RandomStream given{123, 456};
  const GeneratorState before = default_generator().state();
  const RunResult still = g.run({ones({4, 5})}, {.random = given});
  EXPECT_EQ(default_generator().state(), before);
  const RunResult moving = g.run({ones({4, 5})}, {.random = given, .advances_generator = true});
  expect_same_tensors(still.value, moving.value);
  EXPECT_EQ(default_generator().offset(), before.offset + 20 + 20 + 20 + 20 + 12);
  EXPECT_EQ(default_generator().seed(), before.seed);
}

// d(x * mask * 2)/dx = dy * mask * 2, with the mask of the forward.
TEST(GivenNumbers, ABackwardGraphDrawsTheForwardsMask) {
  auto forward = [](const Tensor& x) {
    Tensor before = rand_like(x);
    auto [dropped, mask] = native_dropout(x, 0.5, true);
    return std::vector<Tensor>{dropped + before * 0, mask, rand_like(x)};
  };
  for (CaptureMode mode : kGivenModes) {
    GraphModule g = make_graph(forward, {.mode = mode})(ones({8, 8}));
    Graph graph;
    Node &x = graph.placeholder("x"), &dy = graph.placeholder("dy");
    x.meta() = g.graph().placeholders()[0]->meta();  // whose sizes the offsets are made of
    Node& dropout = graph.node_copy(*g.graph().find("native_dropout"), [&](Node&) { return value_of(x); });
    Node& mask = graph.call_function("operator.getitem", {value_of(dropout), 1});
    Node& half = graph.call_function("aten::mul.Tensor", {value_of(dy), value_of(mask)});
    Node& dx = graph.call_function("aten::mul.Tensor", {value_of(half), 2.0});
    graph.output(Value::tuple({value_of(dx), value_of(mask)}));
    EXPECT_EQ(graph.random_advance().to_string(), g.graph().random_advance().to_string());
    const GraphModule backward(std::move(graph));
    const Tensor input = ones({8, 8}), upstream = randn({8, 8});
    for (int step = 0; step < 3; ++step) {
      const RunResult run = g.run({input});
      rand({5});  // the program goes on
      const GeneratorState between = default_generator().state();
      const std::vector<Tensor> outputs = tensors_in(run.value);
      const std::vector<Tensor> gradients =
          tensors_in(backward.run({input, upstream}, {.random = run.random}).value);
      expect_equal(gradients[1], outputs[1]);
      expect_equal(gradients[0], upstream * outputs[1] * 2.0);
      EXPECT_EQ(default_generator().state(), between);
    }
  }
}

TEST(GivenNumbers, CopiesOfEveryKindOfDrawKeepTheirNumbers) {
  for (CaptureMode mode : kGivenModes) {
    GraphModule g = make_graph(many_draws, {.mode = mode})(ones({4, 5}));
    Graph reversed = copies_of(g.graph(), {"randn", "bernoulli", "rand_like_1"});
    EXPECT_EQ(reversed.find("rand_like_1")->meta().random_offset->to_string(),
              g.graph().find("rand_like_1")->meta().random_offset->to_string());
    reversed.find("rand_like_1")->move_before(*reversed.find("randn"));
    reversed.eliminate_dead_code(false);
    g.graph().eliminate_dead_code(/*random_is_impure=*/false);
    g.graph().find("randn")->move_before(*g.graph().find("native_dropout"));
    g.graph().legalize();
    const GraphModule other(std::move(reversed));
    const RunResult run = g.run({ones({4, 5})});
    const std::vector<Tensor> drawn = tensors_in(run.value);
    expect_same_tensors(other.run({ones({4, 5})}, {.random = run.random}).value,
                        Value::tuple({drawn[3], drawn[2], drawn[1]}));
  }
}

TEST(GivenNumbers, AGraphThatIsSplitDrawsAsAWhole) {
  auto f = [](const Tensor& x) { return std::vector<Tensor>{rand_like(x), bernoulli(x * 0.5), randn({3})}; };
  GraphModule whole = make_graph(f)(ones({6}));
  const GraphModule first(copies_of(whole.graph(), {"rand_like"})),
      second(copies_of(whole.graph(), {"bernoulli", "randn"}));
  const RunResult run = whole.run({ones({6})});
  const std::vector<Tensor> drawn = tensors_in(run.value);
  // Each part on its own stream of the default generator, or both on one that is given.
  const RunResult a = first.run({ones({6})}, {.random = run.random});
  const RunResult b = second.run({ones({6})}, {.random = a.random});
  expect_same_tensors(a.value, drawn[0]);
  expect_same_tensors(b.value, Value::tuple({drawn[1], drawn[2]}));
  const RunResult own = first.run({ones({6})});
  expect_same_tensors(second.run({ones({6})}, {.random = own.random}).value,
                      second.run({ones({6})}, {.random = own.random}).value);
}

TEST(GivenNumbers, JoinedGraphsDrawOneAfterTheOther) {
  for (CaptureMode mode : kGivenModes) {
    GraphModule g = make_graph([](const Tensor& x) { return rand_like(x); }, {.mode = mode})(ones({4}));
    Graph outer;
    Node& x = outer.placeholder("x");
    x.meta() = g.graph().placeholders()[0]->meta();
    const Value inputs[] = {value_of(x)};
    const Value first = outer.inline_graph(g.graph(), inputs), second = outer.inline_graph(g.graph(), inputs);
    outer.output(Value::tuple({first, second}));
    const GraphModule joined(std::move(outer));
    const RunResult run = joined.run({ones({4})}, {.random = RandomStream{9, 0}});
    RandomScope scope({9, 0});
    const Tensor one = rand({4}), two = rand({4});
    expect_same_tensors(run.value, Value::tuple({one, two}));
  }
}

// --- branches --------------------------------------------------------------------------------------------

std::vector<Tensor> branching(const Tensor& x) {
  Tensor first = rand_like(x);
  auto inner = [](const Tensor& t) {
    return func::cond(
        t.numel() > 2, [](const Tensor& u) { return dropout(u, 0.5, true); },
        [](const Tensor& u) { return u + 0; }, t);
  };
  auto yes = [inner](const Tensor& t) {
    Tensor noise = rand_like(t);
    return inner(t) + noise * 0.25 + bernoulli(t * 0.5) * 0.125;
  };
  auto no = [](const Tensor& t) { return t - randn({4, 4}); };
  Tensor chosen = func::cond(x.sum() > 0, yes, no, x);
  return {first, chosen};
}

TEST(GivenNumbers, BranchesDrawTheSameAgain) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(branching, {.mode = mode})(ones({4, 4}));
    const Node& cond = *g.graph().find("conditional");
    ASSERT_TRUE(cond.meta_or_null() && cond.meta_or_null()->random_offset);
    EXPECT_EQ(cond.meta_or_null()->random_offset->to_string(), "16");
    // Only the cond: its numbers begin where they began, though nothing is drawn before it.
    Graph only = copies_of(g.graph(), {"conditional"});
    const GraphModule branch(g, std::move(only));
    for (const Tensor& x : {ones({4, 4}), -ones({4, 4})}) {
      const RunResult run = g.run({x});
      const GeneratorState now = default_generator().state();
      expect_same_tensors(g.run({x}, {.random = run.random}).value, run.value);
      const Value again = branch.run({x}, {.random = run.random}).value;
      expect_equal(tensors_in(again.elements()[0])[0], tensors_in(run.value)[1]);
      EXPECT_EQ(default_generator().state(), now);
    }
  }
}

// A backward graph has a cond of its own, over graphs with copies of the forward's nodes.
TEST(GivenNumbers, ABackwardBranchDrawsTheForwardsMask) {
  auto f = [](const Tensor& x) {
    Tensor noise = rand_like(x);
    auto yes = [](const Tensor& t) {
      rand_like(t);
      return std::get<0>(native_dropout(t, 0.5, true));
    };
    Tensor chosen = func::cond(x.sum() > 0, yes, [](const Tensor& t) { return t * 1; }, x);
    return std::vector<Tensor>{noise, chosen};
  };
  for (CaptureMode mode : kGivenModes) {
    GraphModule g = make_graph(f, {.mode = mode})(ones({64}));
    const GraphModule forward_yes = *graph_module_in(g.find("true_graph_0"));
    Graph yes, no;
    Node& inside = yes.placeholder("t");
    inside.meta() = forward_yes.graph().placeholders()[0]->meta();
    Node& dropout =
        yes.node_copy(*forward_yes.graph().find("native_dropout"), [&](Node&) { return value_of(inside); });
    Node& dropped = yes.call_function("operator.getitem", {value_of(dropout), 0});
    yes.output(Value::tuple({value_of(dropped)}));
    Node& other = no.placeholder("t");
    no.output(Value::tuple({value_of(no.call_function("aten::clone", {value_of(other)}))}));
    Graph graph;
    Node& x = graph.placeholder("x");
    x.meta() = g.graph().placeholders()[0]->meta();
    Node& sum = graph.call_function("aten::sum", {value_of(x)});
    Node& positive = graph.call_function("aten::gt.Scalar", {value_of(sum), 0});
    Node &on_yes = graph.get_attr("yes"), &on_no = graph.get_attr("no");
    Node& cond =
        graph.call(operator_named("higher_order::cond"),
                   {value_of(positive), value_of(on_yes), value_of(on_no), Value::list({value_of(x)})});
    cond.meta().random_offset = g.graph().find("conditional")->meta().random_offset;
    graph.output(value_of(cond));
    const GraphModule backward({{"yes", Ref<ValueObject>(GraphModule(std::move(yes)).callable())},
                                {"no", Ref<ValueObject>(GraphModule(std::move(no)).callable())}},
                               std::move(graph));
    const Tensor input = full({mode == CaptureMode::kSymbolic ? 100 : 64}, 3.0);
    const RunResult run = g.run({input});
    rand({3});
    const GeneratorState now = default_generator().state();
    const Value again = backward.run({input}, {.random = run.random}).value;
    expect_equal(tensors_in(again)[0], tensors_in(run.value)[1]);
    EXPECT_EQ(default_generator().state(), now);
  }
}

TEST(GivenNumbers, WhatFollowsABranchDrawsBehindIt) {
  auto f = [](const Tensor& x) {
    Tensor chosen = func::cond(
        x.sum() > 0, [](const Tensor& t) { return rand_like(t); },
        [](const Tensor& t) { return rand_like(t) + rand_like(t); }, x);
    return std::vector<Tensor>{chosen, rand_like(x)};
  };
  GraphModule g = make_graph(f)(ones({4}));
  for (const Tensor& x : {ones({4}), -ones({4})}) {
    RandomScope scope({77, 5});
    const std::vector<Tensor> expected = f(x);
    const Value drawn = g.run({x}, {.random = RandomStream{77, 5}}).value;
    expect_same_tensors(drawn, Value::tuple({expected[0], expected[1]}));
  }
}

// --- around ----------------------------------------------------------------------------------------------

TEST(GivenNumbers, ThreadsFindTheirOwnAgain) {
  GraphModule g = make_graph(many_draws)(ones({30, 30}));
  const GraphModule again(copies_of(g.graph(), {"bernoulli", "rand_like_1"}));
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int call = 0; call < 10; ++call) {
        const RunResult run = g.run({ones({30, 30})});
        const std::vector<Tensor> drawn = tensors_in(run.value),
                                  copies =
                                      tensors_in(again.run({ones({30, 30})}, {.random = run.random}).value);
        same +=
            (copies[0] == drawn[2]).all().item().to_bool() && (copies[1] == drawn[1]).all().item().to_bool();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 40);
}

TEST(GivenNumbers, AreRefusedWhereOffsetsCannotBeTold) {
  GraphModule plain = make_graph(many_draws)(ones({4, 5}));
  EXPECT_ERROR(plain.run({ones({6, 5})}, {.random = RandomStream{1, 2}}),
               "input 0 has other sizes than at the capture");
  EXPECT_FALSE(plain.run({ones({6, 5})}).random.has_value());
  GraphModule symbolic = make_graph(many_draws, {.mode = CaptureMode::kSymbolic})(ones({4, 5}));
  Graph graph = copies_of(symbolic.graph(), {"bernoulli"});
  graph.placeholders()[0]->meta().value = Value();
  EXPECT_ERROR(GraphModule(std::move(graph)).run({ones({4, 5})}, {.random = RandomStream{1, 2}}),
               "the inputs do not tell the offset ");
  // A graph that draws nothing runs on anything.
  GraphModule quiet = make_graph([](const Tensor& x) { return x + 1; })(ones({4}));
  expect_equal(quiet.run({ones({9})}, {.random = RandomStream{1, 2}}).value.to_tensor(), full({9}, 2.0));
}

TEST(GivenNumbers, AFakeModeThatCallsDoNotMeetIsNone) {
  GraphModule g = make_graph([](const Tensor& x) {
    rand_like(x);
    return rand_like(x);
  })(ones({4}));
  g.graph().eliminate_dead_code(/*random_is_impure=*/false);
  const Tensor x = ones({4});
  const RandomStream given{3, 0};
  const Tensor expected = g.run({x}, {.random = given}).value.to_tensor();
  FakeMode mode;
  MaskScope real(~layer::kFake);
  expect_equal(g.run({x}, {.random = given}).value.to_tensor(), expected);
  const GeneratorState before = default_generator().state();
  g.call({x});
  EXPECT_EQ(default_generator().offset(), before.offset + 8);
}

TEST(GivenNumbers, StayUnderGradientsAndSubstitutions) {
  auto f = [](const Tensor& x) {
    rand_like(x);
    return (x * rand_like(x)).sum();
  };
  GraphModule g = make_graph(f)(ones({4}));
  g.graph().eliminate_dead_code(/*random_is_impure=*/false);
  auto from_seed = [](auto run) {
    auto scope = fork_rng();
    manual_seed(11);
    return run();
  };
  expect_equal(from_seed([&] { return func::grad([&](const Tensor& x) { return g(x); })(ones({4})); }),
               from_seed([&] { return func::grad(f)(ones({4})); }));
}

TEST(GivenNumbers, AGraphThatIsInlinedTwiceDrawsTwice) {
  GraphModule noise = make_graph([](const Tensor& x) { return rand_like(x); })(ones({4}));
  Graph graph;
  Node& x = graph.placeholder("x");
  Node &a = graph.call_module("noise", {value_of(x)}), &b = graph.call_module("noise", {value_of(x)});
  graph.output(Value::tuple({value_of(a), value_of(b)}));
  const GraphModule calls({{"noise", Ref<ValueObject>(noise.callable())}}, std::move(graph));
  const RandomStream given{5, 6};
  expect_same_tensors(inline_modules(calls).run({ones({4})}, {.random = given}).value,
                      calls.run({ones({4})}, {.random = given}).value);
}

}  // namespace
}  // namespace weft
