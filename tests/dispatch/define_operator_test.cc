// Operators that users define at run time, in every layer.
#include "weft/ops/define.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/gradcheck.h"
#include "weft/dispatch/mode.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/func.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::close;
using ::testing::ElementsAre;
using testing::ramp;
using testing::values;
using testing::vec;

// x^3 * by, computed element by element; it counts its calls.
int kernel_calls = 0;
const Operator& cube() {
  static const Operator& op = define_operator(
      "mine::cube(Tensor x, float by=1.0) -> Tensor",
      {
          .kernel =
              [](const Tensor& x, double by) {
                ++kernel_calls;
                Tensor in = x.contiguous(), out = empty(in.sizes(), kFloat64);
                for (int64_t i = 0; i < in.plain_numel(); ++i) {
                  double v = in.data<double>()[i];
                  out.data<double>()[i] = v * v * v * by;
                }
                return out;
              },
          .meta = [](const Tensor& x, double) { return contiguous_spec(x.sizes(), x.dtype(), x.device()); },
          .vjp = {.saves = inputs(0),
                  .rule =
                      [](const Vjp& v) {
                        return Grads{v.grad() * 3 * v.input(0) * v.input(0) * v.arg<double>(1)};
                      }},
      });
  return op;
}
Tensor cube(const Tensor& x, double by = 1) { return call(cube(), {x, by}).to_tensor(); }

TEST(DefineOperator, IsCalledByHandleAndByName) {
  EXPECT_EQ(values(call(cube(), {vec({1, 2})}).to_tensor()), (std::vector<double>{1, 8}));
  EXPECT_EQ(values(call("mine::cube", {vec({2}), 10.0}).to_tensor()), (std::vector<double>{80}));
  EXPECT_EQ(find_operator("mine::cube"), &cube());
}

TEST(DefineOperator, WhoseResultIsNotWhatItsSchemaSaysIsTheAuthorsMistake) {
  const Operator& number = define_operator("mine::number_for_tensor(Tensor x) -> Tensor",
                                           {.kernel = [](const Tensor&) { return int64_t{3}; }});
  EXPECT_USER_ERROR(call(number, {vec({1})}),
                    "mine::number_for_tensor: its kernel gave an integer (3) for result 0, which its schema "
                    "calls Tensor");
  const Operator& few = define_operator("mine::one_of_two(Tensor x) -> (Tensor, Tensor)",
                                        {.kernel = [](const Tensor& x) { return x * 2; }});
  EXPECT_USER_ERROR(call(few, {vec({1})}),
                    "mine::one_of_two: its kernel gave f64[1], but its schema has 2 results");
  const Operator& nothing = define_operator("mine::undefined(Tensor x) -> Tensor",
                                            {.kernel = [](const Tensor&) { return Tensor(); }});
  EXPECT_USER_ERROR(call(nothing, {vec({1})}), "its kernel gave None (None) for result 0");
  const Operator& lists = define_operator("mine::numbers_for_tensors(Tensor x) -> Tensor[]",
                                          {.kernel = [](Args) { return Value::list({1, 2}); }});
  EXPECT_USER_ERROR(call(lists, {vec({1})}), "its kernel gave a list ([1, 2]) for result 0");
  const Operator& meta = define_operator(
      "mine::wrong_meta(Tensor x) -> Tensor",
      {.kernel = [](const Tensor& x) { return x * 2; }, .meta = [](const Tensor&) { return 1.5; }});
  FakeMode mode;
  EXPECT_USER_ERROR(call(meta, {mode.fake_of(vec({1}))}), "its meta function gave a real number (1.5)");
}

