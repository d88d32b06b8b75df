#include "core/tree_level.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"

namespace weft {

using Kind = TreeSpec::Kind;

bool is_container(const Value& value) {
  return value.is_sequence() || value.is_dict() || value.object_as<StructObject>();
}

namespace {

TreeLevel level_of_dict(const Dict& dict) {
  ValueList keys, children;
  for (const auto& [key, value] : dict) {
    keys.push_back(key);
    children.push_back(value);
  }
  return {TreeSpec::dict(std::move(keys), std::vector<TreeSpec>(children.size())), std::move(children)};
}

TreeLevel level_of_record(const StructObject& record) {
  const bool keeps_none = record.type()->keeps_none();
  std::vector<size_t> present;
  ValueList children;
  for (size_t i = 0; i < record.fields().size(); ++i) {
    if (record.fields()[i].is_none() && !keeps_none) continue;
    present.push_back(i);
    children.push_back(record.fields()[i]);
  }
  return {TreeSpec::record(record.type(), std::move(present), std::vector<TreeSpec>(children.size())),
          std::move(children)};
}

}  // namespace

std::optional<TreeLevel> level_of(const Value& value) {
  if (value.is_sequence()) {
    std::vector<TreeSpec> leaves(value.elements().size());
    return TreeLevel{value.is_list() ? TreeSpec::list(std::move(leaves)) : TreeSpec::tuple(std::move(leaves)),
                     value.elements()};
  }
  if (value.is_dict()) return level_of_dict(value.to_dict());
  if (const auto* record = value.object_as<StructObject>()) return level_of_record(*record);
  return std::nullopt;
}

Value build_level(const TreeSpec& spec, ValueList children) {
  switch (spec.kind()) {
    case Kind::kLeaf:
      break;
    case Kind::kList:
      return Value::list(std::move(children));
    case Kind::kTuple:
      return Value::tuple(std::move(children));
    case Kind::kDict: {
      Dict dict;
      for (size_t i = 0; i < children.size(); ++i) dict.set(spec.keys()[i], std::move(children[i]));
      return dict;
    }
    case Kind::kNamedTuple:
    case Kind::kStruct: {
      ValueList fields(spec.struct_type()->fields().size());
      for (size_t i = 0; i < children.size(); ++i) fields[spec.present_fields()[i]] = std::move(children[i]);
      return make_struct(spec.struct_type(), std::move(fields));
    }
  }
  invariant(false, "a leaf is no container");
  return {};
}

TreeSpec with_children(const TreeSpec& head, std::vector<TreeSpec> children) {
  switch (head.kind()) {
    case Kind::kLeaf:
      return {};
    case Kind::kList:
      return TreeSpec::list(std::move(children));
    case Kind::kTuple:
      return TreeSpec::tuple(std::move(children));
    case Kind::kDict:
      return TreeSpec::dict(head.keys(), std::move(children));
    default: {
      const auto present = head.present_fields();
      return TreeSpec::record(head.struct_type(), {present.begin(), present.end()}, std::move(children));
    }
  }
}

std::pair<ValueList, ValueList> field_names(const TreeSpec& spec) {
  ValueList present, absent;
  const auto& fields = spec.struct_type()->fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool has_leaves = std::ranges::binary_search(spec.present_fields(), i);
    (has_leaves ? present : absent).push_back(fields[i]);
  }
  return {std::move(present), std::move(absent)};
}

bool has_same_head(const TreeSpec& a, const TreeSpec& b) {
  if (a.kind() != b.kind() || a.children().size() != b.children().size()) return false;
  if (a.kind() == Kind::kDict) return a.keys() == b.keys();
  if (!a.struct_type()) return true;
  // A file lists the fields that have leaves first, so two specs of one type may differ in the order.
  return a.struct_type()->name() == b.struct_type()->name() && field_names(a) == field_names(b);
}

namespace {

std::string head_text(const TreeSpec& spec) {
  const size_t count = spec.children().size();
  switch (spec.kind()) {
    case Kind::kLeaf:
      return "a leaf";
    case Kind::kList:
      return fmt::format("a list of {}", count);
    case Kind::kTuple:
      return fmt::format("a tuple of {}", count);
    case Kind::kDict:
      return fmt::format("a dictionary of {}", count);
    case Kind::kNamedTuple:
      return "a named tuple " + spec.struct_type()->name();
    case Kind::kStruct:
      return "a struct " + spec.struct_type()->name();
  }
  return "";
}

// Those of `some` that `others` does not have.
ValueList left_over(const ValueList& some, const ValueList& others) {
  ValueList left;
  for (const Value& value : some)
    if (std::ranges::find(others, value) == others.end()) left.push_back(value);
  return left;
}

}  // namespace

std::string head_difference(const TreeSpec& expected, const TreeSpec& got) {
  if (expected.kind() == Kind::kDict && got.kind() == Kind::kDict) {
    const ValueList missing = left_over(expected.keys(), got.keys()),
                    extra = left_over(got.keys(), expected.keys());
    if (missing.empty() && extra.empty())
      return fmt::format("expected the keys in the order {}, but got {}",
                         Value::list(expected.keys()).to_string(), Value::list(got.keys()).to_string());
    std::string text = "the dictionary's keys differ";
    if (!missing.empty()) text += "; missing: " + Value::list(missing).to_string();
    if (!extra.empty()) text += "; not expected: " + Value::list(extra).to_string();
    return text;
  }
  if (expected.struct_type() && got.struct_type() &&
      expected.struct_type()->name() == got.struct_type()->name())
    return fmt::format("expected {} with {} set, but got it with {}", head_text(expected),
                       Value::list(field_names(expected).first).to_string(),
                       Value::list(field_names(got).first).to_string());
  return fmt::format("expected {}, but got {}", head_text(expected), head_text(got));
}

}  // namespace weft
