#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// The position of each node in the list of its graph, for walks that keep an array with an entry a node.
// Nodes made one after another are adjacent in memory, and so are their entries here: a graph of a million
// nodes is looked up in its order without a cache miss a node.
class NodeIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit NodeIndex(const Graph& graph) {
    size_t slots = 16;
    while (slots < 2 * graph.size()) slots *= 2;
    table_.resize(slots);
    uint32_t position = 0;
    for (const Node& node : graph) {
      size_t at = slot_of(&node);
      while (table_[at].node) at = (at + 1) & (slots - 1);
      table_[at] = {&node, position++};
    }
  }

  // kNone for a node that is not in the graph.
  uint32_t of(const Node& node) const {
    for (size_t at = slot_of(&node);; at = (at + 1) & (table_.size() - 1)) {
      if (table_[at].node == &node) return table_[at].position;
      if (!table_[at].node) return kNone;
    }
  }

 private:
  struct Entry {
    const Node* node = nullptr;
    uint32_t position = 0;
  };

  // Neighbours of one block of memory stay neighbours; blocks go anywhere, so that no distance between nodes
  // makes them collide.
  size_t slot_of(const Node* node) const {
    const auto address = reinterpret_cast<uintptr_t>(node);
    const uint64_t block = (address >> 16) * 0x9e3779b97f4a7c15u;
    return ((address / 128) + (block >> 32)) & (table_.size() - 1);
  }

  std::vector<Entry> table_;
};

}  // namespace weft
