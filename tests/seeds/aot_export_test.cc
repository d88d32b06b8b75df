// The rows of TestAOTExport about whole modules: signatures, gradients, and what cannot be exported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/aot/aot_function.h"
#include "weft/aot/export_module.h"
#include "weft/autograd/autograd.h"
#include "weft/func/control_flow.h"
#include "weft/graph/text.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"

namespace weft {
namespace {

using testing::close;
using testing::code_of;
using testing::expect_equal;
using Names = GraphSignature::Names;

// A module with one parameter, whose forward is fn(p, x...).
template <auto fn>
struct WithParameter;
template <typename R, R (*fn)(const Tensor&, const Tensor&)>
struct WithParameter<fn> : nn::Module {
  Tensor p = parameter("p", ones({2}));
  R forward(const Tensor& x) { return fn(p, x); }
  WEFT_ARGS(x)
};
template <typename R, R (*fn)(const Tensor&, const Tensor&, const Tensor&)>
struct WithParameter<fn> : nn::Module {
  Tensor p = parameter("p", ones({2}));
  R forward(const Tensor& x, const Tensor& y) { return fn(p, x, y); }
  WEFT_ARGS(x, y)
};

// Both exports of one function refuse it.
template <auto fn>
void expect_refused(const ValueList& inputs, const std::string& words) {
  WithParameter<fn> module;
  ValueList all = inputs;
  all.insert(all.begin(), module.p);
  for (bool joint : {false, true})
    EXPECT_ERROR(aot_export_joint_simple(fn, all, {.trace_joint = joint}), words);
  EXPECT_ERROR(aot_export_module(module, inputs), words);
}

// --- one graph, its signature ----------------------------------------------------------------------------

struct ConvBatchnormRelu : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 3, 1, {.stride = 1}));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(3));
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    Tensor out = relu(bn(conv(x)));
    return {out.sum(), out.detach()};
  }
  WEFT_ARGS(x)
};

void expect_signature_of_state(const GraphSignature& signature) {
  using ::testing::ElementsAre;
  EXPECT_THAT(signature.parameters, ElementsAre("conv.weight", "conv.bias", "bn.weight", "bn.bias"));
  EXPECT_THAT(signature.buffers, ElementsAre("bn.running_mean", "bn.running_var", "bn.num_batches_tracked"));
  EXPECT_THAT(signature.user_inputs, ElementsAre("arg7_1"));
  EXPECT_EQ(signature.inputs_to_parameters, (Names{{"arg0_1", "conv.weight"},
                                                   {"arg1_1", "conv.bias"},
                                                   {"arg2_1", "bn.weight"},
                                                   {"arg3_1", "bn.bias"}}));
  EXPECT_EQ(signature.inputs_to_buffers, (Names{{"arg4_1", "bn.running_mean"},
                                                {"arg5_1", "bn.running_var"},
                                                {"arg6_1", "bn.num_batches_tracked"}}));
  EXPECT_EQ(signature.buffers_to_mutate, (Names{{"getitem_3", "bn.running_mean"},
                                                {"getitem_4", "bn.running_var"},
                                                {"add", "bn.num_batches_tracked"}}));
}

