# The examples, and `weft-demo`, which ./demo runs.
add_library(weft-digits STATIC ${PROJECT_SOURCE_DIR}/examples/digits_data.cc)
target_include_directories(weft-digits PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(weft-digits PUBLIC weft)

file(GLOB demo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/digits.cc)
if(demo_sources)
  add_executable(weft-demo ${demo_sources})
  target_link_libraries(weft-demo PRIVATE weft-digits)
endif()

if(TARGET test_examples)
  target_link_libraries(test_examples PRIVATE weft-digits)
endif()
