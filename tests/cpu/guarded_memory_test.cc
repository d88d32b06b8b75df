// The guard itself: the other tests of kernels rely on it.
#include "guarded_memory.h"

#include <gtest/gtest.h>

namespace weft::cpu::testing {
namespace {

TEST(GuardedMemory, IsOrdinaryUpToItsEnd) {
  for (size_t n : {1, 7, 1023, 1024, 1025, 5000}) {
    GuardedVector<float> x(n, 2.0f);
    const GuardedVector<float> copy = x;
    x.back() = 3;
    EXPECT_EQ(x.back() + copy.back(), 5) << n;
  }
}

TEST(GuardedMemoryDeathTest, EndsTheTestThatGoesOn) {
  GuardedVector<float> x(5);
  volatile float* end = x.data() + x.size();
  EXPECT_DEATH(static_cast<void>(*end), "");
  EXPECT_DEATH(*end = 1, "");
}

}  // namespace
}  // namespace weft::cpu::testing
