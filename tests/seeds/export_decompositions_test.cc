// The rows of TestExport about decompositions: tables, composites that stay whole, operators on their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/as_eager.h"
#include "weft/core/from_data.h"
#include "weft/nn/layers.h"
#include "weft/ops/attention.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::count_calls;
using testing::expect_as_eager;
using testing::expect_close_trees;
using testing::Exporter;
using testing::for_each_variant;
using ::testing::HasSubstr;
using testing::own_tensors;
using testing::stripped_code;

struct LinearInParts : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(3, 3));
  std::vector<Tensor> forward(const Tensor& x) { return chunk(linear(x), 3, 0); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_preserve_linear_at_aot_level) {
  for_each_variant([](const Exporter& exports) {
    if (exports.is_decomposed()) return;  // the row decomposes a fresh program
    const LinearInParts module;
    const ExportedProgram program = exports(module, {randn({3, 3})}).run_decompositions({}, {"aten::linear"});
    EXPECT_EQ(stripped_code(program.graph_module()), R"(def forward(self, p_linear_weight, p_linear_bias, x):
    linear = torch.ops.aten.linear.default(x, p_linear_weight, p_linear_bias);  x = p_linear_weight = p_linear_bias = None
    split = torch.ops.aten.split.Tensor(linear, 1);  linear = None
    getitem = split[0]
    getitem_1 = split[1]
    getitem_2 = split[2];  split = None
    return (getitem, getitem_1, getitem_2))");
    expect_as_eager(program, module, {randn({3, 3})});
  });
}

TEST(TestExport, test_keep_composite_ops_invalid) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(LinearInParts(), {randn({3, 3})});
    EXPECT_USER_ERROR(program.run_decompositions({}, {"aten::chunk"}),
                      "aten.chunk.default is a mutating/aliasing op");
    EXPECT_USER_ERROR(program.run_decompositions({}, {"aten::add.Tensor"}),
                      "aten.add.Tensor is not CompositeImplicitAutograd op, so we will preserve it as");
    EXPECT_USER_ERROR(program.run_decompositions({}, {"aten::sym_size"}),
                      "aten.sym_size.default is a metadata query function");
    EXPECT_USER_ERROR(program.run_decompositions({}, {"aten::native_batch_norm"}),
                      "We can't detect aten.native_batch_norm.default as a functional op statically");
  });
}

struct ConstantLinear : nn::Module {
  Tensor weight = randn({20, 98}), bias = randn({20});
  ConstantLinear() {
    attribute("weight", weight);
    attribute("bias", bias);
  }
  Tensor forward(const Tensor& x) { return linear(x, weight, bias); }
  WEFT_ARGS(x)
};
struct BufferLinear : nn::Module {
  Tensor weight = buffer("weight", randn({20, 98})), bias = buffer("bias", randn({20}));
  Tensor forward(const Tensor& x) { return linear(x, weight, bias); }
  WEFT_ARGS(x)
};
template <typename Last>
struct Convolutions : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(16, 33, 3));
  nn::Conv1d conv1d = child("conv1d", nn::Conv1d(16, 33, 3));
  Last linear = child("linear", Last());
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor x_conv = conv(x), y_conv = conv1d(y);
    const Tensor x_linear = linear(x_conv).cos();
    return x_linear + y_conv.sum();
  }
  WEFT_ARGS(x, y)
};
ValueList convolution_inputs() { return {randn({20, 16, 50, 100}), randn({20, 16, 50})}; }

constexpr const char* kKeptAll =
    R"(    conv2d = torch.ops.aten.conv2d.default(x, p_conv_weight, p_conv_bias);  x = p_conv_weight = p_conv_bias = None
    conv1d = torch.ops.aten.conv1d.default(y, p_conv1d_weight, p_conv1d_bias);  y = p_conv1d_weight = p_conv1d_bias = None
    linear = torch.ops.aten.linear.default(conv2d, c_linear_weight, c_linear_bias);  conv2d = c_linear_weight = c_linear_bias = None
    cos = torch.ops.aten.cos.default(linear);  linear = None
    sum_1 = torch.ops.aten.sum.default(conv1d);  conv1d = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))";
