#include "export/flat_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace weft {

ExportedProgram with_flat_names(const ExportedProgram& program) {
  ExportedProgram::Parts parts = program.parts();
  std::unordered_map<std::string, std::string> flat;
  std::unordered_set<std::string> taken;
  for (ExportedProgram::NamedTensors* tensors : {&parts.state, &parts.constants})
    for (auto& [name, tensor] : *tensors) {
      std::string base = name;
      std::ranges::replace(base, '.', '_');
      std::string own = base;
      for (int i = 1; !taken.insert(own).second; ++i) own = fmt::format("{}_{}", base, i);
      flat.emplace(name, own);
      name = std::move(own);
    }
  auto rename = [&](std::string& target) {
    if (auto found = flat.find(target); found != flat.end()) target = found->second;
  };
  for (InputSpec& spec : parts.inputs) rename(spec.target);
  for (OutputSpec& spec : parts.outputs)
    if (spec.kind == OutputSpec::Kind::kBufferMutation || spec.kind == OutputSpec::Kind::kParameterMutation ||
        spec.kind == OutputSpec::Kind::kGradientToParameter)
      rename(spec.target);
  return ExportedProgram::make(std::move(parts));
}

}  // namespace weft
