#pragma once

#include "aot/compiled_call.h"
#include "weft/aot/aot_function.h"

namespace weft::aot {

// A call that was captured and compiled for arguments like its examples.
class CompiledCall {
 public:
  // `f` takes leaves, like `examples`, and gives a tree.
  CompiledCall(const ValueFunction& f, const ValueList& examples, const AotOptions& options);

  // Leaves in, a tree out.
  Value run(ValueList inputs) const;
  const CallDescription& description() const { return graphs_->description(); }
  const CompiledGraphs& graphs() const { return *graphs_; }
  std::string text() const { return steps_.text(); }

 private:
  void trace(const ValueFunction& f, const ValueList& inputs, const AotOptions& options);
  void add_output_steps();

  CallSteps steps_;
  std::shared_ptr<CompiledGraphs> graphs_;
};

}  // namespace weft::aot
