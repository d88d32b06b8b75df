// Ports of TraceApi: how often, on what and in which mode the checker runs a program.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/ops/extension.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ramp;
using testing::warnings_of;

TEST(TraceApi, test_api_check_disabled_runs_once) {
  int calls = 0;
  auto f = [&](const Tensor& x) {
    ++calls;
    return x + 1;
  };
  auto calls_with = [&](TraceOptions options) {
    calls = 0;
    trace(f, args({ones({2})}), std::move(options));
    return calls;
  };
  EXPECT_EQ(calls_with({.check_trace = false}), 1);
  EXPECT_EQ(calls_with({}), 3);
  EXPECT_EQ(calls_with({.check_inputs = {args({ones({3})})}}), 3);
  EXPECT_EQ(calls_with({.check_inputs = {args({ones({3})}), ones({4}), ones({5})}}), 7);
  EXPECT_EQ(calls_with({.check_trace = false, .check_inputs = {ones({3}), ones({4})}}), 1);
}

TEST(TraceApi, test_api_check_default_inputs) {
  std::vector<std::vector<double>> seen;
  auto f = [&](const Tensor& x) {
    seen.push_back(testing::values(x));
    return x + 1;
  };
  trace(f, full({2}, 7.0));
  EXPECT_THAT(seen, ElementsAre(ElementsAre(7, 7), ElementsAre(7, 7), ElementsAre(7, 7)));
  seen.clear();
  trace(f, full({2}, 7.0), {.check_inputs = {full({1}, 3.0), args({full({1}, 4.0)})}});
  EXPECT_THAT(seen,
              ElementsAre(ElementsAre(7, 7), ElementsAre(3), ElementsAre(3), ElementsAre(4), ElementsAre(4)));
}

TEST(TraceApi, test_api_check_runs_without_grad) {
  std::vector<bool> requires_grad;
  auto f = [&](const Tensor& x) {
    EXPECT_TRUE(x.requires_grad());
    Tensor y = x * 2;
    requires_grad.push_back(y.requires_grad());
    return y;
  };
  Tensor x = ones({2}).set_requires_grad();
  trace(f, x);
  EXPECT_THAT(requires_grad, ElementsAre(true, false, false));
  EXPECT_TRUE((x * 2).requires_grad());
  {
    NoGrad no_grad;
    trace(f, x);
    EXPECT_FALSE((x * 2).requires_grad());
  }
  auto differs = [n = 0](const Tensor& t) mutable { return ++n == 1 ? t + 1 : t * 2; };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(differs, x), "Graphs differed");
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(TraceApi, test_api_check_does_not_touch_inputs) {
  auto f = [](const Tensor& x) { return x.add_(1) * 2; };
  Tensor x = zeros({2});
  TracedFunction traced = trace(f, x);
  expect_equal(x, ones({2}));
  expect_equal(traced(zeros({2})), full({2}, 2.0));
  Tensor y = zeros({2});
  trace(f, {}, {.example_kwarg_inputs = {{"x", y}}, .arg_names = "x"});
  expect_equal(y, ones({2}));
  Tensor given = zeros({2}), named = zeros({2});
  trace(f, zeros({2}), {.check_inputs = {given, args({given})}});
  expect_equal(given, zeros({2}));
  trace(
      f, {},
      {.check_inputs = {Dict{{"x", named}}}, .example_kwarg_inputs = {{"x", zeros({2})}}, .arg_names = "x"});
  expect_equal(named, zeros({2}));
}

// Notes the memory formats that it is asked to copy in; in an opaque layout there are none.
struct NotesFormats final : Extension {
  NotesFormats(Tensor t, std::string_view l) : inner_tensor(std::move(t)), own_layout(l) {}
  static Tensor of(const Tensor& inner, std::string_view layout) {
    return make_extension(make_ref<NotesFormats>(inner, layout), inner);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    if (op.schema().name == "clone") formats.push_back(args[1].to_string());
    Value result =
        call(op, unwrap_extensions<NotesFormats>(args, [](NotesFormats& own) { return own.inner_tensor; }));
    return result.is_tensor() ? Value(of(result.to_tensor(), own_layout)) : result;
  }
  std::string type_name() const override { return "NotesFormats"; }
  std::vector<Tensor> inner_tensors() const override { return {inner_tensor}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<NotesFormats>(inner[0], own_layout);
  }
  std::string_view layout() const override { return own_layout; }
  Tensor inner_tensor;
  std::string_view own_layout;
  static inline std::vector<std::string> formats;
};

