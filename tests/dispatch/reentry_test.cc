// Where a nested call starts: each rule of docs/architecture.md by itself. A recorder at the top and one at
// the bottom, and a list in between, tell which layers a call has met.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/function.h"
#include "weft/dispatch/mode.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/func.h"
#include "weft/ops/autocast.h"
#include "weft/ops/define.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using testing::ramp;
using testing::values;
using testing::vec;

struct NameList : Mode {
  std::vector<std::string> names;
  Value handle(const Operator& op, Args args) override {
    names.emplace_back(op.name());
    return dispatch::redispatch(op, args);
  }
};

// What the layers saw of `f`.
struct Seen {
  std::vector<std::string> upper, mode, lower;
};
Seen watch(const std::function<void()>& f) {
  CallList top, bottom;
  NameList called;
  {
    RecorderScope upper(top, Recorder::Position::kUpper);
    RecorderScope lower(bottom, Recorder::Position::kLower);
    ModeScope mode(called);
    f();
  }
  return {top.names(), called.names, bottom.names()};
}

TEST(Reentry, UserCodeStartsAtTheTop) {
  Tensor x = ramp({2, 2});
  Seen seen = watch([&] { x.exp(); });
  EXPECT_THAT(seen.upper, ElementsAre("aten::exp"));
  EXPECT_THAT(seen.mode, ElementsAre("aten::exp"));
  EXPECT_THAT(seen.lower, ElementsAre("aten::exp"));
}

TEST(Reentry, ADecompositionRestartsAtTheLayerThatChoseIt) {
  Tensor x = ramp({2, 3}), w = ramp({4, 3});
  Seen seen = watch([&] { linear(x, w); });
  // The composite layer is below the upper recorder, which therefore sees no parts.
  EXPECT_THAT(seen.upper, ElementsAre("aten::linear"));
  EXPECT_THAT(seen.mode, ElementsAre("aten::t", "aten::mm"));
  // The parts meet autograd, which is below the composite layer.
  Tensor leaf = ramp({4, 3}).set_requires_grad();
  EXPECT_TRUE(linear(x, leaf).requires_grad());
}

TEST(Reentry, BackwardStartsAtTheTop) {
  Tensor x = vec({1, 2}).set_requires_grad(), y = (x * x).sum();
  Seen seen = watch([&] { y.backward(); });
  EXPECT_FALSE(seen.upper.empty());
  EXPECT_THAT(seen.lower, Contains("aten::mul.Tensor"));
}

// Also when backward is called from inside a layer's handler, where most layers are masked.
TEST(Reentry, BackwardInsideAHandlerStartsAtTheTop) {
  struct RunsBackward : Mode {
    Tensor loss;
    Value handle(const Operator& op, Args args) override {
      Value result = dispatch::redispatch(op, args);
      if (loss.defined()) std::exchange(loss, Tensor()).backward();
      return result;
    }
  } mode;
  Tensor x = vec({1, 2}).set_requires_grad();
  mode.loss = (x * x).sum();
  CallList top;
  RecorderScope upper(top, Recorder::Position::kUpper);
  ModeScope scope(mode);
  zeros({1});
  EXPECT_GT(top.calls.size(), 1u);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4}));
}

TEST(Reentry, HooksStartAtTheTop) {
  Tensor x = vec({1, 2}).set_requires_grad(), y = x * 3;
  autograd::register_hook(y, [](const Tensor& grad) { return grad.exp(); });
  Tensor loss = y.sum();
  Seen seen = watch([&] { loss.backward(); });
  EXPECT_THAT(seen.upper, Contains("aten::exp"));
}

TEST(Reentry, ARuleThatHasUnwrappedStartsBelow) {
  Tensor x = ramp({4, 3});
  // vmap's rule for sum calls sum on the batched tensor: once, below the level, and the layers under it see
  // that.
  Seen seen = watch([&] { func::vmap([](const Tensor& t) { return t.sum(); })(x); });
  EXPECT_THAT(seen.lower, Not(Contains("aten::select.int")));
  EXPECT_EQ(seen.mode.size(), seen.lower.size());
  // Autograd's own calls below itself are not recorded by it again.
  Tensor leaf = vec({2}).set_requires_grad(), y = leaf * leaf;
  EXPECT_EQ(autograd::grad_fn(y)->name(), "MulBackward0");
  EXPECT_EQ(autograd::grad_fn(y)->next[0].node->name(), "AccumulateGrad");
}

