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

namespace {

const Decompositions* chosen_of_standard(bool (*is_chosen)(const Operator& op)) {
  auto* chosen = new Decompositions;
  for (const auto& [op, decomposition] : standard_decompositions())
    if (is_chosen(*op)) chosen->emplace(op, decomposition);
  return chosen;
}

}  // namespace

const Decompositions& core_decompositions() {
  static const Decompositions* all =
      chosen_of_standard([](const Operator& op) { return !op.has(Traits::kCore); });
  return *all;
}

const Decompositions& default_decompositions() {
  static const Decompositions* pointwise =
      chosen_of_standard([](const Operator& op) { return op.has(Traits::kPointwise); });
  return *pointwise;
}

}  // namespace weft::aot
