#include "io/pt2_graph_reader.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "weft/base/warning.h"
#include "weft/ops/fake.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/overloads.h"

namespace weft::pt2 {

Device Devices::read(const Json& json) {
  const std::string& type = json.at("type").as_string();
  if (type == "meta") return DeviceType::kMeta;
  if (type != "cpu" && !has_warned_) {
    has_warned_ = true;
    const Json* index = json.find("index");
    warn(WarningKind::kUser,
         "{}: the program was exported for the device '{}{}', which is not here; it runs on the CPU", source_,
         type, index && index->is_int() ? ":" + std::to_string(index->as_int()) : "");
  }
  return kCpu;
}

Tensor described_tensor(const Json& meta, Symbols& symbols, Devices& devices, std::string_view what,
                        const sym::Source* source) {
  symbols.set_source(source);
  const SymInts sizes = symbols.ints_of(meta.at("sizes"), what, true);
  symbols.set_source(nullptr);
  const SymInts strides = symbols.ints_of(meta.at("strides"), what, false);
  if (sizes.size() != strides.size())
    refuse("{}: {} sizes have {} strides", what, sizes.size(), strides.size());
  for (const SymInts* numbers : {&sizes, &strides})
    for (const SymInt& number : *numbers)
      if (!number.is_symbolic() && number.plain() < 0)
        refuse("{}: the size or stride {} is negative", what, number.plain());
  const SymInt offset = symbols.int_of(meta.at("storage_offset"), what);
  const Device device = devices.read(meta.at("device"));
  const std::optional<DType> dtype = dtype_of(meta.at("dtype").as_int());
  if (!dtype || meta.at("layout").as_int() != kStridedLayout) return {};
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, device), *dtype, device);
  impl->set_geometry(sizes, strides, offset);
  impl->set_flags(layer::kFake);
  Tensor tensor(std::move(impl));
  if (meta.at("requires_grad").as_bool() && is_differentiable(*dtype)) tensor.set_requires_grad();
  return tensor;
}

namespace {

// Graphs inside of graphs: control flow in control flow.
constexpr int kMostDepth = 50;

// "torch.ops.aten.add.Tensor" is "aten::add.Tensor"; nothing for what is no operator.
std::optional<std::string> operator_name(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (!target.starts_with(kPrefix)) return std::nullopt;
  target.remove_prefix(kPrefix.size());
  const size_t dot = target.find('.');
  if (dot == target.npos || dot == 0 || dot + 1 == target.size()) return std::nullopt;
  std::string name = std::string(target.substr(0, dot)) + "::" + std::string(target.substr(dot + 1));
  constexpr std::string_view kDefault = ".default";
  if (name.ends_with(kDefault)) name.resize(name.size() - kDefault.size());
  return name;
}

// Python's spelling of functions on numbers, where it differs from that of graphs.
std::string function_name(std::string_view target) {
  if (target.starts_with("_operator.")) return std::string(target.substr(1));
  if (target == "builtins.round") return "round";
  return std::string(target);
}

class Builder {
 public:
  Builder(const std::string& source, Symbols& symbols, Devices& devices, GraphReader& reader,
          const Json& json, int depth)
      : source_(source), symbols_(symbols), devices_(devices), reader_(reader), json_(json), depth_(depth) {}

  GraphModule run(const std::vector<std::string>& input_names,
                  const std::vector<sym::Source>& input_sources) {
    if (depth_ > kMostDepth) refuse("{}: graphs are nested more than {} deep", source_, kMostDepth);
    const Json::Array& inputs = json_.at("inputs").as_array();
    for (size_t i = 0; i < inputs.size(); ++i)
      read_input(inputs[i], i < input_names.size() ? input_names[i] : std::string(),
                 i < input_sources.size() ? &input_sources[i] : nullptr, i);
    for (const Json& node : json_.at("nodes").as_array()) read_node(node);
    ValueList results;
    for (const Json& output : json_.at("outputs").as_array())
      results.push_back(argument(output, "graph output"));
    const bool is_single =
        json_.contains("is_single_tensor_return") && json_.at("is_single_tensor_return").as_bool();
    if (is_single && results.size() != 1)
      refuse("{}: a graph of one tensor has {} outputs", source_, results.size());
    graph_.output(is_single ? results[0] : Value::tuple(std::move(results)));
    graph_.lint();
    return GraphModule(attributes_, std::move(graph_));
  }

 private:
  // --- values --------------------------------------------------------------------------------------------

