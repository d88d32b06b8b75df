#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/graph/graph_module.h"

namespace weft::aot {

// What a compiler makes of a graph: takes a value for each placeholder and gives the values that the output
// node lists.
class CompiledGraph {
 public:
  // May consume its inputs: whoever calls it gives them away.
  using Boxed = std::function<ValueList(ValueList inputs)>;

  CompiledGraph() = default;
  // A function whose result is a list or a tuple of the outputs.
  CompiledGraph(ValueFunction function);  // NOLINT(google-explicit-constructor)
  static CompiledGraph boxed(Boxed function);

  explicit operator bool() const { return call_ || function_; }
  bool is_boxed() const { return is_boxed_; }
  // An error that names `what` when another number of outputs comes than it has to give.
  ValueList operator()(ValueList inputs, size_t num_outputs, std::string_view what) const;
  // The same for inputs that the caller keeps: a function is given them as they are.
  ValueList run(Args inputs, size_t num_outputs, std::string_view what) const;

 private:
  Boxed call_;
  std::function<ValueList(Args)> function_;  // what is not boxed
  bool is_boxed_ = false;
};

// Makes something that runs a graph. `examples` have the types and sizes of the inputs, and no data.
using Compiler = std::function<CompiledGraph(GraphModule& graph, const ValueList& examples)>;

// Runs the graph node by node.
CompiledGraph nop(GraphModule& graph, const ValueList& examples);

// Which graph is being compiled, while a compiler runs: "0_forward", "0_backward", "1_inference". Graphs are
// counted from the start of the process, or the last reset. Empty outside of a compiler.
struct CompilationContext {
  std::vector<std::string> names;
};
CompilationContext compilation_context();
void reset_graph_counter();

namespace detail {
size_t next_graph_number();
// Runs `compiler` in its context.
CompiledGraph compile_graph(const Compiler& compiler, GraphModule& graph, const std::string& name);
}  // namespace detail

}  // namespace weft::aot
