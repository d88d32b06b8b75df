// Graphs tell the truth: captured with one set of data and run on another, they give what the program gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/table_support.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/base/random.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"
#include "weft/graph/text.h"
#include "weft/ops/define.h"
#include "weft/ops/extension.h"
#include "weft/ops/nested.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Values in another order, numbers a little smaller: indices, probabilities and domains stay right.
Tensor other_data(const Tensor& t) {
  if (!t.defined() || extension_of(t) || (t.flags() & tensor_flag::kWrappedNumber)) return t;
  NoGrad off;
  Tensor other = t.clone();
  Tensor flipped = t.resolve_conj().resolve_neg().reshape({-1}).flip({0}).reshape(t.sizes());
  other.copy_(is_floating(t.dtype()) || is_complex(t.dtype()) ? flipped * 0.75 : flipped);
  return other;
}

// The tensors among the arguments are the inputs of the program; the rest is a part of it.
Value program_of(const Operator& op, const std::vector<Value>& args, Args tensors) {
  size_t next = 0;
  std::vector<Value> complete = table::map_tensors(args, [&](const Tensor& t) {
    return t.defined() && !(t.flags() & tensor_flag::kWrappedNumber) ? tensors[next++].to_tensor() : t;
  });
  return call(op, complete);
}

ValueList inputs_of(const std::vector<Value>& args) {
  ValueList inputs;
  for (const Tensor& t : table::tensors_in(args))
    if (t.defined() && !(t.flags() & tensor_flag::kWrappedNumber)) inputs.emplace_back(t);
  return inputs;
}

void compare_on_other_data(const table::Case& one, CaptureMode mode, std::vector<std::string>& texts) {
  NoGrad off;
  const std::vector<Value> args = one.args();
  auto program = [&](Args tensors) { return program_of(*one.op, args, tensors); };
  auto others = [&] {
    ValueList inputs;
    for (const Value& input : inputs_of(args)) inputs.emplace_back(other_data(input.to_tensor()));
    return inputs;
  };
  manual_seed(7);
  GraphModule g = make_graph(ValueFunction(program), {.mode = mode}).capture(inputs_of(one.args()));
  ValueList own = others(), graphs = others();
  manual_seed(11);
  Value expected = program(own);
  manual_seed(11);
  Value got = g.call(graphs);
  table::compare_values(got, expected, true, texts, "result");
  // What it writes to, it writes to in both.
  table::compare_values(Value::list(graphs), Value::list(own), true, texts, "inputs");
}

// Some operators give numbers that a capture of real data may not keep.
bool gives_tensors(const Operator& op) {
  return std::ranges::all_of(op.schema().returns,
                             [](const Return& result) { return result.type.has_tensor(); });
}
// A generator among the arguments goes on from run to run.
bool has_generator(const Operator& op) {
  return std::ranges::any_of(op.schema().arguments,
                             [](const Argument& argument) { return argument.name == "generator"; });
}
bool is_deterministic(const Operator& op) {
  return gives_tensors(op) && !has_generator(op) && !op.has(Traits::kUninitialized);
}

const table::Exceptions kOffsets = {
    {"aten::_embedding_bag", "the other data are no offsets: they do not begin at 0"},
    {"aten::_embedding_bag_forward_only", "likewise"},
    {"aten::embedding_bag", "likewise"},
    {"aten::embedding_bag.padding_idx", "likewise"}};
const table::Exceptions kPacked = {
    {"aten::gru.data", "how many sequences each step has decides what is called"},
    {"aten::lstm.data", "likewise"},
    {"aten::rnn_relu.data", "likewise"},
    {"aten::rnn_tanh.data", "likewise"}};
