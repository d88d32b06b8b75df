#include "capture/trace_types.h"

#include "weft/base/error.h"
#include "weft/base/warning.h"
#include "weft/core/struct.h"

namespace weft {

namespace {

std::string joined_types(const ValueList& values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + script_type_name(value);
  return text;
}

// Tensors are alike whatever their sizes.
void check_uniform(const ValueList& values, std::string_view what) {
  for (const Value& value : values) {
    std::string first = script_type_name(values[0]), other = script_type_name(value);
    require(first == other, "{} inputs to traced functions must have consistent {}type. Found {} and {}",
            what, what == "List" ? "element " : "", first, other);
  }
}

void check_containers(const Value& value) {
  if (value.is_list()) {
    require(!value.elements().empty(), "List trace inputs must have elements");
    for (const Value& element : value.elements()) check_containers(element);
    check_uniform(value.elements(), "List");
  } else if (value.is_tuple()) {
    for (const Value& element : value.elements()) check_containers(element);
  } else if (value.is_dict()) {
    require(!value.to_dict().empty(), "Dictionary inputs must have entries");
    ValueList values;
    for (const auto& [key, element] : value.to_dict()) {
      check_containers(element);
      values.push_back(element);
    }
    check_uniform(values, "Dictionary");
  }
}

bool has_only_tensors(const Value& value) {
  if (value.is_sequence()) {
    for (const Value& element : value.elements())
      if (!has_only_tensors(element)) return false;
    return true;
  }
  if (value.is_dict()) {
    for (const auto& [key, element] : value.to_dict())
      if (!has_only_tensors(element)) return false;
    return true;
  }
  if (auto* record = value.object_as<StructObject>()) return has_only_tensors(Value::tuple(record->fields()));
  return value.is_tensor();
}

}  // namespace

std::string script_type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return "NoneType";
    case Value::Kind::kBool:
    case Value::Kind::kSymBool:
      return "bool";
    case Value::Kind::kInt:
    case Value::Kind::kSymInt:
      return "int";
    case Value::Kind::kDouble:
    case Value::Kind::kSymFloat:
      return "float";
    case Value::Kind::kComplex:
      return "complex";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kTensor:
      return "Tensor";
    case Value::Kind::kList:
      return "List[" + (value.elements().empty() ? "Tensor" : script_type_name(value.elements()[0])) + "]";
    case Value::Kind::kTuple:
      return "Tuple[" + joined_types(value.elements()) + "]";
    case Value::Kind::kDict: {
      if (value.to_dict().empty()) return "Dict[str, Tensor]";
      const auto& [key, element] = *value.to_dict().begin();
      return "Dict[" + script_type_name(key) + ", " + script_type_name(element) + "]";
    }
    default:
      return std::string(value.kind_name());
  }
}

void check_traceable(const Value& arguments) {
  check_containers(arguments);
  require(
      has_only_tensors(arguments),
      "Type '{}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors "
      "can be traced",
      script_type_name(arguments));
}

namespace {

constexpr const char* kContainerAdvice =
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid "
    "if the container structure does not change based on the module's inputs. Consider using a constant "
    "container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If "
    "you absolutely need this and know the side effects, pass strict=False to trace() to allow this "
    "behavior. "
    "In C++, a std::tuple for a std::vector, a WEFT_STRUCT for a map, {{.strict = false}} for the last.";

[[noreturn]] void refuse_result() {
  fail(
      "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions");
}

}  // namespace

void check_trace_result(const Value& result, bool strict) {
  require(
      !result.is_none(),
      "The traced function didn't return any values! Side-effects are not captured in traces, so it would be "
      "a no-op.");
  if (result.is_tensor() || result.kind() == Value::Kind::kSymInt) return;
  if (result.is_tuple()) {
    for (const Value& element : result.elements()) check_trace_result(element, strict);
  } else if (result.is_list()) {
    if (strict) warn(WarningKind::kTracer, kContainerAdvice, "list");
    for (const Value& element : result.elements())
      if (!element.is_tensor()) refuse_result();
  } else if (result.is_dict()) {
    require(!strict, kContainerAdvice, "dict");
    for (const auto& [key, element] : result.to_dict()) {
      bool is_tuple_of_tensors = element.is_tuple();
      if (is_tuple_of_tensors)
        for (const Value& part : element.elements()) is_tuple_of_tensors &= part.is_tensor();
      if (!element.is_tensor() && !is_tuple_of_tensors) refuse_result();
    }
  } else {
    refuse_result();
  }
}

}  // namespace weft
