#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "graph/change_watch.h"
#include "weft/graph/graph_module.h"

namespace weft {

// The optimised forms of one graph: one for each set of inputs that require a gradient.
class OptimizedForms {
 public:
  // What to run for these inputs, as long as the graph is what it is.
  GraphModule form_for(const GraphModule& module, Args inputs);

 private:
  // For each input that is given in order, whether it asks for one; others may. Nothing while gradients are
  // off.
  using Gradients = std::optional<std::vector<bool>>;
  static Gradients gradients_of(const GraphModule& module, Args inputs);
  static GraphModule optimized(const GraphModule& module, const Gradients& gradients);

  std::mutex mutex_;
  ChangeWatch watch_;
  uint64_t version_ = 0;
  std::map<Gradients, GraphModule> forms_;
};

}  // namespace weft
