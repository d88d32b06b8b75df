// What a trace makes of modules and of programs that were traced before: where calls come from, or one step
// for the whole.
#include "capture/trace_recorder.h"
#include "weft/base/error.h"
#include "weft/capture/inlining.h"

namespace weft {

constinit thread_local bool NoInlineScope::is_inlining_ = true;

namespace {

template <typename T>
struct Restore {
  T& target;
  T saved;
  ~Restore() { target = std::move(saved); }
};

// The arguments in the order of the graph's inputs.
ValueList in_order(const GraphModule& module, const std::string& name, Args args, const Kwargs& kwargs) {
  if (kwargs.empty()) return {args.begin(), args.end()};
  std::string names;
  for (const Node* input : module.graph().placeholders())
    names += (names.empty() ? "" : ", ") + input->target().to_string();
  return ArgumentNames(names).bind(args, kwargs, name);
}

}  // namespace

// Under a transform the arguments are wrappers, which only operators see through.
bool TraceRecorder::keeps_calls() const {
  return !NoInlineScope::is_inlining() && is_listening() && layer_state().level_depth == 0;
}

Value TraceRecorder::run_below(Args args, FunctionRef<Value(Args)> run) {
  ValueList plain;
  for (const Value& arg : args) plain.push_back(map_leaves(arg, at_hint));
  MaskScope below(layer::below(layer::kRecorderUpper));
  nn::ModuleObserver::Scope unwatched(nullptr);
  return run(plain);
}

void TraceRecorder::define(Node& node, const Value& result) {
  annotate(node, result);
  track(result, node);
  watch(result);
}

Value TraceRecorder::call_traced(const std::string& name, const GraphModule& module, Args args,
                                 const Kwargs& kwargs) {
  if (!keeps_calls()) return module.call(args, kwargs);
  if (knows(*module.state())) {
    // The root's forward, or a method: a module can be called by its forward only.
    if (name == "forward") return module.call(args, kwargs);
    Restore<const nn::ModuleState*> restore{opened_, std::exchange(opened_, module.state().get())};
    return module.call(args, kwargs);
  }
  ValueList given = in_order(module, name, args, kwargs);
  ValueList call;
  for (const Value& arg : given) call.push_back(as_nodes(arg));
  Value result = run_below(given, [&](Args own) { return module.call(own); });
  call.insert(call.begin(), value_of(function_attribute(module, name)));
  define(graph().call_function("weft.call", std::move(call)), result);
  return result;
}

Node& TraceRecorder::function_attribute(const GraphModule& module, const std::string& name) {
  Node*& known = functions_[&module.graph()];
  if (!known) known = &new_attribute(name, Value(Ref<ValueObject>(module.callable())), "_");
  return *known;
}

// --- modules ---------------------------------------------------------------------------------------------

bool TraceRecorder::is_captured(const nn::ModuleState& module, const std::string& path) const {
  if (path.empty()) return false;
  std::optional<GraphModule> code = graph_module_in(root_->find(path));
  return code && code->state().get() == &module;
}

Value TraceRecorder::handle(const nn::ModuleCall& call) {
  auto found = paths_.find(call.module.get());
  // What is no part of the module that is traced has no place in it.
  if (found == paths_.end() && root_) return call.run(call.args);
  const std::string& name = call.module->class_name;
  const std::string& scope = found == paths_.end() ? name : found->second;
  if (keeps_calls() && found != paths_.end() && opened_ != call.module.get()) {
    std::string path = scope.substr(std::min(scope.size(), kRootScope.size() + 1));
    if (is_captured(*call.module, path)) {
      ValueList args;
      for (const Value& arg : call.args) args.push_back(as_nodes(arg));
      Value result = run_below(call.args, call.run);
      define(graph().call_module(path, std::move(args)), result);
      return result;
    }
  }
  ModuleTrail::Call running(trail_, scope, name);
  return call.run(call.args);
}

}  // namespace weft
