// The rows of TestExport about the training dialect and about programs that write: what stays as it was
// written, and what a functional program gives instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "weft/aot/compile.h"
#include "weft/capture/is_compiling.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::count_calls;
using testing::expect_as_eager;
using testing::expect_close_trees;
using testing::Exporter;
using testing::for_each_variant;
using ::testing::HasSubstr;
using testing::only_tensor;
using testing::own_tensors;
using testing::stripped_code;

struct TwoByTwo : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  Tensor forward(const Tensor& x) { return linear(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_simple_export_for_training) {
  const TwoByTwo eager;
  const ExportedProgram program = export_for_training(eager, {ones({2, 2})});
  EXPECT_EQ(stripped_code(program.graph_module()), R"(def forward(self, p_linear_weight, p_linear_bias, x):
    linear = torch.ops.aten.linear.default(x, p_linear_weight, p_linear_bias);  x = p_linear_weight = p_linear_bias = None
    return (linear,))");
  const GraphModule module = program.module();
  EXPECT_EQ(stripped_code(module), R"(def forward(self, x):
    x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
    linear_weight = self.linear.weight
    linear_bias = self.linear.bias
    linear = torch.ops.aten.linear.default(x, linear_weight, linear_bias);  x = linear_weight = linear_bias = None
    return pytree.tree_unflatten((linear,), self._out_spec))");
  EXPECT_TRUE(testing::close(only_tensor(module.call({ones({2, 2})})), eager(ones({2, 2}))));
}

struct WritesBoth : nn::Module {
  Tensor buffer = Module::buffer("buffer", ones({4, 4}));
  Tensor forward(const Tensor& x) {
    x.add_(5);
    buffer.add_(5);
    return x + buffer;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_for_training_with_mutation) {
  const ExportedProgram program = export_for_training(WritesBoth(), {ones({4, 4})});
  EXPECT_EQ(stripped_code(program.graph_module()), R"(def forward(self, b_buffer, x):
    add_ = torch.ops.aten.add_.Tensor(x, 5);  x = None
    add__1 = torch.ops.aten.add_.Tensor(b_buffer, 5);  b_buffer = None
    add = torch.ops.aten.add.Tensor(add_, add__1);  add_ = add__1 = None
    return (add,))");
  const GraphModule module = program.module();
  EXPECT_EQ(stripped_code(module), R"(def forward(self, x):
    x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
    buffer = self.buffer
    add_ = torch.ops.aten.add_.Tensor(x, 5);  x = None
    add__1 = torch.ops.aten.add_.Tensor(buffer, 5);  buffer = None
    add = torch.ops.aten.add.Tensor(add_, add__1);  add_ = add__1 = None
    return pytree.tree_unflatten((add,), self._out_spec))");
  const WritesBoth eager;
  EXPECT_TRUE(testing::close(only_tensor(module.call({ones({4, 4})})), eager(ones({4, 4}))));
}

struct WritesRows : nn::Module {
  Tensor buffer = Module::buffer("buffer", ones({4, 4}));
  Tensor forward(const std::vector<Tensor>& container) {
    Tensor x = container[0][0], y = container[0][1];
    x.add_(5);
    y.add_(5);
    return x + y + buffer.sum();
  }
  WEFT_ARGS(container)
};

TEST(TestExport, test_export_for_training_with_container_type) {
  const WritesRows eager;
  auto fresh = [] { return Value::list({ones({4, 4}), ones({4, 4})}); };
  const ExportedProgram program = export_for_training(eager, {fresh()});
  const Tensor result = only_tensor(program.module().call({fresh()}));
  EXPECT_TRUE(testing::close(result, full({4}, 28.0)));
  expect_as_eager(program, eager, {fresh()});
}

struct CountsUp : nn::Module {
  Tensor buffer = Module::buffer("buffer", ones({2, 2}));
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  Tensor forward(const Tensor& x) {
    buffer.add_(5);
    const Tensor y = linear(x);
    return y + buffer.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_for_training_run_decomp) {
  const ExportedProgram program = export_for_training(CountsUp(), {ones({2, 2})});
  // An empty table: composites only.
  EXPECT_EQ(stripped_code(program.run_decompositions({}).graph_module()),
            R"(def forward(self, p_linear_weight, p_linear_bias, b_buffer, x):
    add = torch.ops.aten.add.Tensor(b_buffer, 5);  b_buffer = None
    t = torch.ops.aten.t.default(p_linear_weight);  p_linear_weight = None
    addmm = torch.ops.aten.addmm.default(p_linear_bias, x, t);  p_linear_bias = x = t = None
    sum_1 = torch.ops.aten.sum.default(add)
    add_1 = torch.ops.aten.add.Tensor(addmm, sum_1);  addmm = sum_1 = None
    return (add, add_1))");
  // No table: Core ATen.
  EXPECT_EQ(stripped_code(program.run_decompositions().graph_module()),
            R"(def forward(self, p_linear_weight, p_linear_bias, b_buffer, x):
    add = torch.ops.aten.add.Tensor(b_buffer, 5);  b_buffer = None
    permute = torch.ops.aten.permute.default(p_linear_weight, [1, 0]);  p_linear_weight = None
    addmm = torch.ops.aten.addmm.default(p_linear_bias, x, permute);  p_linear_bias = x = permute = None
    sum_1 = torch.ops.aten.sum.dim_IntList(add, [])
    add_1 = torch.ops.aten.add.Tensor(addmm, sum_1);  addmm = sum_1 = None
    return (add, add_1))");
}

// --- functional programs ---------------------------------------------------------------------------------

struct WritesTemporary : nn::Module {
  Tensor forward(const Tensor& x) {
    Tensor z = x + 4;
    z.add_(4);
    Tensor y = z.view(x.sizes());
    return x.cos() + y.cos();
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_if_functional) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(WritesTemporary(), {from_data(std::vector<int64_t>{2, 3, 5})});
    EXPECT_EQ(count_calls(program.graph_module(), "aten::add_.Tensor"), 0u);
    EXPECT_GT(count_calls(program.graph_module(), "aten::view"), 0u);
  });
}

struct WritesThroughView : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) {
    x.view({3, 2, -1}).add_(y);
    return x;
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_export_input_mutation_static_shape) {
  for_each_variant([](const Exporter& exports) {
    const WritesThroughView model;
    const ValueList inputs = {randn({12}), from_data(std::vector<int64_t>{2}, {})};
    const Tensor original = inputs[0].to_tensor().clone();
    const ExportedProgram program = exports(model, inputs);
    EXPECT_TRUE(testing::close(inputs[0].to_tensor(), original, 0, 0));
    const ValueList for_program = own_tensors(inputs), for_model = own_tensors(inputs);
    const Tensor wanted = model(for_model[0].to_tensor(), for_model[1].to_tensor());
    EXPECT_TRUE(testing::close(only_tensor(program.module().call(for_program)), wanted));
    EXPECT_TRUE(testing::close(for_model[0].to_tensor(), original + 2));
    EXPECT_TRUE(testing::close(for_program[0].to_tensor(), original + 2));
  });
}

