// Random programs of nested control flow: run, captured in every mode for other data and sizes,
// functionalised, captured again, differentiated and batched, they give what plain C++ control flow gives.
#include <gtest/gtest.h>

#include <random>

#include "support/sanitizers.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/dispatch/layers.h"
#include "weft/func/control_flow.h"
#include "weft/func/functionalize.h"
#include "weft/nn/module.h"

namespace weft {
namespace {

using func::Tensors;
using testing::close;

// --- programs --------------------------------------------------------------------------------------------

enum class FlowKind : uint8_t {
  kUnary,
  kBinary,
  kParameter,
  kLiteral,
  kChangedLiteral,
  kWriteToCopy,
  kWriteToView,
  kHiddenWrite,
  kOuterSizes,
  kView,
  kInnerGradient,
  kInnerBatch,
  kFixedFactor,
  kNoGrad,  // the kinds from here on have blocks
  kCond,
  kMap,
  kScan,
  kWhile,
};
constexpr int kSimpleKinds = static_cast<int>(FlowKind::kNoGrad),
              kFlowKinds = static_cast<int>(FlowKind::kWhile) + 1;

struct FlowStep;
struct FlowBlock {
  std::vector<FlowStep> steps;
  std::vector<uint64_t> results;
};
struct FlowStep {
  FlowKind kind;
  uint64_t a, b, c;
  std::vector<FlowBlock> blocks;
};

class FlowMaker {
 public:
  explicit FlowMaker(uint64_t seed) : random_(seed) {}

  FlowBlock block(int depth, size_t max_steps) {
    FlowBlock made;
    for (size_t i = 0, n = 1 + random_() % max_steps; i < n; ++i) made.steps.push_back(step(depth));
    for (int i = 0; i < 4; ++i) made.results.push_back(random_());
    return made;
  }

 private:
  FlowStep step(int depth) {
    const bool nests = depth > 0 && random_() % 2;
    const int kind = nests ? kSimpleKinds + static_cast<int>(random_() % (kFlowKinds - kSimpleKinds))
                           : static_cast<int>(random_() % kSimpleKinds);
    FlowStep made{static_cast<FlowKind>(kind), random_(), random_(), random_(), {}};
    for (int i = 0; nests && i < 2; ++i) made.blocks.push_back(block(depth - 1, 3));
    return made;
  }

  std::mt19937_64 random_;
};

// All tensors of a program are of sizes [n, m], [m] or [], so that any two can be combined.
struct FlowScope {
  Tensors live;
  SymInt n, m;  // of the program's input: sizes that functions close over
  Tensor parameter;
  bool is_nested = false;  // in a function of control flow

