#include "capture/graph_recorder.h"

#include "graph/operator_call.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"

namespace weft {

GraphRecorder::GraphRecorder(const MakeGraphOptions& options, const nn::Module* root)
    : options_(options), root_(root) {
  if (!root) return;
  auto note = [&](const nn::NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) root_names_.try_emplace(tensor.impl()->serial(), name);
  };
  note(root->named_parameters());
  note(root->named_buffers());
}

// --- from tensors to nodes -------------------------------------------------------------------------------

Node& GraphRecorder::add_input(const std::string& name, const Value& value) {
  Node& node = graph_.placeholder(name);
  annotate(node, value);
  track(value, node);
  return node;
}

namespace {

bool is_wrapped_number(const Tensor& tensor) {
  return (tensor.flags() & tensor_flag::kWrappedNumber) && tensor.dim() == 0 &&
         tensor.storage()->has_memory();
}

// What is inside a container; others as they are.
Value map_leaves(const Value& value, FunctionRef<Value(const Value&)> f) {
  if (value.is_sequence()) {
    ValueList mapped;
    mapped.reserve(value.elements().size());
    for (const Value& element : value.elements()) mapped.push_back(map_leaves(element, f));
    return value.is_list() ? Value::list(std::move(mapped)) : Value::tuple(std::move(mapped));
  }
  if (!value.is_dict()) return f(value);
  Dict mapped;
  for (const auto& [key, element] : value.to_dict()) mapped.set(key, map_leaves(element, f));
  return mapped;
}

bool is_symbolic_number(const Value& value) {
  return value.kind() == Value::Kind::kSymInt || value.kind() == Value::Kind::kSymFloat ||
         value.kind() == Value::Kind::kSymBool;
}

}  // namespace

Value GraphRecorder::as_nodes(const Value& value) {
  return map_leaves(value, [&](const Value& leaf) {
    if (leaf.is_tensor()) return node_for(leaf.tensor_ref());
    return is_symbolic_number(leaf) ? sizes_.value_for(leaf) : leaf;
  });
}

Value GraphRecorder::node_for(const Tensor& tensor) {
  auto known = nodes_.find(tensor.impl()->serial());
  if (known != nodes_.end()) return value_of(*known->second);
  if (is_wrapped_number(tensor)) {
    MaskScope below(0);
    return tensor.item();
  }
  return value_of(constant_node(tensor));
}

std::string GraphRecorder::constant_name(const Tensor& tensor) {
  auto owned = root_names_.find(tensor.impl()->serial());
  if (owned != root_names_.end()) return owned->second;
  bool is_parameter = tensor.requires_grad() && tensor.is_leaf();
  std::string prefix = is_parameter ? "_param_constant" : "_tensor_constant";
  return prefix + std::to_string(next_number_[prefix]++);
}

Node& GraphRecorder::constant_node(const Tensor& tensor) {
  bool is_owned = root_names_.contains(tensor.impl()->serial());
  require(!is_fake(tensor), "make_graph: {} is a fake tensor that is no input of the captured function",
          describe(tensor));
  if (FakeMode::current())
    require(
        is_owned || options_.allow_real_inputs,
        "make_graph: {} is a real tensor among fake ones: it is no input of the captured function. Pass it "
        "as an argument, capture a module that owns it, or allow it with allow_real_inputs",
        describe(tensor));
  std::string path = constant_name(tensor);
  attributes_.emplace_back(path, tensor);
  Node& node = graph_.get_attr(path);
  annotate(node, tensor);
  nodes_[tensor.impl()->serial()] = &node;
  if (FakeMode::current()) twins_[tensor.impl()->serial()] = shape_only(tensor);
  return node;
}

Value GraphRecorder::for_below(const Value& value) {
  if (twins_.empty()) return value;
  return map_leaves(value, [&](const Value& leaf) {
    if (!leaf.is_tensor()) return leaf;
    auto twin = twins_.find(leaf.tensor_ref().impl()->serial());
    return twin == twins_.end() ? leaf : Value(twin->second);
  });
}

// --- calls -----------------------------------------------------------------------------------------------

namespace {

// A factory says where its result lives even when the program did not: graphs are run elsewhere.
void fill_in_device(const Operator& op, ValueList& args) {
  if (!op.has(Traits::kFactory)) return;
  const std::vector<Argument>& arguments = op.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!args[i].is_none()) continue;
    if (arguments[i].name == "device") args[i] = kCpu;
    if (arguments[i].name == "pin_memory") args[i] = false;
  }
}

}  // namespace

