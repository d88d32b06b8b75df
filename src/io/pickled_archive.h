#pragma once

#include <string>

#include "io/zip.h"
#include "weft/core/value.h"

namespace weft {

// What torch.save writes: a zip archive with a pickle, and the memory of its tensors beside it. Tensors use
// the file's pages in place.
Value read_pickled_archive(const zip::Archive& archive);
// The bytes of such a file, the same for the same values.
std::string pickled_archive(const Value& value);

}  // namespace weft
