#pragma once

#include <unordered_map>

#include "weft/aot/partition.h"

namespace weft::aot {

enum class JoinedRole : uint8_t { kInput, kForward, kSaved, kBackward, kRecomputed };

// What the values that a joint graph gives are in the graph that its partition was added to.
struct JoinedParts {
  ValueList forward_outputs, gradients;
  std::unordered_map<const Node*, JoinedRole> roles;
};

// Adds forward and backward of a partition to `graph`, one after the other. `primals` stand for the inputs of
// the forward; `tangent` gives the gradient that the backward begins with, from the forward's outputs, for
// each of its tangents. What the backward computes again is put right before its first use.
JoinedParts add_partition(Graph& graph, const Partition& partition, const std::vector<Node*>& primals,
                          FunctionRef<Node&(const ValueList& forward_outputs)> tangent);

}  // namespace weft::aot