table::Exceptions joined(table::Exceptions a, const table::Exceptions& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(OtherData, EveryOperatorCapturedOnRealTensors) {
  auto check = [](const table::Case& one, std::vector<std::string>& texts) {
    compare_on_other_data(one, CaptureMode::kReal, texts);
  };
  table::expect_only(
      table::check_samples(is_deterministic, check),
      joined(joined(kOffsets, kPacked),
             {{"aten::randint_like.Tensor", "it reads its bound out of a tensor, which is refused"}}));
}

TEST(OtherData, EveryOperatorCapturedOnFakeTensors) {
  auto has_plain_sizes = [](const Operator& op) {
    return is_deterministic(op) && !op.has(Traits::kDataDependent);
  };
  auto check = [](const table::Case& one, std::vector<std::string>& texts) {
    compare_on_other_data(one, CaptureMode::kFake, texts);
  };
  table::expect_only(table::check_samples(has_plain_sizes, check), kOffsets);
}

TEST(OtherData, EveryOperatorCapturedOnSymbolicTensors) {
  auto check = [](const table::Case& one, std::vector<std::string>& texts) {
    compare_on_other_data(one, CaptureMode::kSymbolic, texts);
  };
  table::expect_only(table::check_samples(is_deterministic, check), joined(kOffsets, kPacked));
}

// --- extensions ------------------------------------------------------------------------------------------

struct Pair : Extension {
  Pair(Tensor a, Tensor b) : a(std::move(a)), b(std::move(b)) {}
  Tensor a, b;
  static Tensor make(const Tensor& a, const Tensor& b) { return make_extension(make_ref<Pair>(a, b), a); }
  std::string type_name() const override { return "Pair"; }
  std::vector<Tensor> inner_tensors() const override { return {a, b}; }
  std::vector<std::string> inner_names() const override { return {"a", "b"}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<Pair>(inner[0], inner[1]);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value x = dispatch::redispatch(op, unwrap_extensions<Pair>(args, [](Pair& t) { return t.a; }));
    Value y = dispatch::redispatch(op, unwrap_extensions<Pair>(args, [](Pair& t) { return t.b; }));
    return make(x.to_tensor(), y.to_tensor());
  }
};

void expect_same_pair(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(extension_of<Pair>(got));
  testing::expect_equal(extension_of<Pair>(got)->a, extension_of<Pair>(wanted)->a);
  testing::expect_equal(extension_of<Pair>(got)->b, extension_of<Pair>(wanted)->b);
}

TEST(OtherData, AnExtensionIsAnInputAsItIs) {
  auto f = [](const Tensor& x, const Tensor& y) { return (x * y).sin() + x; };
  auto pair = [] { return Pair::make(randn({3}), randn({3})); };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = make_graph(f, {.mode = mode, .arg_names = "x, y"})(pair(), pair());
    EXPECT_THAT(g.code(), HasSubstr("mul = torch.ops.aten.mul.Tensor(x_1, y_1)"));
    const Tensor x = pair(), y = pair(), plain = randn({3});
    expect_same_pair(g(x, y), f(x, y));
    expect_same_pair(g(x, plain), f(x, plain));
    testing::expect_equal(g(plain, plain), f(plain, plain));
  }
}

TEST(OtherData, AnExtensionMayBeAConstant) {
  const Tensor constant = Pair::make(randn({3}), randn({3}));
  auto f = [&](const Tensor& x) { return x * constant + 1; };
  GraphModule g = make_graph(f)(randn({3}));
  const Tensor x = randn({3});
  expect_same_pair(g(x), f(x));
}

TEST(OtherData, AnExtensionMadeOfRecordedValuesIsTakenApart) {
  auto inner = [](const Tensor& x) {
    Tensor both = Pair::make(x, x * 2) * 3;
    return extension_of<Pair>(both)->a + extension_of<Pair>(both)->b;
  };
  const Tensor x = randn({3});
  testing::expect_equal(make_graph(inner)(ones({3}))(x), inner(x));
  EXPECT_ERROR(
      make_graph([](const Tensor& t) { return Pair::make(t, t * 2); })(x),
      "a Pair that the captured function makes of its values cannot be a value of the graph; give its "
      "inner tensors instead (a, b)");
}

// --- constants -------------------------------------------------------------------------------------------

TEST(OtherData, ANumberOfAUsersOperatorIsNoConstant) {
  static const Operator& count = define_operator(
      "other_data::count(Tensor x) -> int",
      {.kernel = [](const Tensor& x) { return static_cast<int64_t>(x.sum().item().to_double()); }});
  auto f = [](const Tensor& x) { return x * Scalar(call(count, {x}).to_int()); };
  EXPECT_ERROR(make_graph(f)(ones({3})), "count gives a number that may depend on the data of this run");
  EXPECT_EQ(make_graph(f, {.allow_data_reads = true})(ones({3}))(ones({3})).sum().item().to_double(), 9);
  // Of a constant it is a part of the program.
  const Tensor constant = ones({4});
  auto g = [&](const Tensor& x) { return x * Scalar(call(count, {constant}).to_int()); };
  testing::expect_equal(make_graph(g)(ones({3}))(full({3}, 2.0)), full({3}, 8.0));
}

TEST(OtherData, WhatLooksAtTheMemoryOfAnInputIsNoConstant) {
  const Tensor x = randn({2, 3});
  const Tensor rows = x.view({6});
  auto f = [&](const Tensor& t) { return t.sum() + rows.sum(); };
  EXPECT_ERROR(make_graph(f)(x),
               "f32[6] is no input of the captured function, but looks at the memory of one");
  EXPECT_ERROR(make_graph(f, {.mode = CaptureMode::kFake, .allow_real_inputs = true})(x),
               "looks at the memory of one: as a constant it would keep this run's values");
  const Tensor other = randn({2, 3});
  testing::expect_equal(make_graph(f)(other)(other * 2), f(other * 2));
}

}  // namespace
}  // namespace weft
