#include "capture/symbolic_tracer.h"

#include "weft/base/error.h"
#include "weft/base/stack_trace.h"
#include "weft/core/struct.h"
#include "weft/ops/fake.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

thread_local SymbolicTracer* active_tracer = nullptr;

}  // namespace

SymbolicTracer* SymbolicTracer::current() noexcept { return active_tracer; }

SymbolicTracer::SymbolicTracer(const SymbolicTraceOptions& options, const nn::Module* root)
    : GraphWriter(root), options_(options) {
  if (root) paths_ = module_paths(*root->state(), "");
}

SymbolicTracer::Scope::Scope(SymbolicTracer& tracer)
    : recorder_(tracer, Recorder::Position::kUpper), modules_(&tracer) {
  saved_watcher_ = std::exchange(weft::detail::tensor_watcher, &tracer);
  saved_rank_question_ = std::exchange(weft::detail::has_unknown_rank, [](const TensorImpl& tensor) {
    return active_tracer && active_tracer->is_listening() && active_tracer->node_of(tensor) &&
           !active_tracer->knows_shape(tensor);
  });
  outer_ = std::exchange(active_tracer, &tracer);
}
SymbolicTracer::Scope::~Scope() {
  weft::detail::tensor_watcher = saved_watcher_;
  weft::detail::has_unknown_rank = saved_rank_question_;
  active_tracer = outer_;
}

// --- proxies ---------------------------------------------------------------------------------------------

Tensor SymbolicTracer::proxy(Node& node, const Tensor& meta) {
  Tensor made;
  if (meta.defined()) {
    made = shape_only(meta);
  } else {
    auto impl = make_ref<TensorImpl>(Storage::without_memory(0, kCpu), kFloat32, kCpu);
    impl->set_contiguous({});
    made = Tensor(std::move(impl));
  }
  // The recorder's bit leads every use here, and to a clear error once the trace is over.
  made.impl()->set_flags(layer::kRecorderUpper | tensor_flag::kWatched);
  if (meta.defined()) shaped_.emplace(made.impl()->serial(), shape_only(meta));
  track(made, node);
  return made;
}

Value SymbolicTracer::unknown_tensor(const Tensor& tensor) {
  require(!(tensor.flags() & layer::kRecorderUpper), "symbolic_trace: a proxy of another trace is used here");
  return value_of(attribute_node(tensor));
}

void SymbolicTracer::annotate(Node& node, const Value&) {
  if (!trail_.modules().empty()) node.meta().modules = trail_.modules();
  if (options_.record_stack_traces)
    node.meta().trace = std::make_shared<const StackTrace>(StackTrace::capture());
}

bool SymbolicTracer::has_stand_ins(Args args) const {
  for (const Value& arg : args) {
    if (arg.is_tensor() && node_of(*arg.tensor_ref().impl()) &&
        (arg.tensor_ref().flags() & layer::kRecorderUpper))
      return true;
    if (is_symbolic_number(arg) || node_in(arg)) return true;
    if (arg.is_sequence() && has_stand_ins(Args(arg.elements()))) return true;
    if (arg.is_dict())
      for (const auto& [key, element] : arg.to_dict())
        if (has_stand_ins(Args(&element, 1))) return true;
  }
  return false;
}

// What is done with parameters and buffers is part of the program: they change after the trace.
bool SymbolicTracer::uses_root(Args args) const {
  for (const Value& arg : args) {
    if (arg.is_tensor() && is_owned_by_root(arg.tensor_ref())) return true;
    if (arg.is_sequence() && uses_root(Args(arg.elements()))) return true;
  }
  return false;
}

SymInt SymbolicTracer::number(Node& node, std::string_view what) {
  SymInt value = env_->create_unbacked_int(sym::Source::computed(std::string(what)));
  track(value, node);
  return value;
}

// --- calls -----------------------------------------------------------------------------------------------

