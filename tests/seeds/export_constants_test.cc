// The rows of TestExport about parameters, buffers and constants: which inputs they are, and how these are
// called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/deep_copy.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::close;
using ::testing::ElementsAre;
using testing::Exporter;
using testing::for_each_variant;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::only_tensor;

std::vector<std::string> placeholder_names(const ExportedProgram& program) {
  std::vector<std::string> names;
  for (const Node* placeholder : program.graph().placeholders()) names.push_back(placeholder->name());
  return names;
}

std::vector<std::string> tensor_names(const ExportedProgram::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> lifted_tensor_constants(const ExportedProgram& program) {
  std::vector<std::string> names;
  for (const InputSpec& spec : program.inputs())
    if (spec.kind == InputSpec::Kind::kTensorConstant) names.push_back(spec.target);
  return names;
}

struct ColonParameter : nn::Module {
  Tensor value = parameter("foo:bar", ones({3, 3}));
  Tensor forward(const Tensor& x) { return x + value; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_colon_parameter) {
  for_each_variant([](const Exporter& exports) {
    const ColonParameter module;
    const ExportedProgram program = exports(module, {randn({3, 3})});
    EXPECT_THAT(placeholder_names(program), ElementsAre("p_foo_bar", "x"));
    const Tensor x = randn({3, 3});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    EXPECT_THAT(tensor_names(program.state_dict()), ElementsAre("foo:bar"));
    EXPECT_TRUE(close(program.tensor("foo:bar"), ones({3, 3})));
  });
}

struct AddsLiteral : nn::Module {
  Tensor forward(const Tensor& x) { return x + from_data<int64_t>({3}, {}); }
  WEFT_ARGS(x)
};
struct AddsLiterals : nn::Module {
  Tensor a = from_data<int64_t>({3}, {});
  AddsLiterals() { attribute("a", a); }
  Tensor forward(const Tensor& x) {
    const std::vector<Tensor> list = {from_data<int64_t>({3}, {}), from_data<int64_t>({4}, {})};
    return x + a + list[0] + list[1];
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_lifted_constants) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = from_data<int64_t>({5}, {});
    const ExportedProgram first = exports(AddsLiteral(), {x});
    EXPECT_EQ(first.inputs().size(), 2u);
    EXPECT_EQ(first.constants().size(), 1u);

    const AddsLiterals module;
    ExportedProgram program = exports(module, {x});
    EXPECT_EQ(program.inputs().size(), 4u);
    EXPECT_THAT(program.state_dict(), IsEmpty());
    EXPECT_EQ(program.constants().size(), 3u);
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    program = program.run_decompositions();
    EXPECT_EQ(program.inputs().size(), 4u);
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
  });
}

struct GivesClone : nn::Module {
  Tensor x = from_data<int64_t>({1, 2});
  GivesClone() { attribute("x", x); }
  Tensor forward() { return x.clone(); }
  WEFT_ARGS()
};

TEST(TestExport, test_tensor_attribute_zero_args) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(GivesClone(), {});
    EXPECT_THAT(lifted_tensor_constants(program), ElementsAre("x"));
    EXPECT_TRUE(close(only_tensor(program.module().call({})), from_data<int64_t>({1, 2})));
  });
}

struct GivesConstant : nn::Module {
  Tensor b = randn({3, 2});
  GivesConstant() { attribute("b", b); }
  Tensor forward() { return b; }
  WEFT_ARGS()
};
struct GivesNestedConstant : nn::Module {
  Tensor bff = randn({3, 2});
  GivesNestedConstant() { attribute("bff", bff); }
  Value forward(const Tensor& x, const Tensor& y) {
    Dict result;
    result.set("prediction", Value::tuple({x + y, bff}));
    return Value(result);
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_constant_output) {
  for_each_variant([](const Exporter& exports) {
    const GivesConstant plain;
    EXPECT_TRUE(close(exports(plain, {}).module().call({}).to_tensor(), plain.b));

    const GivesNestedConstant nested;
    const Tensor x = randn({3, 2}), y = randn({3, 2});
    const Value result = exports(nested, {x, y}).module().call({x, y});
    EXPECT_EQ(tree_structure(result), tree_structure(nested(x, y)));
    const ValueList leaves = tree_leaves(result);
    EXPECT_TRUE(close(leaves[0].to_tensor(), x + y));
    EXPECT_TRUE(close(leaves[1].to_tensor(), nested.bff));
  });
}

struct Divides : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y, const std::string& div) { return weft::div(x, y, div); }
  WEFT_ARGS(x, y, div = "floor")
};

