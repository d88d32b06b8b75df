#pragma once

#include "weft/export/exported_program.h"

namespace weft {

// The program as a tree of modules again: each call of a module that the program's nodes note is a call of a
// graph module, under the path that the module had, with its own parameters, buffers and constants. A module
// whose calls do not run the same graph is there once more for each further graph, as "block@1". Parts can be
// looked at, replaced, and put into other models; the whole checks its arguments, and writes what the program
// writes, as `program.module()` does.
//
//   GraphModule net = unflatten(program);
//   GraphModule head = *graph_module_in(net.find("head"));
GraphModule unflatten(const ExportedProgram& program);

}  // namespace weft
