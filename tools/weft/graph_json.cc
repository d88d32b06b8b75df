#include "graph_json.h"

#include "graph/text/code.h"
#include "weft/graph/text.h"

namespace weft::cli {
namespace {

std::string_view kind_of(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kPlaceholder:
      return "placeholder";
    case NodeKind::kGetAttr:
      return "get_attr";
    case NodeKind::kCallFunction:
      return "call_function";
    case NodeKind::kCallMethod:
      return "call_method";
    case NodeKind::kCallModule:
      return "call_module";
    case NodeKind::kOutput:
      return "output";
  }
  return "";
}

Json json_of(const Node& node, const GraphModule& module);

Json::Array nodes_of(const GraphModule& module) {
  Json::Array nodes;
  for (const Node& node : module.graph()) nodes.push_back(json_of(node, module));
  return nodes;
}

Json json_of(const Node& node, const GraphModule& module) {
  Json::Array inputs, users;
  for (Node* input : node.inputs()) inputs.emplace_back(input->name());
  node.users().for_each([&](Node& user) { users.emplace_back(user.name()); });
  Json::Object object{
      {"name", node.name()},      {"kind", kind_of(node)},    {"target", node.target().to_string()},
      {"line", node.line()},      {"type", shown_type(node)}, {"inputs", std::move(inputs)},
      {"users", std::move(users)}};
  if (const Operator* op = node.target().op()) object["schema"] = op->schema().to_string();
  if (const NodeMeta* meta = node.meta_or_null()) {
    Json::Array modules;
    for (const auto& entry : meta->modules) modules.emplace_back(Json::Array{entry.path, entry.class_name});
    if (!modules.empty()) object["modules"] = std::move(modules);
  }
  if (const std::string trace = node.stack_trace(); !trace.empty()) object["stack_trace"] = trace;
  if (node.kind() == NodeKind::kGetAttr)
    if (const std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string())))
      object["graph"] = nodes_of(*inner);
  return object;
}

}  // namespace

Json graph_json(const ExportedProgram& program) {
  Json::Array inputs, outputs, ranges, guards, state;
  for (const InputSpec& spec : program.inputs())
    inputs.emplace_back(Json::Object{{"kind", kind_name(spec.kind)}, {"target", spec.target}});
  for (const OutputSpec& spec : program.outputs())
    outputs.emplace_back(Json::Object{{"kind", kind_name(spec.kind)}, {"target", spec.target}});
  for (const RangeConstraint& one : program.range_constraints())
    ranges.emplace_back(
        Json::Object{{"expression", one.expr->to_string()}, {"range", one.range.to_string()}});
  for (const std::string& guard : program.guards()) guards.emplace_back(guard);
  for (const auto& [name, tensor] : program.state_dict())
    state.emplace_back(Json::Object{{"name", name}, {"type", describe(tensor).str()}});
  return Json::Object{{"nodes", nodes_of(program.graph_module())},
                      {"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"state", std::move(state)},
                      {"ranges", std::move(ranges)},
                      {"guards", std::move(guards)}};
}

}  // namespace weft::cli
