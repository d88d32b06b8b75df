#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::detail {

// A location as debug information has it; what is not known is empty.
struct CodeLocation {
  std::string symbol;  // the mangled name where there is one, else the name as written
  std::string file;
  std::string folder;  // where the compiler ran that was given a relative file
  uint32_t line = 0;
};

struct Code {
  std::string module;                   // the path of the loaded file; empty when the address is in none
  std::vector<CodeLocation> locations;  // inlined calls first, innermost first, then the function itself
};

// What the debug information and the symbols of this process say about an address of its code. Used by one
// thread at a time. Reads the files through libdw, which is loaded at the first call; where it is not
// installed, this is find_exported_code.
Code find_code(const void* address);

// What the run-time linker knows: the names of exported functions.
Code find_exported_code(const void* address);

}  // namespace weft::detail
