// Ports of TestTracer: modules, their state, hooks and methods.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/nn/layers.h"
#include "weft/nn/module_text.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using testing::operators_in;
using testing::scalar;

// --- state
// ---------------------------------------------------------------------------------------------------

struct HasParameter : nn::Module {
  Tensor x = parameter("x", rand({3, 4}));
  Tensor forward(const Tensor& y) { return x + y; }
  WEFT_ARGS(y)
};

TEST(TestTracer, test_trace_aliased_parameter) {
  HasParameter m;
  TracedModule r = trace(m, m.x);
  Tensor t2 = rand({3, 4});
  expect_equal(r(t2), m.x + t2);
}

struct NoSubmodule : nn::Module {
  std::optional<nn::Linear> submod = child("submod", nn::Linear(3, 4));
  NoSubmodule() {
    submod.reset();
    remove_child("submod");
  }
  Tensor forward(const Tensor& inputs) { return inputs; }
  WEFT_ARGS(inputs)
};

TEST(TestTracer, test_trace_skip_none_submodule) {
  TracedModule traced = trace(NoSubmodule(), scalar(1));
  EXPECT_FALSE(traced.has("submod"));
  EXPECT_TRUE(traced.child_names().empty());
  EXPECT_TRUE(traced.state_dict().empty());
}

struct ConditionalProperty : nn::Module {
  std::optional<double> stored;
  double attr() const {
    require(stored.has_value(), "_attr was never set");
    return *stored;
  }
  Tensor forward(const Tensor& x) { return x; }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_trace_with_conditional_property) {
  ConditionalProperty net;
  EXPECT_ERROR(net.attr(), "_attr was never set");
  TracedModule traced = trace(net, ones({1}));
  expect_equal(traced(full({2}, 3.0)), full({2}, 3.0));
}

struct OneConvolution : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(3, 3, 3));
  Tensor forward(const Tensor& x) { return conv(x); }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_trace_save_load_copy) {
  Tensor x = rand({1, 3, 224, 224});
  TracedModule traced = trace(OneConvolution(), x);
  GraphModule loaded = parse_graph_module(graph_module_bytes(traced.method("forward").graph_module()));
  GraphModule handle = loaded, deep = loaded.deep_copy();
  Tensor wanted = traced(x);
  for (const GraphModule& copy : {loaded, handle, deep}) expect_equal(copy(x), wanted);
  Tensor weight = loaded.find("conv.weight").to_tensor();
  EXPECT_TRUE(handle.find("conv.weight").to_tensor().is_same(weight));
  EXPECT_NE(deep.find("conv.weight").to_tensor().storage()->data(), weight.storage()->data());
}

struct Sigmoid : nn::Module {
  Tensor forward(const Tensor& x) { return sigmoid(x); }
  WEFT_ARGS(x)
};
struct Layered : nn::Module {
  static nn::Sequential steps_of(int64_t features, int64_t layers) {
    nn::Sequential steps;
    for (int64_t i = 0; i < layers; ++i) {
      steps.push_back(nn::Linear(features, features));
      steps.push_back(Sigmoid());
    }
    return steps;
  }
  Layered(int64_t features, int64_t layers)
      : submodule(child("submodule", steps_of(features, layers))), count(layers) {}
  Tensor forward(Tensor x) {
    for (int64_t i = 0; i < count; ++i)
      x = callable_in(submodule.find(std::to_string(i)))->call(ValueList{x}).to_tensor() + x;
    return x;
  }
  WEFT_ARGS(x)
  nn::Sequential submodule;
  int64_t count;
};

