#pragma once

#include <functional>

#include "weft/capture/make_graph.h"
#include "weft/capture/var.h"

namespace weft {

struct SymbolicTraceOptions {
  // Which modules stay one call, by the module and its path. Default: layers of weft::nn, containers
  // excepted.
  std::function<bool(const nn::ModuleState& module, std::string_view path)> is_leaf_module = {};
  // Arguments that are fixed while tracing, by name; the graph checks that it is called with the same. Of a
  // tensor it cannot, which is a warning.
  Dict concrete_args = {};
  // Example tensors (on `meta`, or any) by name: sizes and types of everything that follows from them are
  // then known, and C++ code can branch on them.
  Dict meta_args = {};
  // The names of the arguments with their defaults; a module has its own.
  std::string arg_names = {};
  // Notes on each node where in the program it was called.
  bool record_stack_traces = false;
};

namespace detail {
// What a parameter of a traced function can be given.
enum class ParameterKind : uint8_t { kTensor, kVar, kOther };
template <typename T>
constexpr ParameterKind kind_of_parameter() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<Plain, Tensor> || std::is_same_v<Plain, std::optional<Tensor>>)
    return ParameterKind::kTensor;
  else if constexpr (std::is_same_v<Plain, Var> || std::is_same_v<Plain, Value>) return ParameterKind::kVar;
  else return ParameterKind::kOther;
}
template <typename R, typename... A>
std::vector<ParameterKind> kinds_of(const std::function<R(A...)>*) {
  return {kind_of_parameter<A>()...};
}
template <typename M, typename R, typename... A>
std::vector<ParameterKind> kinds_of(R (M::*)(A...)) {
  return {kind_of_parameter<A>()...};
}
template <typename M, typename R, typename... A>
std::vector<ParameterKind> kinds_of(R (M::*)(A...) const) {
  return {kind_of_parameter<A>()...};
}
}  // namespace detail

GraphModule symbolic_trace_function(const ValueFunction& f, const std::vector<detail::ParameterKind>& kinds,
                                    const nn::Module* root, SymbolicTraceOptions options);
// The same of a graph: its calls are recorded again as what they are.
GraphModule symbolic_trace_graph(const GraphModule& module, SymbolicTraceOptions options);

// Captures a function or module without inputs: its arguments are proxies whose operators record. What does
// not depend on them runs, and its results become constants.
//
//   GraphModule g = symbolic_trace(net);
template <typename F>
GraphModule symbolic_trace(F f, SymbolicTraceOptions options = {}) {
  if constexpr (std::is_same_v<F, GraphModule>) {
    return symbolic_trace_graph(f, std::move(options));
  } else if constexpr (std::is_base_of_v<nn::Module, F>) {
    nn::note_class(*f.state(), typeid(F));
    if (options.arg_names.empty()) options.arg_names = F::argument_names();
    Ref<Callable> call = nn::detail::erased_call(f);
    require(static_cast<bool>(call),
            "symbolic_trace: the forward of {} takes or gives types that no Value holds",
            f.state()->class_name);
    return symbolic_trace_function([call](Args args) { return call->call(args); },
                                   detail::kinds_of(&F::forward), &f, std::move(options));
  } else {
    std::function typed(f);
    return symbolic_trace_function(make_callable(typed), detail::kinds_of(&typed), nullptr,
                                   std::move(options));
  }
}

// Inlines calls of modules, so that the graph needs no C++ code.
GraphModule inline_modules(const GraphModule& module);
// The same graph, whose calls of C++ modules are calls of graphs of what those do, in the mode that they are
// in: what a file can hold. Tensors are shared.
GraphModule modules_as_graphs(const GraphModule& module);

}  // namespace weft
