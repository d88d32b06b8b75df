// The rows of TestExport about what a program is called with: containers, arguments by name, numbers, None.
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_as_eager;
using testing::expect_close_trees;
using testing::expect_exports_as_eager;
using testing::Exporter;
using testing::for_each_variant;
using testing::only_tensor;

Tensor integer(int64_t value) { return from_data(std::vector<int64_t>{value}, {}); }

struct AddToFirst : nn::Module {
  Tensor forward(const std::vector<Tensor>& x, const Tensor& y) { return x[0] + y; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_basic) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, AddToFirst(), {Value::list({ones({1, 3})}), ones({1, 3})});
  });
}

struct ExternalMethod {
  Tensor add(const Tensor& x) const { return x + x; }
};
struct CallsExternal : nn::Module {
  std::function<Tensor(const Tensor&)> external_add = [object = ExternalMethod()](const Tensor& x) {
    return object.add(x);
  };
  Tensor forward(const Tensor& x) { return external_add(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_external_call_non_strict_real_tensor) {
  for_each_variant(
      [](const Exporter& exports) { expect_exports_as_eager(exports, CallsExternal(), {randn({1, 3})}); });
}

struct AddToFirstLess : nn::Module {
  Tensor param = parameter("param", randn({1, 3}).set_requires_grad());
  Tensor forward(const std::vector<Tensor>& x, const Tensor& y) { return x[0] + y - param; }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_basic_non_strict_real_tensor) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, AddToFirstLess(), {Value::list({randn({1, 3})}), randn({1, 3})});
  });
}

struct Counters : nn::Module {
  int64_t x = 1;
  std::map<std::string, int64_t> y = {{"k", 2}};
  std::tuple<int64_t> z = {3};
  Tensor forward(const Tensor& input) {
    x += 4;
    y["k"] += 5;
    z = {std::get<0>(z) + 6};
    return input + x + y["k"] + std::get<0>(z);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_state_primitives) {
  for_each_variant([](const Exporter& exports) {
    const Counters module;
    const ExportedProgram program = exports(module, {randn({2, 3})});
    EXPECT_TRUE(testing::close(only_tensor(program.module().call({zeros({2, 3})})), ones({2, 3}) * 21));
    EXPECT_EQ(module.x, 1);
  });
}

// --- arguments by name -----------------------------------------------------------------------------------

using Pair = std::tuple<Tensor, Tensor>;
using ByName = std::map<std::string, Tensor>;

struct TwoNamed : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, const Tensor& kw1, const Tensor& kw2) {
    return {arg1 + arg2, kw1 + kw2};
  }
  WEFT_ARGS(arg1, arg2, kw1, kw2)
};

TEST(TestExport, test_export_func_with_kwargs) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, TwoNamed(), {ones({6, 4}), ones({1, 1})},
                            {{"kw1", ones({1, 1})}, {"kw2", ones({6, 4})}});
  });
}

struct NamedTrees : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, ByName a, const std::vector<Tensor>& b) {
    return {arg1 + a["kw1"] + b[0], arg2 + a["kw2"] + b[1]};
  }
  WEFT_ARGS(arg1, arg2, a, b)
};

TEST(TestExport, test_export_func_with_pytree_kwargs) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, NamedTrees(), {ones({2, 3}), ones({3, 4})},
                            {{"a", to_value(ByName{{"kw1", ones({2, 3})}, {"kw2", ones({3, 4})}})},
                             {"b", Value::list({ones({2, 3}), ones({3, 4})})}});
  });
}

struct OneDefault : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, ByName a, int64_t b) {
    return {arg1 + arg2, a["kw1"] + a["kw2"] + b};
  }
  WEFT_ARGS(arg1, arg2, a, b = 1)
};
struct TwoDefaults : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, int64_t a, int64_t b) { return {arg1 + a, arg2 + b}; }
  WEFT_ARGS(arg1, arg2, a = 1, b = 2)
};

TEST(TestExport, test_export_func_with_default_kwargs) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {ones({6, 4}), ones({1, 1})};
    const Value a = to_value(ByName{{"kw1", ones({1, 1})}, {"kw2", ones({6, 4})}});
    expect_exports_as_eager(exports, OneDefault(), args, {{"a", a}});
    expect_exports_as_eager(exports, OneDefault(), args, {{"a", a}, {"b", 2}});
    expect_exports_as_eager(exports, TwoDefaults(), args, {{"b", 1}});
  });
}

