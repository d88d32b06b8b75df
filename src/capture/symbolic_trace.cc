#include "weft/capture/symbolic_trace.h"

#include <algorithm>
#include <unordered_set>

#include "capture/graph_retracer.h"
#include "core/tree_level.h"
#include "weft/base/error.h"
#include "weft/base/warning.h"
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
  if (value.is_tensor() || value.is_object()) {
    warn(WarningKind::kUser,
         "Was not able to add assertion to guarantee correct input {} to specialized function. It is up to "
         "the "
         "user to make sure that your inputs match the inputs you specialized the function with.",
         name);
    return;
  }
  Node& same =
      graph.call_function(value.is_none() ? "operator.is_" : "operator.eq", {value_of(placeholder), value});
  graph.call_function(
      "torch._assert",
      {value_of(same), fmt::format("{} has been specialized to have value {} but got another value", name,
                                   value.to_string())});
}

// A container that is fixed: each of its leaves is an input of the graph.
TreeSpec add_fixed_tree(Graph& graph, const std::string& name, const Value& value) {
  auto [leaves, spec] = tree_flatten(value);
  for (size_t i = 0; i < leaves.size(); ++i)
    add_specialization_check(graph, graph.placeholder(fmt::format("{}_{}", name, i + 1)), name, leaves[i]);
  return spec;
}

struct Parameter {
  std::string name;
  std::optional<Value> default_value;
  detail::ParameterKind kind;
};

// An option by the name of an argument that is not there was meant for another one.
void check_names(const char* option, const Dict& named, const std::vector<Parameter>& parameters) {
  for (const auto& [name, value] : named) {
    std::string known;
    bool is_there = false;
    for (const Parameter& parameter : parameters) {
      known += (known.empty() ? "" : ", ") + parameter.name;
      is_there |= name.is_string() && name.to_string_view() == parameter.name;
    }
    require(is_there, "symbolic_trace: {} names {}, but the arguments are [{}]", option, name.to_string(),
            known);
  }
}

// What the program is given for an argument that is one input of the graph.
Value argument(SymbolicTracer& tracer, const Parameter& parameter, const SymbolicTraceOptions& options) {
  const std::string& name = parameter.name;
  Node& placeholder = tracer.noted(tracer.graph().placeholder(name, parameter.default_value));
  if (const Value* fixed = options.concrete_args.find(name)) {
    add_specialization_check(tracer.graph(), placeholder, name, *fixed);
    return *fixed;
  }
  if (const Value* meta = options.meta_args.find(name)) return tracer.proxy(placeholder, meta->to_tensor());
  if (parameter.kind == detail::ParameterKind::kTensor) return tracer.proxy(placeholder);
  require(parameter.kind == detail::ParameterKind::kVar,
          "symbolic_trace: argument '{}' has a C++ type that only values have: fix it by concrete_args, or "
          "make it a Var",
          name);
  return value_of(placeholder);
}

GraphModule trace_with(SymbolicTracer& tracer, const ValueFunction& f,
                       const std::vector<Parameter>& parameters, const SymbolicTraceOptions& options) {
  check_names("concrete_args", options.concrete_args, parameters);
  check_names("meta_args", options.meta_args, parameters);
  CallSpec spec;
  std::vector<TreeSpec> trees;
  bool has_trees = false;
  {
    SymbolicTracer::Scope scope(tracer);
    ValueList args;
    for (const Parameter& parameter : parameters) {
      const Value* fixed = options.concrete_args.find(parameter.name);
      const bool is_tree = fixed && is_container(*fixed);
      has_trees |= is_tree;
      trees.push_back(is_tree ? add_fixed_tree(tracer.graph(), parameter.name, *fixed) : TreeSpec());
      args.push_back(is_tree ? *fixed : argument(tracer, parameter, options));
      spec.argument_names.push_back(parameter.name);
    }
    Value result = tracer.as_nodes(f(args));
    if (has_trees) {
      auto [leaves, result_spec] = tree_flatten(result);
      spec.result = result_spec;
      result = Value::list(leaves);
    }
    tracer.graph().output(result);
  }
  GraphModule module = tracer.finish(true);
  spec.arguments = TreeSpec::tuple(std::move(trees));
  if (has_trees) module.set_call_spec(std::move(spec));
  return module;
}

}  // namespace

