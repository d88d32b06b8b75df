// Ports of TraceApi: get_trace_graph.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/capture/trace_graph.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"

namespace weft {
namespace {

using testing::args;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::operators_in;
using testing::ramp;
using testing::warnings_of;

std::vector<std::string> input_targets(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node* node : graph.placeholders()) names.push_back(node->target().to_string());
  return names;
}

struct Scaled : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(3, 2));
  std::shared_ptr<int> runs = std::make_shared<int>(0);
  std::pair<Tensor, Tensor> forward(const Tensor& x) {
    ++*runs;
    Tensor y = fc(x);
    return {y, y * 2};
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_get_trace_graph_plain) {
  EXPECT_TRUE(TraceGraphOptions().strict);
  int runs = 0;
  Tensor x = randn({2, 3}), y = randn({2, 3});
  auto f = [&](const Tensor& a, const Tensor& b) {
    ++runs;
    EXPECT_TRUE(is_tracing());
    Tensor sum = a + b, product = a * b, negative = a.neg();
    return std::make_pair(sum, std::make_pair(product, negative));
  };
  TraceGraph traced = get_trace_graph(f, args({x, y}));
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(is_tracing());
  expect_values(traced.out, args({x + y, args({x * y, x.neg()})}));
  EXPECT_THAT(operators_in(traced.graph()), ElementsAre("add", "mul", "neg"));
  EXPECT_THAT(traced.inputs, IsEmpty());
  EXPECT_TRUE(traced.inputs_before.is_none());
  EXPECT_TRUE(traced.inputs_after.is_none());
  // One that is no tuple is the only argument.
  auto twice = [](const Tensor& a) { return a * 2; };
  for (const Value& given : {Value(x), args({x})}) {
    TraceGraph one = get_trace_graph(twice, given);
    EXPECT_EQ(one.graph().placeholders().size(), 1u);
    expect_values(one.out, x * 2);
    expect_values(one.module.call({y}), y * 2);
  }
  // The function does what it does without a trace: writes reach the caller's tensors, and what it gives is
  // a part of the tape.
  Tensor written = ones({2, 3});
  TraceGraph writes = get_trace_graph([](const Tensor& a) { return a.add_(1); }, written);
  expect_equal(written, full({2, 3}, 2.0));
  EXPECT_TRUE(writes.out.to_tensor().is_same(written));
  Tensor leaf = randn({2, 3}).set_requires_grad();
  get_trace_graph([](const Tensor& a) { return (a * 3).sum(); }, leaf).out.to_tensor().backward();
  expect_equal(leaf.grad(), full({2, 3}, 3.0));

  Scaled net;
  TraceGraph module = get_trace_graph(net, x);
  EXPECT_EQ(*net.runs, 1);
  expect_values(module.out, to_value(net(x)));
  // By default a result that may be another one for other inputs is not taken silently.
  EXPECT_ERROR(
      get_trace_graph([](const Tensor& a) { return std::map<std::string, Tensor>{{"y", a * 2}}; }, x),
      "Encountering a dict at the output of the tracer");
  EXPECT_THAT(warnings_of([&] {
                get_trace_graph([](const Tensor& a) { return std::vector<Tensor>{a * 2, a * 3}; }, x);
              }),
              ElementsAre(HasSubstr("Encountering a list at the output of the tracer")));
}

struct Normalised : nn::Module {
  nn::BatchNorm1d norm = child("norm", nn::BatchNorm1d(3));
  Tensor twice = buffer("twice", norm.weight);
  Tensor forward(const Tensor& x, const std::pair<Tensor, Tensor>& pair) {
    return norm(x) + pair.first * pair.second;
  }
  WEFT_ARGS(x, pair)
};