TEST(DefineOperator, WhoseVjpGivesTooFewGradientsIsTheAuthorsMistake) {
  const Operator& few = define_operator("mine::few_gradients(Tensor x, Tensor y) -> Tensor",
                                        {.kernel = [](const Tensor& x, const Tensor& y) { return x * y; },
                                         .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }}});
  Tensor x = vec({1}).set_requires_grad();
  EXPECT_USER_ERROR(call(few, {x, vec({2})}).to_tensor().sum().backward(),
                    "the vjp of mine::few_gradients gave 1 gradients for 2 tensor arguments");
  auto product = [&](const Tensor& t) { return call(few, {t, vec({2})}).to_tensor(); };
  EXPECT_USER_ERROR(func::jvp(product, {vec({1})}, {vec({1})}), "the vjp of mine::few_gradients gave 1");
  const Operator& beyond = define_operator("mine::gradient_beyond(Tensor x) -> Tensor",
                                           {.kernel = [](const Tensor& t) { return t * 2; },
                                            .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad(7)}; }}});
  EXPECT_USER_ERROR(call(beyond, {x}).to_tensor().sum().backward(), "reads the gradient of result 7");
  const Operator& list = define_operator("mine::many_gradients(Tensor[] x) -> Tensor",
                                         {.kernel = [](TensorSpan t) { return t[0] * 2; },
                                          .vjp = {.rule = [](const Vjp& v) {
                                            return Grads{std::vector<Tensor>{v.grad(), v.grad(), v.grad()}};
                                          }}});
  EXPECT_USER_ERROR(call(list, {Value::list({x})}).to_tensor().sum().backward(),
                    "the vjp of mine::many_gradients gave 3 gradients for argument 0, which has 1 tensors");
}

TEST(DefineOperator, IsDifferentiated) {
  Tensor x = ramp({4}).set_requires_grad();
  auto f = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{cube(in[0], 2)}; };
  EXPECT_NO_THROW(autograd::gradcheck(f, {x}));
  EXPECT_NO_THROW(autograd::gradgradcheck(f, {x}));
  EXPECT_EQ(autograd::grad_fn(cube(x))->name(), "CubeBackward0");
}

// a * b, whose rule reads both factors for either gradient, whatever it declares.
Tensor product_that_saves(const char* schema, Saves saves, const Tensor& a, const Tensor& b) {
  const Operator& op = define_operator(
      schema, {.kernel = [](const Tensor& x, const Tensor& y) { return mul(x, y); },
               .meta = [](const Tensor& x,
                          const Tensor&) { return contiguous_spec(x.sizes(), x.dtype(), x.device()); },
               .vjp = {.saves = saves, .rule = [](const Vjp& v) {
                         Tensor x = v.input(0), y = v.input(1);
                         return Grads{v.grad() * y, v.grad() * x};
                       }}});
  return call(op, {a, b}).to_tensor();
}

TEST(DefineOperator, RulesReadOnlyWhatTheyDeclare) {
  Tensor a = vec({2, 3}).set_requires_grad(), b = vec({5, 7});
  EXPECT_ERROR(
      product_that_saves("mine::saves_none(Tensor a, Tensor b) -> Tensor", sizes(0), a, b).sum().backward(),
      "the vjp of mine::saves_none reads input 0, which its .saves does not declare");
  EXPECT_ERROR(
      product_that_saves("mine::saves_for_other(Tensor a, Tensor b) -> Tensor", each_for_the_other(0, 1), a,
                         b)
          .sum()
          .backward(),
      "the vjp of mine::saves_for_other reads input 0, which its .saves does not declare for the gradients");
  // Declared twice, an input is there for both readers.
  product_that_saves("mine::saves_for_all(Tensor a, Tensor b) -> Tensor", input_for(0, 1) | inputs(0, 1), a,
                     b)
      .sum()
      .backward();
  EXPECT_EQ(values(a.grad()), (std::vector<double>{5, 7}));
}

TEST(DefineOperator, TransformsUseItsRules) {
  Tensor x = ramp({3, 2});
  EXPECT_TRUE(close(func::vmap([](const Tensor& t) { return cube(t); })(x), x * x * x));
  EXPECT_TRUE(close(func::vmap(func::grad([](const Tensor& t) { return cube(t).sum(); }))(x), 3 * x * x));
  EXPECT_TRUE(
      close(func::jvp([](const Tensor& t) { return cube(t); }, {x}, {ones_like(x)}).second[0], 3 * x * x));
}