  const Tensor& pick(uint64_t which) const { return live[which % live.size()]; }
  // One that has rows, and is no scalar.
  const Tensor& pick_rows(uint64_t which) const {
    for (size_t i = 0; i < live.size(); ++i)
      if (pick(which + i).dim() > 0) return pick(which + i);
    return live[0];
  }
  Tensor with_rank(Tensor tensor, int64_t rank) const {
    while (tensor.dim() > rank) tensor = tensor.sum({0});
    if (tensor.dim() == rank) return tensor;
    return rank == 1 ? tensor.expand({m}) : tensor.expand({n, m});
  }
};

void run_steps(const FlowBlock& block, FlowScope& scope);

// What a block gives for these operands: a tensor of each rank, perhaps an operand or a tensor from outside.
ValueList run_function(const FlowBlock& block, FlowScope scope, Args operands,
                       const std::vector<int64_t>& ranks) {
  scope.is_nested = true;
  for (const Value& operand : operands) scope.live.push_back(operand.to_tensor());
  run_steps(block, scope);
  ValueList results;
  for (size_t i = 0; i < ranks.size(); ++i)
    results.emplace_back(scope.with_rank(scope.pick(block.results[i % block.results.size()]), ranks[i]));
  return results;
}

Tensor pred_of(const Tensor& tensor, uint64_t which) {
  const Tensor sum = tensor.sum();
  return which % 2 ? sum > 0.1 : sum < 0.3;
}

Tensor alias_of(const Tensor& tensor) { return tensor.view(tensor.sizes()); }

void run_cond(const FlowStep& step, FlowScope& scope) {
  const Tensor x = scope.pick(step.a), y = step.c % 3 ? scope.pick(step.b) : alias_of(x);
  const std::vector<int64_t> ranks(1 + step.c % 3, x.dim());
  auto branch = [&](size_t i) {
    return [&block = step.blocks[i], scope, ranks](Args operands) {
      return Value::tuple(run_function(block, scope, operands, ranks));
    };
  };
  const Value results = func::cond(pred_of(scope.pick(step.c), step.b), branch(0), branch(1), {x, y});
  for (const Value& result : results.elements()) scope.live.push_back(result.to_tensor());
}

void run_map(const FlowStep& step, FlowScope& scope) {
  const Tensor xs = scope.pick_rows(step.a);
  const int64_t rank = xs.dim() - 1;
  auto body = [&block = step.blocks[0], scope, rank](Args operands) {
    return Value::tuple(run_function(block, scope, operands, {rank, 0}));
  };
  const Value over = step.c % 2 ? Value::tuple({xs, xs * 0.5}) : Value(xs);
  auto with_tree = [body, both = step.c % 2](Args operands) {
    if (!both) return body(operands);
    const ValueList rows = operands[0].elements();
    return body(std::vector<Value>{rows[0], rows[1], operands[1]});
  };
  const Value results = func::map(with_tree, over, {scope.pick(step.b)});
  scope.live.push_back(results.elements()[0].to_tensor());
  // One number for each row.
  scope.live.push_back(results.elements()[1].to_tensor().sum());
}

void run_scan(const FlowStep& step, FlowScope& scope) {
  const Tensor xs = scope.pick_rows(step.a), carry = scope.pick(step.b);
  const std::vector<int64_t> ranks{carry.dim(), 0, xs.dim() - 1};
  auto body = [&block = step.blocks[0], scope, ranks](Args operands) {
    const ValueList carried = operands[0].elements();
    const Value own[] = {carried[0], carried[1], operands[1]};
    const ValueList results = run_function(block, scope, own, ranks);
    return Value::tuple({Value::tuple({results[0], results[1]}), results[2]});
  };
  const Value results = func::scan(body, Value::tuple({carry, carry.sum()}), Value(xs));
  for (const Value& result : results.elements()[0].elements()) scope.live.push_back(result.to_tensor());
  scope.live.push_back(results.elements()[1].to_tensor());
}

void run_while(const FlowStep& step, FlowScope& scope) {
  const Tensor x = scope.pick(step.a), y = scope.pick(step.b);
  const std::vector<int64_t> ranks{x.dim(), y.dim()};
  auto more = [rounds = static_cast<int64_t>(step.c % 4), z = scope.pick(step.c)](Args carried) {
    const Tensor counts = carried[0].to_tensor() < rounds;
    return Value(counts.logical_and((carried[1].to_tensor().sum() + z.sum()).tanh() > -0.7));
  };
  auto round = [&block = step.blocks[0], scope, ranks](Args carried) {
    ValueList results = run_function(block, scope, carried.subspan(1), ranks);
    results.insert(results.begin(), carried[0].to_tensor() + 1);
    return Value::tuple(std::move(results));
  };
  const Value results = func::while_loop(more, round, {zeros({}, kInt64), x, y});
  scope.live.push_back(results.elements()[1].to_tensor());
  scope.live.push_back(results.elements()[2].to_tensor());
}

void run_simple(const FlowStep& step, FlowScope& scope) {
  const Tensor x = scope.pick(step.a), y = scope.pick(step.b);
  Tensor copy = (step.c % 2 ? x : x * 0.5).clone();
  switch (step.kind) {
    case FlowKind::kUnary:
      return scope.live.push_back(step.c % 2 ? x.sin() : x.tanh());
    case FlowKind::kBinary:
      return scope.live.push_back(step.c % 2 ? (x * y).tanh() : x - y);
    case FlowKind::kParameter:
      return scope.live.push_back(x * scope.parameter);
    case FlowKind::kLiteral:
      return scope.live.push_back((x * from_data<double>({0.5, -1.5}).sum()).sin());
    case FlowKind::kChangedLiteral: {
      // One that depends on an input would be refused under vmap, which has one copy of it for all examples;
      // a transform takes a literal of the function that it is given for a tensor from outside.
      Tensor literal = from_data<double>({0.25, 1});
      if (!scope.is_nested) literal = literal.clone();
      literal.mul_(0.5).add_(0.125);
      return scope.live.push_back((x * literal.select(0, static_cast<int64_t>(step.c % 2))).tanh());
    }
    case FlowKind::kWriteToCopy:
      copy.mul_(0.75).add_(scope.with_rank(y, 0));
      return scope.live.push_back(copy.tanh());
    case FlowKind::kWriteToView:
      if (copy.dim() > 0) copy.select(0, 0).add_(scope.with_rank(y, copy.dim() - 1).tanh());
      return scope.live.push_back(copy);
    case FlowKind::kHiddenWrite: {
      NoGrad off;
      copy.mul_(1.25);
    }
      return scope.live.push_back(copy);
    case FlowKind::kOuterSizes: {
      const Tensor wide = scope.with_rank(x.tanh(), 1) + ones({scope.n, scope.m}, kFloat64);
      return scope.live.push_back(wide / zeros({scope.n + 1, 2}, kFloat64).size(0));
    }
    case FlowKind::kView:
      return scope.live.push_back(step.c % 2 || x.dim() < 2 ? alias_of(x) : x.t().t());
    case FlowKind::kInnerGradient:
      return scope.live.push_back(
          func::grad([y](const Tensor& u) { return (u * u * y.tanh()).sum().sin(); })(x));
    case FlowKind::kInnerBatch:
      return scope.live.push_back(
          x.dim() == 0 ? x : func::vmap([y](const Tensor& u) { return u.sin() * y.sum().tanh(); })(x));
    default: {
      Tensor factor;
      {
        NoGrad off;
        factor = (x + y.sum()).cos();
      }
      return scope.live.push_back(x * factor);
    }
  }
}

void run_steps(const FlowBlock& block, FlowScope& scope) {
  for (const FlowStep& step : block.steps) switch (step.kind) {
      case FlowKind::kNoGrad: {
        // Plain control flow gives an operand back as it is, history included; an operator gives results
        // without one.
        const size_t before = scope.live.size();
        const NoGrad off;
        run_steps(step.blocks[0], scope);
        for (size_t i = before; i < scope.live.size(); ++i) scope.live[i] = scope.live[i].detach();
        break;
      }
      case FlowKind::kCond:
        run_cond(step, scope);
        break;
      case FlowKind::kMap:
        run_map(step, scope);
        break;
      case FlowKind::kScan:
        run_scan(step, scope);
        break;
      case FlowKind::kWhile:
        run_while(step, scope);
        break;
      default:
        run_simple(step, scope);
    }
}

// A function of tensors of [n, m] and [m] that gives one of each rank.
struct RandomFlow : nn::Module {
  explicit RandomFlow(uint64_t seed)
      : program(std::make_shared<const FlowBlock>(FlowMaker(seed).block(3, 5))) {}

