#pragma once

#include "weft/core/tensor_impl.h"

namespace weft::detail {

// Set where watched tensors may stand for values of which not even the number of dims is known, and tells
// whether one is of these: brackets then go by the dims that they name. Null: all are known.
using RankQuestion = bool (*)(const TensorImpl& tensor);
extern constinit thread_local RankQuestion has_unknown_rank;

}  // namespace weft::detail
