#include "weft/nn/recurrent.h"

#include <fmt/format.h>

#include <cmath>

#include "weft/base/error.h"

namespace weft::nn {
namespace {

Tensor uniform(SymIntSpan sizes, int64_t hidden) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  Tensor tensor = empty(sizes, kFloat32);
  tensor.uniform_(-bound, bound);
  return tensor;
}

}  // namespace

LSTM::LSTM(int64_t in, int64_t hidden, LSTMOptions options) : hidden_(hidden), options_(options) {
  require(in > 0 && hidden > 0 && options.num_layers > 0,
          "LSTM: sizes and the number of layers must be greater than zero, but came in={}, hidden={}, "
          "num_layers={}",
          in, hidden, options.num_layers);
  require(options.dropout >= 0 && options.dropout <= 1,
          "LSTM: dropout is the probability of a number to be zeroed, in [0, 1], but is {}", options.dropout);
  require(options.proj_size >= 0 && options.proj_size < hidden,
          "LSTM: proj_size must be smaller than the hidden size {}, but is {}", hidden, options.proj_size);
  constexpr int64_t kGates = 4;
  const int64_t width = options.proj_size ? options.proj_size : hidden,
                directions = options.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < options.num_layers; ++layer)
    for (int64_t direction = 0; direction < directions; ++direction) {
      const std::string suffix = fmt::format("_l{}{}", layer, direction ? "_reverse" : "");
      const int64_t given = layer == 0 ? in : width * directions;
      parameter("weight_ih" + suffix, uniform({kGates * hidden, given}, hidden));
      parameter("weight_hh" + suffix, uniform({kGates * hidden, width}, hidden));
      if (options.bias) {
        parameter("bias_ih" + suffix, uniform({kGates * hidden}, hidden));
        parameter("bias_hh" + suffix, uniform({kGates * hidden}, hidden));
      }
      if (options.proj_size) parameter("weight_hr" + suffix, uniform({options.proj_size, hidden}, hidden));
    }
}

std::vector<Tensor> LSTM::weights() const {
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : state()->parameters) all.push_back(tensor);
  return all;
}

LSTM::State LSTM::zero_state(const Tensor& input, const SymInt& batch) const {
  const int64_t count = options_.num_layers * (options_.bidirectional ? 2 : 1);
  auto of_width = [&](int64_t width) { return zeros({count, batch, width}, input.dtype(), std::nullopt, input.device()); };
  return {of_width(options_.proj_size ? options_.proj_size : hidden_), of_width(hidden_)};
}

std::tuple<Tensor, LSTM::State> LSTM::forward(const Tensor& input, const std::optional<State>& hx) {
  require(input.dim() == 2 || input.dim() == 3, "LSTM: Expected input to be 2D or 3D, got {}",
          describe(input));
  const bool is_batched = input.dim() == 3;
  const int64_t batch_dim = options_.batch_first ? 0 : 1;
  const Tensor sequences = is_batched ? input : unsqueeze(input, batch_dim);
  State state = hx ? *hx : zero_state(sequences, sequences.size(batch_dim));
  if (hx && !is_batched) state = {unsqueeze(std::get<0>(state), 1), unsqueeze(std::get<1>(state), 1)};
  auto [output, hidden, cell] =
      lstm(sequences, {std::get<0>(state), std::get<1>(state)}, weights(), options_.bias, options_.num_layers,
           options_.dropout, is_training(), options_.bidirectional, options_.batch_first);
  if (!is_batched) {
    output = squeeze(output, batch_dim);
    hidden = squeeze(hidden, 1);
    cell = squeeze(cell, 1);
  }
  return {output, {hidden, cell}};
}

}  // namespace weft::nn
