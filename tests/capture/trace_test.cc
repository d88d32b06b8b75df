// trace: recording on real inputs, and its checker.
#include "weft/capture/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/base/warning.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

Value args(std::initializer_list<Value> values) { return Value::tuple(values); }

TEST(Trace, RecordsFunctions) {
  TracedFunction f = trace([](const Tensor& x, const Tensor& y) { return x * 2 - y; },
                           args({randn({3}), randn({3})}), {.arg_names = "x, y", .name = "f"});
  EXPECT_EQ(f.name(), "f");
  Tensor a = randn({5, 2}), b = randn({5, 2});
  expect_equal(f(a, b), a * 2 - b);
  expect_equal(f.call(ValueList{}, {{"y", a}, {"x", b}}).to_tensor(), b * 2 - a);
  EXPECT_FALSE(is_tracing());
}

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor forward(const Tensor& x) { return relu(fc(x)); }
  WEFT_ARGS(x)
};

TEST(Trace, RecordsModules) {
  Net net;
  TracedModule traced = trace(net, randn({2, 4}));
  Tensor x = randn({7, 4});
  expect_equal(traced(x), net(x));
  EXPECT_THAT(traced.method_names(), ::testing::ElementsAre("forward"));
  EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_same(net.fc.weight));
  EXPECT_EQ(traced.state_dict().size(), 2u);
  EXPECT_EQ(traced.to_string(), "Net(\n  original_name=Net\n  (fc): Linear(original_name=Linear)\n)");
  EXPECT_ERROR(callable_in(traced.find("fc"))->call(ValueList{x}), "Trace submodules cannot be called.");
}

TEST(Trace, ReplacesWhatModulesOwn) {
  Net net;
  TracedModule traced = trace(net, randn({2, 4}));
  Tensor x = randn({7, 4}), weight = randn({3, 4}).set_requires_grad();
  traced.set_attribute("fc.weight", weight);
  EXPECT_TRUE(traced.find("fc.weight").to_tensor().is_same(weight));
  expect_equal(traced(x), relu(linear(x, weight, net.fc.bias)));
  EXPECT_FALSE(net.fc.weight.is_same(weight));
  EXPECT_USER_ERROR(traced.delete_attribute("fc.weight"),
                    "cannot delete methods or parameters of a script module");
  Net other;
  traced.load_state_dict(other.state_dict());
  expect_equal(traced(x), other(x));
}

struct TwoConstants : nn::Module {
  Tensor forward(const Tensor& x) { return x + from_data<float>({1, 2}); }
  Tensor other(const Tensor& x) { return x + from_data<float>({30, 40}); }
  WEFT_ARGS(x)
};

TEST(Trace, MethodsHaveConstantsOfTheirOwn) {
  TwoConstants net;
  std::vector<BoundMethod> methods = {method(net, &TwoConstants::forward, "forward"),
                                      method(net, &TwoConstants::other, "other")};
  WarningCapture capture;
  TracedModule traced = trace_module(net, methods, Dict{{"forward", ones({2})}, {"other", ones({2})}});
  EXPECT_TRUE(capture.warnings().empty());
  Tensor x = randn({2});
  expect_equal(traced(x), net(x));
  expect_equal(traced.method("other")(x), net.other(x));
}

TEST(Trace, TakesAndGivesContainers) {
  TracedFunction f = trace(
      [](const std::map<std::string, Tensor>& d, const std::tuple<Tensor, std::vector<Tensor>>& t) {
        return std::tuple(d.at("a") + std::get<0>(t), std::tuple(std::get<1>(t)[0]));
      },
      args({Dict{{"a", ones({2})}, {"b", ones({2})}}, Value::tuple({ones({2}), Value::list({ones({2})})})}));
  Tensor x = randn({2}), y = randn({2}), z = randn({2});
  Value result = f.call({Dict{{"c", z}, {"a", x}}, Value::tuple({y, Value::list({z})})});
  expect_equal(result.elements()[0].to_tensor(), x + y);
  EXPECT_TRUE(result.elements()[1].elements()[0].to_tensor().is_same(z));
  EXPECT_ERROR(f.call({Dict{{"c", z}}, Value::tuple({y, Value::list({z})})}), "no entry 'a'");
}

TEST(Trace, ChecksRunsAgainstEachOther) {
  int calls = 0;
  auto f = [&](const Tensor& x) {
    ++calls;
    return x + 1;
  };
  trace(f, ones({2}));
  EXPECT_EQ(calls, 3);
  trace(f, ones({2}), {.check_trace = false});
  EXPECT_EQ(calls, 4);
  auto grows = [n = 0](const Tensor& x) mutable {
    Tensor y = x;
    for (int i = 0; i <= n; ++i) y = y.neg();
    ++n;
    return y;
  };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(grows, ones({2})), "Graphs differed across invocations!");
}

