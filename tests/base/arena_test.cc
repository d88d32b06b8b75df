#include "weft/base/detail/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "weft/base/detail/object_pool.h"

namespace weft {
namespace {

TEST(Arena, ObjectsLieOneAfterTheOther) {
  Arena arena;
  auto* first = static_cast<char*>(arena.allocate(24));
  auto* second = static_cast<char*>(arena.allocate(24));
  // Sanitizers are to see every object come and go.
  EXPECT_TRUE(!detail::kPoolsObjects || second - first == 32) << second - first;
  Arena::free(first);
  Arena::free(second);
}

// Any sizes, freed in any order, before and after the arena ends: no byte is given to two objects.
TEST(Arena, KeepsObjectsApart) {
  std::mt19937 random(7);
  struct Object {
    char* memory;
    size_t bytes;
    char mark;
  };
  std::vector<Object> objects;
  auto end_some = [&](size_t left) {
    std::shuffle(objects.begin(), objects.end(), random);
    for (; objects.size() > left; objects.pop_back()) {
      const Object& object = objects.back();
      EXPECT_EQ(static_cast<size_t>(std::count(object.memory, object.memory + object.bytes, object.mark)),
                object.bytes);
      Arena::free(object.memory);
    }
  };
  {
    Arena arena;
    for (int i = 0; i < 20000; ++i) {
      // Most are small; one in a thousand is larger than any block.
      const size_t bytes = random() % 1000 == 0 ? (size_t{3} << 20) : 1 + random() % 700;
      auto* memory = static_cast<char*>(arena.allocate(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % Arena::kAlignment, 0U);
      const char mark = static_cast<char>(random());
      std::memset(memory, mark, bytes);
      objects.push_back({memory, bytes, mark});
      if (objects.size() == 3000) end_some(1000);
    }
    Arena other;
    void* memory = other.allocate(8);
    other = std::move(arena);  // whatever each holds is freed once
    Arena::free(memory);
  }
  end_some(0);
}

TEST(Arena, AnyThreadFrees) {
  std::vector<void*> objects;
  {
    Arena arena;
    for (int i = 0; i < 10000; ++i) objects.push_back(arena.allocate(64));
  }
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < objects.size(); i += 4) Arena::free(objects[i]);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft
