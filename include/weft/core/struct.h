#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/core/value.h"

namespace weft {

// The shape of a record: the name that files know it by, and its fields in order.
class StructType : public RefCounted {
 public:
  // What the record is in files. A struct's fields that are None are no leaves of a pytree but part of its
  // structure (as for PyTorch's dataclasses); a named tuple keeps them, and so does a struct that says so.
  enum class Form : uint8_t { kStruct, kNamedTuple, kStructKeepingNone };

  StructType(std::string name, std::vector<std::string> fields, Form form = Form::kStruct);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& fields() const { return fields_; }
  Form form() const { return form_; }
  bool keeps_none() const { return form_ != Form::kStruct; }
  // Where the field stands; empty if there is none of that name.
  std::optional<size_t> position(std::string_view field) const;
  bool operator==(const StructType& other) const;

 private:
  std::string name_;
  std::vector<std::string> fields_;
  Form form_;
};

using StructTypeRef = Ref<const StructType>;

// Makes a type known by its name, for readers of files that keep nothing else, and returns it. The same type
// may be registered again; another one of that name is an error.
StructTypeRef register_struct(std::string name, std::vector<std::string> fields,
                              StructType::Form form = StructType::Form::kStruct);
// Null if no type of that name is registered.
StructTypeRef find_struct(std::string_view name);

// A record inside a Value: `Point(x=f32[2], n=3)`. Equal when type and fields are.
class StructObject final : public ValueObject {
 public:
  StructObject(StructTypeRef type, ValueList fields);

  const StructTypeRef& type() const { return type_; }
  const ValueList& fields() const { return fields_; }
  // The field's value; an error that lists the fields if there is none of that name.
  const Value& field(std::string_view name) const;

  std::string type_name() const override { return type_->name(); }
  std::string to_string() const override;
  bool equals(const ValueObject& other) const override;
  uint32_t nesting() const noexcept override { return nesting_; }

 private:
  StructTypeRef type_;
  ValueList fields_;
  uint32_t nesting_;
};

Value make_struct(StructTypeRef type, ValueList fields);
// The record that a Value holds, without touching its refcount; null when it holds something else.
inline const StructObject* struct_in(const Value& value) noexcept {
  return static_cast<const StructObject*>(value.object_of(ValueObject::Role::kStruct));
}

}  // namespace weft
