#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "weft/dispatch/operator.h"

namespace weft {

// The composites of these names. An error for an operator that a functional graph cannot have, or that is no
// composite.
std::unordered_set<const Operator*> preserved_composites(const std::vector<std::string>& names);

}  // namespace weft
