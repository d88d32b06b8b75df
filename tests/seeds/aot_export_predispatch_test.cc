// The rows of TestAOTExport that capture above autograd: composites stay whole, writes become values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/aot/export_module.h"
#include "weft/autograd/autograd.h"
#include "weft/func/control_flow.h"
#include "weft/func/out_dtype.h"
#include "weft/nn/layers.h"

namespace weft {
namespace {

using testing::close;

std::string code_of(const GraphModule& module) {
  std::string code = module.code();
  size_t first = code.find_first_not_of(" \n"), last = code.find_last_not_of(" \n");
  return code.substr(first, last - first + 1);
}
const AotExportOptions kPreDispatch{.pre_dispatch = true};

std::string code_at(const GraphModule& module, std::string_view path) {
  return code_of(*graph_module_in(module.find(path)));
}

// A module with one parameter, whose forward is fn(p, x).
template <Tensor (*fn)(const Tensor& p, const Tensor& x)>
struct TestMod : nn::Module {
  Tensor p = parameter("p", ones({2}));
  std::tuple<Tensor> forward(const Tensor& x) { return fn(p, x); }
  WEFT_ARGS(x)
};

Tensor simple(const Tensor&, const Tensor& x) {
  Tensor y = x + 2;
  {
    NoGrad no_grad;
    y.add_(2);
  }
  return x * 2 + y;
}

TEST(TestAOTExport, test_aot_export_predispatch_func_simple) {
  TestMod<simple> module;
  NoGrad no_grad;
  AotExport captured = aot_export_module(module, {randn({2})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1, arg1_1):
    add = torch.ops.aten.add.Tensor(arg1_1, 2)
    _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None
    add_1 = torch.ops.aten.add.Tensor(add, 2);  add = None
    _set_grad_enabled_1 = torch._C._set_grad_enabled(False);  _set_grad_enabled_1 = None
    mul = torch.ops.aten.mul.Tensor(arg1_1, 2);  arg1_1 = None
    add_2 = torch.ops.aten.add.Tensor(mul, add_1);  mul = add_1 = None
    return (add_2,))");
  Tensor x = randn({2});
  EXPECT_TRUE(
      close(captured.module.call({module.p, x}).elements()[0].to_tensor(), x * 2 + x + 4, 1e-6, 1e-6));
}

Tensor with_autograd(const Tensor&, const Tensor& x) {
  EnableGrad enable;
  Tensor y = x + 5;
  y.add_(5);
  y.add_(7);
  Tensor cosine = x.cos();
  return cosine + y.sin();
}

TEST(TestAOTExport, test_aot_export_predispatch_with_autograd_op) {
  TestMod<with_autograd> module;
  NoGrad no_grad;
  AotExport captured = aot_export_module(module, {randn({2})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1, arg1_1):
    _set_grad_enabled = torch._C._set_grad_enabled(True);  _set_grad_enabled = None
    add = torch.ops.aten.add.Tensor(arg1_1, 5)
    add_1 = torch.ops.aten.add.Tensor(add, 5);  add = None
    add_2 = torch.ops.aten.add.Tensor(add_1, 7);  add_1 = None
    cos = torch.ops.aten.cos.default(arg1_1);  arg1_1 = None
    sin = torch.ops.aten.sin.default(add_2);  add_2 = None
    add_3 = torch.ops.aten.add.Tensor(cos, sin);  cos = sin = None
    _set_grad_enabled_1 = torch._C._set_grad_enabled(False);  _set_grad_enabled_1 = None
    return (add_3,))");
}

struct ConvBatchnorm : nn::Module {
  nn::Conv2d conv = child("conv", nn::Conv2d(1, 3, 1));
  nn::BatchNorm2d bn = child("bn", nn::BatchNorm2d(3));
  std::tuple<Tensor> forward(const Tensor& x) { return bn(conv(x)); }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_conv_and_bn) {
  ConvBatchnorm module;
  Tensor mean = module.bn.running_mean.clone();
  AotExport captured = aot_export_module(module, {randn({1, 1, 3, 3})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module),
            R"(def forward(self, arg0_1, arg1_1, arg2_1, arg3_1, arg4_1, arg5_1, arg6_1, arg7_1):
    conv2d = torch.ops.aten.conv2d.default(arg7_1, arg0_1, arg1_1);  arg7_1 = arg0_1 = arg1_1 = None
    add = torch.ops.aten.add.Tensor(arg6_1, 1);  arg6_1 = None
    _native_batch_norm_legit_functional = torch.ops.aten._native_batch_norm_legit_functional.default(conv2d, arg2_1, arg3_1, arg4_1, arg5_1, True, 0.1, 1e-05);  conv2d = arg2_1 = arg3_1 = arg4_1 = arg5_1 = None
    getitem = _native_batch_norm_legit_functional[0]
    getitem_3 = _native_batch_norm_legit_functional[3]
    getitem_4 = _native_batch_norm_legit_functional[4];  _native_batch_norm_legit_functional = None
    return (getitem_3, getitem_4, add, getitem))");
  const GraphSignature::Names written = {
      {"getitem_3", "bn.running_mean"}, {"getitem_4", "bn.running_var"}, {"add", "bn.num_batches_tracked"}};
  EXPECT_EQ(captured.signature.buffers_to_mutate, written);
  EXPECT_TRUE(close(module.bn.running_mean, mean, 0, 0));
}

struct Reshape : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x) { return x.reshape({4, 4}).sum(); }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_reshape) {
  AotExport captured = aot_export_module(Reshape(), {randn({2, 8})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1):
    view = torch.ops.aten.view.default(arg0_1, [4, 4]);  arg0_1 = None
    sum_1 = torch.ops.aten.sum.default(view);  view = None
    return (sum_1,))");
}

