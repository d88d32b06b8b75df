// User operators that write have a functional form made for them: one node that gives the new values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/func/functionalize.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/io/graph_file.h"
#include "weft/ops/define.h"
#include "weft/ops/fake.h"
#include "weft/ops/operator_value.h"
#include "weft/passes/shape_prop.h"
#include "weft/passes/verify.h"

namespace weft {
namespace {

using testing::close;
using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ramp;
using testing::values;
using testing::vec;

TensorSpec spec_like(const Tensor& t) { return contiguous_spec(t.sizes(), t.dtype(), t.device()); }

// Writes to two of its arguments and gives a third tensor.
const Operator& mix_operator() {
  static const Operator& op = define_operator(
      "auto_test::mix(Tensor(a!) x, Tensor[] y, Tensor(b!) z, SymInt w, Tensor n) -> Tensor",
      {.kernel =
           [](const Tensor& x, TensorSpan y, const Tensor& z, const SymInt& w, const Tensor& n) {
             x.add_(y[0] + w.plain());
             z.add_(y[1] + n);
             return n + 1;
           },
       .meta = [](const Tensor&, TensorSpan, const Tensor&, const SymInt&,
                  const Tensor& n) { return spec_like(n); }});
  return op;
}

// Writes to a list, and to one more where there is one; gives nothing.
const Operator& scale_operator() {
  static const Operator& op =
      define_operator("auto_test::scale(Tensor(a!)[] xs, Tensor(b!)? y, float by=2.0) -> ()",
                      {.kernel =
                           [](TensorSpan xs, const Tensor& y, double by) {
                             for (const Tensor& x : xs) x.mul_(by);
                             if (y.defined()) y.add_(1);
                           },
                       .meta = [](TensorSpan, const Tensor&, double) {}});
  return op;
}

// Gives two tensors.
const Operator& both_operator() {
  static const Operator& op = define_operator(
      "auto_test::both(Tensor(a!) x, Tensor n) -> (Tensor, Tensor)",
      {.kernel =
           [](const Tensor& x, const Tensor& n) {
             x.add_(n);
             return std::tuple<Tensor, Tensor>(n + 1, n + 2);
           },
       .meta = [](const Tensor&, const Tensor& n) { return std::tuple(spec_like(n), spec_like(n)); }});
  return op;
}

func::Tensors mixture(const func::Tensors& t) {
  Tensor r = call(mix_operator(), {t[0], Value::list({t[1], t[1]}), t[2], 2, t[3]}).to_tensor();
  call(scale_operator(), {Value::list({t[0], t[2]}), Value(), 2.0});
  call(scale_operator(), {Value::list({t[0]}), t[2].select(0, 0), 3.0});
  Value both = call(both_operator(), {t[0].select(0, 0), t[3].select(0, 1)});
  return {r + t[0] + both.elements()[0].to_tensor(), both.elements()[1].to_tensor()};
}

func::Tensors four() { return {ramp({3, 3}), ramp({3, 3}) * 2, ramp({3, 3}) - 1, ramp({3, 3}) + 5}; }

ValueList as_values(const func::Tensors& tensors) { return ValueList(tensors.begin(), tensors.end()); }

GraphModule captured_mixture(CaptureMode mode) {
  auto f = [](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    return func::functionalize([](const func::Tensors& t) { return mixture(t); })(func::Tensors{a, b, c, d});
  };
  auto g = [f](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
    func::Tensors results = f(a, b, c, d);
    return std::tuple(results[0], results[1]);
  };
  func::Tensors t = four();
  return make_graph(g, {.mode = mode})(t[0], t[1], t[2], t[3]);
}

constexpr const char* kMixtureCode = R"(


def forward(self, arg0_1, arg1_1, arg2_1, arg3_1):
    auto_functionalized = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.auto_test.mix.default, x = arg0_1, y = [arg1_1, arg1_1], z = arg2_1, w = 2, n = arg3_1);  arg1_1 = None
    getitem = auto_functionalized[0]
    getitem_1 = auto_functionalized[1]
    getitem_2 = auto_functionalized[2];  auto_functionalized = None
    auto_functionalized_1 = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.auto_test.scale.default, xs = [getitem_1, getitem_2], y = None, by = 2.0);  getitem_1 = getitem_2 = None
    getitem_4 = auto_functionalized_1[1];  auto_functionalized_1 = None
    getitem_5 = getitem_4[0]
    getitem_6 = getitem_4[1];  getitem_4 = None
    select = torch.ops.aten.select.int(getitem_6, 0, 0)
    auto_functionalized_2 = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.auto_test.scale.default, xs = [getitem_5], y = select, by = 3.0);  getitem_5 = select = None
    getitem_9 = auto_functionalized_2[1]
    getitem_10 = getitem_9[0];  getitem_9 = None
    getitem_11 = auto_functionalized_2[2];  auto_functionalized_2 = None
    select_scatter = torch.ops.aten.select_scatter.default(getitem_6, getitem_11, 0, 0);  getitem_6 = getitem_11 = None
    select_2 = torch.ops.aten.select.int(getitem_10, 0, 0)
    select_3 = torch.ops.aten.select.int(arg3_1, 0, 1);  arg3_1 = None
    auto_functionalized_3 = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.auto_test.both.default, x = select_2, n = select_3);  select_2 = select_3 = None
    getitem_12 = auto_functionalized_3[0]
    getitem_13 = auto_functionalized_3[1]
    getitem_14 = auto_functionalized_3[2];  auto_functionalized_3 = None
    select_scatter_1 = torch.ops.aten.select_scatter.default(getitem_10, getitem_14, 0, 0);  getitem_10 = getitem_14 = None
    add = torch.ops.aten.add.Tensor(getitem, select_scatter_1);  getitem = None
    add_1 = torch.ops.aten.add.Tensor(add, getitem_12);  add = getitem_12 = None
    copy_ = torch.ops.aten.copy_.default(arg0_1, select_scatter_1);  arg0_1 = select_scatter_1 = copy_ = None
    copy__1 = torch.ops.aten.copy_.default(arg2_1, select_scatter);  arg2_1 = select_scatter = copy__1 = None
    return (add_1, getitem_13)
    )";

