#pragma once

#include <initializer_list>

#include "weft/nn/module.h"
#include "weft/nn/update_rules.h"

namespace weft::optim {

using nn::NamedTensors;

// Moves the parameters of a model by their gradients. Parameters are in groups, each with options of its own.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Moves every parameter that has a gradient.
  void step();
  void zero_grad();

  size_t group_count() const { return groups_.size(); }
  const std::vector<Tensor>& parameters(size_t group = 0) const;
  // The learning rate of a group; it may change from step to step.
  double lr(size_t group = 0) const;
  void set_lr(double lr, size_t group);
  void set_lr(double lr);  // of all groups
  // SGD's momentum, Adam's beta1.
  virtual double momentum(size_t group = 0) const = 0;
  virtual void set_momentum(double momentum, size_t group) = 0;

  // All that a later run needs to go on from here: "state.<parameter>.<name>" for what is kept for each
  // parameter, counted over all groups, and "param_groups.<group>.<option>" for the options.
  NamedTensors state_dict() const;
  // Takes it over, options included. Another number of parameters, other sizes and unknown names are errors
  // that list them all.
  void load_state_dict(const NamedTensors& state);

  // --- for whoever runs the updates in a graph of their own (weft/aot/train_step.h)

  // What is kept for one parameter.
  struct Kept {
    Tensor step;  // how many there were, as a tensor of one element; undefined before the first
    std::vector<Tensor> tensors;
  };
  // That of a parameter, made where there is less than the options ask for: zeros, after no step.
  Kept& kept(size_t group, size_t index);
  // The names of the tensors in it.
  virtual std::vector<std::string> kept_names(size_t group) const = 0;
  // What a step makes of a parameter and the tensors that are kept for it, as a function that writes to
  // nothing: optim::updated.
  virtual Updated update(size_t group, const Tensor& parameter, const Tensor& gradient,
                         const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                         const Tensor& momentum = {}) const = 0;
  // The options of a group by their names, flags as 0 and 1, but for the learning rate and the momentum,
  // which schedules move.
  std::vector<std::pair<std::string, double>> fixed_options(size_t group) const;

 protected:
  // An option by its name: a number or a flag.
  struct OptionRef {
    const char* name;
    double* number;
    bool* flag;
    bool is_scheduled = false;  // the learning rate, the momentum
  };
  struct Group {
    std::vector<Tensor> parameters;
    std::vector<Kept> kept;  // one a parameter
  };

  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  void add_parameters(std::vector<Tensor> parameters);
  virtual std::vector<OptionRef> option_refs(size_t group) = 0;
  virtual void check_options(size_t group) const = 0;

 private:
  void step_group(size_t group);
  double* lr_option(size_t group) const;
  class StateReader;

  std::vector<Group> groups_;
};

// The optimizer whose steps are `updated(options, ...)`.
//
//   optim::AdamW optimizer(net.parameters(), {.lr = 3e-4});
//   optim::SGD tuner({{backbone.parameters(), {.lr = 1e-4}}, {head.parameters(), {.lr = 1e-2, .momentum =
//   0.9}}});
template <typename Options>
class OptimizerOf : public Optimizer {
 public:
  struct ParameterGroup {
    std::vector<Tensor> parameters;
    Options options;
  };
  OptimizerOf(std::vector<Tensor> parameters, Options options = {});
  OptimizerOf(std::initializer_list<ParameterGroup> groups);
  void add_group(ParameterGroup group);
  // May be changed between steps.
  Options& options(size_t group = 0);
  double momentum(size_t group = 0) const override;
  void set_momentum(double momentum, size_t group) override;
  std::vector<std::string> kept_names(size_t group) const override;
  Updated update(size_t group, const Tensor& parameter, const Tensor& gradient,
                 const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                 const Tensor& momentum = {}) const override;

 private:
  std::vector<OptionRef> option_refs(size_t group) override;
  void check_options(size_t group) const override;

  std::vector<Options> options_;  // one a group
};

// Stochastic gradient descent, with PyTorch's momentum.
using SGD = OptimizerOf<SgdOptions>;
// Adam; weight decay is part of the gradient.
using Adam = OptimizerOf<AdamOptions>;
// Adam with weight decay apart from the gradient.
using AdamW = OptimizerOf<AdamWOptions>;

extern template class OptimizerOf<SgdOptions>;
extern template class OptimizerOf<AdamOptions>;
extern template class OptimizerOf<AdamWOptions>;

}  // namespace weft::optim
