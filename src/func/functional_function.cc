#include "func/functional_function.h"

#include "weft/func/functionalize.h"

namespace weft {
namespace {

using autograd::CustomFunction;
using autograd::FunctionContext;
using func::Tensors;

// Both halves of the function run under a functionalize of their own. What forward keeps leaves it as further
// results.
class FunctionalFunction final : public CustomFunction {
 public:
  explicit FunctionalFunction(Ref<CustomFunction> function) : function_(std::move(function)) {}
  std::string type_name() const override { return function_->type_name(); }

  Tensors forward(FunctionContext& ctx, const Tensors& tensors) override {
    FunctionContext inner;
    inner.needs_ = ctx.needs_;
    Tensors inputs, made;  // as forward sees them
    size_t results = 0;
    auto run = [&](const Tensors& given) {
      inputs = given;
      made = function_->forward(inner, given);
      results = made.size();
      made.insert(made.end(), inner.saved_.begin(), inner.saved_.end());
      return made;
    };
    Tensors all = func::functionalize_of(run)(tensors);
    ctx = inner.translated([&](const Tensor& tensor) {
      for (size_t i = 0; i < made.size(); ++i)
        if (made[i].is_same(tensor)) return all[i];
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].is_same(tensor)) return tensors[i];
      return tensor;
    });
    all.resize(results);
    return all;
  }

  Tensors backward(FunctionContext& ctx, const Tensors& grads) override {
    Tensors given = ctx.saved_tensors();
    const auto saved = static_cast<ptrdiff_t>(given.size());
    given.insert(given.end(), grads.begin(), grads.end());
    auto run = [&](const Tensors& own) {
      FunctionContext inner = ctx;
      inner.node_ = nullptr;
      inner.saved_.assign(own.begin(), own.begin() + saved);
      return function_->backward(inner, {own.begin() + saved, own.end()});
    };
    return func::functionalize_of(run)(given);
  }

 private:
  Ref<CustomFunction> function_;
};

}  // namespace

Ref<CustomFunction> functionalized(Ref<CustomFunction> function) {
  return make_ref<FunctionalFunction>(std::move(function));
}

}  // namespace weft