constexpr const char* kKeptConvolutions =
    R"(    conv2d = torch.ops.aten.conv2d.default(x, p_conv_weight, p_conv_bias);  x = p_conv_weight = p_conv_bias = None
    conv1d = torch.ops.aten.conv1d.default(y, p_conv1d_weight, p_conv1d_bias);  y = p_conv1d_weight = p_conv1d_bias = None
    view = torch.ops.aten.view.default(conv2d, [31680, 98]);  conv2d = None
    permute = torch.ops.aten.permute.default(c_linear_weight, [1, 0]);  c_linear_weight = None
    addmm = torch.ops.aten.addmm.default(c_linear_bias, view, permute);  c_linear_bias = view = permute = None
    view_1 = torch.ops.aten.view.default(addmm, [20, 33, 48, 20]);  addmm = None
    cos = torch.ops.aten.cos.default(view_1);  view_1 = None
    sum_1 = torch.ops.aten.sum.dim_IntList(conv1d, []);  conv1d = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))";
constexpr const char* kKeptConv2d =
    R"(    conv2d = torch.ops.aten.conv2d.default(x, p_conv_weight, p_conv_bias);  x = p_conv_weight = p_conv_bias = None
    convolution = torch.ops.aten.convolution.default(y, p_conv1d_weight, p_conv1d_bias, [1], [0], [1], False, [0], 1);  y = p_conv1d_weight = p_conv1d_bias = None
    view = torch.ops.aten.view.default(conv2d, [31680, 98]);  conv2d = None
    permute = torch.ops.aten.permute.default(c_linear_weight, [1, 0]);  c_linear_weight = None
    addmm = torch.ops.aten.addmm.default(c_linear_bias, view, permute);  c_linear_bias = view = permute = None
    view_1 = torch.ops.aten.view.default(addmm, [20, 33, 48, 20]);  addmm = None
    cos = torch.ops.aten.cos.default(view_1);  view_1 = None
    sum_1 = torch.ops.aten.sum.dim_IntList(convolution, []);  convolution = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))";
constexpr const char* kComposites =
    R"(    convolution = torch.ops.aten.convolution.default(x, p_conv_weight, p_conv_bias, [1, 1], [0, 0], [1, 1], False, [0, 0], 1);  x = p_conv_weight = p_conv_bias = None
    convolution_1 = torch.ops.aten.convolution.default(y, p_conv1d_weight, p_conv1d_bias, [1], [0], [1], False, [0], 1);  y = p_conv1d_weight = p_conv1d_bias = None
    view = torch.ops.aten.view.default(convolution, [31680, 98]);  convolution = None
    t = torch.ops.aten.t.default(b_linear_weight);  b_linear_weight = None
    addmm = torch.ops.aten.addmm.default(b_linear_bias, view, t);  b_linear_bias = view = t = None
    view_1 = torch.ops.aten.view.default(addmm, [20, 33, 48, 20]);  addmm = None
    cos = torch.ops.aten.cos.default(view_1);  view_1 = None
    sum_1 = torch.ops.aten.sum.default(convolution_1);  convolution_1 = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))";
constexpr const char* kCore =
    R"(    convolution = torch.ops.aten.convolution.default(x, p_conv_weight, p_conv_bias, [1, 1], [0, 0], [1, 1], False, [0, 0], 1);  x = p_conv_weight = p_conv_bias = None
    convolution_1 = torch.ops.aten.convolution.default(y, p_conv1d_weight, p_conv1d_bias, [1], [0], [1], False, [0], 1);  y = p_conv1d_weight = p_conv1d_bias = None
    view = torch.ops.aten.view.default(convolution, [31680, 98]);  convolution = None
    permute = torch.ops.aten.permute.default(b_linear_weight, [1, 0]);  b_linear_weight = None
    addmm = torch.ops.aten.addmm.default(b_linear_bias, view, permute);  b_linear_bias = view = permute = None
    view_1 = torch.ops.aten.view.default(addmm, [20, 33, 48, 20]);  addmm = None
    cos = torch.ops.aten.cos.default(view_1);  view_1 = None
    sum_1 = torch.ops.aten.sum.dim_IntList(convolution_1, []);  convolution_1 = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))";

