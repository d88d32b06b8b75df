#pragma once

#include <string_view>

#include "weft/graph/graph.h"

namespace weft {

class GraphModule;
class TreeSpec;

struct ParseOptions {
  // Whether an operator that the table does not have is kept by name (`missing_operators` lists those of a
  // graph); otherwise it is an error that suggests near names.
  bool missing_operators = false;
};

// The graph whose Graph::code() this is: names, targets, arguments, order and `meta().type` come back as they
// were. Each line makes one node, by these rules:
//   * `self.a.b` reads an attribute and `self.a.b(x)` calls a module; `x.f(y)` is a method of a value x;
//   * `torch.ops.NAMESPACE.NAME.OVERLOAD(x)` and `operator.NAME(x)` call functions, and so do signs: `x + y`,
//     `-x`, `x[0]`, one a line; `-3` by itself is the negative of 3;
//   * `y = x` right after the `def` gives the parameter x the name y;
//   * what stands after `;` only says which values end there, and is not kept;
//   * of a function over trees, `a_1, a_2, = fx_pytree.tree_flatten_spec([a], self._in_spec)` names the
//     placeholders, and `return pytree.tree_unflatten([b], self._out_spec)` gives the output.
// Code has no place for the name of the output, which becomes "output", nor for a placeholder that comes
// after another node, or has no default after one that has.
// A text that is not such code is a FormatError that names line, column and what was expected there.
Graph parse_code(std::string_view text);
Graph parse_code(std::string_view text, const ParseOptions& options);
// The same for the code of a graph module with a CallSpec. The text says which arguments there are, but not
// what trees they are: those are given, a tuple for the arguments.
GraphModule parse_module(std::string_view text, TreeSpec arguments, TreeSpec result,
                         const ParseOptions& options = {});

// The graph whose quoted_text() this is, with `meta().type`. The parts `: TYPE [num_users=N]` and
// `, kwargs = {}` may be left out in texts written by hand, but what they say must be so. Errors are those of
// parse_code.
Graph parse_graph(std::string_view text);
Graph parse_graph(std::string_view text, const ParseOptions& options);

}  // namespace weft
