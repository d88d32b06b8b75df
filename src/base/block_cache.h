#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define WEFT_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WEFT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WEFT_TSAN 1
#endif
#endif
#ifdef WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace weft::detail {

inline constexpr size_t kAlignment = 64;

// Sizes are rounded up to a class: multiples of 64 up to 512, then four steps a doubling, so that at most a
// fifth of a block is unused.
constexpr int size_class(size_t bytes) {
  size_t units = (bytes - 1) / kAlignment;
  if (units < 8) return static_cast<int>(units);
  int shift = static_cast<int>(std::bit_width(units)) - 3;
  return 4 + shift * 4 + static_cast<int>((units >> shift) & 3);
}
constexpr size_t class_bytes(int size_class) {
  if (size_class < 8) return (size_class + 1) * kAlignment;
  int shift = size_class / 4 - 1, quarter = size_class % 4;
  return (static_cast<size_t>(5 + quarter) << shift) * kAlignment;
}
inline constexpr int kClassCount = size_class(size_t{1} << 63) + 1;
static_assert(class_bytes(size_class(513)) == 640 && class_bytes(size_class(1024)) == 1024);

// No-ops except under ASan.
inline void mark_unused([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) noexcept {
#ifdef WEFT_ASAN
  ASAN_POISON_MEMORY_REGION(block, bytes);
#endif
}

// The first `asked` bytes of a block may be used, the rest of its class may not.
inline void mark_used([[maybe_unused]] void* block, [[maybe_unused]] size_t asked,
                      [[maybe_unused]] size_t whole) noexcept {
#ifdef WEFT_ASAN
  ASAN_UNPOISON_MEMORY_REGION(block, asked);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + asked, whole - asked);
#endif
}

// Memory from the system; null when there is none.
void* system_allocate(size_t bytes) noexcept;
void system_free(void* block, size_t bytes) noexcept;

// Freed blocks by size class, bounded in bytes. Not thread-safe: its owner locks.
class BlockCache {
 public:
  explicit BlockCache(size_t limit) : limit_(limit) {}

  // A block of the class, or null.
  void* take(int size_class) noexcept;
  // Keeps the block, at the cost of blocks of classes that were not wanted for longer, or frees it.
  void put(void* block, int size_class) noexcept;
  void set_limit(size_t limit) noexcept;
  void clear() noexcept { shrink_to(0); }
  size_t bytes() const { return bytes_; }

 private:
  void shrink_to(size_t bytes) noexcept;
  int least_recent_class() const;

  size_t limit_, bytes_ = 0;
  uint64_t clock_ = 0;
  std::array<std::vector<void*>, kClassCount> blocks_;
  std::array<uint64_t, kClassCount> last_use_{};
};

}  // namespace weft::detail
