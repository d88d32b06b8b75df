// Ports of TestTracer: the graph that runs for given inputs.
#include "seeds/support/check_trace.h"
#include "seeds/support/file_check.h"
#include "weft/capture/optimized.h"

namespace weft {
namespace {

using testing::expect_equal;
using testing::FileCheck;

std::string optimized_text(const TracedFunction& traced, const Tensor& x) {
  return script_text(traced.graph_for({x}));
}

TEST(TestTracer, test_canonicalize_tensor_iterator) {
  Tensor x = randn({4, 4});
  auto f = [](Tensor x) {
    x = x + 2;
    x = x - 4;
    x = x * 6;
    x = x / 8;
    return x;
  };
  TracedFunction traced = trace(f, x, {.arg_names = "x"});
  std::string text = optimized_text(traced, x);
  FileCheck().check_count(": int = prim::Constant", 5, true).run(text);
  EXPECT_EQ(text,
            "graph(%x : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu)):\n"
            "  %1 : int = prim::Constant[value=2]()\n"
            "  %2 : int = prim::Constant[value=1]()\n"
            "  %3 : int = prim::Constant[value=4]()\n"
            "  %4 : int = prim::Constant[value=6]()\n"
            "  %5 : int = prim::Constant[value=8]()\n"
            "  %6 : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::add(%x, %1, %2)\n"
            "  %7 : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::sub(%6, %3, %2)\n"
            "  %8 : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::mul(%7, %4)\n"
            "  %9 : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::div(%8, %5)\n"
            "  return (%9)\n");
  expect_equal(traced(x), f(x));
}

TEST(TestTracer, test_max_pool) {
  Tensor x = rand({20, 16, 10, 10});
  auto f = [](const Tensor& x) { return max_pool2d(x, {2, 2}) + 2; };
  TracedFunction traced = trace(f, x);
  FileCheck().check("aten::max_pool2d(").run(optimized_text(traced, x));
  FileCheck().check_not("with_indices").run(optimized_text(traced, x));
  expect_equal(traced(x), f(x));
}

}  // namespace
}  // namespace weft