TEST(TestTracer, test_traced_module_cuda) {
  const Device sim(DeviceType::kSim);
  Layered model(5, 3);
  Tensor x = randn({2, 5});
  TracedModule traced = trace(model, x);
  EXPECT_THAT(nn::module_text(model), HasSubstr("  (submodule): Sequential(\n    (0): Linear()\n"));
  EXPECT_THAT(traced.to_string(), HasSubstr("(0): Linear(original_name=Linear)"));

  EXPECT_ERROR(traced.find("submodule.0.in_features"), "in_features");
  Tensor weight = traced.find("submodule.0.weight").to_tensor();
  Tensor before = traced(x);
  Tensor fresh = randn({5, 5}).set_requires_grad();
  traced.set_attribute("submodule.0.weight", fresh);
  EXPECT_TRUE(traced.find("submodule.0.weight").to_tensor().is_same(fresh));
  EXPECT_FALSE(testing::close(traced(x), before));
  EXPECT_ERROR(traced.set_attribute("submodule.0.weight", Tensor()), "not removed");
  EXPECT_USER_ERROR(traced.delete_attribute("submodule.0.weight"),
                    "cannot delete methods or parameters of a script module");
  EXPECT_TRUE(traced.find("submodule.0.weight").to_tensor().is_same(fresh));
  EXPECT_ERROR(callable_in(traced.find("submodule.0"))->call(ValueList{x}),
               "Trace submodules cannot be called.");

  auto on = [&](Device device) { return to(x, std::nullopt, std::nullopt, device); };
  nn::Module first = nn::Module::over(traced.state()->children[0].state->children[0].state);
  EXPECT_EQ(first.parameters()[0].impl(), fresh.impl());
  first.to(sim);
  traced.to(kFloat32);
  for (int round = 0; round < 2; ++round) {
    traced.to(sim);
    Tensor there = traced(on(sim));
    EXPECT_EQ(there.device(), sim);
    traced.to(kCpu);
    expect_equal(traced(x), to(there, std::nullopt, std::nullopt, kCpu));
  }

  nn::NamedTensors state, all_ones;
  for (const auto& [name, tensor] : traced.state_dict()) {
    state.emplace_back(name, tensor.detach().clone());
    all_ones.emplace_back(name, ones_like(tensor));
  }
  Tensor out = traced(x);
  traced.load_state_dict(all_ones);
  Tensor out_ones = traced(x);
  traced.load_state_dict(state);
  expect_equal(traced(x), out);
  EXPECT_FALSE(testing::close(out_ones, out));
}

// --- children
// ------------------------------------------------------------------------------------------------

struct Activation : nn::Module {
  nn::ReLU relu = child("relu", nn::ReLU());
  Tensor forward(const Tensor& x) { return relu(x); }
  WEFT_ARGS(x)
};
struct InList : nn::Module {
  nn::ModuleList<Activation> list = child("list", [] {
    nn::ModuleList<Activation> two;
    two.push_back(Activation());
    two.push_back(Activation());
    return two;
  }());
  Tensor forward(Tensor x) {
    for (Activation& submodule : list) x = submodule(x);
    return x;
  }
  WEFT_ARGS(x)
};

TEST(TraceDropped, test_trace_modulelist) {
  TracedModule traced = trace(InList(), args({rand({3, 4})}));
  Tensor x = randn({2, 2});
  expect_equal(traced(x), relu(x));
  EXPECT_THAT(operators_in(traced.graph()), ElementsAre("relu", "relu"));
}

struct MySubmod : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return {relu(x), neg(x)}; }
  WEFT_ARGS(x)
};
struct MyFunctionalMod : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, MySubmod submod) { return submod(x); }
  WEFT_ARGS(x, submod)
};
struct Inverted : nn::Module {
  MySubmod sm = child("sm", MySubmod());
  MyFunctionalMod fm = child("fm", MyFunctionalMod());
  std::tuple<Tensor, Tensor> forward(const Tensor& x) { return fm(x, sm); }
  WEFT_ARGS(x)
};

TEST(TraceDropped, test_trace_invert_module_hierarchy) {
  TracedModule traced = trace(Inverted(), args({rand({3, 4})}));
  Tensor x = randn({2, 2});
  expect_values(traced.call({x}), Value::tuple({relu(x), neg(x)}));
}

struct DeprecatedArguments : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y, const Dict& deprecated_arguments = {}) {
    require(deprecated_arguments.empty(), "got unexpected arguments");
    return x + y;
  }
  WEFT_ARGS(x, y, **deprecated_arguments)
};

