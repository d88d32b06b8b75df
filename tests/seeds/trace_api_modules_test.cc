// Ports of TraceApi: methods, state and hierarchy of traced modules.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/spatial.h"
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

struct Dropping : nn::Module {
  nn::Dropout drop = child("drop", nn::Dropout(0.5));
  Tensor forward(const Tensor& x) { return drop(x); }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_freezes_train_eval_mode) {
  Tensor x = ones({200});
  Dropping net;
  net.eval();
  TracedModule in_eval = trace(net, ones({3}));
  in_eval.train();
  EXPECT_TRUE(in_eval.is_training());
  expect_equal(in_eval(x), x);
  net.train();
  TracedModule in_training = trace(net, ones({3}), {.check_trace = false});
  in_training.eval();
  EXPECT_FALSE(in_training.is_training());
  std::vector<double> dropped = testing::values(in_training(x));
  EXPECT_GT(std::count(dropped.begin(), dropped.end(), 0.0), 50);
  EXPECT_GT(std::count(dropped.begin(), dropped.end(), 2.0), 50);
}

// --- methods ---------------------------------------------------------------------------------------------

struct Methods : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return fc(x); }
  Tensor weighted(const Tensor& weight) { return fc.weight * weight; }
  Tensor forward_again(const Tensor& left, const Tensor& right) { return forward(left) + right; }
  WEFT_ARGS(x)
};

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node* node : graph.placeholders()) names.push_back(node->name());
  return names;
}

TEST(TraceApi, test_api_trace_module_forward_uses_hooks_and_names) {
  Methods net;
  net.register_forward_pre_hook([](std::vector<Tensor>& inputs) { inputs[0] = inputs[0] * 10; });
  net.register_forward_hook([](const std::vector<Tensor>&, Tensor& output) { output = output + 100; });
  TracedModule traced = trace_module(
      net,
      {method(net, &Methods::forward, "forward"), method(net, &Methods::weighted, "weighted", "weight"),
       method(net, &Methods::forward_again, "forward_again", "left, right")},
      Dict{{"forward", randn({2, 4})},
           {"weighted", randn({4, 4})},
           {"forward_again", args({randn({2, 4}), randn({4})})}});
  EXPECT_THAT(traced.method_names(), ElementsAre("forward", "weighted", "forward_again"));
  EXPECT_THAT(input_names(traced.graph()), ElementsAre("x"));
  EXPECT_THAT(input_names(traced.method("weighted").graph()), ElementsAre("weight"));
  EXPECT_THAT(input_names(traced.method("forward_again").graph()), ElementsAre("left", "right"));
  Tensor x = randn({3, 4}), y = randn({4});
  expect_equal(traced(x), net.fc(x * 10) + 100);
  expect_equal(traced.method("weighted")(ones({4, 4})), net.fc.weight);
  expect_equal(traced.method("forward_again")(x, y), net.fc(x) + y);
}

