#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace weft {
namespace detail {

// Sanitizers are to see every object come and go.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoolsObjects = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kPoolsObjects = false;
#else
inline constexpr bool kPoolsObjects = true;
#endif
#else
inline constexpr bool kPoolsObjects = true;
#endif

inline constexpr size_t kPoolStep = 64, kPoolClasses = 16;

// Free lists of this thread, one for each size class, and how much more each may keep: nothing before the
// thread's first use of the pool and after its end.
struct ObjectPool {
  struct Free {
    Free* next;
  };
  Free* free[kPoolClasses];
  uint32_t room[kPoolClasses];
};
extern constinit thread_local ObjectPool object_pool;

void* allocate_unpooled(size_t size_class);
void free_unpooled(void* memory, size_t size_class) noexcept;

}  // namespace detail

// A base for small classes whose objects come and go with every operator call: their memory is kept for the
// next object, in free lists of the thread that frees it, without locks.
struct Pooled {
  static void* operator new(size_t bytes) {
    size_t size_class = (bytes - 1) / detail::kPoolStep;
    if (!detail::kPoolsObjects || size_class >= detail::kPoolClasses) return ::operator new(bytes);
    detail::ObjectPool& pool = detail::object_pool;
    detail::ObjectPool::Free* memory = pool.free[size_class];
    if (!memory) [[unlikely]]
      return detail::allocate_unpooled(size_class);
    pool.free[size_class] = memory->next;
    ++pool.room[size_class];
    return memory;
  }
  static void operator delete(void* memory, size_t bytes) noexcept {
    size_t size_class = (bytes - 1) / detail::kPoolStep;
    if (!detail::kPoolsObjects || size_class >= detail::kPoolClasses) return ::operator delete(memory);
    detail::ObjectPool& pool = detail::object_pool;
    if (pool.room[size_class] == 0) [[unlikely]]
      return detail::free_unpooled(memory, size_class);
    --pool.room[size_class];
    pool.free[size_class] = new (memory) detail::ObjectPool::Free{pool.free[size_class]};
  }
};

}  // namespace weft
