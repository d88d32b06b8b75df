// What the suites of AOTAutograd test beside the rows of the catalogue: graphs are those of PyTorch 2.13,
// with lists for tuples in training graphs.
#include <gtest/gtest.h>

#include "seeds/support/extensions.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/aot/export_module.h"
#include "weft/autograd/autograd.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::code_of;
using testing::Counts;
using testing::counts_of;
using testing::forward_and_backward;
using testing::MadeInputs;
using testing::program;
using testing::verify_aot_autograd;

TEST(TestAOTAutograd, test_input_mutation_is_output) {
  auto f = program([](const Tensor& a) { return a.mul_(2); });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  EXPECT_GRAPH(verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true}),
               R"(def forward(self, primals_1):
    clone = torch.ops.aten.clone.default(primals_1);  primals_1 = None
    mul = torch.ops.aten.mul.Tensor(clone, 2);  clone = None
    return [mul, mul])");
}

TEST(TestAOTAutograd, test_outputs_are_aliased) {
  auto f = program([](const Tensor& a) {
    Tensor b = a.mul(2), c = b.view(-1);
    return std::tuple{b, c};
  });
  verify_aot_autograd(f, {ones({3, 3})}, {.test_mutation = true});
  EXPECT_GRAPH(verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}, {.test_mutation = true}),
               R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 2);  primals_1 = None
    view = torch.ops.aten.view.default(mul, [-1])
    return [mul, view])");
}

// What changes is how one of them looks at the memory, which the other does not see: no synthetic base.
TEST(TestAOTAutograd, test_input_metadata_mutation_aliases) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    a.t_();
    return a + b;
  });
  auto made = [](bool grad) {
    return [grad] {
      Tensor base = aot_leaf(ones({2, 2}), grad), x = base.add(1);
      return MadeInputs{{base}, {x.view({2, 2}), x.view({2, 2})}};
    };
  };
  verify_aot_autograd(f, made(false), {.test_mutation = true});
  EXPECT_GRAPH(verify_aot_autograd(f, made(true), {.test_mutation = true}),
               R"(def forward(self, primals_1, primals_2):
    view = torch.ops.aten.view.default(primals_1, [2, 2]);  primals_1 = None
    t = torch.ops.aten.t.default(view);  view = None
    add = torch.ops.aten.add.Tensor(t, primals_2);  primals_2 = None
    return [t, add])");
}

TEST(TestAOTAutograd, test_no_grad_input_output) {
  auto f = program([](const Tensor& a, const Tensor& b) { return std::tuple{a.cos(), b.cos(), a * b}; });
  for (bool first : {true, false})
    for (bool second : {true, false}) {
      SCOPED_TRACE(std::to_string(first) + std::to_string(second));
      verify_aot_autograd(f, {aot_leaf(randn({5}), first), aot_leaf(randn({5}), second)});
    }
}

TEST(TestAOTAutograd, test_dynamic_shape_output_not_in_bw_graph) {
  auto f = [](Args args) -> Value {
    const Tensor& x = args[0].tensor_ref();
    return Value::list({Value(x + 1), Value(x.size(0))});
  };
  GraphModule forward, backward;
  auto keep = [](GraphModule& into) {
    return [&into](GraphModule& graph, const ValueList& examples) {
      into = graph;
      return aot::nop(graph, examples);
    };
  };
  AotFunction compiled =
      aot_function(ValueFunction(f),
                   {.forward_compiler = keep(forward), .backward_compiler = keep(backward), .dynamic = true});
  compiled.call({aot_leaf(ones({5}))}).elements()[0].to_tensor().sum().backward();
  EXPECT_GRAPH(forward, R"(def forward(self, primals_1):
    add = torch.ops.aten.add.Tensor(primals_1, 1)
    sym_size_int = torch.ops.aten.sym_size.int(primals_1, 0);  primals_1 = None
    return [add, sym_size_int])");
  EXPECT_GRAPH(backward, R"(def forward(self, tangents_1):
    return [tangents_1])");
}

using Tensors = std::vector<Tensor>;

