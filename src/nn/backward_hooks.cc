#include "nn/backward_hooks.h"

#include "weft/autograd/function.h"
#include "weft/core/pytree.h"

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
  size_t input_count = 0;  // of tensors
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
  static std::vector<Tensor> forward(autograd::FunctionContext& ctx, const std::vector<Tensor>& outputs,
                                     const Ref<Gate>& gate) {
    ctx.set_materialize_grads(false);
    ctx.saved_data.set("gate", Ref<ValueObject>(gate));
    std::vector<Tensor> same;
    for (const Tensor& output : outputs) same.push_back(alias(output));
    return same;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx, std::vector<Tensor> gradients) {
    Gate& gate = Gate::of(ctx);
    gate.output_gradients = gradients;
    // No gradient goes on to the arguments: this is the last chance.
    if (std::vector<Tensor> none(gate.input_count); !gate.has_differentiable_inputs) gate.run(none);
    gradients.emplace_back();  // of the gate
    return gradients;
  }
};

BackwardHooks::BackwardHooks(const ModuleState& module) {
  if (!module.backward_hooks.empty()) gate_ = make_ref<Gate>(module);
}

BackwardHooks::~BackwardHooks() = default;

namespace {

// The tensors among values that are not inside of others, and back.
std::vector<Tensor> outer_tensors(const ValueList& values) {
  std::vector<Tensor> tensors;
  for (const Value& value : values)
    if (value.is_tensor()) tensors.push_back(value.to_tensor());
  return tensors;
}
void replace_tensors(ValueList& values, const std::vector<Tensor>& tensors) {
  size_t next = 0;
  for (Value& value : values)
    if (value.is_tensor()) value = tensors[next++];
}

}  // namespace

void BackwardHooks::enter(ValueList& inputs) {
  if (!gate_) return;
  const std::vector<Tensor> tensors = outer_tensors(inputs);
  gate_->input_count = tensors.size();
  for (const Tensor& tensor : tensors) gate_->has_differentiable_inputs |= tensor.requires_grad();
  if (!tensors.empty()) replace_tensors(inputs, In::apply(tensors, gate_));
}

Value BackwardHooks::leave(const Value& output) {
  if (!gate_) return output;
  FlatTree flat = tree_flatten(output);
  const std::vector<Tensor> tensors = outer_tensors(flat.leaves);
  if (!tensors.empty()) replace_tensors(flat.leaves, Out::apply(tensors, gate_));
  return tree_unflatten(flat.leaves, flat.spec);
}

}  // namespace weft::nn
