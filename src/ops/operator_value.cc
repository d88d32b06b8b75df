#include "weft/ops/operator_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/error.h"

namespace weft {
namespace {

struct OperatorObject final : ValueObject {
  explicit OperatorObject(std::string own) : name(std::move(own)), known(find_operator(name)) {}
  std::string type_name() const override { return "operator"; }
  std::string to_string() const override { return operator_text(name); }
  bool equals(const ValueObject& other) const override {
    auto* same = dynamic_cast<const OperatorObject*>(&other);
    return same && same->name == name;
  }

  const std::string name;
  const Operator* const known;  // null for one that was missing
};

bool is_word(std::string_view text) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9');
  });
}

constexpr std::string_view kDefault = ".default";
// PyTorch's namespace of operators over functions, which have no overloads.
constexpr std::string_view kOverFunctions = "higher_order";

}  // namespace

Value operator_value(const Operator& op) { return operator_value(op.name()); }

Value operator_value(std::string_view name) {
  return Value(Ref<ValueObject>(make_ref<OperatorObject>(qualified_operator_name(name))));
}

bool holds_operator(const Value& value) { return value.object_as<OperatorObject>() != nullptr; }

const Operator* operator_in(const Value& value) {
  auto* object = value.object_as<OperatorObject>();
  if (!object) return nullptr;
  return object->known ? object->known : find_operator(object->name);
}

std::string operator_name_in(const Value& value) {
  auto* object = value.object_as<OperatorObject>();
  return object ? object->name : std::string();
}

std::string qualified_operator_name(std::string_view name) {
  std::string_view rest = name;
  const size_t colons = rest.find("::");
  const bool has_namespace = colons != std::string_view::npos && is_word(rest.substr(0, colons));
  if (has_namespace) rest.remove_prefix(colons + 2);
  const size_t dot = rest.find('.');
  const bool has_overload = dot != std::string_view::npos;
  require(has_namespace && is_word(rest.substr(0, dot)) && (!has_overload || is_word(rest.substr(dot + 1))),
          "'{}' is no name of an operator; it must be like mine::scale or aten::add.Tensor", name);
  if (name.ends_with(kDefault)) name.remove_suffix(kDefault.size());
  return std::string(name);
}

std::string operator_text(std::string_view qualified_name) {
  const size_t colons = qualified_name.find("::");
  const std::string_view space = qualified_name.substr(0, colons), rest = qualified_name.substr(colons + 2);
  const bool has_overload = rest.find('.') != std::string_view::npos;
  return fmt::format("{}.{}{}", space, rest, has_overload || space == kOverFunctions ? "" : kDefault);
}

}  // namespace weft
