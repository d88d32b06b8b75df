// Ports of TestTracer: lists, dictionaries and what cannot be traced.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::args;
using testing::check_trace;
using ::testing::Contains;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::scalar;
using testing::warnings_of;

using Tensors = std::map<std::string, Tensor>;
template <typename Key, typename T>
using Nested = std::map<std::string, std::map<Key, T>>;

Tensor number(int64_t value) { return full({}, value, kInt64); }

// --- dictionaries among the arguments
// ------------------------------------------------------------------------

TEST(TestTracer, test_input_dict_empty) {
  auto test = [](const Tensors&) {};
  EXPECT_ERROR(check_trace(test, {.reference = Dict{}}), "Dictionary inputs must have entries");
}

struct TestModule : nn::Module {
  Tensor forward(const Tensors& dict_input) { return dict_input.at("x"); }
  WEFT_ARGS(dict_input)
};

TEST(TestTracer, test_input_dict_remembers_keys) {
  TracedModule traced = trace(TestModule(), args({Dict{{"x", number(1)}}}));
  expect_equal(traced(Dict{{"x", number(1)}}), number(1));
  expect_equal(traced(Dict{{"x", number(2)}}), number(2));
  EXPECT_ERROR(traced(Dict{{"y", number(3)}}), "no entry 'x'");
  expect_equal(traced(Dict{{"x", number(4)}, {"y", number(3)}}), number(4));
}

struct InputDictInsertionOrder : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensors& dict_input) {
    return {dict_input.at("x"), dict_input.at("y")};
  }
  WEFT_ARGS(dict_input)
};

TEST(TestTracer, test_input_dict_insertion_order) {
  Dict x_then_y{{"x", number(1)}, {"y", number(2)}};
  TracedModule traced = trace(InputDictInsertionOrder(), args({x_then_y}));
  expect_values(traced.call({x_then_y}), Value::tuple({number(1), number(2)}));
  expect_values(traced.call({Dict{{"y", number(4)}, {"x", number(3)}}}),
                Value::tuple({number(3), number(4)}));
}

struct InputDictRecursive : nn::Module {
  Tensor forward(const Nested<int64_t, Tensor>& dict_input) { return dict_input.at("x").at(1); }
  WEFT_ARGS(dict_input)
};

TEST(TestTracer, test_input_dict_recursive) {
  TracedModule traced = trace(InputDictRecursive(), args({Dict{{"x", Dict{{1, number(1)}}}}}));
  expect_equal(traced(Dict{{"x", Dict{{1, number(2)}}}}), number(2));
}

TEST(TestTracer, test_input_dict_checkTrace_mut) {
  auto test = [](const Tensors& d) {
    d.at("x").tanh_();
    return d.at("x");
  };
  check_trace(test, {.reference = args({Dict{{"x", rand({3, 4})}, {"y", rand({3, 4})}}}),
                     .inputs_require_grads = false});
}

TEST(TestTracer, test_input_dict_unify) {
  auto test = [](const Tensors& d) { return std::tuple(d.at("int"), d.at("float")); };
  check_trace(test,
              {.reference = args({Dict{{"int", ones({2, 2}, kInt32)}, {"float", ones({2, 2}, kFloat32)}}}),
               .inputs_require_grads = false});
}

TEST(TestTracer, test_input_tuple_of_dicts) {
  using Entry = Nested<std::string, Tensor>;
  auto test = [](const std::tuple<Entry, Entry>& t) { return std::get<0>(t).at("x").at("y"); };
  Value inputs = Dict{{"x", Dict{{"y", rand({2, 3})}}}};
  check_trace(test, {.reference = args({Value::tuple({inputs, inputs})}), .allow_unused = true});
}

TEST(TestTracer, test_input_dict_of_dicts) {
  auto test = [](const Nested<std::string, Tensor>& d) { return d.at("x").at("y"); };
  Dict inputs{{"x", Dict{{"y", rand({2, 3})}}}, {"force_unify", Dict{{"y", rand({3, 2})}}}};
  check_trace(test, {.reference = args({inputs}), .allow_unused = true});
}

TEST(TestTracer, test_input_dict_of_lists) {
  auto test = [](const std::map<std::string, std::vector<Tensor>>& d) { return d.at("x")[0]; };
  check_trace(test, {.reference = args({Dict{{"x", Value::list({rand({3, 2})})}}})});
}

struct Foo : nn::Module {
  Tensors forward(const Tensors& x) { return {{"a", x.at("a") * x.at("b")}}; }
  WEFT_ARGS(x)
};

struct Bar : nn::Module {
  Foo foo = child("foo", Foo());
  Tensor forward(const Tensor& a, const Tensor& b) { return foo(Tensors{{"a", a}, {"b", b}}).at("a"); }
  WEFT_ARGS(a, b)
};

TEST(TestTracer, test_trace_dict_input) { check_trace(Bar(), {.reference = args({rand({3}), rand({3})})}); }

struct TraceDictStrTensor : nn::Module {
  Tensors forward(const Tensor& a, const Tensor& b) { return {{"a", a}, {"b", b}}; }
  WEFT_ARGS(a, b)
};

struct TraceDictTensorTensor : nn::Module {
  Dict forward(const Tensor& a, const Tensor& b) { return {{a, b}, {b, a}}; }
  WEFT_ARGS(a, b)
};

TEST(TestTracer, test_trace_dict_output) {
  Tensor a = rand({3}), b = rand({3});
  EXPECT_ERROR(trace(TraceDictStrTensor(), args({a, b})), "Encountering a dict at the output");
  TracedModule by_string = trace(TraceDictStrTensor(), args({a, b}), {.strict = false});
  expect_values(by_string.call({a, b}), Dict{{"a", a}, {"b", b}});
  TracedModule by_tensor = trace(TraceDictTensorTensor(), args({a, b}), {.strict = false});
  Value result = by_tensor.call({a, b});
  ASSERT_EQ(result.to_dict().size(), 2u);
  EXPECT_TRUE(result.to_dict().at(a).to_tensor().is_same(b));
  EXPECT_TRUE(result.to_dict().at(b).to_tensor().is_same(a));
}

