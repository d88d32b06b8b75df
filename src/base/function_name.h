#pragma once

#include <string>
#include <string_view>

namespace weft {

// A function's name without namespaces, classes and arguments: "forward" of "Net::forward(weft::Tensor)".
std::string short_function(std::string_view name);

}  // namespace weft
