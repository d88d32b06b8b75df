#pragma once

#include "export/declared_sizes.h"

namespace weft {

// A ConstraintViolationError where the guards of a capture leave less than what was declared: each condition
// with the line that asked for it, and declarations that would do, in Python's and in C++'s words.
void check_declared_sizes(ShapeEnv& env, const DeclaredSizes& sizes);

}  // namespace weft
