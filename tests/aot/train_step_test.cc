#include "weft/aot/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/base/allocator.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/layers.h"
#include "weft/nn/lr_scheduler.h"
#include "weft/ops/autocast.h"
#include "weft/ops/functions.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a network for images has: statistics, a mask, a parameter that nothing uses, one that is used twice.
struct Net : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 4, 3, {.padding = 1}));
  nn::BatchNorm2d norm = child("norm", nn::BatchNorm2d(4));
  nn::Dropout drop = child("drop", nn::Dropout(0.3));
  nn::Linear shared = child("shared", nn::Linear(16, 16));
  nn::Linear unused = child("unused", nn::Linear(2, 2));
  nn::Linear head = child("head", nn::Linear(16, 3));

  Tensor forward(Tensor x) {
    x = relu(norm(conv(x)));
    x = flatten(x, 2).mean({1});
    x = drop(shared(relu(shared(x))));
    return head(x);
  }
  WEFT_ARGS(x)
};

Tensor loss_of(const Tensor& scores, const Tensor& y) { return cross_entropy_loss(scores, y); }

struct Batch {
  Tensor x, y;
};
std::vector<Batch> batches(int count, int64_t size = 8) {
  Generator numbers(7);
  std::vector<Batch> all;
  for (int i = 0; i < count; ++i) {
    Tensor x = empty({size, 1, 4, 4}), y = empty({size}, kInt64);
    RandomStream stream = numbers.reserve(static_cast<uint64_t>(size) * 17);
    for (int64_t k = 0; k < size * 16; ++k)
      x.data<float>()[k] =
          static_cast<float>(stream.integer_below(static_cast<uint64_t>(k), 2001)) / 1000 - 1;
    for (int64_t k = 0; k < size; ++k)
      y.data<int64_t>()[k] =
          static_cast<int64_t>(stream.integer_below(static_cast<uint64_t>(size * 16 + k), 3));
    all.push_back({x, y});
  }
  return all;
}

void expect_same_bits(const nn::NamedTensors& got, const nn::NamedTensors& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, wanted[i].first);
    EXPECT_EQ(got[i].second.dtype(), wanted[i].second.dtype()) << got[i].first;
    EXPECT_TRUE(equal(got[i].second, wanted[i].second)) << got[i].first;
  }
}

template <typename Optimizer>
Tensor eager_step(Net& net, Optimizer& optimizer, const Batch& batch) {
  optimizer.zero_grad();
  Tensor loss = loss_of(net(batch.x), batch.y);
  loss.backward();
  optimizer.step();
  return loss.detach();
}

Net made_net() {
  manual_seed(3);
  return Net();
}

// Ten steps of both, with a schedule, from equal seeds; all that is left must be equal.
template <typename Optimizer, typename Options>
void expect_ten_equal_steps(const Options& options, TrainStepOptions step_options = {}) {
  Net eager = made_net(), compiled = made_net();
  Optimizer eager_optimizer(eager.parameters(), options), optimizer(compiled.parameters(), options);
  optim::StepLR eager_schedule(eager_optimizer, {.step_size = 3, .gamma = 0.5}),
      schedule(optimizer, {.step_size = 3, .gamma = 0.5});
  const std::vector<Batch> data = batches(10);
  manual_seed(11);
  std::vector<Tensor> eager_losses;
  for (const Batch& batch : data) {
    eager_losses.push_back(eager_step(eager, eager_optimizer, batch));
    eager_schedule.step();
  }
  manual_seed(11);
  TrainStep step = aot_train_step(compiled, loss_of, optimizer, step_options);
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(equal(step(data[i].x, data[i].y), eager_losses[i])) << "loss " << i;
    schedule.step();
  }
  expect_same_bits(compiled.state_dict(), eager.state_dict());
  expect_same_bits(optimizer.state_dict(), eager_optimizer.state_dict());
  EXPECT_FALSE(compiled.head.weight.grad().defined());
  verify(step.graph());
}

