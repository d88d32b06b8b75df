// Recurrent layers and their cells.
#include "ops/support/checks.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// The weights of one direction of one layer. Biases, and a projection of the hidden state, may be missing.
struct CellWeights {
  Tensor w_ih, w_hh, b_ih, b_hh, w_hr;

  Tensor of_input(const Tensor& input) const { return linear(input, w_ih, b_ih); }
  Tensor of_hidden(const Tensor& hidden) const { return linear(hidden, w_hh, b_hh); }
};
std::vector<CellWeights> weights_of(TensorSpan params, bool has_biases, bool has_projections) {
  const size_t each = 2 + (has_biases ? 2 : 0) + (has_projections ? 1 : 0);
  require(params.size() % each == 0,
          "got an incorrect number of RNN parameters: {} are no multiple of the {} of a direction",
          params.size(), each);
  std::vector<CellWeights> all;
  for (size_t i = 0; i < params.size(); i += each) {
    CellWeights one{params[i], params[i + 1]};
    if (has_biases) {
      one.b_ih = params[i + 2];
      one.b_hh = params[i + 3];
    }
    if (has_projections) one.w_hr = params[i + each - 1];
    all.push_back(one);
  }
  return all;
}

// --- cells -----------------------------------------------------------------------------------------------

// The state of a step: hidden, and of an LSTM the cell too.
struct State {
  Tensor hidden, cell;
};

// As wide as the hidden state that the weights take, or with a projection, as the cell.
std::vector<Tensor> gates_of(const Tensor& all, int64_t count, const CellWeights& w) {
  const Tensor& narrowing = w.w_hr.defined() ? w.w_hr : w.w_hh;
  require(narrowing.dim() == 2, "RNN: the weights of the hidden state must be a matrix, but are {}",
          describe(narrowing));
  const SymInt width = narrowing.size(1);
  SymInts widths;
  for (int64_t i = 0; i < count; ++i) widths.push_back(width);
  return split_with_sizes(all, widths, -1);
}

struct LstmCell {
  static State step(const Tensor& of_input, const State& state, const CellWeights& w) {
    std::vector<Tensor> gates = gates_of(w.of_hidden(state.hidden) + of_input, 4, w);
    Tensor in = sigmoid(gates[0]), forget = sigmoid(gates[1]), next = tanh(gates[2]), out = sigmoid(gates[3]);
    Tensor kept = forget * state.cell, added = in * next;
    Tensor cell = kept + added, hidden = out * tanh(cell);
    if (w.w_hr.defined()) hidden = linear(hidden, w.w_hr);
    return {hidden, cell};
  }
};
struct GruCell {
  static State step(const Tensor& of_input, const State& state, const CellWeights& w) {
    std::vector<Tensor> from_input = gates_of(of_input, 3, w),
                        from_hidden = gates_of(w.of_hidden(state.hidden), 3, w);
    Tensor reset = sigmoid(from_hidden[0] + from_input[0]), update = sigmoid(from_hidden[1] + from_input[1]);
    Tensor next = tanh(from_input[2] + from_hidden[2] * reset);
    return {(state.hidden - next) * update + next, {}};
  }
};
template <Tensor (*activation)(const Tensor&)>
struct SimpleCell {
  static State step(const Tensor& of_input, const State& state, const CellWeights& w) {
    return {activation(w.of_hidden(state.hidden) + of_input), {}};
  }
};
Tensor tanh_of(const Tensor& tensor) { return tanh(tensor); }
Tensor relu_of(const Tensor& tensor) { return relu(tensor); }
using TanhCell = SimpleCell<tanh_of>;
using ReluCell = SimpleCell<relu_of>;

// --- layers ----------------------------------------------------------------------------------------------

template <typename Cell>
struct Run {
  std::vector<Tensor> outputs;
  State last;
};
// One direction over [time, batch, features].
template <typename Cell>
Run<Cell> run_direction(const Tensor& input, const State& first, const CellWeights& w, bool reverse) {
  Tensor all = w.of_input(input);
  std::vector<Tensor> steps = unbind(all, 0);
  if (reverse) std::reverse(steps.begin(), steps.end());
  Run<Cell> run{{}, first};
  for (const Tensor& step : steps) {
    run.last = Cell::step(step, run.last, w);
    run.outputs.push_back(run.last.hidden);
  }
  if (reverse) std::reverse(run.outputs.begin(), run.outputs.end());
  return run;
}

