// The memory of functional tensors: what it remembers of writes, and calls that change it as a whole.
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/recorded.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/data.h"
#include "weft/func/functionalize.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using func::FunctionalChanges;
using func::FunctionalPosition;
using testing::close;
using testing::ramp;
using testing::values;
using testing::vec;

Tensor functional(const Tensor& value) { return func::to_functional(value, FunctionalPosition::kLower); }

std::vector<std::string> below(FunctionRef<void()> f) {
  return testing::recorded(Recorder::Position::kLower, f);
}

// --- writes ----------------------------------------------------------------------------------------------

TEST(FunctionalChanges, AWriteThatAutogradFollows) {
  Tensor w = functional(ramp({3}));
  FunctionalChanges none = func::functional_changes(w);
  EXPECT_FALSE(none.has_data_mutation());
  EXPECT_FALSE(none.has_metadata_mutation());
  EXPECT_EQ(none.generation, 0u);
  w.select(0, 1).add_(1);
  FunctionalChanges changes = func::functional_changes(w);
  EXPECT_TRUE(changes.has_data_mutation());
  EXPECT_FALSE(changes.has_metadata_mutation());
  EXPECT_FALSE(changes.are_all_mutations_hidden_from_autograd());
  EXPECT_FALSE(changes.are_all_mutations_under_no_grad_or_inference_mode());
  EXPECT_FALSE(changes.are_all_mutations_untracked());
  EXPECT_EQ(changes.generation, 1u);
}

TEST(FunctionalChanges, NoGradAndInferenceMode) {
  Tensor w = functional(ramp({3}));
  {
    NoGrad no_grad;
    w.add_(1);
  }
  {
    InferenceMode inference;
    w.mul_(2);
  }
  FunctionalChanges changes = func::functional_changes(w);
  EXPECT_EQ(changes.writes, 2);
  EXPECT_EQ(changes.writes_under_no_grad, 2);
  EXPECT_EQ(changes.writes_in_inference_mode, 1);
  EXPECT_TRUE(changes.are_all_mutations_under_no_grad_or_inference_mode());
  EXPECT_FALSE(changes.are_all_mutations_hidden_from_autograd());
  w.add_(1);
  EXPECT_FALSE(func::functional_changes(w).are_all_mutations_under_no_grad_or_inference_mode());
}

TEST(FunctionalChanges, DetachedAliases) {
  Tensor w = functional(vec({1, 2, 3})).set_requires_grad();
  w.detach().select(0, 0).mul_(5);
  FunctionalChanges changes = func::functional_changes(w);
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{5, 2, 3}));
  EXPECT_EQ(changes.writes_to_detached, 1);
  EXPECT_TRUE(changes.are_all_mutations_untracked());
  EXPECT_FALSE(changes.are_all_mutations_under_no_grad_or_inference_mode());
  EXPECT_EQ(w.version(), 1u);
}

TEST(FunctionalChanges, UntrackedDataSharesMemoryAndHidesItsWrites) {
  for (auto position : {FunctionalPosition::kLower, FunctionalPosition::kUpper}) {
    Tensor w = func::to_functional(vec({1, 2, 3}), position);
    Tensor data = autograd::untracked_data(w);
    EXPECT_TRUE(func::is_functional(data));
    data.slice(0, 0, 2).add_(10);
    EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{11, 12, 3}));
    w.mul_(2);
    EXPECT_EQ(values(func::from_functional(data)), (std::vector<double>{22, 24, 6}));
    EXPECT_EQ(values(func::from_functional(data * 1)), (std::vector<double>{22, 24, 6}));
  }
  Tensor w = functional(vec({1, 2})).set_requires_grad(), data = autograd::untracked_data(w);
  EXPECT_FALSE(data.requires_grad());
  data.add_(1);
  EXPECT_EQ(w.version(), 0u);
  EXPECT_TRUE(func::functional_changes(w).are_all_mutations_hidden_from_autograd());
  EXPECT_TRUE(func::functional_changes(w).are_all_mutations_under_no_grad_or_inference_mode());
  {
    NoGrad no_grad;
    w.add_(1);
  }
  EXPECT_FALSE(func::functional_changes(w).are_all_mutations_hidden_from_autograd());
  EXPECT_TRUE(func::functional_changes(w).are_all_mutations_under_no_grad_or_inference_mode());
}

TEST(FunctionalChanges, AKernelCanHideItsWrite) {
  Tensor w = functional(ramp({3}));
  EXPECT_ERROR(func::mark_mutation_hidden_from_autograd(w), "has no write left");
  w.add_(1);
  func::mark_mutation_hidden_from_autograd(w);
  EXPECT_TRUE(func::functional_changes(w).are_all_mutations_hidden_from_autograd());
}

