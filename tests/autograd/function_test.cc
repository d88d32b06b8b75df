// Custom functions: their derivative is the user's, at every level that differentiates them.
#include "weft/autograd/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/gradcheck.h"
#include "weft/dispatch/mode.h"
#include "weft/dispatch/recorder.h"
#include "weft/func/func.h"
#include "weft/ops/autocast.h"

namespace weft {
namespace {

using autograd::Function;
using autograd::FunctionContext;
using testing::close;
using ::testing::ElementsAre;
using testing::ramp;
using testing::values;
using testing::vec;
using Tensors = std::vector<Tensor>;

struct Exp : Function<Exp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    Tensor y = exp(x);
    ctx.save_for_backward({y});
    return y;
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    return {grads[0] * ctx.saved_tensors()[0]};
  }
};

// x^2 with a derivative that is wrong on purpose, so that it can be told from the operators' own: 5x.
struct FiveX : Function<FiveX> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    return {grads[0] * 5 * ctx.saved_tensors()[0]};
  }
};

struct Scaled : Function<Scaled> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& x, double by,
                                            const std::string& mode, const Tensor& y) {
    ctx.save_for_backward({x, y});
    ctx.saved_data.set("by", by);
    ctx.saved_data.set("mode", mode);
    return {x * y * by, x + y};
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    Tensors saved = ctx.saved_tensors();
    double by = ctx.saved_data.at("by").to_double();
    Tensor product = grads[0] * by;
    return {product * saved[1] + grads[1], Tensor(), Tensor(), product * saved[0] + grads[1]};
  }
};

TEST(CustomFunction, ForwardAndBackward) {
  Tensor x = vec({0, 1}).set_requires_grad();
  Tensor y = Exp::apply(x);
  EXPECT_EQ(autograd::grad_fn(y)->name(), "ExpBackward");
  y.sum().backward();
  EXPECT_TRUE(close(x.grad(), exp(x.detach())));
}

TEST(CustomFunction, DifferentiatesTwice) {
  Tensor x = ramp({4}).set_requires_grad();
  EXPECT_NO_THROW(autograd::gradcheck([](const Tensors& in) { return Tensors{Exp::apply(in[0])}; }, {x}));
  EXPECT_NO_THROW(autograd::gradgradcheck([](const Tensors& in) { return Tensors{Exp::apply(in[0])}; }, {x}));
}

TEST(CustomFunction, SeveralResultsAndArgumentsOfAnyType) {
  Tensor x = ramp({3}).set_requires_grad(), y = ramp({3}, 1, 2).set_requires_grad();
  auto f = [](const Tensors& in) {
    auto [product, sum] = Scaled::apply(in[0], 2.5, std::string("mode"), in[1]);
    return Tensors{product, sum};
  };
  EXPECT_NO_THROW(autograd::gradcheck(f, {x, y}));
  EXPECT_NO_THROW(autograd::gradgradcheck(f, {x, y}));
  // Only one of the results is used: the other one's gradient is zeros.
  auto [product, sum] = Scaled::apply(x, 2.0, std::string(), y);
  sum.sum().backward();
  EXPECT_TRUE(close(x.grad(), ones({3}, kFloat64)));
}

struct Lists : Function<Lists> {
  static Tensor forward(FunctionContext&, const Tensors& list, const std::optional<Tensor>& extra) {
    Tensor total = list[0];
    for (size_t i = 1; i < list.size(); ++i) total = total + list[i];
    return extra ? total + *extra : total;
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    EXPECT_TRUE(ctx.needs_input_grad(0));
    EXPECT_FALSE(ctx.needs_input_grad(1));
    return {grads[0], grads[0] * 2, grads[0] * 3};
  }
};

TEST(CustomFunction, ListsOfTensors) {
  Tensor a = vec({1}).set_requires_grad(), b = vec({2}), c = vec({3}).set_requires_grad();
  Lists::apply(Tensors{a, b}, std::optional<Tensor>(c)).backward();
  EXPECT_EQ(values(a.grad()), (std::vector<double>{1}));
  EXPECT_FALSE(b.grad().defined());
  EXPECT_EQ(values(c.grad()), (std::vector<double>{3}));
}

// --- marks -----------------------------------------------------------------------------------------------

struct DoubleInPlace : Function<DoubleInPlace> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    x.mul_(2);
    ctx.mark_dirty({x});
    return x;
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0] * 2}; }
};

