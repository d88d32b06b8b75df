// The rows of TestExport that put the modules of a program back together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "seeds/support/export_texts.h"
#include "seeds/support/export_variants.h"
#include "support/tensors.h"
#include "weft/core/from_data.h"
#include "weft/export/unflatten.h"
#include "weft/nn/layers.h"
#include "weft/ops/functions.h"
#include "weft/ops/indexing.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using testing::close;
using ::testing::ElementsAre;
using testing::Exporter;
using testing::for_each_variant;
using testing::graph_text;
using ::testing::HasSubstr;
using testing::only_tensor;

std::vector<std::string> sorted_names(const nn::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

struct LeafLinear : nn::Module {
  nn::Linear linear = child("linear", nn::Linear(4, 4));
  Tensor forward(const Tensor& x) { return linear(x); }
  WEFT_ARGS(x)
};
struct BarWithBuffer : nn::Module {
  LeafLinear leaf = child("leaf", LeafLinear());
  Tensor own = buffer("buffer", randn({4, 4}));
  Tensor forward(const Tensor& x) { return own.sum() + leaf(x).sum(); }
  WEFT_ARGS(x)
};
struct FooOfBar : nn::Module {
  BarWithBuffer bar = child("bar", BarWithBuffer());
  std::tuple<Tensor> forward(const Tensor& x) {
    const Tensor y = bar.own + x;
    return {bar(x) + y.sum()};
  }
  WEFT_ARGS(x)
};

GraphModule part_of(const GraphModule& module, std::string_view path) {
  std::optional<GraphModule> part = graph_module_in(module.find(path));
  require(part.has_value(), "'{}' is no graph module", path);
  return *part;
}

TEST(TestExport, test_nn_module_stack) {
  for_each_variant([](const Exporter& exports) {
    const FooOfBar module;
    const Tensor x = randn({4, 4});
    const ExportedProgram first = exports(module, {x}).run_decompositions(),
                          second = export_program(module, {x}).run_decompositions();
    const GraphModule net = unflatten(first);
    EXPECT_TRUE(graph_module_in(net.find("bar")).has_value());
    EXPECT_TRUE(net.find("bar.buffer").is_tensor());
    EXPECT_TRUE(graph_module_in(net.find("bar.leaf")).has_value());
    EXPECT_TRUE(close(only_tensor(net.call({x})), only_tensor(unflatten(second).call({x})), 1e-6, 1e-6));
    EXPECT_TRUE(close(only_tensor(net.call({x})), std::get<0>(module(x)), 1e-6, 1e-6));
    EXPECT_EQ(graph_text(part_of(net, "bar.leaf.linear")), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %weight : [num_users=1] = get_attr[target=weight]
    %bias : [num_users=1] = get_attr[target=bias]
    %permute : [num_users=1] = call_function[target=torch.ops.aten.permute.default](args = (%weight, [1, 0]), kwargs = {})
    %addmm : [num_users=1] = call_function[target=torch.ops.aten.addmm.default](args = (%bias, %x, %permute), kwargs = {})
    return addmm)");
    EXPECT_TRUE(
        close(only_tensor(first.module().call({x})), only_tensor(second.module().call({x})), 1e-6, 1e-6));
  });
}

struct TwiceLeaf : nn::Module {
  LeafLinear leaf = child("leaf", LeafLinear());
  Tensor forward(const Tensor& x) {
    const Tensor a = leaf(x).sum();
    const Tensor b = leaf(x).sum();
    return a + b;
  }
  WEFT_ARGS(x)
};
struct FooOfTwoBars : nn::Module {
  BarWithBuffer bar = child("bar", BarWithBuffer());
  TwiceLeaf bar_different = child("bar_different", TwiceLeaf());
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor y = bar.own + x;
    const Tensor first = bar(x);
    return {first + bar_different(x + 2), y.sum()};
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nn_module_stack_shared_submodule) {
  const FooOfTwoBars module;
  const Tensor x = randn({4, 4});
  const auto [a, b] = module(x);
  auto expect_results = [&](const Value& result) {
    EXPECT_TRUE(close(tree_leaves(result)[0].to_tensor(), a, 1e-6, 1e-6));
    EXPECT_TRUE(close(tree_leaves(result)[1].to_tensor(), b, 1e-6, 1e-6));
  };
  auto check = [&](const ExportedProgram& program, bool has_text) {
    const GraphModule net = unflatten(program);
    EXPECT_TRUE(graph_module_in(net.find("bar")).has_value());
    EXPECT_TRUE(net.find("bar.buffer").is_tensor());
    EXPECT_TRUE(graph_module_in(net.find("bar.leaf")).has_value());
    EXPECT_TRUE(graph_module_in(net.find("bar_different.leaf")).has_value());
    EXPECT_FALSE(net.try_find("bar_different.leaf@1").has_value());  // both calls are of one module
    expect_results(net.call({x}));
    expect_results(program.module().call({x}));
    if (!has_text) return;
    EXPECT_EQ(graph_text(part_of(net, "bar.leaf.linear")), R"(graph():
    %x : [num_users=1] = placeholder[target=x]
    %weight : [num_users=1] = get_attr[target=weight]
    %bias : [num_users=1] = get_attr[target=bias]
    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %weight, %bias), kwargs = {})
    return linear)");
    EXPECT_EQ(graph_text(part_of(net, "bar_different.leaf.linear")), R"(graph():
    %add_2 : [num_users=1] = placeholder[target=add_2]
    %weight : [num_users=1] = get_attr[target=weight]
    %bias : [num_users=1] = get_attr[target=bias]
    %linear_1 : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%add_2, %weight, %bias), kwargs = {})
    return linear_1)");
  };
  for_each_variant([&](const Exporter& exports) {
    check(exports(module, {x}), !exports.is_decomposed() && !exports.is_retraced());
  });
  check(export_for_training(module, {x}), true);
}

