#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"

// The commands of `weft`. Each prints its result on standard output, and messages on standard error.

namespace weft::cli {

// What the process ends with.
enum ExitCode : int {
  kFine = 0,
  kDiffers = 1,      // from what was expected
  kUsage = 2,        // the command line, or a model that is not there
  kBadFile = 3,      // a file that is not what it must be
  kUnsupported = 4,  // something in it that weft does not have
  kCheckFailed = 5,  // a check of the program, while it ran
  kFault = 70,       // of weft's own
};

// A command line that says what cannot be.
class UsageError : public UserError {
 public:
  using UserError::UserError;
};

// What all commands take.
struct Common {
  std::string model;
  std::string program;               // --model: which of several in an archive
  std::string weights;               // --weights
  std::vector<std::string> plugins;  // --plugin
  bool json = false;
  int threads = 0;  // 0: as many as there are
};

struct Expectation {
  std::string file;
  std::optional<double> rtol, atol;
};

struct RunCommand : Common {
  std::string inputs, output, after, engine = "eager";
  Expectation expect;
  std::optional<uint64_t> seed;
};
int run(const RunCommand& command);

struct GradCommand : Common {
  std::string inputs, output, loss = "mean_square";
  std::optional<uint64_t> seed;
  Expectation expect;
};
int grad(const GradCommand& command);

struct TrainCommand : Common {
  std::string data, optimizer, loss = "mean_square", target, log, output;
  double lr = 0, momentum = 0;
  std::optional<double> weight_decay;
  int64_t batch = 0, epochs = 0, steps = 0;
  bool shuffle = false;
  uint64_t seed = 0;
};
int train(const TrainCommand& command);

struct ShowCommand : Common {
  std::string format = "code", output;
};
int show(const ShowCommand& command);

struct CheckCommand : Common {
  bool deep = false;
};
int check(const CheckCommand& command);

struct BenchCommand : Common {
  std::string inputs, engine = "eager";
  std::vector<std::pair<std::string, int64_t>> dims;
  double seconds = 3;
};
int bench(const BenchCommand& command);

struct DiffCommand : Common {
  std::string other, inputs;
  std::optional<double> rtol, atol;
};
int diff(const DiffCommand& command);

struct ConvertCommand : Common {
  std::string output;
  bool decompose = false;
};
int convert(const ConvertCommand& command);

}  // namespace weft::cli
