#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/ref.h"
#include "weft/core/storage.h"

namespace weft {

// The bytes of a file. One that is opened is mapped: what nobody looks at is never read, and memory of
// tensors may be a part of it. Such a part can be written to, which changes the process's own copy of the
// page and never the file. A file that another program makes shorter meanwhile ends the process, as for any
// mapping.
class FileBytes final : public RefCounted {
 public:
  static Ref<FileBytes> open(const std::string& path);
  // A copy of bytes in memory; `source` is what messages call it.
  static Ref<FileBytes> copy_of(std::string_view bytes, std::string source);
  // Part of another one, which it keeps.
  static Ref<FileBytes> part(Ref<FileBytes> whole, uint64_t offset, uint64_t size, std::string source);
  ~FileBytes();

  const std::string& source() const noexcept { return source_; }
  uint64_t size() const noexcept { return size_; }
  // The caller has checked the range.
  std::string_view view(uint64_t offset, uint64_t count) const {
    return {data_ + offset, static_cast<size_t>(count)};
  }
  std::string_view all() const { return view(0, size_); }
  // Memory of tensors with elements of `alignment` bytes at most: these bytes themselves where they are
  // aligned to that, else a copy.
  Ref<Storage> storage(uint64_t offset, uint64_t count, size_t alignment);

 private:
  FileBytes() = default;

  char* data_ = nullptr;
  uint64_t size_ = 0, mapped_ = 0;
  std::string source_, owned_;
  Ref<FileBytes> whole_;
};

// Writes a file so that it is there as a whole or not at all: into a temporary file beside it, which takes
// its name at the end. Whoever has the old file mapped keeps it.
class FileWriter {
 public:
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  void write(const void* data, size_t count);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  // An error, with nothing left behind, if the file could not be written.
  void finish();

 private:
  void discard() noexcept;

  std::string path_, temporary_;
  int file_ = -1;
  std::string buffer_;
};

}  // namespace weft