std::string convolution_code(const std::string& prefix, std::string body) {
  std::string code =
      "def forward(self, p_conv_weight, p_conv_bias, p_conv1d_weight, p_conv1d_bias, c_linear_weight, "
      "c_linear_bias, x, y):\n" +
      body;
  for (const std::string name : {"_linear_weight", "_linear_bias"})
    for (const std::string other : {"b", "c"})
      for (size_t at = code.find(other + name); at != code.npos; at = code.find(other + name, at + 1))
        if (!std::isalnum(static_cast<unsigned char>(code[at - 1]))) code.replace(at, 1, prefix);
  return code;
}

template <typename Last>
void expect_convolutions(const ExportedProgram& program, const std::string& prefix) {
  const ExportedProgram whole = program.run_decompositions({}, preservable_composites());
  EXPECT_EQ(stripped_code(whole.graph_module()), convolution_code(prefix, kKeptAll));
  const ExportedProgram core =
      program.run_decompositions(aot::core_decompositions(), {"aten::conv2d", "aten::conv1d"});
  EXPECT_EQ(stripped_code(core.graph_module()), convolution_code(prefix, kKeptConvolutions));
  const ExportedProgram again = core.run_decompositions(aot::core_decompositions(), {"aten::conv2d"});
  EXPECT_EQ(stripped_code(again.graph_module()), convolution_code(prefix, kKeptConv2d));
}

TEST(TestExport, test_keep_composite_ops_linear_convd) {
  for_each_variant([](const Exporter& exports) {
    if (exports.is_decomposed()) return;  // the row decomposes a fresh program
    const Convolutions<ConstantLinear> module;
    const ValueList inputs = convolution_inputs();
    const ExportedProgram program = exports(module, inputs);
    expect_convolutions<ConstantLinear>(program, "c");
    expect_as_eager(program.run_decompositions({}, {"aten::conv1d"}), module, inputs);
  });
}

TEST(TestExport, test_keep_composite_ops_linear_convd_for_training_ir) {
  const Convolutions<BufferLinear> module;
  const ExportedProgram program = export_for_training(module, convolution_inputs());
  const ExportedProgram first = program.run_decompositions({});
  EXPECT_EQ(stripped_code(first.graph_module()), convolution_code("b", kComposites));
  EXPECT_EQ(stripped_code(first.run_decompositions().graph_module()), convolution_code("b", kCore));
  expect_convolutions<BufferLinear>(program, "b");
}

struct OneLinearLayer : nn::Module {
  nn::Linear lin = child("lin", nn::Linear(10, 1));
  Tensor forward(const Tensor& x) { return lin(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_export_decomps_simple) {
  for_each_variant([](const Exporter& exports) {
    const OneLinearLayer module;
    const ValueList inputs = {randn({5, 10})};
    const ExportedProgram program = exports(module, inputs);
    const auto* state = &program.state_dict();
    const TensorImpl* weight = program.tensor("lin.weight").impl();
    expect_as_eager(program, module, inputs);
    const ExportedProgram core = program.run_decompositions();
    EXPECT_EQ(count_calls(core.graph_module(), "aten::permute"), 1u);
    EXPECT_EQ(count_calls(core.graph_module(), "aten::t"), 0u);
    expect_as_eager(core, module, inputs);
    EXPECT_EQ(state, &program.state_dict());
    EXPECT_EQ(weight, core.tensor("lin.weight").impl());
  });
}

TEST(TestExport, test_export_decomps_dynamic) {
  for_each_variant([](const Exporter& exports) {
    const OneLinearLayer module;
    const ValueList inputs = {randn({5, 10})};
    const ExportedProgram core =
        exports(module, inputs, {.dynamic_shapes = {{"x", {{0, Dim("batch")}}}}}).run_decompositions();
    const Tensor last = core.graph().placeholders().back()->meta().value.to_tensor();
    EXPECT_TRUE(last.size(0).is_symbolic());
    EXPECT_EQ(count_calls(core.graph_module(), "aten::permute"), 1u);
    EXPECT_EQ(count_calls(core.graph_module(), "aten::t"), 0u);
    expect_as_eager(core, module, inputs);
    expect_as_eager(core, module, {randn({7, 10})});
  });
}

struct ConvolutionAndNorm : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 3, 1));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(3));
  std::tuple<Tensor> forward(const Tensor& x) { return bn(conv(x)); }
  WEFT_ARGS(x)
};

