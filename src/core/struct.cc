#include "weft/core/struct.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "weft/base/error.h"

namespace weft {

StructType::StructType(std::string name, std::vector<std::string> fields, Form form)
    : name_(std::move(name)), fields_(std::move(fields)), form_(form) {
  require(!name_.empty(), "a struct type needs a name");
  std::set<std::string_view> seen;
  for (const std::string& field : fields_) {
    require(!field.empty(), "struct {}: a field has no name", name_);
    require(seen.insert(field).second, "struct {} has two fields named {}", name_, field);
  }
}

std::optional<size_t> StructType::position(std::string_view field) const {
  const auto found = std::find(fields_.begin(), fields_.end(), field);
  if (found == fields_.end()) return std::nullopt;
  return static_cast<size_t>(found - fields_.begin());
}

bool StructType::operator==(const StructType& other) const {
  return this == &other || (name_ == other.name_ && form_ == other.form_ && fields_ == other.fields_);
}

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, StructTypeRef, std::less<>> types;
};

Registry& registry() {
  static auto* const registry = new Registry;  // outlives every static that holds a Value
  return *registry;
}

}  // namespace

StructTypeRef register_struct(std::string name, std::vector<std::string> fields, StructType::Form form) {
  StructTypeRef type(new StructType(std::move(name), std::move(fields), form));
  std::lock_guard lock(registry().mutex);
  auto [entry, is_new] = registry().types.try_emplace(type->name(), type);
  require(
      is_new || *entry->second == *type,
      "struct {} is registered with the fields [{}] and cannot be registered with [{}]; give one of the two "
      "another name",
      type->name(), fmt::join(entry->second->fields(), ", "), fmt::join(type->fields(), ", "));
  return entry->second;
}

StructTypeRef find_struct(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().types.find(name);
  return found == registry().types.end() ? nullptr : found->second;
}

StructObject::StructObject(StructTypeRef type, ValueList fields)
    : ValueObject(Role::kStruct),
      type_(std::move(type)),
      fields_(std::move(fields)),
      nesting_(nesting_around(fields_)) {
  require(fields_.size() == type_->fields().size(), "struct {} has {} fields, but {} values came",
          type_->name(), type_->fields().size(), fields_.size());
}

const Value& StructObject::field(std::string_view name) const {
  if (const auto position = type_->position(name)) return fields_[*position];
  fail("struct {} has no field {}; it has [{}]", type_->name(), name, fmt::join(type_->fields(), ", "));
}

std::string StructObject::to_string() const {
  std::string text = type_->name() + "(";
  for (size_t i = 0; i < fields_.size(); ++i)
    text += (i ? ", " : "") + type_->fields()[i] + "=" + fields_[i].to_string();
  return text + ")";
}

bool StructObject::equals(const ValueObject& other) const {
  const auto* record = dynamic_cast<const StructObject*>(&other);
  return record && *type_ == *record->type_ && fields_ == record->fields_;
}

Value make_struct(StructTypeRef type, ValueList fields) {
  return Ref<ValueObject>(make_ref<StructObject>(std::move(type), std::move(fields)));
}

}  // namespace weft
