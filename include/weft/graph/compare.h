#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft {

struct CompareOptions {
  // Whether types and noted values count, too: of noted tensors the dtype, sizes, strides, device, and
  // whether they require a gradient.
  bool notes = false;
};

// Where two graphs first differ and how, or nothing if they are the same: the same list of nodes by kind,
// name, target, arguments. Numbers are the same when their bits are, and all nans are; tensors when they are
// one tensor. What is known of nodes beyond that (`meta()`) does not count, unless the options say so.
//
//   node 2 'add': args[1]: 1 against 2
std::string difference(const Graph& a, const Graph& b, const CompareOptions& options = {});
bool same_graph(const Graph& a, const Graph& b, const CompareOptions& options = {});

}  // namespace weft
