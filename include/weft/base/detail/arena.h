#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace weft {

// Memory for many objects that are made one after the other and mostly end together, as the nodes of a graph
// do: bump allocation in blocks that grow with their number. A block is freed with the last object in it,
// so objects may outlive the arena. One thread allocates; any may free.
class Arena {
 public:
  static constexpr size_t kAlignment = 8;

  Arena() = default;
  ~Arena() { let_go(); }
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(next_, other.next_);
    std::swap(objects_, other.objects_);
    return *this;
  }

  void* allocate(size_t bytes);
  // What any arena allocated.
  static void free(void* memory) noexcept;

 private:
  struct Block {
    size_t bytes;
    // Those that are not freed yet, and while an arena fills the block, many more: it counts what it
    // allocates by itself, and settles the difference when it lets go.
    std::atomic<size_t> objects;
  };
  static void drop(Block* block, size_t objects) noexcept;
  void let_go() noexcept;

  Block* block_ = nullptr;
  char* next_ = nullptr;  // in the block
  size_t objects_ = 0;
};

}  // namespace weft
