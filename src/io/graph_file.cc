#include "weft/io/graph_file.h"

#include <cstring>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/json.h"
#include "io/traced_inputs.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/graph/parse.h"
#include "weft/graph/text.h"
#include "weft/io/safetensors.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// Where the text of the graphs is: a note of this name or, where it is longer, an entry of bytes.
constexpr const char* kNote = "weft.graph_module";
constexpr size_t kLongestNote = size_t{1} << 20;

// --- writing ---------------------------------------------------------------------------------------------

// The tensors that a module's graph names, and those of the graphs inside it.
void for_each_tensor(const GraphModule& module, const std::function<void(const Tensor&)>& f) {
  for (const Node& node : module.graph()) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    Value value = module.find(node.target().to_string());
    if (std::optional<GraphModule> inner = graph_module_in(value)) for_each_tensor(*inner, f);
    else if (value.is_tensor()) f(value.tensor_ref());
  }
}

class Writer {
 public:
  SafeTensors file(const GraphModule& given) {
    const GraphModule module = modules_as_graphs(given);
    std::unordered_map<const Storage*, std::unordered_set<const TensorImpl*>> users;
    for_each_tensor(module, [&](const Tensor& tensor) {
      if (tensor.storage()->has_memory()) users[tensor.storage().get()].insert(tensor.impl());
    });
    for (const auto& [storage, tensors] : users)
      if (tensors.size() > 1) shared_.insert(storage);
    add_note(describe(module, "").to_text());
    return std::move(file_);
  }

 private:
  // Readers limit the header, which the notes are part of, and so a long text is an entry.
  void add_note(std::string text) {
    if (text.size() <= kLongestNote) {
      file_.metadata.emplace_back(kNote, std::move(text));
      return;
    }
    Tensor bytes = allocate_contiguous({static_cast<int64_t>(text.size())}, kUInt8);
    std::memcpy(bytes.raw_data(), text.data(), text.size());
    require(file_.add(kNote, std::move(bytes)), "save_graph_module: a tensor cannot be called '{}'", kNote);
  }

  // `prefix` is where a nested module's tensors are: "true_graph_0/".
  Json describe(const GraphModule& module, const std::string& prefix) {
    Json::Object note;
    note["class"] = module.state()->class_name;
    note["training"] = module.is_training();
    note["graph"] = quoted_text(module.graph());
    std::vector<std::pair<std::string, GraphModule>> inner;
    Json::Array attributes;
    std::unordered_set<std::string> seen;
    for (const Node& node : module.graph()) {
      if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
      std::string path = node.target().to_string();
      if (!seen.insert(path).second) continue;
      Value value = module.find(path);
      if (std::optional<GraphModule> graph = graph_module_in(value)) {
        inner.emplace_back(path, *graph);
        continue;
      }
      require(value.is_tensor(), "save_graph_module: '{}' is {}, which a file cannot hold", path,
              value.kind_name());
      attributes.emplace_back(entry(path, value.to_tensor(), prefix));
    }
    // After the attributes, as they are read: of a tensor with two names the first one has the values.
    Json::Object graphs;
    for (const auto& [path, graph] : inner) graphs.insert(path, describe(graph, prefix + path + "/"));
    note["attributes"] = std::move(attributes);
    note["graphs"] = std::move(graphs);
    if (!module.traced_inputs().empty()) note["traced_inputs"] = describe_inputs(module.traced_inputs());
    if (const std::optional<CallSpec>& spec = module.call_spec()) {
      Json::Array names;
      for (const std::string& name : spec->argument_names) names.emplace_back(name);
      note["call"] = Json::Object{{"names", std::move(names)},
                                  {"arguments", spec->arguments.to_json()},
                                  {"result", spec->result.to_json()}};
      if (spec->num_positional) note["call"]["positional"] = static_cast<int64_t>(*spec->num_positional);
    }
    return note;
  }

  Json entry(const std::string& path, const Tensor& tensor, const std::string& prefix) {
    Json::Object note;
    note["path"] = path;
    note["parameter"] = tensor.requires_grad();
    auto [first, is_new] = places_.try_emplace(tensor.impl(), prefix + path);
    if (!is_new) note["same_as"] = first->second;  // one tensor under two names
    else if (shared_.contains(tensor.storage().get())) describe_view(note, tensor, prefix + path);
    else file_.add(prefix + path, tensor.detach());
    return note;
  }

