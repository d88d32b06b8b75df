#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/optim.h"

namespace weft {
namespace {

using testing::close;
using testing::values;
using testing::vec;

// PyTorch 2.13: p = [1, -2], loss = sum(p^3 / 3), 3 steps each.
TEST(OptimTest, SgdMatchesPyTorch) {
  Tensor p = vec({1, -2}).set_requires_grad();
  optim::SGD sgd({p}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  for (int i = 0; i < 3; ++i) {
    sgd.zero_grad();
    (pow(p, 3) / 3).sum().backward();
    sgd.step();
  }
  // w: the recurrence written out.
  double w[2] = {1, -2}, m[2] = {0, 0};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 2; ++k) {
      double g = w[k] * w[k] + 0.01 * w[k];
      m[k] = i == 0 ? g : 0.9 * m[k] + g;
      w[k] -= 0.1 * m[k];
    }
  EXPECT_TRUE(close(p.detach(), vec({w[0], w[1]})));
}

TEST(OptimTest, AdamWMovesByTheSignAtFirst) {
  Tensor p = vec({1, -2}).set_requires_grad();
  optim::AdamW adam({p}, {.lr = 0.1, .weight_decay = 0});
  (p * vec({3, -5})).sum().backward();
  adam.step();
  EXPECT_TRUE(close(p.detach(), vec({0.9, -1.9}), 1e-6));
  EXPECT_ERROR(optim::SGD({}), "empty parameter list");
}

// Four steps up or down the same slopes; the numbers are PyTorch 2.13's.
TEST(OptimTest, OptionsMatchPyTorch) {
  auto after = [](auto make) {
    Tensor p = vec({1, -2, 3}).set_requires_grad();
    auto optimizer = make(p);
    for (int i = 0; i < 4; ++i) {
      optimizer.zero_grad();
      (p * p * vec({1, 2, -0.5}) * (i + 1)).sum().backward();
      optimizer.step();
    }
    return p.detach();
  };
  EXPECT_TRUE(close(after([](const Tensor& p) { return optim::AdamW({p}, {.lr = 0.1, .amsgrad = true}); }),
                    vec({0.6030551983060047, -1.601657972359206, 3.3742329837457072}), 1e-12));
  EXPECT_TRUE(close(after([](const Tensor& p) {
                      return optim::AdamW(
                          {p}, {.lr = 0.1, .weight_decay = 0.3, .amsgrad = true, .maximize = true});
                    }),
                    vec({1.2532422796265044, -2.140737425774676, 2.2817195315167558}), 1e-12));
  EXPECT_TRUE(close(after([](const Tensor& p) {
                      return optim::SGD({p},
                                        {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .maximize = true});
                    }),
                    vec({7.70112231, -47.391916619999996, -0.9180200700000005}), 1e-12));
}

TEST(OptimTest, AdamWStepsOnPartsOfComplexNumbers) {
  for (bool amsgrad : {false, true}) {
    Tensor p = from_data(std::vector<Complex<double>>{{1, 2}, {-0.5, 0.25}}).set_requires_grad();
    optim::AdamW adam({p}, {.lr = 0.1, .amsgrad = amsgrad});
    for (int i = 0; i < 3; ++i) {
      adam.zero_grad();
      p.abs().pow(2).sum().backward();
      adam.step();
    }
    EXPECT_TRUE(close(view_as_real(p.detach()).view({4}),
                      vec({0.6989112, 1.6949446, -0.2037124, -0.03056596}), 1e-6));
  }
}

TEST(OptimTest, RefusesWhatCannotBeMeant) {
  Tensor p = vec({1, -2}).set_requires_grad();
  EXPECT_ERROR(optim::SGD({p}, {.momentum = -1}), "Invalid momentum value: -1");
  EXPECT_ERROR(optim::SGD({p}, {.weight_decay = -1}), "Invalid weight_decay value: -1");
  EXPECT_ERROR(optim::AdamW({p}, {.eps = -1}), "Invalid epsilon value: -1");
  EXPECT_ERROR(optim::AdamW({p, Tensor()}), "can't optimize parameter 1: it is an undefined tensor");
  EXPECT_ERROR(optim::AdamW({p, p}), "parameter 1, f64[2], is there twice");
  EXPECT_ERROR(optim::SGD({p * 2}), "can't optimize a non-leaf Tensor");
}

// Five steps of two parameters; the numbers are PyTorch 2.13's.
struct TwoParameters {
  Tensor p = vec({1, -2, 3}).set_requires_grad();
  Tensor q = vec({0.5, -0.25}).view({1, 2}).detach().set_requires_grad();

