#pragma once

#include "weft/core/tensor_impl.h"

namespace weft::detail {

// Set where watched tensors may stand for values of unknown rank, and tells whether one is of these: brackets
// then go by the dims that they name. Null: every rank is known.
using RankQuestion = bool (*)(const TensorImpl& tensor);
extern constinit thread_local RankQuestion has_unknown_rank;

}  // namespace weft::detail
