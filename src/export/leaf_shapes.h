#pragma once

#include <string>
#include <vector>

#include "weft/export/dynamic_shapes.h"

namespace weft {

// What is declared for one leaf of the arguments: for each dimension of a tensor; for an integer one, or
// none.
struct LeafShape {
  std::vector<DimSpec> dims;
};

// One for each leaf of the arguments. An error for declarations that do not fit them, which says where.
std::vector<LeafShape> leaf_shapes(const DynamicShapes& shapes, const std::vector<std::string>& names,
                                   const ValueList& arguments);

}  // namespace weft
