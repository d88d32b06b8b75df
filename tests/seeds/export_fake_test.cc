// The rows of TestExport about tensors without data: fake inputs, fake modules, exports inside of a fake
// mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/nn/layers.h"
#include "weft/ops/fake.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

FakeOptions with_symbols() { return {.shape_env = ShapeEnv::create()}; }

struct TakesList : nn::Module {
  Tensor param = parameter("param", randn({3, 2}));
  Tensor forward(const std::vector<Tensor>& x, const Tensor& y) { return x[0] + y - param; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_basic_non_strict_fake_tensor) {
  for_each_variant([](const Exporter& exports) {
    const TakesList module;
    ValueList args;
    {
      const FakeMode fake(with_symbols());
      args = {Value::list({empty({3, 2})}), empty({3, 2})};
    }
    const ExportedProgram program = exports(module, args);
    const Tensor x = randn({3, 2}), y = randn({3, 2});
    EXPECT_TRUE(close(only_tensor(program.module().call({Value::list({x}), y})), module(std::vector{x}, y)));
  });
}

struct WithState : nn::Module {
  Tensor foo = parameter("foo", randn({4, 4})), bar = buffer("bar", randn({4, 4}), /*persistent=*/false),
         baz = buffer("baz", randn({4, 4}));
  Tensor forward(const Tensor& x) { return foo + x + bar + baz; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_fake_weights) {
  for_each_variant([](const Exporter& exports) {
    std::optional<WithState> module;
    {
      const FakeMode fake(with_symbols());
      module.emplace();
    }
    ASSERT_TRUE(is_fake(module->foo));
    const ExportedProgram program = exports(*module, {randn({4, 4})});
    EXPECT_EQ(program.inputs().size(), 4u);
  });
}

struct AddsFoo : nn::Module {
  Tensor foo = parameter("foo", randn({4, 4}));
  Tensor forward(const Tensor& x) { return foo + x; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_fake_inputs) {
  for_each_variant([](const Exporter& exports) {
    const AddsFoo module;
    Tensor x;
    {
      const FakeMode fake(with_symbols());
      x = randn({4, 4});
    }
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({ones({4, 4})})), module(ones({4, 4}))));
  });
}

TEST(TestExport, test_trace_under_fake) {
  for_each_variant([](const Exporter& exports) {
    const FakeMode fake(with_symbols());
    const AddsFoo module;
    const Tensor x = randn({4, 4});
    const ExportedProgram program = exports(module, {x});
    EXPECT_EQ(program.inputs().size(), 2u);
  });
}

struct OneLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  Tensor forward(const Tensor& x) { return linear(x); }
  WEFT_ARGS(x)
};

// Whether all that nodes note is fake and on this device.
void expect_fakes_on(const ExportedProgram& program, const Device& device) {
  size_t tensors = 0;
  for (const Node& node : program.graph()) {
    if (!node.meta_or_null() || !node.meta_or_null()->value.is_tensor()) continue;
    const Tensor& noted = node.meta_or_null()->value.tensor_ref();
    EXPECT_EQ(noted.device(), device) << node.line();
    EXPECT_TRUE(is_fake(noted)) << node.line();
    ++tensors;
  }
  EXPECT_GE(tensors, 4u);
}

void expect_exports_on(const Exporter& exports, const Device& device, bool requires_grad) {
  const FakeMode fake;
  OneLinear module;
  module.to(device);
  module.requires_grad(requires_grad);
  const Tensor x = rand({5, 2, 2}, std::nullopt, std::nullopt, device);
  ASSERT_EQ(module.linear.weight.device(), device);
  const Tensor wanted = module(x);
  EXPECT_EQ(wanted.device(), device);
  for (const bool decomposes : {false, true}) {
    ExportedProgram program = exports(module, {x});
    if (decomposes) program = program.run_decompositions();
    const Tensor got = only_tensor(program.module().call({x}));
    EXPECT_EQ(describe_sizes(got.sizes()).str(), describe_sizes(wanted.sizes()).str());
    expect_fakes_on(program, device);
  }
}

// Not saved and loaded: what comes from a file has values, and is none of the mode's.
void expect_exports_on(const Device& device, bool requires_grad) {
  using testing::ExportVariant;
  for (const ExportVariant variant :
       {ExportVariant::kPlain, ExportVariant::kRetraced, ExportVariant::kPreDispatchDecomposed,
        ExportVariant::kTrainingDecomposed})
    expect_exports_on(Exporter(variant), device, requires_grad);
}

TEST(TestExport, test_export_with_fake_tensor_inputs) { expect_exports_on(kMeta, true); }
TEST(TestExport, test_export_with_fake_tensor_inputs_on_cuda_devices) {
  expect_exports_on(Device("sim:1"), false);
}

}  // namespace
}  // namespace weft
