#include "autograd/op_node.h"

#include "dispatch/rule_calls.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft {
namespace {
// Marks an input whose gradient is wanted where there is no tape to go to.
class WantedInput final : public GradNode {
 public:
  std::string name() const override { return "WantedInput"; }
  std::vector<Tensor> apply(std::vector<Tensor>) override { return {}; }
};
}  // namespace

OpNode::OpNode(const Operator& op, Args args) : op_(op), called_by_rule_(dispatch::calls_are_of_rule()) {
  const auto& kinds = op.info().is_tensor;
  uint16_t index = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (!kinds[i]) {
      values_.push_back(args[i]);
      continue;
    }
    values_.push_back(Value());
    bool is_list = kinds[i] == 2 && args[i].is_sequence();
    auto count = static_cast<uint16_t>(is_list ? args[i].elements().size() : 1);
    tensors_.push_back({static_cast<uint16_t>(i), index, count, is_list, !args[i].is_none()});
    index = static_cast<uint16_t>(index + count);
  }
  next.resize(index);
}

std::string OpNode::name() const {
  // PyTorch's habit: the operator in camel case and "Backward0".
  std::string text;
  bool upper = true;
  for (char c : op_.schema().name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return text + "Backward0";
}

void OpNode::connect(Args args) {
  for (const TensorArgument& t : tensors_) {
    const Value& value = args[t.argument];
    for (uint16_t k = 0; k < t.count; ++k) {
      const Value& element = t.is_list ? value.elements()[k] : value;
      if (element.is_tensor() && is_differentiable(element.tensor_ref().dtype()))
        next[static_cast<size_t>(t.first + k)] = autograd::gradient_edge(element.tensor_ref());
    }
  }
}

void OpNode::want(const std::vector<bool>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) next[i] = Edge{Ref<GradNode>(new WantedInput), 0};
}

namespace {
TensorShape shape_of(const Value& value) {
  if (!value.is_tensor()) return {};
  const Tensor& tensor = value.tensor_ref();
  return {tensor.dtype(), tensor.device(), SymInts(tensor.sizes()), SymInts(tensor.strides()),
          tensor.storage_offset()};
}
}  // namespace

uint32_t OpNode::wanted_arguments() const {
  uint32_t wanted = 0;
  for (const TensorArgument& t : tensors_)
    for (uint16_t k = 0; k < t.count; ++k)
      if (wants_input(static_cast<size_t>(t.first + k))) wanted |= 1u << t.argument;
  return wanted;
}
bool OpNode::reads_input(size_t argument) const {
  return op_.def().vjp.saves.reads_input(static_cast<int>(argument), wanted_arguments());
}

void OpNode::save_inputs(Args args) {
  const Saves& saves = op_.def().vjp.saves;
  if (saves.inputs) saved_inputs_.resize(next.size());
  if (saves.sizes) shapes_.resize(next.size());
  const uint32_t wanted = wanted_arguments();
  for (const TensorArgument& t : tensors_) {
    const bool declared = saves.inputs >> t.argument & 1;
    if (!declared && !(saves.sizes >> t.argument & 1)) continue;
    const bool save = saves.reads_input(static_cast<int>(t.argument), wanted);
    if (shapes_.size() < next.size()) shapes_.resize(next.size());
    for (uint16_t k = 0; k < t.count; ++k) {
      const Value& element = t.is_list ? args[t.argument].elements()[k] : args[t.argument];
      auto index = static_cast<size_t>(t.first + k);
      shapes_[index] = shape_of(element);
      if (save && element.is_tensor()) saved_inputs_[index] = SavedTensor(element.tensor_ref(), false);
    }
  }
}

void OpNode::save_input(size_t argument, const Tensor& tensor) {
  const TensorArgument& t = find(static_cast<int>(argument));
  saved_inputs_[t.first] = SavedTensor(tensor, false);
}

void OpNode::save_outputs(const Value& result, bool are_own) {
  uint32_t wanted = op_.def().vjp.saves.outputs;
  if (!wanted) return;
  size_t count = result.is_sequence() ? result.elements().size() : 1;
  saved_outputs_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Value& value = result.is_sequence() ? result.elements()[i] : result;
    if ((wanted >> i & 1) && value.is_tensor()) saved_outputs_[i] = SavedTensor(value.tensor_ref(), are_own);
  }
}

void OpNode::skip_result() { results.push_back({}); }

void OpNode::release_saved() {
  // A call that kept no tensor can be run as often as anybody likes.
  released_ = released_ || !saved_inputs_.empty() || !saved_outputs_.empty();
  saved_inputs_.clear();
  saved_outputs_.clear();
}

