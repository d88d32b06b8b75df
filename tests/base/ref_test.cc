#include "weft/base/ref.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft {
namespace {

struct Counted : RefCounted {
  explicit Counted(int* alive) : alive(alive) { ++*alive; }
  ~Counted() { --*alive; }
  int* alive;
};

TEST(Ref, TheLastHandleDestroys) {
  int alive = 0;
  {
    Ref<Counted> a = make_ref<Counted>(&alive);
    EXPECT_EQ(a->use_count(), 1u);
    Ref<Counted> b = a;
    EXPECT_EQ(a->use_count(), 2u);
    EXPECT_TRUE(a == b);
    Ref<Counted> c = std::move(b);
    EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move): a moved handle is null
    EXPECT_EQ(c->use_count(), 2u);
    a.reset();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Ref, AssignmentOfItselfAndOfOthers) {
  int alive = 0;
  Ref<Counted> a = make_ref<Counted>(&alive), b = make_ref<Counted>(&alive);
  Ref<Counted>& same = a;
  a = same;
  EXPECT_EQ(a->use_count(), 1u);
  a = b;
  EXPECT_EQ(alive, 1);
  a = nullptr;
  b.reset();
  EXPECT_EQ(alive, 0);
}

TEST(Ref, DetachedHandlesAreAdopted) {
  int alive = 0;
  Counted* raw = make_ref<Counted>(&alive).detach();
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(raw->use_count(), 1u);
  {
    auto adopted = Ref<Counted>::adopt(raw);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Ref, ManyThreadsShareOneObject) {
  int alive = 0;
  Ref<Counted> shared = make_ref<Counted>(&alive);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([mine = shared] {
      for (int i = 0; i < 1000; ++i) Ref<Counted> copy = mine;
    });
  shared.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace weft
