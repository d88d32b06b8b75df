#include "weft/base/allocator.h"

#include <pthread.h>
#include <unistd.h>

#include <utility>

#include "base/allocator_state.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using detail::class_bytes;
using detail::kDepths;
using detail::kMostBytes;
using detail::kSmallBytes;
using detail::SharedMemory;
using detail::size_class;
using detail::ThreadCache;

// The cache of this thread: made at its first allocation, gone (for good) once its thread-local objects are
// being destroyed. Trivial, so that reading it costs no check of initialisation.
constinit thread_local ThreadCache* own_cache = nullptr;
constinit thread_local bool own_cache_is_gone = false;

size_t default_cache_limit() {
  size_t memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min(memory / 8, size_t{1} << 30);
}

std::string in_units(size_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; amount >= 1024 && unit < 5; ++unit) amount /= 1024;
  return fmt::format("{} bytes ({:.1f} {})", bytes, amount, units[unit]);
}

constexpr int kSimDevices = 128;
std::array<std::atomic<Allocator*>, kSimDevices> sim_allocators{};

Allocator& host_allocator() {
  static Allocator& host = *new Allocator(kCpu);
  return host;
}

Allocator& sim_allocator(int index) {
  std::atomic<Allocator*>& slot = sim_allocators[index];
  if (Allocator* made = slot.load(std::memory_order_acquire)) return *made;
  static std::mutex making;
  std::lock_guard lock(making);
  if (!slot.load()) slot.store(new Allocator(Device(DeviceType::kSim, index)), std::memory_order_release);
  return *slot.load();
}

template <typename F>
void for_each_allocator(F f) noexcept {
  f(host_allocator());
  for (auto& slot : sim_allocators)
    if (Allocator* made = slot.load(std::memory_order_acquire)) f(*made);
}

[[noreturn]] void throw_out_of_memory(Device device, size_t asked, size_t in_use, size_t capacity) {
  std::string bound = capacity == kMostBytes ? "" : fmt::format(" of {}", in_units(capacity));
  throw OutOfMemoryError(fmt::format(
      "out of memory on {}: asked for {} with {} in use{}, after releasing all cached memory; use smaller "
      "batches, free tensors that are no longer needed, or recompute instead of saving",
      device.to_string(), in_units(asked), in_units(in_use), bound));
}

// At the end of a thread its blocks and figures go to the shared side; what other thread-local objects free
// after that goes there directly.
struct EndOfThread {
  SharedMemory* shared = nullptr;
  ~EndOfThread() {
    ThreadCache* cache = std::exchange(own_cache, nullptr);
    own_cache_is_gone = true;
    if (!cache) return;
    {
      std::lock_guard lock(shared->mutex);
      shared->settle(*cache);
      shared->spill_all(*cache);
      shared->remove_thread(*cache);
    }
    delete cache;
  }
};

void make_own_cache(SharedMemory& shared) {
  static thread_local EndOfThread end;
  end.shared = &shared;
  own_cache = new ThreadCache;
  std::lock_guard lock(shared.mutex);
  shared.add_thread(*own_cache);
}

// A block from the shared cache or the system, counted; null if there is none. `cache` is that of the calling
// thread, if the device has such.
void* take(SharedMemory& shared, ThreadCache* cache, size_t bytes) {
  int cls = size_class(bytes);
  std::unique_lock lock(shared.mutex);
  if (cache) shared.settle(*cache);
  auto in_use = static_cast<size_t>(shared.total_in_use());
  if (in_use > shared.capacity || bytes > shared.capacity - in_use) return nullptr;
  shared.in_use += static_cast<int64_t>(bytes);  // before the mutex is left: the capacity must hold
  void* block = shared.cache.take(cls);
  bool is_hit = block != nullptr;
  if (!is_hit) {
    lock.unlock();
    block = detail::system_allocate(class_bytes(cls));
    lock.lock();
  }
  if (!block) {
    shared.in_use -= static_cast<int64_t>(bytes);
    return nullptr;
  }
  ++shared.allocations;
  shared.hits += is_hit;
  shared.peak = std::max(shared.peak, shared.total_in_use());
  return block;
}

}  // namespace

Allocator::Allocator(Device device)
    : shared_(new SharedMemory(device, default_cache_limit())), has_thread_caches_(device.is_cpu()) {
  if (!has_thread_caches_) return;
  // A forked child must not inherit a mutex that another thread of its parent held.
  static SharedMemory* host = shared_;
  pthread_atfork([] { host->mutex.lock(); }, [] { host->mutex.unlock(); }, [] { host->mutex.unlock(); });
}

void* Allocator::allocate(size_t bytes) {
  ThreadCache* cache = own_cache;
  // Zero wraps around and is not small.
  if (bytes - 1 < kSmallBytes && has_thread_caches_ && cache) [[likely]] {
    int cls = size_class(bytes);
    if (uint8_t& count = cache->counts[cls]) [[likely]] {
      void* block = cache->blocks[cls][--count];
      cache->note_hit(bytes, class_bytes(cls));
      detail::mark_used(block, bytes, class_bytes(cls));
      return block;
    }
  }
  return allocate_shared(bytes);
}

