// Fakes are what their real tensors are, but for data: geometry, types, flags, histories, and who shares
// memory with whom.
#include "weft/ops/fake_converter.h"

#include "ops/table_support.h"
#include "support/expect_error.h"
#include "weft/autograd/autograd.h"
#include "weft/core/view_step.h"
#include "weft/models/resnet.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft::table {
namespace {

int64_t number_of(const SymInt& value) {
  return value.is_symbolic() ? std::get<int64_t>(*value.env()->hint(value.expr())) : value.plain();
}

std::string geometry_text(SymIntSpan list) {
  std::string text;
  for (const SymInt& entry : list) text += fmt::format("{} ", number_of(entry));
  return text;
}

// All that must be the same of a tensor and its fake.
std::string facts_of(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  constexpr uint32_t kBits = tensor_flag::kConjugate | tensor_flag::kNegative | tensor_flag::kWrappedNumber |
                             tensor_flag::kInference | layer::kExtension | layer::kAutograd;
  std::string text = fmt::format(
      "{} on {} sizes {}strides {}offset {} flags {:x} version {} requires_grad {} leaf {} view {}",
      dtype_name(t.dtype()), t.device().to_string(), geometry_text(impl.sizes()),
      geometry_text(impl.strides()), number_of(impl.storage_offset()), impl.flags() & kBits, t.version(),
      t.requires_grad(), t.is_leaf(), t.is_view());
  if (Extension* extension = extension_of(t))
    for (const Tensor& inner : extension->inner_tensors()) text += "\n    inner " + facts_of(inner);
  return text;
}

std::string steps_text(const Tensor& t) {
  std::string text;
  for (const ViewStep* step = t.impl()->view.get(); step; step = step->previous.get()) {
    text += fmt::format("{}#{}(", step->op->name(), step->output);
    for (const Value& arg : step->args) text += arg.to_string() + ", ";
    text += fmt::format(") creation {}; ", static_cast<int>(step->creation));
  }
  return text;
}

// What differs between tensors and their fakes.
std::vector<std::string> differences(const std::vector<Tensor>& real, const std::vector<Tensor>& fake,
                                     bool compares_steps) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < real.size(); ++i) {
    if (!is_fake(fake[i])) texts.push_back(fmt::format("{} is not fake", i));
    if (facts_of(real[i]) != facts_of(fake[i]))
      texts.push_back(fmt::format("\n  real: {}\n  fake: {}", facts_of(real[i]), facts_of(fake[i])));
    if (compares_steps && steps_text(real[i]) != steps_text(fake[i]))
      texts.push_back(fmt::format("\n  real: {}\n  fake: {}", steps_text(real[i]), steps_text(fake[i])));
    for (size_t j = 0; j < real.size(); ++j) {
      if (real[i].is_same(real[j]) != fake[i].is_same(fake[j]))
        texts.push_back(fmt::format("{} and {}: other identities", i, j));
      if ((real[i].storage() == real[j].storage()) != (fake[i].storage() == fake[j].storage()))
        texts.push_back(fmt::format("{} and {}: share memory in one world only", i, j));
      if (real[i].is_view() &&
          real[i].impl()->view->base.is_same(real[j]) != fake[i].impl()->view->base.is_same(fake[j]))
        texts.push_back(fmt::format("{} and {}: base in one world only", i, j));
    }
  }
  return texts;
}

std::vector<Tensor> converted(FakeConverter& converter, const std::vector<Tensor>& real) {
  std::vector<Tensor> fake;
  for (size_t i = 0; i < real.size(); ++i) fake.push_back(converter.convert(real[i], fmt::format("x{}", i)));
  return fake;
}

// The arguments of a sample, each also as a view, transposed, with an offset, requiring a gradient and as the
// result of an operator.
std::vector<Tensor> with_relatives(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) {
    all.push_back(t);
    if (!t.defined() || extension_of(t) || (t.flags() & tensor_flag::kWrappedNumber)) continue;
    all.push_back(t.alias());
    if (t.dim() > 0 && t.size(0) > 1) all.push_back(t.narrow(0, 1, t.size(0) - 1));
    if (t.dim() > 1) all.push_back(t.transpose(0, -1));
    if (!is_floating(t.dtype()) && !is_complex(t.dtype())) continue;
    Tensor leaf = t.detach().clone().set_requires_grad();
    all.push_back(leaf);
    all.push_back(leaf.alias());
    all.push_back(leaf * 2);
    all.push_back((leaf * 2).flatten());
    GradModeScope off(false);
    all.push_back(leaf.flatten());
  }
  return all;
}

bool every_operator(const Operator&) { return true; }

TEST(FakeConverterTest, AFurtherFakeIsATensorOfItsOwnOverTheSameMemory) {
  for (const Tensor& real : with_relatives({randn({3, 4})})) {
    auto converter = make_ref<FakeConverter>();
    const Tensor first = converter->convert(real), again = converter->convert_again(real);
    EXPECT_FALSE(again.is_same(first));
    EXPECT_EQ(again.storage(), first.storage());
    EXPECT_EQ(facts_of(again), facts_of(real));
    EXPECT_TRUE(converter->convert(real).is_same(first));
  }
}