std::vector<Tensor> OpNode::apply(std::vector<Tensor> grads) {
  if (released_) [[unlikely]]
    fail(
        "Trying to backward through the graph a second time (or directly access saved tensors after they "
        "have already "
        "been freed): {} was run before. Specify retain_graph=true if you need to backward through the graph "
        "a second "
        "time.",
        name());
  bool any = false;
  for (const Tensor& grad : grads) any |= grad.defined();
  std::vector<Tensor> flat(next.size());
  if (!any) return flat;
  grads_ = std::move(grads);
  Grads given = [&] {
    // What a program called with a number multiplies the gradient by the same number.
    const bool as_program = op_.has(Traits::kNumberOverload) && !called_by_rule_;
    const dispatch::RuleCalls of_rule(!as_program);
    return op_.def().vjp.rule(*this);
  }();
  grads_.clear();
  check_gradients(given);
  for (size_t i = 0; i < given.size(); ++i) {
    const TensorArgument& t = tensors_[i];
    if (!t.is_list) {
      flat[t.first] = std::move(given[i].tensor);
      continue;
    }
    for (size_t k = 0; k < given[i].list.size(); ++k) flat[t.first + k] = std::move(given[i].list[k]);
  }
  return flat;
}

// The rule may be one of an operator of the user's.
void OpNode::check_gradients(const Grads& given) const {
  if (given.size() != tensors_.size()) [[unlikely]]
    fail("the vjp of {} gave {} gradients for {} tensor arguments; it gives one for each, undefined for zero",
         op_.name(), given.size(), tensors_.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const size_t wanted = tensors_[i].is_list ? tensors_[i].count : 0;
    if (given[i].list.size() > wanted) [[unlikely]]
      fail("the vjp of {} gave {} gradients for argument {}, which has {}", op_.name(), given[i].list.size(),
           tensors_[i].argument, tensors_[i].is_list ? fmt::format("{} tensors", wanted) : "no list");
  }
}

const OpNode::TensorArgument& OpNode::find(int argument) const {
  for (const TensorArgument& t : tensors_)
    if (t.argument == argument) return t;
  fail("{}: argument {} is not a tensor", op_.name(), argument);
}

void OpNode::check_declared(bool declared, const char* what, int index) const {
  if (!declared) [[unlikely]]
    fail(
        "the vjp of {} reads {} {}, which its .saves does not declare for the gradients that are wanted; "
        "declare it there",
        op_.name(), what, index);
}

const Tensor& OpNode::grad(int result) const {
  if (static_cast<size_t>(result) >= grads_.size()) [[unlikely]]
    fail("the vjp of {} reads the gradient of result {}, but the call has {} results", op_.name(), result,
         grads_.size());
  return grads_[static_cast<size_t>(result)];
}

Tensor OpNode::input(int argument) const {
  check_declared(reads_input(static_cast<size_t>(argument)), "input", argument);
  return saved_inputs_[find(argument).first].unpack(Ref<GradNode>(const_cast<OpNode*>(this)));
}

std::vector<Tensor> OpNode::inputs(int argument) const {
  check_declared(reads_input(static_cast<size_t>(argument)), "input", argument);
  const TensorArgument& t = find(argument);
  std::vector<Tensor> list;
  for (uint16_t k = 0; k < t.count; ++k)
    list.push_back(
        saved_inputs_[static_cast<size_t>(t.first + k)].unpack(Ref<GradNode>(const_cast<OpNode*>(this))));
  return list;
}

Tensor OpNode::output(int result) const {
  check_declared(op_.def().vjp.saves.outputs >> result & 1, "output", result);
  return saved_outputs_[static_cast<size_t>(result)].unpack(Ref<GradNode>(const_cast<OpNode*>(this)));
}

const TensorShape& OpNode::shape(int argument) const { return shape(argument, 0); }
const TensorShape& OpNode::shape(int argument, int element) const {
  const Saves& saves = op_.def().vjp.saves;
  check_declared((saves.sizes | saves.inputs) >> argument & 1, "the sizes of input", argument);
  return shapes_[static_cast<size_t>(find(argument).first + element)];
}

bool OpNode::wants(int argument) const { return wants_input(find(argument).first); }
bool OpNode::wants(int argument, int element) const {
  return wants_input(static_cast<size_t>(find(argument).first + element));
}
const Value& OpNode::arg(int argument) const { return values_[static_cast<size_t>(argument)]; }
int OpNode::count(int argument) const { return find(argument).count; }
bool OpNode::has(int argument) const { return find(argument).given; }

}  // namespace weft
