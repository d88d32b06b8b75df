#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class DeviceType : uint8_t {
  kCpu,
  kMeta,  // shapes without data
  kSim,   // a simulated accelerator: its own memory, explicit copies, the CPU's kernels
};

// Where a tensor's memory is: `cpu`, `meta`, or `sim:N`.
struct Device {
  DeviceType type = DeviceType::kCpu;
  int8_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType type, int index = 0)  // NOLINT(google-explicit-constructor)
      : type(type), index(static_cast<int8_t>(index)) {}
  // Parses "cpu", "meta", "sim" or "sim:3"; an error otherwise.
  explicit Device(std::string_view text);
  bool operator==(const Device&) const = default;
  constexpr bool is_cpu() const { return type == DeviceType::kCpu; }
  constexpr bool is_meta() const { return type == DeviceType::kMeta; }
  std::string to_string() const;
};

inline constexpr Device kCpu{DeviceType::kCpu};
inline constexpr Device kMeta{DeviceType::kMeta};

enum class Layout : uint8_t { kStrided };
enum class MemoryFormat : uint8_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
std::string_view memory_format_name(MemoryFormat format);

}  // namespace weft