struct Layers {
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional;
};
struct Result {
  Tensor output;
  std::vector<Tensor> hidden, cell;
};
template <typename Cell>
Result run_layers(const Tensor& input_, const std::vector<State>& states,
                  const std::vector<CellWeights>& weights, const Layers& layers) {
  const size_t directions = layers.bidirectional ? 2 : 1, count = static_cast<size_t>(layers.num_layers);
  require(weights.size() == count * directions,
          "RNN: expected the parameters of {} directions, but got those of {}", count * directions,
          weights.size());
  require(states.size() == count * directions, "RNN: expected {} hidden states, but got {}",
          count * directions, states.size());
  Result result{input_, {}, {}};
  for (size_t layer = 0; layer < count; ++layer) {
    std::vector<Tensor> sides;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t at = layer * directions + direction;
      Run<Cell> run = run_direction<Cell>(result.output, states[at], weights[at], direction == 1);
      sides.push_back(stack(run.outputs, 0));
      result.hidden.push_back(run.last.hidden);
      if (run.last.cell.defined()) result.cell.push_back(run.last.cell);
    }
    result.output = directions == 2 ? cat(sides, sides[0].dim() - 1) : sides[0];
    if (layers.dropout != 0 && layers.train && layer + 1 < count)
      result.output = dropout(result.output, layers.dropout, true);
  }
  return result;
}
void check_rnn(const char* op, const Tensor& input, const Tensor& hidden) {
  require(input.dim() == 2 || input.dim() == 3, "{}: Expected input to be 2D or 3D, but got {}", op,
          describe(input));
  require(!guard_or(input.size(0) == 0, false), "{}: Expected sequence length to be larger than 0 in RNN",
          op);
  require(hidden.dim() == input.dim(), "{}: For a {}D input the hidden state must be {}D too, but it is {}",
          op, input.dim(), input.dim(), describe(hidden));
}

Three lstm_composite(const Tensor& input, TensorSpan hx, TensorSpan params, bool has_biases,
                     int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  require(hx.size() == 2, "lstm expects two hidden states");
  check_rnn("lstm", input, hx[0]);
  // A projection of the hidden state makes it narrower than the cell.
  const bool projects = !guard_or(hx[0].size(-1) == hx[1].size(-1), true);
  std::vector<State> states;
  std::vector<Tensor> hidden = unbind(hx[0], 0), cell = unbind(hx[1], 0);
  require(hidden.size() == cell.size(), "lstm: expected as many hidden states as cells, but got {} and {}",
          describe(hx[0]), describe(hx[1]));
  for (size_t i = 0; i < hidden.size(); ++i) states.push_back({hidden[i], cell[i]});
  Tensor in = batch_first && input.dim() == 3 ? transpose(input, 0, 1) : input;
  Result result = run_layers<LstmCell>(in, states, weights_of(params, has_biases, projects),
                                       {has_biases, num_layers, dropout, train, bidirectional});
  Tensor output = batch_first && input.dim() == 3 ? transpose(result.output, 0, 1) : result.output;
  return {output, stack(result.hidden, 0), stack(result.cell, 0)};
}
template <typename Cell>
Pair rnn_composite(const Tensor& input, const Tensor& hx, TensorSpan params, bool has_biases,
                   int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  check_rnn("rnn", input, hx);
  std::vector<State> states;
  for (const Tensor& hidden : unbind(hx, 0)) states.push_back({hidden, {}});
  Tensor in = batch_first && input.dim() == 3 ? transpose(input, 0, 1) : input;
  Result result = run_layers<Cell>(in, states, weights_of(params, has_biases, false),
                                   {has_biases, num_layers, dropout, train, bidirectional});
  Tensor output = batch_first && input.dim() == 3 ? transpose(result.output, 0, 1) : result.output;
  return {output, stack(result.hidden, 0)};
}

// --- packed sequences ------------------------------------------------------------------------------------

