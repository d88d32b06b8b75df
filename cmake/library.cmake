# The one library target, `weft`, and the generator that its typed functions come from.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
find_package(dnnl REQUIRED)
# Only its declarations: the library is opened when source lines are asked for.
find_package(ZLIB REQUIRED)
find_path(LIBDW_INCLUDE_DIR elfutils/libdwfl.h REQUIRED)

set(WEFT_SRC ${PROJECT_SOURCE_DIR}/src)
set(WEFT_GENERATED ${PROJECT_BINARY_DIR}/generated)

# weft-opgen reads the schemas in the operator files and writes the typed API.
add_executable(weft-opgen ${PROJECT_SOURCE_DIR}/tools/opgen/opgen.cc ${WEFT_SRC}/dispatch/schema.cc
               ${WEFT_SRC}/dispatch/schema_parser.cc ${WEFT_SRC}/base/error.cc ${WEFT_SRC}/base/stack_trace.cc
               ${WEFT_SRC}/base/symboliser.cc ${WEFT_SRC}/base/debug_info.cc
               ${WEFT_SRC}/base/source_file.cc)
target_include_directories(weft-opgen PRIVATE ${PROJECT_SOURCE_DIR}/include ${WEFT_SRC} ${LIBDW_INCLUDE_DIR})
# It runs once, for a fraction of the time that optimising it would take.
target_compile_options(weft-opgen PRIVATE $<$<CONFIG:Release>:-O0>)
target_link_libraries(weft-opgen PRIVATE fmt::fmt ${CMAKE_DL_LIBS})

