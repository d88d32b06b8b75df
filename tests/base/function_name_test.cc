#include "base/function_name.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(FunctionName, IsShort) {
  EXPECT_EQ(short_function("weft::(anonymous namespace)::Net::forward(weft::Tensor const&)"), "forward");
  EXPECT_EQ(short_function("std::vector<int> app::run<app::Net, int>(app::Net const&, int (*)(int)) const"),
            "run");
  EXPECT_EQ(short_function("main::{lambda(auto:1&&)#1}::operator()<int&>(int&) const"), "operator()");
  EXPECT_EQ(short_function("app::operator<<(std::ostream&, app::Net const&)"), "operator<<");
  EXPECT_EQ(short_function("main"), "main");
  EXPECT_EQ(short_function(""), "");
}

}  // namespace
}  // namespace weft
