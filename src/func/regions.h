#pragma once

#include "weft/dispatch/op_def.h"

namespace weft {

// A function that runs with the recording of gradients switched, or under autocast.
const OpDef& grad_mode_region_definition();
const OpDef& autocast_region_definition();
const OpDef& associative_scan_definition();

}  // namespace weft
