#pragma once

#include <iosfwd>
#include <string>

#include "weft/nn/module.h"

namespace weft::nn {

// A module with its children, a line each: "Net(\n  (fc): Linear()\n)".
std::string module_text(const Module& module);

// Writes that.
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace weft::nn
