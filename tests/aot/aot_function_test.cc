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
  auto f = aot_function([](const Tensor& a) {
    Tensor b = a.clone().squeeze(-1);
    b.add_(1.0);
    return a + b;
  }, {.forward_compiler = keep, .partitioner = [](const GraphModule& g, size_t n) { std::puts(g.code().c_str()); return aot::default_partition(g, n); }, .dynamic = true});
  f(randn({3, 1}).set_requires_grad());
}

}  // namespace
}  // namespace weft
