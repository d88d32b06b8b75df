// What an operator's schema says, read once: names, defaults as Values, which arguments are written.
#include "weft/dispatch/operator.h"

#include "weft/base/error.h"

namespace weft {
namespace {

Value value_of(const DefaultValue& value, const Type& type);

Value word_value(const std::string& word) {
  if (word == "contiguous_format") return MemoryFormat::kContiguous;
  if (word == "preserve_format") return MemoryFormat::kPreserve;
  if (word == "Mean") return 1;
  if (word == "Sum") return 2;
  if (word == "long") return kInt64;
  if (word == "float") return kFloat32;
  if (word == "strided") return Layout::kStrided;
  if (word == "cpu") return kCpu;
  fail("no value for the default '{}'", word);
}

Value list_value(const DefaultValue& value, const Type& type) {
  ValueList elements;
  if (value.kind == DefaultValue::Kind::kList) {
    for (const DefaultValue& element : value.elements) elements.push_back(value_of(element, type.element()));
  } else {
    // One number stands for a list of the fixed size.
    elements.assign(static_cast<size_t>(type.list_size().value_or(1)), value_of(value, type.element()));
  }
  return Value::list(std::move(elements));
}

Value value_of(const DefaultValue& value, const Type& type) {
  if (value.is_none()) return Value();
  if (type.is_optional()) return value_of(value, type.element());
  if (type.is_list()) return list_value(value, type);
  switch (value.kind) {
    case DefaultValue::Kind::kBool:
      return value.as_bool;
    case DefaultValue::Kind::kInt:
      if (type.is(Type::Kind::kMemoryFormat)) return MemoryFormat::kContiguous;
      if (type.is(Type::Kind::kScalarType))
        return kInt64;  // PyTorch's number 4, the only one that schemas use
      return type.is(Type::Kind::kFloat) ? Value(value.as_float) : Value(value.as_int);
    case DefaultValue::Kind::kFloat:
      return value.as_float;
    case DefaultValue::Kind::kString:
      return value.as_string;
    default:
      return word_value(value.as_string);
  }
}

uint8_t tensor_kind(const Type& type) {
  const Type& inner = type.is_optional() ? type.element() : type;
  if (inner.kind() == Type::Kind::kTensor) return 1;
  if (!inner.is_list()) return 0;
  const Type& element = inner.element().is_optional() ? inner.element().element() : inner.element();
  return element.kind() == Type::Kind::kTensor ? 2 : 0;
}

}  // namespace

std::string_view Operator::name() const {
  std::string_view schema(text_);
  return schema.substr(0, schema.find('('));
}

const Operator::Info& Operator::parse() const {
  auto info = std::make_unique<Info>();
  info->schema = parse_schema(text_);
  for (const Argument& argument : info->schema.arguments) {
    bool written = argument.alias && argument.alias->is_write;
    info->is_mutable |= written;
    info->written.push_back(written);
    info->is_tensor.push_back(tensor_kind(argument.type));
    info->defaults.push_back(argument.default_value ? value_of(*argument.default_value, argument.type)
                                                    : Value());
  }
  for (size_t i = 0; i < info->schema.returns.size(); ++i) {
    auto aliased = info->schema.aliased_argument(i);
    info->result_aliases.push_back(aliased ? static_cast<int16_t>(*aliased) : int16_t{-1});
  }
  info->is_view = info->schema.is_view();
  const Info* expected = nullptr;
  const Info* fresh = info.get();
  // Another thread may have parsed it meanwhile; its copy is as good.
  if (info_.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *info.release();
  return *expected;
}

}  // namespace weft
