// Ports of TraceApi: what trace takes and gives, arguments by name, and switches.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/nn/layers.h"
#include "weft/ops/conversions.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::warnings_of;

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node* node : graph.placeholders()) names.push_back(node->name());
  return names;
}

struct BasicNet : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor offset = buffer("offset", ones({3}));
  Tensor scale = parameter("scale", full({3}, 2.0));
  Tensor forward(const Tensor& x) { return fc(x) * scale + offset; }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_function_returns_function) {
  TracedFunction f =
      trace([](const Tensor& x) { return x * 2; }, ones({2}), {.arg_names = "x", .name = "twice"});
  EXPECT_EQ(f.name(), "twice");
  EXPECT_THAT(input_names(f.graph()), ElementsAre("x"));
  expect_equal(f(full({3}, 4.0)), full({3}, 8.0));
  BasicNet net;
  for (const TracedModule& traced :
       {trace(net, randn({2, 4})), trace(method(net, &BasicNet::forward, "forward"), randn({2, 4}))}) {
    EXPECT_THAT(traced.method_names(), ElementsAre("forward"));
    EXPECT_EQ(traced.child_names(), net.child_names());
    for (auto tensors : {&nn::Module::named_parameters, &nn::Module::named_buffers}) {
      nn::NamedTensors own = (net.*tensors)(false), got = (traced.*tensors)(false);
      ASSERT_EQ(got.size(), own.size());
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(got[i].first, own[i].first);
        EXPECT_TRUE(got[i].second.is_same(own[i].second)) << own[i].first;
      }
    }
    Tensor x = randn({5, 4});
    expect_equal(traced(x), net(x));
  }
}

TEST(TraceApi, test_api_trace_single_tensor_input_wrapped) {
  auto f = [](const Tensor& x) { return x * 2; };
  auto two = [](const Tensor& x, const Tensor& y) { return x - y; };
  auto none = [] { return ones({2}); };
  Tensor a = full({2}, 5.0), b = full({2}, 3.0);
  for (const Value& inputs : {Value(a), args({a}), Value::list({a})}) {
    TracedFunction traced = trace(f, inputs);
    EXPECT_EQ(traced.graph().placeholders().size(), 1u);
    EXPECT_TRUE(traced.example_inputs()->is_tuple());
    expect_equal(traced(b), b * 2);
  }
  expect_equal(trace(two, args({a, b}))(b, a), b - a);
  expect_equal(trace(two, Value::list({a, b}))(b, a), b - a);
  for (const Value& inputs : {args({}), Value::list({})}) {
    TracedFunction traced = trace(none, inputs);
    EXPECT_THAT(traced.graph().placeholders(), IsEmpty());
    expect_values(traced.call({}), ones({2}));
  }
  BasicNet net;
  Tensor x = randn({2, 4});
  for (const Value& inputs : {Value(x), args({x}), Value::list({x})})
    expect_equal(trace_module(net, Dict{{"forward", inputs}})(x), net(x));
}

struct TakesDict : nn::Module {
  Tensor forward(const std::map<std::string, Tensor>& d) { return d.at("x") * 2 - d.at("y"); }
  WEFT_ARGS(d)
};

TEST(TraceApi, test_api_trace_single_dict_is_one_argument) {
  Dict example{{"x", ones({2})}, {"y", ones({2})}};
  Tensor x = randn({3}), y = randn({3});
  auto f = [](const std::map<std::string, Tensor>& d) { return d.at("x") * 2 - d.at("y"); };
  TracedFunction traced = trace(f, example);
  EXPECT_EQ(traced.graph().placeholders().size(), 1u);
  expect_values(traced.call({Dict{{"y", y}, {"x", x}}}), x * 2 - y);
  TracedModule module = trace(TakesDict(), example);
  EXPECT_THAT(input_names(module.graph()), ElementsAre("d"));
  expect_values(module.call({Dict{{"y", y}, {"x", x}}}), x * 2 - y);
  // Only arguments by name are spread.
  auto two = [](const Tensor& a, const Tensor& b) { return a * 2 - b; };
  EXPECT_ERROR(trace(two, example, {.arg_names = "x, y"}), "'y' is missing");
  TracedFunction spread =
      trace(two, {}, {.example_kwarg_inputs = {{"x", ones({2})}, {"y", ones({2})}}, .arg_names = "x, y"});
  EXPECT_EQ(spread.graph().placeholders().size(), 2u);
}

// --- arguments by name -----------------------------------------------------------------------------------

