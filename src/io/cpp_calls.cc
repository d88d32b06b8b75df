#include "io/cpp_calls.h"

#include <algorithm>
#include <map>

#include "graph/operator_call.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"
#include "weft/graph/graph.h"
#include "weft/ops/functions.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

// The number that a tensor stands for where an operator takes numbers as tensors.
std::optional<Value> wrapped_number_in(const Value& value) {
  if (!value.is_tensor()) return std::nullopt;
  const Tensor& tensor = value.tensor_ref();
  const bool is_number =
      (tensor.flags() & tensor_flag::kWrappedNumber) && tensor.dim() == 0 && tensor.storage()->has_memory();
  if (!is_number) return std::nullopt;
  MaskScope below(0);
  return Value(tensor.item());
}

// --- typed functions -------------------------------------------------------------------------------------

std::string function_name(const Operator& op) {
  static const std::unordered_set<std::string_view> reserved = {"and",   "or",  "not",  "xor",   "default",
                                                                "float", "int", "bool", "double"};
  const std::string& name = op.schema().name;
  return reserved.contains(name) ? name + "_" : name;
}

bool has_typed_function(const Operator& op) {
  return op.signature() && op.form() != OpForm::kOut && !op.def().higher_order;
}

// The typed functions of a C++ name.
const std::vector<const Operator*>& functions_named(const std::string& name) {
  static const auto* all = [] {
    auto* by_name = new std::map<std::string, std::vector<const Operator*>>;
    for (const Operator* op : all_operators())
      if (has_typed_function(*op)) (*by_name)[function_name(*op)].push_back(op);
    return by_name;
  }();
  return all->at(name);
}

std::vector<std::optional<std::string>> parameter_types(const Operator& op) {
  std::vector<std::optional<std::string>> types;
  for (const Argument& argument : op.schema().arguments) types.push_back(cpp_type(argument.type));
  return types;
}

size_t required_count(const Operator& op) {
  const std::vector<Argument>& arguments = op.schema().arguments;
  size_t required = arguments.size();
  while (required > 0 && arguments[required - 1].default_value) --required;
  return required;
}

// Whether a call with the first `count` arguments of `op` could mean another function.
bool is_ambiguous(const Operator& op, size_t count) {
  auto own = parameter_types(op);
  for (const Operator* other : functions_named(function_name(op))) {
    auto types = parameter_types(*other);
    if (other == &op || types.size() < count || required_count(*other) > count) continue;
    if (std::equal(own.begin(), own.begin() + static_cast<ptrdiff_t>(count), types.begin())) return true;
  }
  return false;
}

// How many arguments a call must give.
size_t needed_arguments(const Operator& op, const ValueList& args) {
  const Operator::Info& info = op.info();
  size_t needed = args.size();
  while (needed > 0 && info.schema.arguments[needed - 1].default_value &&
         args[needed - 1] == info.defaults[needed - 1] && !is_ambiguous(op, needed - 1))
    --needed;
  return needed;
}

Held held_result(const Operator& op) {
  const std::vector<Return>& returns = op.schema().returns;
  if (returns.empty()) return Held::kNothing;
  auto is_tensor = [](const Return& result) { return result.type.is_tensor(); };
  if (returns.size() > 1)
    return std::all_of(returns.begin(), returns.end(), is_tensor) ? Held::kTuple : Held::kValue;
  const Type& type = returns[0].type;
  if (type.is_tensor()) return Held::kTensor;
  return type.is_list() && type.element().is_tensor() ? Held::kTensors : Held::kValue;
}

std::string quoted_name(const Operator& op) {
  return fmt::format("weft::operator_named({})", cpp_string(op.name()));
}

}  // namespace

// --- arguments -------------------------------------------------------------------------------------------

const Local& CallWriter::local(const Node& node) const {
  auto found = locals_.find(&node);
  require(found != locals_.end(),
          "to_folder: '{}' is used as a value, but a call of '{}' gives none that C++ can hold", node.name(),
          node.target().to_string());
  return found->second;
}

