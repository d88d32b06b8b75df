// out_dtype(op, dtype, args...): an operator with a result of another type, as one call of a graph.
#include "weft/func/out_dtype.h"

#include "func/control_flow_rules.h"
#include "func/level.h"
#include "ops/out_dtype.h"
#include "ops/support/type_promotion.h"
#include "weft/autograd/function.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

const Operator& checked_operator(const Value& value) {
  const Operator* op = operator_in(value);
  require(op != nullptr, "out_dtype: its first argument must be an operator, but is {}", value.kind_name());
  const Schema& schema = op->schema();
  require(!op->info().is_mutable,
          "out_dtype: its first argument must be a functional operator, but {} writes", op->name());
  require(
      schema.returns.size() == 1 && schema.returns[0].type.is_tensor(),
      "out_dtype: its first argument must be an operator that gives a single tensor, but the schema is {}",
      op->schema_text());
  std::span<const Operator* const> allowed = operators_with_out_dtype();
  if (std::find(allowed.begin(), allowed.end(), op) == allowed.end()) {
    std::string names;
    for (const Operator* other : allowed) names += (names.empty() ? "" : ", ") + std::string(other->name());
    fail("out_dtype: only these operators can have a result of another type: {}; got {}", names, op->name());
  }
  return *op;
}

void add_to(TypePromotion& promotion, const Value& value) {
  if (value.is_tensor()) promotion.add(value.tensor_ref());
  else if (value.is_number()) promotion.add(value.to_scalar());
  else if (value.is_sequence())
    for (const Value& element : value.elements()) add_to(promotion, element);
}

Value run_out_dtype(Args args) {
  const Operator& op = checked_operator(args[0]);
  const DType dtype = args[1].to_dtype();
  TypePromotion promotion;
  promotion.add(dtype);
  add_to(promotion, args[2]);
  const DType computed = promotion.result();
  Value cast = map_tensors(args[2], [&](const Tensor& t) { return Value(t.to(computed)); });
  return call(op, cast.elements()).to_tensor().to(dtype);
}

// As in PyTorch, what is made has a history that says so when somebody follows it.
struct OutDtypeFunction final : autograd::CustomFunction {
  std::string type_name() const override { return "OutDtype"; }
  std::vector<Tensor> forward(autograd::FunctionContext&, const std::vector<Tensor>& tensors) override {
    Value own = Value::list(flow::with_tensors(rest, tensors));
    return {call(out_dtype_operator(), {op, dtype, own}).to_tensor()};
  }
  std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>&) override {
    unsupported("Autograd not implemented for out_dtype; call the operator itself and cast its result");
  }

  Value op, dtype;
  ValueList rest;
};

Value out_dtype_autograd(const Operator&, Args args, FunctionRef<Value(Args)> call_below) {
  if (!flow::wants_gradient(args)) return call_below(args);
  auto function = make_ref<OutDtypeFunction>();
  function->op = args[0];
  function->dtype = args[1];
  function->rest = args[2].elements();
  return autograd::apply_function(function, flow::tensors_among(function->rest))[0];
}

// The parts have batching rules.
Value out_dtype_vmap(Level&, const Operator&, Args args) { return run_out_dtype(args); }
Value out_dtype_jvp(Level&, const Operator&, Args) {
  unsupported(
      "jvp: forward-mode derivatives of out_dtype are not supported; call the operator itself and cast");
}
std::vector<Branch> no_functions(Args) { return {}; }

constexpr HigherOrder kRules = {.seen_by = flow::kSeenBy,
                                .run = run_out_dtype,
                                .autograd = out_dtype_autograd,
                                .vmap = out_dtype_vmap,
                                .jvp = out_dtype_jvp,
                                .branches = no_functions,
                                .fake = run_out_dtype};
constinit const OpDef kDefinition = {
    .schema = "higher_order::out_dtype(Any op, ScalarType output_dtype, Any[] args, ...) -> Tensor",
    .higher_order = &kRules};

}  // namespace

const OpDef& out_dtype_definition() { return kDefinition; }

Tensor func::out_dtype_of(const Operator& op, DType dtype, const ValueList& args) {
  Value checked = operator_value(op);
  checked_operator(checked);
  return call(out_dtype_operator(), {checked, dtype, Value::list(args)}).to_tensor();
}

}  // namespace weft
