// Ports of TraceApi: what trace refuses, and that nothing is left behind.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/dispatch/layers.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using testing::warnings_of;

// No trace is going on, and the next one works.
void expect_nothing_left() {
  EXPECT_FALSE(is_tracing());
  EXPECT_EQ(nn::ModuleObserver::current(), nullptr);
  EXPECT_EQ(layer_state().active, 0u);
  Tensor x = ones({3});
  expect_equal(trace([](const Tensor& t) { return t * 2; }, ones({2}))(x), x * 2);
}

std::string words_of(FunctionRef<void()> run) {
  try {
    run();
  } catch (const Error& error) {
    return error.message();
  }
  ADD_FAILURE() << "no error came";
  return {};
}

struct Net : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor forward(const Tensor& x) { return fc(x); }
  Tensor other(const Tensor& x) { return fc(x) * 2; }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_bad_inputs_type_error) {
  int calls = 0;
  auto f = [&](const Tensor& x) {
    ++calls;
    return x;
  };
  for (const Value& inputs : {Value(3), Value(2.5), Value("text"), Value(true), Value()}) {
    EXPECT_USER_ERROR(
        trace(f, inputs),
        "example inputs must be a tensor, a tuple or list of the arguments, or a dictionary, but got " +
            std::string(inputs.kind_name()));
    expect_nothing_left();
  }
  EXPECT_USER_ERROR(trace(Net(), Value(3)), "example inputs must be a tensor");
  EXPECT_EQ(calls, 0);
}

TEST(TraceApi, test_api_trace_missing_inputs_error) {
  Net net;
  EXPECT_USER_ERROR(trace(net), "example_kwarg_inputs should be a dict");
  EXPECT_USER_ERROR(trace(method(net, &Net::forward, "forward")), "example_kwarg_inputs should be a dict");
  expect_nothing_left();
}

struct TwoArguments : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + y; }
  WEFT_ARGS(x, y)
};

TEST(TraceApi, test_api_trace_kwarg_unknown_name_error) {
  Tensor t = ones({2});
  EXPECT_EQ(words_of([&] { trace(TwoArguments(), {}, {.example_kwarg_inputs = {{"x", t}, {"z", t}}}); }),
            "'z' is not in forward() method's arguments,\nvalid arguments name are [x,y]");
  EXPECT_EQ(words_of([&] {
              trace_module(TwoArguments(), Dict{{"forward", Dict{{"z", t}}}},
                           {.example_inputs_is_kwarg = true});
            }),
            "'z' is not in forward() method's arguments,\nvalid arguments name are [x,y]");
  expect_nothing_left();
}

TEST(TraceApi, test_api_trace_unbound_method_error) {
  Net net;
  EXPECT_EQ(words_of([&] { trace(method(net, &Net::other, "other"), randn({2, 4})); }),
            "trace doesn't support compiling individual module's functions.\nPlease use trace_module");
}

TEST(TraceApi, test_api_trace_no_return_value_error) {
  EXPECT_EQ(words_of([] { trace([](const Tensor&) {}, ones({2})); }),
            "The traced function didn't return any values! Side-effects are not captured in traces, so it "
            "would be a "
            "no-op.");
  expect_nothing_left();
}

TEST(TraceApi, test_api_trace_nested_trace_error) {
  auto inner = [](const Tensor& y) { return y * 2; };
  EXPECT_EQ(words_of([&] { trace([&](const Tensor& x) { return trace(inner, x)(x); }, ones({2})); }),
            "Tracing can't be nested");
  expect_nothing_left();
  // Whoever catches it goes on recording.
  auto catches = [&](const Tensor& x) {
    EXPECT_ERROR(trace(inner, x, {.check_trace = false}), "Tracing can't be nested");
    EXPECT_TRUE(is_tracing());
    return x * 3;
  };
  expect_equal(trace(catches, ones({2}), {.check_trace = false})(full({2}, 2.0)), full({2}, 6.0));
  expect_nothing_left();
}