  std::shared_ptr<const FlowBlock> program;
  Tensor scale = parameter("scale", full({}, 0.8, kFloat64));

  Tensors run(const Tensors& inputs) const {
    FlowScope scope{inputs, inputs[0].size(0), inputs[0].size(1), scale};
    run_steps(*program, scope);
    return {scope.with_rank(scope.pick(program->results[0]), 2),
            scope.with_rank(scope.pick(program->results[1]), 1),
            scope.with_rank(scope.pick(program->results[2]), 0)};
  }
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& v) const {
    const Tensors all = run({x, v});
    return {all[0], all[1], all[2]};
  }
  WEFT_ARGS(x, v)
};

// --- what they give --------------------------------------------------------------------------------------

constexpr uint64_t kPrograms = testing::kSanitized ? 24 : 300;

Tensors flow_inputs(int64_t n, int64_t m, double shift) {
  return {testing::ramp({n, m}, -1 + shift, 1), testing::ramp({m}, -1, 1 - shift)};
}

void expect_all_close(const Tensors& got, const Tensors& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(close(got[i], wanted[i], 1e-9, 1e-9)) << what << ", result " << i;
}

Tensors results_of(const GraphModule& graph, const Tensors& inputs) {
  GraphModule own = graph;
  const Value results = own.call(ValueList(inputs.begin(), inputs.end()));
  if (results.is_tensor()) return {results.to_tensor()};
  Tensors all;
  for (const Value& result : results.elements()) all.push_back(result.to_tensor());
  return all;
}

// Runs `check` on every program; an error names the program that made it.
void for_each_flow(FunctionRef<void(const RandomFlow&, const std::string&)> check, uint64_t every = 1) {
  for (uint64_t seed = 0; seed < kPrograms; seed += every) {
    const std::string what = fmt::format("program {}", seed);
    try {
      check(RandomFlow(seed), what);
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << ": " << error.what();
    }
  }
}

std::string in_mode(const std::string& what, CaptureMode mode) {
  return fmt::format("{}, mode {}", what, static_cast<int>(mode));
}
constexpr CaptureMode kFlowModes[] = {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic};

TEST(RandomControlFlow, GraphsHoldForOtherDataAndSizes) {
  for_each_flow([](const RandomFlow& flow, const std::string& what) {
    for (CaptureMode mode : kFlowModes) {
      const Tensors first = flow_inputs(3, 4, 0);
      // Without a symbol for its trip count, a while_loop has no gradient.
      const GradModeScope grad_mode(mode != CaptureMode::kFake);
      const GraphModule g = make_graph(flow, {.mode = mode})(first[0], first[1]);
      for (double shift : {0.0, -0.5, 0.5}) {
        const Tensors inputs = flow_inputs(3, 4, shift);
        expect_all_close(results_of(g, inputs), flow.run(inputs), in_mode(what, mode));
      }
      if (mode != CaptureMode::kSymbolic) continue;
      const Tensors inputs = flow_inputs(5, 2, 0.25);
      expect_all_close(results_of(g, inputs), flow.run(inputs), what + ", other sizes");
    }
  });
}

TEST(RandomControlFlow, GraphsCanBeCapturedAgain) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        const NoGrad off;  // a loop that keeps its rounds for a gradient is no function with a gradient again
        const Tensors first = flow_inputs(3, 4, 0), inputs = flow_inputs(3, 4, -0.5);
        const GraphModule g = make_graph(flow)(first[0], first[1]);
        for (CaptureMode mode : kFlowModes) {
          const GraphModule again = make_graph(g, {.mode = mode})(first[0], first[1]);
          expect_all_close(results_of(again, inputs), flow.run(inputs), in_mode(what, mode));
        }
      },
      3);
}