TEST(DefineOperator, RunsWithoutData) {
  int before = kernel_calls;
  FakeMode mode({.shape_env = ShapeEnv::create()});
  Tensor x = mode.fake_of(allocate_contiguous({6, 4}, kFloat64), "x");
  EXPECT_EQ(describe(cube(x)).str(), "f64[s0, s1]");
  EXPECT_EQ(kernel_calls, before);
}

TEST(DefineOperator, IsRecordedAsOneCall) {
  CallList recorder;
  {
    RecorderScope scope(recorder, Recorder::Position::kLower);
    cube(vec({1}));
  }
  EXPECT_THAT(recorder.names(), ElementsAre("mine::cube"));
}

TEST(DefineOperator, CompositesAreSeenInParts) {
  const Operator& twice = define_operator("mine::twice(Tensor x) -> Tensor",
                                          {.composite = [](const Tensor& x) { return x + x; }});
  CallList recorder;
  Tensor x = vec({1}).set_requires_grad();
  {
    RecorderScope scope(recorder, Recorder::Position::kLower);
    call(twice, {x}).to_tensor().backward();
  }
  EXPECT_EQ(recorder.names()[0], "aten::add.Tensor");
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2}));
}

TEST(DefineOperator, MayWriteAndMayCapture) {
  auto log = std::make_shared<std::vector<std::string>>();
  const Operator& fill =
      define_operator("mine::fill_with_(Tensor(a!) x, str tag, *, int value=7) -> Tensor(a!)",
                      {
                          .kernel =
                              [log](const Tensor& x, std::string_view tag, int64_t value) {
                                log->emplace_back(tag);
                                return x.fill_(value);
                              },
                          .traits = Traits::kNotDifferentiable,
                      });
  Tensor x = vec({1, 2}), view = x.select(0, 1);
  Value result = call(fill, {view, "hello"});
  EXPECT_TRUE(result.to_tensor().is_same(view));
  EXPECT_EQ(values(x), (std::vector<double>{1, 7}));
  EXPECT_EQ(x.version(), 2u);  // fill_ inside counts one, the operator itself another
  EXPECT_THAT(*log, ElementsAre("hello"));
}

TEST(DefineOperator, BoxedKernelsAndSeveralResults) {
  const Operator& parts = define_operator(
      "mine::parts(Tensor[] list) -> (Tensor first, int count)",
      {
          .kernel =
              [](Args args) {
                return Value::tuple({args[0].elements()[0], static_cast<int64_t>(args[0].elements().size())});
              },
      });
  Value result = call(parts, {Value::list({vec({1}), vec({2})})});
  EXPECT_EQ(result.elements()[1].to_int(), 2);
}

TEST(DefineOperatorErrors, AreCaughtAtTheDefinition) {
  auto kernel = [](const Tensor& x) { return x; };
  EXPECT_ERROR(define_operator("nothing(Tensor x) -> Tensor", {.kernel = kernel}), "needs a namespace");
  EXPECT_ERROR(define_operator("mine::bad(Tensor x -> Tensor", {.kernel = kernel}), "expected");
  EXPECT_ERROR(define_operator("mine::none(Tensor x) -> Tensor", {}), "needs a kernel or a composite");
  EXPECT_ERROR(define_operator("mine::both(Tensor x) -> Tensor", {.kernel = kernel, .composite = kernel}),
               "and not both");
  EXPECT_ERROR(define_operator("mine::two(Tensor x, Tensor y) -> Tensor", {.kernel = kernel}),
               "the kernel takes 1 arguments, but the schema has 2");
  cube();
  EXPECT_ERROR(define_operator("mine::cube(Tensor x) -> Tensor", {.kernel = kernel}),
               "mine::cube is defined already");
  EXPECT_ERROR(define_operator("aten::neg(Tensor self) -> Tensor", {.kernel = kernel}),
               "aten::neg is defined already");
}

