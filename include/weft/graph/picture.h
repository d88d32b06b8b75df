#pragma once

#include <string>

#include "weft/graph/graph.h"

namespace weft {

// The graph in the language of Graphviz: a box a node, coloured by its kind, with its name, what it calls and
// the type of its value; its whole line is the tooltip.
std::string dot(const Graph& graph);

// The same as an SVG image, laid out in layers from top to bottom: inputs stand above what uses them. The
// time it takes is about linear in the nodes and edges; beyond some thousand nodes the image is for searching
// rather than looking.
std::string svg(const Graph& graph);

}  // namespace weft
