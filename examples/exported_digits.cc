// What ./demo does: takes a network that PyTorch trained a little and exported, shows it, runs it, trains it
// on, saves it.
//
//   weft-demo-exported [MODEL.pt2] [DATA_FILE]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "digits_data.h"
#include "weft/io/numpy.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::examples;

namespace {

// The images that the network was not trained on are the last ones.
constexpr int64_t kTrained = 1437;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double percent_right(const std::string& model, const Tensor& images, const Tensor& labels) {
  NoGrad no_grad;
  ExportedProgram program = load_pt2(model);
  Tensor scores = program.module()(images);
  return 100 * scores.argmax(1).eq(labels).to(kFloat64).mean().item().to_double();
}

// Says what it runs: a reader may run it again.
void command(const std::string& text) {
  std::cout << "\n$ " << text << std::endl;
  require(std::system(text.c_str()) == 0, "the command failed: {}", text);
}

void demonstrate(const std::string& model, const std::string& data) {
  const DigitSet all = load_digits(data);
  const Tensor images = from_data(all.pixels, {all.size(), 1, kDigitSide, kDigitSide}),
               labels = from_data(all.labels);
  const int64_t held_out = all.size() - kTrained;
  const Tensor unseen = images.narrow(0, kTrained, held_out), answers = labels.narrow(0, kTrained, held_out);

  double began = seconds();
  const ExportedProgram program = load_pt2(model);
  std::printf("%s, which PyTorch exported, loaded in %.1f ms:", model.c_str(), 1e3 * (seconds() - began));
  std::cout << program.graph_module().code() << "\n";
  began = seconds();
  const double before = percent_right(model, unseen, answers);
  std::printf("reads %.1f %% of %lld digits that it has not seen, in %.1f ms\n", before,
              static_cast<long long>(held_out), 1e3 * (seconds() - began));

  const std::filesystem::path tool = std::filesystem::canonical("/proc/self/exe").parent_path() / "weft";
  const std::string weft = std::filesystem::relative(tool).string();
  save_npz({{"0", images.narrow(0, 0, kTrained)}, {"label", labels.narrow(0, 0, kTrained)}},
           "build/digits_train.npz");
  began = seconds();
  command(weft + " train " + model +
          " --data build/digits_train.npz --target label --loss cross_entropy --optimizer adamw "
          "--lr 3e-3 --batch 64 --shuffle --epochs 8 -o build/digits_better.pt2");
  const double after = percent_right("build/digits_better.pt2", unseen, answers);
  std::printf("reads %.1f %% of them now, after %.1f s; torch.export.load reads build/digits_better.pt2\n",
              after, seconds() - began);
  command(weft + " show build/digits_better.pt2 --format html -o build/digits.html");
  std::cout << "open build/digits.html to look at the graph\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    demonstrate(argc > 1 ? argv[1] : "data/digits.pt2", argc > 2 ? argv[2] : "data/digits.bin");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "weft-demo-exported: " << error.what() << "\n";
    return 1;
  }
}