struct VariadicPositions : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, const std::vector<Tensor>& args) {
    return {arg1 + args[0], arg2 + args[1]};
  }
  WEFT_ARGS(arg1, arg2, *args)
};

TEST(TestExport, test_export_func_with_var_postional_args) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, VariadicPositions(),
                            {ones({2, 3}), ones({3, 4}), ones({2, 3}), ones({3, 4})});
  });
}

struct NamesOnly : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, const std::vector<Tensor>& args, const Tensor& kw1,
               const Tensor& kw2) {
    return {arg1 + args[0] + kw1, arg2 + args[1] + kw2};
  }
  WEFT_ARGS(arg1, arg2, *args, kw1, kw2)
};

TEST(TestExport, test_export_func_with_keyword_only_args) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(exports, NamesOnly(), {ones({2, 3}), ones({3, 4}), ones({2, 3}), ones({3, 4})},
                            {{"kw1", ones({2, 3})}, {"kw2", ones({3, 4})}});
  });
}

struct AnyNames : nn::Module {
  Pair forward(const Tensor& arg1, const Tensor& arg2, const std::vector<Tensor>& args, const Tensor& kw1,
               const Tensor& kw2, ByName kwargs) {
    return {arg1 + args[0] + kw1 + kwargs["kw3"], arg2 + args[1] + kw2 + kwargs["kw4"]};
  }
  WEFT_ARGS(arg1, arg2, *args, kw1, kw2, **kwargs)
};

TEST(TestExport, test_export_func_with_var_keyword_args) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(
        exports, AnyNames(), {ones({2, 3}), ones({3, 4}), ones({2, 3}), ones({3, 4})},
        {{"kw1", ones({2, 3})}, {"kw2", ones({3, 4})}, {"kw3", ones({2, 3})}, {"kw4", ones({3, 4})}});
  });
}

struct AnyNamesOfTrees : nn::Module {
  Pair forward(const Tensor& arg1, const std::tuple<std::tuple<Tensor>, Tensor>& arg2,
               const std::vector<Tensor>& args, const std::tuple<Tensor>& kw1, const Tensor& kw2,
               const Dict& kwargs) {
    const Value *kw3 = kwargs.find("kw3"), *kw4 = kwargs.find("kw4");
    return {
        arg1 + std::get<0>(std::get<0>(arg2)) + args[0] + std::get<0>(kw1) + kw3->elements()[0].to_tensor(),
        std::get<1>(arg2) + args[1] + kw2 + kw4->to_tensor()};
  }
  WEFT_ARGS(arg1, arg2, *args, kw1, kw2, **kwargs)
};

TEST(TestExport, test_export_func_with_var_keyword_pytree_args) {
  for_each_variant([](const Exporter& exports) {
    expect_exports_as_eager(
        exports, AnyNamesOfTrees(),
        {ones({2, 3}), Value::list({Value::tuple({ones({2, 3})}), ones({3, 4})}), ones({2, 3}), ones({3, 4})},
        {{"kw1", Value::tuple({ones({2, 3})})},
         {"kw2", ones({3, 4})},
         {"kw3", Value::tuple({ones({2, 3}), ones({3, 4})})},
         {"kw4", ones({3, 4})}});
  });
}

// --- numbers, None, nothing ------------------------------------------------------------------------------

struct AddTimes : nn::Module {
  Tensor forward(const Tensor& a, const Tensor& b, int64_t alpha) { return add(a, b, alpha); }
  WEFT_ARGS(a, b, alpha)
};

TEST(TestExport, test_mixed_input) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {rand({1, 2}), rand({1, 2}), 10};
    const ExportedProgram program = exports(AddTimes(), args);
    ASSERT_EQ(program.graph().placeholders().size(), 3u);
    for (Node* placeholder : program.graph().placeholders()) {
      const Value& noted = placeholder->meta().value;
      EXPECT_TRUE(noted.is_tensor() || noted.is_int()) << placeholder->name();
    }
    expect_as_eager(program, AddTimes(), args);
    EXPECT_ERROR(program.module().call({args[0], args[1], 11}), "to be equal to 10, but got 11");
  });
}

