// The rows of TestExport about what programs compute of their sizes, and what they ask of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "seeds/support/file_check.h"
#include "support/tensors.h"
#include "weft/graph/interpreter.h"
#include "weft/nn/functional.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::FileCheck;
using testing::for_each_variant;
using testing::only_tensor;

struct CropsMiddle : nn::Module {
  Tensor forward(const Tensor& image, int64_t crop_height, int64_t crop_width) {
    const SymInt top = sym_round((image.size(1) - crop_height) / 2.0);
    const SymInt left = sym_round((image.size(2) - crop_width) / 2.0);
    return slice(slice(image, 1, top, top + crop_height), 2, left, left + crop_width);
  }
  WEFT_ARGS(image, crop_height, crop_width)
};

// An expected failure, as it is for PyTorch: a middle that begins before the image is another program. The
// program itself is no function: calls go through `module()`.
TEST(TestExport, test_crop_like) {
  static_assert(!std::is_invocable_v<ExportedProgram, const ValueList&>);
  for_each_variant([](const Exporter& exports) {
    const ShapeSpec image = {{0, std::nullopt}, {1, Dim("height")}, {2, Dim("width")}};
    const auto run = [&] {
      exports(CropsMiddle(), {rand({3, 512, 512}), 150, 150},
              {.dynamic_shapes = {{"image", image}, {"crop_height", {}}, {"crop_width", {}}}});
    };
    EXPECT_ERROR_TYPE(ConstraintViolationError, run(), "(height, width)!");
  });
}

struct Pads : nn::Module {
  bool batch_first;
  explicit Pads(bool first) : batch_first(first) {}
  Tensor forward(const Tensor& x) { return pad_sequence({x}, batch_first); }
  WEFT_ARGS(x)
};
struct PadsThree : nn::Module {
  bool batch_first;
  explicit PadsThree(bool first) : batch_first(first) {}
  Tensor forward(const Tensor& x, const Tensor& y, const Tensor& z) {
    return pad_sequence({x, y, z}, batch_first);
  }
  WEFT_ARGS(x, y, z)
};

TEST(TestExport, test_pad_sequence) {
  for_each_variant([](const Exporter& exports) {
    const Dim batch("batch_size");
    for (const bool batch_first : {false, true}) {
      const Tensor x = randn({3, 2});
      const ExportedProgram one = exports(Pads(batch_first), {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
      EXPECT_TRUE(close(only_tensor(one.module().call({x})), Pads(batch_first)(x)));
      const Tensor a = randn({5, 2}), b = randn({4, 2}), c = randn({3, 2});
      const ExportedProgram three =
          exports(PadsThree(batch_first), {a, b, c},
                  {.dynamic_shapes = {{"x", {{0, batch}}}, {"y", {{0, Dim("y")}}}, {"z", {{0, Dim("z")}}}}});
      EXPECT_TRUE(close(only_tensor(three.module().call({a, b, c})), PadsThree(batch_first)(a, b, c)));
      // The longest may be any of them.
      EXPECT_TRUE(close(only_tensor(three.module().call({c, b, a})), PadsThree(batch_first)(c, b, a)));
    }
  });
}

struct BySquareRoot : nn::Module {
  Tensor forward(const Tensor& x) { return x / Scalar(sqrt(sym_float(x.size(0)))); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_sym_sqrt) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program =
        exports(BySquareRoot(), {ones({16, 4})}, {.dynamic_shapes = {{"x", {{0, Dim("dim")}}}}});
    // A pass that changes nothing: what runs the graph node by node.
    ValueList noted;
    for (const Node* placeholder : program.graph().placeholders())
      noted.push_back(placeholder->meta_or_null()->value);
    Interpreter(program.graph_module()).run(noted);
    FileCheck().check_count("torch._sym_sqrt", 1, true).run(program.graph_module().code());
    EXPECT_TRUE(close(only_tensor(program.module().call({ones({9, 4})})), ones({9, 4}) / 3));
  });
}

struct ViewThenSoftmax : nn::Module {
  Tensor forward(const Tensor& x) { return softmax(x.view({x.size(1), -1}), 0); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_reshape_view_helper) {
  for_each_variant([](const Exporter& exports) {
    ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}};
    options.config = ExportConfig{.allow_complex_guards_as_runtime_asserts = true};
    GraphModule module = exports(ViewThenSoftmax(), {rand({1024, 20, 16})}, options).module();
    EXPECT_ERROR(module.call({randn({20, 20, 16})}), "Runtime assertion failed for expression Ne(s0, 20)");
    EXPECT_ERROR(module.call({randn({400, 20, 16})}),
                 "Runtime assertion failed for expression Ne(Mod(s0, 20), 0)");
    const Tensor x = randn({42, 20, 16});
    EXPECT_TRUE(close(only_tensor(module.call({x})), ViewThenSoftmax()(x), 1e-5, 1e-5));
  });
}

struct RelatesSizes : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    const SymInt n = x.size(0), m = y.size(0);
    if (n == m) return {x + y, x};
    if (n == pow(m, 3)) return {x + 2, y + 3};
    if (pow(n, 2) == m * 3) return {x * 2.0, y * 3.0};
    return {x, y};
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_allow_explicit_guards_as_runtime_asserts) {
  for_each_variant([](const Exporter& exports) {
    const Dim dx("dx", {.min = 4}), dy("dy", {.min = 4});
    ExportOptions options{.dynamic_shapes = {{"x", ShapeSpec::each({dx})}, {"y", ShapeSpec::each({dy})}}};
    options.config = ExportConfig{.allow_complex_guards_as_runtime_asserts = true};
    const ValueList args = {randn({6}), randn({12})};
    GraphModule module = exports(RelatesSizes(), args, options).module();
    const ValueList results = tree_leaves(module.call({randn({9}), randn({27})}));
    EXPECT_EQ(describe_sizes(results[0].to_tensor().sizes()).str(), "[9]");
    EXPECT_EQ(describe_sizes(results[1].to_tensor().sizes()).str(), "[27]");
    EXPECT_ERROR(module.call({randn({4}), randn({4})}), "Runtime assertion failed for expression Ne(s0, s1)");
    EXPECT_ERROR(module.call({randn({64}), randn({4})}),
                 "Runtime assertion failed for expression Ne(s0, s1**3)");
    EXPECT_ERROR(module.call({randn({10}), randn({9})}),
                 "Runtime assertion failed for expression Eq(s0**2, 3*s1)");

    options.config->do_not_emit_runtime_asserts = true;
    const ExportConfigScope scope(*options.config);
    const ExportedProgram silent = exports(RelatesSizes(), args, options).run_decompositions();
    FileCheck().check_not("_assert_scalar").run(silent.graph_module().code());
  });
}

}  // namespace
}  // namespace weft
