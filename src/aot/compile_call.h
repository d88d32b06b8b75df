#pragma once

#include "aot/compiled_call.h"
#include "weft/aot/aot_function.h"

namespace weft::aot {

// A call that was captured and compiled for arguments like its examples.
class CompiledCall {
 public:
  // `f` takes leaves, like `examples`, and gives a tree. `program` is the graph that it runs; null for C++
  // code.
  CompiledCall(const ValueFunction& f, const ValueList& examples, const AotOptions& options,
               const GraphModule* program = nullptr);

  // Leaves in, a tree out.
  Value run(Args inputs) const;
  const CallDescription& description() const { return graphs_->description(); }
  const CompiledGraphs& graphs() const { return *graphs_; }
  std::string text() const { return steps_.text(); }

 private:
  void compile(TracedCall traced, const AotOptions& options);
  void add_output_steps();

  CallSteps steps_;
  TreeSpec result_;  // how what the steps give makes up what the call returns
  std::shared_ptr<CompiledGraphs> graphs_;
};

}  // namespace weft::aot
