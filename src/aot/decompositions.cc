#include "weft/aot/aot_function.h"
#include "weft/dispatch/operator.h"

namespace weft::aot {

Decompositions get_decompositions(const std::vector<std::string>& operators) {
  Decompositions chosen;
  for (const std::string& name : operators)
    if (const Operator* op = find_operator(name))
      if (auto found = standard_decompositions().find(op); found != standard_decompositions().end())
        chosen.insert(*found);
  return chosen;
}

const Decompositions& default_decompositions() {
  static const Decompositions* all = new Decompositions(get_decompositions({"aten::gelu_backward",
                                                                            "aten::leaky_relu_backward",
                                                                            "aten::sigmoid_backward",
                                                                            "aten::threshold_backward",
                                                                            "aten::hardtanh_backward",
                                                                            "aten::hardsigmoid_backward",
                                                                            "aten::hardswish_backward",
                                                                            "aten::tanh_backward",
                                                                            "aten::silu_backward",
                                                                            "aten::elu_backward",
                                                                            "aten::cudnn_batch_norm",
                                                                            "aten::cudnn_batch_norm_backward",
                                                                            "aten::masked_fill.Scalar",
                                                                            "aten::masked_fill.Tensor",
                                                                            "aten::elu",
                                                                            "aten::leaky_relu",
                                                                            "aten::hardtanh",
                                                                            "aten::hardswish",
                                                                            "aten::hardsigmoid",
                                                                            "aten::conj_physical",
                                                                            "aten::is_same_size"}));
  return *all;
}

}  // namespace weft::aot
