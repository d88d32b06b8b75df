// Optimised execution of traces: the same bits as without it, values and gradients, on programs of many
// kinds.
#include "weft/capture/optimized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/random_programs.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/trace.h"
#include "weft/func/func.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::expect_equal;
using testing::RandomProgram;
using Tensors = std::vector<Tensor>;

Tensors list_of(const Value& result) {
  Tensors all;
  if (result.is_tensor()) return {result.to_tensor()};
  for (const Value& element : result.elements()) all.push_back(element.to_tensor());
  return all;
}

Tensors with_inputs(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Outcome {
  Tensors results, inputs, gradients;
  std::vector<bool> sharing;
};

// Runs a trace on copies of the inputs, of which those in `wanted` ask for gradients.
Outcome run(const TracedFunction& traced, const Tensors& inputs, unsigned wanted, bool optimized) {
  OptimizedExecution scope(optimized);
  manual_seed(7);
  Outcome outcome;
  Tensors leaves;
  ValueList given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor own = inputs[i].clone();
    if (wanted >> i & 1) leaves.push_back(own.set_requires_grad());
    // What the program writes to must be no leaf.
    outcome.inputs.push_back(wanted >> i & 1 ? own * 1 : own);
    given.emplace_back(outcome.inputs.back());
  }
  outcome.results = list_of(traced.call(given));
  for (const Tensor& a : outcome.results)
    for (const Tensor& b : with_inputs(outcome.results, outcome.inputs))
      outcome.sharing.push_back(a.storage() == b.storage());
  Tensor loss = zeros({}, kFloat64);
  for (size_t i = 0; i < outcome.results.size(); ++i)
    if (outcome.results[i].requires_grad())
      loss = loss + (outcome.results[i] * (0.3 + static_cast<double>(i))).exp().sum();
  if (loss.requires_grad()) outcome.gradients = autograd::grad({loss}, leaves, {}, {.allow_unused = true});
  return outcome;
}

void expect_same_bits(const Tensors& got, const Tensors& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].defined(), wanted[i].defined()) << what << " " << i;
    if (!got[i].defined()) continue;
    EXPECT_EQ(got[i].requires_grad(), wanted[i].requires_grad()) << what << " " << i;
    EXPECT_TRUE(testing::close(got[i], wanted[i], 0, 0)) << what << " " << i;
  }
}

void expect_same(const TracedFunction& traced, const Tensors& inputs) {
  for (unsigned wanted = 0; wanted < 1u << inputs.size(); ++wanted) {
    SCOPED_TRACE(fmt::format("gradients of {:b}", wanted));
    Outcome plain = run(traced, inputs, wanted, false), fast = run(traced, inputs, wanted, true);
    expect_same_bits(fast.results, plain.results, "result");
    expect_same_bits(fast.inputs, plain.inputs, "input");
    expect_same_bits(fast.gradients, plain.gradients, "gradient");
    EXPECT_EQ(fast.sharing, plain.sharing);
  }
}

size_t calls_in(const GraphModule& module) {
  size_t count = 0;
  for (const Node& node : module.graph()) count += node.target().op() != nullptr;
  return count;
}

Tensors two_inputs() { return {testing::ramp({4, 6}), testing::ramp({4, 6}, 0.5, 2)}; }

TEST(OptimizedExecution, KeepsTheBitsOfProgramsThatRepeatThemselves) {
  using F = std::function<Value(const Tensor&, const Tensor&)>;
  Tensor constant = testing::ramp({6});
  const F programs[] = {
      [](const Tensor& a, const Tensor& b) { return Value((a * b).tanh() * 0.7 + (a * b).tanh().sin()); },
      [](const Tensor& a, const Tensor& b) { return Value::tuple({a * b, a * b, (a * b).t()}); },
      [](const Tensor& a, const Tensor& b) {
        return Value::tuple({a.exp(), a.exp().sum() + b, b.sum() / a.size(0)});
      },
      [&](const Tensor& a, const Tensor& b) {
        return Value((a + constant) * (constant.exp() + constant.exp()) - b);
      },
      [](const Tensor& a, const Tensor& b) {
        return Value(dropout(a, 0.5, true) + dropout(a, 0.5, true) * b);
      },
      [](const Tensor& a, const Tensor& b) {
        Tensor t = a * 2;
        t.select(0, 1).mul_(b.select(0, 1));
        return Value::tuple({t, a * 2, t.sum() * (a * 2).sum()});
      },
      [](const Tensor& a, const Tensor& b) { return Value(matmul(a, b.t()).softmax(1) + matmul(a, b.t())); },
  };
  for (const F& program : programs) {
    SCOPED_TRACE(&program - programs);
    auto f = [&](const Tensor& a, const Tensor& b) { return program(a, b); };
    expect_same(trace_function([&](Args given) { return f(given[0].to_tensor(), given[1].to_tensor()); },
                               Value::tuple({two_inputs()[0], two_inputs()[1]}), {.check_trace = false}),
                two_inputs());
  }
}

