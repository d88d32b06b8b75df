#include "weft/core/storage.h"

#include <cstring>
#include <utility>

#include "weft/base/allocator.h"
#include "weft/base/error.h"

namespace weft {

Ref<Storage> Storage::make(void* data, size_t bytes, Device device, bool has_memory) {
  auto* storage = new Storage(data, bytes, device, has_memory);
  storage->start_count();
  return Ref<Storage>::adopt(storage);
}

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  if (device.is_meta()) return without_memory(bytes, device);
  void* data = bytes ? allocator_for(device).allocate(bytes) : nullptr;
  return make(data, bytes, device, true);
}

Ref<Storage> Storage::without_memory(size_t bytes, Device device) {
  return make(nullptr, bytes, device, false);
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, Device device, void (*release)(void*), void* context) {
  Ref<Storage> storage = make(data, bytes, device, true);
  storage->release_ = release ? release : [](void*) {};  // what marks it as borrowed
  storage->context_ = context;
  return storage;
}

Storage::~Storage() {
  if (release_) release_(context_);
  else if (data_) allocator_for(device_).deallocate(data_, bytes_);
}

void Storage::resize(size_t bytes) {
  require(!release_,
          "resize: this storage of {} bytes is borrowed memory and cannot be resized; clone it first",
          bytes_);
  if (!has_memory_) {
    bytes_ = bytes;
    return;
  }
  void* data = bytes ? allocator_for(device_).allocate(bytes) : nullptr;
  if (data && data_) std::memcpy(data, data_, bytes < bytes_ ? bytes : bytes_);
  if (data_) allocator_for(device_).deallocate(data_, bytes_);
  data_ = data;
  bytes_ = bytes;
}

void Storage::swap_contents(Storage& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(has_memory_, other.has_memory_);
  std::swap(release_, other.release_);
  std::swap(context_, other.context_);
}

}  // namespace weft