  Node& node_named(const std::string& name, std::string_view what) {
    auto found = values_.find(name);
    if (found == values_.end()) refuse("{}: {}: there is no value '{}' before it", source_, what, name);
    return *found->second;
  }
  void define(const std::string& name, Node& node) {
    if (!values_.emplace(name, &node).second) refuse("{}: two values are called '{}'", source_, name);
  }
  const Json* described(const char* table, const std::string& name) const {
    const Json* values = json_.find(table);
    return values ? values->find(name) : nullptr;
  }

  // What is known of a value that an output or input of this name defines.
  Value note_of(const std::string& variant, const std::string& name, const sym::Source* source,
                std::string* kept) {
    const std::string what = fmt::format("{}: value '{}'", source_, name);
    auto description = [&](const char* table) -> const Json& {
      const Json* json = described(table, name);
      if (!json) refuse("{}: it is not in {}", what, table);
      return *json;
    };
    if (variant == "as_tensor") {
      const Json* meta = described("tensor_values", name);
      if (!meta) return {};  // a token of effects
      const Tensor tensor = described_tensor(*meta, symbols_, devices_, what, source);
      if (!tensor.defined() && kept) *kept = meta->to_text();
      return tensor;
    }
    symbols_.set_source(source);
    Value value;
    if (variant == "as_sym_int") value = symbols_.int_of(description("sym_int_values"), what);
    else if (variant == "as_sym_bool") value = symbols_.bool_of(description("sym_bool_values"), what);
    else if (variant == "as_sym_float") value = symbols_.float_of(description("sym_float_values"), what);
    else refuse("{}: a value cannot be defined as {}", what, variant);
    symbols_.set_source(nullptr);
    return value;
  }
  void note(Node& node, const std::string& variant, const std::string& name,
            const sym::Source* source = nullptr) {
    std::string kept;
    node.meta().value = note_of(variant, name, source, &kept);
    if (!kept.empty()) node.meta().extra.set(kMetaNote, kept);
  }
  static std::string name_in(const Json& value) {
    if (const Json* name = value.find("name")) return name->as_string();
    if (const Json* name = value.find("as_name")) return name->as_string();
    refuse("a value has no name: {}", value.to_text().substr(0, 80));
  }

  void read_input(const Json& json, const std::string& given_name, const sym::Source* source, size_t index) {
    const Variant input = variant_of(json, "graph input");
    if (input.is("as_tensor") || input.is("as_sym_int") || input.is("as_sym_float") ||
        input.is("as_sym_bool")) {
      if (!input.is("as_tensor") && !input.value.contains("as_name"))
        return read_literal(json, given_name, index);
      const std::string name = name_in(input.value);
      Node& node = graph_.placeholder(name);
      define(name, node);
      note(node, std::string(input.name), name, source);
    } else if (input.is("as_custom_obj")) {
      const std::string name = name_in(input.value);
      Node& node = graph_.placeholder(name);
      define(name, node);
      node.meta().extra.set("pt2.class", input.value.at("class_fqn").as_string());
    } else {
      read_literal(json, given_name, index);
    }
  }
  void read_literal(const Json& json, const std::string& given_name, size_t index) {
    Node& node = graph_.placeholder(given_name.empty() ? fmt::format("input_{}", index) : given_name);
    node.meta().value = argument(json, "graph input");
    // Constants may be referred to by name too.
    if (!given_name.empty()) values_.emplace(given_name, &node);
  }

  // --- arguments -----------------------------------------------------------------------------------------

  template <typename Read>
  Value list_of(const Json& list, Read read) {
    ValueList elements;
    for (const Json& element : list.as_array()) elements.push_back(read(element));
    return Value::list(std::move(elements));
  }

  Value number_or_name(const Json& json, std::string_view what) {
    const Variant number = variant_of(json, what);
    if (number.is("as_name")) return value_of(node_named(number.value.as_string(), what));
    if (number.is("as_int")) return number.value.as_int();
    if (number.is("as_bool")) return number.value.as_bool();
    if (number.is("as_float")) return float_of(number.value, what);
    refuse("{}: {}: a number cannot be {}", source_, what, number.name);
  }

