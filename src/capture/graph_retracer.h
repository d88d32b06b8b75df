#pragma once

#include "capture/symbolic_tracer.h"
#include "weft/graph/interpreter.h"

namespace weft {

// Runs a graph on proxies, so that each call is recorded again as what it is: a function stays a function,
// a method a method, and a module a call where it is a leaf. Other modules become what they do.
class GraphRetracer final : public Interpreter {
 public:
  // `path` leads from the root of the trace to the module: empty for the root itself.
  GraphRetracer(SymbolicTracer& tracer, GraphModule module, std::string path);

  // One value for each placeholder; what the graph's output gives, in terms of proxies.
  Value retrace(Args inputs);

  Value get_attr(std::string_view path) override;
  Value call_function(const Target& target, Args args, const Kwargs& kwargs) override;
  Value call_method(std::string_view method, Args args, const Kwargs& kwargs) override;
  Value call_module(std::string_view path, Args args, const Kwargs& kwargs) override;

 private:
  // The node that `record` makes, with nodes for proxies; `all` are the arguments, the last ones those with
  // the names of `kwargs`.
  Node& recorded(Args all, const Kwargs& kwargs, FunctionRef<Node&(ValueList, Kwargs)> record);
  // The same as what stands for its result; `run` is what it does with values.
  Value record_call(Args args, const Kwargs& kwargs, FunctionRef<Node&(ValueList, Kwargs)> record,
                    FunctionRef<Value(Args, const Kwargs&)> run);
  Value run_graph(const GraphModule& inner, const std::string& path, Args args, const Kwargs& kwargs);

  SymbolicTracer& tracer_;
  std::string path_;
};

}  // namespace weft
