// Captures a small network as a graph in four ways, and shows what each sees.
//
//   capture_mlp
#include <iostream>

#include "weft/weft.h"

using namespace weft;

namespace {

struct Mlp : nn::Module {
  nn::Linear fc1 = child("fc1", nn::Linear(8, 16));
  nn::Linear fc2 = child("fc2", nn::Linear(16, 4));
  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))); }
  WEFT_ARGS(x)
};

void show(const char* what, const GraphModule& module) {
  std::cout << "--- " << what << module.code() << "\n\n";
}

}  // namespace

int main() {
  Mlp net;
  Tensor x = randn({2, 8});
  show("make_graph: the operators that ran", make_graph(net)(x));
  show("... with sizes as symbols", make_graph(net, {.mode = CaptureMode::kSymbolic})(x));
  show("... before composites are taken apart", make_graph(net, {.pre_dispatch = true})(x));
  show("symbolic_trace: no inputs, layers stay calls", symbolic_trace(net));

  GraphModule graph = make_graph(net)(x);
  std::cout << "the graph computes the same: " << (graph(x) - net(x)).abs().max().item().to_double() << "\n";
}