struct Doubling : Extension {
  explicit Doubling(Tensor inner) : inner_tensor(std::move(inner)) {}
  Tensor inner_tensor;
  std::string type_name() const override { return "Doubling"; }
  std::vector<Tensor> inner_tensors() const override { return {inner_tensor}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override { return make_ref<Doubling>(inner[0]); }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value result = dispatch::redispatch(
        op, unwrap_extensions<Doubling>(args, [](Doubling& d) { return d.inner_tensor; }));
    Tensor doubled = result.to_tensor() * 2;
    return Value(make_extension(make_ref<Doubling>(doubled), doubled));
  }
};

TEST(Reentry, AnExtensionsHandlerStartsAtTheExtensionLayer) {
  Tensor inner = make_extension(make_ref<Doubling>(vec({1})), vec({1}));
  Tensor outer = make_extension(make_ref<Doubling>(inner), inner);
  // neg of the inner one doubles, then the outer doubles that, which doubles once more inside.
  Tensor result = outer.neg();
  Doubling* once = extension_of<Doubling>(result);
  ASSERT_NE(once, nullptr);
  Doubling* twice = extension_of<Doubling>(once->inner_tensor);
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(values(twice->inner_tensor), (std::vector<double>{-8}));
  // Modes are above extensions: they see the outer call only, the lower recorder all that it comes to.
  Seen seen = watch([&] { outer.neg(); });
  EXPECT_THAT(seen.mode, ElementsAre("aten::neg"));
  EXPECT_GT(seen.lower.size(), 1u);
}

TEST(Reentry, KernelsRunBelowEverything) {
  const Operator& op = define_operator("reentry::composed(Tensor x) -> Tensor",
                                       {.kernel = [](const Tensor& x) { return x.exp() + 1; }});
  Tensor x = vec({1});
  Seen seen = watch([&] { call(op, {x}); });
  EXPECT_THAT(seen.upper, ElementsAre("reentry::composed"));
  EXPECT_THAT(seen.lower, ElementsAre("reentry::composed"));
}

struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static std::vector<Tensor> backward(autograd::FunctionContext& ctx, const std::vector<Tensor>& grads) {
    return {grads[0] * 2 * ctx.saved_tensors()[0]};
  }
};

TEST(Reentry, ForwardOfACustomFunctionStartsBelowWhatHasSeenTheCall) {
  Tensor x = vec({3}).set_requires_grad();
  Seen seen = watch([&] { Square::apply(x); });
  EXPECT_THAT(seen.upper, ElementsAre("weft::custom_function"));
  EXPECT_THAT(seen.mode, ElementsAre("aten::mul.Tensor"));
  EXPECT_THAT(seen.lower, ElementsAre("aten::mul.Tensor"));
}

// Every scope puts back what it found, when a handler throws too.
TEST(Reentry, ExceptionsRestoreTheState) {
  struct Thrower : Mode {
    Value handle(const Operator&, Args) override { fail("thrown"); }
  } thrower;
  Tensor x = ramp({2, 3}).set_requires_grad();
  LayerState before = layer_state();
  auto expect_restored = [&] {
    EXPECT_EQ(layer_state().mask, before.mask);
    EXPECT_EQ(layer_state().active, before.active);
    EXPECT_EQ(layer_state().grad_mode, before.grad_mode);
    EXPECT_EQ(layer_state().level_depth, before.level_depth);
  };
  {
    ModeScope scope(thrower);
    EXPECT_ERROR(linear(x, x), "thrown");
    EXPECT_ERROR(func::vmap(func::grad([](const Tensor& t) { return t.sum(); }))(x), "thrown");
    EXPECT_ERROR(func::jvp([](const Tensor& t) { return t * t; }, {x}, {x}), "thrown");
    EXPECT_ERROR(Square::apply(x), "thrown");
  }
  expect_restored();
  {
    Autocast cast;
    FakeMode fake;
    InferenceMode inference;
    EXPECT_ERROR(mm(zeros({2, 3}), zeros({2, 3})), "mat1 and mat2 shapes cannot be multiplied");
  }
  expect_restored();
}

}  // namespace
}  // namespace weft
