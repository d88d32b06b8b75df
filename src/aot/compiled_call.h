#pragma once

#include <memory>
#include <mutex>

#include "aot/call_steps.h"
#include "aot/trace_call.h"
#include "weft/aot/compiler.h"
#include "weft/aot/description.h"
#include "weft/aot/partition.h"

namespace weft::aot {

// The graphs of a call as somebody compiled them; the backward is compiled when it is first needed.
class CompiledGraphs {
 public:
  CompiledGraphs(CallDescription description, std::string name)
      : description_(std::move(description)), name_(std::move(name)) {}

  void set_inference(TracedCall traced, const Compiler& compiler);
  void set_training(TracedCall joint, const Partitioner& partitioner, const Compiler& forward,
                    Compiler backward);

  const CallDescription& description() const { return description_; }
  bool is_training() const { return static_cast<bool>(backward_compiler_); }
  const Partition& partition() const { return partition_; }
  const TracedCall& traced() const { return traced_; }
  const std::string& name() const { return name_; }
  // Whether the graph itself writes to extensions.
  bool writes_extensions() const { return writes_extensions_; }

  // Whether the gradient of an input depends on one of the tangents that came; otherwise it is none.
  bool depends(size_t input, const std::vector<bool>& tangents) const;

  // The graph outputs of the description, then what is saved.
  ValueList run_forward(Args inputs) const;
  ValueList run_backward(ValueList inputs) const;

 private:
  void set_traced(TracedCall traced);
  void note_dependences();

  CallDescription description_;
  std::string name_;   // "0"
  TracedCall traced_;  // of a training graph without its module
  bool has_extensions_ = false, writes_extensions_ = false;
  GraphModule inference_;
  Partition partition_;
  std::vector<std::vector<bool>> depends_;  // by input and tangent
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
  ValueList run(Args inputs, const Rest& rest) const override;

 private:
  std::shared_ptr<const CompiledGraphs> graphs_;
};

}  // namespace weft::aot
