// The layer stack: journeys 2 to 5 of docs/architecture.md, and the rules of re-entry one by one.
#include "weft/dispatch/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/lowering.h"
#include "ops/scalar/scalar_expr.h"
#include "support/expect_error.h"
#include "support/recorded.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/dispatch/mode.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/func.h"
#include "weft/ops/autocast.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::close;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ramp;
using testing::recorded;
using testing::values;
using testing::vec;
using Position = Recorder::Position;

// --- recorder --------------------------------------------------------------------------------------------

TEST(RecorderTest, UpperSeesCompositesWholeAndLowerTheirParts) {
  Tensor x = ramp({2, 3}), w = ramp({4, 3}), b = ramp({4});
  EXPECT_THAT(recorded(Position::kUpper, [&] { linear(x, w, b); }), ElementsAre("aten::linear"));
  EXPECT_THAT(recorded(Position::kLower, [&] { linear(x, w, b); }), ElementsAre("aten::t", "aten::addmm"));
}

TEST(RecorderTest, LowerSeesTheBackwardPassAndUpperDoesToo) {
  Tensor x = vec({1, 2}).set_requires_grad();
  auto run = [&] { (x * x).sum().backward(); };
  EXPECT_THAT(recorded(Position::kLower, run),
              ::testing::IsSupersetOf({"aten::mul.Tensor", "aten::sum", "aten::expand"}));
}

TEST(RecorderTest, NoOpCallsAreSeen) {
  Tensor x = ramp({2});
  EXPECT_THAT(recorded(Position::kUpper, [&] { x.contiguous(); }), ElementsAre("aten::contiguous"));
}

TEST(RecorderTest, InPlaceAndViewsAreSeenAsCalled) {
  Tensor x = ramp({2, 2});
  EXPECT_THAT(recorded(Position::kUpper, [&] { x.view({-1}).add_(1); }),
              ElementsAre("aten::view", "aten::add_.Scalar"));
}

// --- journey 2 -------------------------------------------------------------------------------------------

TEST(Journey2, VmapOfGradRecordsBatchedOperators) {
  Tensor x = ramp({4, 3});
  Tensor plain = func::vmap(func::grad([](const Tensor& t) { return (t * t).sum(); }))(x), traced;
  CallList recorder;
  {
    RecorderScope scope(recorder, Position::kLower);
    traced = func::vmap(func::grad([](const Tensor& t) { return (t * t).sum(); }))(x);
  }
  EXPECT_TRUE(close(traced, plain));
  ASSERT_FALSE(recorder.calls.empty());
  EXPECT_EQ(recorder.calls[0].op->name(), "aten::mul.Tensor");
  EXPECT_EQ(describe(recorder.calls[0].result.to_tensor()).str(),
            "f64[4, 3]");  // one call for the whole batch
}

// --- journey 3 -------------------------------------------------------------------------------------------

TEST(Journey3, InPlaceOnAViewWithSymbolicSizesUnderAutograd) {
  auto env = ShapeEnv::create();
  FakeMode mode({.shape_env = env});
  Tensor x = mode.fake_of(allocate_contiguous({6, 4}, kFloat64), "x").set_requires_grad();
  Tensor y = x * 2;
  Tensor flat = y.view({-1});
  EXPECT_EQ(describe_sizes(flat.sizes()).str(), "[s0*s1]");
  flat.add_(1);
  EXPECT_EQ(autograd::grad_fn(y)->name(), "CopySlices");
  EXPECT_EQ(autograd::grad_fn(flat)->name(), "ViewBackward0");
  EXPECT_EQ(flat.storage(), y.storage());
  EXPECT_EQ(y.version(), 1u);
  Tensor g = autograd::grad({y.sum()}, {x})[0];
  EXPECT_EQ(describe(g).str(), "f64[s0, s1]");
  EXPECT_TRUE(env->guards().empty());
}

// --- journey 4 -------------------------------------------------------------------------------------------

struct TwoTensor : Extension {
  TwoTensor(Tensor a, Tensor b) : a(std::move(a)), b(std::move(b)) {}
  Tensor a, b;

