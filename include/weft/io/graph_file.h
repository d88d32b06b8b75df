#pragma once

#include <string>
#include <string_view>

#include "weft/graph/graph_module.h"

namespace weft {

// A graph module in one safetensors file: its tensors as entries, and as a note the exact text of its graph,
// how it is called, what it was traced with (types and sizes, no data), and the graphs inside it. What comes
// back computes the same, bit for bit, and is saved as the same bytes again. Calls of C++ modules cannot be
// written down: inline_modules() inlines them.
void save_graph_module(const GraphModule& module, const std::string& path);
std::string graph_module_bytes(const GraphModule& module);

struct LoadOptions {
  // Puts the types and sizes that the module was traced with on the inputs of its graph.
  bool restore_shapes = false;
};
// A FormatError that says where for anything that is not such a file.
GraphModule load_graph_module(const std::string& path, const LoadOptions& options = {});
GraphModule parse_graph_module(std::string_view bytes, std::string_view source = "graph module",
                               const LoadOptions& options = {});

}  // namespace weft
