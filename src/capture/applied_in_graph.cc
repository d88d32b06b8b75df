#include "capture/applied_in_graph.h"

#include "weft/base/error.h"

namespace weft {

Value one_or_tuple(const ValueList& results) {
  return results.size() == 1 ? results[0] : Value::tuple(results);
}

namespace {

struct AppliedInGraph final : Callable {
  AppliedInGraph(Ref<autograd::CustomFunction> f, bool refuses)
      : function(std::move(f)), refuses_writes(refuses) {}
  using Callable::call;
  Value call(Args args) override {
    require(!refuses_writes, "inplace {} not supported in the JIT", function->type_name());
    std::vector<Tensor> tensors;
    for (const Value& arg : args) tensors.push_back(arg.is_none() ? Tensor() : arg.to_tensor());
    return one_or_tuple(Value::list_of(autograd::apply_function(function, std::move(tensors))).elements());
  }
  std::string type_name() const override { return "^" + function->type_name(); }

  Ref<autograd::CustomFunction> function;
  bool refuses_writes;
};

}  // namespace

Ref<Callable> applied_in_graph(Ref<autograd::CustomFunction> function, bool refuses_writes) {
  return make_ref<AppliedInGraph>(std::move(function), refuses_writes);
}

}  // namespace weft
