#pragma once

#include "program_inputs.h"

namespace weft::cli {

// The sum of mean(o * o) over some outputs of a program, or of their sums, in f32, of f64 outputs in f64.
class OutputLoss {
 public:
  // `kind` is "mean_square" or "sum". Of the floating outputs those that depend in a way that can be
  // differentiated on a parameter or one of the `leaves` that require a gradient: found out by a run on them.
  OutputLoss(const std::string& kind, const GraphModule& module, const ExportedProgram& program,
             const ValueList& leaves);
  Tensor of(const Value& result) const;

 private:
  bool is_sum_;
  std::vector<size_t> outputs_;  // leaves of the result
};

// A copy of each floating leaf that requires a gradient; the others as they are.
ValueList differentiable_leaves(const ValueList& leaves);

}  // namespace weft::cli
