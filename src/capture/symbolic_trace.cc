#include "weft/capture/symbolic_trace.h"

#include "capture/symbolic_tracer.h"
#include "weft/base/error.h"
#include "weft/graph/interpreter.h"
#include "weft/ops/overloads.h"

namespace weft {

// --- untyped values --------------------------------------------------------------------------------------

Value Var::wrap(Value value) {
  SymbolicTracer* tracer = SymbolicTracer::current();
  if (!tracer || !value.is_tensor() || !tracer->is_proxy(value.tensor_ref())) return value;
  return value_of(tracer->node_behind(value.tensor_ref()));
}

bool Var::is_symbolic() const { return node_in(value_) != nullptr; }

void Var::require_known(std::string_view what) const {
  const Node* node = node_in(value_);
  require(!node,
          "symbolically traced variables cannot be used as inputs to control flow: {} asks for the value of "
          "'{}', "
          "which only a run of the graph will have",
          what, node ? node->name() : "");
}

Var::operator bool() const {
  require_known("a condition");
  if (value_.is_tensor()) return value_.to_tensor().item().to_bool();
  if (value_.is_int()) return value_.to_int() != 0;
  return value_.to_bool();
}

Tensor Var::tensor() const {
  Node* node = node_in(value_);
  if (!node) return from_value<Tensor>(value_);
  SymbolicTracer* tracer = SymbolicTracer::current();
  require(tracer != nullptr, "'{}' belongs to a trace that has ended", node->name());
  return tracer->proxy(*node);
}

Var Var::apply(std::string_view function, std::initializer_list<Var> args) {
  ValueList values;
  bool is_recorded = false;
  for (const Var& arg : args) {
    values.push_back(arg.value_);
    is_recorded |= arg.is_symbolic();
  }
  SymbolicTracer* tracer = SymbolicTracer::current();
  if (!is_recorded) return of(python_function(function).run(values));
  require(tracer != nullptr, "{}: an argument belongs to a trace that has ended", function);
  for (Value& value : values) value = tracer->as_nodes(value);
  return of(tracer->record(function, values));
}

Var Var::operator[](const Var& key) const { return apply("operator.getitem", {*this, key}); }

Var Var::method(std::string_view name, std::initializer_list<Var> args) const {
  ValueList values{value_};
  bool is_recorded = is_symbolic();
  for (const Var& arg : args) {
    values.push_back(arg.value_);
    is_recorded |= arg.is_symbolic();
  }
  if (!is_recorded) return of(call_bound(resolve_overload(fmt::format("aten::{}", name), values)));
  SymbolicTracer* tracer = SymbolicTracer::current();
  require(tracer != nullptr, "{}: an argument belongs to a trace that has ended", name);
  for (Value& value : values) value = tracer->as_nodes(value);
  return of(tracer->record_method(name, values));
}

void assert_that(const Var& condition, std::string_view message) {
  Var::apply("torch._assert", {condition, std::string(message)});
}

// --- tracing ---------------------------------------------------------------------------------------------

namespace {

// A value that is fixed while tracing: the graph is only right for the same.
void add_specialization_check(Graph& graph, Node& placeholder, const std::string& name, const Value& value) {
  if (value.is_none()) {
    graph.call_function(
        "torch._assert",
        {value_of(graph.call_function("operator.is_", {value_of(placeholder), value})),
         fmt::format("{} has been specialized to have value None but got another value", name)});
    return;
  }
  if (!value.is_number() && !value.is_string()) return;
  Node& same = graph.call_function("operator.eq", {value_of(placeholder), value});
  graph.call_function(
      "torch._assert",
      {value_of(same), fmt::format("{} has been specialized to have value {} but got another value", name,
                                   value.to_string())});
}

}  // namespace

GraphModule symbolic_trace_function(const ValueFunction& f, const std::vector<detail::ParameterKind>& kinds,
                                    const nn::Module* root, SymbolicTraceOptions options) {
  ArgumentNames names(options.arg_names);
  SymbolicTracer tracer(options, root);
  {
    SymbolicTracer::Scope scope(tracer);
    ValueList args;
    for (size_t i = 0; i < kinds.size(); ++i) {
      bool has_name = i < names.entries().size();
      std::string name = has_name ? names.entries()[i].name : fmt::format("arg{}", i);
      std::optional<Value> default_value;
      if (has_name) default_value = names.entries()[i].default_value;
      Node& placeholder = tracer.graph().placeholder(name, default_value);
      if (const Value* fixed = options.concrete_args.find(name)) {
        add_specialization_check(tracer.graph(), placeholder, name, *fixed);
        args.push_back(*fixed);
      } else if (const Value* meta = options.meta_args.find(name)) {
        args.emplace_back(tracer.proxy(placeholder, meta->to_tensor()));
      } else if (kinds[i] == detail::ParameterKind::kTensor) {
        args.emplace_back(tracer.proxy(placeholder));
      } else {
        require(
            kinds[i] == detail::ParameterKind::kVar,
            "symbolic_trace: argument '{}' has a C++ type that only values have: fix it by concrete_args, or "
            "make it a Var",
            name);
        args.push_back(value_of(placeholder));
      }
    }
    Value result = f(args);
    tracer.graph().output(tracer.as_nodes(result));
  }
  return tracer.finish(true);
}

// --- modules as what they do -----------------------------------------------------------------------------

namespace {

// Copies a graph; a call of a C++ module becomes the operators of its forward.
class ModuleInliner final : public Transformer {
 public:
  using Transformer::Transformer;

