// Functionalisation in its three positions: what it gives is what eager execution gives, and nothing below is
// written to.
#include "weft/func/functionalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/recorded.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/dispatch/recorder.h"
#include "weft/ops/define.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using func::FunctionalizeScope;
using func::FunctionalPosition;
using testing::close;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::ramp;
using testing::values;
using testing::vec;

// What comes to the bottom.
std::vector<std::string> recorded(FunctionRef<void()> f) {
  return testing::recorded(Recorder::Position::kLower, f);
}

bool any_mutation(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (operator_named(name).info().is_mutable) return true;
  return false;
}

Tensor lower(const Tensor& value) { return func::to_functional(value, FunctionalPosition::kLower); }

// --- writes become values --------------------------------------------------------------------------------

TEST(Functionalize, AnInPlaceCallBecomesItsFunctionalForm) {
  Tensor x = vec({1, 2, 3}), w = lower(x);
  auto names = recorded([&] { w.add_(1).mul_(2); });
  EXPECT_THAT(names, ElementsAre("aten::add.Scalar", "aten::mul.Scalar"));
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{4, 6, 8}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(w.version(), 2u);
}

TEST(Functionalize, AWriteToAViewGoesBackIntoItsBase) {
  Tensor w = lower(vec({1, 2, 3}));
  Tensor part;
  auto names = recorded([&] { part = w.select(0, 1).add_(10); });
  EXPECT_THAT(names, ElementsAre("aten::select.int", "aten::add.Scalar", "aten::select_scatter"));
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{1, 12, 3}));
  // The view is made anew when it is next read.
  EXPECT_THAT(recorded([&] { part.neg(); }), ElementsAre("aten::select.int", "aten::neg"));
}

TEST(Functionalize, AWriteToTheBaseIsSeenThroughItsViews) {
  Tensor w = lower(ramp({2, 3})), row = w.select(0, 1), column = w.transpose(0, 1).select(0, 2);
  w.fill_(7);
  EXPECT_EQ(values(func::from_functional(row)), (std::vector<double>{7, 7, 7}));
  row.zero_();
  EXPECT_EQ(values(func::from_functional(column)), (std::vector<double>{7, 0}));
}

TEST(Functionalize, ViewsShareIdentityAndVersionAsTheProgramKnowsThem) {
  Tensor w = lower(ramp({2, 3})), v = w.view({6}).slice(0, 1, 5);
  EXPECT_EQ(v.storage(), w.storage());
  EXPECT_EQ(v.storage_offset().plain(), 1);
  EXPECT_TRUE(v.is_view());
  v.add_(1);
  EXPECT_EQ(w.version(), 1u);
}

TEST(Functionalize, SeveralViewsOfOneCall) {
  Tensor w = lower(vec({1, 2, 3, 4, 5}));
  w.split(2)[2].mul_(10);
  w.split(2)[0].mul_(3);
  w.unbind()[3].zero_();
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{3, 6, 3, 0, 50}));
}

TEST(Functionalize, KeepsTheTypeAndRefusesToGrow) {
  Tensor w = lower(ones({2}));
  w.add_(vec({0.5, 0.25}));
  EXPECT_EQ(func::from_functional(w).dtype(), kFloat32);
  EXPECT_ERROR(w.add_(ramp({3, 2})), "doesn't match the broadcast shape");
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{1.5, 1.25}));
  EXPECT_EQ(w.version(), 1u);
}

TEST(Functionalize, StridesAreThoseOfTheProgram) {
  // The new value of w comes out of a transpose, with other strides than w has: w.view must still work.
  Tensor w = lower(ramp({2, 3}));
  w.t().add_(1);
  Tensor flat = w.view({6});
  EXPECT_TRUE(close(func::from_functional(flat), (ramp({2, 3}) + 1).view({6})));
  flat.select(0, 0).zero_();
  w.t().select(0, 0).select(0, 1).fill_(5);
  EXPECT_EQ(func::from_functional(flat).select(0, 3).item().to_double(), 5);
}

