#include "weft/base/detail/object_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft {
namespace {

struct Small : Pooled {
  explicit Small(int value) : value(value) {}
  int value;
};
struct Large : Pooled {
  char bytes[4096];
};
struct Base : Pooled {
  virtual ~Base() = default;
};
struct Derived : Base {
  char bytes[300];
};

TEST(ObjectPool, GivesTheMemoryOfAnEndedObjectToTheNext) {
  auto* first = new Small(1);
  void* place = first;
  delete first;
  auto* second = new Small(2);
  EXPECT_EQ(second == place, detail::kPoolsObjects);
  EXPECT_EQ(second->value, 2);
  delete second;
}

TEST(ObjectPool, TakesObjectsOfAnySize) {
  delete new Large;
  Base* object = new Derived;  // ends under its own size, not its base's
  delete object;
}

TEST(ObjectPool, KeepsNoMoreThanItsRoom) {
  std::vector<Small*> objects;
  for (int i = 0; i < 10'000; ++i) objects.push_back(new Small(i));
  for (int i = 0; i < 10'000; ++i) EXPECT_EQ(objects[static_cast<size_t>(i)]->value, i);
  for (Small* object : objects) delete object;
  size_t kept = 0;
  for (auto* free = detail::object_pool.free[0]; free; free = free->next) ++kept;
  EXPECT_LE(kept, 256u);
}

TEST(ObjectPool, ObjectsMayEndOnAnotherThread) {
  std::vector<Small*> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(new Small(i));
  std::thread([&] {
    for (Small* object : objects) delete object;
    delete new Small(1);
  }).join();
}

TEST(ObjectPool, ObjectsMayEndAfterTheirThreadsPool) {
  struct Holder {
    ~Holder() { delete object; }
    Small* object = nullptr;
  };
  std::thread([] {
    static thread_local Holder holder;  // made before the pool is, so destroyed after it
    holder.object = new Small(1);
  }).join();
}

}  // namespace
}  // namespace weft
