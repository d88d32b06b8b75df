#include "weft/aot/aot_function.h"
#include "weft/dispatch/operator.h"

namespace weft::aot {

Decompositions get_decompositions(const std::vector<std::string>& operators) {
  Decompositions chosen;
  for (const std::string& name : operators)
    if (const Operator* op = find_operator(name))
      if (auto found = standard_decompositions().find(op); found != standard_decompositions().end())
        chosen.insert(*found);
  return chosen;
}

const Decompositions& default_decompositions() {
  static const Decompositions* pointwise = [] {
    auto* chosen = new Decompositions;
    for (const auto& [op, decomposition] : standard_decompositions())
      if (op->has(Traits::kPointwise)) chosen->emplace(op, decomposition);
    return chosen;
  }();
  return *pointwise;
}

}  // namespace weft::aot