constexpr const char* kNormInEvaluation = R"(def forward(self, x):
    x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
    conv_weight = self.conv.weight
    conv_bias = self.conv.bias
    bn_weight = self.bn.weight
    bn_bias = self.bn.bias
    bn_running_mean = self.bn.running_mean
    bn_running_var = self.bn.running_var
    conv2d = torch.ops.aten.conv2d.default(x, conv_weight, conv_bias);  x = conv_weight = conv_bias = None
    _native_batch_norm_legit_no_training = torch.ops.aten._native_batch_norm_legit_no_training.default(conv2d, bn_weight, bn_bias, bn_running_mean, bn_running_var, 0.1, 1e-05);  conv2d = bn_weight = bn_bias = bn_running_mean = bn_running_var = None
    getitem = _native_batch_norm_legit_no_training[0];  _native_batch_norm_legit_no_training = None
    return pytree.tree_unflatten((getitem,), self._out_spec))";
constexpr const char* kNormInTraining = R"(def forward(self, x):
    x, = fx_pytree.tree_flatten_spec(([x], {}), self._in_spec)
    conv_weight = self.conv.weight
    conv_bias = self.conv.bias
    bn_weight = self.bn.weight
    bn_bias = self.bn.bias
    bn_running_mean = self.bn.running_mean
    bn_running_var = self.bn.running_var
    bn_num_batches_tracked = self.bn.num_batches_tracked
    conv2d = torch.ops.aten.conv2d.default(x, conv_weight, conv_bias);  x = conv_weight = conv_bias = None
    add = torch.ops.aten.add.Tensor(bn_num_batches_tracked, 1)
    _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(conv2d, bn_weight, bn_bias, bn_running_mean, bn_running_var, True, 0.1, 1e-05);  conv2d = bn_weight = bn_bias = None
    getitem = _native_batch_norm_legit_functional[0]
    getitem_3 = _native_batch_norm_legit_functional[3]
    getitem_4 = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
    copy__default = torch.ops.aten.copy_.default(bn_running_mean, getitem_3);  bn_running_mean = getitem_3 = copy__default = None
    copy__default_1 = torch.ops.aten.copy_.default(bn_running_var, getitem_4);  bn_running_var = getitem_4 = copy__default_1 = None
    copy__default_2 = torch.ops.aten.copy_.default(bn_num_batches_tracked, add);  bn_num_batches_tracked = add = copy__default_2 = None
    return pytree.tree_unflatten((getitem,), self._out_spec))";

TEST(TestExport, test_decomp_batch_norm_functional_predispatch) {
  for_each_variant([](const Exporter& exports) {
    const ValueList inputs = {randn({1, 1, 3, 3})};
    ConvolutionAndNorm module;
    const ConvolutionAndNorm as_it_was = nn::deep_copy(module);
    for (const bool training : {false, true}) {
      module.train(training);
      const ExportedProgram program = exports(module, inputs);
      EXPECT_TRUE(testing::close(module.bn.running_mean, as_it_was.bn.running_mean, 0, 0));
      if (!exports.is_decomposed() &&
          !exports.is_retraced()) {  // which have other operators, or other writes
        EXPECT_EQ(stripped_code(program.module()), training ? kNormInTraining : kNormInEvaluation);
      }
      expect_as_eager(program, nn::deep_copy(module), inputs);
    }
  });
}

struct BackendCall : nn::Module {
  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(q, k, v, {}, 0.0, true);
  }
  WEFT_ARGS(q, k, v)
};

