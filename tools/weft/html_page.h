#pragma once

#include <string>

#include "weft/export/exported_program.h"

namespace weft::cli {

// One page that needs nothing else: the nodes by the modules that called them, which fold; a search; and for
// a node that is clicked its schema, type, arguments, users and stack trace.
std::string html_page(const ExportedProgram& program, const std::string& title);

}  // namespace weft::cli
