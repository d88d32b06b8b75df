// The rows of TestExport about how sizes are declared: for trees of arguments, by tensor, by position; what a
// program does with other sizes than the example's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/functional.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using testing::close;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

// What the placeholders of a program's graph note.
std::vector<Value> noted_inputs(const ExportedProgram& program) {
  std::vector<Value> noted;
  for (const Node* placeholder : program.graph().placeholders())
    noted.push_back(placeholder->meta_or_null() ? placeholder->meta_or_null()->value : Value());
  return noted;
}

void expect_same_results(const Value& got, const Value& wanted, double tolerance = 1e-5) {
  const ValueList left = tree_leaves(got), right = tree_leaves(wanted);
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i)
    EXPECT_TRUE(close(left[i].to_tensor(), right[i].to_tensor(), tolerance, tolerance));
}

struct BranchOnRows : nn::Module {
  Tensor forward(const Tensor& x) {
    if (x.size(0) == 4) return x.cos();
    return x.sin();
  }
  WEFT_ARGS(x)
};

TEST(TestDynamismExpression, test_export_assume_static_by_default) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = randn({4, 5});
    const ExportedProgram program = exports(BranchOnRows(), {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), x.cos()));
    EXPECT_EQ(program.graph_module().code().find("sin"), std::string::npos);
  });
}

struct ConvThenPool : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(3, 32, 3, {.padding = 1}));
  Tensor forward(const Tensor& x, const Tensor& y) {
    Tensor a = conv(x);
    a.add_(y);
    return max_pool2d(relu(a), {3, 3});
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_conv_dynamic) {
  const ConvThenPool module;
  const ValueList args = {empty({2, 3, 256, 256}), empty({2, 32, 256, 256})};
  struct Sample {
    Tensor x, y, wanted;
  };
  std::vector<Sample> samples;
  for (const int64_t batch : {17, 15}) {
    Sample sample{randn({batch, 3, 256, 256}), randn({batch, 32, 256, 256}), {}};
    sample.wanted = module(sample.x, sample.y);
    samples.push_back(std::move(sample));
  }
  auto check = [&](GraphModule exported) {
    for (const Sample& sample : samples)
      EXPECT_TRUE(allclose(only_tensor(exported.call({sample.x, sample.y})), sample.wanted));
  };
  const ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("batch")}}}, {"y", {{0, Dim("batch")}}}}};
  for_each_variant([&](const Exporter& exports) { check(exports(module, args, options).module()); });
  check(capture_pre_autograd_graph(module, args, options));
}

struct NestedArguments : nn::Module {
  Tensor u = buffer("u", ones({1})), v = buffer("v", ones({1}));
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const std::vector<Tensor>& ys,
                                     const std::map<std::string, Tensor>& zs, const Tensor& c) {
    Tensor y = ys[0] + ys[1] + zs.at("a") + zs.at("b");
    v.add_(3);
    Tensor w = u - v;
    if (x.size(0) < 3 && c.size(0) != 4) return {x + w, x + y};
    return {x - w, x - y};
  }
  WEFT_ARGS(x, ys, zs, c)
};

TEST(TestExport, test_non_strict_dynamic_shapes) {
  auto inputs = [](int64_t x, int64_t others, int64_t c) {
    auto two = [&] { return std::pair(zeros({others}), ones({others})); };
    const auto [y0, y1] = two();
    const auto [za, zb] = two();
    return ValueList{ones({x}), Value::list({y0, y1}),
                     to_value(std::map<std::string, Tensor>{{"a", za}, {"b", zb}}), ones({c})};
  };
  const Dim dim("dim", {.min = 3});
  const ShapeSpec rows = {{0, dim}};
  const ExportOptions options{
      .dynamic_shapes = DynamicShapes::by_position(
          {rows, ShapeSpec::list({rows, rows}), ShapeSpec::dict({{"a", rows}, {"b", rows}}), {}})};
  for_each_variant([&](const Exporter& exports) {
    GraphModule module = exports(NestedArguments(), inputs(5, 5, 4), options).module();
    EXPECT_ERROR_TYPE(AssertionError, module.call(inputs(6, 5, 4)),
                      "Expected input at *args[1][0].shape[0] to be equal to 6, but got 5");
    EXPECT_ERROR_TYPE(AssertionError, module.call(inputs(5, 5, 6)),
                      "Expected input at *args[3].shape[0] to be equal to 4, but got 6");
    const NestedArguments eager;
    const ValueList good = inputs(7, 7, 4);
    const auto [first, second] =
        eager(good[0].to_tensor(), from_value<std::vector<Tensor>>(good[1]),
              from_value<std::map<std::string, Tensor>>(good[2]), good[3].to_tensor());
    expect_same_results(module.call(good), Value::tuple({first, second}));
    const auto too_small = [&] { exports(NestedArguments(), inputs(2, 2, 4), options); };
    EXPECT_ERROR_TYPE(ConstraintViolationError, too_small(), "2 not in range [3,");
  });
}

