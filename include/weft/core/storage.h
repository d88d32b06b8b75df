#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/detail/object_pool.h"
#include "weft/base/device.h"
#include "weft/base/ref.h"

namespace weft {

// A block of bytes that tensors view. It may have no memory (`meta` and fake tensors): identity, size and
// version are there all the same, so that aliasing is known without data.
class Storage final : public RefCounted, public Pooled {
 public:
  // Owned memory of `bytes` bytes on `device`, 64-byte aligned and uninitialised.
  static Ref<Storage> allocate(size_t bytes, Device device);
  // An identity without memory.
  static Ref<Storage> without_memory(size_t bytes, Device device);
  // Memory owned by somebody else, aligned to elements only; `release(context)`, if any, is called at the
  // end.
  static Ref<Storage> borrow(void* data, size_t bytes, Device device, void (*release)(void*), void* context);
  ~Storage();

  void* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  bool has_memory() const noexcept { return has_memory_; }

  // Grows or shrinks, keeping the common prefix. An error for borrowed memory.
  void resize(size_t bytes);
  // Exchanges contents (not identity); used by `set_data`.
  void swap_contents(Storage& other) noexcept;

  // Counts in-place writes; shared by every tensor that views this storage.
  uint32_t version() const noexcept { return version_; }
  void bump_version() noexcept { ++version_; }
  // For a storage that stands for another one.
  void set_version(uint32_t version) noexcept { version_ = version; }

 private:
  static Ref<Storage> make(void* data, size_t bytes, Device device, bool has_memory);
  Storage(void* data, size_t bytes, Device device, bool has_memory)
      : data_(data), bytes_(bytes), device_(device), has_memory_(has_memory) {}

  void* data_;
  size_t bytes_;
  Device device_;
  bool has_memory_;
  uint32_t version_ = 0;
  void (*release_)(void*) = nullptr;
  void* context_ = nullptr;
};

}  // namespace weft