TEST(DefineOperatorErrors, FreeWhatTheRulesOfARefusedDefinitionHold) {
  auto held = std::make_shared<int>(1);
  auto rules = [&] {
    OperatorRules made{.kernel = [held](const Tensor& x) { return x * *held; }};
    made.vjp.rule = [held](const Vjp& v) { return Grads{v.grad() * *held}; };
    return made;
  };
  EXPECT_ERROR(define_operator("test_refused::twice(Tensor x, Tensor y) -> Tensor", rules()), "takes 1 arguments");
  EXPECT_EQ(held.use_count(), 1);
  define_operator("test_refused::once(Tensor x) -> Tensor", rules());
  EXPECT_EQ(held.use_count(), 3);
  EXPECT_ERROR(define_operator("test_refused::once(Tensor x) -> Tensor", rules()), "test_refused::once");
  EXPECT_EQ(held.use_count(), 3);
}

TEST(DefineOperatorErrors, OfCallsNameTheOperator) {
  EXPECT_ERROR(call(cube(), {vec({1}), 1.0, 2.0}), "mine::cube takes 2 arguments but 3 were given");
  EXPECT_ERROR(call(cube(), std::initializer_list<Value>{}), "argument 'x' is missing");
  EXPECT_ERROR(call(cube(), {Tensor()}), "mine::cube: argument 'x' is an undefined tensor");
  const Operator& bare =
      define_operator("mine::bare(Tensor x) -> Tensor", {.kernel = [](const Tensor& x) { return x * 2; }});
  Tensor x = vec({1}).set_requires_grad();
  Tensor y = call(bare, {x}).to_tensor();
  EXPECT_ERROR(y.backward(), "derivative for mine::bare is not implemented");
  FakeMode mode;
  EXPECT_ERROR(call(bare, {zeros({1})}), "it has no meta function");
}

// A kernel that throws leaves no trace: not in the layers, not in versions, not on the tape.
TEST(DefineOperatorErrors, ThrownByKernelsPassAndLeaveNothingBehind) {
  const Operator& throws =
      define_operator("mine::throws_(Tensor(a!) x) -> Tensor(a!)",
                      {
                          .kernel = [](const Tensor&) -> Tensor { throw std::runtime_error("broken pump"); },
                          .traits = Traits::kNotDifferentiable,
                      });
  Tensor x = vec({1, 2});
  LayerState before = layer_state();
  EXPECT_THROW(call(throws, {x}), std::runtime_error);
  EXPECT_THROW(func::vmap([&](const Tensor& t) { return call(throws, {t}).to_tensor(); })(x), std::exception);
  EXPECT_EQ(x.version(), 0u);
  EXPECT_EQ(layer_state().mask, before.mask);
  EXPECT_EQ(layer_state().active, before.active);
  EXPECT_EQ(values(x + x), (std::vector<double>{2, 4}));
}

TEST(OperatorRelatives, AreFoundWhenTheyAreDefinedLater) {
  auto kernel = [](const Tensor& x, const Tensor& y) { return x + y; };
  auto meta = [](const Tensor& x, const Tensor&) {
    return contiguous_spec(x.sizes(), x.dtype(), x.device());
  };
  const Operator& first =
      define_operator("mine::join.Other(Tensor x, Tensor y) -> Tensor", {.kernel = kernel, .meta = meta});
  EXPECT_EQ(first.relative(Operator::Relative::kForTensors), nullptr);
  EXPECT_EQ(first.relative(Operator::Relative::kForTensors), nullptr);
  const Operator& later =
      define_operator("mine::join.Tensor(Tensor x, Tensor y) -> Tensor", {.kernel = kernel, .meta = meta});
  EXPECT_EQ(first.relative(Operator::Relative::kForTensors), &later);
}

TEST(OperatorRelatives, FormsAndOverloadsOfTheTable) {
  const Operator& add = operator_named("aten::add.Scalar");
  EXPECT_EQ(add.relative(Operator::Relative::kForTensors), &operator_named("aten::add.Tensor"));
  EXPECT_EQ(&operator_named("aten::add_.Tensor").functional(), &operator_named("aten::add.Tensor"));
  EXPECT_EQ(&add.functional(), &add);
  EXPECT_EQ(add.relative(Operator::Relative::kWithWrittenResults), nullptr);
}

}  // namespace
}  // namespace weft
