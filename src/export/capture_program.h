#pragma once

#include "weft/export/export_program.h"

namespace weft {

// Runs a module once on tensors without data and writes what it does into a program of the training dialect:
// operators as they were called, parameters, buffers and constants among the inputs.
ExportedProgram capture_program(const detail::ModuleToExport& module, const ValueList& args,
                                const ExportOptions& options, const ExportConfig& config);

}  // namespace weft