TEST(Functionalize, MemorySeenAsAnotherTypeFollows) {
  Tensor w = lower(ramp({2, 4})), eager = ramp({2, 4});
  w.t().mul_(2);  // leaves other strides below
  w.view(kInt64).select(0, 1).zero_();
  eager.mul_(2);
  eager.select(0, 1).zero_();
  EXPECT_TRUE(close(func::from_functional(w), eager));
}

TEST(Functionalize, OutFormsAndFactories) {
  FunctionalizeScope scope(FunctionalPosition::kLower);
  Tensor out = zeros({3}, kFloat64);
  EXPECT_TRUE(func::is_functional(out));
  auto names = recorded([&] { add_out(out, vec({1, 2, 3}), vec({1, 1, 1})); });
  EXPECT_FALSE(any_mutation(names));
  EXPECT_EQ(values(func::from_functional(out)), (std::vector<double>{2, 3, 4}));
}

TEST(Functionalize, OutFormsOfFactoriesGoByName) {
  FunctionalizeScope scope(FunctionalPosition::kLower);
  Tensor out = empty({0}, kInt32), wide = empty({0}, kFloat64);
  auto names = recorded([&] {
    zeros_out(out, {2});
    add_(out, 3);
    arange_out(wide, 3);
  });
  EXPECT_FALSE(any_mutation(names)) << ::testing::PrintToString(names);
  EXPECT_EQ(values(func::from_functional(out).to(kFloat64)), (std::vector<double>{3, 3}));
  EXPECT_EQ(values(func::from_functional(wide)), (std::vector<double>{0, 1, 2}));
}

TEST(Functionalize, ListsAreWrittenElementByElement) {
  const Operator& shift =
      define_operator("functionalize_test::shift(Tensor(a!)[] xs, Tensor(b!) count, float by) -> ()",
                      {.kernel = [](TensorSpan xs, const Tensor& count, double by) {
                        for (const Tensor& x : xs) x.add_(by);
                        count.add_(static_cast<double>(xs.size()));
                      }});
  Tensor a = vec({1, 2}), wa = lower(a), wb = lower(vec({5})), count = lower(vec({0}));
  call(shift, {Value::list({wa.select(0, 1), wb}), count, 10.0});
  EXPECT_EQ(values(func::from_functional(wa)), (std::vector<double>{1, 12}));
  EXPECT_EQ(values(func::from_functional(wb)), (std::vector<double>{15}));
  EXPECT_EQ(values(func::from_functional(count)), (std::vector<double>{2}));
  EXPECT_EQ(values(a), (std::vector<double>{1, 2}));
  EXPECT_ERROR(call(shift, {Value::list({wa, vec({1})}), count, 1.0}),
               "a tensor from outside of functionalize");
}

TEST(Functionalize, ResizeGivesMemoryAnotherValue) {
  Tensor w = lower(vec({1, 2, 3, 4}));
  auto names = recorded([&] { resize_(w, {2}).mul_(2); });
  EXPECT_THAT(names, ElementsAre("aten::resize", "aten::mul.Scalar"));
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{2, 4}));
  EXPECT_TRUE(func::functional_changes(w).metadata);
  Tensor view = w.select(0, 0);
  EXPECT_ERROR(resize_(w, {9}), "would resize memory that views look at");
  EXPECT_EQ(w.dim(), 1);
  EXPECT_EQ(w.size(0), 2);
}

TEST(Functionalize, SetTakesTheMemoryOfAnother) {
  Tensor a = lower(vec({1, 2})), b = lower(vec({3, 4, 5}));
  set_(a, b);
  a.mul_(2);
  EXPECT_EQ(a.storage(), b.storage());
  EXPECT_EQ(values(func::from_functional(b)), (std::vector<double>{6, 8, 10}));
  EXPECT_EQ(values(func::from_functional(a)), (std::vector<double>{6, 8, 10}));
  EXPECT_ERROR(set_(a, vec({1})), "would take memory from outside of functionalize");
}

