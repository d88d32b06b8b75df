// Ports of TestTracer: what the check of a trace finds, warnings, and recordings without writes.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "support/expect_error.h"
#include "weft/autograd/data.h"
#include "weft/nn/layers.h"
#include "weft/ops/conversions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::args;
using ::testing::Contains;
using testing::expect_equal;
using testing::expect_values;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::warnings_of;

// --- two runs that differ
// ------------------------------------------------------------------------------------

TEST(TestTracer, test_trace_checker_dot_data) {
  WarningCapture suppressed;
  auto foo = [](const Tensor& x) { return x + autograd::untracked_data(x); };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(foo, rand({3, 4}), {.check_inputs = {args({rand({3, 4})})}}),
                    "Tensor-valued Constant nodes differed in value across invocations");
}

TEST(TestTracer, test_trace_checker_control_flow) {
  WarningCapture suppressed;
  auto foo = [](Tensor x) {
    for (int64_t i = 0, n = x.size(0); i < n; ++i) x = neg(x);
    return x;
  };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(foo, randn({3, 4}), {.check_inputs = {randn({4, 4})}}),
                    "Graphs differed across invocations!");
}

TEST(TestTracer, test_trace_checker_memoization) {
  WarningCapture suppressed;
  auto foo = [cache = std::optional<Tensor>()](const Tensor& x) mutable {
    if (!cache) cache = neg(x);
    return x + *cache;
  };
  EXPECT_ERROR_TYPE(TracingCheckError, trace(foo, rand({3, 4}), {.check_inputs = {args({rand({3, 4})})}}),
                    "Graphs differed across invocations!");
}

constexpr const char* kMismatch =
    "TracerWarning: Output nr 1. of the traced function does not match the corresponding output of the "
    "Python "
    "function";

TEST(TestTracer, test_trace_checker_inplace_on_view) {
  auto foo = [](const Tensor& x) {
    x.view({-1}).add_(-x.view({-1}));
    return x;
  };
  EXPECT_THAT(warnings_of([&] {
                trace(foo, rand({3, 4}), {.check_inputs = {rand({5, 6})}, .force_outplace = true});
              }),
              Contains(StartsWith(kMismatch)));
}

TEST(TestTracer, test_trace_checker_dropout_train) {
  auto foo = [](const Tensor& x) { return dropout(x, 0.5, true); };
  auto run = [&] { trace(foo, rand({3, 4}), {.check_inputs = {rand({5, 6})}}); };
  EXPECT_THAT(warnings_of(run), Contains(StartsWith(kMismatch)));
  EXPECT_THAT(warnings_of(run), Contains(StartsWith("TracerWarning: Trace had nondeterministic nodes")));
}

TEST(TestTracer, test_trace_checker_dropout_notrain) {
  Tensor input = rand({3, 4});
  std::optional<TracedFunction> foo;
  EXPECT_THAT(warnings_of([&] {
                foo = trace([](const Tensor& x) { return dropout(x, 0.5, false); }, args({input}));
              }),
              IsEmpty());
  expect_equal((*foo)(input), input);
}

// --- values that leave tensors
// -------------------------------------------------------------------------------

TEST(TestTracer, test_trace_warn) {
  auto fn = [](const Tensor& x) {
    EXPECT_EQ(item<int64_t>(x), 1);
    Tensor y = x * 1;
    if (!is_true(y)) return x;
    std::vector<Tensor> q = {x, x * 4};
    Tensor z = q[static_cast<size_t>(int64_t(as_size(y)))];
    EXPECT_EQ(item<double>(z), 4);
    EXPECT_EQ(to_list(z), Value::list({4}));
    EXPECT_EQ(to_vector<int64_t>(z), std::vector<int64_t>{4});
    int rows = 0;
    for (const Tensor& row : ones({4, 4})) rows += static_cast<int>(row.dim());
    EXPECT_EQ(rows, 4);
    return z + 4;
  };
  std::vector<std::string> warnings = warnings_of([&] { trace(fn, from_data<int64_t>({1})); });
  ASSERT_EQ(warnings.size(), 6u);
  const char* kinds[] = {"a C++ integer", "a C++ boolean", "a C++ float", "a C++ list", "a C++ array"};
  for (size_t i = 0; i < 5; ++i)
    EXPECT_EQ(
        warnings[i],
        fmt::format("TracerWarning: Converting a tensor to {} might cause the trace to be incorrect. We "
                    "can't record the data flow of C++ values, so this value will be treated as a constant "
                    "in the future. This means that the trace might not generalize to other inputs!",
                    kinds[i]));
  EXPECT_EQ(
      warnings[5],
      "TracerWarning: Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of "
      "different shape won't change the number of iterations executed (and might lead to errors or "
      "silently give incorrect results).");
}

// --- without writes
// ------------------------------------------------------------------------------------------

TEST(TestTracer, test_force_outplace_check_fill) {
  auto f = [](const Tensor& x) { return empty(x.sizes()).fill_(7); };
  Tensor x = randn({10, 15});
  TracedFunction traced = trace(f, x, {.force_outplace = true});
  expect_equal(traced(x), f(x));
  EXPECT_THAT(traced.graph().to_string(), HasSubstr("full_like"));
}

TEST(TestTracer, test_force_outplace_check_zero) {
  auto f = [](const Tensor& x) { return empty(x.sizes()).zero_(); };
  Tensor x = randn({10, 15});
  TracedFunction traced = trace(f, x, {.force_outplace = true});
  expect_equal(traced(x), f(x));
  EXPECT_THAT(traced.graph().to_string(), HasSubstr("zeros_like"));
}

TEST(TestTracer, test_lhs_index_fails) {
  auto foo = [](const Tensor& x) {
    put_at(x, {0, 1}, 4);
    return x;
  };
  EXPECT_THAT(warnings_of([&] { trace(foo, rand({3, 4}), {.force_outplace = true}); }),
              Contains(::testing::AllOf(StartsWith("TracerWarning: There are "),
                                        HasSubstr("live references to the data region being modified"),
                                        HasSubstr("cause the trace to be incorrect"))));
}

TEST(TestTracer, test_inplace_warn) {
  auto foo = [](const Tensor& x) {
    x.view({-1}).add_(-x.view({-1}));
    return x;
  };
  EXPECT_THAT(warnings_of([&] { trace(foo, rand({3, 4}), {.force_outplace = true}); }),
              Contains(::testing::AllOf(StartsWith("TracerWarning: There are "),
                                        HasSubstr("cause the trace to be incorrect"))));
}

}  // namespace
}  // namespace weft
