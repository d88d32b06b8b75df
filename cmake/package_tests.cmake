# Tests of the installed package, as users meet it: programs outside the tree that know find_package(weft) only.
set(prefix ${PROJECT_BINARY_DIR}/package/prefix)
add_test(NAME Package.Installs
         COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix} --config ${CMAKE_BUILD_TYPE})
set_tests_properties(Package.Installs PROPERTIES FIXTURES_SETUP package LABELS package)

function(weft_package_test name program)
  add_test(NAME ${name}
           COMMAND ${CMAKE_COMMAND}
                   -D PROGRAM=${program}
                   -D SOURCE=${PROJECT_SOURCE_DIR}
                   -D BINARY=${PROJECT_BINARY_DIR}/package/${name}
                   -D PREFIX=${prefix}
                   -D GENERATOR=${CMAKE_GENERATOR}
                   -D BUILD_TYPE=${CMAKE_BUILD_TYPE}
                   -D COMPILER=${CMAKE_CXX_COMPILER}
                   -D LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
                   -D FLAGS=${CMAKE_CXX_FLAGS}
                   -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
  set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED package LABELS package)
endfunction()

weft_package_test(Package.ConsumerBuildsAndRuns tests/consumer/main.cc)
weft_package_test(Package.ReadmeExampleBuildsAndRuns README.md)

# The C++ classes that to_folder writes, compiled and run as a user would.
add_executable(to_folder_writer ${PROJECT_SOURCE_DIR}/tests/to_folder/write.cc)
target_link_libraries(to_folder_writer PRIVATE weft)
add_test(NAME Package.ClassesOfToFolderBuildAndRun
         COMMAND ${CMAKE_COMMAND}
                 -D WRITER=$<TARGET_FILE:to_folder_writer>
                 -D SOURCE=${PROJECT_SOURCE_DIR}
                 -D BINARY=${PROJECT_BINARY_DIR}/package/to_folder
                 -D PREFIX=${prefix}
                 -D GENERATOR=${CMAKE_GENERATOR}
                 -D BUILD_TYPE=${CMAKE_BUILD_TYPE}
                 -D COMPILER=${CMAKE_CXX_COMPILER}
                 -D LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}
                 -D FLAGS=${CMAKE_CXX_FLAGS}
                 -P ${PROJECT_SOURCE_DIR}/tests/to_folder/run.cmake)
set_tests_properties(Package.ClassesOfToFolderBuildAndRun PROPERTIES FIXTURES_REQUIRED package LABELS "package;slow" TIMEOUT 900)