  static Tensor make(const Tensor& a, const Tensor& b) {
    return make_extension(make_ref<TwoTensor>(a, b), a);
  }
  std::string type_name() const override { return "TwoTensor"; }
  std::vector<Tensor> inner_tensors() const override { return {a, b}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<TwoTensor>(inner[0], inner[1]);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value first =
        dispatch::redispatch(op, unwrap_extensions<TwoTensor>(args, [](TwoTensor& t) { return t.a; }));
    Value second =
        dispatch::redispatch(op, unwrap_extensions<TwoTensor>(args, [](TwoTensor& t) { return t.b; }));
    return join(first, second);
  }
  static Value join(const Value& x, const Value& y) {
    if (x.is_tensor()) return make(x.to_tensor(), y.to_tensor());
    if (!x.is_sequence()) return x;
    ValueList list;
    for (size_t i = 0; i < x.elements().size(); ++i) list.push_back(join(x.elements()[i], y.elements()[i]));
    return x.is_list() ? Value::list(list) : Value::tuple(list);
  }
};
TwoTensor& two(const Tensor& t) { return *extension_of<TwoTensor>(t); }

TEST(Journey4, TwoTensorForwardAndBackward) {
  Tensor x = TwoTensor::make(vec({1, 2}), vec({10, 20})).set_requires_grad();
  Tensor y = (x * x).sum();
  EXPECT_EQ(values(two(y).a), (std::vector<double>{5}));
  EXPECT_EQ(values(two(y).b), (std::vector<double>{500}));
  y.backward();
  EXPECT_EQ(values(two(x.grad()).a), (std::vector<double>{2, 4}));
  EXPECT_EQ(values(two(x.grad()).b), (std::vector<double>{20, 40}));
}

TEST(Journey4, ExtensionsNest) {
  Tensor inner1 = TwoTensor::make(vec({1}), vec({2})), inner2 = TwoTensor::make(vec({3}), vec({4}));
  Tensor x = TwoTensor::make(inner1, inner2).set_requires_grad();
  (x * x).sum().backward();
  EXPECT_EQ(values(two(two(x.grad()).b).a), (std::vector<double>{6}));
}

TEST(Journey4, AnInPlaceViewChangesTheWholeAsItChangesItsParts) {
  Tensor leaf = TwoTensor::make(ramp({2, 3}), ramp({2, 3})).set_requires_grad(), x = leaf * 1,
         flat = x.view({6});
  x.t_();
  EXPECT_EQ(describe(x).str(), "f64[3, 2]");
  EXPECT_EQ(x.strides()[0].plain(), 1);
  x.unsqueeze_(0);
  EXPECT_EQ(describe(x).str(), "f64[1, 3, 2]");
  // Who looked at it before sees what is written through its new geometry, and has its history.
  x.mul_(2);
  EXPECT_EQ(values(two(flat).a), values(ramp({6}) * 2));
  flat.sum().backward();
  EXPECT_EQ(values(two(leaf.grad()).a), std::vector<double>(6, 2));
}

TEST(Journey4, ViewsOfExtensionsShareIdentity) {
  Tensor x = TwoTensor::make(ramp({2, 3}), ramp({2, 3}));
  Tensor v = x.transpose(0, 1);
  EXPECT_TRUE(v.is_view());
  EXPECT_EQ(v.storage(), x.storage());
  uint32_t before = x.version();
  v.add_(1);
  EXPECT_EQ(x.version(), before + 1);
}

// --- journey 5 -------------------------------------------------------------------------------------------

TEST(Journey5, GeluTimesYIsAScalarFormulaToo) {
  const Operator& gelu_op = operator_named("aten::gelu");
  EXPECT_TRUE(gelu_op.has(Traits::kPointwise));
  Tensor x = ramp({100}, -3, 3), y = ramp({100}), r = gelu(x) * y;
  auto formula = [&](const char* approximate) {
    Lowering lowering = lower(gelu_op, std::vector<Value>{x, approximate});
    return lowering.pointwise()->kernel->build(lowering.pointwise()->compute).outputs[0].to_string();
  };
  EXPECT_EQ(formula("none"), "mul(x0, normal_cdf(x0))");
  EXPECT_NE(formula("tanh").find("tanh("), std::string::npos);
  for (int64_t i = 0; i < 100; ++i) {
    double v = x.data<double>()[i];
    EXPECT_NEAR(r.data<double>()[i], 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))) * y.data<double>()[i],
                1e-14);
  }
}