TEST(RandomControlFlow, FunctionalProgramsGiveTheSame) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        auto run = [&](const Tensors& own) { return flow.run(own); };
        const func::Transformed functional = func::functionalize(func::Fn(run));
        const Tensors first = flow_inputs(3, 4, 0), inputs = flow_inputs(3, 4, -0.5);
        expect_all_close(functional(inputs), flow.run(inputs), what);
        for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kSymbolic}) {
          const GraphModule g =
              make_graph(functional, {.mode = mode, .allow_real_inputs = true})(first[0], first[1]);
          expect_all_close(results_of(g, inputs), flow.run(inputs), in_mode(what, mode));
        }
      },
      2);
}

Tensor flow_loss(const Tensors& results) {
  Tensor loss = zeros({}, kFloat64);
  for (size_t i = 0; i < results.size(); ++i)
    loss = loss + (results[i].sin() * static_cast<double>(i + 1)).sum();
  return loss;
}

// Zeros where nothing depends on an input.
Tensors plain_gradients(const RandomFlow& flow, const Tensors& inputs) {
  Tensors own;
  for (const Tensor& input : inputs) own.push_back(input.detach().clone().set_requires_grad());
  const Tensor loss = flow_loss(flow.run(own));
  Tensors all;
  if (loss.requires_grad()) loss.backward();
  for (const Tensor& input : own)
    all.push_back(input.grad().defined() ? input.grad() : zeros_like(input).detach());
  return all;
}