TEST(AutoFunctionalized, IsOneNodeForEachCall) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = captured_mixture(mode);
    verify(g, Stage::kFunctional);
    EXPECT_EQ(g.graph().code(), kMixtureCode);
  }
}

TEST(AutoFunctionalized, RunsAsTheProgramDoes) {
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
    GraphModule g = captured_mixture(mode);
    verify(g, Stage::kFunctional);
    func::Tensors eager = four(), given = four();
    func::Tensors expected = mixture(eager);
    Value got = g.call(as_values(given));
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(close(got.elements()[i].to_tensor(), expected[i]));
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(close(given[i], eager[i])) << i;
  }
}

TEST(AutoFunctionalized, TextAndFilesReadBack) {
  GraphModule g = captured_mixture(CaptureMode::kFake);
  EXPECT_EQ(parse_code(g.graph().code()).code(), g.graph().code());
  EXPECT_EQ(quoted_text(parse_graph(quoted_text(g.graph()))), quoted_text(g.graph()));
  GraphModule read = parse_graph_module(graph_module_bytes(g));
  func::Tensors eager = four(), given = four();
  func::Tensors expected = mixture(eager);
  EXPECT_TRUE(close(read.call(as_values(given)).elements()[0].to_tensor(), expected[0]));
  EXPECT_TRUE(close(given[0], eager[0]));
  EXPECT_ERROR(
      GraphModule(
          parse_code("def forward(self, x):\n    y = torch.ops.higher_order.auto_functionalized("
                     "torch.ops.auto_test.scale.default, xs = [x], y = None, many = 3)\n    return y\n"))
          .call({ramp({2})}),
      "it has no argument 'many'");
}

TEST(AutoFunctionalized, ShapesPropagate) {
  GraphModule g = captured_mixture(CaptureMode::kFake);
  ShapeProp(g, ShapeEnv::create()).propagate(as_values(four()));
  EXPECT_EQ(describe(g.graph().find("getitem_1")->meta_or_null()->value.tensor_ref()).str(), "f64[s0, s0]");
}