struct Contiguous : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x) { return x.contiguous().sum(); }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_contiguous) {
  AotExport captured = aot_export_module(Contiguous(), {randn({2, 8})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1):
    sum_1 = torch.ops.aten.sum.default(arg0_1);  arg0_1 = None
    return (sum_1,))");
}

// --- control flow ----------------------------------------------------------------------------------------

struct WithCond : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    auto true_fn = [](const Tensor& t) {
      Tensor y = t.sin();
      Tensor z = linear(y, randn({2, 2}));
      z.add_(5);
      return z.cos();
    };
    auto false_fn = [](const Tensor& t) {
      Tensor z = t.cos();
      z.add_(6);
      return z.sin();
    };
    Tensor a = func::cond(x.size(0) > 4, true_fn, false_fn, x);
    Tensor first = a + 3;
    return {first, a + 4};
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_with_cond) {
  AotExport captured = aot_export_module(WithCond(), {randn({2, 2})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1):
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    conditional = torch.ops.higher_order.cond(False, true_graph_0, false_graph_0, [arg0_1]);  true_graph_0 = false_graph_0 = arg0_1 = None
    getitem = conditional[0];  conditional = None
    add = torch.ops.aten.add.Tensor(getitem, 3)
    add_1 = torch.ops.aten.add.Tensor(getitem, 4);  getitem = None
    return (add, add_1))");
  EXPECT_EQ(code_at(captured.module, "true_graph_0"), R"(def forward(self, arg0_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    randn = torch.ops.aten.randn.default([2, 2], device = device(type='cpu'), pin_memory = False)
    linear = torch.ops.aten.linear.default(sin, randn);  sin = randn = None
    add = torch.ops.aten.add.Tensor(linear, 5);  linear = None
    cos = torch.ops.aten.cos.default(add);  add = None
    return (cos,))");
}

struct CondNested : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    auto true_fn = [](const Tensor& t) {
      Tensor y = t.sin();
      y.add_(5);
      auto inner_true = [](const Tensor& u) {
        Tensor z = u.sin();
        z.add_(7);
        return z.sin();
      };
      return func::cond(y.size(0) > 4, inner_true, [](const Tensor& u) { return u.cos(); }, y.cos());
    };
    auto false_fn = [](const Tensor& t) { return t.cos(); };
    Tensor a = func::cond(x.size(0) > 4, true_fn, false_fn, x);
    Tensor first = a + 3;
    return {first, a + 4};
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_with_cond_nested) {
  AotExport captured = aot_export_module(CondNested(), {randn({2, 2})}, kPreDispatch);
  EXPECT_EQ(code_at(captured.module, "true_graph_0.true_graph_0"), R"(def forward(self, arg0_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(sin, 7);  sin = None
    sin_1 = torch.ops.aten.sin.default(add);  add = None
    return (sin_1,))");
  Tensor x = randn({2, 2});
  EXPECT_TRUE(close(captured.module.call({x}).elements()[0].to_tensor(), x.cos() + 3, 0, 0));
}

Tensor map_body(const Tensor& x, const Tensor& y) {
  Tensor a = x.cos();
  a.add_(5);
  return a + y;
}

struct Map1 : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    auto true_fn = [](const Tensor& t, const Tensor& r) {
      Tensor z = t.sin();
      z.add_(5);
      Tensor cosine = z.cos();
      return cosine + r.sum();
    };
    auto false_fn = [](const Tensor& t, const Tensor& r) {
      Tensor z = t.cos();
      Tensor once = z + func::map(map_body, z, r).sum();
      return once + func::map(map_body, z, r).sum();
    };
    Tensor a = func::cond(x.size(0) > 4, true_fn, false_fn, x, y);
    Tensor first = a + 3;
    return {first, a + 4};
  }
  WEFT_ARGS(x, y)
};

TEST(TestAOTExport, test_aot_export_predispatch_map_1) {
  AotExport captured = aot_export_module(Map1(), {randn({2, 2}), ones({2})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1, arg1_1):
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    conditional = torch.ops.higher_order.cond(False, true_graph_0, false_graph_0, [arg0_1, arg1_1]);  true_graph_0 = false_graph_0 = arg0_1 = arg1_1 = None
    getitem = conditional[0];  conditional = None
    add = torch.ops.aten.add.Tensor(getitem, 3)
    add_1 = torch.ops.aten.add.Tensor(getitem, 4);  getitem = None
    return (add, add_1))");
  EXPECT_EQ(code_at(captured.module, "true_graph_0"), R"(def forward(self, arg0_1, arg1_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(sin, 5);  sin = None
    cos = torch.ops.aten.cos.default(add);  add = None
    sum_1 = torch.ops.aten.sum.default(arg1_1);  arg1_1 = None
    add_1 = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add_1,))");
  EXPECT_EQ(code_at(captured.module, "false_graph_0"), R"(def forward(self, arg0_1, arg1_1):
    cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
    select = torch.ops.aten.select.int(cos, 0, 0);  select = None
    body_graph_0 = self.body_graph_0
    map_impl = torch.ops.higher_order.map_impl(body_graph_0, [cos], [arg1_1]);  body_graph_0 = None
    getitem = map_impl[0];  map_impl = None
    sum_1 = torch.ops.aten.sum.default(getitem);  getitem = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  sum_1 = None
    select_1 = torch.ops.aten.select.int(cos, 0, 0);  select_1 = None
    body_graph_1 = self.body_graph_1
    map_impl_1 = torch.ops.higher_order.map_impl(body_graph_1, [cos], [arg1_1]);  body_graph_1 = cos = arg1_1 = None
    getitem_1 = map_impl_1[0];  map_impl_1 = None
    sum_2 = torch.ops.aten.sum.default(getitem_1);  getitem_1 = None
    add_1 = torch.ops.aten.add.Tensor(add, sum_2);  add = sum_2 = None
    return (add_1,))");
  for (const char* body : {"false_graph_0.body_graph_0", "false_graph_0.body_graph_1"})
    EXPECT_EQ(code_at(captured.module, body), R"(def forward(self, arg0_1, arg1_1):
    cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(cos, 5);  cos = None
    add_1 = torch.ops.aten.add.Tensor(add, arg1_1);  add = arg1_1 = None
    return (add_1,))");
}