TEST(TraceApi, test_api_get_trace_graph_state_inputs) {
  Tensor x = randn({4, 3});
  nn::BatchNorm1d norm(3);
  TraceGraph traced = get_trace_graph(norm, x);
  EXPECT_THAT(input_targets(traced.graph()),
              ElementsAre("input_0", "weight", "bias", "running_mean", "running_var", "num_batches_tracked"));
  // Everything is an input: the graph has no attributes of its own, and runs with other state.
  EXPECT_THAT(traced.module.state_dict(), IsEmpty());
  for (const Node& node : traced.graph()) EXPECT_NE(node.kind(), NodeKind::kGetAttr);
  nn::BatchNorm1d other(3);
  {
    NoGrad no_grad;
    other.weight.copy_(randn({3}));
    other.bias.copy_(randn({3}));
  }
  Value wanted = [&] {
    ValueList given = {x};
    for (const auto& [name, tensor] : other.state_dict()) given.emplace_back(tensor.detach().clone());
    return traced.module.call(given);
  }();
  expect_values(other(x), wanted, 1e-6);
  // Arguments come first, taken apart; a tensor that the module has twice is one input, under its first name.
  Normalised net;
  EXPECT_THAT(input_targets(get_trace_graph(net, args({x, args({x * 2, ones({3})})})).graph()),
              ElementsAre("input_0", "input_1", "input_2", "twice", "norm.bias", "norm.running_mean",
                          "norm.running_var", "norm.num_batches_tracked"));
  // A function has no state, whatever it closes over.
  Tensor closed_over = ones({3});
  TraceGraph function = get_trace_graph([&](const Tensor& a) { return a + closed_over; }, x);
  EXPECT_THAT(input_targets(function.graph()), ElementsAre("input_0"));
}

TEST(TraceApi, test_api_get_trace_graph_outputs_flattened) {
  Tensor x = randn({2});
  auto nested = [](const Tensor& a) {
    return std::make_pair(a + 1, std::make_pair(std::make_pair(a + 2, a + 3), a + 4));
  };
  TraceGraph traced = get_trace_graph(nested, x);
  Value output = traced.graph().output_node()->args()[0];
  ASSERT_TRUE(output.is_tuple());
  ASSERT_EQ(output.elements().size(), 4u);
  for (const Value& element : output.elements()) EXPECT_NE(node_in(element), nullptr);
  expect_values(traced.module.call({x}), args({x + 1, x + 2, x + 3, x + 4}));
  expect_values(traced.out, args({x + 1, args({args({x + 2, x + 3}), x + 4})}));

  auto single = [](const Tensor& a) { return a + 1; };
  auto wrapped = [](const Tensor& a) { return std::make_tuple(std::make_tuple(a + 1)); };
  for (const TraceGraph& one : {get_trace_graph(single, x), get_trace_graph(wrapped, x)}) {
    EXPECT_NE(node_in(one.graph().output_node()->args()[0]), nullptr);
    expect_values(one.module.call({x}), x + 1);
  }
  expect_values(get_trace_graph(wrapped, x).out, args({args({x + 1})}));
}

TEST(TraceApi, test_api_get_trace_graph_return_inputs) {
  auto writes = [](const Tensor& a, const std::pair<Tensor, Tensor>& pair) {
    a.add_(1);
    pair.first.mul_(2);
    return a * pair.first + pair.second;
  };
  Tensor x = ramp({2, 3}).t(), y = ramp({3, 2}, 1, 2), z = ramp({3, 2}).set_requires_grad();
  Value given = args({x, args({y, z})}), before = clone_inputs(given);
  TraceGraph traced = get_trace_graph(writes, given, {.return_inputs = true});
  ASSERT_EQ(traced.inputs.size(), 3u);
  expect_values(Value::list(traced.inputs), Value::list(tree_leaves(before)));
  EXPECT_FALSE(testing::close(x, traced.inputs[0].to_tensor()));
  std::vector<Tensor> originals = {x, y, z};
  for (size_t i = 0; i < 3; ++i) {
    Tensor copy = traced.inputs[i].to_tensor();
    EXPECT_EQ(copy.strides()[0], originals[i].strides()[0]);
    EXPECT_EQ(copy.strides()[1], originals[i].strides()[1]);
    EXPECT_NE(copy.storage()->data(), originals[i].storage()->data());
    EXPECT_EQ(copy.requires_grad(), originals[i].requires_grad());
  }
  expect_values(traced.module.call(traced.inputs), traced.out);
  EXPECT_TRUE(traced.inputs_before.is_none());
  // State as well: batch norm writes to its own.
  nn::BatchNorm1d norm(3);
  Tensor batch = randn({4, 3});
  TraceGraph module = get_trace_graph(norm, batch, {.return_inputs = true});
  ASSERT_EQ(module.inputs.size(), 6u);
  expect_equal(module.inputs[0].to_tensor(), batch);
  expect_equal(module.inputs[3].to_tensor(), zeros({3}));
  expect_equal(module.inputs[4].to_tensor(), ones({3}));
  EXPECT_EQ(module.inputs[5].to_tensor().item().to_int(), 0);
  EXPECT_EQ(norm.find("num_batches_tracked").to_tensor().item().to_int(), 1);
  expect_values(module.module.call(module.inputs), module.out);
  expect_equal(module.inputs[3].to_tensor(), norm.find("running_mean").to_tensor());
}