TEST(TrainStep, TenStepsAreEagersWithSgd) {
  expect_ten_equal_steps<optim::SGD>(optim::SgdOptions{.lr = 0.1});
  expect_ten_equal_steps<optim::SGD>(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.1});
  expect_ten_equal_steps<optim::SGD>(
      optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true});
}
TEST(TrainStep, TenStepsAreEagersWithAdam) {
  expect_ten_equal_steps<optim::Adam>(optim::AdamOptions{.lr = 1e-2, .weight_decay = 1e-2});
  expect_ten_equal_steps<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2});
  expect_ten_equal_steps<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2, .amsgrad = true, .maximize = true});
}
TEST(TrainStep, WhatIsComputedAgainIsTheSame) {
  expect_ten_equal_steps<optim::AdamW>(optim::AdamWOptions{.lr = 1e-2},
                                       {.partitioner = aot::min_cut_partitioner()});
}

TEST(TrainStep, SchedulesMayMoveTheMomentumToo) {
  Net eager = made_net(), compiled = made_net();
  const optim::SgdOptions options{.lr = 0.1, .momentum = 0.9, .nesterov = true};
  optim::SGD eager_optimizer(eager.parameters(), options), optimizer(compiled.parameters(), options);
  const optim::OneCycleLrOptions cycle{.max_lr = 0.2, .total_steps = 6};
  optim::OneCycleLR eager_schedule(eager_optimizer, cycle), schedule(optimizer, cycle);
  TrainStep step = aot_train_step(compiled, loss_of, optimizer, {.momentum_is_input = true});
  const std::vector<Batch> data = batches(5);
  manual_seed(5);
  for (const Batch& batch : data) {
    eager_step(eager, eager_optimizer, batch);
    eager_schedule.step();
  }
  manual_seed(5);
  for (const Batch& batch : data) {
    step(batch.x, batch.y);
    schedule.step();
  }
  expect_same_bits(compiled.state_dict(), eager.state_dict());
  optimizer.options().nesterov = false;
  EXPECT_ERROR(step(data[0].x, data[0].y),
               "compiled for nesterov = 1 in group 0 of the optimizer, but it is 0");
}

TEST(TrainStep, AMomentumOfZeroKeepsOtherState) {
  Net net = made_net();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.5});
  TrainStep step = aot_train_step(net, loss_of, optimizer, {.momentum_is_input = true}),
            fixed = aot_train_step(net, loss_of, optimizer);
  const Batch batch = batches(1)[0];
  fixed(batch.x, batch.y);
  optimizer.set_momentum(0.25, 0);
  step(batch.x, batch.y);
  EXPECT_ERROR(fixed(batch.x, batch.y),
               "a momentum of 0.5 in group 0 of the optimizer, but it is 0.25 now; make a step with "
               "momentum_is_input = true");
  optimizer.set_momentum(0, 0);
  EXPECT_ERROR(step(batch.x, batch.y),
               "was compiled for a momentum of 0.25 in group 0 of the optimizer, but it is 0 now, and other "
               "state is kept");
}

TEST(TrainStep, AdamsMomentumIsAnInput) {
  Net eager = made_net(), compiled = made_net();
  optim::AdamW eager_optimizer(eager.parameters(), {.lr = 1e-2}),
      optimizer(compiled.parameters(), {.lr = 1e-2});
  TrainStep step = aot_train_step(compiled, loss_of, optimizer, {.momentum_is_input = true});
  const std::vector<Batch> data = batches(3);
  manual_seed(5);
  for (size_t i = 0; i < data.size(); ++i) {
    eager_optimizer.set_momentum(0.9 - 0.02 * static_cast<double>(i), 0);
    eager_step(eager, eager_optimizer, data[i]);
  }
  manual_seed(5);
  for (size_t i = 0; i < data.size(); ++i) {
    optimizer.set_momentum(0.9 - 0.02 * static_cast<double>(i), 0);
    step(data[i].x, data[i].y);
  }
  expect_same_bits(optimizer.state_dict(), eager_optimizer.state_dict());
  expect_same_bits(compiled.state_dict(), eager.state_dict());
}

