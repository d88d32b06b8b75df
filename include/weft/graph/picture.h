#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// Nodes that a picture shows in one colour, under one name in its legend.
struct PictureGroup {
  std::string name;          // a word
  std::string fill, border;  // "#dcf1e1"
};
struct PictureOptions {
  // None: the kinds of nodes.
  std::vector<PictureGroup> groups = {};
  // Which of the groups a node is in.
  std::function<size_t(const Node&)> group_of = nullptr;
  // A further line of a node's box; none where it is empty.
  std::function<std::string(const Node&)> note_of = nullptr;
};

// The graph in the language of Graphviz: a box a node, coloured by its kind or group, with its name, what it
// calls and the type of its value; its whole line is the tooltip.
std::string dot(const Graph& graph, const PictureOptions& options = {});

// The same as an SVG image, laid out in layers from top to bottom: inputs stand above what uses them. The
// time it takes is about linear in the nodes and edges; beyond some thousand nodes the image is for searching
// rather than looking.
std::string svg(const Graph& graph, const PictureOptions& options = {});

}  // namespace weft
