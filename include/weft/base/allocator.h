#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/device.h"

namespace weft {

namespace detail {
struct SharedMemory;
}

struct AllocatorStats {
  size_t bytes_in_use = 0;   // asked for and not given back
  size_t peak_bytes = 0;     // the most ever in use: exact while one thread allocates, else close to it
  size_t cached_bytes = 0;   // given back and kept for reuse
  uint64_t allocations = 0;  // calls of `allocate` for at least one byte
  uint64_t cache_hits = 0;   // those that a cache answered
};

// The memory of one device. Blocks are 64-byte aligned, uninitialised, and may be given back on any thread.
// Freed blocks are kept for reuse: host memory has a cache in each thread for small ones (no lock), and every
// device a shared, bounded one for the rest. Under ASan, memory that is not in use is poisoned.
class Allocator {
 public:
  explicit Allocator(Device device);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Null for zero bytes. Throws OutOfMemoryError when the memory is not to be had even after the caches have
  // been emptied, and a UserError for a size that no address space holds.
  void* allocate(size_t bytes);
  // `bytes` is what was asked for.
  void deallocate(void* block, size_t bytes) noexcept;

  AllocatorStats stats() const;
  // Starts the peak anew from what is in use now.
  void reset_peak();
  // Gives the shared cache and that of the calling thread back to the system.
  void empty_cache() noexcept;
  // Bounds the shared cache; the default is an eighth of the machine's memory, but at most 1 GiB.
  void set_cache_limit(size_t bytes);
  // Bounds the memory in use, as a device of that size would: what would go beyond is an OutOfMemoryError.
  // On the host, small blocks that a thread has cached are still given out.
  void set_capacity(size_t bytes);

 private:
  void* allocate_shared(size_t bytes);
  void deallocate_shared(void* block, size_t bytes) noexcept;

  // Never destroyed, like the allocators themselves: tensors with static lifetime are freed late.
  detail::SharedMemory* const shared_;
  const bool has_thread_caches_;
};

// The allocator of a device; an error for `meta`, whose tensors have no memory.
Allocator& allocator_for(Device device);

// Host memory.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes) noexcept;
AllocatorStats allocator_stats();
// Gives back the cached memory of all devices.
void empty_cache() noexcept;

}  // namespace weft
