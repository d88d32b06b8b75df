# weft's side of the suites that ./bench runs; the peer's side is compiled by ./bench itself.
foreach(suite eager capture)
  add_executable(bench-${suite} EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/benchmarks/${suite}.cc)
  target_compile_definitions(bench-${suite} PRIVATE BENCH_API="api/weft.h")
  target_link_libraries(bench-${suite} PRIVATE weft)
endforeach()