TEST(TestAOTExport, test_aot_export_module_joint) {
  ConvBatchnormRelu module;
  const Tensor x = randn({1, 1, 3, 3});
  const Tensor mean = module.bn.running_mean.clone();
  AotExport joint = aot_export_module(module, {x}, {.trace_joint = true, .output_loss_index = 0});
  EXPECT_EQ(joint.module.graph().placeholders().size(), 8u);
  EXPECT_EQ(joint.module.graph().output_node()->returned().elements().size(), 9u);
  const std::string code = joint.module.code();
  size_t at = 0;
  for (const char* name :
       {"aten.convolution.default", "aten._native_batch_norm_legit_functional.default", "aten.relu.default",
        "aten.ones_like.default", "aten.expand.default", "aten.threshold_backward.default",
        "aten.native_batch_norm_backward.default", "aten.convolution_backward.default"}) {
    at = code.find(name, at);
    EXPECT_NE(at, std::string::npos) << name << " in\n" << code;
  }
  expect_signature_of_state(joint.signature);
  ASSERT_TRUE(joint.signature.backward);
  std::vector<std::string> differentiated;
  for (const auto& [node, name] : joint.signature.backward->gradients_to_parameters)
    differentiated.push_back(name);
  EXPECT_EQ(differentiated, joint.signature.parameters);
  EXPECT_TRUE(joint.signature.backward->gradients_to_user_inputs.empty());
  EXPECT_EQ(joint.signature.backward->loss_output, "getitem_3");
  EXPECT_TRUE(close(module.bn.running_mean, mean, 0, 0));

  // The graph computes what eager mode does, gradients and statistics too.
  ValueList inputs;
  for (const auto& [name, tensor] : module.named_parameters()) inputs.emplace_back(tensor.detach().clone());
  for (const auto& [name, tensor] : module.named_buffers()) inputs.emplace_back(tensor.clone());
  inputs.emplace_back(x);
  const ValueList got = joint.module.call(inputs).elements();
  auto [loss, out] = module.forward(x);
  loss.backward();
  EXPECT_TRUE(close(got[0].to_tensor(), module.bn.running_mean, 1e-6, 1e-6));
  EXPECT_TRUE(close(got[3].to_tensor(), loss.detach(), 1e-5, 1e-5));
  EXPECT_TRUE(close(got[4].to_tensor(), out, 1e-5, 1e-5));
  size_t next = 5;
  for (const auto& [name, tensor] : module.named_parameters())
    EXPECT_TRUE(close(got[next++].to_tensor(), tensor.grad(), 1e-4, 1e-4)) << name;
}

TEST(TestAOTExport, test_aot_export_module_joint_Inference) {
  ConvBatchnormRelu module;
  AotExport inference = aot_export_module(module, {randn({1, 1, 3, 3})});
  EXPECT_EQ(testing::canonical(readable(inference.module.graph(), "<lambda>")),
            testing::canonical(R"(class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[3, 1, 1, 1]", arg1_1: "f32[3]", arg2_1: "f32[3]", arg3_1: "f32[3]", arg4_1: "f32[3]", arg5_1: "f32[3]", arg6_1: "i64[]", arg7_1: "f32[1, 1, 3, 3]"):
        # No stacktrace found for following nodes
        convolution: "f32[1, 3, 3, 3]" = torch.ops.aten.convolution.default(arg7_1, arg0_1, arg1_1, [1, 1], [0, 0], [1, 1], False, [0, 0], 1);  arg7_1 = arg0_1 = arg1_1 = None
        add: "i64[]" = torch.ops.aten.add.Tensor(arg6_1, 1);  arg6_1 = None
        _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(convolution, arg2_1, arg3_1, arg4_1, arg5_1, True, 0.1, 1e-05);  convolution = arg2_1 = arg3_1 = arg4_1 = arg5_1 = None
        getitem: "f32[1, 3, 3, 3]" = _native_batch_norm_legit_functional[0]
        getitem_3: "f32[3]" = _native_batch_norm_legit_functional[3]
        getitem_4: "f32[3]" = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
        relu: "f32[1, 3, 3, 3]" = torch.ops.aten.relu.default(getitem);  getitem = None
        sum_1: "f32[]" = torch.ops.aten.sum.default(relu)
        detach: "f32[1, 3, 3, 3]" = torch.ops.aten.detach.default(relu);  relu = None
        return (getitem_3, getitem_4, add, sum_1, detach)
)"));
  expect_signature_of_state(inference.signature);
  EXPECT_FALSE(inference.signature.backward);
}