  Value argument(const Json& json, std::string_view what) {
    const Variant arg = variant_of(json, what);
    const Json& value = arg.value;
    auto tensor = [&](const Json& named) { return value_of(node_named(named.at("name").as_string(), what)); };
    auto tensors = [&](const Json& list) { return list_of(list, tensor); };
    auto optional_tensor = [&](const Json& element) {
      const Variant choice = variant_of(element, what);
      return choice.is("as_none") ? Value() : tensor(choice.value);
    };
    auto ints = [&](const Json& list) {
      return list_of(list, [](const Json& e) { return Value(e.as_int()); });
    };
    auto floats = [&](const Json& list) {
      return list_of(list, [&](const Json& e) { return Value(float_of(e, what)); });
    };
    auto numbers = [&](const Json& list) {
      return list_of(list, [&](const Json& e) { return number_or_name(e, what); });
    };

    if (arg.is("as_none")) return {};
    if (arg.is("as_tensor")) return tensor(value);
    if (arg.is("as_tensors")) return tensors(value);
    if (arg.is("as_optional_tensors")) return list_of(value, optional_tensor);
    if (arg.is("as_optional_tensor")) return optional_tensor(value);
    if (arg.is("as_nested_tensors")) return list_of(value, tensors);
    if (arg.is("as_int")) return value.as_int();
    if (arg.is("as_ints")) return ints(value);
    if (arg.is("as_int_lists")) return list_of(value, ints);
    if (arg.is("as_float")) return float_of(value, what);
    if (arg.is("as_floats")) return floats(value);
    if (arg.is("as_float_lists")) return list_of(value, floats);
    if (arg.is("as_bool")) return value.as_bool();
    if (arg.is("as_bools")) return list_of(value, [](const Json& e) { return Value(e.as_bool()); });
    if (arg.is("as_string")) return value.as_string();
    if (arg.is("as_strings")) return list_of(value, [](const Json& e) { return Value(e.as_string()); });
    if (arg.is("as_complex"))
      return Complex<double>(float_of(value.at("real"), what), float_of(value.at("imag"), what));
    if (arg.is("as_sym_int") || arg.is("as_sym_bool") || arg.is("as_sym_float"))
      return number_or_name(value, what);
    if (arg.is("as_sym_ints") || arg.is("as_sym_bools") || arg.is("as_sym_floats")) return numbers(value);
    if (arg.is("as_scalar_type")) return dtype(value.as_int(), what);
    if (arg.is("as_device")) return devices_.read(value);
    if (arg.is("as_layout")) return layout(value.as_int(), what);
    if (arg.is("as_memory_format")) return memory_format_of(value.as_int(), what);
    if (arg.is("as_graph")) return inner_graph(value, what);
    if (arg.is("as_operator")) return operator_argument(value.as_string(), what);
    if (arg.is("as_string_to_argument")) {
      Dict dict;
      for (const auto& [key, element] : value.as_object()) dict.set(key, argument(element, what));
      return dict;
    }
    if (arg.is("as_custom_obj")) return tensor(value);
    refuse("{}: {}: an argument cannot be {}", source_, what, arg.name);
  }

  Value dtype(int64_t number, std::string_view what) const {
    const std::optional<DType> dtype = dtype_of(number);
    if (!dtype) unsupported("{}: {}: weft has no {}", source_, what, dtype_text(number));
    return *dtype;
  }
  Value layout(int64_t number, std::string_view what) const {
    if (number != kStridedLayout)
      unsupported("{}: {}: weft has no tensors of layout {}, strided ones only", source_, what, number);
    return Layout::kStrided;
  }
  Value operator_argument(const std::string& text, std::string_view what) const {
    const std::optional<std::string> name = operator_name(text);
    if (!name) refuse("{}: {}: '{}' is no operator", source_, what, text);
    return operator_value(*name);
  }

  Value inner_graph(const Json& json, std::string_view what) {
    std::string path = json.at("name").as_string();
    if (path.empty() || path.find('.') != path.npos)
      refuse("{}: {}: '{}' is no name of a graph", source_, what, path);
    for (int number = 1; !graph_names_.insert(path).second; ++number)
      path = fmt::format("{}_{}", json.at("name").as_string(), number);
    GraphModule inner = reader_.read(json.at("graph"), {}, {}, depth_ + 1);
    attributes_.emplace_back(path, Value(Ref<ValueObject>(inner.callable())));
    Node& node = graph_.get_attr(path);
    return value_of(node);
  }

  // --- nodes ---------------------------------------------------------------------------------------------

  Target target_of(const std::string& text, const std::string& name) const {
    try {
      if (const std::optional<std::string> op = operator_name(text)) return Target::of_operator(*op);
    } catch (const UserError& error) {
      refuse("{}: node '{}': {}", source_, name, error.message());
    }
    try {
      return python_function(function_name(text));
    } catch (const UserError&) {
      unsupported("{}: node '{}' calls '{}', a function of Python that weft does not have", source_, name,
                  text);
    }
  }

