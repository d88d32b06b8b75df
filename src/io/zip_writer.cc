#include <zlib.h>

#include <cstring>

#include "io/zip.h"
#include "weft/base/error.h"

namespace weft::zip {
namespace {

// The first day that the format can write down; what zip tools show.
constexpr uint16_t kTime = 0, kDate = (1 << 5) | 1;
constexpr uint16_t kUtf8 = 1 << 11, kPlainVersion = 20, kZip64Version = 45;

class Bytes {
 public:
  Bytes& u16(uint16_t value) { return number(value); }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& u64(uint64_t value) { return number(value); }
  Bytes& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  // A size that may be in the zip64 field instead.
  Bytes& narrow(uint64_t value, bool is_wide) {
    return u32(is_wide ? 0xFFFFFFFF : static_cast<uint32_t>(value));
  }
  const std::string& str() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  template <typename T>
  Bytes& number(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
    return *this;
  }
  std::string bytes_;
};

// What both headers of an entry have in common, from the version on.
Bytes& common(Bytes& header, uint32_t crc, uint64_t size, bool is_wide) {
  return header.u16(is_wide ? kZip64Version : kPlainVersion)
      .u16(kUtf8)
      .u16(0)
      .u16(kTime)
      .u16(kDate)
      .u32(crc)
      .narrow(size, is_wide)
      .narrow(size, is_wide);
}

}  // namespace

void Writer::put(std::string_view bytes) {
  put_(bytes);
  offset_ += bytes.size();
}

void Writer::add(std::string_view name, std::string_view content) {
  require(!name.empty() && name.size() <= 0xFFFF, "zip: a name of {} bytes cannot be written", name.size());
  require(names_.emplace(name, entries_.size()).second, "zip: there are two entries '{}'", name);
  const auto crc = static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
  entries_.push_back({std::string(name), offset_, content.size(), crc});
  const bool is_wide = content.size() >= options_.zip64_size;
  Bytes extra;
  if (is_wide) extra.u16(1).u16(16).u64(content.size()).u64(content.size());
  // Padding so that the data is aligned, in a field of its own.
  const uint64_t before = offset_ + 30 + name.size() + extra.size() + 4;
  const uint64_t padding = (kAlignment - before % kAlignment) % kAlignment;
  extra.text("FB").u16(static_cast<uint16_t>(padding)).text(std::string(padding, 'Z'));
  Bytes header;
  common(header.u32(0x04034b50), crc, content.size(), is_wide)
      .u16(static_cast<uint16_t>(name.size()))
      .u16(static_cast<uint16_t>(extra.size()))
      .text(name)
      .text(extra.str());
  put(header.str());
  put(content);
}

void Writer::finish() {
  const uint64_t directory = offset_;
  for (const Written& entry : entries_) {
    const bool wide_size = entry.size >= options_.zip64_size,
               wide_offset = entry.header >= options_.zip64_size;
    Bytes extra;
    if (wide_size || wide_offset) {
      extra.u16(1).u16(static_cast<uint16_t>((wide_size ? 16 : 0) + (wide_offset ? 8 : 0)));
      if (wide_size) extra.u64(entry.size).u64(entry.size);
      if (wide_offset) extra.u64(entry.header);
    }
    Bytes header;
    header.u32(0x02014b50).u16(wide_offset || wide_size ? kZip64Version : kPlainVersion);
    common(header, entry.crc, entry.size, wide_size)
        .u16(static_cast<uint16_t>(entry.name.size()))
        .u16(static_cast<uint16_t>(extra.size()))
        .u16(0)
        .u16(0)
        .u16(0)
        .u32(0)
        .narrow(entry.header, wide_offset)
        .text(entry.name)
        .text(extra.str());
    put(header.str());
  }
  const uint64_t size = offset_ - directory, count = entries_.size();
  const bool is_wide =
      directory >= options_.zip64_size || size >= options_.zip64_size || count >= options_.zip64_count;
  Bytes end;
  if (is_wide) {
    const uint64_t at = offset_;
    end.u32(0x06064b50).u64(44).u16(kZip64Version).u16(kZip64Version).u32(0).u32(0);
    end.u64(count).u64(count).u64(size).u64(directory);
    end.u32(0x07064b50).u32(0).u64(at).u32(1);
  }
  const auto narrow_count = static_cast<uint16_t>(is_wide ? 0xFFFF : count);
  end.u32(0x06054b50).u16(0).u16(0).u16(narrow_count).u16(narrow_count);
  end.narrow(size, is_wide).narrow(directory, is_wide).u16(0);
  put(end.str());
}

}  // namespace weft::zip
