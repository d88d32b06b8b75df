// The rows of TestAOTAutograd about inputs that take other memory: set_, and storages that are emptied and
// filled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/autograd/data.h"
#include "weft/autograd/function.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::expect_equal;
using testing::verify_aot_autograd;
using testing::VerifyAot;

const VerifyAot kKept{.test_mutation = true, .keep_input_mutations = true};

ValueFunction two_inputs(Tensor (*f)(const Tensor&, const Tensor&)) { return make_callable(f); }

// --- set_ ------------------------------------------------------------------------------------------------

Tensor sets_and_writes(const Tensor& a, const Tensor& b) {
  {
    NoGrad no_grad;
    a.set_(b);
    b.mul_(2);
  }
  return a + b;
}

TEST(TestAOTAutograd, test_set__and_data_mutation_good) {
  for (bool grad : {true, false}) {
    SCOPED_TRACE(grad);
    const ValueList inputs = {ones({3, 3}).set_requires_grad(grad), ones({3, 3}).set_requires_grad(grad)};
    GraphModule graph = verify_aot_autograd(two_inputs(sets_and_writes), inputs, kKept);
    if (!grad) continue;
    EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2):
    mul = torch.ops.aten.mul.Tensor(primals_2, 2)
    add = torch.ops.aten.add.Tensor(mul, mul)
    set_ = torch.ops.aten.set_.source_Tensor(primals_1, mul);  primals_1 = set_ = None
    copy_ = torch.ops.aten.copy_.default(primals_2, mul);  primals_2 = mul = copy_ = None
    return [add])");
  }
}

TEST(TestAOTAutograd, test_set__and_data_mutation_bad) {
  auto f = [](const Tensor& a) {
    Tensor a_view = a.view(-1);
    Tensor tmp = ones({3, 3}).set_requires_grad();
    {
      NoGrad no_grad;
      a.set_(tmp);
      a_view.mul_(2);
    }
    return a + tmp;
  };
  const ValueList inputs = {ones({3, 3}).set_requires_grad()};
  EXPECT_ERROR(verify_aot_autograd(make_callable(f), inputs, kKept),
               "cannot mutate tensors with frozen storage");
}

TEST(TestAOTAutograd, test_set__not_allowed) {
  auto f = [](const Tensor& a, const Tensor& b) {
    {
      NoGrad no_grad;
      a.set_(b);
    }
    a.mul_(2);
    return a + b;
  };
  const ValueList inputs = {ones({3, 3}).set_requires_grad(), ones({3, 3}).set_requires_grad()};
  EXPECT_ERROR(verify_aot_autograd(make_callable(f), inputs, kKept),
               "but the input has other mutations that we cannot");
}

TEST(TestAOTAutograd, test_input_mutation_set__nop) {
  auto f = [](const Tensor& a) {
    Tensor b = arange(9, a.dtype());
    Tensor a_old = alias(a);
    {
      NoGrad no_grad;
      a.set_(b);
      a.set_(a_old);
    }
    return a + b.reshape({3, 3});
  };
  for (bool grad : {false, true}) {
    SCOPED_TRACE(grad);
    const ValueList inputs = {ones({3, 3}).set_requires_grad(grad)};
    GraphModule graph = verify_aot_autograd(make_callable(f), inputs, kKept);
    EXPECT_EQ(testing::counts_of(graph).outputs, 1u);
    if (!grad) continue;
    EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    arange = torch.ops.aten.arange.default(9, dtype = torch.float32, device = device(type='cpu'), pin_memory = False)
    alias = torch.ops.aten.alias.default(primals_1);  primals_1 = None
    view = torch.ops.aten.view.default(arange, [3, 3]);  arange = None
    add = torch.ops.aten.add.Tensor(alias, view);  alias = view = None
    return [add])");
  }
}

// --- storages --------------------------------------------------------------------------------------------

// What `f` is compiled to when it is called, and its result.
template <typename F, typename... A>
std::pair<GraphModule, Tensor> run_compiled(F f, const A&... inputs) {
  GraphModule graph;
  AotFunction function = aot_function(f, {.forward_compiler =
                                              [&](GraphModule& forward, const ValueList& examples) {
                                                graph = forward;
                                                return aot::nop(forward, examples);
                                              },
                                          .backward_compiler = aot::nop,
                                          .keep_inference_input_mutations = true});
  Tensor result = function(inputs...);
  return {graph, result};
}