TEST(TestExport, test_constant_input_naming) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(Divides(), {randn({4}), randn({4}), "floor"});
    EXPECT_EQ(program.graph().placeholders()[2]->name(), "div");
    EXPECT_EQ(program.inputs()[2].kind, InputSpec::Kind::kConstantInput);
    EXPECT_EQ(program.inputs()[2].constant, Value("floor"));
  });
}

struct SameWords : nn::Module {
  Tensor forward(const Dict& x, const std::tuple<Tensor>& x_foo, const Tensor& x_foo_0) {
    return x.find("foo")->elements()[0].to_tensor() + std::get<0>(x_foo) + x_foo_0;
  }
  WEFT_ARGS(x, x_foo, x_foo_0)
};
struct NamedAsState : nn::Module {
  Tensor param = parameter("param", randn({4})), alpha = buffer("alpha", randn({4})),
         beta = buffer("beta", randn({4}), /*persistent=*/false), gamma = randn({4});
  NamedAsState() { attribute("gamma", gamma); }
  std::tuple<Tensor, Tensor, Tensor> forward(const Dict& p, const Tensor& b_alpha, const Dict& b,
                                             const Tensor& c_gamma) {
    return {p.find("param")->to_tensor() + param, alpha + beta + b_alpha + b.find("beta")->to_tensor(),
            gamma + c_gamma};
  }
  WEFT_ARGS(p, b_alpha, b, c_gamma)
};
struct NamedAsOperators : nn::Module {
  Tensor forward(const Tensor& mul, const Tensor& add, const Tensor& add_1) {
    return mul * mul + add * add_1;
  }
  WEFT_ARGS(mul, add, add_1)
};

Value dict_of(const std::string& key, const Value& value) {
  Dict dict;
  dict.set(key, value);
  return Value(dict);
}

TEST(TestExport, test_placeholder_naming_collisions) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram first = exports(SameWords(), {dict_of("foo", Value::list({randn({4, 4})})),
                                                        Value::tuple({randn({4, 4})}), randn({4, 4})});
    EXPECT_THAT(placeholder_names(first), ElementsAre("x_foo_0", "x_foo_0_1", "x_foo_0_2"));

    const ExportedProgram second = exports(
        NamedAsState(), {dict_of("param", randn({4})), randn({4}), dict_of("beta", randn({4})), randn({4})});
    EXPECT_THAT(placeholder_names(second), ElementsAre("p_param_1", "b_alpha_1", "b_beta_1", "c_gamma_1",
                                                       "p_param", "b_alpha", "b_beta", "c_gamma"));
    using Kind = InputSpec::Kind;
    std::vector<Kind> kinds;
    for (const InputSpec& spec : second.inputs()) kinds.push_back(spec.kind);
    EXPECT_THAT(kinds, ElementsAre(Kind::kParameter, Kind::kBuffer, Kind::kBuffer, Kind::kTensorConstant,
                                   Kind::kUserInput, Kind::kUserInput, Kind::kUserInput, Kind::kUserInput));

    const ExportedProgram third = exports(NamedAsOperators(), {randn({4, 4}), randn({4, 4}), randn({4, 4})});
    std::vector<std::pair<std::string, NodeKind>> nodes;
    for (const Node& node : third.graph()) nodes.emplace_back(node.name(), node.kind());
    constexpr auto kInput = NodeKind::kPlaceholder, kCall = NodeKind::kCallFunction;
    EXPECT_THAT(nodes,
                ElementsAre(std::pair("mul", kInput), std::pair("add", kInput), std::pair("add_1", kInput),
                            std::pair("mul_1", kCall), std::pair("mul_2", kCall), std::pair("add_2", kCall),
                            std::pair("output", NodeKind::kOutput)));
  });
}