// Views that one operator made are values to autograd where nothing else shows that they share memory.
// PyTorch takes them for values beside one other output, too (cases 1 and 2), and so has no error where eager
// mode has one.
TEST(TestAOTAutograd, test_output_aliases_intermediate_multi_output_view) {
  using Program = Tensors (*)(const Tensor& out);
  const std::string unbound = R"(def forward(self, primals_1):
    mul = torch.ops.aten.mul.Tensor(primals_1, 3);  primals_1 = None
    unbind = torch.ops.aten.unbind.int(mul)
    getitem = unbind[0]
    getitem_1 = unbind[1]
    getitem_2 = unbind[2];  unbind = None
)";
  struct Case {
    Program f;
    std::string rest;  // of the graph
    std::vector<std::string> made_by;
  };
  const std::string graph = "CompiledFunctionBackward", unbind = "UnbindBackward0", view = "ViewBackward0";
  const Case cases[] = {
      {[](const Tensor& out) { return out.unbind(0); },
       "    return [getitem, getitem_1, getitem_2]",
       {graph, graph, graph}},
      {[](const Tensor& out) {
         Tensors all = out.unbind(0);
         all.push_back(out);
         return all;
       },
       "    return [getitem, getitem_1, getitem_2, mul]",
       {unbind, unbind, unbind, graph}},
      {[](const Tensor& out) {
         Tensors all = out.unbind(0);
         all.push_back(out.view(out.sizes()));
         return all;
       },
       "    view = torch.ops.aten.view.default(mul, [3, 3])\n"
       "    return [getitem, getitem_1, getitem_2, view, mul]",
       {unbind, unbind, unbind, view}},
      {[](const Tensor& out) {
         Tensors all = out.unbind(0);
         all.push_back(out);
         all.push_back(out.view(out.sizes()));
         return all;
       },
       "    view = torch.ops.aten.view.default(mul, [3, 3])\n"
       "    return [getitem, getitem_1, getitem_2, mul, view]",
       {unbind, unbind, unbind, graph, view}},
      {[](const Tensor& out) {
         Tensors all = out.unbind(0);
         all.push_back(out.view(out.sizes()));
         all.push_back(out.view(out.sizes()));
         return all;
       },
       "    view = torch.ops.aten.view.default(mul, [3, 3])\n"
       "    view_1 = torch.ops.aten.view.default(mul, [3, 3])\n"
       "    return [getitem, getitem_1, getitem_2, view, view_1, mul]",
       {unbind, unbind, unbind, view, view}},
  };
  for (size_t i = 0; i < std::size(cases); ++i) {
    SCOPED_TRACE(i);
    const Case& one = cases[i];
    auto f = program([&one](const Tensor& a) { return one.f(mul(a, 3)); });
    std::string wanted = unbound + one.rest;
    if (i == 0) wanted.replace(wanted.find("(mul)\n"), 6, "(mul);  mul = None\n");
    EXPECT_GRAPH(verify_aot_autograd(f, {aot_leaf(ones({3, 3}))}), wanted);
    AotFunction compiled = aot_function(f);
    const Value outputs = compiled.call({aot_leaf(ones({3, 3}))});
    std::vector<std::string> made_by;
    for (const Value& output : outputs.elements())
      made_by.push_back(autograd::grad_fn(output.tensor_ref())->name());
    EXPECT_EQ(made_by, one.made_by);
    if (i == 0) continue;
    outputs.elements().back().tensor_ref().mul_(2);
    EXPECT_ERROR(autograd::grad_fn(outputs.elements()[0].tensor_ref()),
                 "Such functions do not allow the output views");
  }
}

TEST(TestPartitioning, test_min_cut_partitioner_recomputable_ops) {
  auto cube = program([](const Tensor& x) { return x * x * x; });
  auto cut = [](std::vector<const Operator*> ops) {
    return aot::min_cut_partitioner({.recomputable_ops = std::move(ops)});
  };
  auto [forward, backward] = forward_and_backward(cube, {aot_leaf(randn({3}))}, {.partitioner = cut({})});
  EXPECT_EQ(counts_of(forward), (Counts{1, 3}));
  EXPECT_EQ(counts_of(backward), (Counts{3, 1}));
  auto [forward2, backward2] = forward_and_backward(
      cube, {aot_leaf(randn({3}))}, {.partitioner = cut({&operator_named("aten::mul.Tensor")})});
  EXPECT_EQ(counts_of(forward2), (Counts{1, 2}));
  EXPECT_EQ(counts_of(backward2), (Counts{2, 1}));
}

TEST(TestAOTDispatch, test_aot_dispatch_inference) {
  auto f = program([](const Tensor& a, const Tensor& b) {
    Tensor six = a * 6, half = b / 2;
    return six + half;
  });
  const Tensor a = testing::TwoTensor::make(ones({3, 3}), full({3, 3}, 2.0)), b = ones({3, 3});
  AotFunction compiled = aot_function(f, {.partitioner = aot::min_cut_partitioner()});
  const Tensor wanted = f(ValueList{a, b}).to_tensor(), got = compiled(a, b);
  EXPECT_FALSE(compiled.description().needs_backward);
  testing::expect_same_parts(got, wanted);
}

// --- captured above autograd -----------------------------------------------------------------------------

template <Tensor (*fn)(const Tensor& x)>
struct WithParameter : nn::Module {
  Tensor p = parameter("p", ones({2}));
  std::tuple<Tensor> forward(const Tensor& x) { return fn(x); }
  WEFT_ARGS(x)
};

template <typename M>
AotExport predispatch(const M& module) {
  NoGrad no_grad;
  const Tensor x = randn({2, 2});
  AotExport exported = aot_export_module(module, {x}, {.pre_dispatch = true});
  ValueList inputs;
  for (const auto& [name, tensor] : module.named_parameters()) inputs.emplace_back(tensor);
  for (const auto& [name, tensor] : module.named_buffers()) inputs.emplace_back(tensor.clone());
  inputs.emplace_back(x);
  const ValueList results = exported.module.call(inputs).elements();
  testing::expect_equal(results.back().to_tensor(),
                        nn::detail::erased_call(module)->call(ValueList{x}).elements()[0].to_tensor());
  return exported;
}

