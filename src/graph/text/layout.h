#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// A drawing of a directed graph in layers, without a picture of it: where boxes and lines go.
struct Layout2d {
  struct Point {
    double x = 0, y = 0;
  };
  // A line between adjacent layers, or across many where `is_far`.
  struct Line {
    Point from, to;
    uint32_t source = 0;    // the box that the edge begins at
    bool has_head = false;  // it ends at a box
    bool is_far = false;
  };

  std::vector<Point> centers;  // of the boxes
  std::vector<Line> lines;
  double width = 0, height = 0;
};

struct BoxSize {
  double width = 0, height = 0;
};

// `inputs[i]` are the boxes that have an edge to box i; those at i and after it are drawn, but do not decide
// the layer. Boxes come in an order in which the rest of the edges point forward.
Layout2d lay_out(std::span<const BoxSize> boxes, std::span<const std::vector<uint32_t>> inputs);

}  // namespace weft
