#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft {

// Where two graphs first differ and how, or nothing if they are the same: the same list of nodes by kind,
// name, target, arguments. Numbers are the same when their bits are, and all nans are; tensors when they are
// one tensor. What is known of nodes beyond that (`meta()`) does not count.
//
//   node 2 'add': args[1]: 1 against 2
std::string difference(const Graph& a, const Graph& b);
bool same_graph(const Graph& a, const Graph& b);

}  // namespace weft