  void read_node(const Json& json) {
    const std::string& text = json.at("target").as_string();
    const Json::Array& outputs = json.at("outputs").as_array();
    const Json* given = json.find("name");
    const std::string name = given && given->is_string() ? given->as_string() : name_of_outputs(outputs);
    While scope([&] { return fmt::format("reading node '{}' ({})", name, text); });
    const Target target = target_of(text, name);
    ValueList args;
    Kwargs kwargs;
    ValueList inputs;  // for saving a call of an operator whose schema is not known
    for (const Json& input : json.at("inputs").as_array())
      read_argument(input, name, target, args, kwargs, inputs);
    Node& node = graph_.create(NodeKind::kCallFunction, target, std::move(args), std::move(kwargs), name);
    if (target.is_missing()) node.meta().extra.set(kInputsNote, Value::list(inputs));
    check_arguments(node);
    read_notes(json.at("metadata"), node);
    // Files have no node for a function that is read: it is part of the call.
    if (const NodeMeta* noted = node.meta_or_null())
      for (Node* input : node.inputs())
        if (input->kind() == NodeKind::kGetAttr) {
          input->meta().modules = noted->modules;
          input->meta().source = noted->source;
        }
    define_outputs(json, outputs, name, node);
  }

  // What is noted of the arguments must fit the operator's schema.
  void check_arguments(const Node& node) const {
    const Operator* op = node.target().op();
    if (!op || op->def().higher_order) return;
    bool is_known = true;
    auto noted = [&](Node& input) {
      const NodeMeta* meta = input.meta_or_null();
      is_known &= meta && !meta->value.is_none();
      return is_known ? meta->value : Value();
    };
    ValueList args;
    Kwargs kwargs;
    for (const Value& arg : node.args()) args.push_back(map_nodes(arg, noted));
    for (const auto& [name, arg] : node.kwargs()) kwargs.emplace_back(name, map_nodes(arg, noted));
    std::string why;
    if (is_known && !bind_arguments(*op, args, kwargs, &why))
      refuse("{}: {}; the schema is {}", source_, why, op->schema_text());
  }

  static std::string name_of_outputs(const Json::Array& outputs) {
    if (outputs.size() != 1) return "";
    const Variant only = variant_of(outputs[0], "node output");
    return only.is("as_tensor") ? name_in(only.value) : "";
  }

  void read_argument(const Json& json, const std::string& node, const Target& target, ValueList& args,
                     Kwargs& kwargs, ValueList& inputs) {
    const std::string& name = json.at("name").as_string();
    const Json* kind = json.find("kind");
    constexpr int64_t kKeyword = 2;
    // Older files do not say: what is not where the schema has it goes by name.
    bool by_name = kind && kind->is_int() && kind->as_int() == kKeyword;
    if (!kind || !kind->is_int() || kind->as_int() == 0) {
      const Operator* op = target.op();
      const std::optional<size_t> at = op ? op->schema().argument_index(name) : std::nullopt;
      by_name = at && (*at != args.size() || op->schema().arguments[*at].kwarg_only);
    }
    const Json& arg = json.at("arg");
    const std::string what = name.empty() ? fmt::format("an argument of '{}'", node)
                                          : fmt::format("argument '{}' of '{}'", name, node);
    inputs.push_back(Value::tuple({name, variant_of(arg, what).name, by_name}));
    Value value = argument(arg, what);
    if (by_name) kwargs.emplace_back(name, std::move(value));
    else if (!kwargs.empty()) refuse("{}: {} follows one that is given by name", source_, what);
    else args.push_back(std::move(value));
  }

  // Whether the node gives its one output itself, and not a tuple of it.
  bool gives_one(const Json& json, const Json::Array& outputs, const std::string& name,
                 const Target& target) const {
    if (const Json* single = json.find("is_hop_single_tensor_return"); single && single->is_bool())
      return single->as_bool();
    if (outputs.size() != 1) return false;
    if (const Operator* op = target.op(); op && !op->def().higher_order)
      return op->schema().returns.size() == 1;
    const Variant only = variant_of(outputs[0], "node output");
    if (only.is("as_none") || only.is("as_tensors")) return true;
    return name_in(only.value) == name;
  }

  void define_outputs(const Json& json, const Json::Array& outputs, const std::string& name, Node& node) {
    if (outputs.empty()) return;
    const bool is_one = gives_one(json, outputs, name, node.target());
    if (json.find("is_hop_single_tensor_return") && json.at("is_hop_single_tensor_return").is_bool())
      node.meta().extra.set(kSingleNote, is_one);
    if (is_one) {
      define_result(outputs[0], node, name);
      return;
    }
    ValueList notes;
    for (size_t i = 0; i < outputs.size(); ++i) notes.push_back(define_item(outputs[i], node, i, name));
    node.meta().value = Value::tuple(std::move(notes));
  }

