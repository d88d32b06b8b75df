#include "weft/base/detail/arena.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/ceil_div.h"
#include "weft/base/detail/object_pool.h"

namespace weft {
namespace {

// The larger a block, the longer its last object keeps it; the smaller, the more often malloc is called.
constexpr size_t kSmallestBlock = size_t{2} << 10, kUsualBlock = size_t{64} << 10;
constexpr size_t kUnsettled = size_t{1} << 48;

}  // namespace

void* Arena::allocate(size_t bytes) {
  if (!detail::kPoolsObjects) return ::operator new(bytes);
  // Before each object: its block.
  bytes = sizeof(Block*) + ceil_div(bytes, kAlignment) * kAlignment;
  if (!block_ || bytes > block_->bytes - static_cast<size_t>(next_ - reinterpret_cast<char*>(block_))) {
    const size_t usual = block_ ? std::min(2 * block_->bytes, kUsualBlock) : kSmallestBlock;
    const size_t wanted = std::max(usual, sizeof(Block) + bytes);
    void* memory = std::malloc(wanted);
    if (!memory) throw std::bad_alloc();
    let_go();
    block_ = new (memory) Block{wanted, kUnsettled};
    next_ = reinterpret_cast<char*>(block_ + 1);
  }
  auto* object = reinterpret_cast<Block**>(std::exchange(next_, next_ + bytes));
  *object = block_;
  ++objects_;
  return object + 1;
}

void Arena::free(void* memory) noexcept {
  if (!detail::kPoolsObjects) return ::operator delete(memory);
  drop(static_cast<Block**>(memory)[-1], 1);
}

void Arena::drop(Block* block, size_t objects) noexcept {
  if (block->objects.fetch_sub(objects, std::memory_order_acq_rel) != objects) return;
  block->~Block();
  std::free(block);
}

void Arena::let_go() noexcept {
  if (block_) drop(block_, kUnsettled - std::exchange(objects_, 0));
  block_ = nullptr;
}

}  // namespace weft
