// `auto_functionalized`: the functional form of operators that have none, which functionalize calls.
#include <unordered_map>

#include "func/control_flow_rules.h"
#include "func/vmap_level.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

const Operator& checked_operator(const Value& value) {
  const Operator* op = operator_in(value);
  require(op != nullptr, "auto_functionalized: its first argument must be an operator, but is {}",
          value.kind_name());
  const Operator::Info& info = op->info();
  require(info.is_mutable, "auto_functionalized: {} writes to nothing; call it as it is", op->name());
  require(!op->has(Traits::kGeometry),
          "auto_functionalized: {} changes which memory its argument looks at; only new values can be given",
          op->name());
  return *op;
}

using Copier = FunctionRef<Tensor(const Tensor&)>;
Tensor copy_of(const Tensor& tensor) { return tensor.clone(); }

// Written tensors as copies, which every argument that is the same tensor shares.
ValueList with_copies(const Operator& op, const ValueList& args, Copier copy_of) {
  std::unordered_map<const TensorImpl*, Tensor> copies;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.info().written[i])
      map_tensors(args[i], [&](const Tensor& t) {
        if (t.defined() && !copies.contains(t.impl())) copies.emplace(t.impl(), copy_of(t));
        return Value(t);
      });
  ValueList mapped;
  for (const Value& arg : args)
    mapped.push_back(map_tensors(arg, [&](const Tensor& t) {
      auto copy = copies.find(t.impl());
      return Value(copy == copies.end() ? t : copy->second);
    }));
  return mapped;
}

Value run_with(Args args, Copier copy_of) {
  const Operator& op = checked_operator(args[0]);
  const ValueList own = with_copies(op, args[1].elements(), copy_of);
  const Value result = call(op, own);
  ValueList all = op.schema().returns.size() > 1 ? result.elements() : ValueList{result};
  for (size_t i = 0; i < own.size(); ++i)
    if (op.info().written[i]) all.push_back(own[i]);
  return Value::tuple(std::move(all));
}

Value run_on_copies(Args args) { return run_with(args, copy_of); }

// What is written with batched arguments is batched, whatever it was before.
Value batched(Level& level, const Operator&, Args args) {
  bool has_batched = false;
  map_tensors(args[1], [&](const Tensor& t) {
    has_batched |= box_at(t, level) != nullptr;
    return Value(t);
  });
  return run_with(args, [&](const Tensor& t) {
    if (!has_batched || box_at(t, level)) return t.clone();
    BelowLevel below(level);
    SymInts sizes{static_cast<VmapLevel&>(level).size()};
    for (const SymInt& size : t.sizes()) sizes.push_back(size);
    return wrap_at(Ref<Level>(&level), t.expand(sizes).clone(MemoryFormat::kContiguous), 0);
  });
}

// Gradients go through the copies, and through the operator by its own rule.
Value with_gradient(const Operator&, Args args, FunctionRef<Value(Args)> call_below) {
  return flow::wants_gradient(args) ? run_on_copies(args) : call_below(args);
}
Value jvp_rule(Level&, const Operator&, Args args) { return run_on_copies(args); }
std::vector<Branch> no_branches(Args) { return {}; }

constexpr HigherOrder kRules = {
    .seen_by = flow::kSeenBy,
    .run = run_on_copies,
    .autograd = with_gradient,
    .vmap = batched,
    .jvp = jvp_rule,
    .branches = no_branches,
    .fake = run_on_copies,
    .code_name = "torch._higher_order_ops.auto_functionalize.auto_functionalized"};
constinit const OpDef kDefinition = {
    .schema = "higher_order::auto_functionalized(Any _mutable_op, *, Any[] kwargs, ...) -> Any",
    .higher_order = &kRules};

}  // namespace

const OpDef& auto_functionalized_definition() { return kDefinition; }

}  // namespace weft
