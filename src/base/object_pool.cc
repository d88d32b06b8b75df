#include "weft/base/detail/object_pool.h"

#include <utility>

namespace weft::detail {

constinit thread_local ObjectPool object_pool{};

namespace {

// How many objects of a class a thread keeps: with all classes full, 2 MiB.
constexpr uint32_t kMostKept = 256;

enum class Stage : uint8_t { kUnused, kOpen, kEnded };
constinit thread_local Stage stage = Stage::kUnused;

// Gives back what the pool holds. Objects that end later, those of static lifetime among them, find no room
// in it.
struct EndOfThread {
  ~EndOfThread() {
    stage = Stage::kEnded;
    for (size_t i = 0; i < kPoolClasses; ++i) {
      object_pool.room[i] = 0;
      for (ObjectPool::Free* memory = std::exchange(object_pool.free[i], nullptr); memory;)
        ::operator delete(std::exchange(memory, memory->next));
    }
  }
};

void open_pool() {
  static thread_local EndOfThread end;
  (void)end;
  stage = Stage::kOpen;
  for (uint32_t& room : object_pool.room) room = kMostKept;
}

}  // namespace

void* allocate_unpooled(size_t size_class) {
  if (stage == Stage::kUnused) open_pool();
  return ::operator new((size_class + 1) * kPoolStep);
}

void free_unpooled(void* memory, size_t size_class) noexcept {
  if (stage != Stage::kUnused) return ::operator delete(memory);
  open_pool();
  --object_pool.room[size_class];
  object_pool.free[size_class] = new (memory) ObjectPool::Free{nullptr};
}

}  // namespace weft::detail