struct Troubled : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  bool* fails;
  explicit Troubled(bool* fails) : fails(fails) {}
  Tensor forward(const Tensor& x) {
    Tensor y = fc(x);
    if (*fails) throw std::out_of_range("trouble");
    return y;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_exception_resets_state) {
  auto words = [](FunctionRef<void()> run) -> std::string {
    try {
      run();
    } catch (const std::out_of_range& error) {
      return error.what();
    }
    return "another error";
  };
  auto throws = [](const Tensor& x) {
    if (x.dim() == 1) throw std::out_of_range("trouble");
    return x;
  };
  EXPECT_EQ(words([&] { trace(throws, ones({2})); }), "trouble");
  expect_nothing_left();
  bool fails = true;
  Troubled net(&fails);
  EXPECT_EQ(words([&] { trace(net, randn({2, 4})); }), "trouble");
  expect_nothing_left();
  fails = false;
  TracedModule traced = trace(net, randn({2, 4}));
  Tensor x = randn({3, 4});
  expect_equal(traced(x), net(x));
  EXPECT_THAT(traced.graph().to_string(), HasSubstr("fc_weight"));
}

struct CallsTraced : nn::Module {
  TracedModule inner;
  CallsTraced(const TracedModule& traced, bool registers) : inner(traced) {
    if (registers) child("inner", traced);
  }
  Tensor forward(const Tensor& x) { return inner(x) * 2; }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_unknown_module_error) {
  Net net;
  TracedModule traced = trace(net, randn({2, 4}));
  const std::string words =
      "but it is not part of the active trace. Modules that are called during a trace must be registered as "
      "submodules "
      "of the thing being traced.";
  EXPECT_USER_ERROR(trace([&](const Tensor& x) { return traced(x); }, randn({2, 4})), words);
  EXPECT_USER_ERROR(trace(CallsTraced(traced, false), randn({2, 4})), words);
  expect_nothing_left();
  Tensor x = randn({3, 4});
  expect_equal(trace(CallsTraced(traced, true), randn({2, 4}))(x), net(x) * 2);
}

TEST(TraceApi, test_api_trace_module_not_module_error) {
  auto f = [](const Tensor& x) { return x; };
  EXPECT_USER_ERROR(trace_module(f, Dict{{"forward", ones({2})}}),
                    "expected torch.nn.Module as the first argument");
}

TEST(TraceApi, test_api_trace_module_inputs_not_dict_error) {
  EXPECT_USER_ERROR(trace_module(Net(), ones({2, 4})), "expected a dictionary of (method_name, input) pairs");
  EXPECT_USER_ERROR(trace_module(Net(), args({ones({2, 4})})),
                    "expected a dictionary of (method_name, input) pairs");
}

TEST(TraceApi, test_api_trace_module_unknown_method_error) {
  EXPECT_USER_ERROR(trace_module(Net(), Dict{{"backward_pass", ones({2, 4})}}),
                    "'Net' has no method 'backward_pass'");
  Net net;
  EXPECT_USER_ERROR(
      trace_module(net, {method(net, &Net::forward, "forward"), method(net, &Net::other, "other")},
                   Dict{{"forward", ones({2, 4})}, {"another", ones({2, 4})}}),
      "'Net' has no method 'another'");
}

TEST(TraceApi, test_api_traced_submodule_cannot_be_called) {
  Net net;
  TracedModule traced = trace(net, randn({2, 4}));
  Tensor x = randn({3, 4});
  EXPECT_EQ(words_of([&] { callable_in(traced.find("fc"))->call(ValueList{x}); }),
            "Trace submodules cannot be called.");
  expect_equal(traced(x), net(x));
}

struct Twice : nn::Module {
  Twice(bool is_buffer) {
    Tensor shared = is_buffer ? ones({2}) : ones({2}).set_requires_grad();
    for (const char* name : {"first", "second"})
      if (is_buffer) buffer(name, shared);
      else parameter(name, shared);
  }
  Tensor forward(const Tensor& x) { return x * find("first").to_tensor(); }
  WEFT_ARGS(x)
};
struct Part : nn::Module {
  Tensor weight;
  explicit Part(const Tensor& shared) : weight(parameter("weight", shared)) {}
  Tensor forward(const Tensor& x) { return x * weight; }
  WEFT_ARGS(x)
};
struct SharedBetweenParts : nn::Module {
  Tensor shared = ones({2}) * 3;
  Part a = child("a", Part(shared)), b = child("b", Part(shared));
  Tensor forward(const Tensor& x) { return a(x) + b(x); }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_traced_module_parameter_sharing_error) {
  for (bool is_buffer : {false, true})
    EXPECT_USER_ERROR(trace(Twice(is_buffer), ones({2})),
                      "TracedModules don't support parameter sharing between modules");
  SharedBetweenParts parts;
  TracedModule traced = trace(parts, ones({2}));
  expect_equal(traced(ones({2})), full({2}, 6.0));
  EXPECT_TRUE(traced.find("a.weight").to_tensor().is_same(traced.find("b.weight").to_tensor()));
}

}  // namespace
}  // namespace weft
