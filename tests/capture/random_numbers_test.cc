// A captured random call keeps its numbers: what a graph draws is what the program draws from the same seed,
// also after nodes were removed, moved or repeated.
#include <gtest/gtest.h>

#include <thread>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/trace.h"
#include "weft/func/control_flow.h"
#include "weft/func/func.h"
#include "weft/graph/interpreter.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::expect_equal;

constexpr CaptureMode kModes[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

// Two results of three draws; the first is used by nobody.
std::vector<Tensor> three_draws(const Tensor& x) {
  rand_like(x);
  Tensor noise = randn({x.size(0), 2});
  return {std::get<0>(native_dropout(x, 0.5, true)), noise};
}

struct Drawn {
  std::vector<Tensor> results;
  GeneratorState end;
};
template <typename F>
Drawn run_from(uint64_t seed, F f) {
  auto scope = fork_rng();
  manual_seed(seed);
  Drawn run{f(), {}};
  run.end = default_generator().state();
  return run;
}
Drawn run_graph(GraphModule g, const Tensor& x, uint64_t seed = 5) {
  return run_from(seed, [&] {
    std::vector<Tensor> results;
    const Value result = g.call({x});
    for (const Value& tensor : result.elements()) results.push_back(tensor.to_tensor());
    return results;
  });
}
void expect_same(const Drawn& run, const Drawn& expected) {
  ASSERT_EQ(run.results.size(), expected.results.size());
  for (size_t i = 0; i < run.results.size(); ++i) expect_equal(run.results[i], expected.results[i]);
  EXPECT_EQ(run.end, expected.end);
}

Node& find(Graph& graph, std::string_view name) {
  Node* node = graph.find(name);
  EXPECT_NE(node, nullptr) << name << " in\n" << graph.code();
  return *node;
}

TEST(RandomNumbers, AGraphDrawsWhatTheProgramDraws) {
  for (CaptureMode mode : kModes) {
    GraphModule g = make_graph(three_draws, {.mode = mode})(ones({3, 4}));
    for (const Tensor& x : {ones({3, 4}), ones({5, 4}), ones({6, 7})}) {
      const Drawn eager = run_from(5, [&] { return three_draws(x); });
      // Sizes that were numbers at the capture stay those numbers: there the program is another one.
      if (mode == CaptureMode::kSymbolic || x.size(0) == 3) expect_same(run_graph(g, x), eager);
    }
  }
}

TEST(RandomNumbers, OffsetsCountTheNumbersBefore) {
  GraphModule g = make_graph(three_draws, {.mode = CaptureMode::kSymbolic})(ones({3, 4}));
  auto offset = [&](std::string_view name) { return find(g.graph(), name).meta().random_offset.value(); };
  EXPECT_EQ(offset("rand_like").to_string(), "0");
  EXPECT_EQ(offset("randn").to_string(), "s0*s1");
  EXPECT_EQ(offset("native_dropout").to_string(), "s0*s1 + 2*s0");
  EXPECT_EQ(g.graph().random_advance().to_string(), "2*s0*s1 + 2*s0");
  EXPECT_FALSE(find(g.graph(), "getitem").meta().random_offset.has_value());
}

TEST(RandomNumbers, StayWhenAnUnusedDrawIsRemoved) {
  const Tensor x = ones({3, 4}), y = ones({6, 5});
  for (CaptureMode mode : kModes) {
    GraphModule g = make_graph(three_draws, {.mode = mode})(x);
    EXPECT_TRUE(g.graph().eliminate_dead_code(/*random_is_impure=*/false));
    EXPECT_EQ(g.graph().find("rand_like"), nullptr);
    expect_same(run_graph(g, x), run_from(5, [&] { return three_draws(x); }));
    if (mode == CaptureMode::kSymbolic)
      expect_same(run_graph(g, y), run_from(5, [&] { return three_draws(y); }));
  }
}

TEST(RandomNumbers, StayWhenDrawsAreReordered) {
  const Tensor x = ones({3, 4});
  GraphModule g = make_graph(three_draws)(x);
  find(g.graph(), "native_dropout").move_before(find(g.graph(), "rand_like"));
  expect_same(run_graph(g, x), run_from(5, [&] { return three_draws(x); }));
}

TEST(RandomNumbers, ARepeatedCallDrawsTheSame) {
  GraphModule g = make_graph([](const Tensor& x) { return rand_like(x) + rand_like(x) * 0; })(ones({4}));
  Graph& graph = g.graph();
  Node& drawn = find(graph, "rand_like");
  auto scope = graph.inserting_before(find(graph, "add"));
  Node& again = graph.node_copy(drawn, [](Node& input) { return value_of(input); });
  Node& difference = graph.call_function("aten::sub.Tensor", {value_of(drawn), value_of(again)});
  graph.output_node()->set_args({value_of(difference)});
  expect_equal(g(ones({4})), zeros({4}));
}

TEST(RandomNumbers, ANodeOfOnesOwnDrawsOtherNumbers) {
  GraphModule g = make_graph([](const Tensor& x) { return rand_like(x); })(ones({4}));
  Graph& graph = g.graph();
  Node& drawn = find(graph, "rand_like");
  auto scope = graph.inserting_before(drawn);
  Node& own = graph.call(drawn.target(), drawn.args(), drawn.kwargs());
  graph.output_node()->set_args({Value::tuple({value_of(own), value_of(drawn)})});
  const Drawn run = run_graph(g, ones({4}));
  const Drawn eager = run_from(5, [&] {
    Tensor first = rand({4});
    return std::vector<Tensor>{rand({4}), first};  // it comes after those that the capture knew
  });
  expect_same(run, eager);
}

TEST(RandomNumbers, CopiesAndTransformedGraphsKeepThem) {
  const Tensor x = ones({3, 4});
  GraphModule g = make_graph(three_draws)(x);
  g.graph().eliminate_dead_code(false);
  const Drawn eager = run_from(5, [&] { return three_draws(x); });
  expect_same(run_graph(GraphModule(g, g.graph().copy()), x), eager);
  expect_same(run_graph(Transformer(g).transform(), x), eager);
  const Drawn interpreted = run_from(5, [&] {
    const Value result = Interpreter(g).run({x});
    return std::vector<Tensor>{result.elements()[0].to_tensor(), result.elements()[1].to_tensor()};
  });
  expect_same(interpreted, eager);
  // A graph that becomes part of another draws after what was there.
  Graph outer;
  Node& input = outer.placeholder("x");
  input.meta() = g.graph().placeholders()[0]->meta();  // offsets are for inputs of these sizes
  const Value inputs[] = {value_of(input)};
  outer.inline_graph(g.graph(), inputs);
  const Value second = outer.inline_graph(g.graph(), inputs);
  outer.output(second);
  const Drawn twice = run_from(5, [&] {
    three_draws(x);
    return three_draws(x);
  });
  expect_same(run_graph(GraphModule(std::move(outer)), x), twice);
}

TEST(RandomNumbers, TransformingDrawsNothing) {
  GraphModule g = make_graph(three_draws)(ones({3, 4}));
  const GeneratorState before = default_generator().state();
  Transformer(g).transform();
  EXPECT_EQ(default_generator().state(), before);
  FakeMode mode;
  g.call({mode.fake_of(ones({3, 4}))});
  EXPECT_EQ(default_generator().state(), before);
}

TEST(RandomNumbers, CallsInARowDrawOn) {
  const Tensor x = ones({3, 4});
  GraphModule g = make_graph(three_draws)(x);
  const Drawn eager = run_from(9, [&] {
    std::vector<Tensor> all = three_draws(x), more = three_draws(x);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  });
  const Drawn graph = run_from(9, [&] {
    std::vector<Tensor> all;
    for (int call = 0; call < 2; ++call) {
      const Value result = g.call({x});
      for (const Value& tensor : result.elements()) all.push_back(tensor.to_tensor());
    }
    return all;
  });
  expect_same(graph, eager);
}

TEST(RandomNumbers, OtherSizesThanTheCapturesNeverShareNumbers) {
  GraphModule g =
      make_graph([](const Tensor& x) { return std::vector<Tensor>{rand_like(x), rand_like(x)}; })(ones({4}));
  const Tensor large = ones({100});
  const Drawn run = run_graph(g, large);
  expect_same(run, run_from(5, [&] { return std::vector<Tensor>{rand({100}), rand({100})}; }));
}

TEST(RandomNumbers, UnderVmapADrawIsForTheBatch) {
  auto f = [](const Tensor& x) { return rand_like(x) + rand_like(x); };
  GraphModule g = make_graph(f)(ones({4}));
  auto batched =
      func::vmap([&](const Tensor& x) { return g(x); }, {.randomness = func::Randomness::kDifferent});
  auto expected = func::vmap(f, {.randomness = func::Randomness::kDifferent});
  const Tensor x = ones({3, 4});
  expect_same(run_from(5, [&] { return std::vector<Tensor>{batched(x)}; }),
              run_from(5, [&] { return std::vector<Tensor>{expected(x)}; }));
}

TEST(RandomNumbers, AGeneratorOfOnesOwnIsLeftAlone) {
  Generator own(3);
  auto f = [&](const Tensor& x) {
    Tensor first = rand({2}, own);
    return std::vector<Tensor>{first, rand_like(x)};
  };
  GraphModule g = make_graph(f)(ones({4}));
  EXPECT_FALSE(find(g.graph(), "rand").meta().random_offset.has_value());
  const Drawn eager = run_from(5, [&] { return f(ones({4})); });
  own.manual_seed(3);
  own.advance(2);
  const Drawn graph = run_graph(g, ones({4}));
  expect_equal(graph.results[1], eager.results[1]);
  EXPECT_EQ(own.offset(), 4u);
}

TEST(RandomNumbers, BranchesThatDrawEndWhatIsKnown) {
  auto f = [](const Tensor& x) {
    Tensor first = rand_like(x);
    Tensor chosen = func::cond(
        x.sum() > 0, [](const Tensor& t) { return t * rand_like(t); },
        [](const Tensor& t) { return t + rand_like(t) + rand_like(t); }, x);
    return std::vector<Tensor>{first, chosen, rand_like(x)};
  };
  for (CaptureMode mode : kModes) {
    GraphModule g = make_graph(f, {.mode = mode})(ones({4}));
    for (const Tensor& x : {ones({4}), -ones({4})})
      expect_same(run_graph(g, x), run_from(5, [&] { return f(x); }));
    EXPECT_TRUE(find(g.graph(), "rand_like").meta().random_offset.has_value());
    EXPECT_FALSE(find(g.graph(), "rand_like_1").meta().random_offset.has_value());
  }
}

TEST(RandomNumbers, DropoutThatDropsNothingTakesNone) {
  auto f = [](const Tensor& x) {
    Tensor same = dropout(dropout(x, 0.5, false), 0.0, true);
    return std::vector<Tensor>{same + 0, dropout(x, 0.5, true), rand_like(x)};
  };
  for (bool pre_dispatch : {false, true})
    for (CaptureMode mode : kModes) {
      GraphModule g = make_graph(f, {.mode = mode, .pre_dispatch = pre_dispatch})(ones({3, 4}));
      g.graph().eliminate_dead_code(false);
      expect_same(run_graph(g, ones({3, 4})), run_from(5, [&] { return f(ones({3, 4})); }));
    }
}

TEST(RandomNumbers, TracesKeepThem) {
  auto f = [](const Tensor& x) {
    Tensor y = dropout(x, 0.5, true);
    return std::vector<Tensor>{y, rand_like(x)};
  };
  const Tensor x = ones({3, 4});
  auto traced = trace(f, {x}, {.check_trace = false});
  const Drawn eager = run_from(5, [&] { return f(x); });
  const Drawn graph = run_from(5, [&] {
    const Value result = traced.call({x});
    return std::vector<Tensor>{result.elements()[0].to_tensor(), result.elements()[1].to_tensor()};
  });
  expect_same(graph, eager);
}

TEST(RandomNumbers, ThreadsThatRunOneGraphDrawDifferentNumbers) {
  GraphModule g = make_graph([](const Tensor& x) { return std::vector<Tensor>{rand_like(x), rand_like(x)}; })(
      ones({1000}));
  std::vector<std::vector<Tensor>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn)
    threads.emplace_back([&] {
      for (int call = 0; call < 20; ++call) {
        const Value result = g.call({ones({1000})});
        for (const Value& tensor : result.elements()) mine.push_back(tensor.to_tensor());
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<float> firsts;
  for (const auto& mine : drawn)
    for (const Tensor& tensor : mine) firsts.push_back(tensor.data<float>()[0]);
  std::sort(firsts.begin(), firsts.end());
  EXPECT_EQ(std::adjacent_find(firsts.begin(), firsts.end()), firsts.end());
}

}  // namespace
}  // namespace weft
