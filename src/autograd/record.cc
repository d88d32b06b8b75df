#include "autograd/record.h"

#include <algorithm>

#include "autograd/op_node.h"
#include "autograd/view_history.h"
#include "weft/autograd/anomaly.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/extension.h"
#include "weft/ops/functions.h"

namespace weft::autograd {
namespace {

// Stands on the tape for an operator whose derivative weft does not have.
class NotImplementedNode final : public GradNode {
 public:
  explicit NotImplementedNode(const Operator& op) : op_(op) {}
  std::string name() const override { return "NotImplemented"; }
  std::vector<Tensor> apply(std::vector<Tensor>) override {
    unsupported("derivative for {} is not implemented", op_.name());
  }

 private:
  const Operator& op_;
};

template <typename F>
void for_each_result(const Value& result, F f) {
  if (!result.is_sequence()) return f(result, 0);
  int i = 0;
  for (const Value& element : result.elements()) f(element, i++);
}

bool is_argument(const Tensor& tensor, Args args) {
  for (const Value& value : args)
    if (value.is_tensor() && value.tensor_ref().is_same(tensor)) return true;
  return false;
}

// Results that are lists inside a tuple do not occur among differentiable operators.
void set_histories(const Ref<GradNode>& node, uint32_t differentiable, Args args, const Value& result) {
  for_each_result(result, [&](const Value& value, int i) {
    bool carries = value.is_tensor() && is_differentiable(value.tensor_ref().dtype()) &&
                   (i >= 32 || (differentiable >> i & 1)) && !is_argument(value.tensor_ref(), args);
    if (carries) set_history(value.tensor_ref(), node);
    else node->results.push_back({});
  });
}

Value record_not_implemented(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  Value result = call_below(args);
  Ref<GradNode> node(new NotImplementedNode(op));
  set_histories(node, ~0u, args, result);
  return result;
}

Value record_functional(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  Ref<GradNode> owner = make_ref<OpNode>(op, args);
  auto& node = static_cast<OpNode&>(*owner);
  node.connect(args);
  node.save_inputs(args);
  note_forward_call(node);
  Value result = call_below(args);
  set_histories(owner, op.def().vjp.differentiable_results, args, result);
  node.save_outputs(result);
  return result;
}

size_t written_argument(const Operator& op) {
  const auto& written = op.info().written;
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i]) return i;
  return written.size();
}

// An in-place view (`t_`) touches no element. What is a view after it, or was one before, has its history
// from its base (dispatch/inplace_view.h); anything else got one more call into its own.
Value record_inplace_view(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  const Tensor self = args[written_argument(op)].to_tensor();
  check_inplace(self, true);
  auto node = make_ref<OpNode>(op.functional(), args);
  node->connect(args);
  node->save_inputs(args);  // what its geometry was
  note_forward_call(*node);
  const bool was_view = self.is_view();
  Value result = call_below(args);
  if (!self.is_view()) {
    set_history(self, node);
    return result;
  }
  const Tensor base = self.impl()->view->base;
  if (!was_view) pass_history_on(self, base);
  else if (!base.requires_grad()) set_history(self, node);
  else variable_meta(self).grad_fn.reset();  // made anew from the base on next use
  return result;
}

Value record_inplace(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  const Operator& functional = op.functional();
  size_t at = written_argument(op);
  const Tensor self = args[at].to_tensor();
  require(!op.has(Traits::kGeometry),
          "{}: cannot resize variables that require grad, nor give them other memory; use detach() or NoGrad",
          op.name());
  if (functional.has(Traits::kView)) return record_inplace_view(op, args, call_below);
  check_inplace(self, true);
  if (functional.has(Traits::kNotDifferentiable) || !functional.def().vjp) {
    require(functional.has(Traits::kNotDifferentiable),
            "{}: the derivative of the in-place form is not implemented", op.name());
    return call_below(args);
  }
  auto node = make_ref<OpNode>(functional, args);
  node->connect(args);
  node->save_inputs(args);
  // The call writes over the values that the rule wants to see: keep a copy of them, with its history for
  // derivatives of the derivative.
  if (node->reads_input(at)) node->save_input(at, self.clone());
  note_forward_call(*node);
  Value result = call_below(args);
  rebase_history(self, node);
  node->save_outputs(self);
  return result;
}

