#include "weft/dispatch/origin.h"

namespace weft {

constinit thread_local const Origin* detail::current_origin = nullptr;
constinit thread_local int detail::origin_watchers = 0;

}  // namespace weft