  void train(optim::Optimizer& optimizer, int first = 0, int last = 5) const {
    for (int i = first; i < last; ++i) {
      optimizer.zero_grad();
      ((p * p * vec({1, 2, -0.5})).sum() * (i + 1) + (q * q * q).sum() * (i + 1)).backward();
      optimizer.step();
    }
  }
  Tensor now() const { return cat({p.detach(), q.detach().view({2})}); }
};

template <typename Optimizer, typename Options>
Tensor after_five_steps(Options options) {
  TwoParameters two;
  Optimizer optimizer({two.p, two.q}, options);
  two.train(optimizer);
  return two.now();
}

TEST(OptimTest, SgdWithEveryOptionMatchesPyTorch) {
  using Options = optim::SgdOptions;
  EXPECT_TRUE(close(after_five_steps<optim::SGD>(
                        Options{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
                    vec({-0.2584308657157062, -0.12368649094660636, 13.522510075113512, -0.08123647544835126,
                         -1.3814182029597948}),
                    1e-12));
  EXPECT_TRUE(close(after_five_steps<optim::SGD>(Options{.lr = 0.05, .momentum = 0.8, .dampening = 0.3}),
                    vec({-0.26666216000000015, 0.8065177600000002, 7.00329367875, 0.05277373884125462,
                         -0.5472009788396058}),
                    1e-12));
  EXPECT_TRUE(close(after_five_steps<optim::SGD>(Options{.lr = 0.01, .weight_decay = 0.2, .maximize = true}),
                    vec({1.323280461732768, -3.4709894290431365, 2.548392145288704, 0.627792389563882,
                         -0.22195634531854697}),
                    1e-12));
}

TEST(OptimTest, AdamWithEveryOptionMatchesPyTorch) {
  using Options = optim::AdamOptions;
  EXPECT_TRUE(close(after_five_steps<optim::Adam>(Options{.lr = 0.1}),
                    vec({0.5071691652190011, -1.511066790498284, 3.4826788640983564, 0.018431867160369375,
                         -0.6958222850118392}),
                    1e-12));
  const Options all{
      .lr = 0.1, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-3, .weight_decay = 0.3, .amsgrad = true};
  EXPECT_TRUE(close(after_five_steps<optim::Adam>(all),
                    vec({0.4938850520289529, -1.495691401650945, 3.494415285905346, 0.026488381339126607,
                         -0.7122937465136302}),
                    1e-12));
  EXPECT_TRUE(close(after_five_steps<optim::Adam>(Options{.lr = 0.1, .maximize = true}),
                    vec({1.4783296875286427, -2.481534052401703, 2.512375188710581, 0.9604879003437913,
                         0.17861110223293875}),
                    1e-12));
  EXPECT_TRUE(close(after_five_steps<optim::AdamW>(optim::AdamWOptions{
                        .lr = 0.1, .beta1 = 0.8, .beta2 = 0.99, .weight_decay = 0.3, .amsgrad = true}),
                    vec({0.382379874310662, -1.2419303178854073, 3.048467103205725, -0.004073746115023105,
                         -0.6598970534981707}),
                    1e-12));
}

TEST(OptimTest, AdamWInSinglePrecisionMatchesPyTorch) {
  Tensor p = vec({1, -2, 3}).to(kFloat32).set_requires_grad();
  optim::AdamW adam({p}, {.lr = 0.1});
  for (int i = 0; i < 10; ++i) {
    adam.zero_grad();
    (p * p * p).sum().backward();
    adam.step();
  }
  EXPECT_EQ(p.dtype(), kFloat32);
  EXPECT_TRUE(close(p.detach(), vec({0.14541219174861908, -2.9914703369140625, 2.0072929859161377}), 1e-6));
}

TEST(OptimTest, GroupsHaveOptionsOfTheirOwn) {
  TwoParameters two;
  optim::SGD optimizer({{{two.p}, {.lr = 0.01}}, {{two.q}, {.lr = 0.2, .momentum = 0.9}}});
  EXPECT_EQ(optimizer.group_count(), 2u);
  EXPECT_EQ(optimizer.lr(1), 0.2);
  EXPECT_EQ(optimizer.options(1).momentum, 0.9);
  EXPECT_TRUE(optimizer.parameters(1)[0].is_same(two.q));
  two.train(optimizer);
  EXPECT_TRUE(close(two.now(),
                    vec({0.732243456, -1.044578304, 3.476183256, -1.6268755037041716, -32.33043546937694}),
                    1e-12));
}

TEST(OptimTest, ParametersOfTwoGroupsAreMovedTwice) {
  TwoParameters two;
  EXPECT_ERROR(optim::SGD({{{two.p}, {}}, {{two.q, two.p}, {}}}), "parameter 1, f64[3], is there twice");
  optim::SGD optimizer({two.p});
  EXPECT_ERROR(optimizer.add_group({{two.p}, {}}), "is there twice");
  EXPECT_ERROR(optimizer.add_group({{two.q}, {.lr = -1}}), "Invalid learning rate: -1");
  EXPECT_EQ(optimizer.group_count(), 1u);
  optimizer.add_group({{two.q}, {.lr = 0.5}});
  EXPECT_EQ(optimizer.lr(1), 0.5);
  EXPECT_ERROR(optimizer.lr(2), "there is no parameter group 2; the optimizer has 2");
  EXPECT_ERROR(optimizer.parameters(2), "there is no parameter group 2; the optimizer has 2");
}

TEST(OptimTest, LearningRateMayChangeBetweenSteps) {
  Tensor p = vec({1, -2, 3}).set_requires_grad();
  optim::AdamW adam({p}, {.lr = 0.1});
  for (int i = 0; i < 4; ++i) {
    if (i == 2) adam.set_lr(0.01);
    adam.zero_grad();
    (p * p).sum().backward();
    adam.step();
  }
  EXPECT_TRUE(close(p.detach(), vec({0.778635204937106, -1.7760228715474105, 2.773718573540566}), 1e-12));
  EXPECT_ERROR(adam.set_lr(-0.1), "Invalid learning rate: -0.1");
  adam.options().eps = -1;
  EXPECT_ERROR(adam.step(), "Invalid epsilon value: -1");
}

TEST(OptimTest, AnOptionThatNeedsStateMayBeSwitchedOnLater) {
  TwoParameters two;
  optim::Adam adam({two.p, two.q}, {.lr = 0.1});
  two.train(adam, 0, 2);
  adam.options().amsgrad = true;
  two.train(adam, 2, 3);
  EXPECT_EQ(adam.state_dict()[3].first, "state.0.max_exp_avg_sq");
}

// --- state -----------------------------------------------------------------------------------------------

template <typename Optimizer, typename Options>
void expect_to_go_on_from_its_state(Options options, size_t tensors) {
  TwoParameters whole, first;
  Optimizer straight({whole.p, whole.q}, options), before({first.p, first.q}, options);
  whole.train(straight);
  first.train(before, 0, 3);
  const optim::NamedTensors state = before.state_dict();
  EXPECT_EQ(state.size(), tensors);

  TwoParameters second;
  NoGrad no_grad;
  second.p.copy_(first.p);
  second.q.copy_(first.q);
  Optimizer after({second.p, second.q});
  after.load_state_dict(state);
  GradModeScope with_grad(true);
  second.train(after, 3, 5);
  EXPECT_TRUE(close(second.now(), whole.now(), 0, 0));
  // What was saved is a copy: the first optimizer goes on by itself.
  first.train(before, 3, 5);
  EXPECT_TRUE(close(first.now(), whole.now(), 0, 0));
}

TEST(OptimState, TrainingGoesOnFromIt) {
  expect_to_go_on_from_its_state<optim::SGD>(optim::SgdOptions{.lr = 0.05}, 2 + 7);
  expect_to_go_on_from_its_state<optim::SGD>(
      optim::SgdOptions{.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.1}, 4 + 7);
  expect_to_go_on_from_its_state<optim::Adam>(optim::AdamOptions{.lr = 0.1, .weight_decay = 0.1}, 6 + 8);
  expect_to_go_on_from_its_state<optim::AdamW>(optim::AdamWOptions{.lr = 0.1, .amsgrad = true}, 8 + 8);
}

TEST(OptimState, NamesAreCountedOverAllGroups) {
  TwoParameters two;
  optim::SGD optimizer({{{two.p}, {.lr = 0.01}}, {{two.q}, {.lr = 0.2, .momentum = 0.9, .nesterov = true}}});
  two.train(optimizer, 0, 1);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state_dict()) names.push_back(name);
  EXPECT_THAT(names, ::testing::ElementsAre(
                         "state.0.step", "state.1.step", "state.1.momentum_buffer", "param_groups.0.lr",
                         "param_groups.0.momentum", "param_groups.0.dampening", "param_groups.0.weight_decay",
                         "param_groups.0.nesterov", "param_groups.0.maximize", "param_groups.0.params",
                         "param_groups.1.lr", "param_groups.1.momentum", "param_groups.1.dampening",
                         "param_groups.1.weight_decay", "param_groups.1.nesterov", "param_groups.1.maximize",
                         "param_groups.1.params"));
  optim::SGD other({{{two.p}, {}}, {{two.q}, {}}});
  other.load_state_dict(optimizer.state_dict());
  EXPECT_EQ(other.lr(0), 0.01);
  EXPECT_TRUE(other.options(1).nesterov);
  EXPECT_FALSE(other.options(0).nesterov);
}

TEST(OptimState, ErrorsListAllThatIsWrongAndChangeNothing) {
  TwoParameters two;
  optim::SGD source({two.p}, {.lr = 0.5, .momentum = 0.9});
  two.train(source, 0, 1);
  optim::NamedTensors state = source.state_dict();

  optim::SGD one_more({two.p, two.q});
  EXPECT_ERROR(one_more.load_state_dict(state), "group 0 has 2 parameters, that of the state 1");
  optim::SGD of_other_size({two.q}, {.lr = 0.25});
  state.emplace_back("state.0.exp_avg", ones({3}));
  EXPECT_ERROR(
      of_other_size.load_state_dict(state),
      "state.0.momentum_buffer is f64[3], its parameter f64[1, 2]\n  state.0.exp_avg is not known here");
  EXPECT_EQ(of_other_size.lr(), 0.25);
  EXPECT_EQ(of_other_size.options().momentum, 0);
  optim::Adam adam({two.p});
  EXPECT_ERROR(adam.load_state_dict(source.state_dict()), "param_groups.0.beta1 is missing");
  state.clear();
  for (const auto& [name, tensor] : source.state_dict())
    if (name != "state.0.momentum_buffer")
      state.emplace_back(name, name == "param_groups.0.lr" ? full({}, -1) : tensor);
  EXPECT_ERROR(optim::SGD({two.p}).load_state_dict(state), "Invalid learning rate: -1");
  std::erase_if(state, [](const auto& entry) { return entry.first == "param_groups.0.lr"; });
  state.emplace_back("param_groups.0.lr", ones({2}));
  EXPECT_ERROR(optim::SGD({two.p}).load_state_dict(state),
               "param_groups.0.lr is f32[2]; expected one number");
}

// --- update rules ----------------------------------------------------------------------------------------

// One graph, whose inputs are learning rate and step, does what the optimizer does step by step.
template <typename Options>
void expect_one_graph_for_every_step(Options options, int nodes_at_least) {
  const size_t kept = optim::state_names(options).size();
  auto rule = [&](const Tensor& p, const Tensor& g, const std::vector<Tensor>& state, const Tensor& lr,
                  const Tensor& step) {
    optim::Updated next = optim::updated(options, p, g, state, lr, step);
    next.state.insert(next.state.begin(), next.parameter);
    return next.state;
  };
  const Tensor like = vec({1, -2, 3});
  const std::vector<Tensor> start(kept, zeros_like(like));
  const Tensor count = ones({}, kFloat32), rate = full({}, 0.1, kFloat64);
  GraphModule graph = make_graph(rule)(like, like, start, rate, count);
  EXPECT_GE(graph.graph().size(), static_cast<size_t>(nodes_at_least));

  Tensor eager = vec({1, -2, 3}).set_requires_grad(), captured = like;
  std::vector<Tensor> state = start;
  optim::OptimizerOf<Options> optimizer({eager}, options);
  for (int i = 0; i < 4; ++i) {
    const double lr = 0.1 / (i + 1);
    const Tensor gradient = captured * captured * vec({1, 2, -0.5});
    eager.set_grad(gradient);
    optimizer.set_lr(lr);
    optimizer.step();
    const Value next =
        graph.call({captured, gradient, to_value(state), full({}, lr, kFloat64), full({}, i + 1, kFloat32)});
    state = from_value<std::vector<Tensor>>(next);
    captured = state[0];
    state.erase(state.begin());
    EXPECT_TRUE(close(captured, eager.detach(), 0, 0)) << i;
  }
}

TEST(UpdateRule, IsOneGraphForEveryStep) {
  expect_one_graph_for_every_step(optim::SgdOptions{.weight_decay = 0.1, .maximize = true}, 5);
  expect_one_graph_for_every_step(optim::SgdOptions{.momentum = 0.8, .dampening = 0.3}, 8);
  expect_one_graph_for_every_step(optim::SgdOptions{.momentum = 0.8, .nesterov = true}, 8);
  expect_one_graph_for_every_step(optim::AdamOptions{.weight_decay = 0.1, .amsgrad = true}, 20);
  expect_one_graph_for_every_step(optim::AdamWOptions{.maximize = true}, 20);
}

TEST(UpdateRule, WritesToNothing) {
  const Tensor p = vec({1, -2}), g = vec({0.5, 2}), mean = vec({1, 1}), square = vec({2, 2});
  const uint32_t version = p.storage()->version() + g.storage()->version() + mean.storage()->version() +
                           square.storage()->version();
  optim::updated(optim::AdamWOptions{}, p, g, {mean, square}, full({}, 0.1), ones({}));
  EXPECT_EQ(p.storage()->version() + g.storage()->version() + mean.storage()->version() +
                square.storage()->version(),
            version);
}

TEST(UpdateRule, NamesTheStateThatItKeeps) {
  EXPECT_ERROR(optim::updated(optim::AdamOptions{.amsgrad = true}, vec({1}), vec({1}), {vec({0})},
                              full({}, 0.1), ones({})),
               "an update got 1 tensors of state, but keeps 3: [exp_avg, exp_avg_sq, max_exp_avg_sq]");
}

}  // namespace
}  // namespace weft