std::optional<std::string> CallWriter::from_local(const Type& type, const Node& node) const {
  const Local& local = this->local(node);
  if (type.is_tensor()) {
    if (local.held == Held::kTensor) return local.name;
    if (local.held != Held::kValue) return std::nullopt;
    // What is not known to be a tensor may be a size, which operators take for one.
    const NodeMeta* meta = node.meta_or_null();
    return meta && meta->value.is_tensor() ? local.name + ".to_tensor()"
                                           : fmt::format("weft::number_as_tensor({})", local.name);
  }
  if (type.is_list() && type.element().is_tensor() && local.held == Held::kTensors) return local.name;
  if (local.held != Held::kValue) return std::nullopt;
  switch (type.kind()) {
    case Type::Kind::kScalar:
      return local.name + ".to_scalar()";
    case Type::Kind::kInt:
      return local.name + ".to_int()";
    case Type::Kind::kSymInt:
      return local.name + ".to_sym_int()";
    case Type::Kind::kFloat:
      return local.name + ".to_double()";
    case Type::Kind::kBool:
      return local.name + ".to_bool()";
    default:
      return std::nullopt;
  }
}

// `exact` spells the type out: then no other overload fits as well.
std::optional<std::string> CallWriter::plain_argument(const Type& type, const Value& value,
                                                      bool exact) const {
  if (const Node* node = node_in(value)) return from_local(type, *node);
  if (type.is_list()) return list_argument(type, value, exact);
  if (type.is_tensor()) {
    if (value.is_none()) return "Tensor()";
    std::optional<Value> number = wrapped_number_in(value);
    return number ? std::optional(fmt::format("weft::number_as_tensor({})", *cpp_constant(*number)))
                  : std::nullopt;
  }
  std::optional<std::string> text = cpp_constant(value);
  if (!text || value.is_none()) return std::nullopt;
  switch (type.kind()) {
    case Type::Kind::kScalar:
      return exact ? fmt::format("Scalar({})", *text) : *text;
    case Type::Kind::kInt:
      return exact ? fmt::format("int64_t({})", *text) : *text;
    case Type::Kind::kSymInt:
      return exact ? fmt::format("SymInt({})", *text) : *text;
    case Type::Kind::kFloat:
      return cpp_double(value.to_double());
    case Type::Kind::kString:
      return exact ? fmt::format("std::string_view({})", *text) : *text;
    case Type::Kind::kGenerator:
      return std::nullopt;
    default:
      return text;
  }
}

std::optional<std::string> CallWriter::list_argument(const Type& type, const Value& value, bool exact) const {
  const Type& element = type.element().is_optional() ? type.element().element() : type.element();
  ValueList elements;
  if (value.is_sequence()) elements = value.elements();
  else if (type.list_size()) elements.assign(static_cast<size_t>(*type.list_size()), value);
  else return std::nullopt;
  std::string text;
  for (const Value& one : elements) {
    std::optional<std::string> own = plain_argument(element, one, false);
    if (!own) return std::nullopt;
    text += (text.empty() ? "" : ", ") + *own;
  }
  const bool is_array = element.is(Type::Kind::kBool);
  return fmt::format("{}{{{}}}", exact || is_array ? *cpp_type(type) : "", text);
}

std::optional<std::string> CallWriter::argument(const Type& type, const Value& value, bool exact) const {
  std::optional<std::string> name = cpp_type(type);
  if (!name) return std::nullopt;
  if (!type.is_optional() || type.element().is_tensor())
    return plain_argument(type.is_optional() ? type.element() : type, value, exact);
  if (value.is_none()) return exact ? *name + "()" : "std::nullopt";
  std::optional<std::string> text = plain_argument(type.element(), value, exact);
  return text && exact ? fmt::format("{}({})", *name, *text) : text;
}