struct Doubled : nn::Module {
  Tensor forward(const Tensor& x) { return x + x; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_with_wrong_inputs) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(Doubled(), {rand({2, 3})});
    EXPECT_USER_ERROR(program.module().call({rand({2, 3}), rand({2, 3})}), "Trying to flatten user inputs");
  });
}

struct NoInputs : nn::Module {
  Pair forward() { return {randn({3, 4}), randn({3, 4})}; }
  WEFT_ARGS()
};

TEST(TestExport, test_export_graph_with_no_inputs) {
  for_each_variant([](const Exporter& exports) {
    const ValueList results = exports(NoInputs(), {}).module().call({}).elements();
    ASSERT_EQ(results.size(), 2u);
    for (const Value& result : results)
      EXPECT_EQ(describe_sizes(result.to_tensor().sizes()).str(), describe_sizes(SymIntSpan{{3, 4}}).str());
  });
}

struct IgnoresSecond : nn::Module {
  Tensor forward(const Tensor& x, const Tensor&) { return x * x; }
  WEFT_ARGS(x, y)
};
struct GivesSecond : nn::Module {
  Pair forward(const Tensor& x, const Tensor& y) { return {x * x, y}; }
  WEFT_ARGS(x, y)
};

TEST(TestOneOffModelExportResult, test_none_input_output) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {integer(3), Value()}, others = {integer(4), Value()};
    expect_close_trees(exports(IgnoresSecond(), args).module().call(others), integer(16));
    const ExportedProgram program = exports(GivesSecond(), args);
    for (const GraphModule& module : {program.module(), program.run_decompositions().module()}) {
      const ValueList results = module.call(others).elements();
      EXPECT_TRUE(testing::close(results.at(0).to_tensor(), integer(16)));
      EXPECT_TRUE(results.at(1).is_none());
    }
  });
}

// --- what placeholders are -------------------------------------------------------------------------------

struct OneLinear : nn::Module {
  nn::Linear lin = child("lin", nn::Linear(10, 1));
  Tensor forward(const Tensor& x) { return lin(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_param_util) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(OneLinear(), {randn({5, 10})});
    std::vector<std::string> sizes;
    for (const Node& node : program.graph())
      if (const std::optional<Tensor> parameter = program.parameter_of(node))
        sizes.push_back(describe_sizes(parameter->sizes()).str());
    EXPECT_EQ(sizes, (std::vector<std::string>{"[1, 10]", "[1]"}));
  });
}

TEST(TestExport, test_buffer_util) {
  for_each_variant([](const Exporter& exports) {
    const nn::BatchNorm2d norm(100, {.affine = false});
    const ExportedProgram program = exports(norm, {ones({20, 100, 35, 45})});
    std::vector<std::string> sizes;
    for (const Node& node : program.graph()) {
      EXPECT_FALSE(program.parameter_of(node));
      if (const std::optional<Tensor> buffer = program.buffer_of(node))
        sizes.push_back(describe_sizes(buffer->sizes()).str());
    }
    EXPECT_EQ(sizes, (std::vector<std::string>{"[100]", "[100]", "[]"}));
  });
}

struct SlicesPack : nn::Module {
  Tensor forward(const ValueList& args) {
    return slice(args[0].to_tensor(), args[1].to_int(), args[2].to_sym_int(), args[3].to_sym_int());
  }
  WEFT_ARGS(*args)
};

TEST(TestDynamismExpression, test_export_slice_maxsize) {
  for_each_variant([](const Exporter& exports) {
    const ValueList args = {rand({10, 3, 224, 224}), 0, 0, INT64_MAX};
    const ShapeSpec pack = ShapeSpec::list({{{0, Dim("dim")}}, {}, {}, {}});
    const ExportedProgram program =
        exports(SlicesPack(), args, {.dynamic_shapes = DynamicShapes::by_position({pack})});
    const Tensor other = rand({7, 3, 224, 224});
    testing::expect_equal(only_tensor(program.module().call({other, 0, 0, INT64_MAX})), other);
  });
}

}  // namespace
}  // namespace weft
