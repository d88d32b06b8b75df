#include "weft/nn/update_rules.h"

#include "weft/base/error.h"
#include "weft/ops/operators.h"

namespace weft::optim {
namespace {

void check_state(size_t given, const std::vector<std::string>& names) {
  if (given == names.size()) return;
  std::string wanted;
  for (const std::string& name : names) wanted += (wanted.empty() ? "" : ", ") + name;
  fail("an update got {} tensors of state, but keeps {}: [{}]", given, names.size(), wanted);
}

// What Adam and AdamW share: everything but weight decay.
template <typename Options>
struct AdamStep {
  const Options& options;
  Tensor lr, step, beta1;

  // The state is of real numbers, the parts of complex ones side by side.
  Updated operator()(const Tensor& parameter, const Tensor& gradient,
                     const std::vector<Tensor>& state) const {
    // The running means of the gradient and its square; dividing by the corrections frees them of their start
    // at zero.
    Tensor mean = beta1.defined() ? state[0] * beta1 + gradient * (1 - beta1)
                                  : add(state[0] * options.beta1, gradient, 1 - options.beta1);
    Tensor square = add(state[1] * options.beta2, gradient * gradient, 1 - options.beta2);
    std::vector<Tensor> kept = {mean, square};
    if (options.amsgrad) kept.push_back(maximum(state[2], square));
    Tensor spread = sqrt(kept.back()) / sqrt(correction(options.beta2)) + options.eps;
    const Tensor start = beta1.defined() ? 1 - pow(beta1, step.to(kFloat64)) : correction(options.beta1);
    return {parameter - mean / spread * (lr / start), kept};
  }

 private:
  // In f64, whatever the parameter is: beta2^step is close to 1 at first.
  Tensor correction(double beta) const { return 1 - pow(beta, step.to(kFloat64)); }
};

// Real and imaginary parts have means of their own.
template <typename F>
Updated on_real_parts(const Tensor& parameter, const Tensor& gradient, const std::vector<Tensor>& state,
                      const F& update) {
  if (!parameter.is_complex()) return update(parameter, gradient, state);
  std::vector<Tensor> parts;
  for (const Tensor& tensor : state) parts.push_back(view_as_real(tensor));
  Updated real = update(view_as_real(parameter), view_as_real(resolve_conj(gradient)), parts);
  for (Tensor& tensor : real.state) tensor = view_as_complex(tensor);
  return {view_as_complex(real.parameter), std::move(real.state)};
}

template <typename Options>
std::vector<std::string> adam_state_names(const Options& options) {
  if (options.amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"exp_avg", "exp_avg_sq"};
}

}  // namespace

std::vector<std::string> state_names(const SgdOptions& options) {
  if (options.momentum == 0) return {};
  return {"momentum_buffer"};
}
std::vector<std::string> state_names(const AdamOptions& options) { return adam_state_names(options); }
std::vector<std::string> state_names(const AdamWOptions& options) { return adam_state_names(options); }

Updated updated(const SgdOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum) {
  check_state(state.size(), state_names(options));
  Tensor slope = options.maximize ? -gradient : gradient;
  if (options.weight_decay != 0) slope = add(slope, parameter, options.weight_decay);
  if (options.momentum == 0) return {parameter - slope * lr, {}};
  // The first gradient is taken whole.
  Tensor share = options.dampening == 0 ? slope : slope * (1 - (step > 1).to(kFloat64) * options.dampening);
  auto carried = [&](const Tensor& onto, const Tensor& velocity) {
    return momentum.defined() ? onto + velocity * momentum : add(onto, velocity, options.momentum);
  };
  Tensor velocity = carried(share, state[0]);
  Tensor direction = options.nesterov ? carried(slope, velocity) : velocity;
  return {parameter - direction * lr, {velocity}};
}

Updated updated(const AdamOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum) {
  check_state(state.size(), state_names(options));
  Tensor slope = options.maximize ? -gradient : gradient;
  if (options.weight_decay != 0) slope = add(slope, parameter, options.weight_decay);
  return on_real_parts(parameter, slope, state, AdamStep<AdamOptions>{options, lr, step, momentum});
}

Updated updated(const AdamWOptions& options, const Tensor& parameter, const Tensor& gradient,
                const std::vector<Tensor>& state, const Tensor& lr, const Tensor& step,
                const Tensor& momentum) {
  check_state(state.size(), state_names(options));
  Tensor shrunk = options.weight_decay == 0 ? parameter : parameter * (1 - lr * options.weight_decay);
  return on_real_parts(shrunk, options.maximize ? -gradient : gradient, state,
                       AdamStep<AdamWOptions>{options, lr, step, momentum});
}

}  // namespace weft::optim
