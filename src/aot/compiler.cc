#include "weft/aot/compiler.h"

#include <atomic>

#include "weft/base/error.h"
#include "weft/dispatch/layers.h"

namespace weft::aot {

CompiledGraph::CompiledGraph(ValueFunction function) {
  if (!function) return;
  function_ = [function = std::move(function)](Args inputs) {
    Value result = function(inputs);
    require(result.is_sequence(), "a compiled graph gives a list of its outputs, but this one gave {}",
            result.kind_name());
    return result.elements();
  };
}

CompiledGraph CompiledGraph::boxed(Boxed function) {
  CompiledGraph graph;
  graph.call_ = std::move(function);
  graph.is_boxed_ = true;
  return graph;
}

namespace {
ValueList checked(ValueList outputs, size_t num_outputs, std::string_view what) {
  require(outputs.size() == num_outputs, "the compiled {} gave {} outputs, but its graph has {}", what,
          outputs.size(), num_outputs);
  return outputs;
}
}  // namespace

ValueList CompiledGraph::operator()(ValueList inputs, size_t num_outputs, std::string_view what) const {
  return checked(is_boxed_ ? call_(std::move(inputs)) : function_(inputs), num_outputs, what);
}

ValueList CompiledGraph::run(Args inputs, size_t num_outputs, std::string_view what) const {
  return checked(is_boxed_ ? call_(ValueList(inputs.begin(), inputs.end())) : function_(inputs), num_outputs,
                 what);
}

CompiledGraph nop(GraphModule& graph, const ValueList&) { return graph.function(); }

// --- where a compiler is ---------------------------------------------------------------------------------

namespace {
std::atomic<size_t> graph_counter{0};
thread_local std::vector<std::string> running;
}  // namespace

CompilationContext compilation_context() { return {running}; }
void reset_graph_counter() { graph_counter = 0; }
size_t detail::next_graph_number() { return graph_counter++; }

CompiledGraph detail::compile_graph(const Compiler& compiler, GraphModule& graph, const std::string& name) {
  struct Running {
    std::vector<std::string> saved;
    ~Running() { running = std::move(saved); }
  } scope{running};
  running = {name};
  ValueList examples;
  for (Node* input : graph.graph().placeholders()) examples.push_back(input->meta().value);
  // A compiler sees none of the layers that the call happens to run under.
  LayerStateScope saved;
  layer_state() = LayerState();
  CompiledGraph compiled = compiler(graph, examples);
  require(static_cast<bool>(compiled), "the compiler of graph {} gave nothing to call", name);
  return compiled;
}

}  // namespace weft::aot
