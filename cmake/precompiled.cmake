# Headers that many files include, compiled once a target: those of others, and those few of ours that nearly every file
# above core/ includes anyway, so that a change of one rebuilds what it did. Other headers of ours stay out: a change
# rebuilds the files that include it and no more. A header that a file forgets to include shows in the debug preset,
# which precompiles nothing.
set(WEFT_FOREIGN_HEADERS
    <algorithm> <array> <atomic> <bit> <charconv> <cmath> <complex> <cstdint> <cstdlib> <cstring> <deque> <exception>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <source_location> <span> <string>
    <string_view> <tuple> <type_traits> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
set(WEFT_CORE_HEADERS <weft/core/tensor.h> <weft/core/value.h> <weft/dispatch/layers.h>)

# weft_precompile(TARGET HEADER...): these headers and the given ones, for all files of the target.
function(weft_precompile target)
  weft_precompile_headers(${target} ${WEFT_FOREIGN_HEADERS} ${ARGN})
endfunction()

# weft_precompile_headers(TARGET HEADER...): these alone.
function(weft_precompile_headers target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  # A time in it would make it, and all that is compiled with it, new to ccache each time it is made.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