struct CheckedHead : nn::Module {
  int64_t times;
  explicit CheckedHead(int64_t factor) : times(factor) {}
  Tensor forward(const Tensor& x, const Tensor& y) {
    const SymInt b = x.item().to_sym_int();
    check_size_like(b);
    check(b < y.size(0) * times);
    return slice(y, 0, std::nullopt, b);
  }
  WEFT_ARGS(x, y)
};
struct TwoCheckedHeads : nn::Module {
  CheckedHead m1 = child("m1", CheckedHead(1)), m3 = child("m3", CheckedHead(2));
  Tensor forward(const Tensor& x, const Tensor& y) {
    const Tensor first = m1(x, y);
    return first + m3(x, y);
  }
  WEFT_ARGS(x, y)
};

TEST(TestExport, test_unflatten_asserts) {
  for_each_variant([](const Exporter& exports) {
    const TwoCheckedHeads module;
    const Tensor x = from_data<int64_t>({3}, {}), y = randn({10});
    const ExportedProgram program = exports(module, {x, y}, {.dynamic_shapes = {{"y", {{0, Dim("moo")}}}}});
    const Tensor wanted = module(x, y);
    const GraphModule net = unflatten(program);
    for (const GraphModule& callable : {program.module(), net}) {
      const Tensor got = only_tensor(callable.call({x, y}));
      for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(close(at(got, i), at(wanted, i)));
    }
    // What a part asserts is part of it.
    for (const char* path : {"m1", "m3"}) {
      EXPECT_THAT(part_of(net, path).code(), HasSubstr("_assert_scalar")) << path;
      EXPECT_THAT(part_of(net, path).code(),
                  AnyOf(HasSubstr("torch.ops.aten.item.default(x)"),
                        HasSubstr("torch.ops.aten._local_scalar_dense.default(x)")))
          << path;
    }
    EXPECT_ANY_THROW(net.call({from_data<int64_t>({12}, {}), y}));
  });
}

