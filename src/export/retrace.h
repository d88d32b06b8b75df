#pragma once

#include "weft/capture/make_graph.h"
#include "weft/export/exported_program.h"

namespace weft {

struct RetraceOptions {
  Decompositions decompositions = {};
  // Keeps composites that neither write nor alias, and switches of the grad mode.
  bool pre_dispatch = false;
  // Composites that stay whole without pre_dispatch, by name.
  std::vector<std::string> preserved = {};
  // Puts assertions of what only a run can tell into the graph.
  bool emit_runtime_asserts = true;
};

// The program as a functional one: what its graph writes are outputs. Its operators are run again on tensors
// without data; names, notes and the signature stay.
ExportedProgram retraced(const ExportedProgram& program, const RetraceOptions& options);

}  // namespace weft
