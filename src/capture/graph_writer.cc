#include "capture/graph_writer.h"

#include "dispatch/rule_calls.h"
#include "graph/operator_call.h"
#include "weft/base/error.h"
#include "weft/core/struct.h"
#include "weft/ops/fake.h"

namespace weft {

bool is_symbolic_number(const Value& value) {
  return value.kind() == Value::Kind::kSymInt || value.kind() == Value::Kind::kSymFloat ||
         value.kind() == Value::Kind::kSymBool;
}

namespace {

void note_paths(const nn::ModuleState& state, const std::string& path, ModulePaths& paths) {
  paths.try_emplace(&state, path);
  for (const nn::ModuleState::Child& child : state.children)
    note_paths(*child.state, path.empty() ? child.name : path + "." + child.name, paths);
}

}  // namespace

ModulePaths module_paths(const nn::ModuleState& root, const std::string& path) {
  ModulePaths paths;
  note_paths(root, path, paths);
  return paths;
}

std::shared_ptr<nn::ModuleState> state_at(const nn::Module& root, std::string_view path) {
  std::shared_ptr<nn::ModuleState> state = root.state();
  for (std::string_view rest = path;;) {
    const size_t dot = rest.find('.');
    std::shared_ptr<nn::ModuleState> next;
    for (const nn::ModuleState::Child& child : state->children)
      if (child.name == rest.substr(0, dot)) next = child.state;
    require(next != nullptr, "there is no module at '{}'", path);
    state = std::move(next);
    if (dot == std::string_view::npos) return state;
    rest = rest.substr(dot + 1);
  }
}

GraphWriter::GraphWriter(const nn::Module* root) : root_(root) {
  if (!root) return;
  auto note = [&](const nn::NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors) root_names_.try_emplace(tensor.impl()->serial(), name);
  };
  note(root->named_parameters());
  note(root->named_buffers());
}

// --- from values to nodes --------------------------------------------------------------------------------

Node& GraphWriter::add_input(const std::string& name, const Value& value) {
  Node& node = graph_.placeholder(name);
  annotate(node, value);
  track(value, node);
  return node;
}

Tensor GraphWriter::fake_input(FakeConverter& converter, const Tensor& given) const {
  const FakeRequest request = FakeRequest().without_base();
  const Tensor& fake = converter.convert(given, request);
  return node_of(*fake.impl()) ? converter.convert_again(given, request) : fake;
}

namespace {

bool is_wrapped_number(const Tensor& tensor) {
  return (tensor.flags() & tensor_flag::kWrappedNumber) && tensor.dim() == 0 &&
         tensor.storage()->has_memory();
}

}  // namespace

Value GraphWriter::as_nodes(const Value& value) {
  return map_leaves(value, [&](const Value& leaf) -> Value {
    if (is_symbolic_number(leaf)) return sizes_.value_for(leaf);
    if (!leaf.is_tensor()) return leaf;
    const Tensor& tensor = leaf.tensor_ref();
    auto known = nodes_.find(tensor.impl()->serial());
    if (known != nodes_.end()) return value_of(*known->second);
    if (!is_wrapped_number(tensor)) return unknown_tensor(tensor);
    MaskScope below(0);
    return tensor.item();
  });
}

void GraphWriter::track(const Value& value, Node& node) {
  if (value.is_tensor()) {
    nodes_[value.tensor_ref().impl()->serial()] = &node;
    sizes_.offer(value.tensor_ref(), node);
  } else if (value.kind() == Value::Kind::kSymInt) {
    sizes_.define(value.to_sym_int().expr(), node);
  } else if (value.kind() == Value::Kind::kSymFloat) {
    sizes_.define(value.to_sym_float().expr(), node);
  } else if (value.kind() == Value::Kind::kSymBool) {
    sizes_.define(value.to_sym_bool().expr(), node);
  } else if (value.is_sequence()) {
    track_items(value.elements(), node);
  } else if (auto* record = value.object_as<StructObject>()) {
    track_items(record->fields(), node);
  } else if (value.is_dict()) {
    for (const auto& [key, element] : value.to_dict()) track_item(key, element, node);
  }
}

void GraphWriter::track_items(const ValueList& elements, Node& node) {
  for (size_t i = 0; i < elements.size(); ++i) track_item(static_cast<int64_t>(i), elements[i], node);
}

void GraphWriter::track_item(const Value& key, const Value& element, Node& node) {
  static const PythonFunction& getitem = python_function("operator.getitem");
  bool may_hold_tensors =
      element.is_tensor() || element.is_sequence() || element.is_dict() || element.is_object();
  const bool has_item = may_hold_tensors || element.is_none() || is_symbolic_number(element);
  if (!has_item) return;
  Node& item = graph_.call(getitem, {value_of(node), key});
  annotate(item, element);
  track(element, item);
}

void GraphWriter::annotate(Node& node, const Value& result) { node.meta().value = noted_form(result); }