// Sequences sorted by length, one step of all of them after the other: `batch_sizes` says how many are
// still running at each step.
template <typename Cell>
Run<Cell> run_packed(const Tensor& data, const Ints& batches, const State& first, const CellWeights& w,
                     bool reverse) {
  Tensor all = w.of_input(data);
  SymInts sizes;
  for (int64_t batch : batches) sizes.push_back(batch);
  std::vector<Tensor> steps = split_with_sizes(all, sizes, 0);
  auto rows = [](const Tensor& tensor, int64_t from, int64_t to) {
    return tensor.defined() ? slice(tensor, 0, from, to) : tensor;
  };
  auto joined = [](const Tensor& a, const Tensor& b) { return a.defined() ? cat({a, b}, 0) : a; };
  Run<Cell> run{std::vector<Tensor>(steps.size()), {}};
  State state = first;
  if (!reverse) {
    std::vector<State> ended;
    state = {rows(first.hidden, 0, batches[0]), rows(first.cell, 0, batches[0])};
    for (size_t t = 0; t < steps.size(); ++t) {
      const int64_t running = t == 0 ? batches[0] : batches[t - 1];
      if (batches[t] < running) {
        ended.push_back({rows(state.hidden, batches[t], running), rows(state.cell, batches[t], running)});
        state = {rows(state.hidden, 0, batches[t]), rows(state.cell, 0, batches[t])};
      }
      state = Cell::step(steps[t], state, w);
      run.outputs[t] = state.hidden;
    }
    for (size_t i = ended.size(); i-- > 0;)
      state = {joined(state.hidden, ended[i].hidden), joined(state.cell, ended[i].cell)};
  } else {
    const int64_t last = batches.back();
    state = {rows(first.hidden, 0, last), rows(first.cell, 0, last)};
    int64_t running = last;
    for (size_t t = steps.size(); t-- > 0;) {
      if (batches[t] > running) {
        state = {joined(state.hidden, rows(first.hidden, running, batches[t])),
                 joined(state.cell, rows(first.cell, running, batches[t]))};
        running = batches[t];
      }
      state = Cell::step(steps[t], state, w);
      run.outputs[t] = state.hidden;
    }
  }
  run.last = state;
  return run;
}
Ints batches_of(const Tensor& batch_sizes) {
  require(batch_sizes.dim() == 1 && batch_sizes.dtype() == kInt64,
          "RNN: batch_sizes must be a list of int64 numbers, but it is {}", describe(batch_sizes));
  Ints batches;
  const int64_t count = guard_int(batch_sizes.size(0));
  require(count > 0, "RNN: expected at least one step, but batch_sizes is empty");
  for (int64_t i = 0; i < count; ++i) batches.push_back(select(batch_sizes, 0, i).item().to_int());
  for (size_t i = 1; i < batches.size(); ++i)
    require(batches[i] > 0 && batches[i] <= batches[i - 1],
            "RNN: batch_sizes must not grow, but [{}] is {} after {}", i, batches[i], batches[i - 1]);
  return batches;
}
template <typename Cell>
Result run_packed_layers(const Tensor& data, const Tensor& batch_sizes, const std::vector<State>& states,
                         const std::vector<CellWeights>& weights, const Layers& layers) {
  const Ints batches = batches_of(batch_sizes);
  const size_t directions = layers.bidirectional ? 2 : 1, count = static_cast<size_t>(layers.num_layers);
  require(weights.size() == count * directions && states.size() == count * directions,
          "RNN: expected parameters and states of {} directions, but got those of {} and {}",
          count * directions, weights.size(), states.size());
  Result result{data, {}, {}};
  for (size_t layer = 0; layer < count; ++layer) {
    std::vector<Tensor> sides;
    for (size_t direction = 0; direction < directions; ++direction) {
      const size_t at = layer * directions + direction;
      Run<Cell> run = run_packed<Cell>(result.output, batches, states[at], weights[at], direction == 1);
      sides.push_back(cat(run.outputs, 0));
      result.hidden.push_back(run.last.hidden);
      if (run.last.cell.defined()) result.cell.push_back(run.last.cell);
    }
    result.output = directions == 2 ? cat(sides, 1) : sides[0];
    if (layers.dropout != 0 && layers.train && layer + 1 < count)
      result.output = dropout(result.output, layers.dropout, true);
  }
  return result;
}
Three packed_lstm(const Tensor& data, const Tensor& batch_sizes, TensorSpan hx, TensorSpan params,
                  bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  require(hx.size() == 2, "lstm expects two hidden states");
  const bool projects = !guard_or(hx[0].size(-1) == hx[1].size(-1), true);
  std::vector<State> states;
  std::vector<Tensor> hidden = unbind(hx[0], 0), cell = unbind(hx[1], 0);
  for (size_t i = 0; i < std::min(hidden.size(), cell.size()); ++i) states.push_back({hidden[i], cell[i]});
  Result result =
      run_packed_layers<LstmCell>(data, batch_sizes, states, weights_of(params, has_biases, projects),
                                  {has_biases, num_layers, dropout, train, bidirectional});
  return {result.output, stack(result.hidden, 0), stack(result.cell, 0)};
}
template <typename Cell>
Pair packed_rnn(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorSpan params,
                bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional) {
  std::vector<State> states;
  for (const Tensor& hidden : unbind(hx, 0)) states.push_back({hidden, {}});
  Result result = run_packed_layers<Cell>(data, batch_sizes, states, weights_of(params, has_biases, false),
                                          {has_biases, num_layers, dropout, train, bidirectional});
  return {result.output, stack(result.hidden, 0)};
}

