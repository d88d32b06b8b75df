#include "capture/graph_retracer.h"

#include "core/tree_level.h"
#include "graph/run/graph_inputs.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// Positional arguments, then those with names.
ValueList joined(Args args, const Kwargs& kwargs) {
  ValueList all(args.begin(), args.end());
  for (const auto& [name, value] : kwargs) all.push_back(value);
  return all;
}

Kwargs with_names(const Kwargs& names, Args values) {
  Kwargs kwargs;
  for (size_t i = 0; i < names.size(); ++i) kwargs.emplace_back(names[i].first, values[i]);
  return kwargs;
}

bool holds_tensors(const Value& value) {
  bool found = false;
  map_leaves(value, [&](const Value& leaf) {
    found |= leaf.is_tensor();
    return leaf;
  });
  return found;
}

}  // namespace

GraphRetracer::GraphRetracer(SymbolicTracer& tracer, GraphModule module, std::string path)
    : Interpreter(std::move(module)), tracer_(tracer), path_(std::move(path)) {}

Value GraphRetracer::retrace(Args inputs) {
  ModuleTrail::Call running(tracer_.trail(), path_, module().state()->class_name);
  return run_bound(inputs);
}

Node& GraphRetracer::recorded(Args all, const Kwargs& kwargs, FunctionRef<Node&(ValueList, Kwargs)> record) {
  ValueList nodes;
  for (const Value& value : all) nodes.push_back(tracer_.as_nodes(value));
  const size_t positional = all.size() - kwargs.size();
  Kwargs named = with_names(kwargs, Args(nodes).subspan(positional));
  nodes.resize(positional);
  return tracer_.noted(record(std::move(nodes), std::move(named)));
}

Value GraphRetracer::record_call(Args args, const Kwargs& kwargs,
                                 FunctionRef<Node&(ValueList, Kwargs)> record,
                                 FunctionRef<Value(Args, const Kwargs&)> run) {
  const ValueList all = joined(args, kwargs);
  std::optional<Value> shapes = tracer_.shapes_of(all, [&](Args values) {
    return run(values.first(args.size()), with_names(kwargs, values.subspan(args.size())));
  });
  // A number that follows from sizes that are known.
  if (shapes && !shapes->is_none() && !holds_tensors(*shapes)) return *shapes;
  Node& node = recorded(all, kwargs, record);
  return shapes ? tracer_.stand_in(node, *shapes) : value_of(node);
}

// --- each kind of node -----------------------------------------------------------------------------------

Value GraphRetracer::get_attr(std::string_view path) {
  Value value = Interpreter::get_attr(path);
  // A tensor is read where it is used. A function has no other form than its name.
  if (!value.is_object()) return value;
  const std::string whole = path_.empty() ? std::string(path) : path_ + "." + std::string(path);
  return value_of(tracer_.noted(tracer_.graph().get_attr(whole)));
}

Value GraphRetracer::call_function(const Target& target, Args args, const Kwargs& kwargs) {
  const PythonFunction* function = target.function();
  // What was taken apart while tracing is a container of proxies.
  const bool takes_item = function && function->symbol == "[]" && is_container(args[0]);
  const bool has_effect = (function && function->has_effect) || target.is_missing();
  if (takes_item || (!has_effect && !tracer_.is_recorded(joined(args, kwargs))))
    return Interpreter::call_function(target, args, kwargs);
  const HigherOrder* higher_order = target.op() ? target.op()->def().higher_order : nullptr;
  auto record = [&](ValueList nodes, Kwargs named) -> Node& {
    return tracer_.graph().create(NodeKind::kCallFunction, target, std::move(nodes), std::move(named),
                                  higher_order ? higher_order->node_name : std::string_view());
  };
  if (has_effect) return value_of(recorded(joined(args, kwargs), kwargs, record));
  auto run = [&](Args values, const Kwargs& named) { return call_target(target, values, named); };
  return record_call(args, kwargs, record, run);
}

Value GraphRetracer::call_method(std::string_view method, Args args, const Kwargs& kwargs) {
  if (!tracer_.is_recorded(joined(args, kwargs))) return Interpreter::call_method(method, args, kwargs);
  auto record = [&](ValueList nodes, Kwargs named) -> Node& {
    return tracer_.graph().call_method(method, std::move(nodes), std::move(named));
  };
  auto run = [&](Args values, const Kwargs& named) {
    return Interpreter::call_method(method, values, named);
  };
  return record_call(args, kwargs, record, run);
}

Value GraphRetracer::call_module(std::string_view path, Args args, const Kwargs& kwargs) {
  const std::string whole = path_.empty() ? std::string(path) : path_ + "." + std::string(path);
  if (!tracer_.is_recorded(joined(args, kwargs))) return Interpreter::call_module(path, args, kwargs);
  const std::shared_ptr<nn::ModuleState> state = state_at(module(), path);
  auto run = [&](Args values, const Kwargs& named) {
    MaskScope below(layer::below(layer::kRecorderUpper));
    nn::ModuleObserver::Scope unwatched(nullptr);
    return Interpreter::call_module(path, values, named);
  };
  if (tracer_.is_leaf(*state, whole)) {
    ModuleTrail::Call running(tracer_.trail(), whole, state->class_name);
    auto record = [&](ValueList nodes, Kwargs named) -> Node& {
      return tracer_.graph().call_module(whole, std::move(nodes), std::move(named));
    };
    return record_call(args, kwargs, record, run);
  }
  if (std::optional<GraphModule> inner = graph_module_in(module().find(path)))
    return run_graph(*inner, whole, args, kwargs);
  // C++ code wants tensors.
  ValueList values;
  for (const Value& value : joined(args, kwargs))
    values.push_back(map_leaves(value, [&](const Value& leaf) {
      Node* node = node_in(leaf);
      return node ? Value(tracer_.proxy(*node)) : leaf;
    }));
  return Interpreter::call_module(path, Args(values).first(args.size()),
                                  with_names(kwargs, Args(values).subspan(args.size())));
}

Value GraphRetracer::run_graph(const GraphModule& inner, const std::string& path, Args args,
                               const Kwargs& kwargs) {
  GraphRetracer retracer(tracer_, inner, path);
  const std::optional<CallSpec>& spec = inner.call_spec();
  if (!spec) return retracer.retrace(GraphInputs(inner.graph()).bind(args, kwargs));
  const ValueList trees = GraphInputs(spec->argument_names).bind(args, kwargs);
  const Value leaves = retracer.retrace(flatten_up_to(spec->arguments, Value::tuple(trees)));
  return tree_unflatten(leaves.elements(), spec->result);
}

}  // namespace weft
