// Ports of TraceApi: results whose elements are not simply there, and the words of exportability.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/export/trace_report.h"
#include "weft/nn/layers.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {
namespace {

using testing::args;
using ::testing::ElementsAre;
using testing::expect_equal;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::vec;
using testing::warnings_of;

// Runs every operator on dense forms, and packs what comes again: the layout inside is no matter of
// the operators.
struct Packed : Extension {
  virtual Tensor unpacked() const = 0;
  virtual Tensor packed(const Tensor& dense) const = 0;

  std::optional<Value> handle(const Operator& op, Args args) override {
    ++calls;
    Value result = op.kernel().boxed(unwrap_extensions<Packed>(args, [](Packed& p) { return p.unpacked(); }));
    return result.is_tensor() && keeps_packing(result.tensor_ref()) ? packed(result.to_tensor()) : result;
  }
  virtual bool keeps_packing(const Tensor& result) const { return result.dtype() == kFloat32; }
  static inline int calls = 0;
};

// Whole numbers of steps of one size.
struct Quantized final : Packed {
  Quantized(Tensor s, double step_size) : steps(std::move(s)), step(step_size) {}
  Tensor unpacked() const override { return steps.to(kFloat32) * step; }
  Tensor packed(const Tensor& dense) const override {
    return make_extension(make_ref<Quantized>((dense / step).to(kInt8), step), dense);
  }
  std::string type_name() const override { return "Quantized"; }
  std::vector<Tensor> inner_tensors() const override { return {steps}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<Quantized>(inner[0], step);
  }
  std::optional<Tensor> to_dense() const override { return unpacked(); }
  Tensor steps;
  double step;
};

// Elements in the order of blocks of two columns.
struct Blocked final : Packed {
  explicit Blocked(Tensor b) : blocks(std::move(b)) {}
  static Tensor of(const Tensor& dense) {
    Tensor blocks = dense.view({dense.size(0), dense.size(1).plain() / 2, 2}).permute({1, 0, 2}).contiguous();
    return make_extension(make_ref<Blocked>(blocks), dense);
  }
  Tensor unpacked() const override {
    return blocks.permute({1, 0, 2}).contiguous().view({blocks.size(1), blocks.size(0).plain() * 2});
  }
  Tensor packed(const Tensor& dense) const override { return of(dense); }
  bool keeps_packing(const Tensor& result) const override { return result.dim() == 2; }
  std::string type_name() const override { return "Blocked"; }
  std::vector<Tensor> inner_tensors() const override { return {blocks}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override { return make_ref<Blocked>(inner[0]); }
  std::string_view layout() const override { return "blocked"; }
  std::optional<Tensor> to_dense() const override { return unpacked(); }
  Tensor blocks;
};

// An ordinary tensor inside, and no dense form.
struct Plain final : Packed {
  explicit Plain(Tensor t) : tensor(std::move(t)) {}
  Tensor unpacked() const override { return tensor; }
  Tensor packed(const Tensor& dense) const override { return make_extension(make_ref<Plain>(dense), dense); }
  bool keeps_packing(const Tensor&) const override { return false; }
  std::string type_name() const override { return "Plain"; }
  std::vector<Tensor> inner_tensors() const override { return {tensor}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override { return make_ref<Plain>(inner[0]); }
  Tensor tensor;
};

Tensor quantized(const Tensor& dense, double step) { return Quantized({}, step).packed(dense); }

TEST(TraceApi, test_api_check_quantized_and_opaque_outputs) {
  Tensor dense = from_data<float>({0.5, -1, 1.5, 2}).view({2, 2});
  const std::vector<Tensor> inputs = {quantized(dense, 0.5), Blocked::of(dense)};
  for (const Tensor& x : inputs) {
    const char* type = extension_of(x)->type_name() == "Quantized" ? "Quantized" : "Blocked";
    expect_equal(dense_form(x), dense);
    auto same = [](const Tensor& t) { return relu(t) + t; };
    std::optional<TracedFunction> traced;
    EXPECT_THAT(warnings_of([&] { traced = trace(same, x); }), IsEmpty()) << type;
    Tensor result = traced->call({x}).to_tensor();
    EXPECT_EQ(extension_of(result)->type_name(), type);
    expect_equal(dense_form(result), relu(dense) + dense);
    // What differs is shown by its dense elements.
    auto differs = [](const Tensor& t) { return is_tracing() ? t + t : t + t + t; };
    EXPECT_THAT(warnings_of([&] { trace(differs, x); }),
                ElementsAre(::testing::AllOf(HasSubstr(
                    "Output nr 1. of the traced function does not match the corresponding output of "
                    "the Python function. Detailed error:\nTensor-likes are not close!\n\n"
                    "Mismatched elements: 4 / 4 (100.0%)\n"
                    "Greatest absolute difference: 2.0 at index (1, 1)"))))
        << type;
    // Packed against dense is no difference either, where the elements are the same.
    auto unpacks = [](const Tensor& t) { return is_tracing() ? t + t : dense_form(t + t); };
    EXPECT_THAT(warnings_of([&] { trace(unpacks, x); }), IsEmpty()) << type;
  }
  // An extension inside of another one.
  Tensor nested = make_extension(make_ref<Quantized>(Blocked::of(dense * 2), 0.5), dense);
  expect_equal(dense_form(nested), dense);
  EXPECT_EQ(dense_form(dense).impl(), dense.impl());
  Tensor plain = make_extension(make_ref<Plain>(dense), dense);
  EXPECT_EQ(dense_form(plain).impl(), plain.impl());
  EXPECT_EQ(layout_of(dense), "strided");
  EXPECT_EQ(layout_of(inputs[0]), "strided");
  EXPECT_EQ(layout_of(inputs[1]), "blocked");
  // One without a dense form answers for the comparison itself.
  Packed::calls = 0;
  EXPECT_THAT(warnings_of([&] { trace([&](const Tensor& t) { return t * plain.detach(); }, dense); }),
              IsEmpty());
  EXPECT_GT(Packed::calls, 0);
}

// --- exportability ---------------------------------------------------------------------------------------

TEST(TraceApi, test_api_export_type_and_outcome_names) {
  EXPECT_EQ(to_string(ExportType::kDirectExport), "DIRECT_EXPORT");
  EXPECT_EQ(to_string(ExportType::kTraceAndExport), "TRACE_AND_EXPORT");
  EXPECT_EQ(to_string(ExportType::kSourceToSource), "SOURCE_TO_SOURCE");
  EXPECT_EQ(to_string(ExportOutcome::kSuccess), "SUCCESS");
  EXPECT_EQ(to_string(ExportOutcome::kFailedToExport), "FAILED_TO_EXPORT");
  EXPECT_EQ(to_string(ExportOutcome::kFailedToRun), "FAILED_TO_RUN");
  EXPECT_EQ(to_string(ExportOutcome::kAccuracyError), "ACCURACY_ERROR");
}

TEST(TraceApi, test_api_analyze_trace_versus_export_result) {
  auto agrees = trace_agrees_with_export;
  Tensor x = from_data<float>({1, 2, 3, 4}).view({2, 2}), far = x + 1;
  Tensor blocked = Blocked::of(x), fake = shape_only(x);
  EXPECT_TRUE(agrees(x, x.clone()));
  EXPECT_TRUE(agrees(args({x, Value::list({far, Dict{{"a", 3}}})}),
                     args({x.clone(), Value::list({far.clone(), Dict{{"a", 3}}})})));
  // Layouts.
  EXPECT_FALSE(agrees(x, blocked));
  EXPECT_FALSE(agrees(blocked, x));
  EXPECT_TRUE(agrees(blocked, Blocked::of(far)));
  EXPECT_TRUE(agrees(args({blocked, x}), args({blocked, far})));  // at once: what comes after does not count
  EXPECT_FALSE(agrees(args({x, blocked}), args({far, blocked})));
  // Kinds.
  EXPECT_FALSE(agrees(x, 1));
  EXPECT_FALSE(agrees(1, x));
  EXPECT_FALSE(agrees(1, 1.0));
  EXPECT_FALSE(agrees(x, fake));
  EXPECT_FALSE(agrees(fake, x));
  EXPECT_FALSE(agrees(x, quantized(x, 0.5)));
  EXPECT_TRUE(agrees(fake, shape_only(far)));
  EXPECT_TRUE(agrees(args({fake, x}), args({fake, far})));
  // Tensors.
  EXPECT_FALSE(agrees(x, x.to(kFloat64)));
  EXPECT_FALSE(agrees(x, far));
  EXPECT_FALSE(agrees(args({x, x}), args({x, far})));
  EXPECT_TRUE(agrees(x, x * (1 + 5e-6)));
  EXPECT_FALSE(agrees(x, x * (1 + 5e-5)));
  EXPECT_FALSE(agrees(zeros({2}), full({2}, 1e-7)));
  EXPECT_TRUE(agrees(zeros({2}), full({2}, 1e-9)));
  EXPECT_FALSE(agrees(vec({NAN}), vec({NAN})));
  EXPECT_FALSE(agrees(x, x.view({4})));
  // Others.
  EXPECT_TRUE(agrees(args({x, 3, "words"}), args({x, 3, "words"})));
  EXPECT_FALSE(agrees(args({x, 3}), args({x, 4})));
  EXPECT_FALSE(agrees(args({x, "words"}), args({x, "word"})));
  EXPECT_TRUE(agrees(args({x, x}), args({x})));  // leaf by leaf, as far as there are two
}

std::vector<std::string> outcomes_of(const TraceReport& report) {
  std::vector<std::string> all;
  for (const TraceReport::Entry& entry : report.entries) {
    EXPECT_EQ(entry.api, "trace");
    all.push_back(std::string(to_string(entry.type)) + " " + std::string(to_string(entry.outcome)));
  }
  return all;
}

TEST(TraceApi, test_api_exportability_report) {
  nn::Linear linear(4, 2);
  const Tensor x = randn({3, 4});
  const TraceReport fine = trace_report(linear, {x});
  EXPECT_THAT(outcomes_of(fine),
              ElementsAre("DIRECT_EXPORT SUCCESS", "TRACE_AND_EXPORT SUCCESS", "SOURCE_TO_SOURCE SUCCESS"));
  for (const TraceReport::Entry& entry : fine.entries) EXPECT_EQ(entry.text, "succeeded");
  EXPECT_THAT(fine.to_string(), HasSubstr("trace: DIRECT_EXPORT: SUCCESS: succeeded\n"));
  // What is traced already is not exported itself.
  EXPECT_THAT(outcomes_of(trace_report(trace(linear, x), {x})),
              ElementsAre("TRACE_AND_EXPORT SUCCESS", "SOURCE_TO_SOURCE SUCCESS"));
  // A branch on a value: a trace takes the one of its inputs.
  auto branches = [](const Tensor& t) { return t.sum().item().to_double() > 0 ? t * 2 : t - 1; };
  const Tensor inputs = ones({2}), before = inputs.clone();
  TraceReport branching;
  warnings_of([&] { branching = trace_report(branches, {inputs}); });
  EXPECT_THAT(outcomes_of(branching), ElementsAre("DIRECT_EXPORT FAILED_TO_EXPORT",
                                                  "TRACE_AND_EXPORT SUCCESS", "SOURCE_TO_SOURCE SUCCESS"));
  EXPECT_NE(branching.entries[0].text, "succeeded");
  expect_equal(inputs, before);
  // Another answer each time.
  auto draws = [](const Tensor& t) { return t + rand_like(t); };
  TraceReport drawing;
  warnings_of([&] { drawing = trace_report(draws, {inputs}); });
  EXPECT_THAT(outcomes_of(drawing),
              ElementsAre("DIRECT_EXPORT ACCURACY_ERROR", "TRACE_AND_EXPORT ACCURACY_ERROR",
                          "SOURCE_TO_SOURCE ACCURACY_ERROR"));
  EXPECT_EQ(drawing.entries[0].text, "accuracy error");
  // What is asserted of data is only known in a run. The trace and its two checks ask for less.
  int calls = 0;
  auto asserts = [&](const Tensor& t) {
    const SymInt n = t.sum().item().to_sym_int();
    check(n >= (++calls > 3 ? 7 : 0), "at least seven");
    return t * n;
  };
  TraceReport failing;
  warnings_of([&] { failing = trace_report(asserts, {full({2}, 3, kInt64)}); });
  ASSERT_EQ(calls, 4);
  EXPECT_EQ(failing.entries[0].outcome, ExportOutcome::kFailedToRun) << failing.to_string();
  EXPECT_THAT(failing.entries[0].text, HasSubstr("Invalid value range for 6"));
}

}  // namespace
}  // namespace weft
