#include "io/pt2_graph_writer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "io/pt2_graph_reader.h"
#include "io/pt2_symbols.h"
#include "weft/ops/operator_value.h"

namespace weft::pt2 {

namespace {

Json device_json(Device device) {
  if (device.is_meta()) return Json::Object{{"type", "meta"}, {"index", nullptr}};
  return Json::Object{{"type", "cpu"}, {"index", nullptr}};
}
template <typename List>
Json numbers_json(const List& list) {
  Json::Array numbers;
  for (const SymInt& number : list) numbers.push_back(json_of(number));
  return numbers;
}

}  // namespace

Json json_of(const Tensor& tensor) {
  return Json::Object{{"dtype", number_of(tensor.dtype())},
                      {"sizes", numbers_json(tensor.impl()->sizes())},
                      {"requires_grad", tensor.requires_grad()},
                      {"device", device_json(tensor.device())},
                      {"strides", numbers_json(tensor.impl()->strides())},
                      {"storage_offset", json_of(tensor.impl()->storage_offset())},
                      {"layout", kStridedLayout}};
}

Json argument_json(const Value& value) {
  using Kind = Value::Kind;
  switch (value.kind()) {
    case Kind::kNone:
      return variant("as_none", true);
    case Kind::kBool:
      return variant("as_bool", value.to_bool());
    case Kind::kInt:
      return variant("as_int", value.to_int());
    case Kind::kDouble:
      return variant("as_float", json_of(value.to_double()));
    case Kind::kString:
      return variant("as_string", value.to_string_view());
    case Kind::kDType:
      return variant("as_scalar_type", number_of(value.to_dtype()));
    case Kind::kDevice:
      return variant("as_device", device_json(value.to_device()));
    case Kind::kLayout:
      return variant("as_layout", kStridedLayout);
    case Kind::kMemoryFormat:
      return variant("as_memory_format", number_of(value.to_memory_format()));
    case Kind::kComplex:
      return variant("as_complex", Json::Object{{"real", json_of(value.to_complex().re)},
                                                {"imag", json_of(value.to_complex().im)}});
    default:
      break;
  }
  if (holds_operator(value))
    return variant("as_operator", "torch.ops." + operator_text(operator_name_in(value)));
  fail("a .pt2 file has no form for {} as an argument", value.kind_name());
}

namespace {

constexpr int kMostDepth = 50;

const PythonFunction& getitem() {
  static const PythonFunction& function = python_function("operator.getitem");
  return function;
}

std::string target_text(const Target& target) {
  const std::string text = target.to_string();
  if (!target.function()) return text;
  if (text.starts_with("operator.")) return "_" + text;
  if (text == "round") return "builtins.round";
  return text;
}

class Writer {
 public:
  Writer(const GraphModule& module, const std::vector<InputSpec>& inputs, int depth)
      : module_(module), inputs_(inputs), depth_(depth) {}

  Json run() {
    require(depth_ <= kMostDepth, "a .pt2 file cannot hold graphs nested more than {} deep", kMostDepth);
    Json::Array inputs, nodes, outputs;
    bool is_single = false;
    size_t next_input = 0;
    for (Node& node : module_.graph()) {
      While scope([&] { return fmt::format("writing node '{}'", node.name()); });
      switch (node.kind()) {
        case NodeKind::kPlaceholder:
          inputs.push_back(input_json(node, next_input < inputs_.size() ? &inputs_[next_input] : nullptr));
          ++next_input;
          break;
        case NodeKind::kGetAttr:
          break;  // written where it is used
        case NodeKind::kCallFunction:
          if (node.target().function() != &getitem() || !is_item(node)) nodes.push_back(node_json(node));
          break;
        case NodeKind::kOutput: {
          is_single = !node.returned().is_sequence();
          const ValueList results = is_single ? ValueList{node.returned()} : node.returned().elements();
          for (const Value& result : results) outputs.push_back(argument(result, nullptr));
          break;
        }
        default:
          fail(
              "a .pt2 file cannot hold the {} node '{}'; inline_modules() and symbolic calls become "
              "operators first",
              kind_name(node.kind()), node.name());
      }
    }
    return Json::Object{{"inputs", std::move(inputs)},
                        {"outputs", std::move(outputs)},
                        {"nodes", std::move(nodes)},
                        {"tensor_values", std::move(tensors_)},
                        {"sym_int_values", std::move(ints_)},
                        {"sym_bool_values", std::move(bools_)},
                        {"is_single_tensor_return", is_single},
                        {"custom_obj_values", Json::Object()},
                        {"sym_float_values", std::move(floats_)}};
  }

