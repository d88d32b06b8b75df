#pragma once

#include <memory>
#include <mutex>

#include "aot/call_steps.h"
#include "weft/aot/compiler.h"
#include "weft/aot/description.h"
#include "weft/aot/partition.h"

namespace weft::aot {

// The graphs of a call as somebody compiled them; the backward is compiled when it is first needed.
class CompiledGraphs {
 public:
  CompiledGraphs(CallDescription description, std::string name) : description_(std::move(description)), name_(std::move(name)) {}

  void set_inference(GraphModule graph, const Compiler& compiler);
  void set_training(Partition partition, const Compiler& forward, Compiler backward);

  const CallDescription& description() const { return description_; }
  bool is_training() const { return static_cast<bool>(backward_compiler_); }
  const Partition& partition() const { return partition_; }
  const GraphModule& inference() const { return inference_; }
  const std::string& name() const { return name_; }

  // Whether a gradient depends on a tangent; otherwise it is none where that one is none.
  bool depends(size_t input, size_t tangent) const { return tangents_of_[input][tangent]; }

  // The graph outputs of the description, then what is saved.
  ValueList run_forward(ValueList inputs) const;
  ValueList run_backward(ValueList inputs) const;

 private:
  CallDescription description_;
  std::string name_;  // "0"
  GraphModule inference_;
  Partition partition_;
  std::vector<std::vector<bool>> tangents_of_;  // by input, which tangents its gradient depends on
  CompiledGraph forward_;
  Compiler backward_compiler_;
  mutable std::mutex mutex_;
  mutable CompiledGraph backward_;
};

// Runs the graphs: recorded by autograd as one function where there is a backward.
class RunGraphs final : public CallStep {
 public:
  explicit RunGraphs(std::shared_ptr<const CompiledGraphs> graphs) : graphs_(std::move(graphs)) {}
  std::string text() const override;
  ValueList run(ValueList inputs, const Rest& rest) const override;

 private:
  std::shared_ptr<const CompiledGraphs> graphs_;
};

}  // namespace weft::aot
