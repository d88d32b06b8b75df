#include "weft/passes/pass_runner.h"

#include <chrono>

#include "weft/base/error.h"

namespace weft {

std::vector<PassReport> run_passes(GraphModule& module, const std::vector<Pass>& passes,
                                   const PassRunnerOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::vector<PassReport> reports;
  for (const Pass& pass : passes) {
    PassReport report{.name = pass.name};
    auto describe = [&] { return fmt::format("running pass '{}'", pass.name); };
    While scope(describe);
    if (!pass.condition || pass.condition(module)) {
      std::string before = options.dump ? module.code() : std::string();
      Clock::time_point start = Clock::now();
      report.ran = true;
      report.changed = pass.run(module);
      report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (options.verify) verify(module, pass.stage);
      if (options.dump && report.changed) options.dump(pass.name, before, module.code());
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace weft
