#pragma once

// What a file of operator definitions needs.
#include "ops/structured.h"
#include "ops/support/batching.h"
#include "ops/support/derivatives.h"
#include "ops/support/pointwise.h"
#include "ops/support/samples.h"
#include "weft/base/error.h"
#include "weft/dispatch/operator.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
using namespace samples;
}