std::optional<Value> SymbolicTracer::shapes_of(Args args, FunctionRef<Value(Args)> run) const {
  bool all_known = true;
  ValueList shapes;
  for (const Value& arg : args)
    shapes.push_back(map_leaves(arg, [&](const Value& leaf) {
      if (!leaf.is_tensor()) {
        all_known &= !is_symbolic_number(leaf) && !node_in(leaf);
        return leaf;
      }
      const TensorImpl& impl = *leaf.tensor_ref().impl();
      auto found = shaped_.find(impl.serial());
      if (found != shaped_.end()) return Value(found->second);
      all_known &= !(impl.flags() & layer::kRecorderUpper);
      return Value(shape_only(leaf.tensor_ref()));
    }));
  if (!all_known) return std::nullopt;
  FakeMode fake({.allow_real_inputs = true});
  return run(shapes);
}

Value SymbolicTracer::stand_in(Node& node, const Value& shapes) {
  if (shapes.is_tensor()) return proxy(node, shapes.tensor_ref());
  if (shapes.is_sequence()) {
    ValueList parts;
    for (size_t i = 0; i < shapes.elements().size(); ++i)
      parts.push_back(stand_in(item(node, static_cast<int64_t>(i)), shapes.elements()[i]));
    return shapes.is_list() ? Value::list(std::move(parts)) : Value::tuple(std::move(parts));
  }
  if (auto* record = shapes.object_as<StructObject>()) {
    ValueList fields;
    for (size_t i = 0; i < record->fields().size(); ++i)
      fields.push_back(stand_in(item(node, static_cast<int64_t>(i)), record->fields()[i]));
    return make_struct(record->type(), std::move(fields));
  }
  if (!shapes.is_dict()) return shapes;
  Dict parts;
  for (const auto& [key, element] : shapes.to_dict()) parts.set(key, stand_in(item(node, key), element));
  return parts;
}

Value SymbolicTracer::stand_in_of_form(Node& node, std::string_view& form, const std::string& path) {
  const char kind = form.front();
  form.remove_prefix(1);
  if (kind != '(') {
    if (kind == '-')
      unsupported(
          "symbolic_trace: the leaf module '{}' gives a number, or a list of any length, which C++ code "
          "needs now, but only "
          "a run of the graph will have; give meta_args, or let is_leaf_module open the module",
          path);
    return proxy(node);
  }
  ValueList parts;
  while (form.front() != ')')
    parts.push_back(stand_in_of_form(item(node, static_cast<int64_t>(parts.size())), form, path));
  form.remove_prefix(1);
  return Value::tuple(std::move(parts));
}

Value SymbolicTracer::stand_ins(const Operator& op, Args args, Node& node,
                                const std::optional<Value>& shapes) {
  const std::vector<Return>& returns = op.schema().returns;
  if (op.form() == OpForm::kInplace) {
    // The tensor itself, which from now on is what this node gives.
    track(args[0], node);
    return args[0];
  }
  auto one = [&](const Return& result, Node& from, const Value* shape) -> Value {
    if (result.type.is_tensor()) return proxy(from, shape ? shape->to_tensor() : Tensor());
    if (result.type.is(Type::Kind::kSymInt) || result.type.is(Type::Kind::kInt))
      return number(from, op.name());
    if (result.type.is_list() && result.type.element().is_tensor()) {
      require(
          shape != nullptr,
          "symbolic_trace: {} gives a list whose length depends on sizes that are not known; give meta_args, "
          "or keep it inside of a leaf module",
          op.name());
      ValueList list;
      for (size_t i = 0; i < shape->elements().size(); ++i)
        list.emplace_back(proxy(item(from, static_cast<int64_t>(i)), shape->elements()[i].to_tensor()));
      return Value::list(std::move(list));
    }
    unsupported(
        "symbolic_trace: {} gives a {}, which C++ code needs now, but only a run of the graph will have",
        op.name(), result.type.to_string());
  };
  if (returns.empty()) return {};
  if (returns.size() == 1) return one(returns[0], node, shapes ? &*shapes : nullptr);
  ValueList all;
  for (size_t i = 0; i < returns.size(); ++i)
    all.push_back(
        one(returns[i], item(node, static_cast<int64_t>(i)), shapes ? &shapes->elements()[i] : nullptr));
  return Value::tuple(std::move(all));
}

namespace {

bool runs_functions(Args args) {
  for (const Value& arg : args)
    if (arg.is_object() && !holds_operator(arg)) return true;
  return false;
}

}  // namespace

