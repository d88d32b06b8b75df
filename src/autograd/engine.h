#pragma once

#include "weft/autograd/grad_node.h"

namespace weft::autograd {

struct BackwardRun {
  std::vector<Edge> roots;
  std::vector<Tensor> gradients;
  std::vector<Edge> inputs;  // whose gradients to return; empty: run into the leaves
  bool retain_graph = false;
  bool create_graph = false;
  // A tape of a transform level that has ended runs in whatever mode its caller is: the caller's tapes, not
  // its own, decide what is recorded.
  bool inherit_grad_mode = false;
};

// Runs the tape from `roots` on the calling thread, later calls first. Returns one gradient, possibly
// undefined, for each of `inputs`.
std::vector<Tensor> run_backward(const BackwardRun& run);

// `grad` summed over broadcast dims and cast so that it fits the forward result.
Tensor fit_gradient(Tensor grad, const ResultShape& shape, const GradNode& node);

}  // namespace weft::autograd