GraphModule symbolic_trace_function(const ValueFunction& f, const std::vector<detail::ParameterKind>& kinds,
                                    const nn::Module* root, SymbolicTraceOptions options) {
  const ArgumentNames names(options.arg_names);
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i < names.entries().size())
      parameters.push_back({names.entries()[i].name, names.entries()[i].default_value, kinds[i]});
    else parameters.push_back({fmt::format("arg{}", i), std::nullopt, kinds[i]});
  }
  SymbolicTracer tracer(options, root);
  return trace_with(tracer, f, parameters, options);
}

GraphModule symbolic_trace_graph(const GraphModule& module, SymbolicTraceOptions options) {
  const ArgumentNames names(options.arg_names);
  std::vector<Parameter> parameters;
  for (const Node* node : module.graph().placeholders()) {
    const size_t i = parameters.size();
    if (i < names.entries().size()) {
      parameters.push_back(
          {names.entries()[i].name, names.entries()[i].default_value, detail::ParameterKind::kVar});
      continue;
    }
    std::optional<Value> default_value;
    if (!node->args().empty()) default_value = node->args()[0];
    parameters.push_back({node->target().to_string(), std::move(default_value), detail::ParameterKind::kVar});
  }
  SymbolicTracer tracer(options, &module);
  auto retrace = [&](Args args) { return GraphRetracer(tracer, module, "").retrace(args); };
  GraphModule again = trace_with(tracer, retrace, parameters, options);
  if (module.call_spec()) again.set_call_spec(*module.call_spec());
  return again;
}

// --- modules as what they do -----------------------------------------------------------------------------

namespace {

// What the C++ module at this path does with so many arguments, in the mode that it is in.
GraphModule graph_of_layer(const GraphModule& root, std::string_view path, size_t arguments) {
  Ref<Callable> callable(callable_in(root.find(path)));
  require(callable != nullptr, "'{}' is no module", path);
  nn::Module layer = nn::Module::over(state_at(root, path));
  std::vector<detail::ParameterKind> kinds(arguments, detail::ParameterKind::kTensor);
  SymbolicTraceOptions options;
  options.is_leaf_module = [](const nn::ModuleState&, std::string_view) { return false; };
  return symbolic_trace_function([callable](Args own) { return callable->call(own); }, kinds, &layer,
                                 options);
}

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
    if (graph_module_in(module().find(path)) || !kwargs.empty())
      return Transformer::call_module(path, args, kwargs);
    return splice(graph_of_layer(module(), path, args.size()), std::string(path), args);
  }

 private:
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
        Node& copy = new_graph().node_copy(node, map);
        // The graph may be called again: what it draws comes when it comes.
        if (copy.meta_or_null()) copy.meta().random_offset.reset();
        twins.emplace(&node, value_of(copy));
      }
    }
    return {};
  }

  GraphModule::Attributes constants_;
};

}  // namespace

GraphModule inline_modules(const GraphModule& module) { return ModuleInliner(module).inlined(); }

namespace {

bool calls_layers(const GraphModule& module) {
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    std::optional<Value> value = module.try_find(node.target().to_string());
    std::optional<GraphModule> inner = value ? graph_module_in(*value) : std::nullopt;
    if (inner ? calls_layers(*inner) : node.kind() == NodeKind::kCallModule) return true;
  }
  return false;
}

}  // namespace

GraphModule modules_as_graphs(const GraphModule& module) {
  if (!calls_layers(module)) return module;
  GraphModule::Attributes attributes;
  std::unordered_set<std::string> seen;
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    const std::string path = node.target().to_string();
    if (!seen.insert(path).second) continue;
    Value value = module.find(path);
    if (std::optional<GraphModule> inner = graph_module_in(value)) {
      value = Ref<ValueObject>(modules_as_graphs(*inner).callable());
    } else if (node.kind() == NodeKind::kCallModule) {
      require(node.kwargs().empty(),
              "'{}' calls '{}' with arguments by name, which a graph of it would not know", node.name(),
              path);
      value = Ref<ValueObject>(graph_of_layer(module, path, node.args().size()).callable());
    }
    attributes.emplace_back(path, std::move(value));
  }
  // Those of modules first: what is inside of one comes with it.
  std::stable_partition(attributes.begin(), attributes.end(),
                        [](const auto& entry) { return entry.second.is_object(); });
  GraphModule made(attributes, module.graph().copy(), module.state()->class_name);
  made.state()->training = module.is_training();
  if (module.call_spec()) made.set_call_spec(*module.call_spec());
  made.set_traced_inputs(module.traced_inputs());
  return made;
}

}  // namespace weft
