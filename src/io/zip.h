#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/file_bytes.h"

// Zip archives. The reader is strict, since files come from anywhere: whatever two readers could understand
// in two ways is refused.

namespace weft::zip {

struct Entry {
  std::string name;
  uint64_t offset = 0;  // of its data in the file
  uint64_t stored = 0;  // bytes there
  uint64_t size = 0;    // bytes of the content
  uint32_t crc = 0;
  bool is_deflated = false;
};

class Archive {
 public:
  // Reads the directory and the header of each entry, and no content. A FormatError that names the file, the
  // entry and the reason for: truncated records, duplicate names, entries that overlap, headers that disagree
  // about name, method, size or checksum, names that leave the folder, encryption, methods other than stored
  // and deflated, sizes that deflate cannot give, archives of several disks.
  explicit Archive(Ref<FileBytes> file);
  Archive(const Archive&) = delete;  // names are found by views of them
  Archive(Archive&&) = default;
  static Archive open(const std::string& path) { return Archive(FileBytes::open(path)); }

  const std::string& source() const noexcept { return file_->source(); }
  // In the order of their data; folders are left out.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  // Null if there is none of that name.
  const Entry* find(std::string_view name) const;
  // A FormatError that lists some of those that are there if there is none.
  const Entry& at(std::string_view name) const;

  // The content, with its checksum checked; an error beyond `most` bytes.
  std::string read(const Entry& entry, uint64_t most = kMostText) const;
  // The content as memory of tensors, see FileBytes::storage. What is stored is used in place, and its
  // checksum is not asked for.
  Ref<Storage> storage(const Entry& entry, size_t alignment) const;
  // The content of a stored entry as a file of its own.
  Ref<FileBytes> file(const Entry& entry) const;
  // Reads all of the content for its checksum.
  void check(const Entry& entry) const;

  static constexpr uint64_t kMostText = uint64_t{1} << 31;

 private:
  void inflate_into(const Entry& entry, char* into) const;

  Ref<FileBytes> file_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> places_;
};

struct WriterOptions {
  // Sizes, offsets and counts from here on are written in the records of zip64.
  uint64_t zip64_size = 0xFFFFFFFF;
  uint64_t zip64_count = 0xFFFF;
};

// Writes entries one after the other, stored, each with its data at a multiple of 64 bytes. The same entries
// give the same bytes: no time, no names of this machine.
class Writer {
 public:
  static constexpr uint64_t kAlignment = 64;
  using Put = std::function<void(std::string_view bytes)>;

  explicit Writer(Put put, WriterOptions options = {}) : put_(std::move(put)), options_(options) {}
  // An error for a name that was there before.
  void add(std::string_view name, std::string_view content);
  // Writes the directory: the end.
  void finish();

 private:
  struct Written {
    std::string name;
    uint64_t header, size;
    uint32_t crc;
  };
  void put(std::string_view bytes);

  Put put_;
  WriterOptions options_;
  uint64_t offset_ = 0;
  std::vector<Written> entries_;
  std::unordered_map<std::string, size_t> names_;
};

}  // namespace weft::zip