  GraphModule inlined() {
    GraphModule copied = transform();
    for (const auto& [path, value] : constants_)
      if (!copied.try_find(path)) copied.set_attribute(path, value);
    return copied;
  }

  Value call_module(std::string_view path, Args args, const Kwargs& kwargs) override {
    Value held = module().find(path);
    if (graph_module_in(held) || !kwargs.empty()) return Transformer::call_module(path, args, kwargs);
    Ref<Callable> callable(callable_in(held));
    nn::Module owner = nn::Module::over(state_at(path));
    std::vector<detail::ParameterKind> kinds(args.size(), detail::ParameterKind::kTensor);
    SymbolicTraceOptions options;
    options.is_leaf_module = [](const nn::ModuleState&, std::string_view) { return false; };
    GraphModule inner =
        symbolic_trace_function([callable](Args own) { return callable->call(own); }, kinds, &owner, options);
    return splice(inner, std::string(path), args);
  }

 private:
  std::shared_ptr<nn::ModuleState> state_at(std::string_view path) const {
    std::shared_ptr<nn::ModuleState> state = module().state();
    while (true) {
      size_t dot = path.find('.');
      for (const nn::ModuleState::Child& child : state->children)
        if (child.name == path.substr(0, dot)) {
          state = child.state;
          break;
        }
      if (dot == std::string_view::npos) return state;
      path = path.substr(dot + 1);
    }
  }

  Value splice(const GraphModule& inner, const std::string& path, Args args) {
    std::unordered_map<const Node*, Value> twins;
    size_t next = 0;
    for (const Node& node : inner.graph()) {
      auto map = [&](Node& input) { return twins.at(&input); };
      if (node.kind() == NodeKind::kPlaceholder) {
        const bool is_given = next < args.size();
        require(is_given || !node.args().empty(), "the graph '{}' is called without its input '{}'", path,
                node.target().to_string());
        twins.emplace(&node, is_given ? args[next++] : node.args()[0]);
      } else if (node.kind() == NodeKind::kOutput) {
        return map_nodes(node.returned(), map);
      } else if (node.kind() == NodeKind::kGetAttr) {
        std::string own = path + "." + node.target().to_string();
        if (!module().try_find(own)) {
          own = fmt::format("_inlined_constant{}", constants_.size());
          constants_.emplace_back(own, inner.find(node.target().to_string()));
        }
        twins.emplace(&node, value_of(new_graph().get_attr(own)));
      } else {
        twins.emplace(&node, value_of(new_graph().node_copy(node, map)));
      }
    }
    return {};
  }

  GraphModule::Attributes constants_;
};

}  // namespace

GraphModule inline_modules(const GraphModule& module) { return ModuleInliner(module).inlined(); }

}  // namespace weft