struct WritesInput : nn::Module {
  Tensor buffer1 = buffer("buffer1", ones({6, 4}));
  std::tuple<Tensor> forward(const Tensor& x) {
    x.add_(4);
    Tensor sum = x.cos().sum();
    return sum + buffer1.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_forward_mutation_no_buffer_mut) {
  const Tensor x = ones({6, 4});
  AotExport exported = aot_export_module(WritesInput(), {x});
  EXPECT_EQ(code_of(exported.module), R"(def forward(self, arg0_1, arg1_1):
    add = torch.ops.aten.add.Tensor(arg1_1, 4);  arg1_1 = None
    cos = torch.ops.aten.cos.default(add)
    sum_1 = torch.ops.aten.sum.default(cos);  cos = None
    sum_2 = torch.ops.aten.sum.default(arg0_1);  arg0_1 = None
    add_1 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    return (add, add_1))");
  EXPECT_EQ(exported.signature.user_inputs_to_mutate, (Names{{"add", "arg1_1"}}));
  EXPECT_TRUE(exported.signature.buffers_to_mutate.empty());
  expect_equal(x, ones({6, 4}));
}

struct WritesBoth : nn::Module {
  Tensor buffer1 = buffer("buffer1", ones({6, 4}));
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    y.add_(4);
    buffer1.add_(5);
    Tensor cosine = x.cos().sum();
    return {cosine + y.sin().sum(), buffer1.sum()};
  }
  WEFT_ARGS(x, y)
};

TEST(TestAOTExport, test_aot_export_forward_mutation_multiple_mut) {
  AotExport exported = aot_export_module(WritesBoth(), {ones({6, 4}), zeros({6, 4})});
  EXPECT_EQ(code_of(exported.module), R"(def forward(self, arg0_1, arg1_1, arg2_1):
    add = torch.ops.aten.add.Tensor(arg2_1, 4);  arg2_1 = None
    add_1 = torch.ops.aten.add.Tensor(arg0_1, 5);  arg0_1 = None
    cos = torch.ops.aten.cos.default(arg1_1);  arg1_1 = None
    sum_1 = torch.ops.aten.sum.default(cos);  cos = None
    sin = torch.ops.aten.sin.default(add)
    sum_2 = torch.ops.aten.sum.default(sin);  sin = None
    add_2 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    sum_3 = torch.ops.aten.sum.default(add_1)
    return (add_1, add, add_2, sum_3))");
  EXPECT_EQ(exported.signature.user_inputs_to_mutate, (Names{{"add", "arg2_1"}}));
  EXPECT_EQ(exported.signature.buffers_to_mutate, (Names{{"add_1", "buffer1"}}));
}

struct CountsSteps : nn::Module {
  Tensor steps = buffer("steps", zeros({}));
  Tensor forward(const Tensor& x) {
    steps.add_(1);
    return x + steps;
  }
  WEFT_ARGS(x)
};

TEST(AotExportSignature, PrintsAsPyTorchDoes) {
  EXPECT_EQ(
      aot_export_module(CountsSteps(), {ones({2})}).signature.to_string(),
      "GraphSignature(parameters=[], buffers=['steps'], user_inputs=['arg1_1'], user_outputs=['add_1'], "
      "inputs_to_parameters={}, inputs_to_buffers={'arg0_1': 'steps'}, parameters_to_mutate={}, "
      "buffers_to_mutate={'add': 'steps'}, user_inputs_to_mutate={}, backward_signature=None)");
}

// --- functions -------------------------------------------------------------------------------------------

TEST(TestAOTExport, test_aot_export_simplified_basic) {
  auto f = [](const Tensor& x, const Tensor& y) { return std::tuple(x * y, y * y.detach()); };
  auto leaf = [] { return randn({2}).set_requires_grad(); };
  const Tensor x = leaf(), y = leaf();
  GraphModule forward = aot_export_joint_simple(f, {x, y}, {.trace_joint = false});
  const auto [first, second] = f(x, y);
  const ValueList same = forward.call({x.detach(), y.detach()}).elements();
  expect_equal(same[0].to_tensor(), first.detach());
  expect_equal(same[1].to_tensor(), second.detach());

  GraphModule joint = aot_export_joint_simple(f, {x, y}, {.trace_joint = true});
  const aot::Partition partition = aot::default_partition(joint, 2);
  const Tensor a = x.detach().clone().set_requires_grad(), b = y.detach().clone().set_requires_grad();
  const auto [out_a, out_b] = f(a, b);
  ValueList outputs = GraphModule(partition.forward).call({x.detach(), y.detach()}).elements();
  expect_equal(outputs[0].to_tensor(), out_a.detach());
  expect_equal(outputs[1].to_tensor(), out_b.detach());
  ValueList inputs(outputs.begin() + 2, outputs.end());
  inputs.emplace_back(ones({2}));
  inputs.emplace_back(ones({2}));
  const ValueList gradients = GraphModule(partition.backward).call(inputs).elements();
  const std::vector<Tensor> expected =
      autograd::grad(std::vector{out_a, out_b}, std::vector{a, b}, std::vector{ones({2}), ones({2})});
  for (size_t i = 0; i < 2; ++i) expect_equal(gradients[i].to_tensor(), expected[i]);
}