void* Allocator::allocate_shared(size_t bytes) {
  if (bytes == 0) return nullptr;
  require(bytes <= kMostBytes,
          "cannot allocate {} bytes: no address space holds more than {}; a product of sizes that overflowed "
          "or a negative size gives such a number",
          bytes, kMostBytes);
  if (has_thread_caches_ && !own_cache && !own_cache_is_gone) make_own_cache(*shared_);
  ThreadCache* cache = has_thread_caches_ ? own_cache : nullptr;
  void* block = take(*shared_, cache, bytes);
  if (!block) {
    weft::empty_cache();
    block = take(*shared_, cache, bytes);
  }
  if (!block) throw_out_of_memory(shared_->device, bytes, stats().bytes_in_use, shared_->capacity);
  detail::mark_used(block, bytes, class_bytes(size_class(bytes)));
  return block;
}

void Allocator::deallocate(void* block, size_t bytes) noexcept {
  ThreadCache* cache = own_cache;
  if (bytes - 1 < kSmallBytes && has_thread_caches_ && cache) [[likely]] {
    int cls = size_class(bytes);
    uint8_t& count = cache->counts[cls];
    if (count == kDepths[cls]) {
      std::lock_guard lock(shared_->mutex);
      shared_->spill(*cache, cls, (count + 1) / 2);
    }
    detail::mark_unused(block, class_bytes(cls));
    cache->blocks[cls][count++] = block;
    cache->note_returned(bytes, class_bytes(cls));
    return;
  }
  deallocate_shared(block, bytes);
}

void Allocator::deallocate_shared(void* block, size_t bytes) noexcept {
  if (bytes == 0) return;
  int cls = size_class(bytes);
  detail::mark_unused(block, class_bytes(cls));
  std::lock_guard lock(shared_->mutex);
  if (has_thread_caches_ && own_cache) shared_->settle(*own_cache);
  shared_->in_use -= static_cast<int64_t>(bytes);
  shared_->cache.put(block, cls);
}

AllocatorStats Allocator::stats() const {
  std::lock_guard lock(shared_->mutex);
  AllocatorStats stats{.bytes_in_use = static_cast<size_t>(shared_->total_in_use()),
                       .peak_bytes = static_cast<size_t>(shared_->peak_so_far()),
                       .cached_bytes = shared_->cache.bytes(),
                       .allocations = shared_->allocations,
                       .cache_hits = shared_->hits};
  for (ThreadCache* t = shared_->threads; t; t = t->next) {
    stats.cached_bytes += static_cast<size_t>(t->cached.get());
    stats.allocations += t->hits.get();
    stats.cache_hits += t->hits.get();
  }
  return stats;
}

void Allocator::reset_peak() {
  std::lock_guard lock(shared_->mutex);
  shared_->peak = shared_->total_in_use();
  // A thread that allocates at this very moment may put its older mark back: the peak is an estimate then.
  for (ThreadCache* t = shared_->threads; t; t = t->next) t->high.set(t->in_use.get());
}

void Allocator::empty_cache() noexcept {
  std::lock_guard lock(shared_->mutex);
  if (has_thread_caches_ && own_cache) shared_->spill_all(*own_cache);
  shared_->cache.clear();
}

void Allocator::set_cache_limit(size_t bytes) {
  std::lock_guard lock(shared_->mutex);
  shared_->cache.set_limit(bytes);
}

void Allocator::set_capacity(size_t bytes) {
  std::lock_guard lock(shared_->mutex);
  shared_->capacity = std::min(bytes, kMostBytes);
}

std::optional<Device> detail::first_sim_device() noexcept {
  for (int index = 0; index < kSimDevices; ++index)
    if (sim_allocators[index].load(std::memory_order_acquire)) return Device(DeviceType::kSim, index);
  return std::nullopt;
}

Allocator& allocator_for(Device device) {
  switch (device.type) {
    case DeviceType::kCpu:
      return host_allocator();
    case DeviceType::kSim:
      require(device.index >= 0, "{} is not a device; expected sim:0 to sim:{}", device.to_string(),
              kSimDevices - 1);
      return sim_allocator(device.index);
    case DeviceType::kMeta:
      break;
  }
  fail("a tensor on {} has a shape and no memory; move it to cpu or sim to give it data", device.to_string());
}

void* allocate(size_t bytes) { return host_allocator().allocate(bytes); }
void deallocate(void* block, size_t bytes) noexcept { host_allocator().deallocate(block, bytes); }
AllocatorStats allocator_stats() { return host_allocator().stats(); }
void empty_cache() noexcept {
  for_each_allocator([](Allocator& allocator) { allocator.empty_cache(); });
}

}  // namespace weft
