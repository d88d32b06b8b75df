#include "export/preserved_composites.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/silent_mutation.h"
#include "weft/base/error.h"
#include "weft/export/exported_program.h"

namespace weft {
namespace {

bool gives_tensors(const Operator& op) {
  return std::ranges::any_of(op.schema().returns,
                             [](const Return& result) { return result.type.has_tensor(); });
}

// Why a functional graph cannot have the operator as a whole; empty if it can.
std::string reason_against(const Operator& op) {
  const Schema& schema = op.schema();
  const std::string name =
      fmt::format("{}.{}.{}", schema.ns, schema.name, schema.overload.empty() ? "default" : schema.overload);
  if (!gives_tensors(op)) return name + " is a metadata query function, and a graph has numbers in its place";
  if (may_mutate_silently(op, {}) || (op.has(Traits::kMayAlias) && !op.info().is_view))
    return fmt::format(
        "We can't detect {} as a functional op statically: whether it writes to its arguments, or returns "
        "one, "
        "depends on the call, so we can't preserve it",
        name);
  if (op.info().is_mutable || op.info().is_view)
    return name +
           " is a mutating/aliasing op, and a functional graph has values only, so we can't preserve it";
  if (!op.is_composite())
    return fmt::format(
        "{} is not CompositeImplicitAutograd op, so we will preserve it as long as the table has no "
        "decomposition "
        "of it; take it out of the table instead",
        name);
  return "";
}

}  // namespace

std::unordered_set<const Operator*> preserved_composites(const std::vector<std::string>& names) {
  std::unordered_set<const Operator*> operators;
  for (const std::string& name : names) {
    const Operator& op = operator_named(name);
    const std::string reason = reason_against(op);
    require(reason.empty(), "run_decompositions: {}", reason);
    operators.insert(&op);
  }
  return operators;
}

std::vector<std::string> preservable_composites() {
  std::vector<std::string> names;
  for (const Operator* op : all_operators())
    if (reason_against(*op).empty()) names.emplace_back(op->name());
  return names;
}

}  // namespace weft
