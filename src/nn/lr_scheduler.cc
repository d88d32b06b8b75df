#include "weft/nn/lr_scheduler.h"

#include <cmath>
#include <numbers>

#include "weft/base/error.h"
#include "weft/core/from_data.h"

namespace weft::optim {

LrScheduler::LrScheduler(Optimizer& optimizer) : optimizer_(&optimizer) { base_lrs_ = last_lr(); }

std::vector<double> LrScheduler::last_lr() const {
  std::vector<double> rates;
  for (size_t g = 0; g < optimizer_->group_count(); ++g) rates.push_back(optimizer_->lr(g));
  return rates;
}

void LrScheduler::step() {
  ++last_epoch_;
  apply();
}

void LrScheduler::apply() {
  require(base_lrs_.size() == optimizer_->group_count(),
          "the optimizer has {} groups, but had {} when its scheduler was made; add groups before that",
          optimizer_->group_count(), base_lrs_.size());
  for (size_t g = 0; g < base_lrs_.size(); ++g) optimizer_->set_lr(rate(base_lrs_[g], last_epoch_), g);
  apply_more(*optimizer_, last_epoch_);
}

NamedTensors LrScheduler::state_dict() const {
  return {{"last_epoch", full({}, last_epoch_, kInt64)}, {"base_lrs", from_data(base_lrs_)}};
}

void LrScheduler::load_state_dict(const NamedTensors& state) {
  Tensor epoch, rates;
  for (const auto& [name, tensor] : state) {
    require(name == "last_epoch" || name == "base_lrs",
            "load_state_dict of a scheduler: '{}' is not known here", name);
    (name == "last_epoch" ? epoch : rates) = tensor;
  }
  require(epoch.defined() && rates.defined(),
          "load_state_dict of a scheduler: last_epoch or base_lrs is missing");
  const auto groups = static_cast<int64_t>(base_lrs_.size());
  require(rates.dim() == 1 && rates.plain_numel() == groups,
          "load_state_dict of a scheduler: base_lrs is {}; expected one number for each of the {} groups",
          describe(rates), groups);
  const Tensor wide = rates.to(kFloat64).contiguous();
  last_epoch_ = epoch.item().to_int();
  base_lrs_.assign(wide.data<double>(), wide.data<double>() + groups);
  apply();
}

LambdaLR::LambdaLR(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : LrScheduler(optimizer), factor_(std::move(factor)) {
  begin();
}
double LambdaLR::rate(double base, int64_t epoch) const { return base * factor_(epoch); }

StepLR::StepLR(Optimizer& optimizer, StepLrOptions options) : LrScheduler(optimizer), options_(options) {
  require(options.step_size > 0, "StepLR: step_size must be positive, but is {}", options.step_size);
  begin();
}
double StepLR::rate(double base, int64_t epoch) const {
  return base * std::pow(options_.gamma, static_cast<double>(epoch / options_.step_size));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LrScheduler(optimizer), gamma_(gamma) {
  begin();
}
double ExponentialLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch));
}

namespace {

// From `begin` to `end` as `share` goes from 0 to 1, along half a cosine.
double cosine_between(double begin, double end, double share) {
  return end + (begin - end) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, CosineAnnealingLrOptions options)
    : LrScheduler(optimizer), options_(options) {
  require(options.t_max > 0, "CosineAnnealingLR: t_max must be positive, but is {}", options.t_max);
  begin();
}
double CosineAnnealingLR::rate(double base, int64_t epoch) const {
  return cosine_between(base, options_.eta_min,
                        static_cast<double>(epoch) / static_cast<double>(options_.t_max));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLrOptions options)
    : LrScheduler(optimizer), options_(options) {
  require(options.max_lr > 0, "OneCycleLR: max_lr must be positive, but is {}", options.max_lr);
  require(options.total_steps > 0, "OneCycleLR: total_steps must be positive, but is {}",
          options.total_steps);
  require(options.pct_start >= 0 && options.pct_start <= 1,
          "OneCycleLR: pct_start must be between 0 and 1, but is {}", options.pct_start);
  begin();
}

double OneCycleLR::at(int64_t epoch, double low, double high, double last) const {
  require(epoch <= options_.total_steps, "Tried to step {} times. The specified number of total steps is {}",
          epoch, options_.total_steps);
  const double end = static_cast<double>(options_.total_steps) - 1;
  const double top = options_.pct_start * static_cast<double>(options_.total_steps) - 1;
  const auto now = static_cast<double>(epoch);
  auto between = [&](double begin, double finish, double share) {
    return options_.linear ? begin + (finish - begin) * share : cosine_between(begin, finish, share);
  };
  // A part without steps is over at once.
  if (now <= top) return between(low, high, top > 0 ? now / top : 1);
  return between(high, last, end > top ? (now - top) / (end - top) : 1);
}

double OneCycleLR::rate(double /* base */, int64_t epoch) const {
  const double first = options_.max_lr / options_.div_factor;
  return at(epoch, first, options_.max_lr, first / options_.final_div_factor);
}
void OneCycleLR::apply_more(Optimizer& optimizer, int64_t epoch) {
  if (!options_.cycle_momentum) return;
  const double momentum = at(epoch, options_.max_momentum, options_.base_momentum, options_.max_momentum);
  for (size_t g = 0; g < optimizer.group_count(); ++g) optimizer.set_momentum(momentum, g);
}

}  // namespace weft::optim
