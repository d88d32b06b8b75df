#pragma once

#include "weft/capture/compilation_unit.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/script_view.h"

namespace weft {

class OptimizedForms;

// A recorded function. Copies are handles.
class TracedFunction {
 public:
  // What was traced with is in the module, under the name.
  TracedFunction(std::string name, std::string qualified_name, GraphModule module, ValueFunction original);
  // What stands for a function while tracing is switched off: calls run the function itself.
  static TracedFunction untraced(std::string name, ValueFunction original, std::string arg_names);

  Value call(Args args, const Kwargs& kwargs = {}) const;
  Value call(std::initializer_list<Value> args, const Kwargs& kwargs = {}) const {
    return call(Args(args.begin(), args.size()), kwargs);
  }
  // The one tensor that it gives.
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  // The graph that a call with these inputs runs while optimised execution is on (see optimized.h), over the
  // same tensors.
  GraphModule graph_for(std::initializer_list<Value> inputs) const;
  const std::string& name() const noexcept { return name_; }
  // In its compilation unit: "__torch__.f", or of a method "__torch__.Net.forward".
  const std::string& qualified_name() const noexcept { return qualified_name_; }
  Graph& graph() const noexcept { return module_.graph(); }
  const GraphModule& graph_module() const noexcept { return module_; }
  // The graph and the code of TorchScript, where calls of child modules are calls. Other options are taken as
  // they are, but for a `self_type` or name that is not given.
  std::string graph_text(ScriptOptions options = {.inline_calls = false}) const;
  std::string code(ScriptOptions options = {.inline_calls = false}) const;
  // The lines of that text.
  ScriptGraph script(ScriptOptions options = {.inline_calls = false}) const;
  ValueFunction function() const { return is_recorded() ? module_.function() : original_; }
  // False while tracing is switched off: then the graph is empty.
  bool is_recorded() const noexcept { return !untraced_names_; }
  // What was traced: other captures may take it instead of the recording.
  const ValueFunction& original() const noexcept { return original_; }
  // The example inputs, unless they were not to be kept: a tuple, or a dictionary of arguments by name.
  std::optional<Value> example_inputs() const;

 private:
  ScriptOptions completed(ScriptOptions options) const;

  std::string name_, qualified_name_;
  GraphModule module_;
  ValueFunction original_;
  std::optional<ArgumentNames> untraced_names_;
  std::shared_ptr<OptimizedForms> forms_;
};

// Recorded methods of a module, with its parameters, buffers and children (shared, not copied) and nothing
// else of it. A child that is a graph module or a traced one stays what it is; others cannot be called any
// more. Copies are handles.
class TracedModule : public nn::Module {
 public:
  // The graph, such as one out of a file, as the forward of a module whose type is in the unit: its inputs
  // are `self` and those of the graph, also where what was saved is a function.
  static TracedModule over(const GraphModule& forward,
                           const CompilationUnit& unit = CompilationUnit::process_wide());
  // Without methods yet: `trace` adds them.
  explicit TracedModule(const nn::Module& original);
  // A handle to the same module; while a deep copy is made, to its copy.
  TracedModule(const TracedModule& other);
  TracedModule(TracedModule&&) = default;
  // An error for one that is registered in another module.
  TracedModule& operator=(const TracedModule& other);

  const TracedFunction& method(std::string_view name) const;
  // What calls run. It is looked up once, and then the same object until `reconstruct`.
  const TracedFunction& forward_method() const;
  std::vector<std::string> method_names() const;
  void add_method(TracedFunction method) const;
  bool has(std::string_view path) const { return try_find(path).has_value(); }
  // Replaces a value by one of the same kind, for all methods: set_attribute("fc.weight", weight).
  // An error for a path that leads nowhere, and for a value that removes what is there.
  void set_attribute(std::string_view path, const Value& value) const;
  // Always an error: the graphs name what is there.
  [[noreturn]] void delete_attribute(std::string_view path) const;
  // Becomes what is around another graph, a copy or one out of a file: its tensors and children, and the
  // graph as the only method, `forward`. Every handle to this module sees it; the name of the class stays.
  void reconstruct(const GraphModule& forward) const;

  // An error during a trace of something that this is no part of.
  Value call(Args args, const Kwargs& kwargs = {}) const;
  Value call(std::initializer_list<Value> args, const Kwargs& kwargs = {}) const {
    return call(Args(args.begin(), args.size()), kwargs);
  }
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  Graph& graph() const { return forward_method().graph(); }
  GraphModule graph_for(std::initializer_list<Value> inputs) const {
    return forward_method().graph_for(inputs);
  }
  // Those of `forward`.
  std::string graph_text(ScriptOptions options = {.inline_calls = false}) const {
    return forward_method().graph_text(std::move(options));
  }
  std::string code(ScriptOptions options = {.inline_calls = false}) const {
    return forward_method().code(std::move(options));
  }
  Ref<Callable> callable() const;
  ValueFunction function() const { return forward_method().function(); }
  const std::string& original_name() const { return state()->class_name; }
  // "Net(\n  original_name=Net\n  (fc): Linear(original_name=Linear)\n)"
  std::string to_string() const;

 private:
  struct Methods;
  std::shared_ptr<Methods> methods_;
};

}  // namespace weft
