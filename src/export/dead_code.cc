#include "export/dead_code.h"

#include <unordered_set>

#include "export/noted_numbers.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace {

// The first node of each value that an assertion is about.
ValueList tellers(const Graph& graph, const ShapeEnv& env) {
  std::unordered_set<const sym::Expr*> wanted;
  for (const sym::Guard& guard : env.runtime_asserts())
    for (const sym::Symbol* symbol : env.free_symbols(guard.condition))
      if (symbol->backing == sym::Backing::kUnbacked) wanted.insert(symbol->expr);
  ValueList found;
  if (wanted.empty()) return found;
  for (Node& node : graph) {
    const NodeMeta* noted = node.meta_or_null();
    if (!noted || node.kind() == NodeKind::kOutput) continue;
    bool tells = false;
    for_each_number(noted->value, [&](const sym::Expr* number) {
      for (const sym::Symbol* symbol : env.free_symbols(number)) tells |= wanted.erase(symbol->expr) > 0;
    });
    if (tells) found.push_back(value_of(node));
  }
  return found;
}

}  // namespace

void remove_dead_code(GraphModule& module, const ShapeEnv& env) {
  Graph& graph = module.graph();
  // For as long as they are results they are needed.
  Node& output = *graph.output_node();
  const ValueList results(output.args());
  ValueList kept = tellers(graph, env);
  kept.push_back(output.returned());
  output.set_args({Value::tuple(std::move(kept))});
  graph.eliminate_dead_code();
  output.set_args(results);
  module.delete_unused_attributes();
}

}  // namespace weft