TEST(Functionalize, InPlaceViewsChangeTheTensorItself) {
  Tensor w = lower(ramp({2, 3})), same = w;
  w.t_();
  EXPECT_EQ(describe(same).str(), "f64[3, 2]");
  w.select(0, 0).zero_();
  EXPECT_TRUE(func::functional_changes(w).metadata);
  Tensor expected = ramp({2, 3});
  expected.select(1, 0).zero_();
  EXPECT_TRUE(close(func::from_functional(w), expected.t()));
}

TEST(Functionalize, CountsWrites) {
  Tensor w = lower(ramp({3}));
  EXPECT_EQ(func::functional_changes(w).writes, 0);
  w.slice(0, 0, 2).add_(1);
  {
    NoGrad no_grad;
    w.mul_(2);
  }
  EXPECT_EQ(func::functional_changes(w).writes, 2);
  EXPECT_EQ(func::functional_changes(w).writes_under_no_grad, 1);
}

TEST(Functionalize, RefusesWritesThatWouldBeLost) {
  Tensor outside = ramp({3}), w = lower(ramp({3}));
  EXPECT_ERROR(outside.add_(w), "a tensor from outside of functionalize is written to");
  EXPECT_ERROR(func::from_functional(outside), "expected a functional tensor, but got f64[3]");
}

TEST(Functionalize, AnOperatorWithoutAFunctionalFormWritesToACopy) {
  const Operator& bump = define_operator("functionalize_test::bump(Tensor(a!) x, Tensor by) -> ()",
                                         {
                                             .kernel = [](const Tensor& x, const Tensor& by) { x.add_(by); },
                                         });
  Tensor x = vec({1, 2}), w = lower(x);
  call(bump, {w.select(0, 0), full({}, 5.0, kFloat64)});
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{6, 2}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
}

// --- lower: below autograd -------------------------------------------------------------------------------

TEST(FunctionalizeLower, TheBackwardPassIsFunctionalToo) {
  auto program = [](const Tensor& x) {
    Tensor y = x * 2;
    y.select(0, 0).mul_(x.select(0, 1));
    return (y * y).sum();
  };
  Tensor x = vec({1, 2, 3}).set_requires_grad();
  program(x).backward();
  Tensor w = lower(x.detach()).set_requires_grad();
  auto names = recorded([&] {
    FunctionalizeScope scope(FunctionalPosition::kLower);
    program(w).backward();
  });
  EXPECT_FALSE(any_mutation(names)) << ::testing::PrintToString(names);
  EXPECT_TRUE(close(func::from_functional(w.grad()), x.grad()));
}

TEST(FunctionalizeLower, VersionErrorsAreTheSame) {
  Tensor w = lower(vec({1, 2})).set_requires_grad();
  Tensor y = w.exp();
  y.add_(1);
  EXPECT_ERROR(y.sum().backward(), "has been modified by an inplace operation");
}

// Journey 3: symbolic sizes, autograd above, the recorder below.
TEST(FunctionalizeLower, Journey3) {
  auto env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  Tensor x = lower(mode.fake_of(allocate_contiguous({6, 4}, kFloat64), "x")).set_requires_grad();
  auto names = recorded([&] {
    Tensor y = x * 2;
    y.view({-1}).add_(1);
    autograd::grad({y.sum()}, {x});
  });
  EXPECT_FALSE(any_mutation(names)) << ::testing::PrintToString(names);
  ASSERT_GE(names.size(), 4u);
  EXPECT_THAT(std::vector<std::string>(names.begin(), names.begin() + 4),
              ElementsAre("aten::mul.Scalar", "aten::view", "aten::add.Scalar", "aten::view"));
  for (const auto& guard : env->guards())
    ADD_FAILURE() << guard.as_bool().to_string() << " asked at " << guard.where.file << ":"
                  << guard.where.line;
}