std::string CallWriter::value(const Node& node, const Value& value) const {
  if (const Node* input = node_in(value)) {
    const Local& own = local(*input);
    return own.held == Held::kTensors || own.held == Held::kTuple
               ? fmt::format("weft::to_value({})", own.name)
               : own.name;
  }
  if (value.is_sequence())
    return fmt::format("Value::{}({{{}}})", value.is_list() ? "list" : "tuple",
                       values(node, value.elements()));
  if (value.is_dict()) {
    std::string entries;
    for (const auto& [key, element] : value.to_dict())
      entries += fmt::format("{}{{{}, {}}}", entries.empty() ? "" : ", ", this->value(node, key),
                             this->value(node, element));
    return fmt::format("Dict{{{}}}", entries);
  }
  if (const Operator* op = operator_in(value))
    return fmt::format("weft::operator_value({})", quoted_name(*op));
  if (std::optional<Value> number = wrapped_number_in(value))
    return fmt::format("weft::number_as_tensor({})", *cpp_constant(*number));
  std::optional<std::string> text = cpp_constant(value);
  require(
      text.has_value(),
      "to_folder: node '{}' has {} among its arguments ({}), which has no C++ form; make it an attribute of "
      "the module, or a node",
      node.name(), value.kind_name(), value.to_string());
  return *text;
}

std::string CallWriter::values(const Node& node, Args values) const {
  std::string text;
  for (const Value& one : values) text += (text.empty() ? "" : ", ") + value(node, one);
  return text;
}

// --- operators -------------------------------------------------------------------------------------------

std::optional<std::string> CallWriter::typed_call(const Operator& op, const ValueList& args) const {
  if (!has_typed_function(op)) return std::nullopt;
  const bool exact = functions_named(function_name(op)).size() > 1;
  std::string text;
  size_t needed = needed_arguments(op, args);
  for (size_t i = 0; i < needed; ++i) {
    const Argument& wanted = op.schema().arguments[i];
    std::optional<std::string> own = argument(wanted.type, args[i], exact);
    if (!own) return std::nullopt;
    text += text.empty() ? "" : ", ";
    text += wanted.is_reduction() ? fmt::format("weft::Reduction({})", *own) : *own;
  }
  return fmt::format("weft::{}({})", function_name(op), text);
}

Expression CallWriter::operator_call(const Node& node, const Operator& op, const ValueList& args) const {
  const Held held = held_result(op);
  if (held != Held::kValue)
    if (std::optional<std::string> typed = typed_call(op, args)) return {*typed, held};
  std::string call = fmt::format("weft::call({}, {{{}}})", quoted_name(op), values(node, args));
  if (held == Held::kTensor) return {call + ".to_tensor()", held};
  if (held == Held::kTensors) return {fmt::format("weft::from_value<std::vector<Tensor>>({})", call), held};
  return {call, held == Held::kNothing ? held : Held::kValue};
}

// --- methods ---------------------------------------------------------------------------------------------

// Which overload a method is follows from what its arguments are, where that is known here.
Expression CallWriter::method_call(const Node& node) const {
  std::vector<std::pair<Tensor, Node*>> twins;
  bool known = true;
  auto twin = [&](const Value& value) {
    return map_nodes(value, [&](Node& input) {
      known &= local(input).held == Held::kTensor;
      twins.emplace_back(empty({0}), &input);
      return Value(twins.back().first);
    });
  };
  ValueList args;
  Kwargs kwargs;
  for (const Value& arg : node.args()) args.push_back(twin(arg));
  for (const auto& [name, value] : node.kwargs()) kwargs.emplace_back(name, twin(value));
  const std::string base = "aten::" + node.target().to_string();
  if (!known) {
    require(node.kwargs().empty(),
            "to_folder: node '{}' calls a method with arguments by name on a value of unknown type",
            node.name());
    return {fmt::format("weft::call_bound(weft::resolve_overload({}, ValueList{{{}}}))", cpp_string(base),
                        values(node, node.args())),
            Held::kValue};
  }
  BoundCall bound = resolve_overload(base, args, kwargs);
  auto back = [&](const Tensor& tensor) -> Value {
    for (const auto& [twin, input] : twins)
      if (tensor.is_same(twin)) return value_of(*input);
    return tensor;
  };
  for (size_t i = 0; i < bound.args.size(); ++i) {
    bound.args[i] = map_tensors(bound.args[i], back);
    if (bound.op->info().is_tensor[i] == 1 && bound.args[i].is_number())
      bound.args[i] = number_as_tensor(bound.args[i]);
  }
  return operator_call(node, *bound.op, bound.args);
}

