#pragma once

#include <fstream>
#include <string>

namespace weft::detail {

// Opens a source file that a compiler was given by this name while it ran in this folder; a closed stream where it is
// not there. A relative name is looked for below each folder that the program lies in, before the compiler's own folder:
// what a compiler cache hands out names the folder of whoever compiled it first.
std::ifstream open_source(const std::string& file, const std::string& folder);

}  // namespace weft::detail