struct Pair : Extension {
  Pair(Tensor a, Tensor b) : a(std::move(a)), b(std::move(b)) {}
  Tensor a, b;
  std::string type_name() const override { return "Pair"; }
  std::vector<Tensor> inner_tensors() const override { return {a, b}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<Pair>(inner[0], inner[1]);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value x = dispatch::redispatch(op, unwrap_extensions<Pair>(args, [](Pair& p) { return p.a; }));
    Value y = dispatch::redispatch(op, unwrap_extensions<Pair>(args, [](Pair& p) { return p.b; }));
    return Value(make_extension(make_ref<Pair>(x.to_tensor(), y.to_tensor()), x.to_tensor()));
  }
};

TEST(FunctionalizeLower, WrappersSitInsideExtensions) {
  Tensor a = lower(vec({1, 2})), b = lower(vec({3, 4}));
  Tensor pair = make_extension(make_ref<Pair>(a, b), a);
  pair.select(0, 0).mul_(10);
  EXPECT_EQ(values(func::from_functional(a)), (std::vector<double>{10, 2}));
  EXPECT_EQ(values(func::from_functional(b)), (std::vector<double>{30, 4}));
}

// --- upper: above autograd and the upper recorder --------------------------------------------------------

TEST(FunctionalizeUpper, KeepsCompositesThatNeitherAliasNorWrite) {
  Tensor x = func::to_functional(ramp({2, 3}), FunctionalPosition::kUpper), weight = ramp({4, 3});
  auto names = testing::recorded(Recorder::Position::kUpper, [&] {
    Tensor y = linear(x, weight);
    y.reshape({8}).add_(1);
  });
  EXPECT_EQ(names[0], "aten::linear");
  EXPECT_THAT(names, Contains("aten::add.Scalar"));
  EXPECT_THAT(names, ::testing::Not(Contains("aten::reshape")));
  EXPECT_FALSE(any_mutation(names));
}

TEST(FunctionalizeUpper, HistoriesAreMadeBelow) {
  Tensor leaf = vec({1, 2, 3}).set_requires_grad(), x = func::to_functional(leaf, FunctionalPosition::kUpper);
  Tensor y = x * 2;
  y.select(0, 0).mul_(5);
  func::from_functional(y).sum().backward();
  EXPECT_EQ(values(leaf.grad()), (std::vector<double>{10, 2, 2}));
}

// --- the transform level ---------------------------------------------------------------------------------

TEST(FunctionalizeLevel, WritesArgumentsOnceAtTheEnd) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(y);
    x.select(0, 0).mul_(2);
    return x * y;
  };
  Tensor x = vec({1, 2}), y = vec({3, 4}), eager_x = x.clone();
  Tensor expected = f(eager_x, y), got;
  auto names = recorded([&] { got = func::functionalize(f)(x, y); });
  EXPECT_TRUE(close(got, expected));
  EXPECT_TRUE(close(x, eager_x));
  int64_t mutations = 0;
  for (const std::string& name : names) mutations += operator_named(name).info().is_mutable;
  EXPECT_EQ(mutations, 1);
  EXPECT_THAT(names, Contains("aten::copy_"));
}

TEST(FunctionalizeLevel, ResultsAliasAsTheyWould) {
  auto f = [](const func::Tensors& args) {
    Tensor base = args[0] * 2, part = base.select(0, 0);
    args[0].add_(1);
    base.add_(100);
    return func::Tensors{args[0], args[0].select(0, 1), base, part};
  };
  Tensor x = vec({1, 2});
  func::Tensors results = func::functionalize(f)(func::Tensors{x});
  EXPECT_TRUE(results[0].is_same(x));
  EXPECT_EQ(results[1].storage(), x.storage());
  EXPECT_EQ(results[2].storage(), results[3].storage());
  EXPECT_NE(results[2].storage(), x.storage());
  EXPECT_EQ(values(results[1]), (std::vector<double>{3}));
  EXPECT_EQ(values(results[3]), (std::vector<double>{102}));
}

