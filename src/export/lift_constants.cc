#include "export/lift_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace weft {

ConstantLifter::ConstantLifter(const ExportedProgram::NamedTensors& named,
                               const ExportedProgram::NamedTensors& taken) {
  for (const auto& [name, tensor] : named)
    if (names_.emplace(tensor.impl()->serial(), name).second)
      order_.emplace(tensor.impl()->serial(), order_.size());
  for (const auto& [name, tensor] : taken) taken_.push_back(name);
}

std::string ConstantLifter::unused_name() {
  for (;;) {
    std::string name = fmt::format("lifted_tensor_{}", next_++);
    if (std::ranges::find(taken_, name) == taken_.end()) return name;
  }
}

std::vector<InputSpec> ConstantLifter::lift(GraphModule& module, size_t position) {
  Graph& graph = module.graph();
  std::vector<Node*> reads;
  for (Node& node : graph)
    if (node.kind() == NodeKind::kGetAttr && module.find(node.target().to_string()).is_tensor())
      reads.push_back(&node);
  if (reads.empty()) return {};
  std::ranges::stable_sort(reads, {}, [&](const Node* read) {
    auto found = order_.find(module.find(read->target().to_string()).to_tensor().impl()->serial());
    return found == order_.end() ? order_.size() : found->second;
  });
  const std::vector<Node*> placeholders = graph.placeholders();
  Node* const before = position < placeholders.size() ? placeholders[position]
                       : placeholders.empty()         ? graph.front()
                                                      : placeholders.back()->next();
  const auto scope = graph.inserting_before(*before);
  std::vector<InputSpec> specs;
  std::unordered_map<uint64_t, Node*> lifted;
  for (Node* read : reads) {
    const Tensor tensor = module.find(read->target().to_string()).to_tensor();
    const uint64_t serial = tensor.impl()->serial();
    Node*& constant = lifted[serial];
    if (!constant) {
      auto found = names_.find(serial);
      if (found == names_.end()) {
        literals_.emplace_back(unused_name(), tensor);
        found = names_.emplace(serial, literals_.back().first).first;
      }
      std::string name = "c_" + found->second;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      constant = &graph.placeholder(name);
      if (const NodeMeta* noted = read->meta_or_null()) constant->meta().value = noted->value;
      specs.push_back({.kind = InputSpec::Kind::kTensorConstant, .target = found->second});
    }
    const bool is_before = read == before;
    read->replace_all_uses_with(*constant);
    if (!is_before) graph.erase(*read);
  }
  // The place that they were put before may be one of the reads.
  if (before->kind() == NodeKind::kGetAttr && before->users().empty()) graph.erase(*before);
  module.delete_unused_attributes();
  return specs;
}

}  // namespace weft
