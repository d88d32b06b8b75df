#include "weft/io/graph_file.h"

#include <unordered_set>

#include "io/traced_inputs.h"
#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/io/safetensors.h"

namespace weft {
namespace {

constexpr const char* kNote = "weft.graph_module";

// --- writing ---------------------------------------------------------------------------------------------

class Writer {
 public:
  SafeTensors file(const GraphModule& module) {
    file_.metadata.emplace_back(kNote, describe(module, "").to_text());
    return std::move(file_);
  }

 private:
  // `prefix` is where a nested module's tensors are: "true_graph_0/".
  Json describe(const GraphModule& module, const std::string& prefix) {
    Json::Object note;
    note["class"] = module.state()->class_name;
    note["training"] = module.is_training();
    note["graph"] = quoted_text(module.graph());
    Json::Array attributes;
    Json::Object graphs;
    std::unordered_set<std::string> seen;
    for (const Node& node : module.graph()) {
      if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
      std::string path = node.target().to_string();
      if (!seen.insert(path).second) continue;
      Value value = module.find(path);
      if (std::optional<GraphModule> inner = graph_module_in(value)) {
        graphs.insert(path, describe(*inner, prefix + path + "/"));
      } else {
        require(
            value.is_tensor(),
            "save_graph_module: '{}' is {}, which a file cannot hold; inline_modules() turns calls of C++ "
            "modules into operators",
            path, value.kind_name());
        attributes.emplace_back(entry(path, value.to_tensor(), prefix));
      }
    }
    note["attributes"] = std::move(attributes);
    note["graphs"] = std::move(graphs);
    if (!module.traced_inputs().empty()) note["traced_inputs"] = describe_inputs(module.traced_inputs());
    if (const std::optional<CallSpec>& spec = module.call_spec()) {
      Json::Array names;
      for (const std::string& name : spec->argument_names) names.emplace_back(name);
      note["call"] = Json::Object{{"names", std::move(names)},
                                  {"arguments", spec->arguments.to_json()},
                                  {"result", spec->result.to_json()}};
    }
    return note;
  }

  Json entry(const std::string& path, const Tensor& tensor, const std::string& prefix) {
    Json::Object note;
    note["path"] = path;
    note["parameter"] = tensor.requires_grad();
    file_.add(prefix + path, tensor.detach());
    return note;
  }

  SafeTensors file_;
};

// --- reading ---------------------------------------------------------------------------------------------

GraphModule read(const Json& note, const SafeTensors& file, const std::string& prefix,
                 const LoadOptions& options) {
  GraphModule::Attributes attributes;
  for (const Json& entry : note.at("attributes").as_array()) {
    const std::string& path = entry.at("path").as_string();
    Tensor tensor = file.at(prefix + path);
    if (entry.at("parameter").as_bool()) tensor.set_requires_grad();
    attributes.emplace_back(path, tensor);
  }
  for (const auto& [path, inner] : note.at("graphs").as_object()) {
    GraphModule module = read(inner, file, prefix + path + "/", options);
    attributes.emplace_back(path, Value(Ref<ValueObject>(module.callable())));
  }
  GraphModule module(attributes, parse_graph(note.at("graph").as_string()), note.at("class").as_string());
  module.graph().lint();
  module.train(note.at("training").as_bool());
  if (const Json* call = note.find("call")) {
    CallSpec spec;
    for (const Json& name : call->at("names").as_array()) spec.argument_names.push_back(name.as_string());
    spec.arguments = TreeSpec::from_json(call->at("arguments").as_string());
    spec.result = TreeSpec::from_json(call->at("result").as_string());
    module.set_call_spec(std::move(spec));
  }
  if (const Json* inputs = note.find("traced_inputs")) {
    module.set_traced_inputs(read_inputs(*inputs));
    if (options.restore_shapes) restore_shapes(module);
  }
  return module;
}

GraphModule read(const SafeTensors& file, std::string_view source, const LoadOptions& options) {
  for (const auto& [key, text] : file.metadata)
    if (key == kNote) return read(Json::parse(text, fmt::format("{}: {}", source, kNote)), file, "", options);
  throw FormatError(
      fmt::format("{}: there is no graph in it (no note '{}'); it may hold tensors only", source, kNote));
}

}  // namespace

std::string graph_module_bytes(const GraphModule& module) { return safetensors_bytes(Writer().file(module)); }
void save_graph_module(const GraphModule& module, const std::string& path) {
  save_safetensors(Writer().file(module), path);
}

GraphModule load_graph_module(const std::string& path, const LoadOptions& options) {
  return read(load_safetensors(path), path, options);
}
GraphModule parse_graph_module(std::string_view bytes, std::string_view source, const LoadOptions& options) {
  return read(parse_safetensors(bytes, source), source, options);
}

}  // namespace weft
