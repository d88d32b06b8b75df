#pragma once

#include "weft/export/exported_program.h"

namespace weft {

// The same program; its parameters, buffers and constants are called "layer1_conv_weight" instead of
// "layer1.conv.weight". Of two that would be called the same, the second gets a number.
ExportedProgram with_flat_names(const ExportedProgram& program);

}  // namespace weft