// --- lists
// ---------------------------------------------------------------------------------------------------

TEST(TestTracer, test_input_list_toplevel_flatten) {
  auto test = [](const Tensor& t1, const Tensor& t2) { return add(t1, t2); };
  check_trace(test, {.reference = Value::list({ones({2, 2}), rand({2, 2})})});
}

struct Sum : nn::Module {
  Tensor forward(const Tensor& t1, const Tensor& t2) { return add(t1, t2); }
  WEFT_ARGS(t1, t2)
};

TEST(TestTracer, test_input_list_toplevel_flatten_direct) {
  TracedModule traced = trace(Sum(), Value::list({ones({2, 2}), rand({2, 2})}));
  Tensor x = rand({3}), y = rand({3});
  expect_equal(traced(x, y), x + y);
}

TEST(TestTracer, test_input_list_of_tuples) {
  auto test = [](const std::vector<std::tuple<Tensor>>& l) { return std::get<0>(l[0]); };
  check_trace(test, {.reference = args({Value::list({Value::tuple({ones({2, 2})})})})});
}

struct MyClass : nn::Module {
  Tensor forward(const std::vector<Tensor>& xs) { return cat(xs, 0); }
  WEFT_ARGS(xs)
};

TEST(TestTracer, test_trace_checking_with_global_name) {
  static const Tensor input1 = ones({2, 2}), input2 = ones({2, 2});
  TracedModule traced = trace(MyClass(), args({Value::tuple({input1, input2})}));
  Tensor a = rand({1, 2}), b = rand({3, 2});
  expect_equal(from_value<Tensor>(traced.call({Value::tuple({a, b})})), cat({a, b}, 0));
  std::vector<Node*> inputs = traced.graph().placeholders();
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0]->name(), "xs");
}

TEST(TestTracer, test_trace_with_tensor_list_output) {
  auto f = [] { return std::vector<Tensor>{zeros({1}), zeros({5})}; };
  auto complaint = HasSubstr(
      "TracerWarning: Encountering a list at the output of the tracer might cause the "
      "trace to be incorrect");
  EXPECT_THAT(warnings_of([&] { trace(f, Value::list({})); }), Contains(complaint));
  std::optional<TracedFunction> traced;
  EXPECT_THAT(warnings_of([&] { traced = trace(f, Value::list({}), {.strict = false}); }),
              Not(Contains(complaint)));
  expect_values(traced->call({}), to_value(f()));
}

// --- errors
// --------------------------------------------------------------------------------------------------

TEST(TestTracer, test_input_dict_empty_list) {
  auto test = [](const std::map<int64_t, std::vector<Tensor>>&) {};
  EXPECT_ERROR(check_trace(test, {.reference = args({Dict{{1, Value::list({})}}})}),
               "List trace inputs must have elements");
}

TEST(TestTracer, test_input_list_mixed_type) {
  auto test = [](const Value&) {};
  Value inputs = Value::list({rand({2, 3}), Value::tuple({ones({2}), ones({2})})});
  EXPECT_ERROR(check_trace(test, {.reference = args({inputs})}),
               "List inputs to traced functions must have consistent element type. Found Tensor and "
               "Tuple[Tensor, Tensor]");
}

TEST(TestTracer, test_trace_with_number_list_output) {
  auto f = [] { return std::vector<int64_t>{1, 5}; };
  EXPECT_ERROR(trace(f, Value::list({})),
               "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
               "functions");
}

TEST(TestTracer, test_trace_with_nested_tensor_list_output) {
  auto f = [] { return std::vector<std::vector<Tensor>>{{zeros({1})}, {zeros({5})}}; };
  EXPECT_ERROR(trace(f, Value::list({})),
               "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
               "functions");
}

TEST(TestTracer, test_tensor_with_grad_as_constant) {
  Tensor param = randn({3}).set_requires_grad();
  EXPECT_ERROR(trace([&](const Tensor& x) { return x + param; }, randn({3})),
               "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
               "input, or detaching the gradient");
}

TEST(TestTracer, test_non_tensor_tracing) {
  bool has_run = false;
  auto f = [&](int64_t x) {
    has_run = true;
    return full({}, x);
  };
  EXPECT_ERROR(
      trace(f, args({1})),
      "Type 'Tuple[int]' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
      "of Tensors can be traced");
  EXPECT_FALSE(has_run);
}

// --- by name
// -------------------------------------------------------------------------------------------------

struct TraceWithTupleTensor : nn::Module {
  Tensor forward(const Tensor& x, const std::tuple<Tensor, Tensor>& y) {
    return x + std::get<0>(y) + std::get<1>(y);
  }
  WEFT_ARGS(x, y)
};

TEST(TraceDropped, test_trace_with_tuple_tensor) {
  TraceWithTupleTensor model;
  Tensor x = from_data<float>({2, 3}), first = from_data<float>({5, 6}), second = from_data<float>({7, 8});
  Kwargs given = {{"x", x}, {"y", Value::tuple({first, second})}};
  Value pair = Value::tuple({ones({1}), ones({1})});
  for (const TracedModule& traced :
       {trace(model, args({ones({1}), pair})),
        trace(model, {}, {.example_kwarg_inputs = {{"x", ones({1})}, {"y", pair}}})})
    expect_values(traced.call(ValueList{}, given), model(x, std::tuple(first, second)));
}

}  // namespace
}  // namespace weft