TEST(AutoFunctionalized, DeadCallsGoAndEffectsStay) {
  int64_t runs = 0;
  const Operator& noisy =
      define_operator("auto_test::noisy(Tensor(a!) x) -> ()", {.kernel =
                                                                   [&](const Tensor& x) {
                                                                     ++runs;
                                                                     x.add_(1);
                                                                   },
                                                               .meta = [](const Tensor&) {},
                                                               .traits = Traits::kEffectful});
  auto quiet = [](const Tensor& x) {
    call(scale_operator(), {Value::list({x.clone()}), Value(), 2.0});
    return x * 2;
  };
  auto loud = [&](const Tensor& x) {
    call(noisy, {x.clone()});
    return x * 2;
  };
  EXPECT_THAT(make_graph(func::functionalize(quiet))(ramp({2})).code(),
              Not(HasSubstr("auto_functionalized")));
  GraphModule g = make_graph(func::functionalize(loud), {.mode = CaptureMode::kFake})(ramp({2}));
  EXPECT_THAT(
      g.code(),
      HasSubstr("torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.auto_test.noisy.default, x = "));
  runs = 0;
  g(ramp({2}));
  EXPECT_EQ(runs, 1);
}

TEST(AutoFunctionalized, ResultsThatAreArgumentsStaySo) {
  const Operator& bump = define_operator("auto_test::bump_(Tensor(a!) x, float by) -> Tensor(a!)",
                                         {.kernel = [](const Tensor& x, double by) { return x.add_(by); },
                                          .meta = [](const Tensor& x, double) { return spec_like(x); }});
  auto f = [&](const Tensor& x) {
    Tensor y = x * 2;
    Tensor same = call(bump, {y, 1.0}).to_tensor();
    EXPECT_TRUE(same.is_same(y));
    same.mul_(3);
    return y;
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(func::functionalize(f), {.mode = mode})(ramp({3}));
    verify(g, Stage::kFunctional);
    EXPECT_TRUE(close(g(ramp({3})), f(ramp({3}))));
  }
}

TEST(AutoFunctionalized, TheSameTensorTwiceStaysTheSame) {
  const Operator& add_to = define_operator("auto_test::add_to(Tensor(a!) x, Tensor by) -> ()",
                                           {.kernel =
                                                [](const Tensor& x, const Tensor& by) {
                                                  x.add_(1);
                                                  x.add_(by);
                                                },
                                            .meta = [](const Tensor&, const Tensor&) {}});
  auto f = [&](const Tensor& x) {
    Tensor y = x * 1;
    call(add_to, {y, y});
    return y;
  };
  GraphModule g = make_graph(func::functionalize(f))(vec({1, 2}));
  EXPECT_EQ(values(g(vec({1, 2}))), values(f(vec({1, 2}))));
  auto overlapping = [&](const Tensor& x) {
    Tensor y = x * 1;
    call(add_to, {y, y.select(0, 0)});
    return y;
  };
  EXPECT_ERROR(func::functionalize(overlapping)(vec({1, 2})),
               "auto_test::add_to writes to f64[2], which shares elements with f64[]");
}

TEST(AutoFunctionalized, DisjointViewsAreWrittenOneByOne) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 1;
    call(scale_operator(), {Value::list({y.select(1, 0), y.select(1, 2)}), y.select(1, 1), 10.0});
    return y;
  };
  for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake}) {
    GraphModule g = make_graph(func::functionalize(f), {.mode = mode})(ramp({2, 3}));
    EXPECT_TRUE(close(g(ramp({2, 3})), f(ramp({2, 3}))));
  }
  auto rows = [](const Tensor& x) {
    Tensor y = x * 1;
    call(scale_operator(), {Value::list({y.select(0, 0), y.select(0, 1)}), Value(), 10.0});
    return y;
  };
  GraphModule g = make_graph(func::functionalize(rows), {.mode = CaptureMode::kSymbolic})(ramp({2, 3}));
  EXPECT_TRUE(close(g(ramp({4, 5})), rows(ramp({4, 5}))));
}

