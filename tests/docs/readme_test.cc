// The README's second program: a file of PyTorch's, run, trained on and saved. Its first one is built and run
// from outside (tests/consumer).
#include <gtest/gtest.h>

#include <filesystem>

#include "support/tensors.h"
#include "weft/weft.h"

namespace weft {
namespace {

TEST(Readme, AFileOfPyTorchIsRunAndTrained) {
  const Tensor images = rand({16, 1, 8, 8}), labels = randint(0, 10, {16});
  const std::string path = ::testing::TempDir() + "weft_readme_better.pt2";

  ExportedProgram program = load_pt2(WEFT_SOURCE_DIR "/data/digits.pt2");
  GraphModule model = program.module();
  Tensor scores = model(images);

  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3});
  auto loss = [](const Tensor& s, const Tensor& y) { return cross_entropy_loss(s, y); };
  TrainStep step = aot_train_step(model, loss, optimizer);
  step(images, labels);
  save_pt2(program, path);

  const Tensor before = cross_entropy_loss(scores, labels);
  const Tensor after = cross_entropy_loss(load_pt2(path).module()(images), labels);
  EXPECT_LT(after.item().to_double(), before.item().to_double());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weft