TEST(RandomControlFlow, GradientsAreThoseOfPlainControlFlow) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        auto loss = [&](const Tensors& own) { return Tensors{flow_loss(flow.run(own))}; };
        const func::Transformed grad = func::grad(func::Fn(loss), {0, 1});
        const Tensors first = flow_inputs(3, 4, 0), inputs = flow_inputs(3, 4, -0.5);
        const Tensors wanted = plain_gradients(flow, inputs);
        expect_all_close(grad(inputs), wanted, what);
        const GraphModule g = make_graph(grad)(first[0], first[1]);
        expect_all_close(results_of(g, inputs), wanted, what + ", captured");
        const GraphModule symbolic =
            make_graph(grad, {.mode = CaptureMode::kSymbolic, .allow_real_inputs = true})(first[0], first[1]);
        const Tensors others = flow_inputs(5, 2, 0.25);
        expect_all_close(results_of(symbolic, others), plain_gradients(flow, others), what + ", other sizes");
      },
      3);
}

TEST(RandomControlFlow, BatchesAreLoopsOverExamples) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        auto run = [&](const Tensors& own) { return flow.run(own); };
        const func::Transformed batched = func::vmap(func::Fn(run));
        std::vector<Tensors> given(2), wanted(3);
        for (double shift : {-0.5, 0.0, 0.5}) {
          const Tensors inputs = flow_inputs(3, 4, shift), results = flow.run(inputs);
          for (size_t i = 0; i < 2; ++i) given[i].push_back(inputs[i]);
          for (size_t i = 0; i < 3; ++i) wanted[i].push_back(results[i]);
        }
        const Tensors batch{stack(given[0]), stack(given[1])};
        Tensors expected;
        for (const Tensors& results : wanted) expected.push_back(stack(results).detach());
        expect_all_close(batched(batch), expected, what);
        const GraphModule g = make_graph(batched)(batch[0] * 0.5, batch[1]);
        expect_all_close(results_of(g, batch), expected, what + ", captured");
      },
      3);
}

TEST(RandomControlFlow, TransformsNest) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        auto loss = [&](const Tensors& own) { return Tensors{flow_loss(flow.run(own))}; };
        const func::Transformed batched = func::vmap(func::grad(func::Fn(loss), {0, 1}));
        std::vector<Tensors> given(2), wanted(2);
        for (double shift : {-0.5, 0.0, 0.5}) {
          const Tensors inputs = flow_inputs(3, 4, shift), results = plain_gradients(flow, inputs);
          for (size_t i = 0; i < 2; ++i) given[i].push_back(inputs[i]);
          for (size_t i = 0; i < 2; ++i) wanted[i].push_back(results[i]);
        }
        const Tensors batch{stack(given[0]), stack(given[1])}, expected{stack(wanted[0]), stack(wanted[1])};
        expect_all_close(batched(batch), expected, what);
        const func::Transformed functional = func::functionalize(func::grad(func::Fn(loss), {0, 1}));
        const GraphModule g = make_graph(functional)(given[0][0], given[1][0]);
        expect_all_close(results_of(g, {given[0][2], given[1][2]}), {wanted[0][2], wanted[1][2]},
                         what + ", functional");
      },
      3);
}

TEST(RandomControlFlow, GraphsAboveAutogradAreDifferentiated) {
  for_each_flow(
      [](const RandomFlow& flow, const std::string& what) {
        const Tensors first = flow_inputs(3, 4, 0), inputs = flow_inputs(3, 4, -0.5);
        const GraphModule g = make_graph(flow, {.pre_dispatch = true})(first[0], first[1]);
        auto loss = [&](const Tensors& own) { return Tensors{flow_loss(results_of(g, own))}; };
        expect_all_close(func::grad(func::Fn(loss), {0, 1})(inputs), plain_gradients(flow, inputs), what);
      },
      3);
}

}  // namespace
}  // namespace weft
