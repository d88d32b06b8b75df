#include <fmt/format.h>

#include "base/json.h"
#include "commands.h"
#include "io/zip.h"
#include "model_file.h"
#include "weft/graph/missing_operators.h"

namespace weft::cli {
namespace {

// Nodes of the graphs inside it, too.
size_t count_calls(const GraphModule& module) {
  size_t count = 0;
  for (const Node& node : module.graph()) {
    count += node.kind() == NodeKind::kCallFunction;
    if (node.kind() != NodeKind::kGetAttr) continue;
    if (const std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string())))
      count += count_calls(*inner);
  }
  return count;
}

// What reads weights reads no checksums: this does.
void check_contents(const std::string& path) {
  const zip::Archive archive = zip::Archive::open(path);
  for (const zip::Entry& entry : archive.entries()) archive.check(entry);
}

}  // namespace

int check(const CheckCommand& command) {
  const ExportedProgram program = load_model(command);
  if (command.deep) check_contents(command.model);
  const std::vector<MissingOperator> missing = missing_operators(program.graph_module());
  const size_t calls = count_calls(program.graph_module());
  if (command.json) {
    Json::Array operators;
    for (const MissingOperator& one : missing) {
      Json::Array nodes;
      for (const Ref<Node>& node : one.nodes)
        nodes.emplace_back(Json::Object{{"name", node->name()}, {"source", node->stack_trace()}});
      operators.emplace_back(Json::Object{{"name", one.name}, {"nodes", std::move(nodes)}});
    }
    fmt::print("{}\n", Json(Json::Object{{"calls", static_cast<int64_t>(calls)},
                                         {"supported", missing.empty()},
                                         {"missing_operators", std::move(operators)}})
                           .to_text());
    return missing.empty() ? kFine : kUnsupported;
  }
  if (missing.empty()) {
    fmt::print("{}: {} calls of operators, all supported{}\n", command.model, calls,
               command.deep ? "; every checksum is right" : "");
    return kFine;
  }
  for (const MissingOperator& one : missing) {
    fmt::print("weft has no {}, which is called by\n", one.name);
    for (const Ref<Node>& node : one.nodes) {
      fmt::print("  {}\n", node->name());
      if (const std::string source = node->stack_trace(); !source.empty()) fmt::print("{}\n", source);
    }
  }
  fmt::print(
      "{} of the operators of {} are not there. An operator of your own can be defined in C++ "
      "(weft/ops/define.h), and given by --plugin\n",
      missing.size(), command.model);
  return kUnsupported;
}

}  // namespace weft::cli
