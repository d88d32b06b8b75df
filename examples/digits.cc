// Trains a small convolutional network on handwritten digits and says how well it reads ones it has not seen.
// A training step, with its backward pass and the optimizer's update, is one graph, compiled before it runs.
//
//   weft-demo [DATA_FILE] [--epochs N] [--seed S]

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>

#include "digits_data.h"
#include "weft/weft.h"

using namespace weft;
using namespace weft::examples;

namespace {

// An activation that is worth computing twice: its gradient needs both factors, and the second follows from
// the first.
Tensor swish(const Tensor& x) { return x * sigmoid(x); }

struct DigitNet : nn::Module {
  nn::Conv2d conv1 = child("conv1", nn::Conv2d(1, 16, 3, {.padding = 1}));
  nn::BatchNorm2d norm1 = child("norm1", nn::BatchNorm2d(16));
  nn::Conv2d conv2 = child("conv2", nn::Conv2d(16, 32, 3, {.padding = 1}));
  nn::BatchNorm2d norm2 = child("norm2", nn::BatchNorm2d(32));
  nn::MaxPool2d pool = child("pool", nn::MaxPool2d(2));
  nn::Dropout drop = child("drop", nn::Dropout(0.25));
  nn::Linear head = child("head", nn::Linear(32 * 2 * 2, 10));

  Tensor forward(Tensor x) {
    x = pool(swish(norm1(conv1(x))));
    x = pool(swish(norm2(conv2(x))));
    return head(drop(flatten(x, 1)));
  }
  WEFT_ARGS(x)
};

struct Options {
  std::string data = "data/digits.bin";
  int epochs = 12;
  uint64_t seed = 1;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool has_value = i + 1 < argc;
    if (word == "--epochs" && has_value) options.epochs = std::stoi(argv[++i]);
    else if (word == "--seed" && has_value) options.seed = std::stoull(argv[++i]);
    else if (word.starts_with("--"))
      fail("unknown option {}; usage: weft-demo [DATA_FILE] [--epochs N] [--seed S]", word);
    else options.data = word;
  }
  return options;
}

Tensor images(const DigitSet& set) { return from_data(set.pixels, {set.size(), 1, kDigitSide, kDigitSide}); }
Tensor labels(const DigitSet& set) { return from_data(set.labels); }

// Rows `picked` of the set, as a batch.
std::pair<Tensor, Tensor> batch(const Tensor& x, const Tensor& y, const std::vector<int64_t>& picked) {
  Tensor index = from_data(picked);
  return {index_select(x, 0, index), index_select(y, 0, index)};
}

double accuracy(DigitNet& net, const Tensor& x, const Tensor& y) {
  NoGrad no_grad;
  net.eval();
  Tensor scores = net(x);
  net.train();
  const float* s = scores.data<float>();
  const int64_t* wanted = y.data<int64_t>();
  int64_t right = 0, n = y.plain_numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = 0;
    for (int64_t c = 1; c < kDigitClasses; ++c)
      if (s[i * kDigitClasses + c] > s[i * kDigitClasses + best]) best = c;
    right += best == wanted[i];
  }
  return static_cast<double>(right) / static_cast<double>(n);
}

void show_progress(int epoch, int epochs, int64_t step, int64_t steps, double loss) {
  if (!isatty(STDOUT_FILENO)) return;
  constexpr int width = 30;
  int done = static_cast<int>(step * width / steps);
  std::string bar(static_cast<size_t>(done), '#');
  bar.resize(width, '.');
  std::printf("\repoch %2d/%d [%s] loss %.4f", epoch, epochs, bar.c_str(), loss);
  std::fflush(stdout);
}

std::string kilobytes(int64_t bytes) { return std::to_string((bytes + 512) / 1024) + " kB"; }

// What the step's backward takes from its forward, and what it computes again instead.
void show_step(const TrainStep& step, double milliseconds) {
  const aot::SavedReport saved = step.saved();
  std::printf("one training step as one graph: %zu nodes with backward and update, compiled in %.1f ms\n",
              step.graph().graph().size(), milliseconds);
  std::printf("  saved by the forward for the backward: %s for 64 images\n   ",
              kilobytes(saved.total_bytes).c_str());
  for (const aot::SavedReport::Entry& entry : saved.saved)
    if (entry.bytes >= 1024) std::printf(" %s (%s)", entry.name.c_str(), kilobytes(entry.bytes).c_str());
  std::printf("\n  computed again by the backward:\n   %s", saved.recomputed.empty() ? " nothing" : "");
  for (const std::string& name : saved.recomputed) std::printf(" %s", name.c_str());
  const char* file = "build/digits_step.svg";
  std::ofstream(file) << svg(step.partition());
  std::printf("\n  drawn in %s\n\n", file);
}