// --- functions on values ---------------------------------------------------------------------------------

bool CallWriter::holds_tensor(const Value& value) const {
  const Node* node = node_in(value);
  return node && local(*node).held == Held::kTensor;
}

// An item of what is no Value.
std::optional<Expression> CallWriter::item(const Node& node) const {
  if (node.args().size() != 2) return std::nullopt;
  const Node* from = node_in(node.args()[0]);
  const Value& key = node.args()[1];
  if (!from || key.kind() != Value::Kind::kInt) return std::nullopt;
  const Local& own = local(*from);
  const int64_t at = key.to_int();
  if (own.held == Held::kTuple) {
    const auto count = static_cast<int64_t>(from->target().op()->schema().returns.size());
    require(at >= -count && at < count, "to_folder: node '{}' takes item {} of the {} that '{}' gives",
            node.name(), at, count, from->name());
  }
  if (own.held == Held::kTuple && at >= 0)
    return Expression{fmt::format("std::get<{}>({})", at, own.name), Held::kTensor};
  const NodeMeta* meta = node.meta_or_null();
  if (own.held == Held::kValue && from->target().op() && at >= 0) {
    const bool is_tensor = meta && meta->value.is_tensor();
    return Expression{fmt::format("{}.elements().at({}){}", own.name, at, is_tensor ? ".to_tensor()" : ""),
                      is_tensor ? Held::kTensor : Held::kValue};
  }
  if (own.held == Held::kTensors && at > INT64_MIN)
    return Expression{at >= 0 ? fmt::format("{}.at({})", own.name, at)
                              : fmt::format("{0}.at({0}.size() - {1})", own.name, -at),
                      Held::kTensor};
  return std::nullopt;
}

Expression CallWriter::function_call(const Node& node, const PythonFunction& function) const {
  const ValueList& args = node.args();
  const bool is_item = function.symbol == "[]";
  if (is_item)
    if (std::optional<Expression> found = item(node)) return *found;
  const bool of_tensors =
      !function.symbol.empty() &&
      std::any_of(args.begin(), args.end(), [&](const Value& a) { return holds_tensor(a); });
  static const std::unordered_set<std::string_view> signs = {"+", "-", "*", "/"};
  if (args.size() == 2 && holds_tensor(args[0]) && signs.contains(function.symbol) &&
      (holds_tensor(args[1]) || args[1].is_number()))
    return {fmt::format("{} {} {}", value(node, args[0]), function.symbol, value(node, args[1])),
            Held::kTensor};
  std::string call = fmt::format("weft::python_function({}).run(ValueList{{{}}})", cpp_string(function.name),
                                 values(node, args));
  if (function.has_effect) return {call, Held::kNothing};
  const NodeMeta* meta = node.meta_or_null();
  const bool is_noted = meta && !meta->value.is_none();
  const bool gives_tensor = is_noted ? meta->value.is_tensor() : of_tensors;
  return {gives_tensor ? call + ".to_tensor()" : call, gives_tensor ? Held::kTensor : Held::kValue};
}

Expression CallWriter::call(const Node& node) const {
  if (node.kind() == NodeKind::kCallMethod) return method_call(node);
  if (const Operator* op = node.target().op()) {
    CompleteCall complete = complete_call(*op, node.args(), node.kwargs());
    return operator_call(node, *complete.op, complete.args);
  }
  if (node.target().is_missing())
    unsupported("to_folder: node '{}' calls {}, which weft does not have; define it first", node.name(),
                node.target().operator_name());
  require(node.target().function() && node.kwargs().empty(),
          "to_folder: node '{}' calls '{}', which is no function of positional arguments", node.name(),
          node.target().to_string());
  return function_call(node, *node.target().function());
}

}  // namespace weft