TEST(AotExportJointSimple, RefusesContainersAndWrites) {
  auto of_list = [](const std::vector<Tensor>& all) { return all[0] + all[1]; };
  EXPECT_ERROR(aot_export_joint_simple(of_list, {Value::list({ones({2}), ones({2})})}),
               "aot_export_joint_simple requires individual inputs not to be pytrees, but argument 0 is");
  auto writes = [](const Tensor& x) { return x.add_(1) * 2; };
  EXPECT_ERROR(aot_export_joint_simple(writes, {ones({2})}, {.trace_joint = false}),
               "functions that write to none of their arguments, but argument 0 is written to");
  auto plain = [](const Tensor& x) { return x * 2; };
  EXPECT_ERROR(aot_export_joint_simple(plain, {ones({2})}), "no output requires a gradient");
}

// --- what cannot be exported -----------------------------------------------------------------------------

std::tuple<Tensor> transposes(const Tensor&, const Tensor& x) {
  x.t_();
  return x * 2;
}
TEST(TestAOTExport, test_aot_export_metadata_mutation_banned) {
  expect_refused<transposes>({randn({2, 4})}, "Found an input that received a metadata mutation");
}

std::tuple<Tensor> writes_first(const Tensor&, const Tensor& x, const Tensor& y) {
  x.mul_(2);
  return x + y;
}
TEST(TestAOTExport, test_aot_export_synthetic_bases_banned) {
  const Tensor row = randn({2});
  expect_refused<writes_first>({row, row.view(-1)}, "Encountered aliased inputs that are mutated");
}
TEST(TestAOTExport, test_aot_export_input_dupes_banned) {
  const Tensor x = randn({2});
  expect_refused<writes_first>({x, x}, "Encountered duplicated inputs that are mutated in the graph");
}

std::tuple<Tensor, Tensor> out_and_sum(const Tensor& p, const Tensor& x) {
  Tensor out = p * x;
  return {out, out.sum()};
}
TEST(TestAOTExport, test_aot_export_multiple_outputs_require_grad_banned) {
  WithParameter<out_and_sum> module;
  EXPECT_ERROR(aot_export_module(module, {randn({2})}, {.trace_joint = true, .output_loss_index = 1}),
               "Found an output of the forward that requires gradients, that was not the scalar loss");
}

std::tuple<Tensor> writes_parameter(const Tensor& p, const Tensor& x) {
  NoGrad no_grad;
  p.mul_(2);
  return p + x;
}
TEST(TestAOTExport, test_aot_export_input_mutation_on_parameter_banned) {
  WithParameter<writes_parameter> module;
  const Tensor x = randn({2});
  EXPECT_ERROR(aot_export_joint_simple(writes_parameter, {module.p, x}),
               "Found a graph input that requires gradients, and received a mutation");
  // Without gradients the new value is an output.
  EXPECT_EQ(aot_export_module(module, {x}).signature.parameters_to_mutate, (Names{{"mul", "p"}}));
  EXPECT_EQ(aot_export_module(module, {x}, {.pre_dispatch = true}).signature.parameters_to_mutate,
            (Names{{"mul", "p"}}));
  expect_equal(module.p.detach(), ones({2}));
}

struct Unused : nn::Module {
  Tensor p = parameter("p", ones({2})), q = parameter("q", ones({2}));
  Tensor forward(const Tensor& t) { return (p * t).sum(); }
  WEFT_ARGS(t)
};

