#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "weft/nn/module.h"

// Layers that go through a sequence step by step, and keep a state.

namespace weft::nn {

struct LSTMOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;    // sequences are [N, L, in], not [L, N, in]
  double dropout = 0;          // in training, of what every layer but the last gives
  bool bidirectional = false;  // a second pass from the end, whose results stand beside those of the first
  int64_t proj_size = 0;       // the width that hidden states are projected to; 0 for none
};
// Long short-term memory. Takes sequences of [L, N, in], or one of [L, in], and the state (h, c) to begin
// with, zeros if none is given; gives the hidden states of the last layer at every step, and the state at the
// end. Parameters are called as PyTorch's: weight_ih_l0, weight_hh_l0, ..., weight_ih_l0_reverse, ...
//
//   auto [output, state] = lstm(sequence);
//   auto [more, last] = lstm(next, state);
class LSTM : public Module {
 public:
  using State = std::tuple<Tensor, Tensor>;

  LSTM(int64_t in, int64_t hidden, LSTMOptions options = {});
  std::tuple<Tensor, State> forward(const Tensor& input, const std::optional<State>& hx = std::nullopt);
  WEFT_ARGS(input, hx = nullopt)

 private:
  State zero_state(const Tensor& input, const SymInt& batch) const;
  std::vector<Tensor> weights() const;

  int64_t hidden_;
  LSTMOptions options_;
};

}  // namespace weft::nn
