#include "weft/core/typed_value.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/core/callable.h"

namespace weft::detail {

StructTypeRef register_fields(const char* name, const char* comma_separated_fields, bool keeps_none) {
  std::vector<std::string> fields;
  std::string field;
  for (const char c : std::string_view(comma_separated_fields)) {
    if (c == ' ' || c == '\n' || c == '\t') continue;
    if (c == ',') fields.push_back(std::exchange(field, {}));
    else field += c;
  }
  if (!field.empty()) fields.push_back(std::move(field));
  return register_struct(name, std::move(fields),
                         keeps_none ? StructType::Form::kStructKeepingNone : StructType::Form::kStruct);
}

std::string place_text(const Place* place) {
  if (!place) return "";
  std::string outer = place_text(place->outer);
  switch (place->kind) {
    case Place::Kind::kArgument:
      return fmt::format("argument {}", place->index);
    case Place::Kind::kIndex:
      return fmt::format("{}[{}]", outer, place->index);
    case Place::Kind::kKey:
      return fmt::format("{}[{}]", outer, place->key->to_string());
    case Place::Kind::kField:
      return fmt::format("{}.{}", outer, place->field);
  }
  return outer;
}

namespace {

[[noreturn]] void fail_at(const Place* place, std::string_view what) {
  const std::string where = place_text(place);
  const bool names_argument = where.starts_with("argument");
  fail("{}{}{}{}", where.empty() || names_argument ? "" : "at ", where, where.empty() ? "" : ": ", what);
}

}  // namespace

void wrong_value(const Place* place, std::string_view expected, const Value& got) {
  fail_at(place, got.is_none() ? fmt::format("expected {} but got None", expected)
                               : fmt::format("expected {} but got {} ({})", expected, got.kind_name(),
                                             got.to_string()));
}

void wrong_integer(const Place* place, int64_t low, uint64_t high, int64_t got) {
  fail_at(place, fmt::format("expected an integer from {} to {} but got {}", low, high, got));
}

const ValueList& sequence_at(const Place* place, const Value& value) {
  if (!value.is_sequence()) wrong_value(place, "a list or tuple", value);
  return value.elements();
}

const ValueList& sequence_at(const Place* place, const Value& value, size_t count) {
  const ValueList& list = sequence_at(place, value);
  if (list.size() != count)
    fail_at(place,
            fmt::format("expected {} elements but got {} ({})", count, list.size(), value.to_string()));
  return list;
}

const Dict& dict_at(const Place* place, const Value& value) {
  if (!value.is_dict()) wrong_value(place, "a dictionary", value);
  return value.to_dict();
}

ValueList record_at(const Place* place, const Value& value, const StructType& type) {
  // A plain tuple has the fields in their order: what takes values apart need not keep their types.
  if (value.is_tuple() && value.elements().size() == type.fields().size()) return value.elements();
  const auto* record = value.object_as<StructObject>();
  if (!record || record->type()->name() != type.name()) wrong_value(place, "a struct " + type.name(), value);
  if (record->type()->fields() == type.fields()) return record->fields();
  ValueList fields;
  for (const std::string& field : type.fields()) {
    if (!record->type()->position(field)) break;
    fields.push_back(record->field(field));
  }
  if (fields.size() != type.fields().size() || fields.size() != record->fields().size())
    fail_at(place, fmt::format("expected a struct {} with the fields [{}] but got one with [{}]", type.name(),
                               fmt::join(type.fields(), ", "), fmt::join(record->type()->fields(), ", ")));
  return fields;
}

void check_argument_count(size_t expected, size_t got) {
  require(expected == got, "expected {} argument{} but got {}", expected, expected == 1 ? "" : "s", got);
}

}  // namespace weft::detail

namespace weft {
namespace {

struct Closure final : Callable {
  Closure(ValueFunction f, const ArgumentNames* argument_names)
      : function(std::move(f)), names(argument_names) {}
  Value call(Args args) override { return function(args); }
  const ArgumentNames* argument_names() const override { return names; }
  ValueFunction function;
  const ArgumentNames* names;
};

}  // namespace

Ref<Callable> make_closure(ValueFunction f, const ArgumentNames* names) {
  return make_ref<Closure>(std::move(f), names);
}

Value Callable::call(Args args, const Kwargs& kwargs) {
  if (kwargs.empty()) return call(args);
  require(argument_names() != nullptr, "{}: argument '{}' is given by name, but its arguments have no names",
          type_name(), kwargs.front().first);
  return call(argument_names()->bind(args, kwargs));
}

}  // namespace weft
