# The one library target, `weft`, and the generator that its typed functions come from.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
find_package(dnnl REQUIRED)
# Only its declarations: the library is opened when source lines are asked for.
find_path(LIBDW_INCLUDE_DIR elfutils/libdwfl.h REQUIRED)

set(WEFT_SRC ${PROJECT_SOURCE_DIR}/src)
set(WEFT_GENERATED ${PROJECT_BINARY_DIR}/generated)

# weft-opgen reads the schemas in the operator files and writes the typed API.
add_executable(weft-opgen ${PROJECT_SOURCE_DIR}/tools/opgen/opgen.cc ${WEFT_SRC}/ops/schema.cc
               ${WEFT_SRC}/ops/schema_parser.cc ${WEFT_SRC}/base/error.cc)
target_include_directories(weft-opgen PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(weft-opgen PRIVATE fmt::fmt)

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

add_library(weft ${WEFT_SOURCES} ${WEFT_GENERATED_SOURCES})
add_dependencies(weft weft-generated)
weft_precompile(weft)
if(WEFT_COMPILE_TOGETHER)
  weft_compile_together(weft 6)
endif()

# weft_kernels(NAME LEVEL OPTION...): the files of ops/cpu/isa, compiled for an instruction set. LEVEL is its IsaLevel.
function(weft_kernels name level)
  add_library(weft-${name} OBJECT ${WEFT_ISA_SOURCES})
  target_compile_definitions(weft-${name} PRIVATE WEFT_ISA_LEVEL=${level})
  target_compile_options(weft-${name} PRIVATE ${ARGN})
  target_include_directories(weft-${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${WEFT_SRC})
  target_link_libraries(weft-${name} PRIVATE fmt::fmt PkgConfig::SLEEF)
  target_sources(weft PRIVATE $<TARGET_OBJECTS:weft-${name}>)
endfunction()

weft_kernels(baseline 0)
if(WEFT_BASELINE_ONLY OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(weft PRIVATE WEFT_BASELINE_ONLY=1)
else()
  weft_kernels(avx2 1 -mavx2 -mfma -mf16c)
  # g++ 12 warns of values that its own AVX-512 header leaves unset on purpose.
  weft_kernels(avx512 2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
               "$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
endif()
target_include_directories(weft PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                       $<BUILD_INTERFACE:${WEFT_GENERATED}> $<INSTALL_INTERFACE:include>
                                PRIVATE ${WEFT_SRC} ${LIBDW_INCLUDE_DIR})
target_link_libraries(weft PUBLIC fmt::fmt Threads::Threads PRIVATE PkgConfig::SLEEF PkgConfig::OPENBLAS DNNL::dnnl ${CMAKE_DL_LIBS})