TEST(TestTracer, test_trace_checking_with_deprecated_name) {
  DeprecatedArguments model;
  TracedModule by_position = trace(model, args({ones({1}), ones({1})}));
  TracedModule by_name =
      trace(model, {}, {.strict = false, .example_kwarg_inputs = {{"x", ones({1})}, {"y", ones({1})}}});
  for (const TracedModule& traced : {by_position, by_name})
    expect_equal(traced(ones({2}), ones({2})), full({2}, 2.0));
}

// --- hooks
// ---------------------------------------------------------------------------------------------------

struct Doubles : nn::Module {
  Tensor forward(const Tensor& x) { return x + x; }
  WEFT_ARGS(x)
};

// Traces a module with one hook: what the trace calls, and that it does to its input what the module does.
void check_hook(Doubles net, const std::vector<std::string>& operators) {
  TracedModule traced = trace(net, args({scalar(1)}));
  EXPECT_EQ(operators_in(traced.method("forward").graph()), operators);
  Tensor eager_input = scalar(1), input = scalar(1);
  Tensor eager_output = net(eager_input), output = traced(input);
  expect_equal(input, eager_input);
  expect_equal(output, eager_output);
}

TEST(TestTracer, test_tracing_hooks) {
  using Inputs = std::vector<Tensor>;
  {
    Doubles net;
    net.register_forward_hook([](const Inputs& input, Tensor& output) {
      input[0].add_(1);
      output.sub_(1);
    });
    check_hook(net, {"add", "add_", "sub_"});
  }
  {
    Doubles net;
    net.register_forward_hook([](const Inputs& input, Tensor& output) {
      input[0].add_(1);
      output = output - 3;
    });
    check_hook(net, {"add", "add_", "sub"});
  }
  {
    Doubles net;
    net.register_forward_hook([b = scalar(3)](const Inputs&, Tensor& output) { output = output - b; });
    check_hook(net, {"add", "sub"});
  }
  {
    Doubles net;
    net.register_forward_pre_hook([](Inputs& input) { input[0].add_(3); });
    check_hook(net, {"add_", "add"});
  }
  {
    Doubles net;
    net.register_forward_pre_hook([](Inputs& input) { input[0] = input[0] - 4; });
    check_hook(net, {"sub", "add"});
  }
}

TEST(TestTracer, test_tracing_backward_hook_error) {
  Doubles net;
  net.register_backward_hook([](std::vector<Tensor>&, const std::vector<Tensor>&) {});
  EXPECT_ERROR(trace(net, args({scalar(1)})),
               "Modules that have backward hooks assigned can't be compiled: Doubles()");
}

// --- methods
// -------------------------------------------------------------------------------------------------

struct TwoMethods : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 1, 3));
  Tensor forward(const Tensor& x) { return conv(x); }
  Tensor weighted_kernel_sum(const Tensor& weight) { return weight * conv.weight; }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_tracing_multiple_methods) {
  TwoMethods n;
  BoundMethod forward = method(n, &TwoMethods::forward, "forward");
  BoundMethod kernel_sum = method(n, &TwoMethods::weighted_kernel_sum, "weighted_kernel_sum", "weight");
  auto some_inputs = [] {
    return Dict{{"forward", rand({1, 1, 3, 3})}, {"weighted_kernel_sum", rand({1, 1, 3, 3})}};
  };
  Dict inputs = some_inputs();
  trace_module(n, {forward, kernel_sum}, inputs);
  TracedModule traced = trace_module(n, {forward, kernel_sum}, inputs,
                                     {.check_trace = true, .check_inputs = {some_inputs(), some_inputs()}});
  EXPECT_THAT(traced.method_names(), ::testing::UnorderedElementsAre("forward", "weighted_kernel_sum"));
  Tensor x = rand({1, 1, 5, 5}), weight = rand({1, 1, 3, 3});
  expect_equal(traced(x), n(x));
  expect_values(traced.method("weighted_kernel_sum").call({weight}), n.weighted_kernel_sum(weight));

  Value example = inputs.at("forward");
  expect_equal(trace(forward, example)(x), n(x));
  expect_equal(trace(forward, example, {.check_trace = true, .check_inputs = {example}})(x), n(x));
  EXPECT_ERROR(trace(kernel_sum, inputs), "trace doesn't support compiling individual module's functions");
}

}  // namespace
}  // namespace weft
