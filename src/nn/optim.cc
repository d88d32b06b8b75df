#include "weft/nn/optim.h"

#include <fmt/format.h>

#include <map>
#include <unordered_set>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"

namespace weft::optim {
namespace {

void check_parameters(const std::vector<Tensor>& parameters, std::unordered_set<const TensorImpl*> seen) {
  require(!parameters.empty(), "optimizer got an empty parameter list");
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& parameter = parameters[i];
    require(parameter.defined(), "can't optimize parameter {}: it is an undefined tensor", i);
    require(parameter.is_leaf(), "can't optimize a non-leaf Tensor: {}", describe(parameter));
    require(seen.insert(parameter.impl()).second,
            "parameter {}, {}, is there twice: it would be moved twice in a step", i, describe(parameter));
  }
}

Tensor number(double value) { return full({}, value, kFloat64); }
std::string state_name(size_t parameter, std::string_view name) {
  return fmt::format("state.{}.{}", parameter, name);
}
std::string option_name(size_t group, std::string_view name) {
  return fmt::format("param_groups.{}.{}", group, name);
}

}  // namespace

void Optimizer::add_parameters(std::vector<Tensor> parameters) {
  std::unordered_set<const TensorImpl*> seen;
  for (const Group& group : groups_)
    for (const Tensor& parameter : group.parameters) seen.insert(parameter.impl());
  check_parameters(parameters, std::move(seen));
  const size_t count = parameters.size();
  groups_.push_back({std::move(parameters), std::vector<Kept>(count)});
}

const std::vector<Tensor>& Optimizer::parameters(size_t group) const {
  require(group < groups_.size(), "there is no parameter group {}; the optimizer has {}", group,
          groups_.size());
  return groups_[group].parameters;
}

void Optimizer::step() {
  NoGrad no_grad;
  for (size_t i = 0; i < groups_.size(); ++i) step_group(i);
}

void Optimizer::step_group(size_t index) {
  check_options(index);
  Group& group = groups_[index];
  const Tensor rate = number(lr(index));
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const Tensor &parameter = group.parameters[i], gradient = parameter.grad();
    if (!gradient.defined()) continue;
    Kept& kept = this->kept(index, i);
    kept.step = kept.step + 1;
    Updated moved = update(index, parameter, gradient, kept.tensors, rate, kept.step);
    parameter.copy_(moved.parameter);
    kept.tensors = std::move(moved.state);
  }
}

Optimizer::Kept& Optimizer::kept(size_t group, size_t index) {
  require(index < parameters(group).size(), "group {} has {} parameters, but parameter {} was asked for",
          group, parameters(group).size(), index);
  NoGrad no_grad;
  Kept& kept = groups_[group].kept[index];
  if (!kept.step.defined()) kept.step = zeros({}, kFloat32);
  // An option that asks for more state may be switched on between steps.
  const size_t count = kept_names(group).size();
  while (kept.tensors.size() < count) kept.tensors.push_back(zeros_like(groups_[group].parameters[index]));
  kept.tensors.resize(count);
  return kept;
}

void Optimizer::zero_grad() {
  for (const Group& group : groups_)
    for (const Tensor& parameter : group.parameters) parameter.set_grad({});
}

double* Optimizer::lr_option(size_t group) const {
  // The options belong to the derived class, which has one way to list them.
  for (const OptionRef& option : const_cast<Optimizer*>(this)->option_refs(group))
    if (std::string_view(option.name) == "lr") return option.number;
  unsupported("this optimizer has no learning rate");
}
std::vector<std::pair<std::string, double>> Optimizer::fixed_options(size_t group) const {
  std::vector<std::pair<std::string, double>> values;
  for (const OptionRef& option : const_cast<Optimizer*>(this)->option_refs(group))
    if (!option.is_scheduled)
      values.emplace_back(option.name, option.number ? *option.number : (*option.flag ? 1 : 0));
  return values;
}
double Optimizer::lr(size_t group) const { return *lr_option(group); }
void Optimizer::set_lr(double lr, size_t group) {
  require(lr >= 0, "Invalid learning rate: {}", lr);
  *lr_option(group) = lr;
}
void Optimizer::set_lr(double lr) {
  for (size_t i = 0; i < groups_.size(); ++i) set_lr(lr, i);
}

// --- state -----------------------------------------------------------------------------------------------