TEST(CustomFunction, DirtyInputsAreResults) {
  Tensor leaf = vec({1, 2}).set_requires_grad();
  Tensor x = leaf * 3, before = x;
  Tensor y = DoubleInPlace::apply(x);
  EXPECT_TRUE(y.is_same(before));
  EXPECT_EQ(x.version(), 1u);
  y.sum().backward();
  EXPECT_EQ(values(leaf.grad()), (std::vector<double>{6, 6}));
  EXPECT_ERROR(DoubleInPlace::apply(leaf),
               "a leaf Variable that requires grad is being used in an in-place operation");
}

TEST(CustomFunction, DirtyViewsWriteTheHistoryOfTheirBase) {
  Tensor leaf = vec({1, 2, 3}).set_requires_grad();
  Tensor base = leaf * 1;
  DoubleInPlace::apply(base.slice(0, 0, 2));
  base.sum().backward();
  EXPECT_EQ(values(leaf.grad()), (std::vector<double>{2, 2, 1}));
}

struct SortOf : Function<SortOf> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& x) {
    Tensor sign = x.gt(0).to(x.dtype());
    ctx.mark_non_differentiable({sign});
    return {x * 2, sign};
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0] * 2}; }
};

TEST(CustomFunction, NonDifferentiableResults) {
  Tensor x = vec({1, -1}).set_requires_grad();
  auto [doubled, sign] = SortOf::apply(x);
  EXPECT_FALSE(sign.requires_grad());
  EXPECT_TRUE(doubled.requires_grad());
}

struct PassOn : Function<PassOn> {
  static Tensor forward(FunctionContext&, const Tensor& x) { return x; }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0] * 7}; }
};

TEST(CustomFunction, AnInputReturnedAsItIsBecomesANewTensor) {
  Tensor x = vec({1}).set_requires_grad();
  Tensor y = PassOn::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_EQ(y.storage(), x.storage());
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{7}));
}

struct SeesUndefined : Function<SeesUndefined> {
  static std::tuple<Tensor, Tensor> forward(FunctionContext& ctx, const Tensor& x) {
    ctx.set_materialize_grads(false);
    return {x * 1, x * 2};
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) {
    EXPECT_FALSE(grads[1].defined());
    return {grads[0]};
  }
};

TEST(CustomFunction, GradsNeedNotBeMaterialized) {
  Tensor x = vec({1}).set_requires_grad();
  std::get<0>(SeesUndefined::apply(x)).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1}));
}

// --- errors ----------------------------------------------------------------------------------------------

struct WrongCount : Function<WrongCount> {
  static Tensor forward(FunctionContext&, const Tensor& x, double) { return x * 2; }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0]}; }
};
struct GradForNumber : Function<GradForNumber> {
  static Tensor forward(FunctionContext&, const Tensor& x, double) { return x * 2; }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0], grads[0]}; }
};
struct MarksForeign : Function<MarksForeign> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.mark_dirty({x * 1});
    return x * 2;
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return grads; }
};

TEST(CustomFunctionErrors, NameTheFunction) {
  Tensor x = vec({1}).set_requires_grad();
  EXPECT_ERROR(WrongCount::apply(x, 1.0).backward(),
               "WrongCountBackward returned an incorrect number of gradients (expected 2, got 1)");
  EXPECT_ERROR(GradForNumber::apply(x, 1.0).backward(), "corresponding forward input was not a tensor");
  EXPECT_ERROR(MarksForeign::apply(x), "a tensor that is not an input of the function was marked");
}

TEST(CustomFunctionErrors, SavedTensorsAreWatched) {
  Tensor x = vec({1, 2}).set_requires_grad(), y = Exp::apply(x);
  y.add_(1);
  EXPECT_ERROR(y.sum().backward(), "has been modified by an inplace operation");
  Tensor z = Exp::apply(x).sum();
  z.backward();
  EXPECT_ERROR(z.backward(), "Trying to backward through the graph a second time");
}

// --- every layer -----------------------------------------------------------------------------------------

TEST(CustomFunctionLayers, GradLevelsUseItsDerivativeAtEveryOrder) {
  auto f = [](const Tensor& x) { return FiveX::apply(x).sum(); };
  Tensor x = vec({1, 2});
  EXPECT_EQ(values(func::grad(f)(x)), (std::vector<double>{5, 10}));
  auto second = [&](const Tensor& t) { return func::grad(f)(t).sum(); };
  EXPECT_EQ(values(func::grad(second)(x)), (std::vector<double>{5, 5}));
  Tensor leaf = vec({1, 2}).set_requires_grad();
  func::grad(f)(leaf).sum().backward();
  EXPECT_EQ(values(leaf.grad()), (std::vector<double>{5, 5}));
}

