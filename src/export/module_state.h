#pragma once

#include <string>
#include <vector>

#include "weft/nn/module.h"

namespace weft {

// The tensors of a module by what they are, each where it is met first; other names of one tensor apart.
struct ModuleTensors {
  struct Entry {
    std::string name;
    Tensor tensor;
    bool persistent = true;
  };
  std::vector<Entry> parameters, buffers, constants;
  // All names of a kind, aliases too.
  nn::NamedTensors state;      // parameters and persistent buffers
  nn::NamedTensors all_other;  // buffers that are not, and constants

  explicit ModuleTensors(const nn::Module& module);
};

}  // namespace weft
