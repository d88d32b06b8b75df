// The operator table is complete and agrees with itself, with the schemas of ATen and with the C++ types that
// the schemas give. One loop over all operators; no list of names but exceptions with their reasons.
#include <fstream>
#include <unordered_set>

#include "ops/table_support.h"

namespace weft::table {
namespace {

TEST(Table, HasOperators) { EXPECT_GT(functional_operators().size(), 100u); }

TEST(Table, NamesAreUnique) {
  std::set<std::string_view> seen;
  for (const Operator* op : all_operators()) EXPECT_TRUE(seen.insert(op->name()).second) << op->name();
}

TEST(Table, SchemasAreAtens) {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/data/aten_schemas.txt");
  std::unordered_set<std::string> known;
  for (std::string line; std::getline(file, line);) known.insert(line);
  EXPECT_GT(known.size(), 3000u);
  for (const Operator* op : all_operators())
    EXPECT_TRUE(op->schema().ns != "aten" || known.contains(op->schema_text())) << op->schema_text();
}

TEST(Table, SchemasPrintAsTheyAreWritten) {
  for (const Operator* op : all_operators()) EXPECT_EQ(op->schema().to_string(), op->schema_text());
}

TEST(Table, FormsAreWhatTheirSchemasSay) {
  for (const Operator* op : all_operators()) {
    EXPECT_TRUE(op->form() != OpForm::kInplace || op->schema().is_inplace()) << op->name();
    EXPECT_TRUE(op->form() != OpForm::kOut || op->schema().is_out()) << op->name();
    EXPECT_EQ(&op->functional().def(), &op->def()) << op->name();
  }
}

std::string signature_name(const std::type_info* type) { return type ? type->name() : "none"; }

TEST(Table, KernelsHaveTheTypesThatSchemasGive) {
  for (const Operator* op : all_operators()) {
    const Function& kernel = op->kernel();
    ASSERT_TRUE(op->signature()) << op->name();
    EXPECT_TRUE(!kernel || *kernel.signature == *op->signature())
        << op->name() << ": its kernel is a " << signature_name(kernel.signature) << ", expected "
        << signature_name(op->signature());
    const Function& decompose = op->def().decompose;
    bool is_decomposed = decompose && op->form() == OpForm::kFunctional;
    EXPECT_TRUE(!is_decomposed || *decompose.signature == *op->signature())
        << op->name() << ": its decomposition is a " << signature_name(decompose.signature);
  }
}

TEST(Table, EveryFormHasAKernelOrAComposition) {
  for (const Operator* op : all_operators()) EXPECT_TRUE(op->kernel()) << op->name();
}

TEST(Table, AnOperatorHasKernelsOrAComposition) {
  for (const Operator* op : functional_operators()) {
    bool kernel(op->def().kernel.functional), composite(op->def().composite.functional);
    EXPECT_NE(kernel, composite) << op->name() << " has " << (kernel ? "both" : "neither");
  }
}

TEST(Table, EveryKernelHasAMetaFunction) {
  for (const Operator* op : functional_operators())
    EXPECT_TRUE(op->is_composite() || op->def().meta) << op->name() << " has no meta function";
}

TEST(Table, EveryKernelIsDifferentiableOrSaysThatItIsNot) {
  for (const Operator* op : functional_operators()) {
    bool has_rule(op->def().vjp);
    EXPECT_TRUE(op->is_composite() || has_rule || op->has(Traits::kNotDifferentiable))
        << op->name() << " has neither a vjp nor the trait kNotDifferentiable";
    EXPECT_FALSE(has_rule && op->has(Traits::kNotDifferentiable))
        << op->name() << " has a vjp that is never used";
    EXPECT_FALSE(has_rule && op->is_composite()) << op->name() << " is composite: its vjp is never used";
  }
}

TEST(Table, EveryKernelIsBatchableOrSaysThatItIsNot) {
  for (const Operator* op : functional_operators()) {
    bool has_rule = static_cast<bool>(op->def().batch);
    EXPECT_TRUE(op->is_composite() || has_rule || op->has(Traits::kNotBatchable))
        << op->name() << " has neither a batching rule nor the trait kNotBatchable";
    EXPECT_FALSE(has_rule && op->has(Traits::kNotBatchable))
        << op->name() << " has a batching rule that is never used";
  }
}

TEST(Table, EveryOperatorHasSamples) {
  for (const Operator* op : functional_operators()) {
    ASSERT_TRUE(op->def().samples) << op->name() << " has no samples";
    Samples samples = op->def().samples();
    EXPECT_FALSE(samples.empty()) << op->name();
    std::set<std::string> names;
    for (const Sample& sample : samples) {
      EXPECT_TRUE(names.insert(sample.name).second)
          << op->name() << " has two samples called " << sample.name;
      EXPECT_LE(sample.args.size(), op->schema().arguments.size()) << op->name() << "/" << sample.name;
    }
  }
}

TEST(Table, SamplesAreCallsThatWork) {
  expect_only(check_samples([](const Operator&) { return true; },
                            [](const Case& one, std::vector<std::string>&) {
                              GradModeScope no_grad(false);
                              call(*one.op, one.args());
                            }),
              {});
}

// What a vjp saves must be there to be saved.
TEST(Table, VjpsSaveTensorArgumentsAndResults) {
  for (const Operator* op : functional_operators()) {
    const Saves& saves = op->def().vjp.saves;
    const auto& kinds = op->info().is_tensor;
    for (uint32_t i = 0; i < 32; ++i) {
      bool is_tensor = i < kinds.size() && kinds[i];
      EXPECT_FALSE((saves.inputs >> i & 1) && !is_tensor)
          << op->name() << " saves argument " << i << ", which is no tensor";
      EXPECT_FALSE((saves.sizes >> i & 1) && !is_tensor)
          << op->name() << " saves sizes of argument " << i << ", which is no tensor";
      EXPECT_FALSE((saves.outputs >> i & 1) && i >= op->schema().returns.size() &&
                   !op->schema().returns.empty() && !op->schema().returns[0].type.is_list())
          << op->name() << " saves result " << i << ", which there is not";
    }
  }
}

TEST(Table, TraitsAgreeWithSchemas) {
  for (const Operator* op : functional_operators()) {
    const Schema& schema = op->schema();
    bool takes_tensors = false, takes_generator = false;
    for (const Argument& argument : schema.arguments) {
      takes_tensors |= argument.type.has_tensor();
      const Type& type = argument.type.is_optional() ? argument.type.element() : argument.type;
      takes_generator |= type.is(Type::Kind::kGenerator);
    }
    EXPECT_FALSE(op->has(Traits::kFactory) && takes_tensors)
        << op->name() << " is no factory: it takes tensors";
    EXPECT_TRUE(!schema.is_view() || op->has(Traits::kView) || op->has(Traits::kMayAlias) ||
                op->is_composite())
        << op->name() << " aliases its argument by its schema, and has neither kView nor kMayAlias";
    EXPECT_TRUE(!op->has(Traits::kView) || schema.is_view())
        << op->name() << " has kView, but its schema says that results are fresh";
    EXPECT_TRUE(!takes_generator || op->has(Traits::kRandom))
        << op->name() << " takes a generator and is not kRandom";
    EXPECT_TRUE(!op->def().inverse || op->has(Traits::kView))
        << op->name() << " has an inverse and is not kView";
  }
}

}  // namespace
}  // namespace weft::table
