// The rows of TestExport about programs that are exported again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

struct InnerCounter : nn::Module {
  Tensor buf = buffer("buf", ones({1}));
  Tensor forward(const Tensor& x) {
    buf.add_(1);
    return x.sum() + buf.sum();
  }
  WEFT_ARGS(x)
};
struct OuterCounter : nn::Module {
  Tensor buf = buffer("buf", zeros({1}));
  InnerCounter bar = child("bar", InnerCounter());
  Tensor forward(const Tensor& x) {
    buf.add_(1);
    const Tensor inner = bar(x);
    bar.buf.add_(2);
    return inner.sum() + buf.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_retracable_ep) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = ones({5, 5}), longer = ones({7, 5});
    const ExportedProgram fixed = exports(exports(OuterCounter(), {x}).module(), {x});
    EXPECT_TRUE(close(only_tensor(fixed.module().call({x})), OuterCounter()(x)));

    const ExportOptions dynamic{.dynamic_shapes = DynamicShapes::by_position({{{0, Dim("dim0_x")}}})};
    const ExportedProgram program = exports(OuterCounter(), {x}, dynamic);
    EXPECT_ERROR(exports(program.module(), {x}).module().call({longer}),
                 "shape[0] to be equal to 5, but got 7");
    const ExportedProgram again = exports(program.module(), {x}, dynamic);
    EXPECT_TRUE(close(only_tensor(again.module().call({longer})), OuterCounter()(longer)));

    const ExportedProgram bounded =
        exports(OuterCounter(), {x}, {.dynamic_shapes = {{"x", {{0, Dim("dim0_x_v2", {.min = 3})}}}}});
    EXPECT_ERROR(exports(bounded.module(), {randn({2, 2})}),
                 "Expected input at *args[0].shape[0] to be >= 3, but got 2");
  });
}

struct CosineIfLong : nn::Module {
  Tensor forward(const Tensor& x) {
    if (x.size(0) > 4) return x.cos();
    return x.sin();
  }
  WEFT_ARGS(x)
};

size_t num_constraints(const GraphModule& module) {
  const Value* constraints = module.meta().find("input_shape_constraints");
  require(constraints != nullptr, "nothing is noted of the sizes");
  return constraints->elements().size();
}

TEST(TestExport, test_retrace_graph_level_meta_preservation) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = ones({7, 5});
    const Dim dim("dim0_x", {.min = 6});
    const ExportedProgram program = exports(CosineIfLong(), {x}, {.dynamic_shapes = {{"x", {{0, dim}}}}});
    const GraphModule stateful = program.module();
    EXPECT_EQ(num_constraints(stateful), 1u);
    const ExportedProgram again =
        exports(stateful, {x}, {.dynamic_shapes = DynamicShapes::by_position({{{0, dim}}})});
    EXPECT_EQ(num_constraints(again.graph_module()), 1u);
    const Tensor wanted = only_tensor(program.module().call({x}));
    EXPECT_TRUE(close(only_tensor(again.module().call({x})), wanted));
    const ExportedProgram fixed = exports(program.module(), {x});
    EXPECT_EQ(num_constraints(fixed.graph_module()), 0u);
    EXPECT_TRUE(close(only_tensor(fixed.module().call({x})), wanted));
  });
}

}  // namespace
}  // namespace weft