struct BufferAndInput : nn::Module {
  Tensor foo = buffer("foo", randn({4, 4}));
  Tensor forward(const Tensor& x) {
    foo.add_(1);
    x.add_(1);
    return foo + x;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_user_input_and_buffer_mutation) {
  for_each_variant([](const Exporter& exports) {
    const BufferAndInput module, copy = nn::deep_copy(module);
    const ExportedProgram program = exports(copy, {rand({4, 4})});
    EXPECT_TRUE(testing::close(program.module().find("foo").to_tensor(), module.foo, 0, 0));
    EXPECT_TRUE(testing::close(only_tensor(program.module().call({ones({4, 4})})), module(ones({4, 4}))));
  });
}

struct Branches : nn::Module {
  Tensor forward(const Tensor& x) { return x.size(0) > 4 ? x.cos() : x.sin(); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_train_eval_on_exported_preautograd_module) {
  for_each_variant([](const Exporter& exports) {
    GraphModule module = exports(Branches(), {ones({7, 5})}).module();
    EXPECT_UNSUPPORTED(module.train(), "Calling train() is not supported yet.");
    EXPECT_UNSUPPORTED(module.eval(), "Calling eval() is not supported yet.");
  });
}

// --- who captures ----------------------------------------------------------------------------------------

struct AsksWhetherItIsCaptured : nn::Module {
  Tensor forward(const Tensor& x) { return is_compiling() ? x * 2 : x * 3; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_compiling_state) {
  for_each_variant([](const Exporter& exports) {
    const Tensor input = randn({5});
    const AsksWhetherItIsCaptured module;
    const ExportedProgram program = exports(module, {input});
    EXPECT_TRUE(testing::close(module(input), input * 3));
    EXPECT_TRUE(testing::close(only_tensor(program.module().call({input})), input * 2));
    EXPECT_FALSE(is_compiling());
  });
  auto f = [](const Tensor& x) { return is_compiling() ? x * 2 : x * 3; };
  EXPECT_TRUE(testing::close(compile(f)(ones({2})), full({2}, 2.0)));
}

TEST(TestExport, test_export_as_backend) {
  for_each_variant([](const Exporter& exports) {
    auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
    size_t calls = 0;
    const Backend backend = [&](const GraphModule& graph, const ValueList& examples) {
      ++calls;
      return exports(graph, examples).run_decompositions().module().function();
    };
    const Tensor x = randn({3, 3}), y = randn({3, 3});
    EXPECT_TRUE(testing::close(compile(f, backend)(x, y), f(x, y)));
    EXPECT_EQ(calls, 1u);
  });
}

}  // namespace
}  // namespace weft
