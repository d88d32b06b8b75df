#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/nn/lr_scheduler.h"

namespace weft {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;
using testing::vec;

// The numbers of this file are PyTorch 2.13's, for a rate of 0.5 at the start.
struct Rates {
  Tensor p = vec({1}).set_requires_grad();
  optim::SGD optimizer{{p}, {.lr = 0.5, .momentum = 0.9}};
  std::vector<double> lr, momentum;

  void take(optim::LrScheduler& scheduler, int steps) {
    note();
    for (int i = 0; i < steps; ++i) {
      scheduler.step();
      note();
    }
  }
  void note() {
    lr.push_back(optimizer.lr());
    momentum.push_back(optimizer.momentum());
  }
};

MATCHER(NearlyEqual, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) < 1e-14; }

TEST(LrScheduler, StepLR) {
  Rates rates;
  optim::StepLR scheduler(rates.optimizer, {.step_size = 2, .gamma = 0.1});
  rates.take(scheduler, 5);
  EXPECT_THAT(rates.lr, Pointwise(NearlyEqual(), {0.5, 0.5, 0.05, 0.05, 0.005, 0.005}));
  EXPECT_EQ(scheduler.last_epoch(), 5);
  EXPECT_EQ(scheduler.last_lr(), (std::vector<double>{rates.optimizer.lr()}));
}

TEST(LrScheduler, CosineAnnealingLR) {
  Rates rates;
  optim::CosineAnnealingLR scheduler(rates.optimizer, {.t_max = 4, .eta_min = 0.05});
  rates.take(scheduler, 6);
  EXPECT_THAT(rates.lr, Pointwise(NearlyEqual(), {0.5, 0.4340990257669732, 0.275, 0.11590097423302684, 0.05,
                                                  0.1159009742330268, 0.275}));
}

TEST(LrScheduler, LambdaLRAndExponentialLR) {
  Rates rates;
  optim::LambdaLR lambda(rates.optimizer, [](int64_t epoch) { return 1.0 / static_cast<double>(1 + epoch); });
  rates.take(lambda, 3);
  EXPECT_THAT(rates.lr, Pointwise(NearlyEqual(), {0.5, 0.25, 0.16666666666666666, 0.125}));
  Rates others;
  optim::ExponentialLR exponential(others.optimizer, 0.9);
  others.take(exponential, 3);
  EXPECT_THAT(others.lr, Pointwise(NearlyEqual(), {0.5, 0.45, 0.405, 0.3645}));
}

TEST(LrScheduler, OneCycleLR) {
  Rates rates;
  optim::OneCycleLR scheduler(rates.optimizer, {.max_lr = 0.4, .total_steps = 8});
  rates.take(scheduler, 8);
  EXPECT_THAT(rates.lr,
              Pointwise(NearlyEqual(), {0.016000000000000014, 0.32771004195687686, 0.38877671095500926,
                                        0.3246982615799052, 0.22239360564908064, 0.11322439928347969,
                                        0.030656637533702562, 1.6e-06, 0.030656637533702537}));
  EXPECT_THAT(rates.momentum,
              Pointwise(NearlyEqual(),
                        {0.95, 0.8688255099070633, 0.8528058334845816, 0.8688255099070633, 0.8944017761948346,
                         0.9216941869558779, 0.9423362099614142, 0.95, 0.9423362099614142}));
  EXPECT_ERROR(scheduler.step(), "Tried to step 9 times. The specified number of total steps is 8");
}

TEST(LrScheduler, OneCycleLRAlongLines) {
  Rates rates;
  optim::OneCycleLR scheduler(
      rates.optimizer,
      {.max_lr = 0.4, .total_steps = 8, .pct_start = 0.5, .linear = true, .cycle_momentum = false});
  rates.take(scheduler, 7);
  EXPECT_THAT(rates.lr, Pointwise(NearlyEqual(), {0.016, 0.144, 0.272, 0.4, 0.3000004, 0.2000008, 0.1000012,
                                                  1.599999999990498e-06}));
  EXPECT_THAT(rates.momentum, ::testing::Each(0.9));
}

TEST(LrScheduler, EveryGroupGoesFromItsOwnRate) {
  Tensor p = vec({1}).set_requires_grad(), q = vec({2}).set_requires_grad();
  optim::AdamW optimizer({{{p}, {.lr = 1}}, {{q}, {.lr = 0.1}}});
  optim::StepLR scheduler(optimizer, {.step_size = 1, .gamma = 0.5});
  scheduler.step();
  EXPECT_THAT(scheduler.last_lr(), Pointwise(NearlyEqual(), {0.5, 0.05}));
  optimizer.add_group({{vec({3}).set_requires_grad()}, {}});
  EXPECT_ERROR(scheduler.step(), "the optimizer has 3 groups, but had 2 when its scheduler was made");
}

TEST(LrScheduler, GoesOnFromItsState) {
  Rates rates, others;
  optim::StepLR scheduler(rates.optimizer, {.step_size = 2, .gamma = 0.1});
  rates.take(scheduler, 3);
  others.optimizer.set_lr(7);
  optim::StepLR again(others.optimizer, {.step_size = 2, .gamma = 0.1});
  again.load_state_dict(scheduler.state_dict());
  EXPECT_EQ(others.optimizer.lr(), rates.optimizer.lr());
  again.step();
  scheduler.step();
  EXPECT_EQ(others.optimizer.lr(), rates.optimizer.lr());
  EXPECT_ERROR(again.load_state_dict({{"epoch", ones({})}}), "'epoch' is not known here");
  EXPECT_ERROR(again.load_state_dict({{"last_epoch", ones({})}}), "base_lrs is missing");
  EXPECT_ERROR(again.load_state_dict({{"last_epoch", ones({})}, {"base_lrs", ones({2})}}),
               "base_lrs is f32[2]; expected one number for each of the 1 groups");
}

TEST(LrScheduler, RefusesWhatCannotBeMeant) {
  Rates rates;
  EXPECT_ERROR(optim::StepLR(rates.optimizer, {.step_size = 0}), "step_size must be positive, but is 0");
  EXPECT_ERROR(optim::CosineAnnealingLR(rates.optimizer, {.t_max = 0}), "t_max must be positive, but is 0");
  EXPECT_ERROR(optim::OneCycleLR(rates.optimizer, {.total_steps = 3}), "max_lr must be positive, but is 0");
  EXPECT_ERROR(optim::OneCycleLR(rates.optimizer, {.max_lr = 1}), "total_steps must be positive, but is 0");
  EXPECT_ERROR(optim::OneCycleLR(rates.optimizer, {.max_lr = 1, .total_steps = 5, .pct_start = 2}),
               "pct_start must be between 0 and 1, but is 2");
  EXPECT_EQ(rates.optimizer.lr(), 0.5);
}

}  // namespace
}  // namespace weft