struct WritesAndSums : nn::Module {
  Tensor buffer_ = buffer("buffer", ones({4, 4}));
  Tensor forward(Tensor x) {
    x.add_(5);
    buffer_.add_(5);
    return x + buffer_.sum();
  }
  WEFT_ARGS(x)
};

std::string ranges_text(const ExportedProgram& program) {
  const std::string text = program.to_string();
  return text.substr(text.find("Range constraints: "));
}

TEST(TestExport, test_export_for_training_with_dynamic_shapes) {
  const ExportOptions options{.dynamic_shapes = DynamicShapes::by_position({{{0, Dim("x")}}})};
  const ExportedProgram training = export_for_training(WritesAndSums(), {ones({4, 4})}, options);
  const WritesAndSums eager;
  expect_same_results(training.module().call({ones({2, 4})}), eager(ones({2, 4})));
  for_each_variant([&](const Exporter& exports) {
    const ExportedProgram program = exports(WritesAndSums(), {ones({4, 4})}, options);
    EXPECT_EQ(ranges_text(training), ranges_text(program));
    EXPECT_EQ(program.range_constraints().size(), 1u);
  });
}

// --- by tensor -------------------------------------------------------------------------------------------

struct SumsOfThree : nn::Module {
  Tensor forward(const Tensor& x, const std::vector<Tensor>& y, const std::map<std::string, Tensor>& z) {
    return x + y[0] + z.at("k");
  }
  WEFT_ARGS(x, y, z)
};

// Every placeholder is a tensor of one size: the one symbol that varies.
void expect_one_size(const ExportedProgram& program) {
  ASSERT_EQ(program.range_constraints().size(), 1u);
  const sym::Expr* symbol = program.range_constraints()[0].expr;
  EXPECT_EQ(program.graph().placeholders().size(), 3u);
  for (const Value& noted : noted_inputs(program)) {
    ASSERT_TRUE(noted.is_tensor());
    EXPECT_EQ(describe_sizes(noted.tensor_ref().sizes()).str(), "[" + symbol->to_string() + "]");
  }
}

struct ByTensor {
  Tensor x = randn({4}), y = randn({4}), z = randn({4});
  ShapesCollection shapes;
  Value list = Value::list({y}), dict = to_value(std::map<std::string, Tensor>{{"k", z}});
  ByTensor() {
    const Dim dim("dim", {.max = 10});
    for (const Tensor& tensor : {x, y, z}) shapes.set(tensor, ShapeSpec::each({dim}));
  }
};

TEST(TestExport, test_dynamic_shapes_builder_basic) {
  for_each_variant([](const Exporter& exports) {
    const ByTensor given;
    expect_one_size(
        exports(SumsOfThree(), {given.x, given.list, given.dict}, {.dynamic_shapes = given.shapes}));
  });
}

TEST(TestExport, test_dynamic_shapes_builder_kwargs) {
  for_each_variant([](const Exporter& exports) {
    const ByTensor given;
    const ExportOptions options{.kwargs = {{"z", given.dict}, {"y", given.list}},
                                .dynamic_shapes = given.shapes};
    expect_one_size(exports(SumsOfThree(), {given.x}, options));
  });
}

struct ThreeInputs {
  Tensor x;
  std::vector<Tensor> y;
  std::map<std::string, Tensor> z;
  WEFT_STRUCT_AS("test_dynamic_shapes_builder_pytree.Inp", x, y, z)
};
struct SumsOfFields : nn::Module {
  Tensor forward(const ThreeInputs& inp) { return inp.x + inp.y[0] + inp.z.at("k"); }
  WEFT_ARGS(inp)
};

