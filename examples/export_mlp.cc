// Exports a network that is written in C++ as a .pt2 file, which PyTorch and `weft` run.
//
//   export_mlp [FILE]
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

}  // namespace

int main(int count, char** arguments) {
  const std::string file = count > 1 ? arguments[1] : "mlp.pt2";
  Mlp net;
  const Tensor x = randn({3, 8});
  // Any number of rows; without it, three and no other.
  const Dim batch("batch", {.min = 1, .max = 1024});
  const ExportedProgram program = export_for_training(net, {x}, {.dynamic_shapes = {{"x", {{0, batch}}}}});
  std::cout << program << "\n";
  save_pt2(program, file);

  const GraphModule loaded = load_pt2(file).module();
  const Tensor other = randn({7, 8});
  std::cout << "the loaded program differs from the network by "
            << (loaded(other) - net(other)).abs().max().item().to_double() << "\n";

  std::cout << "run it with\n  weft run " << file << "\nor with PyTorch:\n  python -c \"import torch; print("
            << "torch.export.load('" << file << "').module()(torch.randn(5, 8)))\"\n";
}
