#pragma once

#include <span>
#include <vector>

#include "ops/scalar/scalar_expr.h"

namespace weft::cpu {

// What the leaves of a formula are: an array of n elements for each input, one number for each parameter, all
// in the type of their leaves. Parts of complex leaves come from arrays of complex numbers.
struct Leaves {
  std::span<const char* const> inputs, params;
};

// Formulas interpreted: the values of `roots` for n elements, each an array of the root's type. Every node
// runs the kernel of its own operation, on the active instruction set, so that a formula gives the very bits
// that the kernel of its functor gives. A lane that a division refuses is 0.
std::vector<std::vector<char>> evaluate(std::span<const scalar::ScalarExpr> roots, int64_t n,
                                        const Leaves& leaves);

}  // namespace weft::cpu
