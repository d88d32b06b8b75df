#pragma once

#include "weft/autograd/function.h"

namespace weft {

// A custom function whose forward and backward make no in-place calls on what they make.
Ref<autograd::CustomFunction> functionalized(Ref<autograd::CustomFunction> function);

}  // namespace weft
