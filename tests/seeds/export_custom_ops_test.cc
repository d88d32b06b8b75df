// The rows of TestExport about operators of the user's own.
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "weft/ops/define.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::expect_close_trees;
using testing::Exporter;
using testing::for_each_variant;
using testing::stripped_code;

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

TensorSpec same_as(const Tensor& x) { return contiguous_spec(x.sizes(), x.dtype(), x.device()); }

// The operators of PyTorch's test library.
struct TestOperators {
  const Operator& returns_tensor_symint = define_operator(
      "testlib::returns_tensor_symint(Tensor x) -> (Tensor, SymInt)",
      {.kernel = [](const Tensor& x) { return std::tuple<Tensor, SymInt>(x, x.size(0)); },
       .meta = [](const Tensor& x) { return std::tuple<TensorSpec, SymInt>(same_as(x), x.size(0)); }});
  const Operator& foo = define_operator(
      "testlib::foo(Tensor(a!) x, Tensor(b!) z) -> (Tensor, Tensor, Tensor)",
      {.kernel =
           [](const Tensor& x, const Tensor& z) {
             x.add_(5);
             z.add_(5);
             return Three(x, z, x + z);
           },
       .meta = [](const Tensor& x,
                  const Tensor& z) { return std::tuple<Tensor, Tensor, TensorSpec>(x, z, same_as(x)); }});
  const Operator& foo_mutated = define_operator(
      "testlib::foo_mutated(Tensor(a!) x) -> (Tensor, Tensor)", {.composite = [this](const Tensor& x) {
        const Tensor a = call(foo, {x, x.cos()}).elements()[0].to_tensor();
        return Pair(a, a.cos());
      }});
  const Operator& foo_functional =
      define_operator("testlib::foo_functional(Tensor x) -> Tensor", {.composite = [this](const Tensor& x) {
                        return call(foo, {x.cos(), x.cos()}).elements()[0].to_tensor().cos();
                      }});

  static const TestOperators& get() {
    static const TestOperators operators;
    return operators;
  }
};

struct ReturnsSize : nn::Module {
  Tensor forward(const Tensor& x) {
    return call(TestOperators::get().returns_tensor_symint, {x}).elements()[0].to_tensor();
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_symint_tensor_return) {
  for_each_variant([](const Exporter& exports) {
    testing::expect_exports_as_eager(exports, ReturnsSize(), {randn({4, 4})});
  });
}

struct CallsFoo : nn::Module {
  Three forward(const Tensor& x, const Tensor& z) {
    const ValueList results = call(TestOperators::get().foo, {x, z}).elements();
    return {results[0].to_tensor(), results[1].to_tensor(), results[2].to_tensor()};
  }
  WEFT_ARGS(x, z)
};

TEST(TestExport, test_custom_op_auto_functionalize) {
  for_each_variant([](const Exporter& exports) {
    const Value wanted = Value::tuple({full({5}, 6.0), full({5}, 6.0), full({5}, 12.0)});
    const ValueList inputs = {ones({5}), ones({5})};
    expect_close_trees(testing::eager_result(CallsFoo(), {ones({5}), ones({5})}), wanted);
    const ExportedProgram program = exports(CallsFoo(), inputs);
    expect_close_trees(program.module().call(inputs), wanted);
    expect_close_trees(program.run_decompositions().module().call({ones({5}), ones({5})}), wanted);
  });
}

struct CallsMutated : nn::Module {
  Pair forward(const Tensor& x) {
    const ValueList results = call(TestOperators::get().foo_mutated, {x}).elements();
    return {results[0].to_tensor(), results[1].to_tensor()};
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_custom_op_auto_functionalize_pre_dispatch) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(CallsMutated(), {ones({5})});
    testing::expect_as_eager(program, CallsMutated(), {ones({5})});
    if (exports.is_retraced()) return;  // what the module writes back to its input is a copy of its own
    EXPECT_EQ(stripped_code(program.graph_module()), R"(def forward(self, x):
    cos = torch.ops.aten.cos.default(x)
    auto_functionalized = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.testlib.foo.default, x = x, z = cos);  x = cos = None
    getitem_3 = auto_functionalized[3];  auto_functionalized = None
    cos_1 = torch.ops.aten.cos.default(getitem_3)
    return (getitem_3, getitem_3, cos_1))");
  });
}

struct CallsFunctional : nn::Module {
  Tensor forward(const Tensor& x) { return call(TestOperators::get().foo_functional, {x}).to_tensor(); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_custom_op_auto_warn_pre_dispatch) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(CallsFunctional(), {ones({5})});
    EXPECT_EQ(stripped_code(program.run_decompositions().graph_module()), R"(def forward(self, x):
    cos = torch.ops.aten.cos.default(x)
    cos_1 = torch.ops.aten.cos.default(x);  x = None
    auto_functionalized = torch._higher_order_ops.auto_functionalize.auto_functionalized(torch.ops.testlib.foo.default, x = cos, z = cos_1);  cos = cos_1 = None
    getitem_3 = auto_functionalized[3];  auto_functionalized = None
    cos_2 = torch.ops.aten.cos.default(getitem_3);  getitem_3 = None
    return (cos_2,))");
    if (exports.is_decomposed()) return;  // what stays whole above autograd is not whole any more
    EXPECT_EQ(stripped_code(program.graph_module()), R"(def forward(self, x):
    foo_functional = torch.ops.testlib.foo_functional.default(x);  x = None
    return (foo_functional,))");
  });
}

}  // namespace
}  // namespace weft