TEST(TraceApi, test_api_get_trace_graph_return_inputs_states) {
  auto writes = [](const std::map<std::string, Tensor>& d, const std::pair<Tensor, Tensor>& pair) {
    d.at("x").add_(1);
    pair.second.zero_();
    return d.at("x") * pair.first;
  };
  Tensor x = randn({3}), a = randn({3}), b = randn({3});
  Value given = args({Dict{{"x", x}}, args({a, b})}), before = clone_inputs(given);
  TraceGraph traced = get_trace_graph(writes, given, {.return_inputs_states = true});
  expect_values(traced.inputs_before, before);
  expect_values(
      traced.inputs_after,
      args({Dict{{"x", before.elements()[0].to_dict().at("x").to_tensor() + 1}}, args({a, zeros({3})})}));
  expect_values(traced.inputs_after, given);
  EXPECT_THAT(traced.inputs, IsEmpty());
  // Both at once: only the inputs of the graph.
  for (const Value& state : {args({x}), Value(x)}) {
    Tensor was = x.clone();
    TraceGraph both = get_trace_graph([](const Tensor& t) { return t.add_(1); }, state,
                                      {.return_inputs = true, .return_inputs_states = true});
    ASSERT_EQ(both.inputs.size(), 1u);
    expect_equal(both.inputs[0].to_tensor(), was);
    EXPECT_TRUE(both.inputs_before.is_none());
    EXPECT_TRUE(both.inputs_after.is_none());
  }
}

TEST(TraceApi, test_api_get_trace_graph_non_tensor_error) {
  Tensor x = randn({2});
  int runs = 0;
  auto f = [&](const Tensor& a, const Value&) {
    ++runs;
    return a * 2;
  };
  for (const Value& other : {Value(1), Value(2.5), Value("words"), Value(), args({x, 3})}) {
    EXPECT_ERROR(get_trace_graph(f, args({x, other})), "Expected Tensor argument");
    EXPECT_FALSE(is_tracing());
  }
  EXPECT_EQ(runs, 0);
  EXPECT_THAT(operators_in(get_trace_graph(f, args({x, args({x, x})})).graph()), ElementsAre("mul"));
}

TEST(TraceApi, test_api_get_trace_graph_force_outplace) {
  auto writes = [](const Tensor& x) {
    Tensor added = x.clone();
    added.add_(1);
    Tensor copied = empty({2, 3});
    copied.copy_(added.select(0, 0));
    Tensor zeroed = ones({2, 3});
    zeroed.zero_();
    Tensor filled = ones({2, 3});
    filled.fill_(3);
    return std::make_tuple(added, copied, zeroed, filled);
  };
  Tensor x = randn({2, 3});
  auto operators = [&](bool force_outplace) {
    TraceGraph traced = get_trace_graph(writes, x, {.force_outplace = force_outplace});
    expect_values(traced.module.call({x}), traced.out);
    return operators_in(traced.graph());
  };
  EXPECT_THAT(operators(true), IsSupersetOf({"add", "expand_as", "zeros_like", "full_like"}));
  EXPECT_THAT(operators(true), Each(Not(::testing::EndsWith("_"))));
  EXPECT_THAT(operators(false), IsSupersetOf({"add_", "copy_", "zero_", "fill_"}));
  // The program itself writes, recorded how ever.
  Tensor written = ones({2, 3});
  TraceGraph traced =
      get_trace_graph([](const Tensor& t) { return t.add_(1); }, written, {.force_outplace = true});
  expect_equal(written, full({2, 3}, 2.0));

  auto dictionary = [](const Tensor& t) { return std::map<std::string, Tensor>{{"a", t * 2}, {"b", t * 3}}; };
  auto list = [](const Tensor& t) { return std::vector<Tensor>{t * 2, t * 3}; };
  std::vector<std::string> warnings = warnings_of([&] {
    for (const TraceGraph& loose :
         {get_trace_graph(dictionary, x, {.strict = false}), get_trace_graph(list, x, {.strict = false})})
      expect_values(loose.module.call({x}), args({x * 2, x * 3}));
    expect_values(get_trace_graph(dictionary, x, {.strict = false}).out, Dict{{"a", x * 2}, {"b", x * 3}});
  });
  EXPECT_THAT(warnings, IsEmpty());
}

}  // namespace
}  // namespace weft
