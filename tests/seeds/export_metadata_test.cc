// The rows of TestExport about what nodes note of the program: lines, modules, what is printed, names of the
// state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "seeds/support/export_texts.h"
#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using testing::close;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

struct ScaledLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(4, 4));
  Tensor forward(Tensor x) {
    x = linear(x);
    x *= 2.0;
    return x;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_stack_trace) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(ScaledLinear(), {randn({4, 4})});
    const Node* mul = program.graph().find("mul");
    ASSERT_NE(mul, nullptr) << program;
    EXPECT_TRUE(std::regex_search(mul->stack_trace(),
                                  std::regex("export_metadata_test\\.cc.*in forward\n.*x \\*= 2\\.0")))
        << mul->stack_trace();
    const Node* linear = program.graph().find(exports.is_decomposed() ? "addmm" : "linear");
    ASSERT_NE(linear, nullptr) << program;
    EXPECT_TRUE(std::regex_search(linear->stack_trace(),
                                  std::regex("export_metadata_test\\.cc.*in forward\n.*x = linear\\(x\\)")))
        << linear->stack_trace();
  });
}

struct SizeByCondition : nn::Module {
  SymInt forward(const Tensor& x, const Tensor& y) {
    sym_constrain_range_for_size(y.item(), 2);
    return sym_ite(x.size(0) == 4, x.size(0), x.size(1));
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_sym_stack_trace) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = randn({4, 4}), y = from_data<int64_t>({5}, {});
    const ExportedProgram program = exports(
        SizeByCondition(), {x, y}, {.dynamic_shapes = {{"x", ShapeSpec::each({Dim("dx0"), Dim("dx1")})}}});
    const Node* constrains = program.graph().find("sym_constrain_range_for_size");
    if (!constrains) constrains = program.graph().find("sym_constrain_range_for_size_default");
    ASSERT_NE(constrains, nullptr) << program;
    EXPECT_TRUE(std::regex_search(constrains->stack_trace(),
                                  std::regex("in forward\n.*sym_constrain_range_for_size")))
        << constrains->stack_trace();
    EXPECT_EQ(tree_leaves(program.module().call({randn({4, 7}), y}))[0].to_int(), 4);
    EXPECT_EQ(tree_leaves(program.module().call({randn({5, 7}), y}))[0].to_int(), 7);
  });
}

struct JustLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return linear(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nonstrict_retrace_preserves_metadata) {
  for_each_variant([](const Exporter& exports) {
    const Tensor x = randn({4, 4});
    const ExportedProgram program = exports(JustLinear(), {x}), again = exports(program.module(), {x});
    ASSERT_EQ(program.graph().size(), again.graph().size());
    size_t traces = 0;
    for (auto a = program.graph().begin(), b = again.graph().begin(); a != program.graph().end(); ++a, ++b) {
      EXPECT_EQ(a->stack_trace(), b->stack_trace()) << a->line();
      traces += !a->stack_trace().empty();
    }
    EXPECT_GE(traces, 1u);
  });
}

struct WithFixedLinear : nn::Module {
  struct FixedWeights : nn::Module {
    Tensor weight = randn({20, 98}), bias = randn({20});
    FixedWeights() {
      attribute("weight", weight);
      attribute("bias", bias);
    }
    Tensor forward(const Tensor& x) { return weft::linear(x, weight, bias); }
    WEFT_ARGS(x)
  };
  nn::Conv2d conv = child("conv", nn::Conv2d(16, 33, 3));
  FixedWeights linear = child("linear", FixedWeights());
  Tensor forward(const Tensor& x) { return linear(conv(x)).cos(); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_linear_conv) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(WithFixedLinear(), {randn({20, 16, 50, 100})});
    const std::vector<Node*> placeholders = program.graph().placeholders();
    size_t state = 0;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const InputSpec::Kind kind = program.inputs()[i].kind;
      if (kind != InputSpec::Kind::kParameter && kind != InputSpec::Kind::kBuffer) continue;
      ++state;
      ASSERT_NE(placeholders[i]->meta_or_null(), nullptr);
      const Value* stack = placeholders[i]->meta_or_null()->extra.find("source_fn_stack");
      ASSERT_NE(stack, nullptr) << placeholders[i]->line();
      EXPECT_EQ(*stack, Value("conv,Conv2d"));
    }
    EXPECT_EQ(state, 2u);
  });
}

struct Quotient : nn::Module {
  Tensor forward(const Tensor& x) { return x / x; }
  WEFT_ARGS(x)
};
struct WithChildParameter : nn::Module {
  Quotient nested = child("nested", Quotient());
  Tensor param = parameter("child1param", ones({2, 3}));
  Tensor forward(const Tensor& x) { return nested(x) + param; }
  WEFT_ARGS(x)
};
struct WithChildBuffer : nn::Module {
  Tensor own = buffer("child2buffer", ones({2, 3}));
  Tensor forward(const Tensor& x) { return x - own; }
  WEFT_ARGS(x)
};
struct Family : nn::Module {
  WithChildParameter foo = child("foo", WithChildParameter());
  WithChildBuffer bar = child("bar", WithChildBuffer());
  Tensor root = parameter("rootparam", ones({2, 3}));
  Tensor forward(const Tensor& x) { return bar(foo(x * root)); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_fqn) {
  const Family module;
  const Tensor example = rand({2, 3}), x = randn({2, 3});
  auto expect_state = [&](const nn::NamedTensors& state, bool is_flat) {
    for (auto [name, tensor] : module.state_dict()) {
      if (is_flat) std::ranges::replace(name, '.', '_');
      auto found = std::ranges::find(state, name, [](const auto& entry) { return entry.first; });
      ASSERT_NE(found, state.end()) << name;
      EXPECT_TRUE(close(found->second, tensor));
    }
  };
  const GraphModule flat = export_flat_module(module, {example});
  expect_state(flat.state_dict(), true);
  EXPECT_TRUE(close(only_tensor(flat.call({x})), module(x)));
  const GraphModule callable = export_program(module, {example}).module();
  expect_state(callable.state_dict(), false);
  EXPECT_TRUE(close(only_tensor(callable.call({x})), module(x)));
  for_each_variant([&](const Exporter& exports) {
    const ExportedProgram program = exports(module, {example});
    expect_state(program.state_dict(), false);
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
  });
}

struct Printing : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    std::ostringstream out;
    out << "start";
    const Tensor x1 = x + x;
    out << x1;
    const Tensor x2 = x1 * x1;
    out << 1 << 2 << 3;
    const Tensor x3 = x2 + x2;
    return {x1, x3};
  }
  WEFT_ARGS(x)
};

TEST(TestOneOffModelExportResult, test_print) {
  for_each_variant([](const Exporter& exports) {
    EXPECT_EQ(testing::code_text(exports(Printing(), {randn({3, 3})}).graph_module()),
              R"(def forward(self, x):
    add = torch.ops.aten.add.Tensor(x, x);  x = None
    mul = torch.ops.aten.mul.Tensor(add, add)
    add_1 = torch.ops.aten.add.Tensor(mul, mul);  mul = None
    return (add, add_1))");
  });
}

}  // namespace
}  // namespace weft