void GraphWriter::note_origin(Node& node, Origin here) {
  NodeMeta& meta = node.meta();
  if (const Origin* known = Origin::current()) {
    if (known->trace || !known->source.empty()) {
      here.trace = known->trace;
      here.source = known->source;
    }
    if (!known->modules.empty()) here.modules = known->modules;
    if (!known->function.empty()) here.function = known->function;
    meta.came_from =
        std::make_shared<const NodeMeta::CameFrom>(NodeMeta::CameFrom{known->node, known->is_backward});
  }
  meta.trace = std::move(here.trace);
  meta.source = std::move(here.source);
  meta.modules = std::move(here.modules);
  if (!here.function.empty()) meta.extra.set("torch_fn", std::move(here.function));
}

// --- attributes ------------------------------------------------------------------------------------------

bool GraphWriter::is_owned_by_root(const Tensor& tensor) const {
  return root_names_.contains(tensor.impl()->serial());
}

Node& GraphWriter::new_attribute(const std::string& prefix, const Value& value, std::string_view separator) {
  std::string name = fmt::format("{}{}{}", prefix, separator, next_number_[prefix]++);
  attributes_.emplace_back(name, value);
  return graph_.get_attr(name);
}

Node& GraphWriter::attribute_node(const Tensor& tensor) {
  auto owned = root_names_.find(tensor.impl()->serial());
  Node* node = nullptr;
  if (owned != root_names_.end()) {
    attributes_.emplace_back(owned->second, tensor);
    node = &graph_.get_attr(owned->second);
  } else {
    bool is_parameter = tensor.requires_grad() && tensor.is_leaf();
    node = &new_attribute(is_parameter ? "_param_constant" : "_tensor_constant", tensor);
  }
  annotate(*node, tensor);
  nodes_[tensor.impl()->serial()] = node;
  return *node;
}

void GraphWriter::forget(const std::unordered_set<const Node*>& nodes, Nodes known) {
  nodes_ = std::move(known);
  sizes_.forget(nodes);
}

Value GraphWriter::attribute(std::string_view path) const {
  for (const auto& [name, value] : attributes_)
    if (name == path) return value;
  return {};
}

// --- calls -----------------------------------------------------------------------------------------------

namespace {

// A factory says where its result lives even when the program did not: graphs are run elsewhere. As in
// Python, a program that makes a tensor like another says that it is not pinned; a layout comes with all
// options of a tensor.
void fill_in_device(const Operator& op, ValueList& args, bool is_of_rule) {
  const bool is_factory = op.has(Traits::kFactory);
  if (!is_factory && !op.has(Traits::kNotDifferentiable)) return;
  const Schema& schema = op.schema();
  auto fill = [&](const char* name, const Value& value) {
    std::optional<size_t> at = schema.argument_index(name);
    if (at && args[*at].is_none()) args[*at] = value;
  };
  std::optional<size_t> layout = schema.argument_index("layout");
  if (!is_of_rule && layout && args[*layout].is_none()) fill("pin_memory", false);
  if (is_factory) fill("device", kCpu);
}

}  // namespace

// A call that gives the tensor of an argument other sizes, as transpose_ does: what they were is read before.
void GraphWriter::note_new_sizes(const Operator& op, const ValueList& nodes, const Value& result,
                                 Node& call) {
  if (!op.info().is_mutable || !result.is_tensor()) return;
  const int16_t own = op.info().result_aliases.empty() ? int16_t{-1} : op.info().result_aliases[0];
  const Node* target = own < 0 ? nullptr : node_in(nodes[static_cast<size_t>(own)]);
  const NodeMeta* meta = target ? target->meta_or_null() : nullptr;
  if (!meta || !meta->value.is_tensor() || !meta->value.tensor_ref().is_symbolic()) return;
  SymIntSpan before = meta->value.tensor_ref().impl()->sizes(), after = result.tensor_ref().impl()->sizes();
  bool is_same = before.size() == after.size();
  for (size_t d = 0; is_same && d < before.size(); ++d) is_same = known(before[d] == after[d]);
  if (!is_same) sizes_.note_change(*target, call);
}

Node& GraphWriter::add_call(const Operator& op, const ValueList& nodes, const Value& result) {
  ValueList complete = nodes;
  const bool is_of_rule = dispatch::calls_are_of_rule();
  fill_in_device(op, complete, is_of_rule);
  WrittenCall call = is_of_rule ? written_as_called(op, complete) : written_call(op, complete);
  Node& node = graph_.create(NodeKind::kCallFunction, *call.op, std::move(call.args), std::move(call.kwargs),
                             op.def().higher_order ? op.def().higher_order->node_name : std::string_view());
  annotate(node, result);
  track(result, node);
  note_new_sizes(op, nodes, result, node);
  return node;
}

Node& GraphWriter::add_method(const Operator& op, const ValueList& nodes) {
  WrittenCall call = written_call(op, nodes);
  return graph_.call_method(call.op->schema().name, std::move(call.args), std::move(call.kwargs));
}

GraphModule GraphWriter::finish(bool keep_dead_code, const std::string& class_name) {
  graph_.lint();
  graph_.set_random_advance(random_.advance());
  GraphModule module = root_ ? GraphModule(*root_, attributes_, std::move(graph_), class_name)
                             : GraphModule(attributes_, std::move(graph_), class_name);
  // Whether a call of functions does anything is read off their graphs, which the module has.
  if (!keep_dead_code) module.graph().eliminate_dead_code();
  module.delete_unused_attributes();
  return module;
}

}  // namespace weft