TEST(TraceApi, test_api_trace_kwarg_inputs_function) {
  int calls = 0;
  auto f = [&](const Tensor& x, const Tensor& y) {
    ++calls;
    EXPECT_EQ(x.dim(), 1);
    EXPECT_EQ(y.dim(), 2);
    return 2 * x - y;
  };
  TraceOptions options{.example_kwarg_inputs = {{"y", ones({2, 2})}, {"x", ones({2})}}, .arg_names = "x, y"};
  TracedFunction traced = trace(f, {}, options);
  EXPECT_EQ(calls, 3);
  EXPECT_THAT(input_names(traced.graph()), ElementsAre("x", "y"));
  Tensor x = randn({2}), y = randn({3, 2});
  expect_values(traced.call({}, {{"y", y}, {"x", x}}), 2 * x - y);
  expect_values(traced.call({x}, {{"y", y}}), 2 * x - y);
  calls = 0;
  options.check_inputs = {Dict{{"x", ones({3})}, {"y", ones({2, 3})}},
                          Dict{{"y", ones({2, 4})}, {"x", ones({4})}}};
  EXPECT_THAT(warnings_of([&] { trace(f, {}, options); }), IsEmpty());
  EXPECT_EQ(calls, 5);
}

struct Weighted : nn::Module {
  Tensor weight = parameter("weight", full({2}, 3.0));
  Tensor forward(const Tensor& x, const Tensor& y) {
    EXPECT_EQ(x.dim(), 1);
    EXPECT_EQ(y.dim(), 2);
    return x * weight - y;
  }
  WEFT_ARGS(x, y)
};

TEST(TraceApi, test_api_trace_kwarg_inputs_module) {
  Weighted net;
  TraceOptions options{.check_inputs = {Dict{{"x", rand({2})}, {"y", rand({5, 2})}}},
                       .example_kwarg_inputs = {{"y", ones({2, 2})}, {"x", ones({2})}}};
  Tensor x = randn({2}), y = randn({3, 2});
  for (const TracedModule& traced :
       {trace(net, {}, options), trace(method(net, &Weighted::forward, "forward"), {}, options)}) {
    EXPECT_THAT(input_names(traced.graph()), ElementsAre("x", "y"));
    expect_values(traced.call({}, {{"x", x}, {"y", y}}), net(x, y));
    expect_values(traced.call({}, {{"y", y}, {"x", x}}), net(x, y));
    expect_values(traced.call({x, y}), net(x, y));
  }
}

TEST(TraceApi, test_api_trace_module_kwargs_flag) {
  Dict example{{"y", ones({2, 2})}, {"x", ones({2})}};
  Tensor x = randn({2}), y = randn({3, 2});
  Weighted net;
  TracedModule traced = trace_module(net, Dict{{"forward", example}}, {.example_inputs_is_kwarg = true});
  EXPECT_THAT(input_names(traced.graph()), ElementsAre("x", "y"));
  expect_values(traced.call({}, {{"y", y}, {"x", x}}), net(x, y));
  TracedModule one = trace_module(TakesDict(), Dict{{"forward", example}});
  EXPECT_THAT(input_names(one.graph()), ElementsAre("d"));
  expect_values(one.call({Dict{{"x", x}, {"y", y}}}), x * 2 - y);
}

// --- recordings ------------------------------------------------------------------------------------------

TEST(TraceApi, test_api_trace_runs_on_other_shapes_and_dtypes) {
  auto f = [](const Tensor& x, const Tensor& y) { return 2 * x + y; };
  TracedFunction traced = trace(f, args({rand({3}), rand({3})}));
  Tensor a = rand({5, 2}), b = rand({5, 2}), c = rand({4}, kFloat64), d = rand({4}, kFloat64);
  expect_values(traced.call({a, b}), f(a, b));
  expect_values(traced.call({c, d}), f(c, d));
  EXPECT_EQ(traced(c, d).dtype(), kFloat64);
}

TEST(TraceApi, test_api_trace_keeps_original_callable) {
  int calls = 0;
  auto f = [&](const Tensor& x) {
    ++calls;
    return x.size(0) == 2 ? x * 2 : x * 3;
  };
  TracedFunction traced = trace(f, ones({2}), {.check_trace = false});
  // The recording holds one way; another capture of the original takes its own.
  expect_equal(traced(ones({3})), full({3}, 2.0));
  calls = 0;
  GraphModule inlined = make_graph(traced.original())(ones({3}));
  EXPECT_EQ(calls, 1);
  expect_equal(inlined(ones({3})), full({3}, 3.0));
}

TEST(TraceApi, test_api_trace_control_flow_inlined) {
  auto configured = [](bool negates) {
    return trace([negates](const Tensor& x) { return negates ? x.neg() : x.sin(); }, ones({2}));
  };
  EXPECT_THAT(configured(true).graph().to_string(), HasSubstr("neg"));
  EXPECT_THAT(configured(true).graph().to_string(), ::testing::Not(HasSubstr("sin")));
  EXPECT_THAT(configured(false).graph().to_string(), HasSubstr("sin"));
  auto on_data = [](const Tensor& x) { return is_true(x.sum().gt(0)) ? x.neg() : x.sin(); };
  std::optional<TracedFunction> traced;
  std::vector<std::string> warnings = warnings_of([&] { traced = trace(on_data, ones({2})); });
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("TracerWarning: Converting a tensor to a C++ boolean might cause the "
                                    "trace to be incorrect.")));
  EXPECT_THAT(traced->graph().to_string(), ::testing::Not(HasSubstr("sin")));
  Tensor below = full({2}, -1.0);
  expect_equal((*traced)(below), below.neg());
  EXPECT_THAT(testing::values(on_data(below)), ::testing::Ne(testing::values(below.neg())));
}

