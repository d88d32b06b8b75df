#pragma once

#include "base/json.h"
#include "weft/export/exported_program.h"

namespace weft::cli {

// The program for other tools, and for the page: "nodes" in order with name, kind, target, arguments, type,
// users, module path, schema and stack trace; "inputs" and "outputs" with what they are; ranges and guards.
Json graph_json(const ExportedProgram& program);

}  // namespace weft::cli
