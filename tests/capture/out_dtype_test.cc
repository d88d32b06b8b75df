// An operator whose result is of another type: eager, recorded, without data, functionalised, written and
// read.
#include "weft/func/out_dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/func/functionalize.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/io/graph_file.h"

namespace weft {
namespace {

using testing::expect_equal;
using ::testing::HasSubstr;

const Operator& mm_operator() { return operator_named("aten::mm"); }

Tensor int8_mm(const Tensor& a, const Tensor& b) { return func::out_dtype(mm_operator(), kInt32, a, b); }

Tensor bytes(std::initializer_list<int8_t> values, int64_t columns) {
  return from_data(std::vector<int8_t>(values)).reshape({-1, columns});
}

TEST(OutDtype, ComputesInTheWiderType) {
  // 127 * 127 does not fit into int8.
  Tensor a = bytes({127, -128, 3, 4}, 2), b = bytes({127, 1, 2, -128}, 2);
  Tensor result = int8_mm(a, b);
  EXPECT_EQ(result.dtype(), kInt32);
  expect_equal(result, mm(a.to(kInt32), b.to(kInt32)));
  const Operator& mul_tensor = operator_named("aten::mul.Tensor");
  // Computed in f32, to which f32 and int32 promote, and cast: 4.5 -> 4.
  Tensor rounded = func::out_dtype(mul_tensor, kInt32, full({1}, 1.5), full({1}, 3, kInt8));
  expect_equal(rounded, full({1}, 4, kInt32));
  EXPECT_EQ(func::out_dtype(operator_named("aten::mul.Scalar"), kFloat16, a, 2).dtype(), kFloat16);
  EXPECT_EQ(func::out_dtype(operator_named("aten::linear"), kInt32, a, b).dtype(), kInt32);
}

TEST(OutDtype, RefusesOtherOperators) {
  Tensor a = bytes({1, 2, 3, 4}, 2);
  EXPECT_ERROR(func::out_dtype(operator_named("aten::add_.Tensor"), kInt32, a, a),
               "must be a functional operator, but aten::add_.Tensor writes");
  EXPECT_ERROR(func::out_dtype(operator_named("aten::max.dim"), kInt32, a, 0),
               "must be an operator that gives a single tensor");
  EXPECT_ERROR(
      func::out_dtype(operator_named("aten::add.Tensor"), kInt32, a, a),
      "only these operators can have a result of another type: aten::linear, aten::mm, aten::conv2d, "
      "aten::convolution, aten::mul.Tensor, aten::mul.Scalar, aten::div.Tensor, aten::div.Scalar; got "
      "aten::add.Tensor");
  EXPECT_ERROR(call("higher_order::out_dtype", {Value(3), kInt32, Value::list({a, a})}),
               "its first argument must be an operator, but is an integer");
}

TEST(OutDtype, IsOneNode) {
  Tensor a = bytes({1, 2, 3, 4, 5, 6}, 3), b = bytes({1, 2, 3, 4, 5, 127}, 2);
  for (bool pre_dispatch : {false, true})
    for (CaptureMode mode : {CaptureMode::kReal, CaptureMode::kFake, CaptureMode::kSymbolic}) {
      GraphModule g = make_graph(int8_mm, {.mode = mode, .pre_dispatch = pre_dispatch})(a, b);
      EXPECT_EQ(g.code(), R"(


def forward(self, arg0_1, arg1_1):
    out_dtype = torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, arg0_1, arg1_1);  arg0_1 = arg1_1 = None
    return out_dtype
    )");
      EXPECT_THAT(g.graph().to_string(),
                  HasSubstr("call_function[target=torch.ops.higher_order.out_dtype](args = (aten.mm.default, "
                            "torch.int32, %arg0_1, %arg1_1), kwargs = {})"));
      expect_equal(g(a, b), int8_mm(a, b));
    }
  GraphModule symbolic = make_graph(int8_mm, {.mode = CaptureMode::kSymbolic})(a, b);
  expect_equal(symbolic(b, a), int8_mm(b, a));
}

TEST(OutDtype, TextAndFilesReadBack) {
  Tensor a = bytes({1, 2, 3, 4}, 2);
  GraphModule g = make_graph(int8_mm)(a, a);
  EXPECT_EQ(parse_code(g.code()).code(), g.code());
  EXPECT_EQ(quoted_text(parse_graph(quoted_text(g.graph()))), quoted_text(g.graph()));
  expect_equal(GraphModule(parse_code(g.code()))(a, a), int8_mm(a, a));
  expect_equal(parse_graph_module(graph_module_bytes(g))(a, a), int8_mm(a, a));
  EXPECT_ERROR(
      parse_code("def forward(self, x):\n    y = torch.ops.aten.mul.Tensor(x, torch.ops.aten.mmm.default)\n"
                 "    return y\n"),
      "expected a function: ");
}

TEST(OutDtype, SymbolicTraceKeepsIt) {
  GraphModule g = symbolic_trace([](const Tensor& x, const Tensor& y) { return int8_mm(x, y); });
  EXPECT_THAT(g.code(),
              HasSubstr("torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, "));
  Tensor a = bytes({1, 2, 3, 4}, 2);
  expect_equal(g(a, a), int8_mm(a, a));
}

TEST(OutDtype, IsFunctionalised) {
  auto f = [](const Tensor& x, const Tensor& y) {
    Tensor z = x + 2;
    z.add_(5);
    return int8_mm(z, y);
  };
  Tensor a = bytes({1, 2, 3, 4}, 2);
  GraphModule g = make_graph(func::functionalize(f))(a, a);
  EXPECT_THAT(g.code(),
              HasSubstr("torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, add_1, "));
  expect_equal(g(a, a), f(a, a));
}

TEST(OutDtype, BatchesAndHasNoGradient) {
  Tensor a = bytes({1, 2, 3, 4}, 2), batch = stack({a, a + 1, a * 20});
  Tensor rows = func::vmap([&](const Tensor& x) { return int8_mm(x, a); })(batch);
  for (int64_t i = 0; i < 3; ++i) expect_equal(rows.select(0, i), int8_mm(batch.select(0, i), a));
  Tensor w = randn({2, 2}).set_requires_grad();
  Tensor result = func::out_dtype(mm_operator(), kFloat64, w, w);
  EXPECT_TRUE(result.requires_grad());
  EXPECT_ERROR(result.sum().backward(), "Autograd not implemented for out_dtype");
}

}  // namespace
}  // namespace weft
