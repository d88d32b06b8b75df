#pragma once

// What benchmarks call by one name in weft and in the peer: here weft's.
#include <weft/extend.h>

namespace api = weft;

namespace bench {

inline void set_threads(int n) { weft::set_num_threads(n); }

inline std::vector<weft::Tensor> gradients(const weft::Tensor& loss,
                                           const std::vector<weft::Tensor>& inputs) {
  return weft::autograd::grad({loss}, inputs, {}, {.retain_graph = true});
}

}  // namespace bench