struct Passing : nn::Module {
  Tensor foo = buffer("foo", rand({2, 3}), /*persistent=*/false);
  Tensor forward(const Tensor& x) { return foo + x; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_non_persistent_buffer) {
  for_each_variant([](const Exporter& exports) {
    const Passing module;
    const Tensor x = rand({2, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    EXPECT_THAT(tensor_names(program.state_dict()), Not(::testing::Contains("foo")));
    EXPECT_THAT(tensor_names(program.named_buffers()), ::testing::Contains("foo"));
    EXPECT_THAT(tensor_names(program.constants()), ElementsAre("foo"));

    const GraphModule callable = program.module();
    EXPECT_THAT(tensor_names(callable.state_dict()), Not(::testing::Contains("foo")));
    EXPECT_THAT(tensor_names(callable.named_buffers()), ::testing::Contains("foo"));
    EXPECT_THAT(tensor_names(program.constants()), ElementsAre("foo"));
    EXPECT_TRUE(close(only_tensor(callable.call({x})), module(x)));
  });
}

struct TwiceNormalised : nn::Module {
  nn::ModuleList<nn::LayerNorm> norms = child("norms", nn::ModuleList<nn::LayerNorm>());
  TwiceNormalised() {
    const nn::LayerNorm layer({2, 2, 3});
    norms.push_back(layer);
    norms.push_back(layer);
  }
  Tensor forward(Tensor x) {
    for (size_t i = 0; i < norms.size(); ++i) x = norms[i](x);
    return x;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_layer_sharing) {
  for_each_variant([](const Exporter& exports) {
    const TwiceNormalised module;
    const TwiceNormalised copied = nn::deep_copy(module);
    const ExportedProgram program = exports(copied, {randn({1, 2, 2, 3})});
    auto expect_state = [&](const nn::NamedTensors& state) {
      const nn::NamedTensors wanted = module.state_dict();
      ASSERT_THAT(tensor_names(state),
                  ElementsAre("norms.0.bias", "norms.0.weight", "norms.1.bias", "norms.1.weight"));
      ASSERT_EQ(tensor_names(state), tensor_names(wanted));
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(close(state[i].second, wanted[i].second));
    };
    expect_state(copied.state_dict());
    expect_state(program.state_dict());
  });
}

struct WithConstant : nn::Module {
  Tensor constant = rand({2, 3}), own = parameter("parameter", rand({2, 3}));
  WithConstant() { attribute("constant", constant); }
  Tensor forward(const Tensor& x) { return x + constant; }
  WEFT_ARGS(x)
};
struct AroundConstant : nn::Module {
  WithConstant nested = child("nested", WithConstant());
  Tensor forward(const Tensor& x) { return nested(x) + nested.constant + nested.own; }
  WEFT_ARGS(x)
};

TEST(TestOneOffModelExportResult, test_constant_fqn) {
  for_each_variant([](const Exporter& exports) {
    const AroundConstant module;
    const ExportedProgram program = exports(module, {rand({2, 3})});
    EXPECT_TRUE(close(program.tensor("nested.constant"), module.nested.constant));
    EXPECT_THAT(tensor_names(program.constants()), ElementsAre("nested.constant"));
    EXPECT_TRUE(close(only_tensor(program.module().call({ones({2, 3})})), module(ones({2, 3}))));
  });
}

struct AroundConstants : nn::Module {
  WithConstant first = child("nested_1", WithConstant()), second = child("nested_2", WithConstant());
  Tensor forward(const Tensor& x) {
    return first(x) + second(x) + first.constant + second.constant + first.own + second.own;
  }
  WEFT_ARGS(x)
};

TEST(TestOneOffModelExportResult, test_constant_name) {
  for_each_variant([](const Exporter& exports) {
    const AroundConstants module;
    const ExportedProgram program = exports(module, {rand({2, 3})});
    EXPECT_TRUE(close(only_tensor(program.module().call({ones({2, 3})})), module(ones({2, 3}))));
    EXPECT_THAT(tensor_names(program.constants()), ElementsAre("nested_1.constant", "nested_2.constant"));
    const std::vector<Node*> placeholders = program.graph().placeholders();
    ASSERT_EQ(placeholders.size(), 5u);
    for (const Node* placeholder : placeholders)
      EXPECT_EQ(placeholder->name(), placeholder->target().to_string());
    EXPECT_EQ(placeholders[2]->name(), "c_nested_1_constant");
    EXPECT_EQ(placeholders[3]->name(), "c_nested_2_constant");
  });
}

}  // namespace
}  // namespace weft
