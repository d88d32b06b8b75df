#pragma once

#include "tensor_files.h"
#include "weft/export/exported_program.h"

namespace weft::cli {

// The arguments of a call of a program.
struct ProgramInputs {
  ValueList leaves;                // of (positional, by name), as the program's call takes them
  std::vector<std::string> keys;   // for each leaf: "0", "1", ... for tensors, else empty
  std::vector<std::string> names;  // for each leaf: of its placeholder
};

// Those of a file, whose keys are numbers of tensor leaves or names of inputs; numbers, strings and None are
// those that the program was exported with. Without a file (an empty path), the archive's own example.
ProgramInputs inputs_of(const ExportedProgram& program, const std::string& path);
ProgramInputs inputs_of(const ExportedProgram& program, const NamedTensors& given, const std::string& source);

// For a call that may write to its arguments; gradients go through to the originals.
ValueList copies_of(const ValueList& leaves);

// Calls it.
Value call_with(const GraphModule& module, const ExportedProgram& program, const ValueList& leaves);

// Tensor leaves of a result, by number.
NamedTensors numbered_leaves(const Value& result);

}  // namespace weft::cli
