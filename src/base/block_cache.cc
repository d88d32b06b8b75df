#include "base/block_cache.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace weft::detail {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

#if defined(WEFT_ASAN) || defined(WEFT_TSAN)
// Beyond this the sanitizers end the process instead of reporting a failure.
constexpr size_t kMostSystemBytes = size_t{1} << 39;
#else
constexpr size_t kMostSystemBytes = SIZE_MAX;
#endif

}  // namespace

void* system_allocate(size_t bytes) noexcept {
  if (bytes > kMostSystemBytes) return nullptr;
  bool is_huge = bytes >= kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, is_huge ? kHugePage : kAlignment, bytes) != 0) return nullptr;
  // First touch of a large block is several times faster with huge pages, and loops that walk over rows far
  // apart find them without looking up a page for each. Advice only: failure is harmless.
  if (is_huge) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return block;
}

void system_free(void* block, size_t bytes) noexcept {
  mark_used(block, bytes, bytes);
  std::free(block);
}

void* BlockCache::take(int size_class) noexcept {
  last_use_[size_class] = ++clock_;
  std::vector<void*>& blocks = blocks_[size_class];
  if (blocks.empty()) return nullptr;
  void* block = blocks.back();
  blocks.pop_back();
  bytes_ -= class_bytes(size_class);
  return block;
}

void BlockCache::put(void* block, int size_class) noexcept {
  size_t size = class_bytes(size_class);
  if (size > limit_) return system_free(block, size);
  last_use_[size_class] = ++clock_;
  shrink_to(limit_ - size);
  try {
    blocks_[size_class].push_back(block);
  } catch (const std::bad_alloc&) {
    return system_free(block, size);
  }
  bytes_ += size;
}

void BlockCache::set_limit(size_t limit) noexcept {
  limit_ = limit;
  shrink_to(limit);
}

void BlockCache::shrink_to(size_t bytes) noexcept {
  while (bytes_ > bytes) {
    int victim = least_recent_class();
    system_free(blocks_[victim].back(), class_bytes(victim));
    blocks_[victim].pop_back();
    bytes_ -= class_bytes(victim);
  }
}

int BlockCache::least_recent_class() const {
  int found = -1;
  for (int i = 0; i < kClassCount; ++i)
    if (!blocks_[i].empty() && (found < 0 || last_use_[i] < last_use_[found])) found = i;
  return found;
}

}  // namespace weft::detail
