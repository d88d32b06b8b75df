// The types of the script view, and how graphs and code spell them.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/script_view.h"

namespace weft {
namespace {

using Kind = ScriptType::Kind;

std::string_view dtype_word(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "Bool";
    case DType::kUInt8:
      return "Byte";
    case DType::kInt8:
      return "Char";
    case DType::kInt16:
      return "Short";
    case DType::kInt32:
      return "Int";
    case DType::kInt64:
      return "Long";
    case DType::kFloat16:
      return "Half";
    case DType::kBFloat16:
      return "BFloat16";
    case DType::kFloat32:
      return "Float";
    case DType::kFloat64:
      return "Double";
    case DType::kComplex64:
      return "ComplexFloat";
    case DType::kComplex128:
      return "ComplexDouble";
  }
  return "Tensor";
}

std::string number_or_any(int64_t number) { return number < 0 ? "*" : std::to_string(number); }

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string tensor_text(const ScriptType& type) {
  if (!type.dtype) return "Tensor";
  std::vector<std::string> parts;
  if (type.sizes)
    for (int64_t size : *type.sizes) parts.push_back(number_or_any(size));
  if (type.strides && !type.strides->empty()) {
    std::vector<std::string> strides;
    for (int64_t stride : *type.strides) strides.push_back(number_or_any(stride));
    parts.push_back("strides=[" + joined(strides) + "]");
  }
  if (type.requires_grad) parts.push_back(*type.requires_grad ? "requires_grad=1" : "requires_grad=0");
  if (type.device) parts.push_back("device=" + type.device->to_string());
  return fmt::format("{}({})", dtype_word(*type.dtype), joined(parts));
}

// The words of the kinds that need nothing else to be said: in graphs, and in code where that differs.
std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kBool:
      return "bool";
    case Kind::kComplex:
      return "complex";
    case Kind::kScalar:
      return "Scalar";
    case Kind::kString:
      return "str";
    case Kind::kDevice:
      return "Device";
    case Kind::kGenerator:
      return "Generator";
    case Kind::kNone:
      return "NoneType";
    case Kind::kFunction:
      return "Function";
    case Kind::kTensor:
      return "Tensor";
    default:
      return "Any";
  }
}

template <typename Spell>
std::string joined_types(const std::vector<ScriptType>& types, Spell spell) {
  std::string text;
  for (const ScriptType& type : types) text += (text.empty() ? "" : ", ") + spell(type);
  return text;
}

std::vector<int64_t> plain_or_any(SymIntSpan numbers) {
  std::vector<int64_t> result;
  result.reserve(numbers.size());
  for (const SymInt& number : numbers) result.push_back(number.is_symbolic() ? -1 : number.plain());
  return result;
}

// Asks the representation: looking at a tensor that is being captured must not be captured.
ScriptType type_of_tensor(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  ScriptType type;
  type.dtype = impl.dtype();
  type.sizes = plain_or_any(impl.sizes());
  type.strides = plain_or_any(impl.strides());
  type.requires_grad = tensor.requires_grad();
  type.device = impl.device();
  return type;
}

// Of the elements of a list or dictionary: what they have in common.
ScriptType common_type(const std::vector<ScriptType>& types) {
  if (types.empty()) return {};
  ScriptType common = types[0].erased();
  for (const ScriptType& type : types)
    if (type.erased() != common) return {.kind = Kind::kAny};
  return common;
}

}  // namespace

ScriptType ScriptType::list(ScriptType element) {
  return {.kind = Kind::kList, .elements = {std::move(element)}};
}
ScriptType ScriptType::tuple(std::vector<ScriptType> elements) {
  return {.kind = Kind::kTuple, .elements = std::move(elements)};
}
ScriptType ScriptType::dict(ScriptType key, ScriptType value) {
  return {.kind = Kind::kDict, .elements = {std::move(key), std::move(value)}};
}

ScriptType ScriptType::of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return type_of_tensor(value.tensor_ref());
    case Value::Kind::kNone:
      return {.kind = Kind::kNone};
    case Value::Kind::kBool:
    case Value::Kind::kSymBool:
      return {.kind = Kind::kBool};
    case Value::Kind::kInt:
    case Value::Kind::kSymInt:
    case Value::Kind::kDType:
    case Value::Kind::kLayout:
    case Value::Kind::kMemoryFormat:
      return {.kind = Kind::kInt};
    case Value::Kind::kDouble:
    case Value::Kind::kSymFloat:
      return {.kind = Kind::kFloat};
    case Value::Kind::kComplex:
      return {.kind = Kind::kComplex};
    case Value::Kind::kString:
      return {.kind = Kind::kString};
    case Value::Kind::kDevice:
      return {.kind = Kind::kDevice};
    case Value::Kind::kGenerator:
      return {.kind = Kind::kGenerator};
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      std::vector<ScriptType> types;
      for (const Value& element : value.elements()) types.push_back(of(element));
      return value.is_list() ? list(common_type(types)) : tuple(std::move(types));
    }
    case Value::Kind::kDict: {
      std::vector<ScriptType> keys, values;
      for (const auto& [key, element] : value.to_dict()) {
        keys.push_back(of(key));
        values.push_back(of(element));
      }
      return dict(keys.empty() ? ScriptType{.kind = Kind::kString} : common_type(keys), common_type(values));
    }
    case Value::Kind::kObject:
      return {.kind = value.object_of(ValueObject::Role::kCallable) ? Kind::kFunction : Kind::kAny};
  }
  return {.kind = Kind::kAny};
}

bool ScriptType::is_complete_tensor() const {
  auto is_known = [](const std::optional<std::vector<int64_t>>& numbers) {
    return numbers && std::ranges::none_of(*numbers, [](int64_t number) { return number < 0; });
  };
  return is(Kind::kTensor) && dtype && device && is_known(sizes) && is_known(strides);
}

ScriptType ScriptType::erased() const {
  ScriptType type{.kind = kind, .name = name};
  for (const ScriptType& element : elements) type.elements.push_back(element.erased());
  return type;
}

std::string ScriptType::to_string() const {
  auto spell = [](const ScriptType& type) { return type.to_string(); };
  switch (kind) {
    case Kind::kTensor:
      return tensor_text(*this);
    case Kind::kClass:
      return name;
    case Kind::kOptional:
      return elements[0].to_string() + "?";
    case Kind::kList:
      return elements[0].to_string() + "[]";
    case Kind::kTuple:
      return "(" + joined_types(elements, spell) + ")";
    case Kind::kDict:
      return "Dict(" + joined_types(elements, spell) + ")";
    case Kind::kFuture:
      return "Future[" + elements[0].to_string() + "]";
    default:
      return std::string(word(kind));
  }
}

std::string ScriptType::annotation() const {
  auto spell = [](const ScriptType& type) { return type.annotation(); };
  switch (kind) {
    case Kind::kScalar:
      return "number";
    case Kind::kClass:
      return name;
    case Kind::kOptional:
      return "Optional[" + elements[0].annotation() + "]";
    case Kind::kList:
      return "List[" + elements[0].annotation() + "]";
    case Kind::kTuple:
      return elements.empty() ? "Tuple[()]" : "Tuple[" + joined_types(elements, spell) + "]";
    case Kind::kDict:
      return "Dict[" + joined_types(elements, spell) + "]";
    case Kind::kFuture:
      return "Future[" + elements[0].annotation() + "]";
    default:
      return std::string(word(kind));
  }
}

}  // namespace weft