// Eager and compiled steps in turns, with a state that was saved and loaded between them.
TEST(TrainStep, CanBeMixedWithEagerStepsAndLoadedStates) {
  Net eager = made_net(), mixed = made_net(), other = made_net(), untrained = made_net();
  optim::AdamW eager_optimizer(eager.parameters(), {.lr = 1e-2}), optimizer(mixed.parameters(), {.lr = 1e-2});
  TrainStep step = aot_train_step(mixed, loss_of, optimizer);
  const std::vector<Batch> data = batches(6);
  manual_seed(5);
  for (const Batch& batch : data) eager_step(eager, eager_optimizer, batch);
  manual_seed(5);
  for (size_t i = 0; i < data.size(); ++i) {
    if (i % 2) eager_step(mixed, optimizer, data[i]);
    else step(data[i].x, data[i].y);
    if (i != 3) continue;
    other.load_state_dict(mixed.state_dict());
    mixed.load_state_dict(untrained.state_dict());
    mixed.load_state_dict(other.state_dict());
    optim::AdamW other_optimizer(other.parameters(), {.lr = 7});
    other_optimizer.load_state_dict(optimizer.state_dict());
    optimizer.load_state_dict(other_optimizer.state_dict());
  }
  expect_same_bits(mixed.state_dict(), eager.state_dict());
  expect_same_bits(optimizer.state_dict(), eager_optimizer.state_dict());
}

TEST(TrainStep, AStateThatWasTakenBeforeStaysAsItWas) {
  Net net = made_net();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  TrainStep step = aot_train_step(net, loss_of, optimizer);
  const std::vector<Batch> data = batches(2);
  step(data[0].x, data[0].y);
  const nn::NamedTensors taken = optimizer.state_dict();
  nn::NamedTensors copies;
  for (const auto& [name, tensor] : taken) copies.emplace_back(name, clone(tensor));
  step(data[1].x, data[1].y);
  expect_same_bits(taken, copies);
}

TEST(TrainStep, GroupsHaveOptionsAndRatesOfTheirOwn) {
  auto train = [](bool is_compiled) {
    Net net = made_net();
    optim::SGD optimizer({{{net.conv.weight, net.conv.bias}, {.lr = 0.1, .momentum = 0.5}},
                          {{net.head.weight, net.head.bias, net.unused.weight}, {.lr = 0.01}}});
    optim::LambdaLR schedule(optimizer, [](int64_t epoch) { return 1.0 / static_cast<double>(epoch + 1); });
    TrainStep step = aot_train_step(net, loss_of, optimizer);
    manual_seed(5);
    for (const Batch& batch : batches(4)) {
      if (is_compiled) step(batch.x, batch.y);
      else eager_step(net, optimizer, batch);
      schedule.step();
    }
    nn::NamedTensors all = net.state_dict();
    for (const auto& entry : optimizer.state_dict()) all.push_back(entry);
    return all;
  };
  expect_same_bits(train(true), train(false));
}