TEST(TestOneOffModelExportResult, test_scaled_dot_product_attention_cpu) {
  for_each_variant([](const Exporter& exports) {
    const AttentionBackends math({AttentionBackend::kMath});
    const ValueList inputs = {randn({1, 1, 8, 8}), randn({1, 1, 8, 8}), randn({1, 1, 8, 8})};
    const ExportedProgram program = exports(BackendCall(), inputs);
    EXPECT_FALSE(program.graph().to_string().empty());
    const ExportedProgram decomposed = program.run_decompositions();
    EXPECT_FALSE(program.graph().to_string().empty());
    // The formula, not the operator that a CPU has.
    EXPECT_EQ(count_calls(decomposed.graph_module(), "aten::_scaled_dot_product_flash_attention_for_cpu"),
              0u);
    EXPECT_EQ(count_calls(decomposed.graph_module(), "aten::bmm"), 2u);
    expect_as_eager(decomposed, BackendCall(), inputs);
  });
}

// The accelerator is the second device of this process. Files are for PyTorch too, which has no such device:
// there it is the CPU, so that a file says what was chosen before.
TEST(TestOneOffModelExportResult, test_scaled_dot_product_attention_cuda) {
  for_each_variant([](const Exporter& exports) {
    ValueList inputs;
    for (int i = 0; i < 3; ++i) inputs.push_back(randn({1, 16, 16, 64}).to(kBFloat16).to(Device("sim")));
    const ExportedProgram decomposed =
        exports.is_saved()
            ? testing::saved_and_loaded(export_program(BackendCall(), inputs).run_decompositions())
            : exports(BackendCall(), inputs).run_decompositions();
    EXPECT_EQ(stripped_code(decomposed.graph_module()), R"(def forward(self, q, k, v):
    _scaled_dot_product_flash_attention = torch.ops.aten._scaled_dot_product_flash_attention.default(q, k, v, 0.0, True, scale = 0.125);  q = k = v = None
    getitem = _scaled_dot_product_flash_attention[0];  _scaled_dot_product_flash_attention = None
    return (getitem,))");
    const Tensor result = testing::only_tensor(decomposed.module().call(inputs));
    EXPECT_EQ(result.device(), Device("sim"));
    const Tensor by_formula = BackendCall()(inputs[0].to_tensor().to(kCpu).to(kFloat32),
                                            inputs[1].to_tensor().to(kCpu).to(kFloat32),
                                            inputs[2].to_tensor().to(kCpu).to(kFloat32));
    EXPECT_TRUE(testing::close(result.to(kCpu).to(kFloat32), by_formula, 0.02, 0.02));
  });
}

// --- single operators ------------------------------------------------------------------------------------

struct BatchNormCall : nn::Module {
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                             const Tensor& running_mean, const Tensor& running_var,
                                             bool training, double momentum, double eps) {
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  }
  WEFT_ARGS(input, weight, bias, running_mean, running_var, training, momentum, eps)
};

TEST(TestExport, test_run_decomposition_supports_user_input_mutation) {
  for_each_variant([](const Exporter& exports) {
    const ValueList inputs = {randn({5, 5, 5}), randn({5}), randn({5}), randn({5}),
                              randn({5}),       true,       0.5,        0.6};
    const Value output = testing::eager_result(BatchNormCall(), inputs);
    const ExportedProgram program = exports(BatchNormCall(), inputs);
    const ExportedProgram decomposed = program.run_decompositions(standard_decompositions());
    expect_close_trees(program.module().call(inputs), output);
    expect_close_trees(decomposed.module().call(inputs), output);
  });
}

struct ScatterAddCall : nn::Module {
  Tensor forward(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& src) {
    return scatter_add(t, dim, index, src);
  }
  WEFT_ARGS(t, dim, index, src)
};

TEST(TestExport, test_check_specialized_int) {
  for_each_variant([](const Exporter& exports) {
    const Tensor index = from_data(
        std::vector<int64_t>{2, 4, 3, 1, 0, 0, 2, 1, 4, 3, 3, 1, 4, 2, 0, 4, 0, 3, 1, 2, 3, 0, 4, 1, 2},
        {5, 5});
    const ValueList inputs = {randn({10, 5}), -1, index, randn({5, 5})};
    const ExportedProgram program = exports(ScatterAddCall(), inputs);
    EXPECT_NO_THROW(program.run_decompositions(standard_decompositions()));
    expect_as_eager(program, ScatterAddCall(), inputs);
  });
}

struct LiftFresh : nn::Module {
  Tensor forward(const Tensor& x) { return lift_fresh_copy(x); }
  WEFT_ARGS(x)
};