Tensor emptied(int64_t elements) {
  Tensor tensor = zeros({elements}).set_requires_grad();
  tensor.storage()->resize(0);
  return tensor;
}

TEST(TestAOTAutograd, test_input_mutation_storage_resize_up) {
  auto f = [](const Tensor& a) {
    resize_storage_bytes_(a, 32);
    {
      NoGrad no_grad;
      a.copy_(ones({8}));
    }
    return a + 1;
  };
  const Tensor a = emptied(8);
  const auto [graph, result] = run_compiled(f, a);
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    resize_storage_bytes_ = torch.ops.inductor.resize_storage_bytes_.default(primals_1, 32);  resize_storage_bytes_ = None
    ones = torch.ops.aten.ones.default([8], device = device(type='cpu'), pin_memory = False)
    copy = torch.ops.aten.copy.default(primals_1, ones);  ones = None
    add = torch.ops.aten.add.Tensor(copy, 1)
    copy_ = torch.ops.aten.copy_.default(primals_1, copy);  primals_1 = copy = copy_ = None
    return [add])");
  EXPECT_EQ(a.storage()->bytes(), 32u);
  expect_equal(a.detach(), ones({8}));
  expect_equal(result.detach(), full({8}, 2.0));
}

TEST(TestAOTAutograd, test_input_mutation_storage_resize_down) {
  auto f = [](const Tensor& a) {
    Tensor out = a.sin();
    resize_storage_bytes_(a, 0);
    return out;
  };
  const Tensor a = zeros({8}).set_requires_grad();
  const auto [graph, result] = run_compiled(f, a);
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1):
    sin = torch.ops.aten.sin.default(primals_1)
    resize_storage_bytes_ = torch.ops.inductor.resize_storage_bytes_.default(primals_1, 0);  resize_storage_bytes_ = None
    return [sin, primals_1])");
  EXPECT_EQ(a.storage()->bytes(), 0u);
  // The backward reads what was there: whoever emptied it fills it again first.
  a.storage()->resize(32);
  autograd::untracked_data(a).fill_(0);
  result.sum().backward();
  expect_equal(a.grad(), ones({8}));
}

// Gives the parameter the memory of a tensor that was gathered for it.
struct CreateParameter : autograd::Function<CreateParameter> {
  static Tensor forward(autograd::FunctionContext&, const Tensor& tensor, const Tensor& placeholder) {
    require(!tensor.requires_grad(), "the gathered tensor requires no gradient");
    return placeholder.set_(tensor);
  }
  static std::vector<Tensor> backward(autograd::FunctionContext&, const std::vector<Tensor>& grads) {
    return {Tensor(), grads[0]};
  }
};

TEST(TestAOTAutograd, test_input_mutation_storage_resize_down_and_set_) {
  auto f = [](const Tensor& dummy_param, const Tensor& param_shard) {
    Tensor gathered;
    {
      NoGrad no_grad;
      gathered = cat({param_shard, param_shard});
    }
    CreateParameter::apply(gathered, dummy_param);
    Tensor out = dummy_param.sin();
    resize_storage_bytes_(dummy_param, 0);
    return out;
  };
  const Tensor shard = full({8}, 0.5).set_requires_grad(), parameter = emptied(16);
  const auto [graph, result] = run_compiled(f, parameter, shard);
  EXPECT_GRAPH(graph, R"(def forward(self, primals_1, primals_2):
    cat = torch.ops.aten.cat.default([primals_2, primals_2]);  primals_2 = None
    sin = torch.ops.aten.sin.default(cat)
    resize_storage_bytes_ = torch.ops.inductor.resize_storage_bytes_.default(cat, 0);  resize_storage_bytes_ = None
    set_ = torch.ops.aten.set_.source_Tensor(primals_1, cat);  primals_1 = set_ = None
    return [sin, cat])");
  EXPECT_EQ(parameter.storage()->bytes(), 0u);
  expect_equal(result.detach(), full({16}, 0.5).sin());
}

}  // namespace
}  // namespace weft
