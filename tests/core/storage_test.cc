#include "weft/core/storage.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/base/allocator.h"

namespace weft {
namespace {

constexpr Device kSim{DeviceType::kSim, 5};

TEST(Storage, IsAligned) {
  for (const size_t bytes : {1, 7, 64, 100, 4096, 1 << 20}) {
    const Ref<Storage> storage = Storage::allocate(bytes, kCpu);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u) << bytes;
    EXPECT_EQ(storage->bytes(), bytes);
    EXPECT_TRUE(storage->has_memory());
  }
}

TEST(Storage, OfNoBytesHasNoData) {
  const Ref<Storage> storage = Storage::allocate(0, kCpu);
  EXPECT_EQ(storage->data(), nullptr);
  EXPECT_EQ(storage->bytes(), 0u);
}

TEST(Storage, LivesAsLongAsSomebodyHoldsIt) {
  const size_t before = allocator_stats().bytes_in_use;
  {
    const Tensor x = ones({1000});
    const Tensor view = x.slice(0, 10, 20);
    EXPECT_EQ(x.storage()->use_count(), 2u);
    EXPECT_EQ(allocator_stats().bytes_in_use, before + 4000);
  }
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
}

TEST(Storage, AViewKeepsTheMemoryOfItsBase) {
  Tensor view;
  {
    const Tensor base = full({4, 4}, 7);
    view = base.select(0, 3).detach();
  }
  EXPECT_EQ(testing::values(view), std::vector<double>(4, 7));
}

TEST(Storage, ResizeKeepsTheCommonPrefix) {
  const Ref<Storage> storage = Storage::allocate(8, kCpu);
  std::memcpy(storage->data(), "abcdefg", 8);
  storage->resize(1 << 16);
  EXPECT_EQ(storage->bytes(), size_t{1} << 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u);
  EXPECT_STREQ(static_cast<char*>(storage->data()), "abcdefg");
  storage->resize(4);
  EXPECT_EQ(std::memcmp(storage->data(), "abcd", 4), 0);
  storage->resize(0);
  EXPECT_EQ(storage->bytes(), 0u);
}

TEST(Storage, ResizeThatFailsLeavesItAsItWas) {
  const Ref<Storage> storage = Storage::allocate(8, kCpu);
  std::memcpy(storage->data(), "abcdefg", 8);
  const size_t before = allocator_stats().bytes_in_use;
  EXPECT_ERROR_TYPE(OutOfMemoryError, storage->resize(size_t{1} << 50), "out of memory on cpu");
  EXPECT_EQ(storage->bytes(), 8u);
  EXPECT_STREQ(static_cast<char*>(storage->data()), "abcdefg");
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
}

TEST(Storage, BorrowedMemoryGoesBackAtTheEnd) {
  float data[4] = {1, 2, 3, 4};
  int released = 0;
  {
    const Ref<Storage> storage = Storage::borrow(
        data, sizeof data, kCpu, [](void* context) { ++*static_cast<int*>(context); }, &released);
    EXPECT_EQ(storage->data(), data);
    EXPECT_USER_ERROR(storage->resize(100), "resize");
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(Storage, WithoutMemoryHasIdentityAndSize) {
  const Ref<Storage> storage = Storage::without_memory(1 << 20, kMeta);
  EXPECT_FALSE(storage->has_memory());
  EXPECT_EQ(storage->data(), nullptr);
  EXPECT_EQ(storage->bytes(), size_t{1} << 20);
}

TEST(Storage, SwapsContentsButNotIdentity) {
  const Ref<Storage> a = Storage::allocate(8, kCpu), b = Storage::allocate(16, kCpu);
  void *const first = a->data(), *const second = b->data();
  a->swap_contents(*b);
  EXPECT_EQ(a->data(), second);
  EXPECT_EQ(a->bytes(), 16u);
  EXPECT_EQ(b->data(), first);
}

TEST(Storage, ExhaustedMemorySaysWhatWasAskedAndLeaksNothing) {
  const size_t before = allocator_stats().bytes_in_use;
  EXPECT_ERROR_TYPE(OutOfMemoryError, zeros({int64_t{1} << 45}),
                    "out of memory on cpu: asked for 140737488355328 bytes (128.0 TiB)");
  EXPECT_EQ(allocator_stats().bytes_in_use, before);
}

TEST(Storage, ADeviceThatIsFullRefusesAndGoesOn) {
  Allocator& memory = allocator_for(kSim);
  memory.set_capacity(1 << 20);
  const size_t before = memory.stats().bytes_in_use;
  {
    const Tensor x = ones({1000}, kFloat32, std::nullopt, kSim);
    EXPECT_EQ(memory.stats().bytes_in_use, before + 4000);
    EXPECT_ERROR_TYPE(OutOfMemoryError, ones({1 << 20}, kFloat32, std::nullopt, kSim),
                      "out of memory on sim:5");
    EXPECT_EQ(memory.stats().bytes_in_use, before + 4000);
    EXPECT_EQ(testing::values(x.to(kCpu, kFloat32)), std::vector<double>(1000, 1));
  }
  EXPECT_EQ(memory.stats().bytes_in_use, before);
  memory.set_capacity(std::numeric_limits<size_t>::max());
}

TEST(Storage, AnOperatorThatRunsOutOfMemoryChangesNothing) {
  Allocator& memory = allocator_for(kSim);
  const Tensor x = ones({64}, kFloat32, std::nullopt, kSim);
  memory.set_capacity(memory.stats().bytes_in_use + 100);
  const uint32_t version = x.version();
  EXPECT_ERROR_TYPE(OutOfMemoryError, x + x, "out of memory on sim:5");
  EXPECT_EQ(x.version(), version);
  memory.set_capacity(std::numeric_limits<size_t>::max());
  EXPECT_EQ(testing::values((x + x).to(kCpu, kFloat32)), std::vector<double>(64, 2));
}

TEST(Storage, StatisticsCountAllocationsAndTheirReuse) {
  empty_cache();
  const AllocatorStats before = allocator_stats();
  for (int i = 0; i < 10; ++i) empty({5000});
  const AllocatorStats after = allocator_stats();
  EXPECT_EQ(after.allocations - before.allocations, 10u);
  EXPECT_EQ(after.cache_hits - before.cache_hits, 9u);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_GE(after.cached_bytes, 20'000u);
}

}  // namespace
}  // namespace weft
