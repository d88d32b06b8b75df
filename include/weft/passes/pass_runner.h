#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/passes/verify.h"

namespace weft {

// One step of a pipeline over a graph module.
struct Pass {
  std::string name;
  std::function<bool(GraphModule&)> run;                   // whether it changed anything
  std::function<bool(const GraphModule&)> condition = {};  // absent: always
  Stage stage = Stage::kAny;                               // what must hold afterwards
};

struct PassRunnerOptions {
#ifdef NDEBUG
  bool verify = false;
#else
  bool verify = true;
#endif
  // Called with the pass's name and the code before and after it, for passes that changed something.
  std::function<void(const std::string& name, const std::string& before, const std::string& after)> dump = {};
};

struct PassReport {
  std::string name;
  bool ran = false, changed = false;
  double seconds = 0;
};

// Runs the passes in their order. An error of a pass, or of the check after it, names the pass.
std::vector<PassReport> run_passes(GraphModule& module, const std::vector<Pass>& passes,
                                   const PassRunnerOptions& options = {});

}  // namespace weft
