// From the graph to the script view: nodes become lines.
#include "weft/graph/script_view.h"

#include <algorithm>

#include "graph/script/lowering.h"
#include "weft/base/error.h"
#include "weft/ops/overloads.h"

namespace weft {

using Kind = ScriptType::Kind;

namespace {

bool is_getitem(const Node& node) {
  static const PythonFunction& getitem = python_function("operator.getitem");
  return node.target().function() == &getitem && node.args().size() == 2;
}

// What an operator gives: a tensor as the node notes it, anything else as the schema says.
ScriptType result_type(const Type& type, const Value& noted) {
  return type.is_tensor() && noted.is_tensor() ? ScriptType::of(noted) : script_type_of(type);
}

const Value& noted_item(const Value& noted, size_t i) {
  static const Value none;
  return noted.is_sequence() && i < noted.elements().size() ? noted.elements()[i] : none;
}

// "size" for "sym_size": TorchScript has one operator for numbers that are symbols and for those that are
// not.
std::string plain_name(const std::string& name) {
  constexpr std::string_view kSymbolic = "sym_";
  return name.starts_with(kSymbolic) ? name.substr(kSymbolic.size()) : name;
}

std::string kind_of(const Schema& schema) { return fmt::format("{}::{}", schema.ns, schema.name); }

}  // namespace

ScriptLowering::ScriptLowering(const Graph& graph, const ScriptOptions& options)
    : graph_(graph), options_(options), builder_(options) {}

ScriptProgram ScriptLowering::run() {
  note_classes();
  for (const Node& node : graph_) {
    if (node.kind() != NodeKind::kPlaceholder) continue;
    std::string name = node.target().to_string();
    std::erase(name, '*');
    lowered_[&node] = {builder_.input(name, noted_type(node))};
  }
  for (const Node& node : graph_) lower(node);
  if (!builder_.program().output) {
    builder_.begin_output();
    builder_.program().output = builder_.constant(Value());
  }
  return std::move(builder_.program());
}

void ScriptLowering::note_classes() {
  if (options_.self_type.empty()) return;
  if (options_.root) builder_.note_types(*options_.root);
  for (const Node& node : graph_) {
    const NodeMeta* meta = node.meta_or_null();
    if (!meta || meta->modules.empty()) continue;
    const std::string root = prefix_of_children(meta->modules[0]);
    for (const ModuleScope& scope : meta->modules)
      if (scope.path.starts_with(root) && scope.path.size() > root.size())
        builder_.note_class(scope.path.substr(root.size()), scope.class_name);
  }
  if (options_.root) builder_.note_classes(*options_.root);
}

void ScriptLowering::lower(const Node& node) {
  switch (node.kind()) {
    case NodeKind::kPlaceholder:
      builder_.begin_output();
      return take_apart(node, lowered_.at(&node));
    case NodeKind::kGetAttr:
      return;  // read where it is used
    case NodeKind::kOutput:
      return lower_output(node);
    case NodeKind::kCallModule:
      return lower_module(node);
    case NodeKind::kCallMethod:
      return lower_method(node);
    case NodeKind::kCallFunction:
      if (const Operator* op = node.target().op()) return lower_operator(node, *op);
      return lower_function(node);
  }
}

void ScriptLowering::lower_output(const Node& node) {
  builder_.begin_output();
  in_output_ = true;
  builder_.program().output = argument(node.returned(), nullptr);
  in_output_ = false;
}

// --- operators -------------------------------------------------------------------------------------------

void ScriptLowering::lower_operator(const Node& node, const Operator& op) {
  builder_.begin(node);
  std::string why;
  std::optional<ValueList> placed = place_arguments(op, node.args(), node.kwargs(), &why);
  require(placed.has_value(), "node '{}' cannot be shown: {}; the schema is {}", node.name(), why,
          op.schema_text());
  const std::vector<Return>& returns = op.schema().returns;
  if (returns.size() == 1) {
    const Type& type = returns[0].type;
    if (type.is(Type::Kind::kInt) || type.is(Type::Kind::kSymInt)) return lower_size(node, op, *placed);
    // A tensor's number is the tensor: whoever wants the number asks for it.
    if (type.is(Type::Kind::kScalar) && op.has(Traits::kDataDependent))
      return define(node, {argument((*placed)[0], &op.schema().arguments[0].type)});
  }
  Inputs inputs = arguments(op, *placed);
  bool is_symbolic =
      returns.size() == 1 && returns[0].type.is_list() && returns[0].type.element().is(Type::Kind::kSymInt);
  ScriptNode& line =
      builder_.line(is_symbolic ? fmt::format("{}::{}", op.schema().ns, plain_name(op.schema().name))
                                : kind_of(op.schema()),
                    std::move(inputs));
  line.op = &op;
  const Value& noted = noted_value(node);
  if (returns.size() == 1) return define(node, {builder_.result(line, result_type(returns[0].type, noted))});
  Lowered lowered;
  for (size_t i = 0; i < returns.size(); ++i)
    lowered.items.push_back({builder_.result(line, result_type(returns[i].type, noted_item(noted, i)))});
  define(node, std::move(lowered));
}

void ScriptLowering::lower_size(const Node& node, const Operator& op, const ValueList& args) {
  Inputs inputs = arguments(op, args);
  std::string kind = fmt::format("{}::{}", op.schema().ns, plain_name(op.schema().name));
  ScriptValue* number = builder_.value(std::move(kind), std::move(inputs), {.kind = Kind::kInt});
  define(node, {builder_.value("prim::NumToTensor", {number}, number_tensor_type(kInt64, std::nullopt))});
}

// --- other calls -----------------------------------------------------------------------------------------

void ScriptLowering::lower_function(const Node& node) {
  if (lowered_.contains(&node)) return;  // takes an item of what was taken apart as a whole
  builder_.begin(node);
  if (is_getitem(node)) return lower_getitem(node);
  static const PythonFunction &fork = python_function("weft.fork"), &wait = python_function("weft.wait");
  if (node.target().function() == &fork && !node.args().empty()) return lower_fork(node);
  if (node.target().function() == &wait && node.args().size() == 1)
    return define(node, {builder_.aten("wait", {argument(node.args()[0], nullptr)}, noted_type(node))});
  if (std::string name = called_function(node); !name.empty())
    return name.starts_with('^') ? lower_custom(node, name.substr(1)) : lower_captured(node, name);
  if (node.target().is_missing()) return lower_missing(node);
  if (lower_arithmetic(node)) return;
  std::string name = node.target().to_string();
  lower_custom(node, name.substr(name.rfind('.') + 1));
}

// The name of the function that a node calls as a Value: one among its arguments, or an attribute.
std::string ScriptLowering::called_function(const Node& node) const {
  if (node.args().empty()) return {};
  if (const Callable* own = callable_in(node.args()[0])) return own->type_name();
  static const PythonFunction& call = python_function("weft.call");
  const Node* attribute = node_in(node.args()[0]);
  if (node.target().function() != &call || !attribute || attribute->kind() != NodeKind::kGetAttr) return {};
  std::string path = attribute->target().to_string();
  Value found = found_in(options_.root, path);
  return callable_in(found) ? callable_in(found)->type_name() : path;
}

void ScriptLowering::lower_getitem(const Node& node) {
  ScriptValue* container = argument(node.args()[0], nullptr);
  static const Type kIndex(Type::Kind::kInt);
  ScriptValue* key = argument(node.args()[1], container->type.is(Kind::kDict) ? nullptr : &kIndex);
  define(node, {builder_.aten("__getitem__", {container, key}, noted_type(node))});
}

void ScriptLowering::lower_captured(const Node& node, const std::string& name) {
  Inputs inputs = arguments(node, 1);
  inputs.insert(inputs.begin(), builder_.function(name));
  define(node, {builder_.value("prim::CallFunction", std::move(inputs), noted_type(node))});
}

void ScriptLowering::lower_fork(const Node& node) {
  Inputs inputs = arguments(node, 1);
  ScriptNode& line = builder_.line("prim::fork", std::move(inputs));
  line.source.clear();
  const Node* read = node_in(node.args()[0]);
  Value held = read ? found_in(options_.root, read->target().to_string()) : node.args()[0];
  if (std::optional<GraphModule> body = graph_module_in(held)) {
    ScriptOptions options = options_;
    options.self_type.clear();
    options.root = nullptr;
    line.body = std::make_shared<const ScriptGraph>(script_view(*body, options));
  }
  define(node, {builder_.result(line, {.kind = Kind::kFuture, .elements = {noted_type(node)}})});
}

void ScriptLowering::lower_custom(const Node& node, const std::string& name) {
  Inputs inputs;
  ValueList scalars;
  auto add = [&](const Value& value) {
    bool has_tensors = value.is_tensor();
    for_each_node(value, [&](Node&) { has_tensors = true; });
    if (callable_in(value)) return;
    if (has_tensors) inputs.push_back(argument(value, nullptr));
    else scalars.push_back(value);
  };
  for (const Value& arg : node.args()) add(arg);
  for (const auto& [key, value] : node.kwargs()) add(value);
  ScriptNode& line = builder_.line("prim::PythonOp", std::move(inputs));
  line.function = name;
  line.scalars = std::move(scalars);
  const Value* inplace = noted_extra(node, "inplace");
  line.attributes.emplace_back("inplace", inplace && inplace->is_number() ? inplace->to_int() : 0);
  define(node, {builder_.result(line, noted_type(node))});
}

void ScriptLowering::lower_missing(const Node& node) {
  std::string name = node.target().operator_name();
  name.resize(std::min(name.find('.'), name.size()));  // lines have no overloads
  Inputs inputs = arguments(node, 0);
  define(node, {builder_.value(std::move(name), std::move(inputs), noted_type(node))});
}

void ScriptLowering::lower_module(const Node& node) {
  require(!options_.self_type.empty(),
          "the program calls the module '{}' but has no self; give ScriptOptions a self_type",
          node.target().to_string());
  builder_.begin(node);
  Inputs inputs = arguments(node, 0);
  inputs.insert(inputs.begin(), builder_.module_attribute(node.target().to_string()));
  ScriptNode& line = builder_.line("prim::CallMethod", std::move(inputs));
  line.attributes.emplace_back("name", "forward");
  define(node, {builder_.result(line, noted_type(node))});
}

void ScriptLowering::lower_method(const Node& node) {
  builder_.begin(node);
  Inputs inputs = arguments(node, 0);
  define(node, {builder_.aten(node.target().to_string(), std::move(inputs), noted_type(node))});
}

// --- results ---------------------------------------------------------------------------------------------

void ScriptLowering::define(const Node& node, Lowered lowered) {
  const Value* named = noted_extra(node, "named");
  if (lowered.value && named && named->is_string())
    builder_.name(lowered.value, std::string(named->to_string_view()));
  else if (lowered.value && named && named->is_bool() && named->to_bool())
    builder_.name(lowered.value, node.name());
  take_apart(node, lowered_[&node] = std::move(lowered));
}

void ScriptLowering::take_apart(const Node& node, Lowered& lowered) {
  bool is_sequence = !lowered.items.empty(), is_dict = false;
  if (lowered.value) {
    const ScriptType& type = lowered.value->type;
    is_sequence |= type.is(Kind::kTuple) || type.is(Kind::kList);
    is_dict = type.is(Kind::kDict);
  }
  if (!is_sequence && !is_dict) return;
  // Where nothing tells how many items there are, the highest that is taken does; one that is far out is
  // asked for by itself.
  constexpr int64_t kMostUnpacked = 1 << 16;
  std::vector<Keyed> takers;
  for (Node* user : node.users().list()) {
    if (!is_getitem(*user) || node_in(user->args()[0]) != &node) continue;
    const Value& key = user->args()[1];
    if (node_in(key) || !(is_dict || key.kind() == Value::Kind::kInt)) continue;
    if (is_dict || key.to_int() < kMostUnpacked) takers.emplace_back(key, user);
  }
  if (takers.empty()) return;
  if (is_dict) look_up(node, lowered, takers);
  else unpack(node, lowered, takers);
}

void ScriptLowering::unpack(const Node& node, Lowered& lowered, const std::vector<Keyed>& takers) {
  if (lowered.items.empty()) {
    const ScriptType type = lowered.value->type;
    const Value& noted = noted_value(node);
    size_t count = type.is(Kind::kTuple) ? type.elements.size() : 0;
    if (noted.is_sequence()) count = noted.elements().size();
    for (const auto& [index, taker] : takers)
      if (!noted.is_sequence() && index.to_int() >= 0)
        count = std::max(count, static_cast<size_t>(index.to_int()) + 1);
    ScriptNode& line =
        builder_.line(type.is(Kind::kTuple) ? "prim::TupleUnpack" : "prim::ListUnpack", {lowered.value});
    line.source.clear();
    for (size_t i = 0; i < count; ++i) {
      bool has_type = type.is(Kind::kTuple) && i < type.elements.size();
      ScriptType element = has_type               ? type.elements[i]
                           : type.is(Kind::kList) ? type.elements[0]
                                                  : ScriptType();
      // A list knows of its elements only what they have in common, except that they are these tensors.
      const Value& item = noted_item(noted, i);
      if (item.is_tensor()) element = ScriptType::of(item);
      lowered.items.push_back({builder_.result(line, std::move(element))});
    }
  }
  const auto count = static_cast<int64_t>(lowered.items.size());
  std::vector<std::pair<int64_t, Node*>> order;
  for (const auto& [key, taker] : takers) {
    int64_t index = key.to_int() < 0 ? key.to_int() + count : key.to_int();
    require(index >= 0 && index < count, "node '{}' takes item {} of {}", taker->name(), key.to_int(), count);
    order.emplace_back(index, taker);
  }
  std::ranges::stable_sort(order, {}, &std::pair<int64_t, Node*>::first);
  for (const auto& [index, taker] : order) define(*taker, lowered.items[static_cast<size_t>(index)]);
}

void ScriptLowering::look_up(const Node& node, const Lowered& lowered, const std::vector<Keyed>& takers) {
  ScriptValue* dict = lowered.value;
  const Value& noted = noted_value(node);
  // The keys in the order of the dictionary, which is not that of their uses.
  Dict order;
  if (noted.is_dict())
    for (const auto& [key, value] : noted.to_dict()) order.set(key, Value());
  for (const auto& [key, taker] : takers) order.set(key, Value());
  for (const auto& [key, unused] : order) {
    ScriptValue* item = nullptr;
    for (const auto& [wanted, taker] : takers) {
      if (!(wanted == key)) continue;
      if (!item) {
        ScriptType type = noted_type(*taker);
        if (!type.is(Kind::kTensor)) type = dict->type.elements[1];
        item = builder_.aten("__getitem__", {dict, builder_.constant(key)}, std::move(type));
      }
      define(*taker, {item});
    }
  }
}

// --- the view --------------------------------------------------------------------------------------------

ScriptGraph script_view(const Graph& graph, const ScriptOptions& given) {
  ScriptOptions options = given;
  options.pool_constants |= graph.pools_constants();
  ScriptProgram program = ScriptLowering(graph, options).run();
  return options.inline_calls ? ScriptCalls::inlined(std::move(program), options)
                              : ScriptCalls::separate(std::move(program), options);
}

ScriptGraph script_view(const GraphModule& module, ScriptOptions options) {
  if (!options.root) options.root = &module;
  return script_view(module.graph(), options);
}

std::string script_text(const Graph& graph, const ScriptOptions& options) {
  return script_view(graph, options).to_string();
}
std::string script_text(const GraphModule& module, const ScriptOptions& options) {
  return script_view(module, options).to_string();
}
std::string script_code(const Graph& graph, const ScriptOptions& options) {
  return script_view(graph, options).code();
}
std::string script_code(const GraphModule& module, const ScriptOptions& options) {
  return script_view(module, options).code();
}

}  // namespace weft
