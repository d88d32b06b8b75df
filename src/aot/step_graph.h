#pragma once

#include "weft/aot/description.h"
#include "weft/aot/train_step.h"
#include "weft/core/pytree.h"

// How the graph of a training step is made.

namespace weft::aot {

// What a placeholder of the graph stands for.
struct StepInput {
  enum class Kind : uint8_t { kParameter, kBuffer, kKept, kCount, kRate, kMomentum, kBatch };
  Kind kind = Kind::kBatch;
  std::string name;             // "fc.weight", "exp_avg of fc.weight"
  size_t group = 0, index = 0;  // of what the optimizer has: where
  size_t parameter = 0;         // of kKept and kCount: which input it is kept for
  size_t position = 0;          // of kKept: among what is kept for its parameter; else among its kind
  Value like = {};              // type and geometry; plain values as they are
  bool is_written = false;
};

struct StepGraph {
  GraphModule module;
  std::vector<StepInput> inputs;
  Partition partition;
  TreeSpec result;  // of what the loss function returns
  size_t num_updates = 0;
};

// What a step is made of. Tensors need no data.
struct StepParts {
  const nn::Module& model;
  nn::NamedTensors parameters, buffers;
  const ValueFunction& loss;  // of a batch
  const optim::Optimizer& optimizer;
  // For each group of the optimizer, which of `parameters` it has.
  std::vector<std::vector<size_t>> groups;
  ValueList batch;  // the leaves
  TreeSpec batch_spec;
  std::vector<std::string> batch_names;  // by leaf
};

StepGraph trace_step(const StepParts& parts, const TrainStepOptions& options);

}  // namespace weft::aot