Value GraphRecorder::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  const uint32_t bit = options_.pre_dispatch ? layer::kRecorderUpper : layer::kRecorderLower;
  if (const HigherOrder* higher_order = op.def().higher_order) {
    if (higher_order->branches) return record_operator_over_functions(op, args, run);
    MaskScope here(layer::at_and_below(bit));
    return higher_order->run(args);
  }
  auto replaced = options_.decompositions.find(&op);
  if (replaced != options_.decompositions.end() && !open_.contains(&op)) {
    open_.insert(&op);
    MaskScope here(layer::at_and_below(bit));
    Value result = replaced->second(args);
    open_.erase(&op);
    return result;
  }
  ValueList nodes;
  nodes.reserve(args.size());
  for (const Value& arg : args) nodes.push_back(as_nodes(arg));
  fill_in_device(op, nodes);
  ValueList below;
  if (!twins_.empty())
    for (const Value& arg : args) below.push_back(for_below(arg));
  Value result = run(twins_.empty() ? args : Args(below));
  if (!twins_.empty()) result = instead_of_twins(op, args, below, result);
  WrittenCall call = written_call(op, nodes);
  Node& node = graph_.call(*call.op, std::move(call.args), std::move(call.kwargs));
  annotate(node, result);
  track(result, node);
  return result;
}

Value GraphRecorder::record_operator_over_functions(const Operator& op, Args args,
                                                    FunctionRef<Value(Args)> run) {
  ValueList nodes;
  for (const Value& arg : args) nodes.push_back(as_nodes(arg));
  for (const Branch& branch : op.def().higher_order->branches(args)) {
    GraphModule graph = capture_branch(*callable_in(args[branch.argument]), branch.inputs);
    std::string name = fmt::format("{}_{}", branch.graph_name, next_number_[branch.graph_name]++);
    attributes_.emplace_back(name, Value(Ref<ValueObject>(graph.callable())));
    nodes[branch.argument] = value_of(graph_.get_attr(name));
  }
  ValueList below;
  for (const Value& arg : args) below.push_back(for_below(arg));
  Value result = run(below);
  WrittenCall call = written_call(op, nodes);
  Node& node = graph_.call(*call.op, std::move(call.args), std::move(call.kwargs));
  annotate(node, result);
  track(result, node);
  return result;
}

// The graph of a function that the program runs later, perhaps: it works on tensors of its own.
GraphModule GraphRecorder::capture_branch(Callable& function, Args inputs) {
  GraphRecorder inner(options_, nullptr);
  ValueList own;
  for (size_t i = 0; i < inputs.size(); ++i) {
    own.push_back(map_leaves(for_below(inputs[i]), [&](const Value& leaf) {
      if (!leaf.is_tensor()) return leaf;
      if (is_fake(leaf.tensor_ref())) return Value(shape_only(leaf.tensor_ref()));
      MaskScope below(0);
      return Value(leaf.tensor_ref().clone());
    }));
    inner.add_input(fmt::format("arg{}_1", i), own.back());
  }
  Value result;
  {
    bool upper = options_.pre_dispatch;
    RecorderScope scope(inner, upper ? Position::kUpper : Position::kLower);
    MaskScope here(layer::at_and_below(upper ? layer::kRecorderUpper : layer::kRecorderLower));
    result = function.call(own);
  }
  inner.graph().output(inner.as_nodes(result));
  return inner.finish();
}

// A call that gives one of its arguments back gives the program's own tensor, not what stood for it below.
Value GraphRecorder::instead_of_twins(const Operator& op, Args args, Args below, const Value& result) {
  if (!op.info().is_mutable) return result;
  return map_leaves(result, [&](const Value& leaf) {
    for (size_t i = 0; i < args.size(); ++i)
      if (leaf.is_tensor() && below[i].is_tensor() && leaf.tensor_ref().is_same(below[i].tensor_ref()))
        return args[i];
    return leaf;
  });
}

void GraphRecorder::annotate(Node& node, const Value& result) {
  node.meta().value = map_leaves(result, [](const Value& leaf) {
    return leaf.is_tensor() ? Value(shape_only(leaf.tensor_ref())) : leaf;
  });
}

void GraphRecorder::track(const Value& result, Node& node) {
  if (result.is_tensor()) {
    const Tensor& tensor = result.tensor_ref();
    nodes_[tensor.impl()->serial()] = &node;
    sizes_.offer(tensor, node);
  } else if (result.kind() == Value::Kind::kSymInt) {
    sizes_.define(result.to_sym_int().expr(), node);
  } else if (result.kind() == Value::Kind::kSymFloat) {
    sizes_.define(result.to_sym_float().expr(), node);
  } else if (result.kind() == Value::Kind::kSymBool) {
    sizes_.define(result.to_sym_bool().expr(), node);
  } else if (result.is_sequence()) {
    static const PythonFunction& getitem = python_function("operator.getitem");
    for (size_t i = 0; i < result.elements().size(); ++i) {
      const Value& element = result.elements()[i];
      if (!element.is_tensor() && !is_symbolic_number(element) && !element.is_sequence()) continue;
      Node& item = graph_.call(getitem, {value_of(node), static_cast<int64_t>(i)});
      annotate(item, element);
      track(element, item);
    }
  }
}

void GraphRecorder::grad_mode_changed(bool enabled) {
  if (options_.pre_dispatch) graph_.call(python_function("torch._C._set_grad_enabled"), {enabled});
}

GraphModule GraphRecorder::finish() {
  if (!options_.keep_dead_code) graph_.eliminate_dead_code();
  graph_.lint();
  GraphModule module(attributes_, std::move(graph_));
  module.delete_unused_attributes();
  return module;
}

}  // namespace weft