TEST(FunctionalChanges, FrozenMemoryRefusesWrites) {
  Tensor w = functional(vec({1, 2})), view = w.select(0, 0);
  func::freeze_functional(w);
  EXPECT_TRUE(func::functional_changes(view).frozen);
  auto names = below([&] {
    EXPECT_ERROR(w.add_(1), "cannot mutate tensors with frozen storage");
    EXPECT_ERROR(view.zero_(), "cannot mutate tensors with frozen storage");
    EXPECT_ERROR(exp_out(w, vec({1, 2})), "cannot mutate tensors with frozen storage");
    EXPECT_ERROR(resize_(w, {1}), "cannot mutate tensors with frozen storage");
  });
  EXPECT_TRUE(names.empty()) << ::testing::PrintToString(names);
  EXPECT_EQ(values(func::from_functional(w + 1)), (std::vector<double>{2, 3}));
}

// --- other memory ----------------------------------------------------------------------------------------

TEST(FunctionalMemory, SetIsNoWrite) {
  Tensor a = functional(vec({1, 2})), b = functional(vec({3, 4, 5}));
  set_(a, b);
  FunctionalChanges changes = func::functional_changes(a);
  EXPECT_TRUE(changes.was_storage_changed());
  EXPECT_TRUE(changes.has_metadata_mutation());
  EXPECT_FALSE(changes.has_data_mutation());
  EXPECT_FALSE(func::functional_changes(b).was_storage_changed());
}

TEST(FunctionalMemory, SetToAPartOfOtherMemory) {
  Tensor a = functional(vec({1, 2})), b = functional(vec({3, 4, 5, 6}));
  b.add_(1);
  set_(a, b, 1, {2}, {2});
  EXPECT_EQ(values(func::from_functional(a)), (std::vector<double>{5, 7}));
  a.zero_();
  EXPECT_EQ(values(func::from_functional(b)), (std::vector<double>{4, 0, 6, 0}));
  b.add_(1);
  EXPECT_EQ(values(func::from_functional(a)), (std::vector<double>{1, 1}));
  EXPECT_ERROR(set_(a, b, 1, {5}, {2}), "would make the memory of its source larger");
}

// Values of writes begin at offset 0, the program's tensors where they began.
TEST(FunctionalMemory, StridedViewsOfATensorWithAnOffset) {
  Tensor w = functional(vec({0, 1, 2, 3, 4}).slice(0, 2, 5));
  Tensor view = as_strided(w, {2}, {1}, 3);
  EXPECT_EQ(values(func::from_functional(view)), (std::vector<double>{3, 4}));
  w.mul_(10);
  EXPECT_EQ(values(func::from_functional(view)), (std::vector<double>{30, 40}));
  view.add_(1);
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{20, 31, 41}));
}

// What the caller's tensors look at afterwards, with and without functionalize.
TEST(FunctionalMemory, SetArgumentsLookAtTheSameMemory) {
  auto f = [](const func::Tensors& args) {
    Tensor old = args[0].slice(0, 0, 1);
    args[0].mul_(10);
    set_(args[0], args[1]);
    args[0].add_(1);
    return func::Tensors{old, args[0]};
  };
  auto run = [&](auto call) {
    Tensor x = vec({1, 2}), y = vec({3, 4, 5}), alias = x.slice(0, 0, 2);
    func::Tensors results = call(func::Tensors{x, y});
    EXPECT_EQ(values(alias), (std::vector<double>{10, 20}));
    EXPECT_EQ(values(y), (std::vector<double>{4, 5, 6}));
    EXPECT_EQ(x.storage(), y.storage());
    EXPECT_EQ(values(results[0]), (std::vector<double>{10}));
    EXPECT_EQ(results[0].storage(), alias.storage());
    EXPECT_TRUE(results[1].is_same(x));
  };
  run(f);
  run([&](const func::Tensors& args) { return func::functionalize(f)(args); });
}

TEST(FunctionalMemory, TwoArgumentsCanTradeMemory) {
  auto f = [](const func::Tensors& args) {
    Tensor first = args[0].slice(0, 0, 2);
    set_(args[0], args[1]);
    set_(args[1], first);
    args[1].add_(1);
    return func::Tensors{};
  };
  auto run = [&](auto call) {
    Tensor x = vec({1, 2}), y = vec({3, 4});
    const Ref<Storage> before = x.storage();
    call(func::Tensors{x, y});
    EXPECT_EQ(values(x), (std::vector<double>{3, 4}));
    EXPECT_EQ(values(y), (std::vector<double>{2, 3}));
    EXPECT_EQ(y.storage(), before);
  };
  run(f);
  run([&](const func::Tensors& args) { return func::functionalize(f)(args); });
}

// --- storages that are emptied ---------------------------------------------------------------------------