 private:
  static const Value& note_of(const Node& node) {
    static const Value nothing;
    const NodeMeta* meta = node.meta_or_null();
    return meta ? meta->value : nothing;
  }
  static const Value* extra(const Node& node, const char* key) {
    const NodeMeta* meta = node.meta_or_null();
    return meta ? meta->extra.find(key) : nullptr;
  }

  // An item of what a call gives is an output of that call.
  static bool is_item(const Node& node) {
    const Node* from = node.args().empty() ? nullptr : node_in(node.args()[0]);
    return from && from->kind() == NodeKind::kCallFunction;
  }

  // Notes a value under its name.
  Json defined(const std::string& name, const Value& value, const Node* node) {
    if (const Value* kept = node ? extra(*node, kMetaNote) : nullptr)
      tensors_.insert(name, Json::parse(kept->to_string_view()));
    else if (value.is_tensor()) tensors_.insert(name, json_of(value.tensor_ref()));
    if (value.is_bool()) {
      bools_.insert(name, json_of(value.to_sym_bool()));
      return variant("as_sym_bool", Json::Object{{"as_name", name}});
    }
    if (value.is_int()) {
      ints_.insert(name, json_of(value.to_sym_int()));
      return variant("as_sym_int", Json::Object{{"as_name", name}});
    }
    if (value.is_double()) {
      floats_.insert(name, json_of(value.to_sym_float()));
      return variant("as_sym_float", Json::Object{{"as_name", name}});
    }
    return variant("as_tensor", named(name));
  }

  Json input_json(const Node& node, const InputSpec* spec) {
    if (spec && spec->kind == InputSpec::Kind::kConstantInput) return argument_json(spec->constant);
    if (const Value* type = extra(node, "pt2.class"))
      return variant("as_custom_obj",
                     Json::Object{{"name", node.name()}, {"class_fqn", type->to_string_view()}});
    return defined(node.name(), note_of(node), &node);
  }

  // --- arguments -----------------------------------------------------------------------------------------

  // The first of several nodes that take the same item stands for all.
  const Node& first_of(const Node& node) const {
    if (node.target().function() != &getitem() || !is_item(node)) return node;
    auto found = items_.find({node_in(node.args()[0]), node.args().at(1).to_int()});
    return found == items_.end() ? node : *found->second;
  }

  Json reference(const Node& node) {
    if (node.kind() == NodeKind::kGetAttr) return graph_argument(node);
    const std::string& name = first_of(node).name();
    if (const Value* type = extra(node, "pt2.class"))
      return variant("as_custom_obj", Json::Object{{"name", name}, {"class_fqn", type->to_string_view()}});
    const Value& value = note_of(node);
    const Json number = Json::Object{{"as_name", name}};
    if (value.is_bool()) return variant("as_sym_bool", number);
    if (value.is_int()) return variant("as_sym_int", number);
    if (value.is_double()) return variant("as_sym_float", number);
    return variant("as_tensor", named(name));
  }
  Json graph_argument(const Node& node) {
    const std::string path = node.target().to_string();
    const std::optional<GraphModule> graph = graph_module_in(module_.find(path));
    require(graph.has_value(), "'{}' is no graph; tensors of an exported program are inputs of its graph",
            path);
    return variant("as_graph", Json::Object{{"name", path}, {"graph", json_of(*graph, {}, depth_ + 1)}});
  }

  Json argument(const Value& value, const Type* type) {
    if (const Node* node = node_in(value)) return reference(*node);
    if (value.is_sequence()) return list_argument(value.elements(), type);
    if (value.is_dict()) {
      Json::Object dict;
      for (const auto& [key, element] : value.to_dict())
        dict.insert(std::string(key.to_string_view()), argument(element, nullptr));
      return variant("as_string_to_argument", std::move(dict));
    }
    return argument_json(value);
  }

  static const Type* element_type(const Type* type) {
    while (type && type->is_optional()) type = &type->element();
    if (!type || !type->is_list()) return nullptr;
    type = &type->element();
    while (type->is_optional()) type = &type->element();
    return type;
  }
  static const char* empty_variant(const Type* type) {
    const Type* element = element_type(type);
    if (!element) return "as_tensors";
    switch (element->kind()) {
      case Type::Kind::kBool:
        return "as_bools";
      case Type::Kind::kInt:
      case Type::Kind::kSymInt:
        return "as_ints";
      case Type::Kind::kFloat:
        return "as_floats";
      case Type::Kind::kString:
        return "as_strings";
      default:
        return "as_tensors";
    }
  }