file(GLOB_RECURSE WEFT_OPERATOR_FILES CONFIGURE_DEPENDS ${WEFT_SRC}/ops/families/*.cc)
set(WEFT_GENERATED_SOURCES ${WEFT_GENERATED}/ops/table.cc)
foreach(part 0 1 2 3)
  list(APPEND WEFT_GENERATED_SOURCES ${WEFT_GENERATED}/ops/functions_${part}.cc)
endforeach()
# The generator leaves files alone whose text would not change; the stamp is what this step is judged by.
add_custom_command(
  OUTPUT ${WEFT_GENERATED}/stamp
  BYPRODUCTS ${WEFT_GENERATED_SOURCES} ${WEFT_GENERATED}/weft/core/tensor_methods.inc ${WEFT_GENERATED}/weft/ops/functions.h
  COMMAND weft-opgen ${WEFT_GENERATED} ${WEFT_OPERATOR_FILES}
  COMMAND ${CMAKE_COMMAND} -E touch ${WEFT_GENERATED}/stamp
  DEPENDS weft-opgen ${WEFT_OPERATOR_FILES}
  COMMENT "Writing the typed operators from their schemas")
add_custom_target(weft-generated DEPENDS ${WEFT_GENERATED}/stamp)

file(GLOB_RECURSE WEFT_SOURCES CONFIGURE_DEPENDS ${WEFT_SRC}/*.cc)
file(GLOB WEFT_ISA_SOURCES CONFIGURE_DEPENDS ${WEFT_SRC}/ops/cpu/isa/*.cc)
list(REMOVE_ITEM WEFT_SOURCES ${WEFT_ISA_SOURCES})
set(gemm ${WEFT_SRC}/ops/cpu/gemm)
if(WEFT_OWN_GEMM)
  list(REMOVE_ITEM WEFT_SOURCES ${gemm}/openblas_driver.cc)
else()
  list(REMOVE_ITEM WEFT_SOURCES ${gemm}/driver.cc ${gemm}/widening_driver.cc)
  list(REMOVE_ITEM WEFT_ISA_SOURCES ${WEFT_SRC}/ops/cpu/isa/gemm.cc)
endif()
# Folders that know no tensors, and have no use for the headers that all others include.
set(WEFT_BASE_SOURCES ${WEFT_SOURCES})
list(FILTER WEFT_BASE_SOURCES INCLUDE REGEX "/src/(base|sym)/")
list(REMOVE_ITEM WEFT_SOURCES ${WEFT_BASE_SOURCES})
# Folders that nearly all include what a graph module is.
set(WEFT_GRAPH_SOURCES ${WEFT_SOURCES})
list(FILTER WEFT_GRAPH_SOURCES INCLUDE REGEX "/src/(graph|passes|capture|aot|export|io)/")
list(REMOVE_ITEM WEFT_SOURCES ${WEFT_GRAPH_SOURCES})

add_library(weft-base OBJECT ${WEFT_BASE_SOURCES})
weft_precompile(weft-base)
add_library(weft-graphs OBJECT ${WEFT_GRAPH_SOURCES})
add_dependencies(weft-graphs weft-generated)
weft_precompile(weft-graphs ${WEFT_CORE_HEADERS} <weft/graph/graph_module.h>)
add_library(weft ${WEFT_SOURCES} ${WEFT_GENERATED_SOURCES} $<TARGET_OBJECTS:weft-base> $<TARGET_OBJECTS:weft-graphs>)
add_dependencies(weft weft-generated)
weft_precompile(weft ${WEFT_CORE_HEADERS})
if(WEFT_UNITY_BUILD)
  weft_unity_build(weft-base 6)
  weft_unity_build(weft-graphs 6)
  weft_unity_build(weft 6)
endif()

# Code that runs once a call, around kernels, graphs and files: inlining is what it gains from, and the other passes of
# -O2 take a quarter of the time that it takes to compile.
set(WEFT_GLUE ${WEFT_SOURCES} ${WEFT_GRAPH_SOURCES})
list(FILTER WEFT_GLUE INCLUDE REGEX "/src/(ops/families|ops/decompositions|graph/text|graph/script|capture|aot|export|func|io|models|nn|passes)/")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Passes for loops over numbers, of which there are none in these folders; they take a tenth of the time.
  foreach(target weft-base weft-graphs)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-fno-gcse;-fno-tree-pre;-fno-schedule-insns2>)
  endforeach()
  set_property(SOURCE ${WEFT_GLUE} APPEND PROPERTY COMPILE_OPTIONS
    "$<$<CONFIG:Release>:-O1;-finline-small-functions;-findirect-inlining;-fpartial-inlining>")
endif()

# The sanitizer presets optimise nothing, but for the loop that tests wait for: GEMMs of real models.
if(WEFT_OWN_GEMM)
  set_property(SOURCE ${WEFT_SRC}/ops/cpu/isa/gemm.cc APPEND PROPERTY COMPILE_OPTIONS
    "$<$<AND:$<CONFIG:Debug>,$<CXX_COMPILER_ID:Clang>>:-O1>")
endif()

# weft_kernels(NAME LEVEL OPTION...): the files of ops/cpu/isa, compiled for an instruction set. LEVEL is its IsaLevel.
function(weft_kernels name level)
  add_library(weft-${name} OBJECT ${WEFT_ISA_SOURCES})
  target_compile_definitions(weft-${name} PRIVATE WEFT_ISA_LEVEL=${level})
  target_compile_options(weft-${name} PRIVATE ${ARGN})
  target_include_directories(weft-${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${WEFT_SRC})
  target_link_libraries(weft-${name} PRIVATE fmt::fmt PkgConfig::SLEEF)
  # Intrinsics, which SLEEF's header includes, are most of what a kernel file reads.
  # Not with clang, whose precompiled headers do not get along with them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    weft_precompile_headers(weft-${name} <sleef.h> <cstdint> <optional> <span> <string_view> <utility>)
  endif()
  target_sources(weft PRIVATE $<TARGET_OBJECTS:weft-${name}>)
endfunction()

weft_kernels(baseline 0)
if(WEFT_BASELINE_ONLY OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(weft PRIVATE WEFT_BASELINE_ONLY=1)
else()
  weft_kernels(avx2 1 -mavx2 -mfma -mf16c)
  # g++ 12 warns of values that its own AVX-512 header leaves unset on purpose.
  weft_kernels(avx512 2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
               "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>")
endif()
target_include_directories(weft PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       $<BUILD_INTERFACE:${WEFT_GENERATED}> $<INSTALL_INTERFACE:include>
                                PRIVATE ${WEFT_SRC})
target_include_directories(weft-base PRIVATE ${PROJECT_SOURCE_DIR}/include ${WEFT_SRC} ${LIBDW_INCLUDE_DIR})
target_include_directories(weft-graphs PRIVATE ${PROJECT_SOURCE_DIR}/include ${WEFT_GENERATED} ${WEFT_SRC})
foreach(part weft-base weft-graphs)
  target_link_libraries(${part} PRIVATE fmt::fmt Threads::Threads)
endforeach()
target_link_libraries(weft-graphs PRIVATE ZLIB::ZLIB)
target_link_libraries(weft PUBLIC fmt::fmt Threads::Threads PRIVATE ZLIB::ZLIB PkgConfig::SLEEF PkgConfig::OPENBLAS DNNL::dnnl ${CMAKE_DL_LIBS})
