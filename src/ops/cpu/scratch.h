#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "weft/base/allocator.h"

namespace weft::cpu {

// Working memory that lasts as long as the scope. Uninitialised.
class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 0))),
        data_(static_cast<char*>(allocate(bytes_))) {}
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(Scratch&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  char* data() const { return data_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  char* data_;
};

}  // namespace weft::cpu
