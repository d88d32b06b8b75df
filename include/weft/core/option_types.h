#pragma once

#include <concepts>
#include <cstdint>

namespace weft {

// A bool argument of an operator. Only a bool converts to it: in `x.var(1)` the number is a dim, not
// `unbiased`.
class Flag {
 public:
  template <std::same_as<bool> T>
  constexpr Flag(T value) noexcept : value_(value) {}          // NOLINT(google-explicit-constructor)
  constexpr operator bool() const noexcept { return value_; }  // NOLINT(google-explicit-constructor)

 private:
  bool value_;
};

// What a loss makes of the losses of its elements. The numbers are ATen's.
enum class Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

}  // namespace weft