  // A list is of the kind that all its elements are, whatever the schema says.
  Json list_argument(const ValueList& elements, const Type* type) {
    if (elements.empty()) return variant(empty_variant(type), Json::Array());
    Json::Array written;
    std::map<std::string, size_t> kinds;
    for (const Value& element : elements) {
      written.push_back(argument(element, nullptr));
      ++kinds[std::string(variant_of(written.back(), "argument").name)];
    }
    auto only = [&](std::initializer_list<const char*> allowed) {
      size_t count = 0;
      for (const char* kind : allowed) count += kinds.contains(kind) ? kinds.at(kind) : 0;
      return count == elements.size();
    };
    auto contents = [&](std::string name) {
      for (Json& element : written) element = Json(variant_of(element, "argument").value);
      return variant(std::move(name), std::move(written));
    };
    for (const char* kind : {"as_bool", "as_int", "as_float", "as_string", "as_tensor"})
      if (only({kind})) return contents(std::string(kind) + "s");
    // Names, and numbers as {"as_int": 3}.
    auto numbers = [&](std::string name, const char* plain) {
      for (Json& element : written)
        if (variant_of(element, "argument").name != plain)
          element = Json(variant_of(element, "argument").value);
      return variant(std::move(name), std::move(written));
    };
    if (only({"as_int", "as_sym_int"})) return numbers("as_sym_ints", "as_int");
    if (only({"as_bool", "as_sym_bool"})) return numbers("as_sym_bools", "as_bool");
    if (only({"as_float", "as_sym_float"})) return numbers("as_sym_floats", "as_float");
    if (only({"as_tensor", "as_none"})) return variant("as_optional_tensors", std::move(written));
    if (only({"as_tensors"})) return contents("as_nested_tensors");
    if (only({"as_ints"})) return contents("as_int_lists");
    if (only({"as_floats"})) return contents("as_float_lists");
    fail("a .pt2 file has no form for the list {}", Value::list(elements).to_string());
  }

  // --- nodes ---------------------------------------------------------------------------------------------

  static Json input(std::string_view name, Json argument, bool by_name) {
    return Json::Object{{"name", name}, {"arg", std::move(argument)}, {"kind", by_name ? 2 : 1}};
  }

  Json::Array inputs_json(const Node& node) {
    Json::Array inputs;
    const Operator* op = node.target().op();
    if (op && !op->def().higher_order) {
      const std::vector<Argument>& arguments = op->schema().arguments;
      for (size_t i = 0; i < arguments.size(); ++i) {
        const Argument& declared = arguments[i];
        if (const Value* given = node.kwarg(declared.name))
          inputs.push_back(input(declared.name, argument(*given, &declared.type), true));
        else if (i < node.args().size())
          inputs.push_back(input(declared.name, argument(node.args()[i], &declared.type), false));
      }
      return inputs;
    }
    if (const Value* kept = extra(node, kInputsNote); kept && node.target().is_missing())
      return kept_inputs(node, *kept);
    const bool is_number_function = node.target().function() && note_of(node).is_number();
    for (size_t i = 0; i < node.args().size(); ++i) {
      const std::string name =
          is_number_function ? std::string(1, static_cast<char>('a' + i)) : std::string();
      inputs.push_back(input(name, argument(node.args()[i], nullptr), false));
    }
    for (const auto& [name, value] : node.kwargs())
      inputs.push_back(input(name, argument(value, nullptr), true));
    return inputs;
  }
  // An operator without a schema: names and variants are those of the file that it came from.
  Json::Array kept_inputs(const Node& node, const Value& kept) {
    Json::Array inputs;
    size_t next = 0;
    for (const Value& entry : kept.elements()) {
      const std::string name(entry.elements().at(0).to_string_view());
      const std::string_view kind = entry.elements().at(1).to_string_view();
      const bool by_name = entry.elements().at(2).to_bool();
      const Value* value = by_name                     ? node.kwarg(name)
                           : next < node.args().size() ? &node.args()[next]
                                                       : nullptr;
      next += !by_name;
      if (!value) continue;
      Json written = argument(*value, nullptr);
      if (value->is_sequence() && value->elements().empty())
        written = variant(std::string(kind), Json::Array());
      inputs.push_back(input(name, std::move(written), by_name));
    }
    return inputs;
  }

  // The node that takes item i of what `node` gives; null where nobody does.
  const Node* item_of(const Node& node, int64_t i) {
    auto found = items_.find({&node, i});
    return found == items_.end() ? nullptr : found->second;
  }
  void note_items(const Node& node) {
    for (const Node* user : node.users().list()) {
      if (user->target().function() != &getitem() || user->args().at(1).kind() != Value::Kind::kInt) continue;
      // In the order of the graph.
      auto [first, is_new] = items_.try_emplace({&node, user->args()[1].to_int()}, user);
      if (!is_new && module_.graph().is_before(*user, *first->second)) first->second = user;
    }
  }

