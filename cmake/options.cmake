# Compiler, linker and cache settings shared by every target.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths relative to the source tree: a second clone finds what the first one compiled, but not with clang, whose
  # precompiled headers name their folder. The sloppiness is what ccache asks for where headers are precompiled; no
  # code of ours uses __TIME__ or a macro that changes what those mean. The inode cache is off: for a
  # header that was edited in place it has given a stale precompiled one.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOINODECACHE=1 ${WEFT_CCACHE})
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
# Contraction would make fused and unfused code differ in bits; frame pointers carry source locations.
add_compile_options(-Wall -Wextra -Werror -ffp-contract=off -fno-omit-frame-pointer)
# Designated initialisers leave out what has a default.
add_compile_options(-Wno-missing-field-initializers)
# Headers of ours switch these off where they are wrong, but g++ forgets that where a header is precompiled; clang, which
# compiles the sanitizer builds, has warnings of its own about what is not initialised.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized -Wno-init-list-lifetime)
endif()
# g++ looks for garbage each time its heap has doubled, a tenth of its time; up to 1 GiB it need not.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576")
endif()
# libstdc++ 12 builds std::stable_sort from a function that C++17 deprecates, and clang blames the caller.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-deprecated-declarations)
endif()