TEST(TestExport, test_aten_lift_fresh_copy) {
  for_each_variant([](const Exporter& exports) {
    const ExportedProgram program = exports(LiftFresh(), {ones({6, 4})});
    EXPECT_EQ(count_calls(program.graph_module(), "aten::clone"), 1u);
    expect_as_eager(program, LiftFresh(), {ones({6, 4})});
  });
}

// --- conversions that change nothing ---------------------------------------------------------------------

struct ToCpu : nn::Module {
  Tensor forward(const Tensor& x) { return x.to(Device("cpu")); }
  WEFT_ARGS(x)
};
struct ToFloat : nn::Module {
  Tensor forward(const Tensor& x) { return x.to(kFloat32); }
  WEFT_ARGS(x)
};
template <typename M>
struct WritesConverted : nn::Module {
  M convert = child("convert", M());
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    Tensor y = convert(x);
    y.add_(1);
    return {y, x};
  }
  WEFT_ARGS(x)
};

void expect_only_copies(const ExportedProgram& program) {
  size_t calls = 0;
  for (const Node& node : program.graph()) {
    if (node.kind() != NodeKind::kCallFunction) continue;
    ASSERT_NE(node.target().op(), nullptr);
    EXPECT_EQ(node.target().op()->name(), "aten::_to_copy");
    ++calls;
  }
  EXPECT_GT(calls, 0u);
}

Tensor one_on_cpu() { return from_data(std::vector<int64_t>{1}, {}); }

TEST(TestExport, test_device_to_static) {
  for_each_variant([](const Exporter& exports) { expect_only_copies(exports(ToCpu(), {one_on_cpu()})); });
}
TEST(TestExport, test_device_to_dynamic) {
  for_each_variant([](const Exporter& exports) {
    expect_only_copies(exports(ToCpu(), {from_data(std::vector<int64_t>{1, 2})},
                               {.dynamic_shapes = {{"x", {{0, Dim("i")}}}}}));
  });
}
TEST(TestExport, test_float_conversion) {
  for_each_variant([](const Exporter& exports) { expect_only_copies(exports(ToFloat(), {ones({1})})); });
}
TEST(TestExport, test_device_to_mutation) {
  for_each_variant([](const Exporter& exports) {
    EXPECT_USER_ERROR(exports(WritesConverted<ToCpu>(), {one_on_cpu()}),
                      "cannot mutate tensors with frozen storage");
  });
}
TEST(TestExport, test_device_to_mutation_float) {
  for_each_variant([](const Exporter& exports) {
    EXPECT_USER_ERROR(exports(WritesConverted<ToFloat>(), {ones({1})}),
                      "cannot mutate tensors with frozen storage");
  });
}

// --- attention and recurrent layers ----------------------------------------------------------------------

struct FirstOfAttention : nn::Module {
  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(q, k, v)[0];
  }
  WEFT_ARGS(q, k, v)
};

TEST(TestExport, test__scaled_dot_product_flash_attention) {
  for_each_variant([](const Exporter& exports) {
    const ValueList inputs = {randn({5, 4, 3, 2}), randn({5, 4, 3, 2}), randn({5, 4, 3, 2})};
    testing::expect_exports_as_eager(exports, FirstOfAttention(), inputs);
  });
}

struct OneLstm : nn::Module {
  nn::LSTM lstm = child("lstm", nn::LSTM(4, 5));
  std::tuple<Tensor, nn::LSTM::State> forward(const Tensor& inputs) { return lstm(inputs); }
  WEFT_ARGS(inputs)
};

TEST(TestExport, test_export_dynamo_config) {
  for_each_variant([](const Exporter& exports) {
    const OneLstm module;
    const ValueList inputs = {rand({5, 4})};
    testing::expect_exports_as_eager(exports, module, inputs);
    {
      const ExportConfigScope patched({.allow_rnn = false});
      EXPECT_UNSUPPORTED(exports(module, inputs), "TorchDynamo purposely graph breaks on RNN, GRU, LSTMs");
    }
    EXPECT_TRUE(ExportConfig::current().allow_rnn);
    EXPECT_NO_THROW(exports(module, inputs));
  });
}

}  // namespace
}  // namespace weft
