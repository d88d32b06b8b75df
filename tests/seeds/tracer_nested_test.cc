// Ports of TestTracer and TraceApi: nested tensors in traces.
#include <gmock/gmock.h>

#include "seeds/support/check_trace.h"
#include "weft/graph/script_view.h"
#include "weft/ops/indexing.h"
#include "weft/ops/nested.h"

namespace weft {
namespace {

using testing::args;
using testing::warnings_of;

void expect_same_components(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(is_nested(got));
  ASSERT_TRUE(is_nested(wanted));
  std::vector<Tensor> own = got.unbind(), goal = wanted.unbind();
  ASSERT_EQ(own.size(), goal.size());
  for (size_t i = 0; i < own.size(); ++i) testing::expect_equal(own[i], goal[i]);
}

// Upstream's helper is a scripted function (`lengths.tolist()`, `values.split(lengths)`): what a trace of it
// would hold are the lengths of one run. Here it is an operator, which a trace has as one step.
Tensor nested_cosines(const Tensor& x, const Tensor& offsets) {
  Tensor lengths = offsets.slice(0, 1) - offsets.slice(0, 0, -1);
  return nested_from_lengths(x, lengths).cos();
}

TEST(TestTracerParts, test_trace_with_nested_strided_tensor_output) {
  Tensor x = rand({5, 4}), offsets = from_data<int64_t>({0, 2, 5});
  Tensor reference = nested_cosines(x, offsets);
  std::optional<TracedFunction> traced;
  EXPECT_THAT(warnings_of([&] { traced = trace(nested_cosines, args({x, offsets})); }), ::testing::IsEmpty());
  expect_same_components((*traced)(x, offsets), reference);
  Tensor x2 = rand({8, 4}), offsets2 = from_data<int64_t>({0, 2, 4, 8});
  Tensor three = (*traced)(x2, offsets2);
  expect_same_components(three, nested_cosines(x2, offsets2));
  EXPECT_EQ(nested_sizes(three), (std::vector<std::vector<int64_t>>{{2, 4}, {2, 4}, {4, 4}}));
  expect_same_components(testing::saved_and_loaded(traced->graph_module())(x2, offsets2), three);
  // How many components there are is no part of the trace.
  EXPECT_THAT(script_text(traced->graph_module()),
              ::testing::HasSubstr(" : Tensor = weft::nested_from_lengths(%"));
}

TEST(NestedInputs, OfATraceLeaveNoSizesInItsFile) {
  Tensor x = nested_tensor({rand({2}), rand({3})});
  TracedFunction traced = trace([](const Tensor& t) { return t.cos(); }, args({x}));
  expect_same_components(testing::saved_and_loaded(traced.graph_module())(x), x.cos());
}

TEST(TraceApi, test_api_check_nested_outputs) {
  Tensor a = rand({2, 4}), b = rand({3, 4});
  auto plain = [](const Tensor& x, const Tensor& y) { return nested_tensor({x, y}) * 2; };
  EXPECT_THAT(warnings_of([&] { trace(plain, args({a, b})); }), ::testing::IsEmpty());

  // One component differs between the trace and a plain run.
  auto differs = [](const Tensor& x, const Tensor& y) {
    return nested_tensor({x, is_tracing() ? y : y + 1});
  };
  std::vector<std::string> words = warnings_of([&] { trace(differs, args({a, b})); });
  ASSERT_EQ(words.size(), 1u);
  EXPECT_THAT(words[0],
              ::testing::HasSubstr("Output nr 1. of the traced function does not match the "
                                   "corresponding output of the Python function. Detailed error:\n"
                                   "Component 1 of the nested tensors: Tensor-likes are not close!"));

  auto dense = [](const Tensor& x, const Tensor& y) {
    return is_tracing() ? nested_tensor({x, x}) * y : stack({x, x}) * y;
  };
  words = warnings_of([&] { trace(dense, args({a, full({}, 2.0)})); });
  ASSERT_EQ(words.size(), 1u);
  EXPECT_THAT(words[0], ::testing::HasSubstr("Nested tensor mismatch"));
}

}  // namespace
}  // namespace weft
