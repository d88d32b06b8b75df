#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/export/exported_program.h"

namespace weft {

struct Pt2Options {
  // Which program of an archive that holds several; empty: the only one.
  std::string model = {};
};

// Reads what torch.export.save of PyTorch 2.13 wrote (schema version 8), or its bytes, called `source` in
// messages. Weights are pages of the file. Nothing in it is executed. A FormatError names the entry that is
// not what it must be, an UnsupportedError what weft does not have: custom objects, element types, layouts.
// Operators that weft lacks are kept by name; running the program lists them
// (weft/graph/missing_operators.h).
//
//   ExportedProgram program = load_pt2("model.pt2");
//   Tensor y = program.module()(x);
ExportedProgram load_pt2(const std::string& path, const Pt2Options& options = {});
ExportedProgram parse_pt2(std::string_view bytes, std::string_view source = "pt2",
                          const Pt2Options& options = {});
// The names of the programs in an archive.
std::vector<std::string> pt2_models(const std::string& path);

// Writes a program so that torch.export.load reads it. The same program gives the same bytes. An error that
// names the node for what the format has no form for.
void save_pt2(const ExportedProgram& program, const std::string& path);
std::string pt2_bytes(const ExportedProgram& program);

}  // namespace weft