// The tensors that a call writes to, in lists too.
std::vector<Tensor> written_tensors(const Operator& op, Args args) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.info().written[i])
      map_tensors(args[i], [&](const Tensor& t) {
        tensors.push_back(t);
        return Value(t);
      });
  return tensors;
}

// An operator that writes and has no functional form. Its vjp is about its results; what it writes has no
// gradient, and must not have had one.
Value record_writing(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  const Operator::Info& info = op.info();
  const std::vector<Tensor> written = written_tensors(op, args);
  if (op.has(Traits::kNotDifferentiable)) {
    for (const Tensor& tensor : written)
      if (tensor.requires_grad()) check_inplace(tensor, true);
    return call_below(args);
  }
  const bool gives_others = std::ranges::any_of(info.result_aliases, [](int16_t alias) { return alias < 0; });
  const bool is_one_tensor = written.size() == 1 && args[written_argument(op)].is_tensor();
  if (!gives_others && is_one_tensor) return record_inplace(op, args, call_below);
  for (const Tensor& tensor : written)
    if (tensor.requires_grad() || !gives_others)
      unsupported(
          "{}: it writes to {}, for which it has no derivative; run it under NoGrad, detach its arguments, "
          "or "
          "return the new value instead",
          op.name(), describe(tensor));
  return op.def().vjp ? record_functional(op, args, call_below)
                      : record_not_implemented(op, args, call_below);
}

}  // namespace

bool any_requires_grad(Args args) {
  for (const Value& value : args) {
    if (value.is_tensor() && value.tensor_ref().requires_grad()) return true;
    if (value.is_sequence() && any_requires_grad(Args(value.elements()))) return true;
  }
  return false;
}

namespace {

// detach_ and its like: in-place views that drop the history.
bool drops_history(const Operator& op) {
  return op.form() == OpForm::kInplace && op.has(Traits::kView) && op.has(Traits::kNotDifferentiable);
}

}  // namespace

Value record_call(const Operator& op, Args args, FunctionRef<Value(Args)> call_below) {
  if (const HigherOrder* higher_order = op.def().higher_order)
    return higher_order->autograd(op, args, call_below);
  if (drops_history(op)) {
    Value result = call_below(args);
    args[written_argument(op)].tensor_ref().impl()->forget_history();
    return result;
  }
  if (!is_grad_enabled() || !any_requires_grad(args)) return call_below(args);
  if (op.form() == OpForm::kOut)
    fail(
        "{}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments "
        "requires grad.",
        op.schema().name);
  if (op.functional().info().is_mutable && !op.has(Traits::kGeometry))
    return record_writing(op, args, call_below);
  if (op.info().is_mutable) return record_inplace(op, args, call_below);
  if (op.has(Traits::kNotDifferentiable)) return call_below(args);
  if (!op.def().vjp) return record_not_implemented(op, args, call_below);
  return record_functional(op, args, call_below);
}

}  // namespace weft::autograd

namespace weft {

Value layers::autograd(const Operator& op, Args args) {
  if ((dispatch::flags_of(args) & layer::kExtension) && is_grad_enabled() &&
      autograd::any_requires_grad(args))
    for (const Value& arg : args) {
      const Extension* extension = arg.is_tensor() ? extension_of(arg.tensor_ref()) : nullptr;
      std::optional<ExtensionCall> other = extension ? extension->recorded_as(op, args) : std::nullopt;
      if (other) return layers::autograd(other->op, other->args);
    }
  return autograd::record_call(op, args, [&](Args below) {
    MaskScope scope(layer::below(layer::kAutograd));
    return dispatch::redispatch(op, below);
  });
}

}  // namespace weft
