#pragma once

#include <string>
#include <string_view>

#include "weft/graph/graph.h"

namespace weft {

// The "graph():" text of Graph::to_string in a form that means one graph only, and that parse_graph reads
// back: strings are quoted, numbers exact, devices spelled out. An error that names the node where an
// argument has no text: a tensor, a generator, a symbolic number, an object.
//
//   graph():
//       %x : [num_users=1] = placeholder[target=x]
//       %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, 1), kwargs = {})
//       return %add
std::string quoted_text(const Graph& graph);

}  // namespace weft
