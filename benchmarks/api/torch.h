#pragma once

// What benchmarks call by one name in weft and in the peer: here libtorch's.
#include <torch/torch.h>

namespace api = torch;

namespace bench {

inline void set_threads(int n) { torch::set_num_threads(n); }

inline std::vector<torch::Tensor> gradients(const torch::Tensor& loss,
                                            const std::vector<torch::Tensor>& inputs) {
  return torch::autograd::grad({loss}, inputs, {}, /*retain_graph=*/true);
}

}  // namespace bench
