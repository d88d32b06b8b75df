#include "program_inputs.h"

#include <algorithm>
#include <set>

#include "commands.h"
#include "weft/core/pytree.h"

namespace weft::cli {
namespace {

// The user's inputs among those of a program, with the nodes that stand for them.
struct UserInput {
  const InputSpec* spec;
  const Node* node;

  bool is_constant() const { return spec->kind == InputSpec::Kind::kConstantInput; }
  bool is_tensor() const {
    const NodeMeta* meta = node->meta_or_null();
    return !is_constant() && (!meta || meta->value.is_tensor() || meta->value.is_none());
  }
};

std::vector<UserInput> user_inputs(const ExportedProgram& program) {
  std::vector<UserInput> inputs;
  const std::vector<Node*> placeholders = program.graph().placeholders();
  for (size_t i = 0; i < program.inputs().size(); ++i) {
    const InputSpec& spec = program.inputs()[i];
    if (spec.kind == InputSpec::Kind::kUserInput || spec.kind == InputSpec::Kind::kConstantInput)
      inputs.push_back({&spec, placeholders[i]});
  }
  return inputs;
}

ValueList example_leaves(const ExportedProgram& program) {
  if (!program.example_inputs()) return {};
  return tree_leaves(*program.example_inputs());
}

std::string known_keys(const std::vector<UserInput>& inputs) {
  std::string text;
  size_t next = 0;
  for (const UserInput& input : inputs) {
    if (input.is_constant()) continue;
    text += text.empty() ? "" : ", ";
    text += input.is_tensor() ? fmt::format("\"{}\" or \"{}\"", next++, input.node->name())
                              : fmt::format("\"{}\"", input.node->name());
  }
  return text;
}

}  // namespace

ProgramInputs inputs_of(const ExportedProgram& program, const NamedTensors& given,
                        const std::string& source) {
  const std::vector<UserInput> inputs = user_inputs(program);
  const ValueList examples = example_leaves(program);
  ProgramInputs all;
  std::set<std::string> used;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name(inputs[i].node->name());
    all.names.push_back(name);
    all.keys.push_back(inputs[i].is_tensor() ? std::to_string(next++) : std::string());
    if (inputs[i].is_constant()) {
      all.leaves.push_back(inputs[i].spec->constant);
      continue;
    }
    const Tensor* found = all.keys.back().empty() ? nullptr : find(given, all.keys.back());
    if (found) used.insert(all.keys.back());
    if (!found) {
      found = find(given, name);
      if (found) used.insert(name);
    }
    if (found && inputs[i].is_tensor()) {
      all.leaves.emplace_back(*found);
    } else if (found) {
      if (found->dim() != 0)
        throw FormatError(
            fmt::format("{}: '{}' is a number of the program, so that it must be a 0-d tensor, but it is {}",
                        source, name, describe(*found).str()));
      const Value number = found->item();
      all.leaves.push_back(found->dtype() == kInt64 ? Value(number.to_int()) : number);
    } else if (!inputs[i].is_tensor() && i < examples.size()) {
      all.leaves.push_back(examples[i]);
    } else {
      throw FormatError(fmt::format("{}: there is nothing for input '{}'; the keys are {}", source, name,
                                    known_keys(inputs)));
    }
  }
  for (const auto& [name, tensor] : given)
    if (!used.contains(name))
      throw FormatError(fmt::format("{}: the program has no input '{}'; the keys are {}", source, name,
                                    known_keys(inputs)));
  return all;
}

ProgramInputs inputs_of(const ExportedProgram& program, const std::string& path) {
  if (!path.empty()) return inputs_of(program, read_tensors(path), path);
  const std::vector<UserInput> inputs = user_inputs(program);
  const ValueList examples = example_leaves(program);
  if (examples.size() != inputs.size())
    throw UsageError("the archive has no example inputs; give some with --inputs");
  ProgramInputs all;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    all.names.emplace_back(inputs[i].node->name());
    all.keys.push_back(examples[i].is_tensor() ? std::to_string(next++) : std::string());
  }
  all.leaves = examples;
  return all;
}

ValueList copies_of(const ValueList& leaves) {
  ValueList copies;
  for (const Value& leaf : leaves)
    copies.push_back(leaf.is_tensor() ? Value(leaf.tensor_ref().clone()) : leaf);
  return copies;
}

Value call_with(const GraphModule& module, const ExportedProgram& program, const ValueList& leaves) {
  const Value arguments = tree_unflatten(leaves, program.call().arguments);
  Kwargs by_name;
  for (const auto& [name, value] : arguments.elements()[1].to_dict())
    by_name.emplace_back(name.to_string_view(), value);
  return module.call(arguments.elements()[0].elements(), by_name);
}

NamedTensors numbered_leaves(const Value& result) {
  NamedTensors all;
  for (const Value& leaf : tree_leaves(result))
    if (leaf.is_tensor() && leaf.tensor_ref().defined())
      all.emplace_back(std::to_string(all.size()), leaf.to_tensor());
  return all;
}

}  // namespace weft::cli