  // Tensors that share memory: the memory is an entry, called after the first of them, and each tensor a view
  // of it.
  void describe_view(Json::Object& note, const Tensor& tensor, const std::string& name) {
    const auto whole =
        static_cast<int64_t>(tensor.storage()->bytes() / static_cast<size_t>(item_size(tensor.dtype())));
    if (!tensor.is_conj() && !tensor.is_neg())
      memories_.try_emplace(tensor.storage().get(), name, tensor.dtype());
    auto memory = memories_.find(tensor.storage().get());
    if (memory == memories_.end() || memory->second.second != tensor.dtype()) {
      file_.add(name, tensor.detach());  // read in two ways: no view of the other's elements
      return;
    }
    const bool is_new = memory->second.first == name;
    if (is_new) file_.add(name, alias_with(tensor, SymInts{whole}, SymInts{1}, 0));
    auto list = [](IntSpan numbers) {
      Json::Array items;
      for (int64_t number : numbers) items.emplace_back(number);
      return items;
    };
    note["memory"] = memory->second.first;
    note["sizes"] = list(tensor.plain_sizes());
    note["strides"] = list(tensor.plain_strides());
    note["offset"] = tensor.storage_offset().plain();
  }

  SafeTensors file_;
  std::unordered_set<const Storage*> shared_;
  std::unordered_map<const TensorImpl*, std::string> places_;
  std::unordered_map<const Storage*, std::pair<std::string, DType>> memories_;
};

// --- reading ---------------------------------------------------------------------------------------------

using Tensors = std::unordered_map<std::string, Tensor>;  // by their names in the file

SymInts read_numbers(const Json& list) {
  SymInts numbers;
  for (const Json& number : list.as_array()) numbers.push_back(number.as_int());
  return numbers;
}

// The tensor of an attribute: an entry of its own, a view of memory that others see too, or one that was read
// before.
Tensor read_tensor(const Json& entry, const SafeTensors& file, const std::string& name, Tensors& known) {
  if (const Json* first = entry.find("same_as")) {
    auto found = known.find(first->as_string());
    if (found == known.end())
      throw FormatError(
          fmt::format("'{}' is said to be '{}', which is not there before it", name, first->as_string()));
    return found->second;
  }
  While scope([&] { return fmt::format("reading '{}'", name); });
  Tensor tensor;
  if (const Json* memory = entry.find("memory")) {
    NoGrad no_grad;
    const SymInts sizes = read_numbers(entry.at("sizes")), strides = read_numbers(entry.at("strides"));
    // Checks that the view lies inside the memory.
    tensor = as_strided(file.at(memory->as_string()), sizes, strides, entry.at("offset").as_int()).detach();
  } else {
    tensor = file.at(name);
  }
  if (entry.at("parameter").as_bool()) tensor.set_requires_grad();
  known.emplace(name, tensor);
  return tensor;
}

GraphModule read(const Json& note, const SafeTensors& file, const std::string& prefix,
                 const LoadOptions& options, Tensors& known) {
  GraphModule::Attributes tensors, attributes;
  for (const Json& entry : note.at("attributes").as_array()) {
    const std::string& path = entry.at("path").as_string();
    tensors.emplace_back(path, read_tensor(entry, file, prefix + path, known));
  }
  for (const auto& [path, inner] : note.at("graphs").as_object()) {
    GraphModule module = read(inner, file, prefix + path + "/", options, known);
    attributes.emplace_back(path, Value(Ref<ValueObject>(module.callable())));
  }
  // Behind the graphs: a path may lead into one of them.
  attributes.insert(attributes.end(), tensors.begin(), tensors.end());
  GraphModule module(attributes, parse_graph(note.at("graph").as_string(), {.missing_operators = true}),
                     note.at("class").as_string());
  module.graph().lint();
  module.train(note.at("training").as_bool());
  if (const Json* call = note.find("call")) {
    CallSpec spec;
    for (const Json& name : call->at("names").as_array()) spec.argument_names.push_back(name.as_string());
    spec.arguments = TreeSpec::from_json(call->at("arguments").as_string());
    spec.result = TreeSpec::from_json(call->at("result").as_string());
    if (const Json* positional = call->find("positional"))
      spec.num_positional = static_cast<size_t>(positional->as_int());
    module.set_call_spec(std::move(spec));
  }
  if (const Json* inputs = note.find("traced_inputs")) {
    module.set_traced_inputs(read_inputs(*inputs));
    if (options.restore_shapes) restore_shapes(module);
  }
  return module;
}

std::string_view text_in(const SafeTensors& file, std::string_view source) {
  for (const auto& [key, text] : file.metadata)
    if (key == kNote) return text;
  const Tensor* const bytes = file.find(kNote);
  if (!bytes || bytes->dtype() != kUInt8)
    throw FormatError(
        fmt::format("{}: there is no graph in it (no note '{}'); it may hold tensors only", source, kNote));
  return {static_cast<const char*>(bytes->raw_data()), static_cast<size_t>(bytes->plain_numel())};
}

GraphModule read(const SafeTensors& file, std::string_view source, const LoadOptions& options) {
  Tensors known;
  try {
    return read(Json::parse(text_in(file, source), fmt::format("{}: {}", source, kNote)), file, "", options,
                known);
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const FormatError&) {
    throw;
  } catch (const UserError& error) {
    // Whatever a graph, a view or a module made of the file's parts refuses, it is the file that is wrong.
    throw FormatError(fmt::format("{}: {}", source, error.what()));
  }
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
