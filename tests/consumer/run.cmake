# Builds PROGRAM against the package in PREFIX and runs it. Of a Markdown file, the first ```cpp block is the program.
set(program ${SOURCE}/${PROGRAM})
file(MAKE_DIRECTORY ${BINARY})
if(PROGRAM MATCHES "\\.md$")
  file(READ ${program} page)
  string(FIND "${page}" "```cpp\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "${PROGRAM} has no ```cpp block")
  endif()
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${page}" ${begin} -1 page)
  string(FIND "${page}" "```" end)
  string(SUBSTRING "${page}" 0 ${end} code)
  set(program ${BINARY}/example.cc)
  file(CONFIGURE OUTPUT ${program} CONTENT "${code}" @ONLY)
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(result)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}")
  endif()
endfunction()

# A fresh cache each time: a package that moved must not be found where it was.
file(REMOVE ${BINARY}/CMakeCache.txt)
run(${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${BINARY} -G ${GENERATOR} -D PROGRAM=${program}
    -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${BINARY})
run(${BINARY}/consumer)