TEST(TestExport, test_dynamic_shapes_builder_pytree) {
  for_each_variant([](const Exporter& exports) {
    const ByTensor given;
    const ValueList args = {to_value(ThreeInputs{given.x, {given.y}, {{"k", given.z}}})};
    expect_one_size(exports(SumsOfFields(), args, {.dynamic_shapes = given.shapes.dynamic_shapes(args)}));
  });
}

// --- for trees -------------------------------------------------------------------------------------------

struct ThreeOfNine : nn::Module {
  Tensor forward(const Dict& inputs) {
    return inputs.at("tensor").to_tensor() + inputs.at("dict_of_tensors").to_dict().at("A").to_tensor() +
           inputs.at("list_of_tensors").elements()[0].to_tensor();
  }
  WEFT_ARGS(inputs)
};

TEST(TestExport, test_dynamic_shapes_spec_with_pytree) {
  for_each_variant([](const Exporter& exports) {
    const Dim batch("batch");
    const ShapeSpec rows = {{0, batch}};
    Dict named, inputs;
    std::vector<std::pair<std::string, ShapeSpec>> named_specs;
    for (const char* key : {"A", "B", "C", "D"}) {
      named.set(key, randn({3}));
      named_specs.emplace_back(key, rows);
    }
    inputs.set("tensor", randn({3}));
    inputs.set("dict_of_tensors", named);
    inputs.set("list_of_tensors", Value::list({randn({3}), randn({3}), randn({3}), randn({3})}));
    const ShapeSpec spec = ShapeSpec::dict({{"tensor", rows},
                                            {"dict_of_tensors", ShapeSpec::dict(named_specs)},
                                            {"list_of_tensors", ShapeSpec::list({rows, rows, rows, rows})}});
    const ExportedProgram program = exports(ThreeOfNine(), {inputs}, {.dynamic_shapes = {{"inputs", spec}}});
    const std::vector<Value> noted = noted_inputs(program);
    EXPECT_EQ(noted.size(), 9u);
    for (const Value& input : noted)
      EXPECT_EQ("torch.Size(" + describe_sizes(input.to_tensor().sizes()).str() + ")", "torch.Size([s0])");
  });
}

struct OneField {
  Tensor f, p;
  WEFT_STRUCT_AS("test_preserve_shape_dynamism_for_unused_inputs.Input", f, p)
};
struct UsesOneField : nn::Module {
  Tensor forward(const OneField& x) { return x.f + 1; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_preserve_shape_dynamism_for_unused_inputs) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {to_value(OneField{randn({10, 4}), randn({10, 4})})};
    const ExportedProgram fixed = exports(UsesOneField(), args);
    EXPECT_EQ(noted_inputs(fixed).size(), 2u);
    for (const Value& input : noted_inputs(fixed))
      for (const SymInt& size : input.to_tensor().sizes()) EXPECT_FALSE(size.is_symbolic());
    const ShapeSpec spec = ShapeSpec::list({{{0, Dim("dim0_x_f")}}, {{0, Dim("dim0_x_p")}}});
    const ExportedProgram varying = exports(UsesOneField(), args, {.dynamic_shapes = {{"x", spec}}});
    EXPECT_EQ(noted_inputs(varying).size(), 2u);
    for (const Value& input : noted_inputs(varying)) {
      EXPECT_TRUE(input.to_tensor().size(0).is_symbolic());
      EXPECT_FALSE(input.to_tensor().size(1).is_symbolic());
    }
  });
}

using Pair = std::tuple<Tensor, Tensor>;
using NestedTuples = std::tuple<std::tuple<int64_t, int64_t>, Pair, std::tuple<Tensor, Tensor, Tensor>>;
struct SumsOfTuples : nn::Module {
  Tensor forward(const NestedTuples& x) {
    const auto& [a, b, c] = x;
    return std::get<0>(a) + std::get<1>(a) + std::get<0>(b) + std::get<1>(b) + std::get<0>(c) +
           std::get<1>(c) + std::get<2>(c);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nested_dynamic_shapes_spec) {
  for_each_variant([](const Exporter& exports) {
    auto tensor = [] { return randn({4, 4}); };
    const NestedTuples x = {{1, 2}, {tensor(), tensor()}, {tensor(), tensor(), tensor()}};
    const ShapeSpec spec = ShapeSpec::list(
        {ShapeSpec::list({{}, {}}), ShapeSpec::list({{}, {}}), ShapeSpec::list({{}, {}, {}})});
    const ExportedProgram program = exports(SumsOfTuples(), {to_value(x)}, {.dynamic_shapes = {{"x", spec}}});
    expect_same_results(program.module().call({to_value(x)}), SumsOfTuples()(x));
  });
}

struct SumOfSums : nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b) { return a.sum() + b.sum(); }
  WEFT_ARGS(a, b)
};