// --- modes -----------------------------------------------------------------------------------------------

struct Counter : Mode {
  int count = 0;
  Value handle(const Operator& op, Args args) override {
    ++count;
    return dispatch::redispatch(op, args);
  }
};

TEST(ModeTest, CountsBelowAutogradBackwardIncluded) {
  Counter counter;
  Tensor x = vec({1, 2}).set_requires_grad();
  {
    ModeScope scope(counter);
    Tensor y = (x * x).sum();
    EXPECT_EQ(counter.count, 2);
    y.backward();
    EXPECT_GT(counter.count, 4);
  }
  int after = counter.count;
  x * 2;
  EXPECT_EQ(counter.count, after);
}

TEST(ModeTest, InnermostSeesFirstAndIsOffInside) {
  struct Doubler : Counter {
    Value handle(const Operator& op, Args args) override {
      ++count;
      vec({1}) + vec({1});  // goes to the outer mode only
      return dispatch::redispatch(op, args);
    }
  } inner;
  Counter outer;
  ModeScope a(outer);
  ModeScope b(inner);
  Tensor one = zeros({1}), sum = one + one;
  EXPECT_EQ(inner.count, 2);
  EXPECT_GT(outer.count, inner.count);
}

TEST(ModeTest, IsRestoredWhenAHandlerThrows) {
  struct Thrower : Mode {
    Value handle(const Operator& op, Args) override { fail("no {}", op.name()); }
  } thrower;
  {
    ModeScope scope(thrower);
    EXPECT_ERROR(zeros({1}), "no aten::zeros");
    EXPECT_ERROR(zeros({1}), "no aten::zeros");
  }
  EXPECT_EQ(values(zeros({1})), (std::vector<double>{0}));
}

// --- fake ------------------------------------------------------------------------------------------------

TEST(FakeTest, FactoriesAndOperatorsHaveNoMemory) {
  FakeMode mode;
  Tensor x = zeros({1000000, 1000000}), y = (x + 1).sum({0});
  EXPECT_TRUE(is_fake(y));
  EXPECT_FALSE(y.storage()->has_memory());
  EXPECT_EQ(describe(y).str(), "f32[1000000]");
}

TEST(FakeTest, StrayRealTensorsAreNamed) {
  Tensor real = ramp({2});
  FakeMode mode;
  EXPECT_ERROR(zeros({2}) + real, "is a real tensor among fake ones");
  EXPECT_ERROR(zeros({2}).item(), "a Tensor with 2 elements cannot be converted to Scalar");
  EXPECT_ERROR(zeros({}).item(), "its value depends on data");
}

TEST(FakeTest, RealTensorsThatAreAllowedNeverChange) {
  Tensor real = zeros({2, 3}), view = real.select(0, 1),
         meta = empty({2}, kFloat32, std::nullopt, Device("meta"));
  const uint32_t flags = real.flags(), meta_flags = meta.flags();
  {
    FakeMode mode({.allow_real_inputs = true});
    EXPECT_TRUE(real.add_(1).is_same(real));
    EXPECT_TRUE(is_fake(real + 1));
    real.t_();
    EXPECT_EQ(describe(real.sum({1})).str(), "f32[3]");  // the fake of it was transposed
    // Fakes share memory where the real ones do.
    FakeConverter& converter = *mode.converter();
    EXPECT_EQ(converter.convert_constant(real).storage(), converter.convert_constant(view).storage());
    EXPECT_TRUE(converter.convert_constant(view).is_same(converter.convert_constant(view)));
    add_out(view, ones({3}), ones({3}));
    std::vector<Tensor> both = unbind(real);
    EXPECT_TRUE(is_fake(both[0]));
    meta.add_(1);
  }
  EXPECT_EQ(real.flags(), flags);
  EXPECT_EQ(meta.flags(), meta_flags);
  EXPECT_EQ(describe(real).str(), "f32[2, 3]");
  EXPECT_EQ(real.sum().item().to_double(), 0);
  real.add_(1);
  EXPECT_EQ(view.sum().item().to_double(), 3);
}