TEST(FakeConverterTest, FakesOfSamplesAreWhatTheirRealTensorsAre) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const std::vector<Tensor> real = with_relatives(tensors_in(one.args()));
    auto converter = make_ref<FakeConverter>();
    for (std::string& text : differences(real, converted(*converter, real), true)) texts.push_back(text);
  };
  expect_only(check_samples(every_operator, check), {});
}

TEST(FakeConverterTest, SymbolicFakesOfSamplesAreSoAtTheirHintsWithoutGuards) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const std::vector<Tensor> real = with_relatives(tensors_in(one.args()));
    Ref<ShapeEnv> env = ShapeEnv::create();
    auto converter = make_ref<FakeConverter>(env);
    for (std::string& text : differences(real, converted(*converter, real), false)) texts.push_back(text);
    if (!env->guards().empty()) texts.push_back("a guard: " + env->guards()[0].condition->to_string());
  };
  expect_only(check_samples(every_operator, check), {});
}

TEST(FakeConverterTest, FakesOfModelsAreWhatTheirParametersAre) {
  for (const models::ResNet& model :
       {models::resnet18(), models::resnet34(), models::resnet50(), models::resnext50_32x4d()}) {
    std::vector<Tensor> real;
    for (const auto& [name, tensor] : model.named_parameters()) real.push_back(tensor);
    for (const auto& [name, tensor] : model.named_buffers()) real.push_back(tensor);
    real.push_back(real[0].flatten());
    auto converter = make_ref<FakeConverter>();
    EXPECT_TRUE(differences(real, converted(*converter, real), true).empty());
  }
}

TEST(FakeConverterTest, OneTensorHasOneFake) {
  auto converter = make_ref<FakeConverter>(ShapeEnv::create());
  Tensor x = zeros({4, 3});
  const Tensor fake = converter->convert(x, "x");
  EXPECT_TRUE(converter->convert(x, "y").is_same(fake));
  // As a part of the program it is another tensor: of these sizes only, in the same memory.
  const Tensor constant = converter->convert_constant(x);
  EXPECT_FALSE(constant.is_same(fake));
  EXPECT_FALSE(constant.is_symbolic());
  EXPECT_EQ(constant.storage(), fake.storage());
}

// --- sizes -----------------------------------------------------------------------------------------------

TEST(FakeConverterTest, EveryDimFollowsItsRule) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto converter = make_ref<FakeConverter>(env);
  const sym::DimPolicy kinds[] = {sym::DimPolicy::kStatic, sym::DimPolicy::kDuck, sym::DimPolicy::kDynamic,
                                  sym::DimPolicy::kUnbacked};
  FakeRequest request(sym::Source("x"));
  for (sym::DimPolicy kind : kinds) request.dims.push_back({.policy = kind});
  request.dims.push_back({.policy = sym::DimPolicy::kDynamic, .range = sym::ValueRange{3, 9}});
  const Tensor fake = converter->convert(zeros({4, 4, 4, 4, 4, 4}), request);
  EXPECT_EQ(describe(fake).str(), "f32[4, s0, s1, u0, s2, s0]");
  EXPECT_EQ(env->find_symbol("s2")->declared.to_string(), "[3, 9]");
  EXPECT_TRUE(env->find_symbol("u0")->size_like);
  EXPECT_EQ(env->find_symbol("s0")->sources[1].guard_text(), "L['x'].size()[5]");
  EXPECT_ERROR(converter->convert(zeros({2}), FakeRequest(sym::Source("y"), {{}, {}})),
               "y: 2 rules for the sizes of f32[2]");
  EXPECT_ERROR(
      converter->convert(zeros({2}), FakeRequest(sym::Source("y"), {{.range = sym::ValueRange{3, 9}}})),
      "y.size(0): the example size 2 is outside of the declared range [3, 9]");
}

TEST(FakeConverterTest, StridesAndOffsetsThatSizesDoNotTellAreSymbols) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto converter = make_ref<FakeConverter>(env);
  const Tensor part = zeros({6, 8}).narrow(0, 2, 4).narrow(1, 0, 5);
  const Tensor fake = converter->convert(part, "x");
  const sym::Symbol* stride = env->symbol_of(fake.stride(0).expr());
  ASSERT_TRUE(stride);
  EXPECT_EQ(stride->sources[0].guard_text(), "L['x'].stride()[0]");
  EXPECT_EQ(env->symbol_of(fake.storage_offset().expr())->sources[0].guard_text(), "L['x'].storage_offset()");
  EXPECT_EQ(fake.stride(1).plain(), 1);
  // A transposed matrix needs none: its strides are its sizes.
  const Tensor transposed = converter->convert(zeros({6, 8}).t(), "y");
  EXPECT_TRUE(transposed.stride(1).same_as(transposed.size(0)));
}

// --- extensions ------------------------------------------------------------------------------------------