TEST(OptimizedExecution, KeepsTheBitsAndTheSharingOfRandomPrograms) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    RandomProgram program(seed, seed % 2 == 0, true);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.to_string()));
    auto f = [&](Args given) {
      Tensors results = program({given[0].to_tensor(), given[1].to_tensor()});
      return Value::tuple({results.begin(), results.end()});
    };
    Tensors inputs = two_inputs();
    TracedFunction traced =
        trace_function(f, Value::tuple({inputs[0].clone(), inputs[1].clone()}), {.check_trace = false});
    try {
      run(traced, inputs, 3, false);
    } catch (const Error& error) {
      // A program that writes over what its own derivative needs.
      ASSERT_THAT(error.what(), ::testing::HasSubstr("modified by an inplace operation"));
      continue;
    }
    ++compared;
    expect_same(traced, inputs);
  }
  EXPECT_GT(compared, 100);
}

// --- what runs -------------------------------------------------------------------------------------------

Tensor twice(const Tensor& a, const Tensor& b) { return (a * b).tanh() + (a * b).tanh(); }

TEST(OptimizedExecution, MergesWhereNoGradientFlows) {
  Tensors in = two_inputs();
  TracedFunction traced = trace(twice, Value::tuple({in[0], in[1]}));
  EXPECT_EQ(calls_in(traced.graph_module()), 5u);
  EXPECT_EQ(calls_in(traced.graph_for({in[0], in[1]})), 3u);
  Tensor leaf = in[0].clone().set_requires_grad();
  EXPECT_EQ(calls_in(traced.graph_for({leaf, in[1]})), 5u);
  {
    NoGrad no_grad;
    EXPECT_EQ(calls_in(traced.graph_for({leaf, in[1]})), 3u);
  }
  EXPECT_EQ(calls_in(traced.graph_module()), 5u);  // the trace itself stays what it is
}

struct ReturnsWhatItKeeps : nn::Module {
  Tensor weight = parameter("weight", testing::ramp({3}));
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {x.relu(), x.relu() * weight}; }
  WEFT_ARGS(x)
};

TEST(OptimizedExecution, ResultsMayBeWrittenToBeforeTheGradient) {
  ReturnsWhatItKeeps net;
  Tensor x = ones({3}, kFloat64);
  Value results = trace(net, x).call({x});
  results.elements()[0].to_tensor().add_(1);
  expect_equal(autograd::grad({results.elements()[1].to_tensor().sum()}, {net.weight})[0], x);
}

struct Scale : nn::Module {
  Tensor weight = parameter("weight", testing::ramp({6}));
  Tensor forward(const Tensor& x) { return x * weight + x * weight; }
  WEFT_ARGS(x)
};

TEST(OptimizedExecution, FollowsChangesOfGraphAndTensors) {
  Tensor x = testing::ramp({4, 6});
  TracedModule traced = trace(Scale(), x);
  NoGrad no_grad;
  EXPECT_EQ(calls_in(traced.graph_for({x})), 2u);
  Tensor before = traced(x);
  traced.set_attribute("weight", full({6}, 3.0, kFloat64));
  expect_equal(traced(x), x * 6);
  traced.load_state_dict({{"weight", full({6}, 5.0, kFloat64)}});
  expect_equal(traced(x), x * 10);
  for (Node& node : traced.graph())
    if (node.name() == "add") node.set_target(operator_named("aten::sub.Tensor"));
  expect_equal(traced(x), x * 0);
}

TEST(OptimizedExecution, GivesWayToWhoeverWatches) {
  Tensors in = two_inputs();
  TracedFunction traced = trace(twice, Value::tuple({in[0], in[1]}));
  GraphModule again =
      make_graph([&](const Tensor& a, const Tensor& b) { return traced(a, b); })(in[0], in[1]);
  EXPECT_EQ(calls_in(again), 5u);
  auto f = [&](const Tensor& a) { return traced(a, in[1]).sum(); };
  Tensor leaf = in[0].clone().set_requires_grad();
  expect_equal(func::grad(f)(in[0]), autograd::grad({twice(leaf, in[1]).sum()}, {leaf})[0]);
}

TEST(OptimizedExecution, IsAMatterOfTheScope) {
  EXPECT_TRUE(OptimizedExecution::is_on());
  {
    OptimizedExecution off(false);
    EXPECT_FALSE(OptimizedExecution::is_on());
    {
      OptimizedExecution on(true);
      EXPECT_TRUE(OptimizedExecution::is_on());
    }
    EXPECT_FALSE(OptimizedExecution::is_on());
  }
  EXPECT_TRUE(OptimizedExecution::is_on());
}

}  // namespace
}  // namespace weft
