#pragma once

#include "weft/base/error.h"

namespace weft {

// What a program needs of its sizes contradicts what is declared of them. The message names each condition,
// the line that asked for it, and declarations that would do.
struct ConstraintViolationError : UserError {
  using UserError::UserError;
};

}  // namespace weft