TEST(CustomFunctionLayers, VmapKeepsItsDerivative) {
  Tensor x = ramp({3, 2});
  EXPECT_TRUE(close(func::vmap([](const Tensor& t) { return Exp::apply(t); })(x), exp(x)));
  EXPECT_TRUE(close(func::vmap(func::grad([](const Tensor& t) { return FiveX::apply(t).sum(); }))(x), 5 * x));
  // The derivative is taken outside of the batch.
  auto batched = [](const Tensor& t) {
    return func::vmap([](const Tensor& row) { return FiveX::apply(row); })(t).sum();
  };
  EXPECT_TRUE(close(func::grad(batched)(x), 5 * x));
  Tensor leaf = x.clone().set_requires_grad();
  batched(leaf).backward();
  EXPECT_TRUE(close(leaf.grad(), 5 * x));
}

TEST(CustomFunctionLayers, VmapSumsTheGradientOfWhatIsNotMapped) {
  Tensor x = ramp({3, 2}), y = ramp({2});
  auto f = [&](const Tensor& shared) {
    return func::vmap(
               [](const Tensor& row, const Tensor& same) {
                 return std::get<0>(Scaled::apply(row, 2.0, std::string(), same));
               },
               {.in_dims = {0, func::kNoDim}})(x, shared)
        .sum();
  };
  EXPECT_TRUE(close(func::grad(f)(y), 2 * x.sum({0})));
}

struct HasJvp : Function<HasJvp> {
  static Tensor forward(FunctionContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x;
  }
  static Tensors backward(FunctionContext& ctx, const Tensors& grads) {
    return {grads[0] * 2 * ctx.saved_tensors()[0]};
  }
  static Tensor jvp(FunctionContext& ctx, const Tensors& tangents) {
    return tangents[0] * 11 * ctx.saved_tensors()[0];
  }
};

TEST(CustomFunctionLayers, ForwardModeByItsRuleOrByTransposingBackward) {
  Tensor x = vec({1, 2}), v = vec({1, 10});
  auto by_rule = func::jvp([](const Tensor& t) { return HasJvp::apply(t); }, {x}, {v}).second[0];
  EXPECT_EQ(values(by_rule), (std::vector<double>{11, 220}));
  auto transposed = func::jvp([](const Tensor& t) { return FiveX::apply(t); }, {x}, {v}).second[0];
  EXPECT_EQ(values(transposed), (std::vector<double>{5, 100}));
  EXPECT_TRUE(close(func::jacfwd([](const Tensor& t) { return FiveX::apply(t); })(x),
                    func::jacrev([](const Tensor& t) { return FiveX::apply(t); })(x)));
}

// A backward may answer with the sizes of the result for an input that was broadcast: reverse mode sums,
// forward mode expands.
struct Plus : Function<Plus> {
  static Tensor forward(FunctionContext&, const Tensor& x, const Tensor& y) { return x + y; }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0], grads[0] * 3}; }
};

TEST(CustomFunctionLayers, BroadcastGradientsFitBothModes) {
  Tensor x = ramp({2, 3}), y = ramp({3});
  auto of_y = [&](const Tensor& t) { return Plus::apply(x, t); };
  EXPECT_TRUE(close(func::jacfwd(of_y)(y), func::jacrev(of_y)(y)));
}

TEST(CustomFunctionLayers, TheUpperRecorderSeesOneCallTheLowerOneItsParts) {
  Tensor x = vec({1}).set_requires_grad();
  CallList upper, lower;
  {
    RecorderScope scope(upper, Recorder::Position::kUpper);
    Exp::apply(x);
  }
  {
    RecorderScope scope(lower, Recorder::Position::kLower);
    Exp::apply(x);
  }
  EXPECT_THAT(upper.names(), ElementsAre("weft::custom_function"));
  EXPECT_EQ(upper.calls[0].args[0].to_object()->type_name(), "Exp");
  EXPECT_THAT(lower.names(), ElementsAre("aten::exp"));
}

struct UsesTransforms : Function<UsesTransforms> {
  static Tensor forward(FunctionContext&, const Tensor& x) {
    EXPECT_FALSE(is_grad_enabled());
    return func::vmap(func::grad([](const Tensor& t) { return t * t * t; }))(x);
  }
  static Tensors backward(FunctionContext&, const Tensors& grads) { return {grads[0]}; }
};

TEST(CustomFunctionLayers, ForwardMayUseTransforms) {
  Tensor x = vec({1, 2}).set_requires_grad();
  EXPECT_EQ(values(UsesTransforms::apply(x)), (std::vector<double>{3, 12}));
  EXPECT_TRUE(is_grad_enabled());
}

}  // namespace
}  // namespace weft
