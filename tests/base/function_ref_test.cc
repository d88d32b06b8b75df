#include "weft/base/function_ref.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft {
namespace {

int twice(int x) { return 2 * x; }

TEST(FunctionRef, RefersToFunctionsLambdasAndMembers) {
  auto call = [](FunctionRef<int(int)> f) { return f(21); };
  EXPECT_EQ(call(twice), 42);
  EXPECT_EQ(call(&twice), 42);
  int offset = 1;
  EXPECT_EQ(call([&](int x) { return x + offset; }), 22);
  int count = 0;
  auto counting = [&count, calls = 0](int) mutable { return count = ++calls; };
  call(counting);
  EXPECT_EQ(call(counting), 2) << "a reference, not a copy";
  struct Box {
    int value;
  } box{7};
  EXPECT_EQ((FunctionRef<int(const Box&)>(&Box::value)(box)), 7);
}

TEST(FunctionRef, PassesReferencesAndMoveOnlyArguments) {
  auto take = [](std::unique_ptr<int> p, int& out) { out = *p; };
  int out = 0;
  FunctionRef<void(std::unique_ptr<int>, int&)> ref = take;
  ref(std::make_unique<int>(5), out);
  EXPECT_EQ(out, 5);
}

}  // namespace
}  // namespace weft
