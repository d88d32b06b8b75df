#pragma once

#include "autograd/saved_tensor.h"
#include "weft/autograd/function.h"
#include "weft/dispatch/operator.h"

namespace weft::autograd {

// Travels as the first argument of a call of a custom function; the second one is the list of its tensors.
// Each layer finds here what forward said, in terms of the tensors below it, and leaves it in terms of its
// own.
struct AppliedFunction final : ValueObject {
  explicit AppliedFunction(Ref<CustomFunction> function) : function(std::move(function)) {}
  std::string type_name() const override { return function->type_name(); }

  Ref<CustomFunction> function;
  FunctionContext context;
  std::vector<bool> needs;  // tensors whose gradient some layer wants
};

const Operator& custom_function_operator();
AppliedFunction& applied_function(Args args);
// The elements of a list of tensors, undefined ones among them.
std::vector<Tensor> tensor_list(const Value& list);

// The tensor of `own` that is `inner`, or stands for it; otherwise `inner` itself.
Tensor own_tensor_for(const Tensor& inner, std::initializer_list<const std::vector<Tensor>*> own);

// The tape's entry for a call.
class CustomNode final : public GradNode {
 public:
  CustomNode(Ref<CustomFunction> function, const std::vector<Tensor>& tensors);
  std::string name() const override { return function_->type_name() + "Backward"; }
  std::vector<Tensor> apply(std::vector<Tensor> grads) override;
  void release_saved() override;
  // After the results have their history.
  void keep(const FunctionContext& context, const std::vector<Tensor>& own_results);
  std::vector<Tensor> unpack() const;

 private:
  Ref<CustomFunction> function_;
  FunctionContext context_;
  std::vector<SavedTensor> saved_;
  bool released_ = false;
};

}  // namespace weft::autograd

namespace weft::layers {
// The rules of the transform levels; defined in func/.
Value vmap_custom_function(Level& level, const Operator& op, Args args);
Value jvp_custom_function(Level& level, const Operator& op, Args args);
}  // namespace weft::layers