void resize_bytes(const Tensor& tensor, int64_t bytes) {
  call("inductor::resize_storage_bytes_", {tensor, bytes});
}

TEST(EmptiedStorage, ReadingIsAnError) {
  Tensor x = vec({1, 2, 3}), view = x.slice(0, 1, 3), data = autograd::untracked_data(x);
  resize_bytes(x, 0);
  EXPECT_EQ(x.storage()->bytes(), 0u);
  EXPECT_EQ(x.version(), 0u);
  EXPECT_EQ(describe(x).str(), "f64[3]");
  EXPECT_ERROR(x + 1, "f64[3] has no elements to read or write: its storage has 0 bytes");
  EXPECT_ERROR(view.sum(), "its storage has 0 bytes");
  EXPECT_ERROR(data.clone(), "its storage has 0 bytes");
  EXPECT_ERROR(x.add_(1), "its storage has 0 bytes");
  EXPECT_ERROR(x.copy_(vec({1, 2, 3})), "its storage has 0 bytes");
  EXPECT_ERROR(x.data<double>(), "its storage has 0 bytes");
  EXPECT_ERROR(matmul(ramp({2, 3}), x), "its storage has 0 bytes");
  EXPECT_EQ(x.to_string(), "tensor(..., size=(3,), dtype=torch.float64)");
  EXPECT_EQ(zeros_like(x).dim(), 1);
  EXPECT_EQ(describe(x.view({3, 1})).str(), "f64[3, 1]");
  EXPECT_ERROR(resize_bytes(x, 8), "cannot have one of 8");
  EXPECT_ERROR(resize_bytes(x, -1), "the new size is negative: -1");
  resize_bytes(x, 24);
  x.copy_(vec({4, 5, 6}));
  EXPECT_EQ(values(view), (std::vector<double>{5, 6}));
  EXPECT_ERROR(resize_bytes(x, 16), "cannot have one of 16");
}

TEST(EmptiedStorage, OfAParameterKeepsVersionAndHistory) {
  Tensor w = vec({1, 2}).set_requires_grad();
  Tensor y = w * w;
  resize_bytes(w, 0);
  EXPECT_TRUE(w.requires_grad());
  EXPECT_ERROR(y.sum().backward(), "its storage has 0 bytes");
  resize_bytes(w, 16);
  {
    NoGrad no_grad;
    autograd::untracked_data(w).copy_(vec({1, 2}));
  }
  (w * w).sum().backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{2, 4}));
}

TEST(EmptiedStorage, OfATensorWithoutMemory) {
  Tensor x = shape_only(ramp({3}));
  resize_bytes(x, 0);
  EXPECT_EQ(x.storage()->bytes(), 0u);
  EXPECT_EQ(describe(x + 1).str(), "f64[3]");
}

// As fully sharded training does with a parameter: filled, used, emptied.
TEST(EmptiedStorage, IsAnEventUnderFunctionalize) {
  Tensor w = functional(vec({1, 2})), view = w.select(0, 0);
  auto names = below([&] {
    resize_bytes(w, 0);
    resize_bytes(w, 16);
    w.copy_(functional(vec({5, 6})));
  });
  EXPECT_EQ(names, std::vector<std::string>{"aten::copy"});
  EXPECT_EQ(values(func::from_functional(view)), (std::vector<double>{5}));
  FunctionalChanges changes = func::functional_changes(w);
  EXPECT_TRUE(changes.was_storage_resized());
  EXPECT_EQ(changes.storage_resizes, 2);
  EXPECT_EQ(changes.storage_bytes_before.plain(), 16);
  EXPECT_EQ(changes.storage_bytes.plain(), 16);
  resize_bytes(w, 0);
  EXPECT_ERROR(w + 1, "its storage has 0 bytes");
  EXPECT_ERROR(view.mul_(2), "its storage has 0 bytes");
  EXPECT_EQ(describe(zeros_like(w)).str(), "f64[2]");
  EXPECT_ERROR(resize_bytes(functional(vec({1, 2})), 8), "a storage of 16 bytes cannot have 8");
}