// The first lines of the graph and the last ones, which update the parameters.
void show_code(const TrainStep& step) {
  std::istringstream code(step.graph().code());
  std::vector<std::string> lines;
  for (std::string line; std::getline(code, line);)
    if (line.find(" = torch.") != std::string::npos) lines.push_back(line.substr(0, line.find(';')));
  std::printf("\nthe step begins and ends like this:\n");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 4) std::printf("    ...\n");
    if (i < 4 || i + 4 >= lines.size()) std::printf("%s\n", lines[i].c_str());
  }
}

int run(const Options& options) {
  DigitSplit split = split_digits(load_digits(options.data));
  Tensor x = images(split.train), y = labels(split.train), test_x = images(split.test),
         test_y = labels(split.test);
  std::printf("%lld handwritten digits to learn from, %lld to be tested on\n",
              static_cast<long long>(split.train.size()), static_cast<long long>(split.test.size()));

  manual_seed(options.seed);
  DigitNet net;
  optim::AdamW optimizer(net.parameters(), {.lr = 3e-3, .weight_decay = 1e-2});
  int64_t count = 0;
  for (const Tensor& p : net.parameters()) count += p.plain_numel();
  std::printf("a network of %lld parameters\n", static_cast<long long>(count));

  constexpr int64_t batch_size = 64;
  std::vector<int64_t> order(static_cast<size_t>(split.train.size()));
  std::iota(order.begin(), order.end(), 0);
  Generator shuffler(options.seed);
  // The last batch of an epoch is smaller: sizes are symbols.
  TrainStep train_step = aot_train_step(
      net, [](const Tensor& scores, const Tensor& classes) { return cross_entropy_loss(scores, classes); },
      optimizer, {.partitioner = aot::min_cut_partitioner(), .dynamic = true});
  auto start = std::chrono::steady_clock::now();
  auto milliseconds = [&start] {
    return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto [first_x, first_y] = batch(x, y, {order.begin(), order.begin() + batch_size});
  train_step.compile_for({first_x, first_y});
  show_step(train_step, milliseconds());
  start = std::chrono::steady_clock::now();
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    RandomStream stream = shuffler.reserve(order.size());
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[stream.integer_below(i - 1, i)]);
    auto steps = (split.train.size() + batch_size - 1) / batch_size;
    double total = 0;
    for (int64_t step = 0; step < steps; ++step) {
      auto first = order.begin() + step * batch_size,
           last = order.begin() + std::min<int64_t>((step + 1) * batch_size, split.train.size());
      auto [bx, by] = batch(x, y, {first, last});
      total += train_step(bx, by).item().to_double();
      show_progress(epoch, options.epochs, step + 1, steps, total / static_cast<double>(step + 1));
    }
    std::printf("%sepoch %2d/%d  loss %.4f  test accuracy %.2f %%\n", isatty(STDOUT_FILENO) ? "\r\033[K" : "",
                epoch, options.epochs, total / static_cast<double>(steps),
                100 * accuracy(net, test_x, test_y));
  }
  double seconds = milliseconds() / 1e3;
  double reached = accuracy(net, test_x, test_y);
  std::printf("\n%.2f %% of %lld unseen digits read right, after %.1f s of training\n", 100 * reached,
              static_cast<long long>(split.test.size()), seconds);
  show_code(train_step);
  std::printf(
      "\nTry next:\n  ./demo --epochs 20       train longer\n  examples/digits.cc        the program you "
      "just ran\n  examples/custom_pass.cc   change a graph by a pattern\n  docs/aot.md               "
      "gradients ahead of time\n  docs/capture.md           programs become graphs\n  docs/architecture.md   "
      "   how a call travels through weft\n  ./test                  "
      "  "
      "the tests\n");
  return reached >= 0.97 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::cerr << "weft-demo: " << e.what() << "\n";
    return 2;
  }
}
