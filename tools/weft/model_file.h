#pragma once

#include "commands.h"
#include "weft/export/exported_program.h"

namespace weft::cli {

// The model of a command, with the weights that it asks for, after its plug-ins were loaded.
ExportedProgram load_model(const Common& command);
ExportedProgram load_model(const std::string& path, const Common& command);

}  // namespace weft::cli