struct SecondDiffers : nn::Module {
  std::shared_ptr<std::vector<std::string>> calls = std::make_shared<std::vector<std::string>>();
  bool differs = false;
  Tensor forward(const Tensor& x) {
    calls->push_back(fmt::format("forward {}", *x.size(0).hint()));
    return x * 2;
  }
  Tensor second(const Tensor& x) {
    calls->push_back(fmt::format("second {}", *x.size(0).hint()));
    return differs && !is_tracing() ? x * 4 : x * 3;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_module_checks_every_method) {
  SecondDiffers net;
  auto trace_both = [&](std::vector<Value> check_inputs) {
    net.calls->clear();
    return warnings_of([&] {
      trace_module(
          net,
          {method(net, &SecondDiffers::forward, "forward"), method(net, &SecondDiffers::second, "second")},
          Dict{{"forward", ones({1})}, {"second", ones({2})}}, {.check_inputs = std::move(check_inputs)});
    });
  };
  EXPECT_THAT(trace_both({}), IsEmpty());
  EXPECT_THAT(*net.calls,
              ElementsAre("forward 1", "forward 1", "forward 1", "second 2", "second 2", "second 2"));
  EXPECT_THAT(trace_both({Dict{{"forward", ones({3})}, {"second", ones({4})}},
                          Dict{{"forward", args({ones({5})})}, {"second", args({ones({6})})}}}),
              IsEmpty());
  EXPECT_THAT(*net.calls, ElementsAre("forward 1", "forward 3", "forward 3", "forward 5", "forward 5",
                                      "second 2", "second 4", "second 4", "second 6", "second 6"));
  net.differs = true;
  EXPECT_THAT(trace_both({}), ElementsAre(HasSubstr("Output nr 1. of the traced function does not match")));
  // Of one method the inputs are given as they are.
  net.calls->clear();
  trace(net, ones({1}), {.check_inputs = {ones({7}), args({ones({8})})}});
  EXPECT_THAT(*net.calls, ElementsAre("forward 1", "forward 7", "forward 7", "forward 8", "forward 8"));
  net.calls->clear();
  trace(net, ones({1}));
  EXPECT_THAT(*net.calls, ElementsAre("forward 1", "forward 1", "forward 1"));
}

// --- hierarchy -------------------------------------------------------------------------------------------

struct Inner : nn::Module {
  nn::Linear grandchild = child("grandchild", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return grandchild(x).neg(); }
  WEFT_ARGS(x)
};
struct Outer : nn::Module {
  Inner inner = child("child", Inner());
  bool fails = false;
  Tensor forward(const Tensor& x) {
    Tensor y = inner(x).sin();
    require(!fails, "trouble");
    return y;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_trace_module_scopes) {
  Outer net;
  auto scopes = [&](const TracedModule& traced) {
    std::map<std::string, std::string> innermost;
    for (const Node& node : traced.graph())
      if (node.kind() == NodeKind::kCallFunction)
        innermost[node.name()] = node.meta_or_null()->modules.back().path;
    return innermost;
  };
  std::map<std::string, std::string> wanted = {
      {"linear", "__module.child.grandchild"}, {"neg", "__module.child"}, {"sin", "__module"}};
  EXPECT_EQ(scopes(trace(net, randn({2, 4}))), wanted);
  EXPECT_EQ(nn::ModuleObserver::current(), nullptr);
  // Someone who watched before watches again, after success and after an error.
  struct Watcher : nn::ModuleObserver {
    Value handle(const nn::ModuleCall& call) override { return call.run(call.args); }
  } watcher;
  nn::ModuleObserver::Scope scope(&watcher);
  EXPECT_EQ(scopes(trace(net, randn({2, 4}))), wanted);
  EXPECT_EQ(nn::ModuleObserver::current(), &watcher);
  net.fails = true;
  EXPECT_ERROR(trace(net, randn({2, 4})), "trouble");
  EXPECT_EQ(nn::ModuleObserver::current(), &watcher);
  net.fails = false;
  EXPECT_EQ(scopes(trace(net, randn({2, 4}))), wanted);
}

// --- state -----------------------------------------------------------------------------------------------

struct Handle final : ValueObject {
  std::string type_name() const override { return "Handle"; }
};

struct Stateful : nn::Module {
  nn::Linear fc = child("fc", nn::Linear(4, 3));
  Tensor offset = buffer("offset", ones({3}));
  Tensor none = buffer("none", Tensor());
  Tensor no_parameter = parameter("no_parameter", Tensor());
  Stateful() {
    attribute("number", 5);
    attribute("text", "words");
    attribute("handle", Value(Ref<ValueObject>(make_ref<Handle>())));
  }
  Tensor forward(const Tensor& x) { return fc(x) + offset; }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_traced_module_copies_only_state) {
  Stateful net;
  net.eval();
  TracedModule traced = trace(net, randn({2, 4}));
  EXPECT_FALSE(traced.is_training());
  for (const char* path : {"fc.weight", "fc.bias", "offset"})
    EXPECT_TRUE(traced.find(path).to_tensor().is_same(net.find(path).to_tensor())) << path;
  EXPECT_TRUE(traced.has("fc"));
  EXPECT_TRUE(traced.has("handle"));
  EXPECT_EQ(traced.find("handle"), net.find("handle"));
  for (const char* path : {"none", "no_parameter", "number", "text"}) {
    EXPECT_FALSE(traced.has(path)) << path;
    EXPECT_ERROR(traced.find(path), "'" + std::string(path) + "'");
  }
  net.train();
  EXPECT_TRUE(trace(net, randn({2, 4})).is_training());
}

struct Shares : nn::Module {
  nn::Linear a = child("a", nn::Linear(2, 2)), b = child("b", nn::Linear(2, 2));
  Shares() {
    b.state()->parameters[0].second = a.weight;
    buffer("twice", a.bias);
  }
};

TEST(TraceApi, test_api_unique_state_dict) {
  Shares net;
  nn::NamedTensors kept = unique_state_dict(net, true), detached = unique_state_dict(net);
  auto names = [](const nn::NamedTensors& tensors) {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : tensors) all.push_back(name);
    return all;
  };
  EXPECT_THAT(names(net.state_dict()), ElementsAre("twice", "a.weight", "a.bias", "b.weight", "b.bias"));
  EXPECT_THAT(names(kept), ElementsAre("twice", "a.weight", "b.bias"));
  EXPECT_EQ(names(detached), names(kept));
  EXPECT_TRUE(kept[1].second.is_same(net.a.weight));
  EXPECT_TRUE(kept[1].second.requires_grad());
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_FALSE(detached[i].second.is_same(kept[i].second));
    EXPECT_FALSE(detached[i].second.requires_grad());
    EXPECT_EQ(detached[i].second.storage()->data(), kept[i].second.storage()->data());
  }
}