TEST(EmptiedStorage, ArgumentsEndAsTheFunctionLeavesThem) {
  auto gather = [](const Tensor& t) {
    resize_bytes(t, 24);
    t.copy_(vec({1, 2, 3}));
    Tensor used = t * 2;
    return used;
  };
  auto use_and_free = [](const Tensor& t) {
    t.add_(1);
    Tensor used = t * 2;
    resize_bytes(t, 0);
    return used;
  };
  Tensor x = vec({0, 0, 0});
  resize_bytes(x, 0);
  EXPECT_EQ(values(func::functionalize(gather)(x)), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(values(func::functionalize(use_and_free)(x)), (std::vector<double>{4, 6, 8}));
  EXPECT_EQ(x.storage()->bytes(), 0u);
}

// --- no wrapper loses what it stands for -----------------------------------------------------------------

TEST(UntrackedData, OfAWrapperIsAWrapper) {
  Tensor x = ramp({3, 2});
  auto through_data = [](const Tensor& t) { return (t * autograd::untracked_data(t)).sum(); };
  auto plain = [](const Tensor& t) { return (t * t.detach()).sum(); };
  EXPECT_TRUE(close(func::vmap(through_data)(x), func::vmap(plain)(x)));
  EXPECT_TRUE(close(func::grad(through_data)(x), func::grad(plain)(x)));
  EXPECT_TRUE(close(func::vmap(func::grad(through_data))(x), func::vmap(func::grad(plain))(x)));
  EXPECT_TRUE(close(func::functionalize(through_data)(x), plain(x)));
  Tensor tangent = ones({3, 2}, kFloat64);
  auto [value, derivative] = func::jvp(through_data, {x}, {tangent});
  EXPECT_TRUE(close(derivative[0], x.sum()));
}

TEST(UntrackedData, WritesThroughItReachTheValue) {
  Tensor x = ramp({3, 2}), expected = x + 1;
  func::vmap([](const Tensor& t) {
    autograd::untracked_data(t).add_(1);
    return t * 1;
  })(x);
  EXPECT_TRUE(close(x, expected));
  EXPECT_EQ(x.version(), 0u);
}

TEST(UntrackedData, OfAnEndedLevelActsAsItsValue) {
  Tensor kept;
  func::vmap([&](const Tensor& t) {
    kept = autograd::untracked_data(t);
    return t * 1;
  })(ramp({2, 2}));
  EXPECT_TRUE(close(kept + 0, ramp({2, 2})));
}

struct Tagged : Extension {
  explicit Tagged(Tensor part) : part(std::move(part)) {}
  Tensor part;
  std::string type_name() const override { return "Tagged"; }
  std::vector<Tensor> inner_tensors() const override { return {part}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override { return make_ref<Tagged>(inner[0]); }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value result =
        dispatch::redispatch(op, unwrap_extensions<Tagged>(args, [](Tagged& t) { return t.part; }));
    return Value(make_extension(make_ref<Tagged>(result.to_tensor()), result.to_tensor()));
  }
};

TEST(UntrackedData, OfAnExtensionIsOneAroundTheSameMemory) {
  Tensor part = vec({1, 2}), x = make_extension(make_ref<Tagged>(part), part).set_requires_grad();
  Tensor data = autograd::untracked_data(x);
  ASSERT_NE(extension_of<Tagged>(data), nullptr);
  EXPECT_FALSE(data.requires_grad());
  data.add_(1);
  EXPECT_EQ(values(part), (std::vector<double>{2, 3}));
  EXPECT_EQ(x.version(), 0u);
  Tensor sum = data + x;
  EXPECT_EQ(values(extension_of<Tagged>(sum)->part), (std::vector<double>{4, 6}));
}

struct Opaque : TensorBox {};

TEST(UntrackedData, OfSomethingElseIsAnError) {
  Tensor odd = shape_only(vec({1}));
  odd.impl()->box = make_ref<Opaque>();
  EXPECT_ERROR(autograd::untracked_data(odd), "stands for other tensors in a way that has no second handle");
}

// A wrapper is never taken for a tensor with elements.
TEST(TensorsWithoutMemory, HaveNoElements) {
  Tensor w = functional(vec({1, 2}));
  EXPECT_ERROR(w.raw_data(), "it stands for a tensor without memory");
  EXPECT_ERROR(shape_only(vec({1})).raw_data(), "it stands for a tensor without memory");
  MaskScope below_all_layers(0);
  EXPECT_ERROR(w + 1, "it stands for a tensor without memory");
}

TEST(DetachInPlace, OnWrappers) {
  Tensor w = (functional(vec({1, 2})).set_requires_grad() * 2);
  w.detach_();
  EXPECT_FALSE(w.requires_grad());
  w.add_(1);
  EXPECT_EQ(values(func::from_functional(w)), (std::vector<double>{3, 5}));
  EXPECT_EQ(func::functional_changes(w).writes, 1);
  auto f = [](const Tensor& t) {
    Tensor y = t * 2;
    y.detach_();
    y.add_(1);
    return (y * t).sum();
  };
  Tensor x = ramp({3, 2});
  EXPECT_TRUE(close(func::grad(f)(x), x * 2 + 1));
  EXPECT_TRUE(close(func::vmap(func::grad(f))(x), x * 2 + 1));
  EXPECT_TRUE(close(func::functionalize(func::grad(f))(x), x * 2 + 1));
  EXPECT_TRUE(close(func::grad(func::functionalize(f))(x), x * 2 + 1));
}

}  // namespace
}  // namespace weft