TEST(AutoFunctionalized, UnderTransforms) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    call(scale_operator(), {Value::list({y}), Value(), 3.0});
    return y;
  };
  Tensor x = ramp({4, 3});
  EXPECT_TRUE(close(func::vmap(f)(x), f(x)));
  EXPECT_TRUE(close(func::vmap(func::functionalize(f))(x), f(x)));
  EXPECT_TRUE(close(func::functionalize(func::vmap(f))(x), f(x)));
  // A tensor that is the same for all is written to with what differs.
  auto shared = [](const Tensor& n) {
    Tensor sum = zeros({3}, kFloat64);
    call(both_operator(), {sum, n});
    return sum;
  };
  EXPECT_ERROR(func::vmap(shared)(x), "Use the out-of-place operator instead");
  EXPECT_TRUE(close(func::vmap(func::functionalize(shared))(x), x));
}

TEST(AutoFunctionalized, WrittenTensorsWithGradientsNeedADerivative) {
  Tensor x = vec({1, 2}).set_requires_grad(), y = x * 1;
  const std::string words = "auto_test::scale: it writes to f64[2], for which it has no derivative";
  EXPECT_ERROR(call(scale_operator(), {Value::list({y}), Value(), 2.0}), words);
  {
    NoGrad no_grad;
    call(scale_operator(), {Value::list({y}), Value(), 2.0});
  }
  EXPECT_EQ(values(y), (std::vector<double>{2, 4}));
  // Others may have one: what is given then says that it has no derivative when somebody asks.
  Tensor z = vec({0, 0});
  Tensor first = call(both_operator(), {z, x}).elements()[0].to_tensor();
  EXPECT_ERROR(first.sum().backward(), "derivative for auto_test::both is not implemented");
}

// With a gradient the operator's own rule is asked, as without functionalize.
TEST(AutoFunctionalized, GradientsAreThoseOfTheOperator) {
  const Operator& tripled =
      define_operator("auto_test::tripled(Tensor x, Tensor(b!) calls) -> Tensor",
                      {.kernel =
                           [](const Tensor& x, const Tensor& calls) {
                             calls.add_(1);
                             return x * 3;
                           },
                       .meta = [](const Tensor& x, const Tensor&) { return spec_like(x); },
                       .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad() * 3, Tensor()}; }}});
  auto f = [&](const Tensor& x, const Tensor& calls) { return call(tripled, {x, calls}).to_tensor(); };
  for (auto position : {func::FunctionalPosition::kUpper, func::FunctionalPosition::kLower}) {
    Tensor leaf = vec({1, 2}).set_requires_grad(), calls = zeros({}, kFloat64);
    Tensor count = func::to_functional(calls, position);
    Tensor input = position == func::FunctionalPosition::kUpper ? leaf : leaf.detach();
    Tensor x = func::to_functional(input, position);
    if (position == func::FunctionalPosition::kLower) x.set_requires_grad();
    Tensor y = f(x, count);
    EXPECT_EQ(values(func::from_functional(count)), (std::vector<double>{1}));
    EXPECT_EQ(values(calls), (std::vector<double>{0}));
    if (position == func::FunctionalPosition::kUpper) {
      func::from_functional(y).sum().backward();
      EXPECT_EQ(values(leaf.grad()), (std::vector<double>{3, 3}));
    } else {
      y.sum().backward();
      EXPECT_EQ(values(func::from_functional(x.grad())), (std::vector<double>{3, 3}));
    }
  }
}

TEST(AutoFunctionalized, RefusesWhatItCannotBe) {
  Value add = operator_value(operator_named("aten::add.Tensor")), x = ramp({2});
  EXPECT_ERROR(call("higher_order::auto_functionalized", {add, Value::list({x, x, 1})}),
               "aten::add.Tensor writes to nothing");
  EXPECT_ERROR(call("higher_order::auto_functionalized", {Value(3), Value::list({x})}),
               "its first argument must be an operator, but is an integer");
  Value resize = operator_value(operator_named("aten::resize_"));
  EXPECT_ERROR(
      call("higher_order::auto_functionalized", {resize, Value::list({x, Value::list({2}), Value()})}),
      "changes which memory its argument looks at");
}

}  // namespace
}  // namespace weft
