// The arguments of the script view: what stands inside a node's arguments becomes lines of its own.
#include "graph/script/lowering.h"
#include "weft/base/error.h"

namespace weft {

using Kind = ScriptType::Kind;

const Value& noted_value(const Node& node) {
  static const Value none;
  const NodeMeta* meta = node.meta_or_null();
  return meta ? meta->value : none;
}

const Value* noted_extra(const Node& node, std::string_view name) {
  const NodeMeta* meta = node.meta_or_null();
  return meta && !meta->extra.empty() ? meta->extra.find(Value(name)) : nullptr;
}

ScriptType noted_type(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return {};
  if (!meta->value.is_none()) return ScriptType::of(meta->value);
  return meta->type ? script_type_of(*meta->type) : ScriptType();
}

ScriptType number_tensor_type(DType dtype, std::optional<bool> requires_grad) {
  ScriptType type;
  type.dtype = dtype;
  type.sizes.emplace();
  type.strides.emplace();
  type.requires_grad = requires_grad;
  type.device = kCpu;
  return type;
}

ScriptType script_type_of(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::kTensor:
      return {};
    case Type::Kind::kInt:
    case Type::Kind::kSymInt:
    case Type::Kind::kScalarType:
    case Type::Kind::kLayout:
    case Type::Kind::kMemoryFormat:
      return {.kind = Kind::kInt};
    case Type::Kind::kFloat:
    case Type::Kind::kSymFloat:
      return {.kind = Kind::kFloat};
    case Type::Kind::kBool:
    case Type::Kind::kSymBool:
      return {.kind = Kind::kBool};
    case Type::Kind::kScalar:
      return {.kind = Kind::kScalar};
    case Type::Kind::kComplex:
      return {.kind = Kind::kComplex};
    case Type::Kind::kString:
      return {.kind = Kind::kString};
    case Type::Kind::kDevice:
      return {.kind = Kind::kDevice};
    case Type::Kind::kGenerator:
      return {.kind = Kind::kGenerator};
    case Type::Kind::kNone:
      return {.kind = Kind::kNone};
    case Type::Kind::kOptional:
      return {.kind = Kind::kOptional, .elements = {script_type_of(type.element())}};
    case Type::Kind::kList:
      return ScriptType::list(script_type_of(type.element()));
    case Type::Kind::kTuple: {
      std::vector<ScriptType> elements;
      for (const Type& element : type.elements()) elements.push_back(script_type_of(element));
      return ScriptType::tuple(std::move(elements));
    }
    case Type::Kind::kDict:
      return ScriptType::dict(script_type_of(type.elements()[0]), script_type_of(type.elements()[1]));
    case Type::Kind::kClass:
      return {.kind = Kind::kClass, .name = type.name()};
    default:
      return {.kind = Kind::kAny};
  }
}

namespace {

bool is_number(const ScriptType& type) {
  return type.is(Kind::kInt) || type.is(Kind::kFloat) || type.is(Kind::kBool) || type.is(Kind::kScalar);
}

DType tensor_dtype(const ScriptType& number) {
  if (number.is(Kind::kBool)) return kBool;
  return number.is(Kind::kFloat) ? kFloat64 : kInt64;
}

// A number as the schema wants it: a real one where the program gave an integer.
Value coerced(const Value& value, const Type& wanted) {
  if (!value.is_number()) return value;
  if (wanted.is(Type::Kind::kFloat) || wanted.is(Type::Kind::kSymFloat)) return value.to_double();
  bool wants_int = wanted.is(Type::Kind::kInt) || wanted.is(Type::Kind::kSymInt);
  return wants_int && value.kind() == Value::Kind::kBool ? Value(value.to_int()) : value;
}

bool is_plain(const Value& value) {
  return !node_in(value) && !value.is_tensor() && !value.is_sequence() && !value.is_dict();
}

// What tensors nobody owns are called by whoever captures them.
bool has_constant_name(std::string_view path) {
  return path.starts_with("_tensor_constant") || path.starts_with("_param_constant");
}

}  // namespace

ScriptLowering::Inputs ScriptLowering::arguments(const Operator& op, const ValueList& values) {
  Inputs inputs;
  const std::vector<Argument>& wanted = op.schema().arguments;
  for (size_t i = 0; i < values.size(); ++i) inputs.push_back(argument(values[i], &wanted[i].type));
  return inputs;
}

ScriptLowering::Inputs ScriptLowering::arguments(const Node& node, size_t first) {
  Inputs inputs;
  for (size_t i = first; i < node.args().size(); ++i) inputs.push_back(argument(node.args()[i], nullptr));
  for (const auto& [key, value] : node.kwargs()) inputs.push_back(argument(value, nullptr));
  return inputs;
}

ScriptValue* ScriptLowering::argument(const Value& value, const Type* wanted) {
  if (wanted && wanted->is_optional()) wanted = &wanted->element();
  if (const Node* node = node_in(value)) return use(*node, wanted);
  if (value.is_none()) return builder_.constant(value);
  if (!wanted) return value.is_sequence() || value.is_dict() ? container(value) : builder_.constant(value);
  if (wanted->is_list()) return list_argument(value, *wanted);
  if (value.is_sequence() || value.is_dict()) return container(value);
  if (!wanted->is_tensor() || !value.is_number()) return builder_.constant(coerced(value, *wanted));
  if (options_.pool_constants) return builder_.constant(value);
  return builder_.constant(value, number_tensor_type(value.to_scalar().dtype()));
}