TEST(TestExport, test_non_arg_name_dynamic_shapes_api) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {randn({4, 4}), randn({4, 4})}, other = {randn({4, 4}), randn({7, 4})};
    const ExportedProgram varying =
        exports(SumOfSums(), args, {.dynamic_shapes = DynamicShapes::by_position({{}, {{0, Dim("dim")}}})});
    expect_same_results(varying.module().call(other),
                        SumOfSums()(other[0].to_tensor(), other[1].to_tensor()));
    GraphModule fixed =
        exports(SumOfSums(), args, {.dynamic_shapes = DynamicShapes::by_position({{}, {}})}).module();
    EXPECT_ERROR_TYPE(AssertionError, fixed.call(other), "shape[0] to be equal to 4, but got 7");
  });
}

// --- arguments that are no tensors -----------------------------------------------------------------------

struct AddsNumber : nn::Module {
  Tensor forward(const Tensor& x, const Scalar& y) { return x + y; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_runtime_assert_for_prim) {
  for_each_variant([](const Exporter& exports) {
    const ExportOptions options{.dynamic_shapes = {{"x", {{0, Dim("dim0_x", {.min = 6})}}}}};
    GraphModule of_int = exports(AddsNumber(), {ones({7, 5}), 5}, options).module();
    expect_same_results(of_int.call({ones({8, 5}), 5}), ones({8, 5}) + 5);
    EXPECT_ERROR_TYPE(AssertionError, of_int.call({ones({8, 5}), 6}),
                      "Expected input at *args[1] to be equal to 5, but got 6");
    GraphModule of_float = exports(AddsNumber(), {ones({7, 5}), 5.0}, options).module();
    expect_same_results(of_float.call({ones({7, 5}), 5.0}), ones({7, 5}) + 5.0);
    EXPECT_ERROR_TYPE(AssertionError, of_float.call({ones({7, 5}), 6.0}),
                      "Expected input at *args[1] to be equal to 5.0, but got 6.0");
  });
}

struct DividesBy : nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b, const std::string& mode) { return div(a, b, mode); }
  WEFT_ARGS(a, b, mode)
};

TEST(TestExport, test_runtime_assert_for_prm_str) {
  for_each_variant([](const Exporter& exports) {
    const Tensor a = randn({4, 4}), b = randn({4});
    GraphModule module = exports(DividesBy(), {a, b, "trunc"}).module();
    EXPECT_ERROR_TYPE(AssertionError, module.call({a, b, "floor"}), "to be equal to trunc, but got floor");
    expect_same_results(module.call({a, b, "trunc"}), div(a, b, "trunc"));
  });
}

struct ScalesFirst : nn::Module {
  std::tuple<Tensor, Tensor> forward(std::tuple<Tensor, Tensor> x, double y) {
    std::get<0>(x).mul_(y);
    return x;
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_export_input_mutation_dynamic_shape) {
  for_each_variant([](const Exporter& exports) {
    const Tensor first = randn({12}), second = randn({3, 2});
    auto args = [&](const Tensor& tensor) { return ValueList{Value::tuple({tensor, second}), 2.0}; };
    const ExportedProgram program =
        exports(ScalesFirst(), args(first),
                {.dynamic_shapes = {{"x", ShapeSpec::list({{{0, Dim("dim")}}, {}})}, {"y", {}}}});
    const Node& node = *program.graph().front();
    EXPECT_EQ(node.kind(), NodeKind::kPlaceholder);
    ASSERT_TRUE(node.meta_or_null() && node.meta_or_null()->value.is_tensor());
    EXPECT_TRUE(node.meta_or_null()->value.tensor_ref().size(0).is_symbolic());
    Tensor own = first.clone(), eager = first.clone();
    const Value result = program.module().call(args(own));
    EXPECT_TRUE(result.is_tuple());
    expect_same_results(result, to_value(ScalesFirst()(std::tuple(eager, second), 2.0)));
    EXPECT_TRUE(close(own, first * 2.0));
    EXPECT_TRUE(close(eager, first * 2.0));
  });
}

}  // namespace
}  // namespace weft