TEST(TraceApi, test_api_check_clone_inputs) {
  Tensor transposed = ramp({2, 3}).transpose(0, 1), leaf = ones({2}).set_requires_grad(), plain = ones({1});
  leaf.set_grad(full({2}, 5.0));
  Value inputs = args({transposed, Value::list({leaf, {}}), Dict{{"a", args({plain})}}});
  Value copy = clone_inputs(inputs);
  expect_values(copy, inputs);
  EXPECT_EQ(tree_structure(copy), tree_structure(inputs));
  Tensor transposed_copy = copy.elements()[0].to_tensor();
  EXPECT_EQ(transposed_copy.stride(0), 1);
  EXPECT_EQ(transposed_copy.stride(1), 3);
  EXPECT_NE(transposed_copy.storage()->data(), transposed.storage()->data());
  EXPECT_FALSE(transposed_copy.requires_grad());
  const ValueList& list = copy.elements()[1].elements();
  Tensor leaf_copy = list[0].to_tensor();
  EXPECT_TRUE(leaf_copy.requires_grad());
  EXPECT_TRUE(leaf_copy.is_leaf());
  expect_equal(leaf_copy.grad(), full({2}, 5.0));
  EXPECT_FALSE(leaf_copy.grad().is_same(leaf.grad()));
  EXPECT_NE(leaf_copy.grad().storage()->data(), leaf.grad().storage()->data());
  EXPECT_TRUE(list[1].is_none());
  // What a computation gave is cut off from it.
  Tensor computed = clone_inputs(leaf * 2).to_tensor();
  EXPECT_TRUE(computed.is_leaf());
  EXPECT_TRUE(computed.requires_grad());
  EXPECT_USER_ERROR(clone_inputs(args({plain, 3})), "tensors were expected");
  // The format is kept where there is one to keep.
  Value extensions = args({NotesFormats::of(transposed, "strided"), NotesFormats::of(transposed, "blocked")});
  NotesFormats::formats.clear();
  ValueList copies = clone_inputs(extensions).elements();
  EXPECT_THAT(NotesFormats::formats, ElementsAre("preserve_format", "None"));
  for (const Value& own : copies)
    expect_equal(extension_of<NotesFormats>(own.tensor_ref())->inner_tensor, transposed);
  EXPECT_EQ(layout_of(copies[1].tensor_ref()), "blocked");
}

// What a function gives whose first result is multiplied by 1 + drift in the plain run only.
template <typename Drift>
std::vector<std::string> warnings_for(Drift drift, const Tensor& x, TraceOptions options = {}) {
  auto f = [&](const Tensor& t) {
    Tensor y = t * 2;
    return is_tracing() ? y : drift(y);
  };
  return warnings_of([&] { trace(f, x, std::move(options)); });
}

TEST(TraceApi, test_api_check_tolerance) {
  auto times = [](double factor) { return [factor](const Tensor& y) { return y * factor; }; };
  const char* words = "TracerWarning: Output nr 1. of the traced function does not match";
  Tensor x = full({3}, 10.0);
  EXPECT_THAT(warnings_for(times(1.001), x), ElementsAre(HasSubstr(words)));
  EXPECT_THAT(warnings_for(times(1.001), x, {.check_tolerance = 1e-2}), IsEmpty());
  EXPECT_THAT(warnings_for(times(1 + 2e-6), x), IsEmpty());
  // The absolute tolerance is that of the type: 1e-5 for single precision, 1e-7 for double.
  auto plus = [](double amount) { return [amount](const Tensor& y) { return y + amount; }; };
  EXPECT_THAT(warnings_for(plus(5e-6), zeros({3})), IsEmpty());
  EXPECT_THAT(warnings_for(plus(5e-6), zeros({3}, kFloat64)), ElementsAre(HasSubstr(words)));
  // Other types are compared as double precision.
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y.to(kFloat64); }, x), IsEmpty());
  // NaN is equal to NaN.
  Tensor nan = full({2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(warnings_for(times(1), nan), IsEmpty());
  EXPECT_THAT(warnings_for([](const Tensor& y) { return zeros_like(y); }, nan),
              ElementsAre(HasSubstr(words)));
}

TEST(TraceApi, test_api_check_complex_outputs) {
  Tensor x = ramp({3}).to(kComplex64) * Scalar(Complex<double>(1, 2));
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y + 0; }, x), IsEmpty());
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y + Scalar(Complex<double>(0, 1)); }, x),
              ElementsAre(HasSubstr("Output nr 1. of the traced function does not match")));
  // Only one of the two is complex.
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y.to(kComplex64); }, ones({2})), IsEmpty());
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y.to(kComplex64) + Scalar(Complex<double>(0, 1)); },
                           ones({2})),
              ElementsAre(HasSubstr("Output nr 1. of the traced function does not match")));
}

TEST(TraceApi, test_api_check_ignores_non_tensor_outputs) {
  // A single result is output 1.
  EXPECT_THAT(warnings_for([](const Tensor& y) { return y + 1; }, ones({2})),
              ElementsAre(HasSubstr("nr 1.")));
  // What is inside a container is not compared, and does not count.
  auto nested = [](const Tensor& x) {
    double wrong = is_tracing() ? 0 : 1;
    Tensor inner = is_tracing() ? x * 2 : x * 2 + wrong;
    return std::tuple(std::tuple(inner), x * 3);
  };
  EXPECT_THAT(warnings_of([&] { trace(nested, ones({2})); }), IsEmpty());
  auto second = [](const Tensor& x) {
    return std::tuple(std::tuple(x * 2), is_tracing() ? x * 3 : x * 3 + 1);
  };
  EXPECT_THAT(warnings_of([&] { trace(second, ones({2})); }), ElementsAre(HasSubstr("Output nr 1.")));
  // As many as both have.
  ValueFunction shorter = [](Args given) -> Value {
    Tensor x = given[0].to_tensor();
    return is_tracing() ? Value::tuple({x * 2, x * 3}) : Value::tuple({x * 2});
  };
  EXPECT_THAT(warnings_of([&] { trace(shorter, ones({2})); }), IsEmpty());
}

}  // namespace
}  // namespace weft
