# Has WRITER fill a folder with classes, builds those against the package in PREFIX with main.cc, and runs that.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result)
  if(result)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}: ${result}")
  endif()
endfunction()

set(folder ${BINARY}/written)
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})
run(${WRITER} ${folder})
file(GLOB sources ${folder}/*.cc)
set(program ${SOURCE}/tests/to_folder/main.cc ${sources})
file(REMOVE ${BINARY}/CMakeCache.txt)
# Not by the function above, which would take the list of sources apart.
execute_process(
  COMMAND ${CMAKE_COMMAND} -S ${SOURCE}/tests/consumer -B ${BINARY} -G ${GENERATOR} "-DPROGRAM=${program}"
          -D CMAKE_PREFIX_PATH=${PREFIX} -D CMAKE_BUILD_TYPE=${BUILD_TYPE} -D CMAKE_CXX_COMPILER=${COMPILER}
          -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS=${FLAGS} -I${folder} -Wall -Wextra -Werror"
  COMMAND_ERROR_IS_FATAL ANY)
run(${CMAKE_COMMAND} --build ${BINARY})
run(${BINARY}/consumer ${folder})