TEST(Trace, WarnsOfRandomResults) {
  WarningCapture capture;
  trace([](const Tensor& x) { return dropout(x, 0.5, true); }, ones({50}));
  std::vector<Warning> warnings = capture.take();
  ASSERT_GE(warnings.size(), 2u);
  EXPECT_THAT(warnings[0].message, HasSubstr("Trace had nondeterministic nodes."));
  EXPECT_THAT(warnings[1].message,
              HasSubstr("Output nr 1. of the traced function does not match the corresponding "
                        "output of the Python function"));
}

TEST(Trace, RefusesWhatItCannotRecord) {
  Tensor p = ones({2}).set_requires_grad();
  EXPECT_ERROR(trace([&](const Tensor& x) { return x + p; }, ones({2})),
               "Cannot insert a Tensor that requires grad as a constant");
  EXPECT_ERROR(trace([](const Tensor&) {}, ones({2})), "The traced function didn't return any values!");
  EXPECT_ERROR(trace([](int64_t) { return ones({2}); }, args({1})), "Type 'Tuple[int]' cannot be traced");
  EXPECT_ERROR(
      trace([](const Tensor& x) { return trace([](const Tensor& y) { return y; }, x)(x); }, ones({2})),
      "Tracing can't be nested");
  EXPECT_FALSE(is_tracing());
  EXPECT_EQ(layer_state().active, 0u);
}

TEST(Trace, NotesWhereCallsWereMadeOnRequest) {
  auto f = [](const Tensor& x) { return x.sin(); };
  TracedFunction with = trace(f, ones({2}), {.record_stack_traces = true}), without = trace(f, ones({2}));
  EXPECT_THAT(with.graph().find("sin")->source(), HasSubstr("trace_test.cc"));
  EXPECT_NE(with.graph().find("sin")->meta().trace, nullptr);
  EXPECT_EQ(without.graph().find("sin")->source(), "");
}

TEST(Trace, TheNumberOfElementsIsAQuestionOfItsOwn) {
  auto scaled = [](const Tensor& x) {
    Tensor flat = x.view({x.numel()});
    return flat * x.numel();
  };
  TracedFunction traced = trace(scaled, ones({3, 2}), {.arg_names = "x"});
  expect_equal(traced(ones({4, 5})), full({20}, 20.0));
  EXPECT_EQ(traced.graph_text({.types = false}), R"(graph(%x : Tensor):
  %1 : int = aten::numel(%x)
  %2 : Tensor = prim::NumToTensor(%1)
  %3 : int = aten::Int(%2)
  %4 : int[] = prim::ListConstruct(%3)
  %5 : Tensor = aten::view(%x, %4)
  %6 : int = aten::numel(%x)
  %7 : Tensor = prim::NumToTensor(%6)
  %8 : Tensor = aten::mul(%5, %7)
  return (%8)
)");
  auto transposed = [](const Tensor& x) {
    Tensor y = x.clone();
    const SymInt before = y.size(0);
    y.transpose_(0, 1);
    return ones({before, y.size(0)});
  };
  EXPECT_EQ(trace(transposed, ones({3, 3}))(ones({4, 5})).plain_sizes()[1], 5);
}

// FX would call it foo_bar.
TEST(Trace, NamesOfArgumentsStayAsTheyAreWritten) {
  TracedFunction traced = trace([](const Tensor& x, const Tensor& y) { return x + y; },
                                args({ones({2}), ones({2})}), {.arg_names = "fooBar, T"});
  EXPECT_THAT(traced.graph_text(), HasSubstr("graph(%fooBar : Float("));
  EXPECT_NE(traced.graph().find("fooBar"), nullptr);
  EXPECT_NE(traced.graph().find("T"), nullptr);
}

TEST(TraceThreads, ShareAnExampleTensor) {
  const Tensor example = ones({4, 3});
  auto f = [](const Tensor& x) {
    for (int i = 0; i < 50; ++i) (void)(x + x.size(0));
    return x.view({x.size(0) * x.size(1)});
  };
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 5; ++round) right += trace(f, example)(ones({2, 5})).size(0) == 10;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 20);
  EXPECT_EQ(example.size(0), 4);
}

TEST(TracedWrites, ChangeTheSizesOfTheCallersTensor) {
  TracedFunction traced = trace(
      [](const Tensor& x) {
        x.t_();
        x.unsqueeze_(0);
        return x * 2;
      },
      ones({2, 3}), {.check_trace = false});
  Tensor given = rand({4, 5}), wanted = given.t().unsqueeze(0) * 2;
  expect_equal(traced(given), wanted);
  EXPECT_EQ(describe_sizes(given.sizes()).str(), "[1, 5, 4]");
}

}  // namespace
}  // namespace weft
