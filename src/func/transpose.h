#pragma once

#include "weft/base/function_ref.h"
#include "weft/func/func.h"

namespace weft {

// Forward mode from reverse mode. A pullback is linear in the gradient u: u -> sum_i J_i^T u. Its transpose,
// applied to the tangents, is the jvp: so `pull` is run on gradients that are themselves being
// differentiated, and the tangents are pulled back through it.
//
// `pull` takes a gradient for each result, undefined for those that do not carry one, and gives one for each
// input, as a tape would get it: of broadcast sizes, undefined for zero. An undefined tangent is zero. One
// tangent for each result.
func::Tensors transpose_pullback(FunctionRef<func::Tensors(const func::Tensors&)> pull,
                                 const func::Tensors& results, const std::vector<bool>& carries,
                                 const func::Tensors& tangents);

}  // namespace weft
