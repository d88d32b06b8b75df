// A pass of one's own, by pattern: x * sigmoid(x) becomes silu(x).
//
//   custom_pass
#include <iostream>

#include "weft/extend.h"

using namespace weft;

int main() {
  auto f = [](const Tensor& x) {
    Tensor y = x * x.sigmoid();
    return y * y.sigmoid() + 1;
  };
  GraphModule module = make_graph(f)(randn({3}));
  std::cout << "before:" << module.code() << "\n";

  // Patterns are graphs: captured like any other program.
  Graph pattern = make_graph([](const Tensor& x) { return x * x.sigmoid(); })(randn({3})).graph().copy();
  Graph replacement = make_graph([](const Tensor& x) { return silu(x); })(randn({3})).graph().copy();
  auto fuse = [&](GraphModule& m) { return !replace_pattern(m.graph(), pattern, replacement).empty(); };
  for (const PassReport& report : run_passes(module, {{"fuse silu", fuse}}, {.verify = true}))
    std::cout << report.name << (report.changed ? " changed the graph" : " found nothing") << "\n";

  std::cout << "after:" << module.code() << "\n";
  Tensor x = randn({3});
  std::cout << "difference: " << (module(x) - f(x)).abs().max().item().to_double() << "\n";
}
