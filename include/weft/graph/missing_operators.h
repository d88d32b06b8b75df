#pragma once

#include <string>
#include <vector>

#include "weft/graph/graph_module.h"

namespace weft {

// An operator that a graph calls, or hands to a call, and that the table does not have.
struct MissingOperator {
  std::string name;                // "mine::scale"
  std::vector<Ref<Node>> nodes{};  // which name it, in the order of the graph
};

// Each missing operator once, in the order in which the graph names them first; those of the graphs that it
// names (branches of control flow, called graph modules) included. A graph that belongs to no module is
// looked at by itself.
std::vector<MissingOperator> missing_operators(const Graph& graph);
std::vector<MissingOperator> missing_operators(const GraphModule& module);

// An UnsupportedError that lists them all and says what to do, unless there are none: what running such a
// graph is. A graph can be run as soon as each of them was defined (weft/ops/define.h).
void require_operators(const Graph& graph, const nn::Module& owner);

}  // namespace weft
