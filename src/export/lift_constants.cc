#include "export/lift_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "weft/export/lift_constants.h"

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

std::vector<InputSpec> ConstantLifter::lift_objects(GraphModule& module, size_t position) {
  Graph& graph = module.graph();
  std::vector<InputSpec> specs;
  std::unordered_map<std::string, Node*> lifted;
  const std::vector<Node*> placeholders = graph.placeholders();
  for (Node* read = graph.front(); read;) {
    Node* const next = read->next();
    const std::string path = read->target().to_string();
    const Value value = read->kind() == NodeKind::kGetAttr ? module.find(path) : Value();
    if (value.is_object() && !value.object_of(ValueObject::Role::kCallable)) {
      Node*& constant = lifted[path];
      if (!constant) {
        Node* const before = position < placeholders.size() ? placeholders[position]
                             : placeholders.empty()         ? graph.front()
                                                            : placeholders.back()->next();
        const auto scope = graph.inserting_before(*before);
        std::string name = "obj_" + path;
        for (char& c : name)
          if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
        constant = &graph.placeholder(name);
        constant->meta().extra.set("pt2.class", value.to_object()->type_name());
        objects_.emplace_back(path, value);
        specs.push_back({.kind = InputSpec::Kind::kCustomObject, .target = path});
      }
      read->replace_all_uses_with(*constant);
      graph.erase(*read);
    }
    read = next;
  }
  module.delete_unused_attributes();
  return specs;
}

ExportedProgram lift_constants(const ExportedProgram& program) {
  ExportedProgram::Parts parts = program.parts();
  const auto is_users = [](const InputSpec& spec) {
    return spec.kind == InputSpec::Kind::kUserInput || spec.kind == InputSpec::Kind::kConstantInput;
  };
  size_t position = static_cast<size_t>(std::ranges::find_if(parts.inputs, is_users) - parts.inputs.begin());
  ConstantLifter lifter({}, parts.constants);
  auto insert = [&](const std::vector<InputSpec>& specs) {
    parts.inputs.insert(parts.inputs.begin() + static_cast<ptrdiff_t>(position), specs.begin(), specs.end());
    position += specs.size();
  };
  insert(lifter.lift(parts.graph_module, position));
  insert(lifter.lift_objects(parts.graph_module, position));
  parts.constants.insert(parts.constants.end(), lifter.literals().begin(), lifter.literals().end());
  parts.objects.insert(parts.objects.end(), lifter.objects().begin(), lifter.objects().end());
  return ExportedProgram::make(std::move(parts));
}

}  // namespace weft
