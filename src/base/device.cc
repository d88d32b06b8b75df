#include "weft/base/device.h"

#include <charconv>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr int kLastIndex = 127;

// The number after "sim:", or -1 if it is not one.
int parse_index(std::string_view digits) {
  int index = -1;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && index >= 0 && index <= kLastIndex ? index : -1;
}

}  // namespace

Device::Device(std::string_view text) {
  if (text == "cpu") return;
  if (text == "meta" || text == "sim") {
    type = text == "meta" ? DeviceType::kMeta : DeviceType::kSim;
    return;
  }
  int parsed = text.starts_with("sim:") ? parse_index(text.substr(4)) : -1;
  require(parsed >= 0, "\"{}\" is not a device; expected cpu, meta, sim, or sim:N with N from 0 to {}", text,
          kLastIndex);
  type = DeviceType::kSim;
  index = static_cast<int8_t>(parsed);
}

std::string Device::to_string() const {
  switch (type) {
    case DeviceType::kCpu:
      return "cpu";
    case DeviceType::kMeta:
      return "meta";
    case DeviceType::kSim:
      break;
  }
  return fmt::format("sim:{}", static_cast<int>(index));
}

std::string_view memory_format_name(MemoryFormat format) {
  switch (format) {
    case MemoryFormat::kContiguous:
      return "contiguous_format";
    case MemoryFormat::kPreserve:
      return "preserve_format";
    case MemoryFormat::kChannelsLast:
      return "channels_last";
    case MemoryFormat::kChannelsLast3d:
      break;
  }
  return "channels_last_3d";
}

}  // namespace weft
