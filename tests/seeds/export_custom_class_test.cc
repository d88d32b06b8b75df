// The row of TestExportCustomClass about objects of custom classes, which programs hold as constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/custom_class.h"
#include "weft/core/from_data.h"
#include "weft/export/lift_constants.h"
#include "weft/ops/define.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

constexpr const char* kPickleTester = "__torch__.torch.classes._TorchScriptTesting._PickleTester";

struct PickleTester : ValueObject {
  explicit PickleTester(std::vector<int64_t> v) : values(std::move(v)) {}
  std::string type_name() const override { return kPickleTester; }
  std::vector<int64_t> values;
};

Value make_pickle_tester(std::vector<int64_t> values) {
  return Value(Ref<ValueObject>(make_ref<PickleTester>(std::move(values))));
}

// torch.zeros(4, 4) plus the object's sum.
Value take_an_instance(Args args) {
  const auto* tester = args[0].object_as<PickleTester>();
  require(tester != nullptr, "take_an_instance: expected a {}, but got {}", kPickleTester,
          args[0].kind_name());
  int64_t sum = 0;
  for (const int64_t value : tester->values) sum += value;
  return zeros({4, 4}) + static_cast<double>(sum);
}

struct AddsItself : nn::Module {
  Tensor forward(const Tensor& x) { return x + x; }
  WEFT_ARGS(x)
};

TEST(TestExportCustomClass, test_lift_custom_obj) {
  register_custom_class<PickleTester>(
      kPickleTester, [](const PickleTester& tester) { return to_value(tester.values); },
      [](const Value& values) { return make_ref<PickleTester>(from_value<std::vector<int64_t>>(values)); });
  const Operator& take =
      define_operator("_TorchScriptTesting::take_an_instance(Any x) -> Tensor", {.kernel = take_an_instance});
  for_each_variant([&](const Exporter& exports) {
    ExportedProgram program = exports(AddsItself(), {zeros({4, 4})});
    const size_t constants_before = program.constants().size();
    for (Node& node : program.graph()) {
      if (node.target().op() != &operator_named("aten::add.Tensor")) continue;
      const auto scope = program.graph().inserting_before(node);
      program.graph_module().set_attribute("custom_obj", make_pickle_tester({3, 4}));
      Node& read = program.graph().get_attr("custom_obj");
      read.meta().modules = node.meta().modules;
      Node& call = program.graph().call(take, {value_of(read)});
      call.meta().value = ones({4, 4});
      call.meta().modules = node.meta().modules;
      call.meta().extra.set("torch_fn", "custom_op;torch.ops._TorchScriptTesting.take_an_instance.default");
      node.set_args({node.args()[0], value_of(call)});
    }
    program = lift_constants(program);
    ASSERT_EQ(program.objects().size(), 1u);
    EXPECT_EQ(program.objects()[0].first, "custom_obj");
    EXPECT_EQ(program.constants().size(), constants_before);
    const ExportedProgram loaded = testing::saved_and_loaded(program);
    size_t calls = 0;
    for (const Node& node : loaded.graph()) {
      if (node.target().op() != &take) continue;
      ++calls;
      const Node* argument = node_in(node.args().at(0));
      ASSERT_NE(argument, nullptr);
      EXPECT_EQ(argument->kind(), NodeKind::kPlaceholder);
    }
    EXPECT_EQ(calls, 1u);
    EXPECT_TRUE(testing::close(only_tensor(loaded.module().call({ones({4, 4})})), ones({4, 4}) * 8));
  });
}

}  // namespace
}  // namespace weft