NamedTensors Optimizer::state_dict() const {
  NamedTensors all;
  size_t position = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<std::string> names = kept_names(g);
    for (const Kept& kept : groups_[g].kept) {
      if (kept.step.defined()) all.emplace_back(state_name(position, "step"), kept.step);
      for (size_t i = 0; i < kept.tensors.size() && i < names.size(); ++i)
        all.emplace_back(state_name(position, names[i]), kept.tensors[i]);
      ++position;
    }
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const OptionRef& option : const_cast<Optimizer*>(this)->option_refs(g))
      all.emplace_back(option_name(g, option.name),
                       option.number ? number(*option.number) : full({}, *option.flag, kBool));
    const auto count = static_cast<int64_t>(groups_[g].parameters.size());
    all.emplace_back(option_name(g, "params"), full({}, count, kInt64));
  }
  return all;
}

// Reads everything before the optimizer changes for good, and notes all that does not fit.
class Optimizer::StateReader {
 public:
  StateReader(Optimizer& optimizer, const NamedTensors& given)
      : optimizer_(optimizer), left_(given.begin(), given.end()) {}

  void run() {
    for (size_t g = 0; g < optimizer_.groups_.size(); ++g) read_options(g);
    check();
    try {
      // Which tensors are kept follows from the options.
      for (Option& option : options_) option.swap();
      std::vector<std::vector<Kept>> kept;
      for (size_t g = 0; g < optimizer_.groups_.size(); ++g) kept.push_back(read_group(g));
      for (const auto& [name, tensor] : left_) note("{} is not known here", name);
      check();
      for (size_t g = 0; g < kept.size(); ++g) optimizer_.groups_[g].kept = std::move(kept[g]);
    } catch (...) {
      for (Option& option : options_) option.swap();
      throw;
    }
  }

 private:
  struct Option {
    OptionRef ref;
    double other;  // what it is to become; after the swap, what it was
    void swap() {
      if (ref.number) std::swap(*ref.number, other);
      else other = std::exchange(*ref.flag, other != 0) ? 1 : 0;
    }
  };

  template <typename... A>
  void note(fmt::format_string<const A&...> text, const A&... args) {
    problems_ += "\n  " + fmt::format(text, args...);
  }
  void check() const { require(problems_.empty(), "load_state_dict of an optimizer:{}", problems_); }

  // Undefined where there is none.
  Tensor take(const std::string& name) {
    auto found = left_.find(name);
    return found == left_.end() ? Tensor() : left_.extract(found).mapped();
  }
  Tensor take_number(const std::string& name) {
    Tensor tensor = take(name);
    if (!tensor.defined()) note("{} is missing", name);
    else if (tensor.plain_numel() != 1) note("{} is {}; expected one number", name, describe(tensor).str());
    else return tensor;
    return {};
  }

  void read_options(size_t g) {
    const size_t own = optimizer_.groups_[g].parameters.size();
    if (const Tensor count = take_number(option_name(g, "params")); count.defined())
      if (const int64_t given = count.item().to_int(); given != static_cast<int64_t>(own))
        note("group {} has {} parameters, that of the state {}", g, own, given);
    for (const OptionRef& option : optimizer_.option_refs(g))
      if (const Tensor value = take_number(option_name(g, option.name)); value.defined())
        options_.push_back({option, value.item().to_double()});
  }

  std::vector<Kept> read_group(size_t g) {
    optimizer_.check_options(g);
    const std::vector<std::string> names = optimizer_.kept_names(g);
    std::vector<Kept> all;
    for (const Tensor& parameter : optimizer_.groups_[g].parameters) {
      Kept kept;
      if (left_.contains(state_name(position_, "step")))
        kept.step = take_number(state_name(position_, "step")).clone();
      // A parameter that no gradient has reached has no state; one that has some has all of it.
      for (const std::string& name : names)
        if (kept.step.defined()) kept.tensors.push_back(read_kept(state_name(position_, name), parameter));
      all.push_back(std::move(kept));
      ++position_;
    }
    return all;
  }

  // In the parameter's own type: a state of other precision can be loaded.
  Tensor read_kept(const std::string& name, const Tensor& parameter) {
    const Tensor given = take(name);
    if (!given.defined()) note("{} is missing", name);
    else if (describe_sizes(given.sizes()).str() != describe_sizes(parameter.sizes()).str())
      note("{} is {}, its parameter {}", name, describe(given).str(), describe(parameter).str());
    else return given.detach().to(parameter.dtype()).clone();
    return {};
  }