TEST(AotExportModule, SaysWhatIsWrongWithTheLoss) {
  WithParameter<out_and_sum> module;
  const Tensor x = randn({2});
  EXPECT_ERROR(aot_export_module(module, {x}, {.trace_joint = true, .output_loss_index = 0}),
               "output 0, the loss, must be a scalar, but is f32[2]");
  EXPECT_ERROR(aot_export_module(module, {x}, {.trace_joint = true, .output_loss_index = 2}),
               "output_loss_index is 2, but the module gives 2 values");
  EXPECT_ERROR(aot_export_module(module, {x}, {.trace_joint = true}),
               "trace_joint and output_loss_index belong together");
  EXPECT_ERROR(aot_export_module(Unused(), {x}, {.trace_joint = true, .output_loss_index = 0}),
               "Found a parameter that did not receive a gradient: the loss depends on 1 of the 2 inputs");
}

// --- dropout that may be its input -----------------------------------------------------------------------

std::tuple<Tensor> writes_dropout(const Tensor&, const Tensor& x) {
  Tensor y = dropout(x, 0.1, /*train=*/false);
  y.add_(1);
  return y;
}
TEST(TestAOTExport, test_aot_export_ban_dropout_mut_pre_dispatch) {
  WithParameter<writes_dropout> module;
  const Tensor x = randn({2, 2});
  EXPECT_ERROR(aot_export_module(module, {x}, {.pre_dispatch = true}),
               "cannot mutate tensors with frozen storage");
  constexpr const char* kCode = R"(def forward(self, arg0_1, arg1_1):
    clone = torch.ops.aten.clone.default(arg1_1);  arg1_1 = None
    add = torch.ops.aten.add.Tensor(clone, 1);  clone = None
    return (add,))";
  EXPECT_EQ(code_of(aot_export_module(module, {x}).module), kCode);
  GraphModule compiled;
  AotFunction f = aot_function(writes_dropout, {.forward_compiler =
                                                    [&](GraphModule& graph, const ValueList& examples) {
                                                      compiled = graph;
                                                      return aot::nop(graph, examples);
                                                    },
                                                .decompositions = aot::default_decompositions(),
                                                .dynamic = true});
  f.call({x[0], x[1]});
  EXPECT_EQ(code_of(compiled), kCode);
}

// --- control flow ----------------------------------------------------------------------------------------

struct CondOfSize : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    auto true_fn = [](const Tensor& t) {
      Tensor y = t + 4;
      y.add_(5);
      return t.cos();
    };
    auto false_fn = [](const Tensor& t) {
      Tensor y = t + 5;
      y.add_(6);
      return t.sin();
    };
    Tensor a = func::cond(x.size(0) > 4, true_fn, false_fn, x);
    return {a + 3, a + 4};
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_with_torch_cond) {
  AotExport exported = aot_export_module(CondOfSize(), {randn({3, 4})});
  EXPECT_EQ(code_of(exported.module), R"(def forward(self, arg0_1):
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    conditional = torch.ops.higher_order.cond(False, true_graph_0, false_graph_0, [arg0_1]);  true_graph_0 = false_graph_0 = arg0_1 = None
    getitem = conditional[0];  conditional = None
    add = torch.ops.aten.add.Tensor(getitem, 3)
    add_1 = torch.ops.aten.add.Tensor(getitem, 4);  getitem = None
    return (add, add_1))");
  auto branch = [&](const char* path) { return code_of(*graph_module_in(exported.module.find(path))); };
  EXPECT_EQ(branch("true_graph_0"), R"(def forward(self, arg0_1):
    add = torch.ops.aten.add.Tensor(arg0_1, 4)
    add_1 = torch.ops.aten.add.Tensor(add, 5);  add = add_1 = None
    cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
    return (cos,))");
  EXPECT_EQ(branch("false_graph_0"), R"(def forward(self, arg0_1):
    add = torch.ops.aten.add.Tensor(arg0_1, 5)
    add_1 = torch.ops.aten.add.Tensor(add, 6);  add = add_1 = None
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    return (sin,))");
}

}  // namespace
}  // namespace weft