// --- warnings --------------------------------------------------------------------------------------------

struct Convolutional : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 2, 3));
  nn::BatchNorm2d norm = child("norm", nn::BatchNorm2d(2));
  bool converts = false;
  Tensor forward(const Tensor& x) {
    Tensor y = norm(conv(x));
    if (converts && is_true(y.sum().gt(1e9))) return y * 2;
    return y;
  }
  WEFT_ARGS(x)
};

TEST(TraceApi, test_api_tracer_warning_library_filter) {
  Convolutional net;
  Tensor x = randn({2, 1, 5, 5});
  EXPECT_THAT(warnings_of([&] { trace(net, x, {.check_trace = false}); }), IsEmpty());
  net.converts = true;
  std::vector<Warning> warnings;
  {
    WarningCapture capture;
    trace(net, x, {.check_trace = false});
    warnings = capture.take();
  }
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].kind, WarningKind::kTracer);
  EXPECT_THAT(warnings[0].message, HasSubstr("Converting a tensor to a C++ boolean"));
  EXPECT_THAT(warnings[0].where.file, ::testing::EndsWith("trace_api_modules_test.cc"));
  // What the library does on purpose is not shown; a handler of one's own sees the rest.
  auto convert = [](const Tensor& t) { return is_true(t.sum().gt(1e9)) ? t * 2 : t; };
  auto quietly = [&](const Tensor& t) {
    LibraryWarningsOff off;
    return convert(t);
  };
  EXPECT_THAT(warnings_of([&] { trace(quietly, x, {.check_trace = false}); }), IsEmpty());
  std::vector<std::string> seen;
  WarningHandler before =
      set_warning_handler([&](const Warning& warning) { seen.push_back(warning.message); });
  trace(convert, x, {.check_trace = false});
  trace(quietly, x, {.check_trace = false});
  set_warning_handler(before);
  EXPECT_THAT(seen, ElementsAre(HasSubstr("Converting a tensor to a C++ boolean")));
}

}  // namespace
}  // namespace weft
