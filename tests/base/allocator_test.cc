#include "weft/base/allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "base/block_cache.h"
#include "support/expect_error.h"

namespace weft {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

Device sim(int index) { return Device(DeviceType::kSim, index); }

struct Block {
  void* data;
  size_t bytes;
};

TEST(SizeClass, HoldsItsSizesAndWastesAtMostAFifth) {
  for (size_t bytes = 1; bytes < 300'000; ++bytes) {
    int cls = detail::size_class(bytes);
    size_t whole = detail::class_bytes(cls);
    ASSERT_GE(whole, bytes);
    ASSERT_EQ(whole % 64, 0u);
    ASSERT_EQ(detail::size_class(whole), cls) << bytes;
    ASSERT_LT(whole - bytes, std::max<size_t>(64, whole / 5 + 1)) << bytes;
  }
}

TEST(SizeClass, IsMonotoneToTheEndOfTheAddressSpace) {
  for (int cls = 1; cls < detail::kClassCount - 1; ++cls) {
    ASSERT_GT(detail::class_bytes(cls), detail::class_bytes(cls - 1));
    ASSERT_EQ(detail::size_class(detail::class_bytes(cls - 1) + 1), cls);
  }
}

TEST(Allocator, BlocksAreAlignedAndDisjoint) {
  std::mt19937 random(7);
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    size_t bytes = 1 + random() % (i % 50 == 0 ? 200'000 : 3'000);
    void* data = allocate(bytes);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::memset(data, i & 0xff, bytes);
    blocks.push_back({data, bytes});
    if (random() % 3 == 0) {  // gives back a random one
      size_t victim = random() % blocks.size();
      deallocate(blocks[victim].data, blocks[victim].bytes);
      blocks[victim] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) {
    auto* bytes = static_cast<unsigned char*>(block.data);
    EXPECT_EQ(std::memcmp(bytes, bytes + 1, block.bytes - 1), 0) << "somebody wrote into the block";
    deallocate(block.data, block.bytes);
  }
}

TEST(Allocator, ZeroBytesAreNullAndNotCounted) {
  AllocatorStats before = allocator_stats();
  EXPECT_EQ(allocate(0), nullptr);
  deallocate(nullptr, 0);
  EXPECT_EQ(allocator_stats().allocations, before.allocations);
}

TEST(Allocator, CountsWhatWasAskedFor) {
  for (size_t bytes : {size_t{1}, size_t{1000}, size_t{70'000}, 3 * kMiB + 1}) {
    AllocatorStats before = allocator_stats();
    void* block = allocate(bytes);
    AllocatorStats during = allocator_stats();
    EXPECT_EQ(during.bytes_in_use - before.bytes_in_use, bytes);
    EXPECT_EQ(during.allocations - before.allocations, 1u);
    deallocate(block, bytes);
    AllocatorStats after = allocator_stats();
    EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
    EXPECT_GE(after.cached_bytes, detail::class_bytes(detail::size_class(bytes)));
  }
}

TEST(Allocator, AFreedBlockIsReused) {
  for (size_t bytes : {size_t{1}, size_t{4096}, 2 * kMiB}) {
    void* first = allocate(bytes);
    deallocate(first, bytes);
    AllocatorStats before = allocator_stats();
    void* second = allocate(bytes);
    EXPECT_EQ(second, first) << bytes;
    EXPECT_EQ(allocator_stats().cache_hits - before.cache_hits, 1u);
    EXPECT_EQ(before.cached_bytes - allocator_stats().cached_bytes,
              detail::class_bytes(detail::size_class(bytes)));
    deallocate(second, bytes);
  }
}

TEST(Allocator, ThePeakIsExactOnOneThread) {
  Allocator& host = allocator_for(kCpu);
  std::mt19937 random(11);
  std::vector<Block> blocks;
  size_t start = host.stats().bytes_in_use, now = start, peak = start;
  host.reset_peak();
  for (int i = 0; i < 5000; ++i) {
    if (blocks.empty() || random() % 2) {
      size_t bytes = 1 + random() % (random() % 20 == 0 ? 100'000 : 2000);
      blocks.push_back({host.allocate(bytes), bytes});
      now += bytes;
      peak = std::max(peak, now);
    } else {
      host.deallocate(blocks.back().data, blocks.back().bytes);
      now -= blocks.back().bytes;
      blocks.pop_back();
    }
    if (i % 500 == 0) {
      ASSERT_EQ(host.stats().peak_bytes, peak) << "step " << i;
    }
  }
  for (const Block& block : blocks) host.deallocate(block.data, block.bytes);
  EXPECT_EQ(host.stats().peak_bytes, peak);
  EXPECT_EQ(host.stats().bytes_in_use, start);
  host.reset_peak();
  EXPECT_EQ(host.stats().peak_bytes, start);
}

TEST(Allocator, EmptyCacheGivesEverythingBack) {
  for (size_t bytes : {size_t{100}, size_t{5000}, 8 * kMiB}) deallocate(allocate(bytes), bytes);
  EXPECT_GT(allocator_stats().cached_bytes, 8 * kMiB);
  empty_cache();
  EXPECT_EQ(allocator_stats().cached_bytes, 0u);
}

TEST(Allocator, BlocksMayBeFreedOnAnotherThread) {
  AllocatorStats before = allocator_stats();
  std::vector<Block> blocks;
  for (size_t bytes = 1; bytes < 200'000; bytes = bytes * 3 / 2 + 1)
    blocks.push_back({allocate(bytes), bytes});
  std::thread([&] {
    for (const Block& block : blocks) deallocate(block.data, block.bytes);
  }).join();
  EXPECT_EQ(allocator_stats().bytes_in_use, before.bytes_in_use);
}

TEST(Allocator, AThreadThatEndsHandsItsCacheOver) {
  empty_cache();
  AllocatorStats before = allocator_stats();
  std::thread([] {
    for (int i = 0; i < 3; ++i) deallocate(allocate(5000), 5000);
  }).join();
  AllocatorStats after = allocator_stats();
  EXPECT_EQ(after.allocations - before.allocations, 3u);
  EXPECT_EQ(after.cache_hits - before.cache_hits, 2u);
  EXPECT_EQ(after.cached_bytes, detail::class_bytes(detail::size_class(5000)));
  void* block = allocate(5000);
  EXPECT_EQ(allocator_stats().cache_hits - after.cache_hits, 1u) << "the block of the ended thread is reused";
  deallocate(block, 5000);
}

// Freed by a thread-local object that outlives the thread's cache.
TEST(Allocator, LateThreadLocalDestructorsMayFree) {
  struct Late {
    void* block = nullptr;
    ~Late() { deallocate(block, 300); }
  };
  size_t before = allocator_stats().bytes_in_use;
  std::thread([] {
    static thread_local Late late;  // made before the cache, so destroyed after it
    late.block = allocate(300);
  }).join();
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
}

TEST(Allocator, ManyThreadsExchangeBlocks) {
  constexpr int kThreads = 4, kSlots = 64, kRounds = 5000;
  size_t before = allocator_stats().bytes_in_use;
  std::atomic<Block*> slots[kSlots] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        size_t bytes = sizeof(Block) + random() % (i % 100 == 0 ? 150'000 : 5000);
        auto* block = static_cast<Block*>(allocate(bytes));
        *block = {block, bytes};
        if (Block* old = slots[random() % kSlots].exchange(block)) {
          EXPECT_EQ(old->data, old);
          deallocate(old, old->bytes);
        }
        if (i % 1000 == 0) {
          EXPECT_GT(allocator_stats().peak_bytes, 0u);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : slots)
    if (Block* block = slot.load()) deallocate(block, block->bytes);
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
}

TEST(Allocator, SizesThatOverflowedAreTheUsersError) {
  size_t negative = static_cast<size_t>(-8);
  EXPECT_USER_ERROR(allocate(negative), "cannot allocate 18446744073709551608 bytes");
  EXPECT_USER_ERROR(allocate(std::numeric_limits<size_t>::max()), "a product of sizes that overflowed");
}

TEST(Allocator, SaysWhatWasAskedWhenTheMachineHasNoMemory) {
  size_t in_use = allocator_stats().bytes_in_use;
  EXPECT_ERROR_TYPE(OutOfMemoryError, allocate(size_t{1} << 52),
                    "out of memory on cpu: asked for 4503599627370496 bytes (4.0 PiB) with ");
  EXPECT_EQ(allocator_stats().bytes_in_use, in_use);
}

TEST(SimAllocator, EachDeviceHasItsOwnFigures) {
  Allocator &first = allocator_for(sim(1)), &second = allocator_for(sim(2));
  EXPECT_NE(&first, &second);
  EXPECT_EQ(&first, &allocator_for(Device("sim:1")));
  AllocatorStats host = allocator_stats();
  void* block = first.allocate(1000);
  EXPECT_EQ(first.stats().bytes_in_use, 1000u);
  EXPECT_EQ(second.stats().bytes_in_use, 0u);
  EXPECT_EQ(allocator_stats().bytes_in_use, host.bytes_in_use);
  first.deallocate(block, 1000);
  EXPECT_EQ(first.stats().cached_bytes, 1024u);
  EXPECT_EQ(second.stats().cached_bytes, 0u);
  EXPECT_EQ(first.stats().peak_bytes, 1000u);
  first.empty_cache();
  EXPECT_EQ(first.stats().cached_bytes, 0u);
}

TEST(SimAllocator, ItsCapacityHoldsExactly) {
  Allocator& device = allocator_for(sim(3));
  device.set_capacity(10'000);
  uint64_t allocations = device.stats().allocations;
  void* block = device.allocate(6000);
  EXPECT_ERROR_TYPE(
      OutOfMemoryError, device.allocate(4001),
      "out of memory on sim:3: asked for 4001 bytes (3.9 KiB) with 6000 bytes (5.9 KiB) in use of "
      "10000 bytes (9.8 KiB), after releasing all cached memory");
  void* rest = device.allocate(4000);
  EXPECT_EQ(device.stats().bytes_in_use, 10'000u);
  EXPECT_EQ(device.stats().peak_bytes, 10'000u);
  EXPECT_EQ(device.stats().allocations - allocations, 2u) << "the one that failed does not count";
  device.deallocate(block, 6000);
  device.deallocate(rest, 4000);
}

TEST(SimAllocator, RefusesWhatHasNoMemory) {
  EXPECT_USER_ERROR(allocator_for(kMeta), "a tensor on meta has a shape and no memory");
}

TEST(HostAllocator, CanBeBounded) {
  Allocator& host = allocator_for(kCpu);
  host.set_capacity(host.stats().bytes_in_use + kMiB);
  EXPECT_ERROR_TYPE(OutOfMemoryError, host.allocate(2 * kMiB),
                    "out of memory on cpu: asked for 2097152 bytes");
  host.set_capacity(std::numeric_limits<size_t>::max());
  void* block = host.allocate(2 * kMiB);
  host.deallocate(block, 2 * kMiB);
}

TEST(SharedCache, StaysWithinItsLimitAndKeepsWhatWasWantedLast) {
  Allocator& device = allocator_for(sim(4));
  device.set_cache_limit(3 * kMiB);
  for (size_t bytes : {kMiB, kMiB / 2, kMiB}) {  // one block of each size is kept
    device.deallocate(device.allocate(bytes), bytes);
    EXPECT_LE(device.stats().cached_bytes, 3 * kMiB);
  }
  device.deallocate(device.allocate(2 * kMiB), 2 * kMiB);  // at the cost of the half: not wanted for longer
  EXPECT_EQ(device.stats().cached_bytes, 3 * kMiB);
  uint64_t hits = device.stats().cache_hits;
  void* block = device.allocate(kMiB);
  EXPECT_EQ(device.stats().cache_hits, hits + 1);
  device.deallocate(block, kMiB);
  device.deallocate(device.allocate(4 * kMiB), 4 * kMiB);
  EXPECT_EQ(device.stats().cached_bytes, 3 * kMiB) << "a block beyond the limit is not kept";
  device.set_cache_limit(kMiB);
  EXPECT_EQ(device.stats().cached_bytes, kMiB);
}

#ifdef WEFT_ASAN
void read_after_free(size_t bytes) {
  auto* block = static_cast<volatile char*>(allocate(bytes));
  deallocate(const_cast<char*>(block), bytes);
  (void)block[0];
}
void read_beyond(size_t bytes) {
  auto* block = static_cast<volatile char*>(allocate(bytes));
  (void)block[bytes];
}

TEST(AllocatorDeathTest, AsanSeesUseAfterFreeAndOverruns) {
  EXPECT_DEATH(read_after_free(100), "use-after-poison");
  EXPECT_DEATH(read_after_free(500'000), "use-after-poison");
  EXPECT_DEATH(read_beyond(104), "use-after-poison");
  EXPECT_DEATH(read_beyond(100'000), "use-after-poison");
}
#endif

}  // namespace
}  // namespace weft
