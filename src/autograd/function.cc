#include "autograd/function.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

#include "autograd/record.h"
#include "autograd/view_history.h"
#include "weft/autograd/anomaly.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft::autograd {

std::string short_type_name(const std::type_info& type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                              std::free);
  std::string name = status == 0 ? text.get() : type.name();
  size_t last = name.rfind("::");
  return last == std::string::npos ? name : name.substr(last + 2);
}

FunctionContext FunctionContext::translated(FunctionRef<Tensor(const Tensor&)> as) const {
  FunctionContext other = *this;
  for (auto* list : {&other.saved_, &other.dirty_, &other.non_differentiable_})
    for (Tensor& tensor : *list)
      if (tensor.defined()) tensor = as(tensor);
  return other;
}

std::vector<Tensor> FunctionContext::saved_tensors() const { return node_ ? node_->unpack() : saved_; }

std::vector<Tensor> detail::gradients_of_tensors(const std::string& function,
                                                 const std::vector<size_t>& tensors_of_argument,
                                                 std::vector<Tensor> given) {
  size_t expected = 0;
  for (size_t tensors : tensors_of_argument) expected += std::max<size_t>(tensors, 1);
  require(given.size() == expected,
          "function {}Backward returned an incorrect number of gradients (expected {}, got {})", function,
          expected, given.size());
  std::vector<Tensor> gradients;
  size_t next = 0;
  for (size_t i = 0; i < tensors_of_argument.size(); ++i) {
    if (tensors_of_argument[i] == 0) {
      require(!given[next].defined(),
              "function {}Backward returned a gradient different from an undefined tensor at position {}, "
              "but the "
              "corresponding forward input was not a tensor",
              function, i);
      ++next;
    }
    for (size_t k = 0; k < tensors_of_argument[i]; ++k) gradients.push_back(std::move(given[next++]));
  }
  return gradients;
}

// --- the call --------------------------------------------------------------------------------------------

AppliedFunction& applied_function(Args args) {
  auto* applied = args[0].object_as<AppliedFunction>();
  invariant(applied != nullptr, "a call of a custom function without one");
  return *applied;
}

std::vector<Tensor> tensor_list(const Value& list) { return boxing::Result<std::vector<Tensor>>::from(list); }

Tensor own_tensor_for(const Tensor& inner, std::initializer_list<const std::vector<Tensor>*> own) {
  for (const auto* tensors : own)
    for (const Tensor& tensor : *tensors) {
      if (!tensor.defined()) continue;
      if (tensor.is_same(inner)) return tensor;
      const Tensor* stands_for = tensor.impl()->box ? tensor.impl()->box->stands_for() : nullptr;
      if (stands_for && stands_for->is_same(inner)) return tensor;
    }
  return inner;
}

