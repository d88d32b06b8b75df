# Headers of others that many files include, compiled once a target. None of ours is among them: a change of ours
# rebuilds the files that include it and no more, and a file that forgets to include it does not compile. A forgotten
# header of the standard library shows in the debug preset, which precompiles nothing.
set(WEFT_FOREIGN_HEADERS
    <algorithm> <array> <atomic> <bit> <charconv> <cmath> <complex> <cstdint> <cstdlib> <cstring> <deque> <exception>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <source_location> <span> <string>
    <string_view> <tuple> <type_traits> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)

# weft_precompile(TARGET HEADER...): these headers and the given ones, for all files of the target.
function(weft_precompile target)
  target_precompile_headers(${target} PRIVATE ${WEFT_FOREIGN_HEADERS} ${ARGN})
  # A time in it would make it, and all that is compiled with it, new to ccache each time it is made.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
