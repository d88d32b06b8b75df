#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

class GraphModule;

// Where a pattern was found in a graph. It keeps the nodes alive, also those that were replaced since.
struct Match {
  // What stands for each node of the pattern but its output. For a placeholder that is any value; for all
  // others a node.
  std::unordered_map<const Node*, Value> values;
  // The values for the pattern's placeholders, in their order.
  ValueList inputs;
  // The nodes that the pattern's output returns, in the order they appear there.
  std::vector<Ref<Node>> outputs;

  // The node that stands for a node of the pattern; an error for a placeholder that stands for a constant.
  Node& node(const Node& of_pattern) const;
};

struct MatchOptions {
  // Constants in the pattern stand for any constants: `add(x, 1)` is found where 2 is added.
  bool ignore_literals = false;
  // Matches that it refuses do not count, and do not stand in the way of others.
  std::function<bool(const Match&)> accept;
  // Whether an attribute is what the pattern's attribute stands for; by default if their paths are the same.
  std::function<bool(const Node& of_pattern, const Node& node)> same_attribute;
};

// The subgraphs of `graph` that match `pattern`. A pattern is a graph: its placeholders stand for any values,
// different ones for different nodes; its output lists the results. A match
//   * has the pattern's nodes with the same kinds, targets and arguments, where a list counts like a tuple,
//     and arguments of operators may be given by position, by name or by default;
//   * is not used from outside but for its results, and can be computed in one go;
//   * does not overlap the matches before it. They come in the order of the pattern's first result.
// A pattern is an error if it has no output, returns no node, returns a placeholder, or has a node that its
// output does not need. The time it takes is about linear in the graph, unless results of the pattern share
// no value: for each match of one part, all of the graph is searched for the others.
std::vector<Match> find_matches(Graph& graph, const Graph& pattern, const MatchOptions& options = {});

struct Replacement {
  // Its inputs are those of the new nodes: results of earlier replacements where they fed this match.
  Match match;
  // In the order of the list.
  std::vector<Ref<Node>> added;
};

// Replaces each match of `pattern` by a copy of `replacement`, whose placeholders and results its
// own correspond to by their order, and erases the nodes that it replaces. A result may be one of the
// replacement's placeholders, or a constant.
//
//   Graph pattern = parse_code("def twice(self, x):\n    a = -x\n    b = -a\n    return b");
//   Graph nothing = parse_code("def nothing(self, x):\n    return x");
//   replace_pattern(graph, pattern, nothing);
std::vector<Replacement> replace_pattern(Graph& graph, const Graph& pattern, const Graph& replacement,
                                         const MatchOptions& options = {});
// The same with a replacement made for each match.
std::vector<Replacement> replace_pattern(Graph& graph, const Graph& pattern,
                                         const std::function<Graph(const Match&)>& make_replacement,
                                         const MatchOptions& options = {});
// The same in a graph module, with what the replacement names: attributes and modules that `module` does not
// have are copied from the replacement, under their paths; of a path that both have, the one in `module`
// counts. What the graph does not name afterwards is dropped, unless it belongs to another module
// (GraphModule::over). Nothing changes if the replacement names what neither has: that is an error.
std::vector<Replacement> replace_pattern(const GraphModule& module, const Graph& pattern,
                                         const GraphModule& replacement, const MatchOptions& options = {});

}  // namespace weft
