#pragma once

#include "weft/graph/graph.h"

namespace weft {

// What a graph is called with: the names and defaults of its inputs, in their order. As in Python, an input
// `*args` takes the positions that are left over, as a tuple, and `**kwargs` the names, as a dictionary.
class GraphInputs {
 public:
  explicit GraphInputs(const Graph& graph);
  // Of a program whose arguments are trees: each name is given one value, `*args` too.
  explicit GraphInputs(const std::vector<std::string>& names);

  // Whether an input takes what is left over.
  bool has_rest() const noexcept { return positions_ || names_; }
  // One value for each input. An error for a name that is not known, given twice or missing, and for too many
  // values. Without `*args` a dictionary may be given for `**kwargs` by its position.
  ValueList bind(Args args, const Kwargs& kwargs) const;

 private:
  struct Input {
    std::string name;
    std::optional<Value> default_value;
  };
  void find_rest(bool takes_positions);

  std::vector<Input> inputs_;
  std::optional<size_t> positions_, names_;  // the inputs with one star and with two
};

}  // namespace weft
