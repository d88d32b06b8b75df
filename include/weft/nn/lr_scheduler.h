#pragma once

#include <functional>

#include "weft/nn/optim.h"

namespace weft::optim {

// Sets the learning rates of an optimizer: once when it is made, then whenever `step` is called, after the
// optimizer's own steps of an epoch (of a batch for OneCycleLR). Rates follow from those that the groups had
// at the start and the number of steps: one set by hand holds until the next step. The optimizer must outlive
// it.
class LrScheduler {
 public:
  virtual ~LrScheduler() = default;
  LrScheduler(const LrScheduler&) = delete;
  LrScheduler& operator=(const LrScheduler&) = delete;

  void step();
  // How many steps there were.
  int64_t last_epoch() const { return last_epoch_; }
  // What the groups have now.
  std::vector<double> last_lr() const;

  // The number of steps and the rates at the start.
  NamedTensors state_dict() const;
  void load_state_dict(const NamedTensors& state);

 protected:
  // A derived class calls `begin` when all its members are there.
  explicit LrScheduler(Optimizer& optimizer);
  void begin() { apply(); }
  // The rate of a group after `epoch` steps, from the one it had at the start.
  virtual double rate(double base, int64_t epoch) const = 0;
  // Sets more than the rate.
  virtual void apply_more(Optimizer& /* optimizer */, int64_t /* epoch */) {}

 private:
  void apply();

  Optimizer* optimizer_;
  std::vector<double> base_lrs_;
  int64_t last_epoch_ = 0;
};

// The rate at the start times a factor for the epoch.
class LambdaLR : public LrScheduler {
 public:
  LambdaLR(Optimizer& optimizer, std::function<double(int64_t epoch)> factor);

 private:
  double rate(double base, int64_t epoch) const override;
  std::function<double(int64_t)> factor_;
};

struct StepLrOptions {
  int64_t step_size = 1;
  double gamma = 0.1;
};
// Times gamma each `step_size` epochs.
class StepLR : public LrScheduler {
 public:
  StepLR(Optimizer& optimizer, StepLrOptions options);

 private:
  double rate(double base, int64_t epoch) const override;
  StepLrOptions options_;
};

// Times gamma each epoch.
class ExponentialLR : public LrScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double rate(double base, int64_t epoch) const override;
  double gamma_;
};

struct CosineAnnealingLrOptions {
  int64_t t_max = 1;  // epochs from the rate at the start to eta_min
  double eta_min = 0;
};
// Half a cosine from the rate at the start to eta_min, and back up if there are more epochs.
class CosineAnnealingLR : public LrScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLrOptions options);

 private:
  double rate(double base, int64_t epoch) const override;
  CosineAnnealingLrOptions options_;
};

struct OneCycleLrOptions {
  double max_lr = 0;
  int64_t total_steps = 0;
  double pct_start = 0.3;         // the share of the steps in which the rate goes up
  bool linear = false;            // straight lines instead of half cosines
  double div_factor = 25;         // the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  // the last is the first / final_div_factor
  // Momentum (Adam's beta1) goes down from max to base while the rate goes up, and back.
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95;
};
// Up to max_lr and down to nearly nothing, once; a step a batch.
class OneCycleLR : public LrScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLrOptions options);

 private:
  double rate(double base, int64_t epoch) const override;
  void apply_more(Optimizer& optimizer, int64_t epoch) override;
  // `low` at the first step, `high` when the rate is at its top, `last` at the last one.
  double at(int64_t epoch, double low, double high, double last) const;
  OneCycleLrOptions options_;
};

}  // namespace weft::optim