TEST(TraceApi, test_api_variable_name_lookup) {
  std::vector<std::string> found;
  TracedFunction traced = trace(
      [&](const Tensor& x) {
        Tensor fox = named("quick_brown_fox", x * 2);
        Tensor unnamed = fox + 1, self = named("self", unnamed.sin());
        found = {value_name(x), value_name(fox), value_name(unnamed), value_name(self),
                 value_name(ones({2}))};
        return self;
      },
      ones({2}), {.check_trace = false, .arg_names = "x"});
  EXPECT_THAT(found, ElementsAre("x", "quick_brown_fox", "", "", ""));
  std::vector<std::string> names;
  for (const Node& node : traced.graph()) names.push_back(node.name());
  EXPECT_THAT(names, ElementsAre("x", "quick_brown_fox", "add", "sin", "output"));
  // What has no name has its number.
  const ScriptGraph script = traced.script();
  std::vector<std::string> values;
  for (const ScriptNode* line : script.nodes()) {
    if (!line->op) continue;
    values.push_back(line->output().name);
    EXPECT_EQ(line->output().is_named, values.back() == "quick_brown_fox");
  }
  EXPECT_THAT(values, ElementsAre("quick_brown_fox", "5", "6"));
  // Outside a trace, and for tensors that no trace knows, there is nothing to name.
  Tensor x = ones({2});
  EXPECT_TRUE(named("x", x).is_same(x));
  EXPECT_EQ(value_name(x), "");
  TracedFunction unknown = trace(
      [&](const Tensor& t) {
        named("x", x);
        return t + 1;
      },
      ones({2}), {.arg_names = "t"});
  EXPECT_THAT(input_names(unknown.graph()), ElementsAre("t"));
}

// --- switches --------------------------------------------------------------------------------------------

struct Counting : nn::Module {
  int* runs = nullptr;
  Tensor forward(const Tensor& x) {
    ++*runs;
    return x + 1;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_disabled_returns_original) {
  struct Off {
    Off() { set_tracing_enabled(false); }
    ~Off() { set_tracing_enabled(true); }
  } off;
  int calls = 0;
  TracedFunction f = trace(
      [&](const Tensor& x, const Tensor& y) {
        ++calls;
        return x.sum().item().to_double() > 0 ? x - y : y;
      },
      args({ones({2}), ones({2})}), {.arg_names = "x, y"});
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(f.is_recorded());
  Tensor a = ones({2}), b = full({2}, -3.0);
  expect_equal(f(a, b), a - b);
  expect_equal(f(b, a), a);
  expect_values(f.call({}, {{"y", a}, {"x", b}}), a);
  expect_values(f.function()(ValueList{b, a}), a);
  EXPECT_EQ(calls, 4);
  Counting counting;
  int runs = 0;
  counting.runs = &runs;
  TracedModule first = trace(counting, ones({2}));
  TracedModule second = trace_module(counting, Dict{{"forward", ones({2})}});
  EXPECT_EQ(runs, 0);
  expect_equal(first(ones({2})), full({2}, 2.0));
  expect_equal(second(ones({2})), full({2}, 2.0));
  EXPECT_EQ(runs, 2);
  BasicNet net;
  for (const TracedModule& same :
       {trace(net, randn({2, 4})), trace_module(net, Dict{{"forward", randn({2, 4})}})}) {
    EXPECT_EQ(same.state(), net.state());
    Tensor x = randn({5, 4});
    expect_equal(same(x), net(x));
  }
}

TEST(TraceApi, test_api_trace_optimize_deprecated) {
  const char* words =
      "DeprecationWarning: `optimize` is deprecated and has no effect. Use `with "
      "torch.jit.optimized_execution()` "
      "instead: in C++, `OptimizedExecution scope(true);`";
  auto f = [](const Tensor& x) { return x * 2; };
  BasicNet net;
  std::string plain = trace(f, ones({2})).graph().to_string();
  for (bool value : {true, false}) {
    std::optional<TracedFunction> traced;
    EXPECT_THAT(warnings_of([&] { traced = trace(f, ones({2}), {.optimize = value}); }), ElementsAre(words));
    EXPECT_EQ(traced->graph().to_string(), plain);
    EXPECT_THAT(
        warnings_of([&] { trace_module(net, Dict{{"forward", randn({2, 4})}}, {.optimize = value}); }),
        ElementsAre(words));
  }
}

TEST(TraceApi, test_api_trace_already_scripted_module_noop) {
  BasicNet net;
  TracedModule traced = trace(net, randn({2, 4}));
  const Graph* graph = &traced.graph();
  std::optional<TracedModule> again;
  EXPECT_THAT(
      warnings_of([&] { again = trace(traced, Value("anything")); }),
      ElementsAre(
          "UserWarning: The input to trace is already a ScriptModule, tracing it is a no-op. Returning "
          "the object as is."));
  EXPECT_EQ(again->state(), traced.state());
  EXPECT_EQ(&again->graph(), graph);
}

}  // namespace
}  // namespace weft