// --- single steps ----------------------------------------------------------------------------------------

void check_cell(const Tensor& input, const Tensor& hidden, const Tensor& w_ih, const Tensor& w_hh) {
  for (const Tensor* tensor : {&input, &hidden, &w_ih, &w_hh})
    require(tensor->dim() > 0, "RNN cell: expected vectors or matrices, but got {}", describe(*tensor));
  require(guard_or(input.size(-1) == w_ih.size(-1), true),
          "input has inconsistent input_size: got {} expected {}", input.size(-1).to_string(),
          w_ih.size(-1).to_string());
  require(guard_or(hidden.size(-1) == w_hh.size(-1), true),
          "hidden has inconsistent hidden_size: got {}, expected {}", hidden.size(-1).to_string(),
          w_hh.size(-1).to_string());
  require(input.dim() < 2 || hidden.dim() < 2 || guard_or(input.size(0) == hidden.size(0), true),
          "Input batch size {} doesn't match hidden batch size {}", input.size(0).to_string(),
          hidden.size(0).to_string());
}
Pair lstm_cell_composite(const Tensor& input, TensorSpan hx, const Tensor& w_ih, const Tensor& w_hh,
                         const Tensor& b_ih, const Tensor& b_hh) {
  require(hx.size() == 2, "lstm_cell expects two hidden states");
  check_cell(input, hx[0], w_ih, w_hh);
  const CellWeights w{w_ih, w_hh, b_ih, b_hh};
  Tensor of_input = w.of_input(input);
  State next = LstmCell::step(of_input, {hx[0], hx[1]}, w);
  return {next.hidden, next.cell};
}
template <typename Cell>
Tensor cell_composite(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
                      const Tensor& b_ih, const Tensor& b_hh) {
  check_cell(input, hx, w_ih, w_hh);
  const CellWeights w{w_ih, w_hh, b_ih, b_hh};
  Tensor of_input = w.of_input(input);
  return Cell::step(of_input, {hx, {}}, w).hidden;
}

Value list(std::initializer_list<Tensor> tensors) { return Value::list_of(std::vector<Tensor>(tensors)); }
// Of 3 inputs and 2 hidden numbers, with `gates` of them.
Value layer_params(int64_t gates) {
  return list({f64({2 * gates, 3}), f64({2 * gates, 2}), f64({2 * gates}), f64({2 * gates})});
}
template <int gates>
Samples layer_samples() {
  return {{"plain", {f64({4, 2, 3}), f64({1, 2, 2}), layer_params(gates), true, 1, 0.0, false, false, false}},
          {"batch_first",
           {f64({2, 4, 3}), f64({1, 2, 2}), layer_params(gates), true, 1, 0.0, false, false, true}}};
}
template <int gates>
Samples packed_samples() {
  return {
      {"two_lengths",
       {f64({5, 3}), i64_list({2, 2, 1}), f64({1, 2, 2}), layer_params(gates), true, 1, 0.0, false, false}}};
}
template <int gates>
Samples cell_samples() {
  return {{"plain",
           {f64({2, 3}), f64({2, 2}), f64({2 * gates, 3}), f64({2 * gates, 2}), f64({2 * gates}),
            f64({2 * gates})}},
          {"without_biases", {f64({2, 3}), f64({2, 2}), f64({2 * gates, 3}), f64({2 * gates, 2})}}};
}

}  // namespace

