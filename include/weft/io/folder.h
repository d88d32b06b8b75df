#pragma once

#include <string>

#include "weft/graph/graph_module.h"

namespace weft {

// A graph module as a C++ class over weft's public API.
struct CppSource {
  std::string header, source;
};
// `class_name` with a constructor that takes the folder with the weights, and a `forward` of one statement
// for each node. Names that are no C++ identifiers are changed into some; inputs of which nothing is known
// are tensors. An error that names the node for what has no C++ form: a call of a C++ module, an attribute
// that is no tensor, a constant without text.
CppSource cpp_source(const GraphModule& module, const std::string& class_name);

// Writes NAME.h, NAME.cc and NAME.safetensors into the folder, which is made if there is none: the class, and
// the weights by their names in the module, with the graph as a note (what load_graph_module reads). Calls of
// C++ modules become the operators that they run.
//
//   to_folder(symbolic_trace(net), "net", "Net");   // elsewhere: #include "net/Net.h"  Net net("net");
void to_folder(const GraphModule& module, const std::string& folder,
               const std::string& class_name = "FxModule");
// The module back from such a folder, without compiling anything.
GraphModule load_folder(const std::string& folder, const std::string& class_name = "FxModule");

}  // namespace weft
