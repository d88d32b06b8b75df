#include <fmt/format.h>

#include <unordered_set>

#include "aot/node_costs.h"
#include "weft/aot/partition.h"

namespace weft::aot {

SavedReport report(const Partition& partition) {
  SavedReport report;
  std::unordered_set<std::string_view> in_forward;
  for (Node& node : partition.forward.graph()) in_forward.insert(node.name());
  for (Node& node : partition.backward.graph()) {
    if (node.kind() == NodeKind::kPlaceholder && !is_tangent(node)) {
      report.saved.push_back({node.name(), is_symbolic_number_node(node) ? 0 : size_of(node)});
      report.total_bytes += report.saved.back().bytes;
    } else if (node.kind() == NodeKind::kCallFunction && in_forward.contains(node.name())) {
      report.recomputed.push_back(node.name());
    }
  }
  return report;
}

SavedReport SavedReport::without(FunctionRef<bool(const std::string& name)> is_left_out) const {
  SavedReport rest;
  rest.recomputed = recomputed;
  for (const Entry& entry : saved) {
    if (is_left_out(entry.name)) continue;
    rest.saved.push_back(entry);
    rest.total_bytes += entry.bytes;
  }
  return rest;
}

std::string SavedReport::to_string() const {
  std::string text;
  for (const Entry& entry : saved) text += fmt::format("saved {}: {} bytes\n", entry.name, entry.bytes);
  for (const std::string& name : recomputed) text += fmt::format("recomputed {}\n", name);
  return text + fmt::format("{} bytes saved in all\n", total_bytes);
}

}  // namespace weft::aot