ScriptValue* ScriptLowering::list_argument(const Value& value, const Type& wanted) {
  // One number for a list of a fixed length stands for all of them.
  ValueList elements(static_cast<size_t>(wanted.list_size().value_or(1)), value);
  if (value.is_sequence()) elements = value.elements();
  ScriptType type = script_type_of(wanted);
  if (options_.pool_constants && std::ranges::all_of(elements, is_plain)) {
    for (Value& element : elements) element = coerced(element, wanted.element());
    return builder_.constant(Value::list(std::move(elements)), std::move(type));
  }
  Inputs inputs;
  for (const Value& element : elements) inputs.push_back(argument(element, &wanted.element()));
  return builder_.made("prim::ListConstruct", std::move(inputs), std::move(type));
}

ScriptValue* ScriptLowering::container(const Value& value) {
  if (value.is_dict()) return dictionary(value.to_dict());
  Inputs inputs;
  std::vector<ScriptType> types;
  for (const Value& element : value.elements()) {
    inputs.push_back(argument(element, nullptr));
    types.push_back(inputs.back()->type);
  }
  if (value.is_tuple())
    return builder_.made("prim::TupleConstruct", std::move(inputs), ScriptType::tuple(std::move(types)));
  ScriptType element = types.empty() ? ScriptType() : types[0].erased();
  return builder_.made("prim::ListConstruct", std::move(inputs), ScriptType::list(std::move(element)));
}

ScriptValue* ScriptLowering::dictionary(const Dict& dict) {
  Inputs inputs;
  for (const auto& [key, value] : dict) {
    inputs.push_back(argument(key, nullptr));
    inputs.push_back(argument(value, nullptr));
  }
  ScriptType key{.kind = Kind::kString}, value;
  if (!dict.empty()) key = inputs[0]->type.erased(), value = inputs[1]->type.erased();
  return builder_.made("prim::DictConstruct", std::move(inputs),
                       ScriptType::dict(std::move(key), std::move(value)));
}

// --- nodes as arguments ----------------------------------------------------------------------------------

ScriptValue* ScriptLowering::use(const Node& node, const Type* wanted) {
  ScriptValue* value = nullptr;
  if (node.kind() == NodeKind::kGetAttr) {
    value = attribute(node);
  } else {
    auto known = lowered_.find(&node);
    require(known != lowered_.end(),
            "node '{}' is used before it is made; call legalize() on the graph first", node.name());
    value = whole(known->second);
  }
  if (!wanted) return in_output_ && is_number(value->type) ? as_tensor(value) : value;
  if (!wanted->is_list() || value->type.is(Kind::kList)) return converted(value, *wanted);
  ScriptValue* element = converted(value, wanted->element());
  Inputs inputs(static_cast<size_t>(wanted->list_size().value_or(1)), element);
  return builder_.made("prim::ListConstruct", std::move(inputs), script_type_of(*wanted));
}

ScriptValue* ScriptLowering::as_tensor(ScriptValue* number) {
  return builder_.value("prim::NumToTensor", {number},
                        number_tensor_type(tensor_dtype(number->type), std::nullopt));
}

ScriptValue* ScriptLowering::converted(ScriptValue* value, const Type& wanted) {
  if (wanted.is_tensor()) return is_number(value->type) ? as_tensor(value) : value;
  if (!value->type.is(Kind::kTensor)) return value;
  switch (wanted.kind()) {
    case Type::Kind::kInt:
    case Type::Kind::kSymInt:
      return builder_.conversion(*value, "Int", {.kind = Kind::kInt});
    case Type::Kind::kFloat:
    case Type::Kind::kSymFloat:
      return builder_.conversion(*value, "Float", {.kind = Kind::kFloat});
    case Type::Kind::kBool:
    case Type::Kind::kSymBool:
      return builder_.conversion(*value, "Bool", {.kind = Kind::kBool});
    case Type::Kind::kScalar:
      return builder_.conversion(*value, "ScalarImplicit", {.kind = Kind::kScalar});
    default:
      return value;
  }
}

ScriptValue* ScriptLowering::whole(const Lowered& lowered) {
  if (lowered.value) return lowered.value;
  Inputs inputs;
  std::vector<ScriptType> types;
  for (const Lowered& item : lowered.items) {
    inputs.push_back(whole(item));
    types.push_back(inputs.back()->type);
  }
  return builder_.made("prim::TupleConstruct", std::move(inputs), ScriptType::tuple(std::move(types)));
}

ScriptValue* ScriptLowering::attribute(const Node& node) {
  std::string path = node.target().to_string();
  const Value* constant = noted_extra(node, "constant");
  bool is_constant = options_.self_type.empty() || has_constant_name(path) ||
                     (constant && constant->is_bool() && constant->to_bool());
  return is_constant ? attribute_constant(node, path) : builder_.tensor_attribute(path, noted_type(node));
}

Value found_in(const nn::Module* root, const std::string& path) {
  if (!root) return {};
  try {
    return root->find(path);
  } catch (const UserError&) {
    return {};
  }
}

ScriptValue* ScriptLowering::attribute_constant(const Node& node, const std::string& path) {
  for (ScriptBlock* block = &builder_.block(); block; block = block->parent)
    if (auto known = block->constants.find(&node); known != block->constants.end()) return known->second;
  Value value = found_in(options_.root, path);
  if (value.is_none()) value = noted_value(node);
  ScriptValue* made = callable_in(value) ? builder_.function(path) : builder_.constant(value);
  return builder_.block().constants[&node] = made;
}

}  // namespace weft