TEST(FunctionalizeLevel, NestsWithGradAndVmap) {
  auto f = [](const Tensor& x) {
    Tensor y = x * x;
    y.select(0, 0).mul_(3);
    y.add_(x);
    return y.sum();
  };
  Tensor x = ramp({4, 3});
  Tensor expected = func::vmap(func::grad(f))(x);
  EXPECT_TRUE(close(func::functionalize(func::vmap(func::grad(f)))(x), expected));
  EXPECT_TRUE(close(func::vmap(func::functionalize(func::grad(f)))(x), expected));
  EXPECT_TRUE(close(func::vmap(func::grad(func::functionalize(f)))(x), expected));
  auto names = recorded([&] { func::functionalize(func::vmap(func::grad(f)))(x); });
  EXPECT_FALSE(any_mutation(names)) << ::testing::PrintToString(names);
}

TEST(FunctionalizeLevel, LeavesNothingBehindWhenTheFunctionThrows) {
  Tensor x = vec({1, 2});
  auto f = [](const Tensor& t) -> Tensor {
    t.add_(1);
    fail("stopped here");
  };
  EXPECT_ERROR(func::functionalize(f)(x), "stopped here");
  EXPECT_EQ(values(x), (std::vector<double>{1, 2}));
  EXPECT_EQ(layer_state().level_depth, 0);
  EXPECT_EQ(values(x + x), (std::vector<double>{2, 4}));
}

// Runs `f` with and without functionalize on equal arguments: both leave them, and their results, alike.
void expect_same_arguments(FunctionRef<Tensor(const Tensor&)> f) {
  Tensor x = ramp({2, 3}), eager = ramp({2, 3});
  Tensor got = func::functionalize([&](const Tensor& t) { return f(t); })(x), expected = f(eager);
  EXPECT_EQ(describe(x).str(), describe(eager).str());
  EXPECT_EQ(describe_sizes(x.strides()).str(), describe_sizes(eager.strides()).str());
  EXPECT_TRUE(close(x, eager));
  EXPECT_TRUE(close(got, expected));
  EXPECT_EQ(got.is_same(x), expected.is_same(eager));
  EXPECT_EQ(got.storage() == x.storage(), expected.storage() == eager.storage());
}

TEST(FunctionalizeLevel, GivesChangedSizesOfArgumentsBack) {
  expect_same_arguments([](const Tensor& t) { return t.t_() * 1; });
  expect_same_arguments([](const Tensor& t) { return t.t_(); });
  expect_same_arguments([](const Tensor& t) {
    t.unsqueeze_(0);
    t.select(2, 1).mul_(5);
    return t.select(1, 0);
  });
  expect_same_arguments([](const Tensor& t) {
    Tensor row = t.select(0, 1);
    t.t_().add_(1);
    return row;
  });
  const Tensor larger = ramp({4, 5}).t();
  expect_same_arguments([&](const Tensor& t) { return exp_out(t, larger); });
  expect_same_arguments([](const Tensor& t) { return resize_(t, {2, 2}).mul_(2); });
  expect_same_arguments([](const Tensor& t) { return set_(t, t * 2); });
  expect_same_arguments(
      [](const Tensor& t) { return set_(t, full({4}, 2.0, kFloat64), 1, {2}, {2}).mul_(3); });
}

// As in PyTorch, a result has the layout of the values; the program sees the strides that it would have.
TEST(FunctionalizeLevel, ResultsHaveTheLayoutOfTheirValues) {
  auto f = [](const Tensor& t) {
    Tensor y = t.clone();
    y.mul_(2);
    EXPECT_EQ(describe_sizes(y.strides()).str(), "[6, 1]");
    return y;
  };
  Tensor x = as_strided(ramp({6}), {1, 2}, {6, 1});
  EXPECT_EQ(describe_sizes(f(x).strides()).str(), "[6, 1]");
  EXPECT_EQ(describe_sizes(func::functionalize(f)(x).strides()).str(), "[2, 1]");
}

}  // namespace
}  // namespace weft
