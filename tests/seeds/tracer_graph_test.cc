// Ports of TestTracer: programs as one graph over their inputs and state.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "seeds/support/file_check.h"
#include "support/expect_error.h"
#include "weft/autograd/function.h"
#include "weft/capture/trace_graph.h"
#include "weft/graph/script_view.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using autograd::FunctionContext;
using testing::args;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using testing::FileCheck;
using testing::operators_in;

// Saved and loaded, a graph does on copies of the inputs what it does here.
void expect_same_after_loading(const TraceGraph& traced, const Value& inputs) {
  GraphModule loaded = testing::saved_and_loaded(traced.module);
  Value here = traced.module.call(clone_inputs(inputs).elements());
  expect_values(loaded.call(clone_inputs(inputs).elements()), here);
}

TEST(TestTracer, test_inplace_transplant) {
  Tensor x = from_data<float>({0}).set_requires_grad();
  auto fn = [](const Tensor& given) {
    Tensor y = given.clone();
    y.add_(2);
    y.add_(3);
    return y;
  };
  TraceGraph g = get_trace_graph(fn, args({x}));
  g.graph().eliminate_dead_code();
  FileCheck()
      .check_count("aten::clone", 1, true)
      .check_count("aten::add_", 2, true)
      .check_next("return")
      .run(script_text(g.module));
  expect_same_after_loading(g, args({x}));
  expect_values(g.module.call({x}), full({1}, 5.0));
}

struct InplaceFn : autograd::Function<InplaceFn> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.mark_dirty({x});
    return x.add_(1);
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return grads; }
};
struct RegularFn : autograd::Function<RegularFn> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x.add(1); }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) { return grads; }
};

TEST(TestTracer, test_inplace_flags) {
  auto fn = [](const Tensor& x) {
    Tensor y = RegularFn::apply(x);
    y = InplaceFn::apply(y);
    y = InplaceFn::apply(y);
    return RegularFn::apply(y);
  };
  Tensor x = from_data<float>({0}).set_requires_grad();
  TraceGraph traced = get_trace_graph(fn, args({x}), {.force_outplace = true});
  traced.graph().eliminate_dead_code();
  std::vector<std::string> names;
  std::vector<int64_t> flags;
  for (const Node& node : traced.graph()) {
    if (node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kOutput) continue;
    Callable* function = callable_in(node.args().at(0));
    ASSERT_NE(function, nullptr);
    names.push_back(function->type_name());
    flags.push_back(node.meta_or_null()->extra.at("inplace").to_int());
  }
  EXPECT_THAT(names, ElementsAre("^RegularFn", "^InplaceFn", "^InplaceFn", "^RegularFn"));
  EXPECT_THAT(flags, ElementsAre(0, 1, 1, 0));
}

TEST(TestTracer, test_conv) {
  nn::Conv2d conv(16, 13, 3, {.bias = false});
  Tensor x = ones({20, 16, 50, 40});
  TraceGraph g = get_trace_graph(conv, x, {.return_inputs = true});
  ASSERT_EQ(g.inputs.size(), 2u);
  EXPECT_EQ(g.graph().placeholders().size(), 2u);
  expect_equal(g.inputs[1].to_tensor(), conv.weight);
  expect_values(g.module.call(g.inputs), g.out);
}

TEST(TestTracer, test_nested_inplace) {
  Tensor x = randn({2, 2});
  TraceGraph g = get_trace_graph([](const Tensor& t) { return threshold_(t, 0, 0); }, args({x}),
                                 {.return_inputs = true});
  expect_values(g.module.call(g.inputs), g.out);
  FileCheck().check("threshold_").run(g.graph().to_string());
  expect_same_after_loading(g, args({randn({2, 2})}));
}

TraceGraph copies_into_zeros(bool force_outplace) {
  auto f = [](const Tensor& x) {
    Tensor out = zeros(x.sizes());
    out.copy_(x);
    return out;
  };
  Tensor x = randn({4, 4}).set_requires_grad();
  TraceGraph g = get_trace_graph(f, args({x}), {.force_outplace = force_outplace, .return_inputs = true});
  g.graph().eliminate_dead_code();
  expect_values(g.module.call(g.inputs), g.out);
  expect_equal(g.out.to_tensor(), x);
  expect_same_after_loading(g, args({x}));
  return g;
}

TEST(TestTracer, test_inplace_copy) {
  EXPECT_THAT(operators_in(copies_into_zeros(false).graph()), Contains("copy_"));
}

TEST(TestTracer, test_inplace_copy_force_outplace) {
  FileCheck().check_not("copy_").check("expand_as").run(copies_into_zeros(true).graph().to_string());
}

struct SharedParameter : nn::Module {
  Tensor a = parameter("a", randn({2, 2}));
  Tensor b = parameter("b", a);
  Tensor forward(const Tensor& x) { return x * a + b; }
  WEFT_ARGS(x)
};

TEST(TestTracer, test_shared_param) {
  TraceGraph g = get_trace_graph(SharedParameter(), args({randn({2, 2})}), {.return_inputs = true});
  g.graph().eliminate_dead_code();
  EXPECT_EQ(g.graph().placeholders().size(), 2u);
  FileCheck().check("mul").check("add").run(g.graph().to_string());
  expect_values(g.module.call(g.inputs), g.out);
}

}  // namespace
}  // namespace weft
