#pragma once

#include "weft/export/exported_program.h"

namespace weft {

// What was added to the graph of a program by hand, and reads tensors or objects as attributes, becomes part
// of the program: placeholders behind those of the state, with entries in the signature, constants and
// objects. Files take a program only like that.
//
//   program.graph_module().set_attribute("table", table);
//   Node& read = program.graph().get_attr("table");   // ... and calls that take it
//   program = lift_constants(program);
ExportedProgram lift_constants(const ExportedProgram& program);

}  // namespace weft