namespace {

// Below every layer that sees the call as a whole: what forward calls meets all of the layers again, except
// for those above that have seen the call, and without recording.
Value run_forward(Args args) {
  AppliedFunction& applied = applied_function(args);
  LayerStateScope saved;
  layer_state().mask |= layer::kLevels | layer::kAutocast | layer::kComposites | layer::kAutograd;
  layer_state().grad_mode = false;
  applied.context = FunctionContext();
  applied.context.needs_ = applied.needs;
  return Value::list_of(applied.function->forward(applied.context, tensor_list(args[1])));
}

bool contains(const std::vector<Tensor>& list, const Tensor& tensor) {
  return std::any_of(list.begin(), list.end(), [&](const Tensor& other) { return other.is_same(tensor); });
}

// Results that are inputs: a written one is that input itself, any other one a new tensor over its memory.
void sort_out_inputs(std::vector<Tensor>& results, const std::vector<Tensor>& tensors,
                     const FunctionContext& context) {
  NoGrad no_grad;
  for (Tensor& result : results) {
    if (!result.defined()) continue;
    const Tensor* inner = result.impl()->box ? result.impl()->box->stands_for() : nullptr;
    Tensor own = own_tensor_for(inner ? *inner : result, {&tensors});
    if (!contains(tensors, own)) continue;
    result = contains(context.dirty_, own) ? own : alias(own);
  }
  for (const Tensor& dirty : context.dirty_) {
    require(contains(tensors, dirty), "mark_dirty: a tensor that is not an input of the function was marked");
    require(contains(results, dirty), "mark_dirty: a marked input must be among the results of forward");
  }
}

void give_histories(const Ref<CustomNode>& node, const std::vector<Tensor>& results,
                    const FunctionContext& context) {
  for (const Tensor& result : results) {
    bool carries = result.defined() && is_differentiable(result.dtype()) &&
                   !contains(context.non_differentiable_, result);
    if (!carries) {
      node->results.push_back({});
      continue;
    }
    if (contains(context.dirty_, result)) {
      check_inplace(result, true);
      if (result.impl()->view && results.size() > 1)
        unsupported("{}: a function of several results that writes to a view cannot be differentiated",
                    node->name());
      rebase_history(result, node);
      continue;
    }
    if (result.impl()->view)
      result.impl()->view->creation =
          results.size() > 1 ? ViewCreation::kMultiOutput : ViewCreation::kCustomFunction;
    set_history(result, node);
  }
}

Value record_function(const Operator&, Args args, FunctionRef<Value(Args)> call_below) {
  AppliedFunction& applied = applied_function(args);
  std::vector<Tensor> tensors = tensor_list(args[1]);
  bool records = is_grad_enabled() && any_requires_grad(args);
  applied.needs.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    if (records && tensors[i].defined() && tensors[i].requires_grad()) applied.needs[i] = true;

  std::vector<Tensor> results = tensor_list(call_below(args));
  applied.context = applied.context.translated(
      [&](const Tensor& inner) { return own_tensor_for(inner, {&tensors, &results}); });
  sort_out_inputs(results, tensors, applied.context);
  if (records) {
    Ref<CustomNode> node(new CustomNode(applied.function, tensors));
    note_forward_call(*node);
    give_histories(node, results, applied.context);
    node->keep(applied.context, results);
  }
  return Value::list_of(results);
}

constexpr HigherOrder kRules = {
    .seen_by = layer::kLevels | layer::kFunctionalizeUpper | layer::kRecorderUpper | layer::kAutograd,
    .run = run_forward,
    .autograd = record_function,
    .vmap = layers::vmap_custom_function,
    .jvp = layers::jvp_custom_function,
};
constinit const OpDef kDefinition = {
    .schema = "weft::custom_function(Any function, Tensor?[] tensors) -> Tensor[]", .higher_order = &kRules};

}  // namespace

const Operator& custom_function_operator() {
  static const Operator op(&kDefinition, kDefinition.schema, OpForm::kFunctional, nullptr);
  return op;
}

std::vector<Tensor> apply_function(Ref<CustomFunction> function, std::vector<Tensor> tensors) {
  auto applied = make_ref<AppliedFunction>(std::move(function));
  const Value args[] = {Value(Ref<ValueObject>(applied)), Value::list_of(tensors)};
  return tensor_list(dispatch::redispatch(custom_function_operator(), args));
}

// --- backward --------------------------------------------------------------------------------------------

CustomNode::CustomNode(Ref<CustomFunction> function, const std::vector<Tensor>& tensors)
    : function_(std::move(function)) {
  for (const Tensor& tensor : tensors) {
    bool carries = tensor.defined() && is_differentiable(tensor.dtype());
    next.push_back(carries ? gradient_edge(tensor) : Edge());
  }
}

void CustomNode::keep(const FunctionContext& context, const std::vector<Tensor>& own_results) {
  for (const Tensor& tensor : context.saved_)
    saved_.emplace_back(tensor, tensor.defined() && contains(own_results, tensor));
  context_.saved_data = context.saved_data;
  context_.materialize_grads_ = context.materialize_grads_;
  for (const Edge& edge : next) context_.needs_.push_back(static_cast<bool>(edge));
}

std::vector<Tensor> CustomNode::unpack() const {
  std::vector<Tensor> tensors;
  for (const SavedTensor& saved : saved_)
    tensors.push_back(saved.unpack(Ref<GradNode>(const_cast<CustomNode*>(this))));
  return tensors;
}

void CustomNode::release_saved() {
  released_ = true;
  saved_.clear();
}

std::vector<Tensor> CustomNode::apply(std::vector<Tensor> grads) {
  require(!released_,
          "Trying to backward through the graph a second time (or directly access saved tensors after they "
          "have already "
          "been freed): {} was run before. Specify retain_graph=true if you need to backward through the "
          "graph a second "
          "time.",
          name());
  if (std::none_of(grads.begin(), grads.end(), [](const Tensor& grad) { return grad.defined(); }))
    return std::vector<Tensor>(next.size());
  if (context_.materialize_grads_)
    for (size_t i = 0; i < grads.size(); ++i)
      if (!grads[i].defined())
        grads[i] = zeros(results[i].sizes, results[i].dtype, std::nullopt, results[i].device);
  FunctionContext context = context_;
  context.node_ = this;
  std::vector<Tensor> given = function_->backward(context, grads);
  require(given.size() == next.size(),
          "function {} returned an incorrect number of gradients (expected {}, got {})", name(), next.size(),
          given.size());
  return given;
}

}  // namespace weft::autograd