  // The node is what this output says.
  void define_result(const Json& output, Node& node, const std::string& name) {
    const Variant result = variant_of(output, "node output");
    if (result.is("as_none")) {
      // The schema of an operator that weft lacks does not say.
      if (node.target().is_missing()) node.meta().extra.set(kNoneNote, true);
      return;
    }
    if (result.is("as_tensors") || result.is("as_optional_tensors")) {
      node.meta().value = define_list(result, node, name);
      return;
    }
    const std::string value_name = name_in(result.value);
    define(value_name, node);
    note(node, std::string(result.name), value_name);
  }

  Value define_list(const Variant& list, Node& node, const std::string& name) {
    ValueList notes;
    size_t i = 0;
    for (const Json& element : list.value.as_array()) {
      // An optional tensor is a union of its own.
      Json tensor;
      if (list.is("as_tensors")) tensor = variant("as_tensor", element);
      notes.push_back(define_item(list.is("as_tensors") ? tensor : element, node, i++, name));
    }
    return Value::list(std::move(notes));
  }

  // Item i of what the node gives. Items that nobody used in the program have no node of their own.
  Value define_item(const Json& output, Node& node, size_t i, const std::string& name) {
    const Variant item = variant_of(output, "node output");
    if (item.is("as_none")) return {};
    if (item.is("as_tensors") || item.is("as_optional_tensors")) {
      Node& list = graph_.call_function("operator.getitem", {value_of(node), i});
      list.meta().value = define_list(item, list, fmt::format("{}_unused_{}", name, i));
      return list.meta().value;
    }
    const std::string value_name = name_in(item.value);
    if (value_name == fmt::format("{}_unused_{}", name, i))
      return note_of(std::string(item.name), value_name, nullptr, nullptr);
    Node& get = graph_.create(NodeKind::kCallFunction, python_function("operator.getitem"),
                              {value_of(node), i}, {}, value_name);
    define(value_name, get);
    note(get, std::string(item.name), value_name);
    get.meta().modules = node.meta().modules;
    return get.meta().value;
  }

  // "L__self__,,Net;L__self___fc,fc,torch.nn.modules.linear.Linear": key, path and class of each module.
  static ModuleStack modules_in(const std::string& text) {
    std::vector<ModuleScope> scopes;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(';', at), text.size());
      const std::string entry = text.substr(at, end - at);
      // Keys and paths may have calls in them, with commas between their arguments.
      std::vector<std::string> parts(1);
      int depth = 0;
      for (char c : entry) {
        if (c == '(' || c == '[') ++depth;
        if (c == ')' || c == ']') --depth;
        if (c == ',' && depth <= 0 && parts.size() < 3) parts.emplace_back();
        else parts.back() += c;
      }
      if (parts.size() == 3) scopes.push_back({parts[1], parts[2], call_in(parts[0])});
      at = end + 1;
    }
    return scopes;
  }

  // The key of a module that was called before ends in "@1", "@2", ...
  static int64_t call_in(const std::string& key) {
    const size_t at = key.rfind('@');
    int64_t call = 0;
    if (at != key.npos) std::from_chars(key.data() + at + 1, key.data() + key.size(), call);
    return call;
  }

  void read_notes(const Json& metadata, Node& node) {
    for (const auto& [key, value] : metadata.as_object()) {
      if (!value.is_string()) refuse("{}: node '{}': its note '{}' is no string", source_, node.name(), key);
      if (key == "stack_trace") {
        node.meta().source = value.as_string();
        continue;
      }
      if (key == "nn_module_stack") {
        // Nodes of one call share the stack.
        auto [known, is_new] = stacks_.try_emplace(value.as_string());
        if (is_new) known->second = modules_in(value.as_string());
        node.meta().modules = known->second;
      }
      node.meta().extra.set(key, value.as_string());
    }
  }

  const std::string& source_;
  Symbols& symbols_;
  Devices& devices_;
  GraphReader& reader_;
  const Json& json_;
  int depth_;
  Graph graph_;
  GraphModule::Attributes attributes_;
  std::unordered_map<std::string, Node*> values_;
  std::unordered_set<std::string> graph_names_;
  std::unordered_map<std::string, ModuleStack> stacks_;
};

}  // namespace

GraphModule GraphReader::read(const Json& graph, const std::vector<std::string>& input_names,
                              const std::vector<sym::Source>& input_sources, int depth) {
  return Builder(source_, symbols_, devices_, *this, graph, depth).run(input_names, input_sources);
}

}  // namespace weft::pt2
