#pragma once

#include <optional>
#include <string>
#include <utility>

#include "weft/core/pytree.h"

// One level of a tree: a container and what is directly in it. All that pytrees know about kinds of
// containers is here.

namespace weft {

struct TreeLevel {
  TreeSpec head;  // with leaves for children
  ValueList children;
};

bool is_container(const Value& value);
// Empty for a leaf.
std::optional<TreeLevel> level_of(const Value& value);
// The container that `spec`'s root describes.
Value build_level(const TreeSpec& spec, ValueList children);
// `head`'s root over other children.
TreeSpec with_children(const TreeSpec& head, std::vector<TreeSpec> children);

// The same but for the children.
bool has_same_head(const TreeSpec& a, const TreeSpec& b);
// "expected a list of 2, but got a tuple of 3".
std::string head_difference(const TreeSpec& expected, const TreeSpec& got);

// A struct's fields that have leaves, and those that are None.
std::pair<ValueList, ValueList> field_names(const TreeSpec& spec);

}  // namespace weft
