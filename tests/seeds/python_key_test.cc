// The rows of TestPythonKey: make_graph and what it captures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/func/functionalize.h"
#include "weft/models/resnet.h"

namespace weft {
namespace {

using testing::close;

bool has_target(const GraphModule& module, std::string_view target) {
  for (const Node& node : module.graph())
    if (node.target().to_string() == target) return true;
  return false;
}

TEST(TestPythonKey, test_make_fx) {
  auto f = [](const Tensor& x) { return x.sin(); };
  GraphModule g = make_graph(f)(randn({3}));
  Tensor other = randn({3});
  EXPECT_TRUE(close(g(other), f(other), 0, 0));
}

TEST(TestPythonKey, test_make_fx_grad) {
  auto f = [](const Tensor& x) { return x.sin().sum(); };
  GraphModule g = make_graph(func::grad(f))(randn({3}));
  EXPECT_TRUE(has_target(g, "torch.ops.aten.cos.default"));
  Tensor other = randn({3});
  EXPECT_TRUE(close(g(other), func::grad(f)(other), 0, 0));
}

TEST(TestPythonKey, test_scalar_device) {
  for (const char* device : {"cpu", "sim:0"}) {
    auto moved = [](const Tensor& t, Device to_device) {
      return to(t, std::nullopt, std::nullopt, to_device);
    };
    Tensor a = moved(randn({3}), Device(device)), b = scalar_tensor(5, kInt64);
    auto f = [](const Tensor& x, const Tensor& y) { return x + y; };
    GraphModule g = make_graph(f)(a, b);
    Tensor result = g(a, b);
    EXPECT_EQ(result.dtype(), kFloat32);
    EXPECT_EQ(result.device().to_string(), Device(device).to_string());
    EXPECT_TRUE(close(moved(result, kCpu), moved(f(a, b), kCpu), 0, 0));
  }
}

TEST(TestPythonKey, test_make_fx_vmap) {
  auto f = func::vmap([](const Tensor& x) { return x.sin(); });
  GraphModule g = make_graph(f)(randn({5, 3}));
  Tensor other = randn({5, 3});
  EXPECT_TRUE(close(g(other), f(other), 0, 0));
}

TEST(TestPythonKey, test_make_fx_jacrev) {
  auto f = [](const Tensor& x) { return x.sin().sum(); };
  auto hessian = func::jacrev(func::jacrev(f));
  GraphModule g = make_graph(hessian)(randn({3}));
  Tensor other = randn({3});
  EXPECT_EQ(describe_sizes(g(other).sizes()).str(), "[3, 3]");
  EXPECT_TRUE(close(g(other), hessian(other), 0, 0));
}

TEST(TestPythonKey, test_make_fx_vjp) {
  auto f = [](const Tensor& x) { return x.sin().sum(); };
  auto [out, vjp_fn] = func::vjp(f, {randn({3})});
  GraphModule g = make_graph(vjp_fn)(randn({}), true, true);  // retain_graph, create_graph
  EXPECT_EQ(g.graph().placeholders().size(), 3u);
  Tensor other = randn({});
  EXPECT_TRUE(close(g.call({other, true, true}).to_tensor(), vjp_fn({other})[0], 0, 0));
}

TEST(TestPythonKey, test_make_fx_functionalize) {
  auto fn = [](const Tensor& x) {
    Tensor a = x * 2;
    a.relu_();
    return a;
  };
  GraphModule symbolic = symbolic_trace(fn);
  bool has_method = false;
  for (const Node& node : symbolic.graph())
    has_method |= node.kind() == NodeKind::kCallMethod && node.target().to_string() == "relu_";
  EXPECT_TRUE(has_method);
  GraphModule g = make_graph(func::functionalize(symbolic))(randn({3}));
  EXPECT_TRUE(has_target(g, "torch.ops.aten.relu.default"));
  EXPECT_FALSE(has_target(g, "torch.ops.aten.relu_.default"));
  Tensor other = randn({3});
  EXPECT_TRUE(close(g(other), fn(other), 0, 0));
}

TEST(TestPythonKey, test_make_fx_no_decompose) {
  auto f = [](const Tensor& x) { return x.tanh().sum(); };
  GraphModule whole = make_graph(func::grad(f))(randn({5}));
  EXPECT_TRUE(has_target(whole, "torch.ops.aten.tanh_backward.default"));
  GraphModule parts = make_graph(func::grad(f), {.decompositions = standard_decompositions()})(randn({5}));
  EXPECT_FALSE(has_target(parts, "torch.ops.aten.tanh_backward.default"));
  Tensor other = randn({5});
  EXPECT_TRUE(close(parts(other), whole(other), 1e-6, 1e-6));
}

// Where a row asks for a compiled function, the graph is interpreted until there is a compiler.
template <typename F>
auto jit(F f) {
  return [f](const auto&... args) { return make_graph(f)(args...).call({to_value(args)...}); };
}

TEST(TestPythonKeyParts, test_nnc_jit) {
  auto f = [](const Tensor& x) { return x.sin(); };
  Tensor x = randn({3});
  EXPECT_TRUE(close(jit(f)(x).to_tensor(), f(x), 0, 0));
}

TEST(TestPythonKeyParts, test_nnc_scalar) {
  auto f = [](const Tensor& x) { return x.sin(); };
  Tensor x = randn({});
  EXPECT_TRUE(close(jit(f)(x).to_tensor(), f(x), 0, 0));
}

TEST(TestPythonKeyParts, test_nnc_pytrees) {
  auto f = [](const std::vector<Tensor>& xs) { return std::vector<Tensor>{xs[0].sin()}; };
  std::vector<Tensor> xs{randn({3})};
  Value result = jit(f)(xs);
  ASSERT_TRUE(result.is_list());
  EXPECT_TRUE(close(result.elements()[0].to_tensor(), xs[0].sin(), 0, 0));
}

TEST(TestPythonKeyParts, test_external_calls) {
  auto f = [](const Tensor& a, const Tensor& b) { return mv(a, b); };
  Tensor a = randn({3, 3}), b = randn({3});
  EXPECT_TRUE(close(jit(f)(a, b).to_tensor(), mv(a, b), 0, 0));
}

TEST(TestPythonKeyParts, test_nnc_passthrough) {
  auto f = [](const Tensor& x, const Tensor& y) { return std::tuple(x + y, y); };
  Tensor x = randn({3}), y = randn({3});
  Value result = jit(f)(x, y);
  EXPECT_TRUE(close(result.elements()[0].to_tensor(), x + y, 0, 0));
  EXPECT_TRUE(result.elements()[1].to_tensor().is_same(y));
  auto g = [](std::map<std::string, Tensor> dict) {
    dict["a"] = dict["a"] * 2;
    return dict;
  };
  std::map<std::string, Tensor> dict{{"a", randn({3})}, {"b", randn({3})}};
  auto returned = from_value<std::map<std::string, Tensor>>(jit(g)(dict));
  EXPECT_TRUE(close(returned.at("a"), dict.at("a") * 2, 0, 0));
  EXPECT_TRUE(returned.at("b").is_same(dict.at("b")));
}

TEST(TestPythonKey, test_resnet18_backward_trace) {
  models::ResNet net = models::resnet18();
  Tensor x = randn({3, 3, 250, 250}).set_requires_grad();
  auto gradients = [&] {
    net(x).sum().backward();
    std::vector<Tensor> all;
    for (const Tensor& parameter : net.parameters()) all.push_back(parameter.grad());
    return all;
  };
  std::vector<Tensor> first = gradients();
  std::vector<Tensor> before;
  for (const Tensor& gradient : first) before.push_back(gradient.clone());
  net.zero_grad();
  for (const Tensor& parameter : net.parameters()) EXPECT_FALSE(parameter.grad().defined());
  std::vector<Tensor> second = gradients();
  for (size_t i = 0; i < first.size(); ++i) testing::expect_equal(first[i], before[i]);
  ASSERT_EQ(first.size(), 62u);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(close(second[i], first[i], 0, 0)) << i;
}

}  // namespace
}  // namespace weft
