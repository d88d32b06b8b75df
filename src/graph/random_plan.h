#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "weft/base/random.h"
#include "weft/graph/graph.h"

namespace weft {

// Where the random nodes of a graph find their numbers, run after run: each at its offset from where the run
// begins.
class RandomPlan {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  using Streams = std::vector<RandomStream>;

  explicit RandomPlan(const Graph& graph);
  // The node's place among the streams of a run; kNone for one that draws whatever comes next.
  uint32_t of(const Node& node) const;
  // Takes the numbers of one run from the default generator. Nothing where there are none to take, where
  // nothing is computed, and where the inputs have other sizes than the offsets are for: nodes then draw
  // whatever comes next.
  std::optional<Streams> begin(Args inputs) const;

 private:
  std::vector<SymInt> offsets_;  // of the streams
  std::unordered_map<const Node*, uint32_t> place_;
  SymInt advance_;
  std::vector<Value> examples_;  // what the inputs were at the capture
};

}  // namespace weft
