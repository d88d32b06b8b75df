#pragma once

#include <memory>
#include <string>

#include "weft/aot/compile_cache.h"

namespace weft {

// Keeps plans of compilations in a folder, which is made if need be, for other processes too: a file each,
// written as a whole or not at all. A damaged file is a miss, with a warning. Programs of symbolic sizes and
// over tensor extensions are not kept: a bypass, or an error where the cache is strict.
std::shared_ptr<aot::CompileCache> compile_cache_in(const std::string& folder);

}  // namespace weft
