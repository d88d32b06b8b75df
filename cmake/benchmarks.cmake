# weft's side of the suites that ./bench runs; the peer's side is compiled by ./bench itself.
foreach(suite eager capture aot files export)
  add_executable(bench-${suite} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/benchmarks/${suite}.cc)
  target_compile_definitions(bench-${suite} PRIVATE BENCH_API="api/weft.h")
  target_link_libraries(bench-${suite} PRIVATE weft)
endforeach()

add_dependencies(bench-files weft-tool)
# Its checks and its solver are private.
target_include_directories(bench-export PRIVATE ${WEFT_SRC})

# GEMM against the libraries that could do it; by itself, since it calls what is below the operators.
find_package(OpenMP)
if(OpenMP_CXX_FOUND)
  add_executable(bench-gemm EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/benchmarks/gemm.cc)
  target_include_directories(bench-gemm PRIVATE ${WEFT_SRC})
  target_link_libraries(bench-gemm PRIVATE weft PkgConfig::OPENBLAS DNNL::dnnl OpenMP::OpenMP_CXX)
endif()
