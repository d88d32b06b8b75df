#include "weft/capture/is_compiling.h"

#include <utility>

namespace weft {
namespace {

constinit thread_local bool compiling = false;

}  // namespace

bool is_compiling() noexcept { return compiling; }

detail::CompilingScope::CompilingScope() noexcept : outer_(std::exchange(compiling, true)) {}
detail::CompilingScope::~CompilingScope() { compiling = outer_; }

}  // namespace weft
