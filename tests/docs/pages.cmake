# Writes a test out of a page: cmake -D PAGE=docs/training.md -D SOURCE=root -D OUT=file.cc -P pages.cmake
#
# The ```cpp blocks of the page are one program, in their order. A block that begins with struct, class, template or
# #include stands outside of functions, any other one in the body of the test. A line `<!-- run: CODE -->` below a block is
# code that readers need not see: what the page claims. Blocks of another language are not run; a line
# `<!-- shows: TEXT -->` below one says which string of the program it is, word for word.
file(READ ${SOURCE}/${PAGE} page)
get_filename_component(name ${PAGE} NAME_WE)

# After each other: what stands outside, what is in the body. The compiler names lines of the page.
set(outside "")
set(body "")
set(line 1)
set(blocks 0)

function(count_lines text out)
  string(REGEX REPLACE "[^\n]" "" breaks "${text}")
  string(LENGTH "${breaks}" count)
  set(${out} ${count} PARENT_SCOPE)
endfunction()

# Takes the page apart at the next block or hidden line.
while(TRUE)
  string(FIND "${page}" "```cpp\n" block)
  string(FIND "${page}" "<!-- run: " hidden)
  string(FIND "${page}" "<!-- shows: " shown)
  if(block EQUAL -1 AND hidden EQUAL -1 AND shown EQUAL -1)
    break()
  endif()
  # Whichever comes first.
  set(is_shown FALSE)
  if(NOT shown EQUAL -1 AND (hidden EQUAL -1 OR shown LESS hidden))
    set(hidden ${shown})
    set(is_shown TRUE)
  endif()
  if(hidden EQUAL -1 OR (NOT block EQUAL -1 AND block LESS hidden))
    set(is_shown FALSE)
    set(begin ${block})
    set(open 7)
    set(close "```")
  else()
    set(begin ${hidden})
    set(open 10)
    if(is_shown)
      set(open 12)
    endif()
    set(close " -->")
  endif()
  math(EXPR inner "${begin} + ${open}")
  string(SUBSTRING "${page}" 0 ${inner} before)
  string(SUBSTRING "${page}" ${inner} -1 page)
  string(FIND "${page}" "${close}" end)
  if(end EQUAL -1)
    message(FATAL_ERROR "${PAGE}:${line}: a block has no end")
  endif()
  string(SUBSTRING "${page}" 0 ${end} code)
  string(SUBSTRING "${page}" ${end} -1 page)
  # The end of this block must not be taken for the beginning of another one.
  string(LENGTH "${close}" length)
  string(SUBSTRING "${page}" ${length} -1 page)
  count_lines("${before}" above)
  count_lines("${code}" within)
  math(EXPR line "${line} + ${above}")
  if(is_shown)
    # The last block above, between its fences.
    string(REGEX MATCH "```[a-z]+\n([^`]|`[^`])*\n```\n<!-- shows: $" block "${before}")
    if(block STREQUAL "")
      message(FATAL_ERROR "${PAGE}:${line}: no block stands above this line")
    endif()
    string(REGEX REPLACE "^```[a-z]+\n(.*)\n```\n<!-- shows: $" "\\1" block "${block}")
    set(code "EXPECT_EQ(std::string(${code}), R\"page(${block})page\");")
  endif()
  set(located "#line ${line} \"${PAGE}\"\n${code}\n")
  math(EXPR line "${line} + ${within}")
  if(code MATCHES "^(struct|class|template|#include)")
    string(APPEND outside "${located}")
  else()
    string(APPEND body "${located}")
  endif()
  math(EXPR blocks "${blocks} + 1")
endwhile()
if(blocks EQUAL 0)
  message(FATAL_ERROR "${PAGE} has no code to run")
endif()

# As it is: nothing in the code is a variable of CMake.
file(WRITE ${OUT} "// Made from ${PAGE}.
#include <gtest/gtest.h>

#include <iostream>

#include \"docs/page_folder.h\"
#include \"weft/extend.h\"
#include \"weft/weft.h\"

using namespace weft;

namespace {

${outside}
TEST(Pages, ${name}) {
  const weft::testing::PageFolder folder(\"${name}\");
${body}
}

}  // namespace
")