WEFT_OPERATOR(lstm_input) = {
    .schema =
        "aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
    .traits = Traits::kRecurrent,
    .composite = {.functional = function<&lstm_composite>()},
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({4, 2, 3}), list({f64({1, 2, 2}), f64({1, 2, 2})}), layer_params(4), true, 1,
                           0.0, false, false, false}}};
        },
};

WEFT_OPERATOR(lstm_data) = {
    .schema =
        "aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
    .traits = Traits::kDataDependent | Traits::kRecurrent,
    .composite = {.functional = function<&packed_lstm>()},
    .samples =
        [] {
          return Samples{{"two_lengths",
                          {f64({5, 3}), i64_list({2, 2, 1}), list({f64({1, 2, 2}), f64({1, 2, 2})}),
                           layer_params(4), true, 1, 0.0, false, false}}};
        },
};

WEFT_OPERATOR(lstm_cell) = {
    .schema =
        "aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> (Tensor, Tensor)",
    .composite = {.functional = function<&lstm_cell_composite>()},
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({2, 3}), list({f64({2, 2}), f64({2, 2})}), f64({8, 3}), f64({8, 2}), f64({8}),
                           f64({8})}}};
        },
};

WEFT_OPERATOR(gru_input) = {
    .schema =
        "aten::gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
        "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .traits = Traits::kRecurrent,
    .composite = {.functional = function<&rnn_composite<GruCell>>()},
    .samples = layer_samples<3>,
};

WEFT_OPERATOR(gru_data) = {
    .schema =
        "aten::gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int "
        "num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    .traits = Traits::kDataDependent | Traits::kRecurrent,
    .composite = {.functional = function<&packed_rnn<GruCell>>()},
    .samples = packed_samples<3>,
};

WEFT_OPERATOR(gru_cell) = {
    .schema =
        "aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor",
    .composite = {.functional = function<&cell_composite<GruCell>>()},
    .samples = cell_samples<3>,
};

WEFT_OPERATOR(rnn_tanh_input) = {
    .schema =
        "aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .traits = Traits::kRecurrent,
    .composite = {.functional = function<&rnn_composite<TanhCell>>()},
    .samples = layer_samples<1>,
};

WEFT_OPERATOR(rnn_tanh_data) = {
    .schema =
        "aten::rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
        "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    .traits = Traits::kDataDependent | Traits::kRecurrent,
    .composite = {.functional = function<&packed_rnn<TanhCell>>()},
    .samples = packed_samples<1>,
};

WEFT_OPERATOR(rnn_tanh_cell) = {
    .schema =
        "aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor",
    .composite = {.functional = function<&cell_composite<TanhCell>>()},
    .samples = cell_samples<1>,
};

WEFT_OPERATOR(rnn_relu_input) = {
    .schema =
        "aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    .traits = Traits::kRecurrent,
    .composite = {.functional = function<&rnn_composite<ReluCell>>()},
    .samples = layer_samples<1>,
};

WEFT_OPERATOR(rnn_relu_data) = {
    .schema =
        "aten::rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, "
        "int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    .traits = Traits::kDataDependent | Traits::kRecurrent,
    .composite = {.functional = function<&packed_rnn<ReluCell>>()},
    .samples = packed_samples<1>,
};

WEFT_OPERATOR(rnn_relu_cell) = {
    .schema =
        "aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
        "b_hh=None) -> Tensor",
    .composite = {.functional = function<&cell_composite<ReluCell>>()},
    .samples = cell_samples<1>,
};

}  // namespace weft::ops
