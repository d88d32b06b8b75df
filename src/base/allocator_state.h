#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>

#include "base/block_cache.h"
#include "weft/base/device.h"

// What the allocator keeps: a cache for each thread, and what the threads share.
namespace weft::detail {

inline constexpr size_t kSmallBytes = size_t{64} << 10;
inline constexpr int kSmallClasses = size_class(kSmallBytes) + 1;
inline constexpr int kDepth = 16;
inline constexpr size_t kMostBytes = std::numeric_limits<ptrdiff_t>::max();

// How many blocks of a class a thread keeps: at most 128 KiB of each.
inline constexpr auto kDepths = [] {
  std::array<uint8_t, kSmallClasses> depths{};
  for (int i = 0; i < kSmallClasses; ++i)
    depths[i] = static_cast<uint8_t>(std::min<size_t>(kDepth, 2 * kSmallBytes / class_bytes(i)));
  return depths;
}();

// A number that one thread changes and others may read.
template <typename T>
class Published {
 public:
  T get() const { return value_.load(std::memory_order_relaxed); }
  void set(T value) { value_.store(value, std::memory_order_relaxed); }
  // Not a read-modify-write: there is one writer.
  void add(T amount) { set(get() + amount); }

 private:
  std::atomic<T> value_{0};
};

// The small free blocks of one thread, and what it has counted since its figures were last settled.
struct ThreadCache {
  Published<int64_t> in_use, high, cached;
  Published<uint64_t> hits;
  ThreadCache *next = nullptr, *previous = nullptr;
  std::array<uint8_t, kSmallClasses> counts{};
  std::array<std::array<void*, kDepth>, kSmallClasses> blocks;

  void note_hit(size_t bytes, size_t whole) {
    in_use.add(static_cast<int64_t>(bytes));
    if (in_use.get() > high.get()) high.set(in_use.get());
    cached.add(-static_cast<int64_t>(whole));
    hits.add(1);
  }
  void note_returned(size_t bytes, size_t whole) {
    in_use.add(-static_cast<int64_t>(bytes));
    cached.add(static_cast<int64_t>(whole));
  }
};

// What all threads share of one device's allocator. Its members are guarded by its mutex.
struct SharedMemory {
  SharedMemory(Device device, size_t cache_limit) : device(device), cache(cache_limit) {}

  const Device device;
  mutable std::mutex mutex;
  BlockCache cache;
  size_t capacity = kMostBytes;
  // Settled figures; those of the threads come on top.
  int64_t in_use = 0, peak = 0;
  uint64_t allocations = 0, hits = 0;
  ThreadCache* threads = nullptr;

  int64_t total_in_use() const {
    int64_t total = in_use;
    for (ThreadCache* t = threads; t; t = t->next) total += t->in_use.get();
    return total;
  }
  int64_t peak_so_far() const {
    int64_t total = total_in_use(), highest = peak;
    for (ThreadCache* t = threads; t; t = t->next)
      highest = std::max(highest, total - t->in_use.get() + t->high.get());
    return std::max(highest, total);
  }
  // Moves the calling thread's figures to the shared ones.
  void settle(ThreadCache& t) {
    peak = peak_so_far();
    in_use += t.in_use.get();
    allocations += t.hits.get();
    hits += t.hits.get();
    t.in_use.set(0);
    t.high.set(0);
    t.hits.set(0);
  }

  void add_thread(ThreadCache& t) {
    t.next = threads;
    if (threads) threads->previous = &t;
    threads = &t;
  }
  void remove_thread(ThreadCache& t) {
    (t.previous ? t.previous->next : threads) = t.next;
    if (t.next) t.next->previous = t.previous;
  }

  // Moves the last `count` blocks of a class to the shared cache.
  void spill(ThreadCache& t, int cls, int count) noexcept {
    for (; count > 0; --count) {
      cache.put(t.blocks[cls][--t.counts[cls]], cls);
      t.cached.add(-static_cast<int64_t>(class_bytes(cls)));
    }
  }
  void spill_all(ThreadCache& t) noexcept {
    for (int cls = 0; cls < kSmallClasses; ++cls) spill(t, cls, t.counts[cls]);
  }
};

// The first simulated device whose memory was ever asked for.
std::optional<Device> first_sim_device() noexcept;

}  // namespace weft::detail