TEST(TrainStep, FrozenParametersStayAndCostNothing) {
  Net net = made_net();
  net.conv.requires_grad(false);
  const Tensor before = clone(net.conv.weight);
  optim::AdamW optimizer(net.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(net, loss_of, optimizer);
  const Batch batch = batches(1)[0];
  step(batch.x, batch.y);
  EXPECT_TRUE(equal(net.conv.weight, before));
  EXPECT_THAT(step.graph().code(), Not(HasSubstr("convolution_backward")));
  EXPECT_THAT(step.graph().code(), Not(HasSubstr("unused_weight_exp_avg")));
  net.conv.requires_grad(true);
  EXPECT_ERROR(
      step(batch.x, batch.y),
      "while parameter 'conv.weight' did not require a gradient, but now it does; make another step");
}

TEST(TrainStep, OtherBatchesThanItWasCompiledForAreErrorsThatNameThem) {
  Net net = made_net();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(net, loss_of, optimizer);
  EXPECT_ERROR(step.graph(), "was not compiled yet");
  const Batch batch = batches(1)[0], small = batches(1, 5)[0];
  step(batch.x, batch.y);
  EXPECT_ERROR(
      step(small.x, small.y),
      "compiled for f32[8, 1, 4, 4] as 'x', but got f32[5, 1, 4, 4]; make another step for it, or one with "
      "dynamic = true");
  EXPECT_ERROR(step(batch.x, small.y), "for i64[8] as 'target', but got i64[5]");
  EXPECT_ERROR(step(batch.x), "another batch than it was compiled for");
  EXPECT_ERROR(step.call({batch.x, 3}), "compiled for a tensor as 'target', but got an integer");
  EXPECT_ERROR(step(transpose(batch.x, 2, 3), batch.y), "make it contiguous");
  EXPECT_ERROR(step(clone(batch.x).set_requires_grad(), batch.y), "'x' of the step requires a gradient");
  EXPECT_ERROR(step.compile_for({batch.x, batch.y}), "compiled once");
}

TEST(TrainStep, SymbolicSizesHoldForOtherBatches) {
  Net eager = made_net(), compiled = made_net();
  optim::SGD eager_optimizer(eager.parameters(), {.lr = 0.1}), optimizer(compiled.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(compiled, loss_of, optimizer, {.dynamic = true});
  for (int64_t size : {8, 5, 13}) {
    const Batch batch = batches(1, size)[0];
    manual_seed(2);
    const Tensor wanted = eager_step(eager, eager_optimizer, batch);
    manual_seed(2);
    EXPECT_TRUE(equal(step(batch.x, batch.y), wanted)) << size;
  }
  expect_same_bits(compiled.state_dict(), eager.state_dict());
  EXPECT_ERROR(step(batches(1, 8)[0].x, batches(1, 5)[0].y),
               "s0 is 8, size(0) of input 0; s3 is 5, size(0) of input 1");
}

// That the example has as many rows as columns is no promise.
TEST(TrainStep, SymbolicSizesThatAreEqualByChanceAreTwo) {
  nn::Linear model(4, 1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  auto loss = [](const Tensor& got, const Tensor& wanted) { return mse_loss(got, wanted); };
  TrainStep step = aot_train_step(model, loss, optimizer, {.dynamic = true});
  for (int64_t rows : {4, 7, 3}) {
    const Tensor x = randn({rows, 4}), y = randn({rows, 1});
    const Tensor wanted = mse_loss(model(x), y).detach();
    EXPECT_TRUE(testing::close(step(x, y), wanted, 1e-6, 1e-6)) << rows;
  }
}

TEST(TrainStep, ALossMayCallTheModelItself) {
  Net eager = made_net(), compiled = made_net();
  auto penalised = [](Net& net, const Tensor& x, const Tensor& y) {
    return cross_entropy_loss(net(x), y) + (net.head.weight * net.head.weight).sum() * 0.1;
  };
  optim::SGD eager_optimizer(eager.parameters(), {.lr = 0.1}), optimizer(compiled.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(compiled, penalised, optimizer);
  for (const Batch& batch : batches(2)) {
    manual_seed(2);
    eager_optimizer.zero_grad();
    Tensor loss = penalised(eager, batch.x, batch.y);
    loss.backward();
    eager_optimizer.step();
    manual_seed(2);
    EXPECT_TRUE(equal(step(batch.x, batch.y), loss.detach()));
  }
  expect_same_bits(compiled.state_dict(), eager.state_dict());
}

TEST(TrainStep, GivesAllThatTheLossFunctionReturns) {
  Net net = made_net();
  net.eval();
  optim::SGD optimizer(net.parameters(), {.lr = 0.1});
  auto with_scores = [](const Tensor& scores, const Tensor& y) {
    return std::tuple{cross_entropy_loss(scores, y), scores};
  };
  TrainStep step = aot_train_step(net, with_scores, optimizer);
  const Batch batch = batches(1)[0];
  const Tensor wanted = net(batch.x).detach();
  auto [loss, scores] = from_value<std::tuple<Tensor, Tensor>>(step.call({batch.x, batch.y}));
  EXPECT_TRUE(equal(scores, wanted));
  EXPECT_FALSE(scores.requires_grad() || loss.requires_grad());
  net.train();
  EXPECT_ERROR(step(batch.x, batch.y), "in evaluation mode, but it is in training mode now");
}

TEST(TrainStep, RefusesWhatCannotBeTrained) {
  Net net = made_net(), other = made_net();
  const Batch batch = batches(1)[0];
  auto step_of = [&](auto loss, optim::Optimizer& optimizer) {
    aot_train_step(net, loss, optimizer)(batch.x, batch.y);
  };
  optim::SGD optimizer(net.parameters(), {.lr = 0.1}), of_other(other.parameters(), {.lr = 0.1});
  EXPECT_ERROR(step_of([](const Tensor& s, const Tensor&) { return s; }, optimizer),
               "is one number, but the loss function gives f32[8, 3]; reduce it with mean() or sum()");
  EXPECT_ERROR(step_of([](const Tensor&, const Tensor&) { return 1.0; }, optimizer),
               "gives the loss, a tensor of one number, first; but this one gives a real number");
  EXPECT_ERROR(step_of([](const Tensor& s, const Tensor&) { return s.detach().sum(); }, optimizer),
               "depends on no parameter that requires a gradient");
  EXPECT_ERROR(step_of(loss_of, of_other),
               "parameter 0 of group 0 of the optimizer, f32[4, 1, 3, 3], is none of the model's 10");
  optim::SGD of_unused({net.unused.weight}, {.lr = 0.1});
  EXPECT_ERROR(step_of(loss_of, of_unused), "no parameter of the optimizer gets a gradient");
  net.requires_grad(false);
  EXPECT_ERROR(step_of(loss_of, optimizer), "no parameter of the model requires a gradient");
}

TEST(TrainStep, OptionsThatAreNoInputsMayNotChange) {
  Net net = made_net();
  optim::AdamW optimizer(net.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(net, loss_of, optimizer);
  const Batch batch = batches(1)[0];
  step(batch.x, batch.y);
  optimizer.options().weight_decay = 0.5;
  EXPECT_ERROR(step(batch.x, batch.y),
               "compiled for weight_decay = 0.01 in group 0 of the optimizer, but it is 0.5");
  optimizer.options().weight_decay = 0.01;
  step(batch.x, batch.y);
  net.to(kFloat64);
  EXPECT_ERROR(step(batch.x, batch.y), "for parameter 'conv.weight' as f32[4, 1, 3, 3]");
}

// Gradients that are parameters themselves must be taken before those move.
struct Product : nn::Module {
  Tensor a = parameter("a", full({2}, 2.0)), b = parameter("b", full({2}, 3.0));
  Tensor last = buffer("last", zeros({2}));
  Tensor forward(const Tensor& x) {
    {
      NoGrad no_grad;
      last.copy_(a);
    }
    return (a * b * x).sum();
  }
  WEFT_ARGS(x)
};

TEST(TrainStep, WritesOnlyAfterEverythingIsRead) {
  auto train = [](bool is_compiled) {
    Product net;
    optim::SGD optimizer(net.parameters(), {.lr = 0.5});
    TrainStep step = aot_train_step(net, [](const Tensor& loss) { return loss; }, optimizer);
    const Tensor x = ones({2});
    for (int i = 0; i < 3; ++i) {
      if (is_compiled) {
        step(x);
        continue;
      }
      optimizer.zero_grad();
      net(x).backward();
      optimizer.step();
    }
    return net.state_dict();
  };
  expect_same_bits(train(true), train(false));
}

TEST(TrainStep, BatchesMayBeWrittenTo) {
  Product net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.5});
  auto doubled = [](Product& net, const Tensor& x) {
    x.mul_(2);
    return net(x);
  };
  TrainStep step = aot_train_step(net, doubled, optimizer);
  Tensor x = ones({2});
  EXPECT_TRUE(equal(step(x), full({}, 24.0)));
  EXPECT_TRUE(equal(x, full({2}, 2.0)));
  EXPECT_ERROR(step(net.last), "'batch_0' shares memory with 'last', and the step writes to it");
}

TEST(TrainStep, ACompilerRunsTheGraph) {
  Product net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.5});
  std::vector<std::string> compiled;
  aot::reset_graph_counter();
  aot::Compiler compiler = [&](GraphModule& graph, const ValueList& examples) {
    compiled.push_back(aot::compilation_context().names[0]);
    EXPECT_EQ(examples.size(), graph.graph().placeholders().size());
    return aot::CompiledGraph::boxed([graph](ValueList inputs) { return graph.call(inputs).elements(); });
  };
  TrainStep step =
      aot_train_step(net, [](const Tensor& loss) { return loss; }, optimizer, {.compiler = compiler});
  step.compile_for({ones({2})});
  EXPECT_THAT(compiled, ::testing::ElementsAre("0_train_step"));
  EXPECT_TRUE(equal(net.a, full({2}, 2.0)));
  step(ones({2}));
  EXPECT_EQ(compiled.size(), 1u);
  // Everything is read before the first write; the learning rate and the counts are inputs.
  EXPECT_EQ(testing::code_of(step.graph()), R"(def forward(self, p_a, p_b, b_last, x, lr, a_step, b_step):
    copy = torch.ops.aten.copy.default(b_last, p_a)
    mul = torch.ops.aten.mul.Tensor(p_a, p_b)
    mul_1 = torch.ops.aten.mul.Tensor(mul, x);  mul = None
    sum_1 = torch.ops.aten.sum.default(mul_1);  mul_1 = None
    ones_like = torch.ops.aten.ones_like.default(sum_1)
    expand = torch.ops.aten.expand.default(ones_like, [2]);  ones_like = None
    mul_2 = torch.ops.aten.mul.Tensor(expand, x);  expand = x = None
    mul_3 = torch.ops.aten.mul.Tensor(mul_2, p_a)
    mul_4 = torch.ops.aten.mul.Tensor(mul_2, p_b);  mul_2 = None
    copy_ = torch.ops.aten.copy_.default(b_last, copy);  b_last = copy = copy_ = None
    add = torch.ops.aten.add.Tensor(a_step, 1)
    mul_5 = torch.ops.aten.mul.Tensor(mul_4, lr);  mul_4 = None
    sub = torch.ops.aten.sub.Tensor(p_a, mul_5);  mul_5 = None
    copy__1 = torch.ops.aten.copy_.default(p_a, sub);  p_a = sub = copy__1 = None
    copy__2 = torch.ops.aten.copy_.default(a_step, add);  a_step = add = copy__2 = None
    add_1 = torch.ops.aten.add.Tensor(b_step, 1)
    mul_6 = torch.ops.aten.mul.Tensor(mul_3, lr);  mul_3 = lr = None
    sub_1 = torch.ops.aten.sub.Tensor(p_b, mul_6);  mul_6 = None
    copy__3 = torch.ops.aten.copy_.default(p_b, sub_1);  p_b = sub_1 = copy__3 = None
    copy__4 = torch.ops.aten.copy_.default(b_step, add_1);  b_step = add_1 = copy__4 = None
    return [sum_1])");
}

// The gradient of `a` is the memory of `b`, which the first update must not change under it.
struct Aliased : autograd::Function<Aliased> {
  static Tensor forward(autograd::FunctionContext& context, const Tensor& a, const Tensor& b) {
    context.save_for_backward({b});
    return a.sum() + b.sum();
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& context, const std::vector<Tensor>&) {
    const Tensor b = context.saved_tensors()[0];
    return {b, b.view(-1)};
  }
};
TEST(TrainStep, GradientsThatAreParametersAreReadBeforeThoseMove) {
  auto train = [](bool is_compiled) {
    Product net;
    optim::SGD optimizer({net.b, net.a}, {.lr = 0.5});
    auto loss = [](Product& p) { return Aliased::apply(p.a, p.b); };
    TrainStep step = aot_train_step(net, loss, optimizer);
    for (int i = 0; i < 2; ++i) {
      if (is_compiled) {
        step();
        continue;
      }
      optimizer.zero_grad();
      loss(net).backward();
      optimizer.step();
    }
    return net.state_dict();
  };
  expect_same_bits(train(true), train(false));
}

struct Deep : nn::Module {
  nn::ModuleList<nn::Linear> layers = child("layers", make());
  static nn::ModuleList<nn::Linear> make() {
    nn::ModuleList<nn::Linear> layers;
    for (int i = 0; i < 8; ++i) layers.push_back(nn::Linear(16, 16));
    return layers;
  }
  Tensor forward(Tensor x) {
    for (auto& layer : layers) x = layer(x).cos().tanh().sin().exp().cos().tanh().sigmoid();
    return x;
  }
  WEFT_ARGS(x)
};

TEST(TrainStep, ComputingAgainTakesLessMemory) {
  Tensor x = randn({4096, 16});
  auto peak = [&](const aot::Partitioner& partitioner) {
    Deep net;
    optim::SGD optimizer(net.parameters(), {.lr = 0.01});
    TrainStep step = aot_train_step(net, [](const Tensor& y) { return y.mean(); }, optimizer,
                                    {.partitioner = partitioner});
    step(x);
    Allocator& memory = allocator_for(Device());
    const size_t before = memory.stats().bytes_in_use;
    memory.reset_peak();
    step(x);
    return static_cast<double>(memory.stats().peak_bytes - before);
  };
  const double all = peak(aot::default_partition), less = peak(aot::min_cut_partitioner());
  // Of five values a layer two are saved: what its matmul gave, and what that of the next one takes.
  EXPECT_LT(less, 0.6 * all);
}

// In eager mode the forward alone is under the casts; a compiled step is called under them.
TEST(TrainStep, CastsAreThoseOfTheForward) {
  Net eager = made_net(), compiled = made_net();
  optim::SGD eager_optimizer(eager.parameters(), {.lr = 0.1}), optimizer(compiled.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(compiled, loss_of, optimizer);
  for (const Batch& batch : batches(3)) {
    manual_seed(2);
    Tensor loss;
    {
      Autocast casts(kBFloat16);
      loss = loss_of(eager(batch.x), batch.y);
    }
    eager_optimizer.zero_grad();
    loss.backward();
    eager_optimizer.step();
    manual_seed(2);
    Autocast casts(kBFloat16);
    EXPECT_TRUE(equal(step(batch.x, batch.y), loss.detach()));
  }
  EXPECT_THAT(step.graph().code(), HasSubstr("torch.bfloat16"));
  expect_same_bits(compiled.state_dict(), eager.state_dict());
}

TEST(TrainStep, AStepThatFailsChangesNothing) {
  Net net = made_net();
  optim::AdamW optimizer(net.parameters(), {.lr = 0.1});
  TrainStep step = aot_train_step(net, loss_of, optimizer);
  const Batch batch = batches(1)[0];
  step(batch.x, batch.y);
  nn::NamedTensors before;
  for (const auto& [name, tensor] : net.state_dict()) before.emplace_back(name, clone(tensor));
  for (const auto& [name, tensor] : optimizer.state_dict()) before.emplace_back(name, clone(tensor));
  EXPECT_ERROR(step(batch.x, full({8}, 7, kInt64)), "Target 7 is out of bounds");
  nn::NamedTensors after = net.state_dict();
  for (const auto& entry : optimizer.state_dict()) after.push_back(entry);
  expect_same_bits(after, before);
}

TEST(TrainStep, SaysWhatItDoes) {
  Deep net;
  optim::SGD optimizer(net.parameters(), {.lr = 0.01, .momentum = 0.9});
  TrainStep step = aot_train_step(net, [](const Tensor& y) { return y.mean(); }, optimizer,
                                  {.partitioner = aot::min_cut_partitioner()});
  step(randn({32, 16}));
  const std::string text = step.explain();
  EXPECT_THAT(text,
              HasSubstr("moves 16 of 16 parameters, with 32 tensors of state; writes 0 of 0 buffers\n"));
  EXPECT_THAT(text, HasSubstr("saved addmm: 2048 bytes\n"));
  EXPECT_THAT(text, HasSubstr("recomputed cos\n"));
  // Parameters, the batch, and views of them are there anyway.
  for (const aot::SavedReport::Entry& entry : step.saved().saved)
    EXPECT_THAT(entry.name, ::testing::Not(::testing::AnyOf(::testing::StartsWith("p_"),
                                                            ::testing::StartsWith("t"), ::testing::Eq("x"))));
}

}  // namespace
}  // namespace weft
