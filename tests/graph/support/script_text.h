#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/graph/script_view.h"

namespace weft::testing {

// The text with its values renamed in the order in which they appear: %0, %1, ... So a graph can be compared
// with one that PyTorch numbered, which counts values that are gone.
std::string renumbered(std::string_view text);

std::vector<std::string> script_lines(const std::string& text);
std::vector<std::string> script_lines(const GraphModule& module);

// Compares the text of a function with one that PyTorch printed, name by name, and then its code. Both begin
// with a line break, which does not count.
void expect_script(const GraphModule& module, std::string_view text, std::string_view code);
// The same of a module's graph up to the numbers of values.
void expect_like(const ScriptGraph& graph, std::string_view text, std::string_view code);

}  // namespace weft::testing