  Optimizer& optimizer_;
  std::map<std::string, Tensor> left_;
  std::vector<Option> options_;
  std::string problems_;
  size_t position_ = 0;  // of the parameter, counted over all groups
};

void Optimizer::load_state_dict(const NamedTensors& state) { StateReader(*this, state).run(); }

// --- options ---------------------------------------------------------------------------------------------

namespace {

template <typename F>
void for_each_option(SgdOptions& options, const F& f) {
  f("lr", options.lr);
  f("momentum", options.momentum);
  f("dampening", options.dampening);
  f("weight_decay", options.weight_decay);
  f("nesterov", options.nesterov);
  f("maximize", options.maximize);
}
// Of Adam and AdamW.
template <typename Options, typename F>
void for_each_option(Options& options, const F& f) {
  f("lr", options.lr);
  f("beta1", options.beta1);
  f("beta2", options.beta2);
  f("eps", options.eps);
  f("weight_decay", options.weight_decay);
  f("amsgrad", options.amsgrad);
  f("maximize", options.maximize);
}

double& momentum_in(SgdOptions& options) { return options.momentum; }
template <typename Options>
double& momentum_in(Options& options) {
  return options.beta1;
}

void check_momentum(const SgdOptions& options) {
  require(options.momentum >= 0, "Invalid momentum value: {}", options.momentum);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum requires a momentum and zero dampening");
}
template <typename Options>
void check_momentum(const Options& options) {
  require(options.eps >= 0, "Invalid epsilon value: {}", options.eps);
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "Invalid betas: {} and {}", options.beta1, options.beta2);
}
template <typename Options>
void check(const Options& options) {
  require(options.lr >= 0, "Invalid learning rate: {}", options.lr);
  require(options.weight_decay >= 0, "Invalid weight_decay value: {}", options.weight_decay);
  check_momentum(options);
}

}  // namespace

template <typename Options>
OptimizerOf<Options>::OptimizerOf(std::vector<Tensor> parameters, Options options) {
  add_group({std::move(parameters), options});
}
template <typename Options>
OptimizerOf<Options>::OptimizerOf(std::initializer_list<ParameterGroup> groups) {
  require(groups.size() > 0, "optimizer got an empty parameter list");
  for (const ParameterGroup& group : groups) add_group(group);
}
template <typename Options>
void OptimizerOf<Options>::add_group(ParameterGroup group) {
  check(group.options);
  add_parameters(std::move(group.parameters));
  options_.push_back(group.options);
}
template <typename Options>
Options& OptimizerOf<Options>::options(size_t group) {
  require(group < options_.size(), "there is no parameter group {}; the optimizer has {}", group,
          options_.size());
  return options_[group];
}
template <typename Options>
double OptimizerOf<Options>::momentum(size_t group) const {
  return momentum_in(const_cast<OptimizerOf*>(this)->options(group));
}
template <typename Options>
void OptimizerOf<Options>::set_momentum(double momentum, size_t group) {
  momentum_in(options(group)) = momentum;
  check_options(group);
}
template <typename Options>
auto OptimizerOf<Options>::option_refs(size_t group) -> std::vector<OptionRef> {
  std::vector<OptionRef> refs;
  for_each_option(options(group), [&](const char* name, auto& value) {
    if constexpr (std::is_same_v<decltype(value), bool&>) refs.push_back({name, nullptr, &value});
    else
      refs.push_back(
          {name, &value, nullptr, &value == &options(group).lr || &value == &momentum_in(options(group))});
  });
  return refs;
}
template <typename Options>
void OptimizerOf<Options>::check_options(size_t group) const {
  check(options_[group]);
}
template <typename Options>
std::vector<std::string> OptimizerOf<Options>::kept_names(size_t group) const {
  return state_names(options_[group]);
}
template <typename Options>
Updated OptimizerOf<Options>::update(size_t group, const Tensor& parameter, const Tensor& gradient,
                                     const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                                     const Tensor& momentum) const {
  return updated(options_[group], parameter, gradient, state, lr, step, momentum);
}

template class OptimizerOf<SgdOptions>;
template class OptimizerOf<AdamOptions>;
template class OptimizerOf<AdamWOptions>;

}  // namespace weft::optim
