#pragma once

#include <span>
#include <string_view>

#include "weft/core/pytree.h"

namespace weft {

// As TreeSpec::from_json, but a container whose type is not known is a tuple of its children, and is written
// back as what it was.
TreeSpec tree_of_any_types(std::string_view text, std::string_view source,
                           std::span<const StructTypeRef> named_tuples);

}  // namespace weft