TEST(FakeTest, ItemGivesAnUnbackedSymbol) {
  FakeMode mode({.shape_env = ShapeEnv::create()});
  Scalar s = zeros({}, kInt64).item();
  EXPECT_TRUE(s.is_symbolic());
  EXPECT_EQ(s.to_string(), "u0");
}

// --- autocast --------------------------------------------------------------------------------------------

// As PyTorch has it for the CPU.
TEST(AutocastTest, NarrowsProductsAndWidensLosses) {
  Tensor x = ramp({2, 3}).to(kFloat32), w = ramp({4, 3}).to(kFloat32);
  Autocast cast;
  Tensor y = linear(x, w);
  EXPECT_EQ(y.dtype(), kBFloat16);
  EXPECT_EQ(mse_loss(y, y).dtype(), kFloat32);
  EXPECT_EQ(cross_entropy_loss(y, zeros({2}, kInt64)).dtype(), kFloat32);
  for (const Tensor& same : {softmax(y, 1), log_softmax(y, 1), layer_norm(y, {4}), y.exp(), y.sum()})
    EXPECT_EQ(same.dtype(), kBFloat16);
  EXPECT_EQ((x + x).dtype(), kFloat32);
  Autocast off(kBFloat16, false);
  EXPECT_EQ(linear(x, w).dtype(), kFloat32);
}

// --- user-visible errors ---------------------------------------------------------------------------------

TEST(DispatchErrors, NameOperatorArgumentAndValues) {
  EXPECT_ERROR(add(Tensor(), ramp({1})), "aten::add.Tensor: argument 'self' is an undefined tensor");
  EXPECT_ERROR(ramp({2}) + ramp({3}),
               "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
  EXPECT_ERROR(operator_named("aten::ad.Tensor"), "near names: aten::add.Tensor");
  EXPECT_ERROR(call("aten::neg", {1}), "expected a tensor but got an integer");
  EXPECT_ERROR(ramp({2}).to(kInt64).add_(0.5),
               "result type float32 can't be cast to the desired output type int64");
}

TEST(DispatchErrors, DevicesDoNotMix) {
  Tensor a = ones({2}), b = ones({2}, std::nullopt, std::nullopt, Device("sim:1"));
  EXPECT_ERROR(
      a + b, "expected all tensors to be on the same device, but found at least two devices, cpu and sim:1");
  EXPECT_EQ(values(to(b + b, std::nullopt, std::nullopt, kCpu)), (std::vector<double>{2, 2}));
}

TEST(MetaDevice, RunsShapesOnly) {
  Tensor m = empty({3, 4}, std::nullopt, std::nullopt, kMeta);
  Tensor r = mm(m, m.t()) + 1;
  EXPECT_TRUE(r.device().is_meta());
  EXPECT_EQ(describe(r).str(), "f32[3, 3]");
  EXPECT_ERROR(r.data<float>(), "has no memory");
}

TEST(LazyBits, ConjugateIsAViewAndKernelsSeeItsValues) {
  Tensor z = full({2}, Complex<double>(1, 2), kComplex128), c = conj(z);
  EXPECT_EQ(c.storage(), z.storage());
  EXPECT_TRUE(c.is_conj());
  Complex<double> product = (z * c).select(0, 0).item().to_complex();
  EXPECT_EQ(product.re, 5);
  EXPECT_EQ(product.im, 0);
  c.add_(z);
  EXPECT_EQ(z.select(0, 0).item().to_complex().re, 2);
}

TEST(AutocastTest, WidensCrossEntropyAsAWhole) {
  const Tensor scores = ramp({8, 5}, -4, 4).to(kFloat32), labels = arange(8, kInt64) % 5;
  const Tensor narrow = scores.to(kBFloat16);
  const Tensor wanted = cross_entropy_loss(narrow.to(kFloat32), labels);
  Autocast cast;
  const Tensor got = cross_entropy_loss(narrow, labels);
  EXPECT_EQ(got.dtype(), kFloat32);
  EXPECT_EQ(values(got), values(wanted));
}

}  // namespace
}  // namespace weft
