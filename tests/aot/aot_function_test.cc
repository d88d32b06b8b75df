#include "weft/aot/aot_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "weft/autograd/autograd.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

TEST(AotFunction, Trial) {
  auto keep = [](GraphModule& graph, const ValueList& examples) {
    std::puts(aot::compilation_context().names[0].c_str());
    std::puts(graph.code().c_str());
    return aot::nop(graph, examples);
  };
  auto f = aot_function([](const Tensor& x) { return x.sin().cos(); }, {.forward_compiler = keep});
  Tensor x = randn({3}).set_requires_grad();
  Tensor y = f(x);
  y.sum().backward();
  EXPECT_TRUE(testing::close(y, x.sin().cos(), 1e-6, 1e-6));
  auto g = aot_function([](const Tensor& a) { a.mul_(2); return a * 3; }, {.forward_compiler = keep});
  Tensor a = ones({3, 3}).set_requires_grad() + 0;
  g(a).sum().backward();
  std::puts(g.explain().c_str());
  std::puts(a.to_string().c_str());
}

}  // namespace
}  // namespace weft
