#pragma once

#include "weft/autograd/grad_node.h"

namespace weft::autograd {

struct BackwardRun {
  std::vector<Edge> roots;
  std::vector<Tensor> gradients;
  std::vector<Edge> inputs;  // whose gradients to return; empty: run into the leaves
  bool retain_graph = false;
  bool create_graph = false;
  // A tape of a transform level that has ended runs where its caller is, in its mode and at its layers: the
  // caller's tapes, not its own, decide what is recorded, and below a recorder nothing is.
  bool inherit_state = false;
};

// Runs the tape from `roots` on the calling thread, later calls first. Returns one gradient, possibly
// undefined, for each of `inputs`.
std::vector<Tensor> run_backward(const BackwardRun& run);

// Whether a sum of gradients may be written over where its owner allows it: not while somebody watches calls,
// so that the gradient of a pure function is recorded without writes.
bool may_accumulate_in_place(const Tensor& held, const Tensor& grad);

// `grad` summed over broadcast dims and cast so that it fits the forward result.
Tensor fit_gradient(Tensor grad, const ResultShape& shape, const GradNode& node);

}  // namespace weft::autograd
