#pragma once

#include <cstdint>
#include <vector>

#include "weft/aot/partition.h"

namespace weft::aot {

// What the minimum cut weighs the values that a partition of `joint` saves, by their names in it: no cut of a
// graph without common subexpressions weighs less than the minimum cut.
int64_t saved_weight(const GraphModule& joint, size_t num_forward_outputs, const Partition& partition);

// A directed graph with capacities, of which a minimum cut between two vertices is asked.
class FlowNetwork {
 public:
  static constexpr int64_t kInfinite = int64_t{1} << 50;

  explicit FlowNetwork(size_t vertices) : vertices_(vertices) {}
  void add_edge(size_t from, size_t to, int64_t capacity) { edges_.push_back({from, to, capacity}); }
  // Which vertices are on the side of the sink: of all minimum cuts, the one nearest to it.
  std::vector<bool> sink_side(size_t source, size_t sink) const;

 private:
  struct Edge {
    size_t from, to;
    int64_t capacity;
  };
  size_t vertices_;
  std::vector<Edge> edges_;
};

}  // namespace weft::aot