struct InnerConstant : nn::Module {
  Tensor foo = ones({3, 3});
  InnerConstant() { attribute("foo", foo); }
  Tensor forward(const Tensor& x) { return x + foo; }
  WEFT_ARGS(x)
};
struct SharedConstant : nn::Module {
  InnerConstant m2;
  Tensor foo = m2.foo;
  SharedConstant() {
    attribute("foo", foo);
    child("m2", m2);
  }
  Tensor forward(const Tensor& x) {
    const Tensor first = x + foo;
    return first + m2(x);
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_constant_aliasing) {
  for_each_variant([](const Exporter& exports) {
    const SharedConstant module;
    const Tensor x = randn({3, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_THAT(sorted_names(program.constants()), ElementsAre("foo", "m2.foo"));
    EXPECT_EQ(std::ranges::count(program.inputs(), InputSpec::Kind::kTensorConstant, &InputSpec::kind), 1);
    EXPECT_TRUE(close(only_tensor(unflatten(program).call({x})), module(x)));
  });
}

struct ThreeNames : nn::Module {
  Tensor alpha = parameter("alpha", randn({4})), beta = parameter("beta", alpha),
         gamma = parameter("gamma", alpha);
  Tensor forward(const Tensor& x) { return x + gamma; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_unused_aliases) {
  for_each_variant([](const Exporter& exports) {
    const ThreeNames module;
    const Tensor x = randn({4});
    const ExportedProgram program = exports(module, {x});
    EXPECT_THAT(sorted_names(program.state_dict()), ElementsAre("alpha", "beta", "gamma"));
    const GraphModule net = unflatten(program);
    EXPECT_THAT(sorted_names(net.state_dict()), ElementsAre("alpha", "beta", "gamma"));
    EXPECT_TRUE(close(only_tensor(net.call({x})), module(x)));
  });
}

// Makes a module inside of forward, which is no part of it.
template <typename Inner>
struct MakesModule : nn::Module {
  Tensor forward(const Tensor& x) {
    const Inner m;
    return m(x) * x;
  }
  WEFT_ARGS(x)
};

struct M1 : nn::Module {
  Tensor forward(const Tensor& x) { return x + x; }
  WEFT_ARGS(x)
};
struct M2 : nn::Module {
  Tensor forward(const Tensor& x) {
    const M1 m;
    return m(x) * x;
  }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nested_module) {
  for_each_variant([](const Exporter& exports) {
    const M2 module;
    const Tensor x = randn({3, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    std::vector<const Node*> adds;
    for (const Node& node : program.graph())
      if (node.target().op() == &operator_named("aten::add.Tensor")) adds.push_back(&node);
    ASSERT_EQ(adds.size(), 1u);
    const ModuleStack& modules = adds[0]->meta_or_null()->modules;
    ASSERT_EQ(modules.size(), 1u);
    EXPECT_THAT(modules[0].class_name, HasSubstr("M2"));
    EXPECT_EQ(graph_text(program.graph_module()), R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %x), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %x), kwargs = {})
    return (mul,))");
    EXPECT_TRUE(close(only_tensor(unflatten(program).call({x})), module(x)));
  });
}

TEST(TestExport, test_nested_module_with_init_buffer) {
  for_each_variant([](const Exporter& exports) {
    const MakesModule<InnerConstant> module;
    const Tensor x = randn({3, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    EXPECT_TRUE(program.state_dict().empty());
    EXPECT_TRUE(program.constants().empty());
    if (!exports.is_decomposed()) {
      EXPECT_EQ(graph_text(program.graph_module()), R"(graph():
    %x : [num_users=2] = placeholder[target=x]
    %ones : [num_users=1] = call_function[target=torch.ops.aten.ones.default](args = ([3, 3],), kwargs = {device: cpu, pin_memory: False})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %ones), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %x), kwargs = {})
    return (mul,))");
    }
    EXPECT_TRUE(close(only_tensor(unflatten(program).call({x})), module(x)));
  });
}

struct AddsFive : nn::Module {
  Tensor b = from_data<int64_t>({5}, {});
  Tensor forward(const Tensor& x) { return x + b; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nested_module_with_constant_buffer) {
  for_each_variant([](const Exporter& exports) {
    const MakesModule<AddsFive> module;
    const Tensor x = randn({3, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    EXPECT_TRUE(program.state_dict().empty());
    EXPECT_EQ(program.constants().size(), 1u);
    if (!exports.is_decomposed()) {
      EXPECT_EQ(graph_text(program.graph_module()), R"(graph():
    %c_lifted_tensor_0 : [num_users=1] = placeholder[target=c_lifted_tensor_0]
    %x : [num_users=2] = placeholder[target=x]
    %lift_fresh_copy : [num_users=1] = call_function[target=torch.ops.aten.lift_fresh_copy.default](args = (%c_lifted_tensor_0,), kwargs = {})
    %detach : [num_users=1] = call_function[target=torch.ops.aten.detach.default](args = (%lift_fresh_copy,), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %detach), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %x), kwargs = {})
    return (mul,))");
    }
    EXPECT_TRUE(close(only_tensor(unflatten(program).call({x})), module(x)));
  });
}

struct AddsParameters : nn::Module {
  Tensor a, b;
  AddsParameters() {
    a = parameter("a", ones({3, 3}));
    b = parameter("b", from_data<float>({5}, {}));
  }
  Tensor forward(const Tensor& x) { return x + a * b; }
  WEFT_ARGS(x)
};

TEST(TestExport, test_nested_module_with_parameter) {
  for_each_variant([](const Exporter& exports) {
    const MakesModule<AddsParameters> module;
    const Tensor x = randn({3, 3});
    const ExportedProgram program = exports(module, {x});
    EXPECT_TRUE(close(only_tensor(program.module().call({x})), module(x)));
    EXPECT_TRUE(program.state_dict().empty());
    EXPECT_EQ(program.constants().size(), 1u);
    if (!exports.is_decomposed()) {
      EXPECT_EQ(graph_text(program.graph_module()), R"(graph():
    %c_lifted_tensor_0 : [num_users=1] = placeholder[target=c_lifted_tensor_0]
    %x : [num_users=2] = placeholder[target=x]
    %ones : [num_users=1] = call_function[target=torch.ops.aten.ones.default](args = ([3, 3],), kwargs = {device: cpu, pin_memory: False})
    %detach : [num_users=1] = call_function[target=torch.ops.aten.detach.default](args = (%ones,), kwargs = {})
    %lift_fresh_copy : [num_users=1] = call_function[target=torch.ops.aten.lift_fresh_copy.default](args = (%c_lifted_tensor_0,), kwargs = {})
    %detach_1 : [num_users=1] = call_function[target=torch.ops.aten.detach.default](args = (%lift_fresh_copy,), kwargs = {})
    %detach_2 : [num_users=1] = call_function[target=torch.ops.aten.detach.default](args = (%detach_1,), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%detach, %detach_2), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %mul), kwargs = {})
    %mul_1 : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %x), kwargs = {})
    return (mul_1,))");
    }
    EXPECT_TRUE(close(only_tensor(unflatten(program).call({x})), module(x)));
  });
}

}  // namespace
}  // namespace weft
