// A partition as a picture: the text of `report`, seen.
#include <fmt/format.h>

#include "aot/join_partition.h"
#include "aot/node_costs.h"
#include "weft/graph/picture.h"

namespace weft::aot {
namespace {

struct Picture {
  Graph graph;
  JoinedParts parts;
};

Picture joined(const Partition& partition) {
  Picture picture;
  auto input = [&](const Node& like) -> Node& {
    Node& node = picture.graph.placeholder(like.name());
    if (const NodeMeta* meta = like.meta_or_null()) node.meta().value = meta->value;
    return node;
  };
  std::vector<Node*> primals, tangents;
  for (Node* node : partition.forward.graph().placeholders()) primals.push_back(&input(*node));
  for (Node* node : partition.backward.graph().placeholders())
    if (is_tangent(*node)) tangents.push_back(&input(*node));
  size_t next = 0;
  picture.parts = add_partition(picture.graph, partition, primals,
                                [&](const ValueList&) -> Node& { return *tangents[next++]; });
  ValueList results = picture.parts.forward_outputs;
  results.insert(results.end(), picture.parts.gradients.begin(), picture.parts.gradients.end());
  picture.graph.output(Value::list(std::move(results)));
  return picture;
}

PictureOptions options_of(const Picture& picture) {
  // In the order of JoinedRole; the output is a group of its own.
  constexpr size_t kOutput = 5;
  PictureOptions options;
  options.groups = {{"input", "#eceef1", "#7f8792"},      {"forward", "#dde9f8", "#3d6fa8"},
                    {"saved", "#ffd98a", "#b07a10"},      {"backward", "#dcf1e1", "#3f8f5b"},
                    {"recomputed", "#e8d6f5", "#7b3fa8"}, {"output", "#f7dcdc", "#a84a4a"}};
  auto role = [&picture](const Node& node) {
    const auto found = picture.parts.roles.find(&node);
    return found == picture.parts.roles.end() ? JoinedRole::kInput : found->second;
  };
  options.group_of = [role](const Node& node) {
    return node.kind() == NodeKind::kOutput ? kOutput : static_cast<size_t>(role(node));
  };
  options.note_of = [role](const Node& node) -> std::string {
    if (role(node) != JoinedRole::kSaved) return "";
    return is_symbolic_number_node(node) ? "saved" : fmt::format("saved: {} bytes", size_of(node));
  };
  return options;
}

}  // namespace

std::string dot(const Partition& partition) {
  const Picture picture = joined(partition);
  return weft::dot(picture.graph, options_of(picture));
}

std::string svg(const Partition& partition) {
  const Picture picture = joined(partition);
  return weft::svg(picture.graph, options_of(picture));
}

}  // namespace weft::aot