  Json item_json(const Node& node, size_t i, const Value& value, const std::string& unused) {
    const Node* item = item_of(node, static_cast<int64_t>(i));
    if (value.is_sequence()) {
      Json::Array tensors;
      if (item) note_items(*item);
      for (size_t k = 0; k < value.elements().size(); ++k)
        tensors.push_back(tensor_item(item ? *item : node, k, value.elements()[k],
                                      fmt::format("{}_{}", unused, k), item != nullptr));
      return variant("as_tensors", std::move(tensors));
    }
    if (value.is_none() && (!item || !extra(*item, kMetaNote))) {
      if (!item) return variant("as_none", true);
      return variant("as_tensor", named(item->name()));  // a token of effects
    }
    return defined(item ? item->name() : unused, value, item);
  }
  Json tensor_item(const Node& node, size_t i, const Value& value, const std::string& unused,
                   bool is_used = true) {
    const Node* item = is_used ? item_of(node, static_cast<int64_t>(i)) : nullptr;
    const std::string name = item ? item->name() : unused;
    defined(name, value, item);
    return named(name);
  }

  Json::Array outputs_json(const Node& node) {
    const Operator* op = node.target().op();
    const bool has_schema = op && !op->def().higher_order;
    const Value& value = note_of(node);
    if (has_schema && op->schema().returns.empty()) return {};
    note_items(node);
    Json::Array outputs;
    const bool is_list = value.is_list() && (!has_schema || op->schema().returns.size() == 1);
    if (is_list) {
      Json::Array tensors;
      for (size_t i = 0; i < value.elements().size(); ++i)
        tensors.push_back(
            tensor_item(node, i, value.elements()[i], fmt::format("{}_unused_{}", node.name(), i)));
      outputs.push_back(variant("as_tensors", std::move(tensors)));
      return outputs;
    }
    if (value.is_sequence()) {
      for (size_t i = 0; i < value.elements().size(); ++i)
        outputs.push_back(
            item_json(node, i, value.elements()[i], fmt::format("{}_unused_{}", node.name(), i)));
      return outputs;
    }
    if (value.is_none() && !extra(node, kMetaNote)) {
      require(node.users().empty(),
              "what '{}' gives is not noted; ShapeProp notes it (weft/passes/shape_prop.h)", node.name());
      if (!node.target().is_missing() || extra(node, kNoneNote)) outputs.push_back(variant("as_none", true));
      return outputs;
    }
    outputs.push_back(defined(node.name(), value, &node));
    return outputs;
  }

  Json::Object metadata_json(const Node& node) {
    Json::Object metadata;
    const NodeMeta* meta = node.meta_or_null();
    if (!meta) return metadata;
    if (std::string trace = node.stack_trace(); !trace.empty())
      metadata.insert("stack_trace", std::move(trace));
    for (const char* key : {"nn_module_stack", "source_fn_stack", "torch_fn", "custom", "from_node"})
      if (const Value* value = meta->extra.find(key); value && value->is_string())
        metadata.insert(key, value->to_string_view());
    if (!metadata.find("nn_module_stack") && !meta->modules.empty())
      metadata.insert("nn_module_stack", stack_text(meta->modules));
    return metadata;
  }
  // As PyTorch does, the second call of a module has "@1" in its key.
  std::string stack_text(const ModuleStack& modules) {
    std::string text;
    for (const ModuleScope& scope : modules) {
      std::string key = scope.path;
      std::replace(key.begin(), key.end(), '.', '_');
      std::vector<int64_t>& calls = calls_[scope.path];
      const auto call = std::find(calls.begin(), calls.end(), scope.call) - calls.begin();
      if (call == std::ssize(calls)) calls.push_back(scope.call);
      if (call > 0) key += fmt::format("@{}", call);
      text += fmt::format("{}L__self__{}{},{},{}", text.empty() ? "" : ";", key.empty() ? "" : "_", key,
                          scope.path, scope.class_name);
    }
    return text;
  }

  Json node_json(const Node& node) {
    const Operator* op = node.target().op();
    const bool is_over_functions = (op && op->def().higher_order) || extra(node, kSingleNote);
    Json::Array outputs = outputs_json(node);
    Json single;
    if (is_over_functions) single = note_of(node).is_tensor();
    return Json::Object{{"target", target_text(node.target())},
                        {"inputs", inputs_json(node)},
                        {"outputs", std::move(outputs)},
                        {"metadata", metadata_json(node)},
                        {"is_hop_single_tensor_return", std::move(single)},
                        {"name", node.name()}};
  }

  const GraphModule& module_;
  const std::vector<InputSpec>& inputs_;
  int depth_;
  Json::Object tensors_, ints_, bools_, floats_;
  std::map<std::pair<const Node*, int64_t>, const Node*> items_;
  std::map<std::string, std::vector<int64_t>> calls_;  // of each module, by its path
};

}  // namespace

Json json_of(const GraphModule& module, const std::vector<InputSpec>& inputs, int depth) {
  return Writer(module, inputs, depth).run();
}

}  // namespace weft::pt2
