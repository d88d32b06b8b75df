#pragma once

#include <string>
#include <string_view>

#include "weft/graph/graph.h"

namespace weft {

class GraphModule;

// The "graph():" text of Graph::to_string in a form that means one graph only, and that parse_graph reads
// back: strings are quoted, numbers exact, devices spelled out. An error that names the node where an
// argument has no text: a tensor, a generator, a symbolic number, an object.
//
//   graph():
//       %x : [num_users=1] = placeholder[target=x]
//       %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {})
//       return %add
std::string quoted_text(const Graph& graph);
// Whether all its arguments have text.
bool has_quoted_text(const Graph& graph);

struct ReadableOptions {
  bool strides = false;        // "f32[2, 3][3, 1]" instead of "f32[2, 3]"
  bool devices = false;        // "f32[2, 3]cpu"
  bool requires_grad = false;  // "f32[2, 3] requires_grad" where the noted tensor does
};
// What PyTorch's print_readable gives: a class with the graph's code, the type and sizes of each value from
// `meta().value`, and comments that say where calls were made, from `meta().source`, which is one line, like
// "net.cc:12 in forward", or a Python stack trace.
std::string readable(const Graph& graph, std::string_view class_name = "GraphModule",
                     const ReadableOptions& options = {});
// The same of a graph module: its class, with the classes of the graph modules among its children in it (the
// branches of a `cond`, the body of a `map`), which have the children's names.
std::string readable(const GraphModule& module, const ReadableOptions& options = {});

}  // namespace weft
