#include "nn/backward_hooks.h"

#include "weft/autograd/function.h"

namespace weft::nn {

// What both ends of a call share.
struct BackwardHooks::Gate final : ValueObject {
  explicit Gate(const ModuleState& module) : hooks(module.backward_hooks) {}
  std::string type_name() const override { return "backward hooks"; }
  void run(std::vector<Tensor>& input_gradients) const {
    for (const auto& [id, hook] : hooks) hook(input_gradients, output_gradients);
  }
  static Gate& of(autograd::FunctionContext& ctx) { return *ctx.saved_data.at("gate").object_as<Gate>(); }

  std::map<uint64_t, ModuleState::BackwardHook> hooks;
  std::vector<Tensor> output_gradients;
  bool has_differentiable_inputs = false;
};

struct BackwardHooks::In : autograd::Function<In> {
  static std::vector<Tensor> forward(autograd::FunctionContext& ctx, const std::vector<Tensor>& inputs,
                                     const Ref<Gate>& gate) {
    ctx.set_materialize_grads(false);
    ctx.saved_data.set("gate", Ref<ValueObject>(gate));
    std::vector<Tensor> same;
    for (const Tensor& input : inputs) same.push_back(alias(input));
    return same;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx, std::vector<Tensor> gradients) {
    Gate::of(ctx).run(gradients);
    gradients.emplace_back();  // of the gate
    return gradients;
  }
};

struct BackwardHooks::Out : autograd::Function<Out> {
  static Tensor forward(autograd::FunctionContext& ctx, const Tensor& output, const Ref<Gate>& gate) {
    ctx.saved_data.set("gate", Ref<ValueObject>(gate));
    return alias(output);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx, const std::vector<Tensor>& gradients) {
    Gate& gate = Gate::of(ctx);
    gate.output_gradients = gradients;
    // No gradient goes on to the arguments: this is the last chance.
    if (std::vector<Tensor> none; !gate.has_differentiable_inputs) gate.run(none);
    return {gradients[0], Tensor()};
  }
};

BackwardHooks::BackwardHooks(const ModuleState& module) {
  if (!module.backward_hooks.empty()) gate_ = make_ref<Gate>(module);
}

BackwardHooks::~BackwardHooks() = default;

std::vector<Tensor> BackwardHooks::enter(std::vector<Tensor> inputs) {
  if (!gate_) return inputs;
  for (const Tensor& input : inputs) gate_->has_differentiable_inputs |= input.requires_grad();
  return In::apply(inputs, gate_);
}

Tensor BackwardHooks::leave(const Tensor& output) { return gate_ ? Out::apply(output, gate_) : output; }

}  // namespace weft::nn