struct Map2 : nn::Module {
  std::tuple<Tensor> forward(const Tensor& x, const Tensor& y) {
    Tensor z = x.cos();
    return z + func::map(map_body, z, y).sum();
  }
  WEFT_ARGS(x, y)
};

TEST(TestAOTExport, test_aot_export_predispatch_map_2) {
  AotExport captured = aot_export_module(Map2(), {randn({2, 2}), ones({2})}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1, arg1_1):
    cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
    body_graph_0 = self.body_graph_0
    map_impl = torch.ops.higher_order.map_impl(body_graph_0, [cos], [arg1_1]);  body_graph_0 = arg1_1 = None
    getitem = map_impl[0];  map_impl = None
    sum_1 = torch.ops.aten.sum.default(getitem);  getitem = None
    add = torch.ops.aten.add.Tensor(cos, sum_1);  cos = sum_1 = None
    return (add,))");
  EXPECT_EQ(code_at(captured.module, "body_graph_0"), R"(def forward(self, arg0_1, arg1_1):
    cos = torch.ops.aten.cos.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(cos, 5);  cos = None
    add_1 = torch.ops.aten.add.Tensor(add, arg1_1);  add = arg1_1 = None
    return [add_1])");
  // Slices of dim 0 of z, and y as it is.
  Tensor x = randn({3, 2}), y = randn({2}), z = x.cos();
  Tensor expected = z + (z.cos() + 5 + y).sum();
  EXPECT_TRUE(close(captured.module.call({x, y}).elements()[0].to_tensor(), expected, 1e-6, 1e-6));
}

// --- out_dtype -------------------------------------------------------------------------------------------

struct OutDtype : nn::Module {
  Tensor weight = randint(-128, 127, {5, 5}, kInt8);  // neither a parameter nor a buffer
  std::tuple<Tensor> forward(const Tensor& x) {
    Tensor y = x + 2;
    y.add_(5);
    return func::out_dtype(operator_named("aten::mm"), kInt32, y, weight);
  }
  WEFT_ARGS(x)
};

TEST(TestAOTExport, test_aot_export_predispatch_outdtype) {
  OutDtype module;
  Tensor x = randint(-128, 127, {5, 5}, kInt8);
  AotExport captured = aot_export_module(module, {x}, kPreDispatch);
  EXPECT_EQ(code_of(captured.module), R"(def forward(self, arg0_1):
    add = torch.ops.aten.add.Tensor(arg0_1, 2);  arg0_1 = None
    add_1 = torch.ops.aten.add.Tensor(add, 5);  add = None
    _tensor_constant0 = self._tensor_constant0
    out_dtype = torch.ops.higher_order.out_dtype(torch.ops.aten.mm.default, torch.int32, add_1, _tensor_constant0);  add_1 = _tensor_constant0 = None
    return (out_dtype,))");
  const Node* result_node = captured.module.graph().back()->previous();
  ASSERT_EQ(result_node->name(), "out_dtype");
  EXPECT_EQ(result_node->meta_or_null()->value.to_tensor().dtype(), kInt32);
  Tensor other = randint(-128, 127, {5, 5}, kInt8);
  for (const Tensor& given : {x, other}) {
    Tensor result = captured.module.call({given}).elements()[0].to_tensor();
    EXPECT_EQ(result.dtype(), kInt32);
    EXPECT_TRUE(close(result, std::get<0>(module.forward(given)), 0, 0));
    EXPECT_TRUE(close(result, mm((given + 7).to(kInt32), module.weight.to(kInt32)), 0, 0));
  }
}

}  // namespace
}  // namespace weft
