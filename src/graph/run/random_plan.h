#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/random.h"
#include "weft/graph/graph.h"

namespace weft {

// The random numbers of one run.
struct RunNumbers {
  bool are_given =
      false;  // an error where a node's numbers cannot be found among those of the open RandomScope
  // Where the run begins; nothing where its nodes do not draw at their offsets.
  std::optional<RandomStream> begin{};
};

// Where the random nodes of a graph find their numbers, run after run: each at its offset from where the run
// begins.
class RandomPlan {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Draw {
    RandomStream stream;
    bool has_known_end;  // false for an operator over functions, whose draws follow from the data
  };
  // By the draw index of the nodes; one may be missing.
  using Draws = std::vector<std::optional<Draw>>;

  explicit RandomPlan(const Graph& graph);
  // The node's index among the draws of a run; kNone for one that draws whatever comes next.
  uint32_t of(const Node& node) const;
  // Takes the numbers of one run: from the open RandomScope, or else the default generator. Nothing where
  // there are none to take, where nothing is computed, and where the inputs have other sizes than the offsets
  // are for: nodes then draw whatever comes next.
  std::optional<Draws> begin(Args inputs, RunNumbers* numbers = nullptr) const;
  // Makes a call that draws from there.
  static Value run(const std::optional<Draw>& draw, FunctionRef<Value()> call);

 private:
  struct Entry {
    const Node* node;
    SymInt offset;
    bool has_known_end;
  };
  // Where that cannot be told, `why`, unless it is null, says what is missing.
  std::optional<Draws> draws_for(Args inputs, bool are_given, SymInt& advance, std::string* why) const;

  std::vector<Entry> entries_;
  std::unordered_map<const Node*, uint32_t> draw_index_;
  SymInt advance_;
  std::vector<Value> examples_;  // what the inputs were at the capture
};

}  // namespace weft
