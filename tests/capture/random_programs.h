#pragma once

#include <random>

#include "weft/ops/operators.h"

namespace weft::testing {

// A program of views and in-place writes over a few pieces of memory, made from a seed. It is a function of
// two tensors of [4, 6] that gives several tensors, some of which share memory.
class RandomProgram {
 public:
  // With `writes_inputs` the program may write to what it is given; otherwise only to copies. Autograd
  // refuses writes to views that came several at a time: a program that is `differentiable` makes none.
  RandomProgram(uint64_t seed, bool writes_inputs, bool differentiable = false)
      : random_(seed), writes_inputs_(writes_inputs) {
    size_t steps = 4 + random_() % 12;
    for (size_t i = 0; i < steps; ++i) {
      Step step{static_cast<int>(random_() % kKinds), random_(), random_(), random_()};
      bool makes_several = step.kind == 6 || step.kind == 7;
      if (!(differentiable && makes_several)) steps_.push_back(step);
    }
    for (int i = 0; i < 4; ++i) results_.push_back(random_());
  }

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const {
    std::vector<Tensor> live;
    for (const Tensor& input : inputs) live.push_back(writes_inputs_ ? input : input.clone());
    for (const Step& step : steps_) run(step, live);
    std::vector<Tensor> results;
    for (uint64_t which : results_) results.push_back(live[which % live.size()]);
    return results;
  }

  std::string to_string() const {
    std::string text;
    for (const Step& step : steps_)
      text += fmt::format("{}({}, {}, {}) ", step.kind, step.a % 97, step.b % 97, step.c % 97);
    return text;
  }

 private:
  static constexpr int kKinds = 16;
  struct Step {
    int kind;
    uint64_t a, b, c;
  };

  static void run(const Step& step, std::vector<Tensor>& live) {
    const Tensor x = live[step.a % live.size()];
    const int64_t rank = x.dim();
    auto dim = [&](uint64_t from) {
      return static_cast<int64_t>(from % static_cast<uint64_t>(std::max<int64_t>(rank, 1)));
    };
    switch (step.kind) {
      case 0:  // one of a dim
        if (rank > 0 && x.size(dim(step.b)) > 0)
          live.push_back(
              x.select(dim(step.b),
                       static_cast<int64_t>(step.c % static_cast<uint64_t>(int64_t(x.size(dim(step.b)))))));
        break;
      case 1:  // a slice
        if (rank > 0) {
          int64_t size = x.size(dim(step.b)),
                  start = static_cast<int64_t>(step.c) % std::max<int64_t>(size, 1);
          start = start < 0 ? -start : start;
          live.push_back(x.slice(dim(step.b), start, size, 1 + static_cast<int64_t>(step.c % 2)));
        }
        break;
      case 2:
        if (rank > 1) live.push_back(x.transpose(dim(step.b), dim(step.c)));
        break;
      case 3:
        live.push_back(x.unsqueeze(dim(step.b)));
        break;
      case 4:
        if (x.is_contiguous()) live.push_back(x.view({-1}));
        break;
      case 5:
        if (rank > 1) live.push_back(x.diagonal(0, 0, 1));
        break;
      case 6:
        if (rank > 0 && x.size(dim(step.b)) > 1)
          for (const Tensor& part : x.split(1 + x.size(dim(step.b)) / 2, dim(step.b))) live.push_back(part);
        break;
      case 7:
        if (rank > 0) live.push_back(x.unbind(0).at(0));
        break;
      case 8:
        x.add_(0.25);
        break;
      case 9:
        x.mul_(1.5);
        break;
      case 10:
        x.copy_(x.sin());
        break;
      case 11:
        x.neg_();
        break;
      case 12:
        x.add_(x * 0.5);
        break;
      case 13:
        live.push_back(x * 0.75);
        break;
      case 14:
        live.push_back(x.tanh());
        break;
      default: {  // what broadcasts: a number out of another tensor
        const Tensor& other = live[step.b % live.size()];
        if (other.plain_numel() > 0) x.add_(other.sum() * 0.125);
      }
    }
  }

  std::mt19937_64 random_;
  bool writes_inputs_;
  std::vector<Step> steps_;
  std::vector<uint64_t> results_;
};

}  // namespace weft::testing