Value SymbolicTracer::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  if (!has_stand_ins(args) && !uses_root(args)) return run(args);
  if (op.def().higher_order && runs_functions(args))
    unsupported("symbolic_trace: {} runs functions on tensors, which needs their values", op.name());
  ValueList nodes;
  for (const Value& arg : args) nodes.push_back(as_nodes(arg));
  std::optional<Value> shapes = shapes_of(args, run);
  // What is written in place is a method, as only tensors have it.
  Node* node = nullptr;
  if (op.form() == OpForm::kInplace) {
    node = &noted(add_method(op, nodes));
  } else {
    node = &add_call(op, nodes, Value());
  }
  return stand_ins(op, args, *node, shapes);
}

Value SymbolicTracer::record(std::string_view function, const ValueList& args) {
  return value_of(noted(graph().call_function(function, args)));
}
Value SymbolicTracer::record_method(std::string_view method, const ValueList& args) {
  return value_of(noted(graph().call_method(method, args)));
}

// --- modules ---------------------------------------------------------------------------------------------

bool SymbolicTracer::is_leaf(const nn::ModuleState& module, const std::string& path) const {
  if (options_.is_leaf_module) return options_.is_leaf_module(module, path);
  bool is_container = module.class_name == "Sequential" || module.class_name == "ModuleList";
  return module.qualified_class.starts_with("weft::nn::") && !is_container;
}

Value SymbolicTracer::handle(const nn::ModuleCall& call) {
  auto found = paths_.find(call.module.get());
  std::optional<ModuleTrail::Call> running;
  if (found != paths_.end()) running.emplace(trail_, found->second, call.module->class_name);
  bool is_root = found != paths_.end() && found->second.empty();
  if (is_root || !has_stand_ins(call.args)) return call.run(call.args);
  require(found != paths_.end(),
          "symbolic_trace: a {} that is not installed as a submodule of the traced module is called",
          call.module->class_name);
  if (!is_leaf(*call.module, found->second)) return call.run(call.args);
  ValueList nodes;
  for (const Value& arg : call.args) nodes.push_back(as_nodes(arg));
  auto run_below = [&](Args shapes) {
    MaskScope below(layer::below(layer::kRecorderUpper));
    nn::ModuleObserver::Scope unwatched(nullptr);
    return call.run(shapes);
  };
  std::optional<Value> shape = shapes_of(call.args, run_below);
  Node& node = noted(graph().call_module(found->second, std::move(nodes)));
  if (shape) return stand_in(node, *shape);
  std::string_view form = call.result_form;
  return stand_in_of_form(node, form, found->second);
}

// --- questions -------------------------------------------------------------------------------------------

bool SymbolicTracer::is_listening() const {
  const LayerState& state = layer_state();
  return active_tracer == this && (state.active & state.mask & layer::kRecorderUpper);
}

SymIntSpan SymbolicTracer::sizes(const TensorImpl& tensor) {
  if (is_listening() && !knows_shape(tensor)) about_to_read(tensor, "sizes()");
  return tensor.sizes();
}

SymInt SymbolicTracer::size(const TensorImpl& tensor, int64_t dim) {
  Node* node = is_listening() && !knows_shape(tensor) ? node_of(tensor) : nullptr;
  if (!node) return TensorWatcher::size(tensor, dim);
  return number(noted(graph().call_method("size", {value_of(*node), dim})), "size");
}

SymInt SymbolicTracer::numel(const TensorImpl& tensor) {
  Node* node = is_listening() && !knows_shape(tensor) ? node_of(tensor) : nullptr;
  if (!node) return tensor.numel();
  return number(noted(graph().call_method("numel", {value_of(*node)})), "numel");
}

void SymbolicTracer::about_to_read(const TensorImpl& tensor, const char* what) {
  if (!is_listening() || knows_shape(tensor)) return;
  const Node* node = node_of(tensor);
  fail(
      "symbolic_trace: {} of '{}' is not known: it is traced without inputs. Give example tensors by "
      "meta_args, or "
      "keep the code that asks inside of a leaf module",
      what, node ? node->name() : "a proxy");
}

}  // namespace weft
