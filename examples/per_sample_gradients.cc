// The gradient of a loss for every sample of a batch, as one graph: vmap over grad, captured.
//
//   per_sample_gradients
#include <iostream>

#include "weft/weft.h"

using namespace weft;

int main() {
  Tensor weight = randn({4, 3});
  auto loss = [](const Tensor& w, const Tensor& x, const Tensor& y) {
    Tensor difference = matmul(x, w) - y;
    return (difference * difference).sum();
  };
  auto per_sample = func::vmap(func::grad(loss), {.in_dims = {func::kNoDim, 0, 0}});

  Tensor x = randn({5, 4}), y = randn({5, 3});
  GraphModule graph = make_graph(per_sample)(weight, x, y);
  std::cout << graph.code() << "\n";

  Tensor gradients = graph(weight, x, y);
  std::cout << "gradients of " << describe_sizes(gradients.sizes()).str() << "; of the first sample:\n"
            << gradients.select(0, 0).to_string() << "\n";
  Tensor alone = func::grad(loss)(weight, x.select(0, 0), y.select(0, 0));
  std::cout << "the same alone: " << (gradients.select(0, 0) - alone).abs().max().item().to_double() << "\n";
}