Tensor composite(const Tensor& x) {
  Tensor y;
  {
    EnableGrad enable;
    y = matmul(x, x);
    y.add_(2);
  }
  Tensor total = x.sum();
  return total + y.sum();
}

TEST(TestAOTExport, test_aot_export_predispatch_func_composite_implicit) {
  EXPECT_GRAPH(predispatch(WithParameter<composite>()).module, R"(def forward(self, arg0_1, arg1_1):
    _set_grad_enabled = torch._C._set_grad_enabled(True);  _set_grad_enabled = None
    matmul = torch.ops.aten.matmul.default(arg1_1, arg1_1)
    add = torch.ops.aten.add.Tensor(matmul, 2);  matmul = None
    _set_grad_enabled_1 = torch._C._set_grad_enabled(False);  _set_grad_enabled_1 = None
    sum_1 = torch.ops.aten.sum.default(arg1_1);  arg1_1 = None
    sum_2 = torch.ops.aten.sum.default(add);  add = None
    add_1 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    return (add_1,))");
}

Tensor absolute_in_place(const Tensor& x) { return absolute_(x.clone()); }

TEST(TestAOTExport, test_aot_export_predispatch_composite_implicit_inplace) {
  EXPECT_GRAPH(predispatch(WithParameter<absolute_in_place>()).module,
               R"(def forward(self, arg0_1, arg1_1):
    clone = torch.ops.aten.clone.default(arg1_1);  arg1_1 = None
    abs_1 = torch.ops.aten.abs.default(clone);  clone = None
    return (abs_1,))");
}

struct JustLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(2, 2));
  std::tuple<Tensor> forward(const Tensor& x) { return linear(x); }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_composite_implicit_linear) {
  EXPECT_GRAPH(predispatch(JustLinear()).module, R"(def forward(self, arg0_1, arg1_1, arg2_1):
    linear = torch.ops.aten.linear.default(arg2_1, arg0_1, arg1_1);  arg2_1 = arg0_1 = arg1_1 = None
    return (linear,))");
}

Tensor with_view(const Tensor& x) {
  Tensor y = matmul(x, x);
  y.add_(2);
  Tensor total = x.sum();
  return total + y.view({1, 4}).sum();
}

TEST(TestAOTExport, test_aot_export_predispatch_func_view) {
  EXPECT_GRAPH(predispatch(WithParameter<with_view>()).module, R"(def forward(self, arg0_1, arg1_1):
    matmul = torch.ops.aten.matmul.default(arg1_1, arg1_1)
    add = torch.ops.aten.add.Tensor(matmul, 2);  matmul = None
    sum_1 = torch.ops.aten.sum.default(arg1_1);  arg1_1 = None
    view = torch.ops.aten.view.default(add, [1, 4]);  add = None
    sum_2 = torch.ops.aten.sum.default(view);  view = None
    add_1 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    return (add_1,))");
}

struct Accumulating : nn::Module {
  Tensor foo = buffer("foo", zeros({2, 2}));
  std::tuple<Tensor> forward(const Tensor& x) {
    foo.add_(4);
    Tensor total = x.sum();
    return total + foo.sum();
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_buffer_mutation_metadata) {
  AotExport exported = predispatch(Accumulating());
  EXPECT_GRAPH(exported.module, R"(def forward(self, arg0_1, arg1_1):
    add = torch.ops.aten.add.Tensor(arg0_1, 4);  arg0_1 = None
    sum_1 = torch.ops.aten.sum.default(arg1_1);  arg1_1 = None
    sum_2 = torch.ops.aten.sum.default(add)
    add_1 = torch.ops.aten.add.Tensor(sum_1, sum_2);  sum_1 = sum_2 = None
    return (add, add_1))");
  EXPECT_NE(exported.signature.to_string().find("{'add': 'foo'}"), std::string::npos)
      << exported.signature.to_string();
}

TEST(TestAOTExport, test_aot_export_simplified_pytrees_banned) {
  auto sum = [](Args args) -> Value {
    return Value::tuple({args[0].elements()[0].to_tensor() + args[0].elements()[1].to_tensor()});
  };
  const Tensor x = aot_leaf(randn({2}));
  EXPECT_ERROR(aot_export_joint_simple(ValueFunction(sum), {Value::list({x, x})}),
               "aot_export_joint_simple requires individual inputs not to be pytrees");
  auto nested = [](Args args) -> Value { return Value::tuple({Value::tuple({args[0].to_tensor() + 1})}); };
  EXPECT_ERROR(aot_export_joint_simple(ValueFunction(nested), {x}),
               "aot_export_joint_simple requires individual outputs not to be pytrees");
}

}  // namespace
}  // namespace weft