struct Scaled : Extension {
  Scaled(Tensor a, Tensor b, int64_t factor) : a(std::move(a)), b(std::move(b)), factor(factor) {}
  Tensor a, b;
  int64_t factor;

  static Tensor make(const Tensor& a, const Tensor& b, int64_t factor) {
    return make_extension(make_ref<Scaled>(a, b, factor), a);
  }
  std::string type_name() const override { return "Scaled"; }
  std::vector<Tensor> inner_tensors() const override { return {a, b}; }
  std::vector<std::string> inner_names() const override { return {"a", "b"}; }
  Value context_value() const override { return factor; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<Scaled>(inner[0], inner[1], factor);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    Value first = dispatch::redispatch(op, unwrap_extensions<Scaled>(args, [](Scaled& t) { return t.a; }));
    Value second = dispatch::redispatch(op, unwrap_extensions<Scaled>(args, [](Scaled& t) { return t.b; }));
    return make(first.to_tensor(), second.to_tensor(), factor);
  }
};

TEST(FakeConverterTest, AnExtensionIsFakeInside) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  auto converter = make_ref<FakeConverter>(env);
  const Tensor a = ones({3, 5}), nested = Scaled::make(Scaled::make(a, a * 2, 7), a.transpose(0, 1).t(), 8);
  const Tensor real[] = {nested, a};
  nested.set_requires_grad();
  const Tensor x = converter->convert(nested, "x"), plain = converter->convert(a, "y");
  EXPECT_TRUE(differences({real[0], real[1]}, {x, plain}, true).empty());
  EXPECT_TRUE(is_fake(x));
  const Scaled& outer = *extension_of<Scaled>(x);
  const Scaled& inner = *extension_of<Scaled>(outer.inner("a"));
  EXPECT_TRUE(inner.inner("a").is_same(plain));
  EXPECT_EQ(inner.inner("a").storage(), outer.inner("b").storage());
  EXPECT_EQ(outer.context<int64_t>(), 8);
  EXPECT_EQ(inner.context<int64_t>(), 7);
  EXPECT_ERROR(outer.inner("c"), "Scaled has no inner tensor 'c'; it has a, b");
  // Each place that shares a symbol is known.
  std::string sources;
  for (const sym::Source& source : env->symbol_of(x.size(0).expr())->sources)
    sources += source.to_string() + " ";
  EXPECT_EQ(sources.substr(0, 43), "x.size(0) x.a.size(0) x.a.a.size(0) x.a.b.s");

  FakeMode mode(converter, false);
  const Tensor y = x * x;
  EXPECT_TRUE(is_fake(y));
  EXPECT_EQ(describe(extension_of<Scaled>(extension_of<Scaled>(y)->a)->b).str(), "f32[s0, s1]");
}

TEST(FakeConverterTest, AnExtensionTakenApartIsMadeAgain) {
  const Tensor x = Scaled::make(ones({2, 3}), zeros({2, 3}), 5);
  FlatExtension flat = flatten_extension(x);
  EXPECT_EQ(flat.to_string(), "Scaled(a, b; 5)");
  EXPECT_TRUE(flat.same_metadata(flatten_extension(unflatten_extension(flat))));
  flat.tensors = {zeros({2, 3}), zeros({2, 3})};
  const Tensor other = unflatten_extension(flat);
  EXPECT_TRUE(extension_of<Scaled>(other)->a.is_same(flat.tensors[0]));
  EXPECT_FALSE(flat.same_metadata(flatten_extension(Scaled::make(ones({2, 3}), zeros({2, 3}), 6))));
  EXPECT_FALSE(flat.same_metadata(flatten_extension(Scaled::make(ones({3, 2}), zeros({3, 2}), 5))));
  EXPECT_ERROR(flatten_extension(zeros({2})), "flatten_extension: f32[2] is no extension");
}

// --- modes -----------------------------------------------------------------------------------------------

TEST(FakeConverterTest, AModeThatWasLeftIsEnteredAgain) {
  const Tensor x = ones({2, 3}).set_requires_grad();
  Ref<FakeConverter> converter;
  Tensor fake, sum;
  {
    FakeMode mode({.shape_env = ShapeEnv::create()});
    converter = mode.converter();
    fake = mode.fake_of(x, "x");
    sum = fake + 1;
  }
  EXPECT_EQ(FakeMode::current(), nullptr);
  EXPECT_FALSE(is_fake(ones({2})));
  {
    FakeMode mode(converter, false);
    EXPECT_TRUE(mode.fake_of(x, "z").is_same(fake));
    EXPECT_EQ(describe(sum * fake).str(), "f32[s0, s1]");
    EXPECT_EQ(mode.options().shape_env, converter->shape_env());
  }
}

TEST(FakeConverterTest, MaskedLayersHideTheMode) {
  FakeMode mode;
  ASSERT_EQ(FakeMode::current(), &mode);
  MaskScope kernels(0);
  EXPECT_EQ(FakeMode::current(), nullptr);
  EXPECT_FALSE(is_fake(ones({2})));
}

}  // namespace
}  // namespace weft::table
