# The examples, and `weft-demo`, which ./demo runs.
add_library(weft-digits STATIC ${PROJECT_SOURCE_DIR}/examples/digits_data.cc)
target_include_directories(weft-digits PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(weft-digits PUBLIC weft)

file(GLOB demo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/digits.cc)
if(demo_sources)
  add_executable(weft-demo ${demo_sources})
  target_link_libraries(weft-demo PRIVATE weft-digits)
endif()

add_executable(weft-demo-exported ${PROJECT_SOURCE_DIR}/examples/exported_digits.cc)
target_link_libraries(weft-demo-exported PRIVATE weft-digits)
# It runs `weft` too.
add_dependencies(weft-demo-exported weft-tool)

# Programs of one page; each is run by a test, too.
foreach(example capture_mlp export_mlp per_sample_gradients custom_pass)
  add_executable(example-${example} ${PROJECT_SOURCE_DIR}/examples/${example}.cc)
  target_link_libraries(example-${example} PRIVATE weft)
  if(WEFT_BUILD_TESTS)
    add_test(NAME Examples.${example} COMMAND example-${example})
    set_tests_properties(Examples.${example} PROPERTIES LABELS examples)
  endif()
endforeach()

if(TARGET test_examples)
  target_link_libraries(test_examples PRIVATE weft-digits)
endif()
