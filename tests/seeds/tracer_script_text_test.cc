// Ports of TestTracer: what the text and code of traces say in TorchScript's form.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "seeds/support/file_check.h"
#include "weft/autograd/function.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using autograd::FunctionContext;
using testing::args;
using testing::expect_values;
using testing::FileCheck;

std::string text_of(const TracedModule& traced, bool inline_calls = true) {
  return script_text(traced.method("forward").graph_module(),
                     {.inline_calls = inline_calls, .self_type = "__torch__." + traced.original_name()});
}

TEST(TestTracer, test_trace_tuple) {
  auto fn = [](const Tensor& x, const std::tuple<Tensor, Tensor>& y) {
    return std::tuple(x, std::tuple(x * std::get<1>(y), x * std::get<0>(y)));
  };
  Tensor x = randn({2, 2}), first = ones({2, 2}), second = randn({2, 2});
  Value inputs = args({x, Value::tuple({first, second})});
  TracedFunction traced = trace(fn, inputs);
  Value wanted = Value::tuple({x, Value::tuple({x * second, x * first})});
  expect_values(traced.call(inputs.elements()), wanted);
  FileCheck()
      .check_count("prim::TupleConstruct", 2, true)
      .check_next("return")
      .run(script_text(traced.graph_module()));
  expect_values(testing::saved_and_loaded(traced.graph_module()).call(inputs.elements()), wanted);
}

struct Foo : autograd::Function<Foo> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext&, const Tensor& x, const Tensor& y) {
    return {y, x};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[1], grads[0]};
  }
};
struct Bar : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    return Foo::apply(relu(x), relu(y));
  }
  WEFT_ARGS(x, y)
};

TEST(TestTracer, test_trace_multi_output_function) {
  Tensor x = rand({3, 2}, kFloat64), y = rand({1, 2}, kFloat64);
  TracedModule traced = trace(Bar(), args({x, y}));
  FileCheck()
      .check(
          "(Double(1, 2, strides=[2, 1], requires_grad=0, device=cpu), "
          "Double(3, 2, strides=[2, 1], requires_grad=0, device=cpu)) = ^Foo")
      .run(text_of(traced));
  expect_values(traced.call({x, y}), Value::tuple({y, x}));
}

struct ToHalf : nn::Module {
  Tensor forward(const Tensor& x) { return x.to(kFloat16); }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_type_same_device) {
  for (Device device : {kCpu, Device("sim")}) {
    Tensor x = to(ones({1}), std::nullopt, std::nullopt, device);
    TracedModule traced = trace(ToHalf(), args({x}));
    FileCheck().check_not("device").run(
        script_code(traced.method("forward").graph_module(), {.self_type = "__torch__.ToHalf"}));
    EXPECT_EQ(traced(x).device(), device);
    EXPECT_EQ(traced(x).dtype(), kFloat16);
  }
}

struct Normalize : nn::Module {
  nn::GroupNorm norm = child("norm", nn::GroupNorm(32, 32));
  Tensor forward(const Tensor& x, const std::optional<Tensor>& y) { return (y ? norm(*y) : x) * 2; }
  WEFT_ARGS(x, y)
};
struct G : nn::Module {
  Normalize norm = child("norm", Normalize());
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    Tensor a = norm(x, std::optional<Tensor>());
    return {a, relu(a)};
  }
  WEFT_ARGS(x)
};
struct LiftedNet : nn::Module {
  G g = child("g", G());
  Normalize norm_1 = child("norm_1", Normalize());
  Tensor forward(const Tensor& x) {
    auto [a, b] = g(x);
    return norm_1(b, std::optional(a));
  }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_trace_no_duplicated_lifted_input_output) {
  LiftedNet net;
  net.eval();
  Tensor x = randn({1, 32, 16, 16});
  TracedModule traced = trace(net, x);
  FileCheck().check_not("prim::TupleUnpack").run(text_of(traced, false));
  expect_values(traced.call({x}), net(x), 1e-6);
}

}  // namespace
}  // namespace weft
