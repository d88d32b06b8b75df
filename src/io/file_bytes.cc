#include "io/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr size_t kBufferSize = size_t{1} << 20;

}  // namespace

Ref<FileBytes> FileBytes::open(const std::string& path) {
  struct Descriptor {
    int number;
    ~Descriptor() {
      if (number >= 0) ::close(number);
    }
  } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  require(file.number >= 0, "cannot open '{}' for reading: {}", path, std::strerror(errno));
  struct stat status{};
  require(::fstat(file.number, &status) == 0, "cannot ask for the size of '{}': {}", path,
          std::strerror(errno));
  require(S_ISREG(status.st_mode), "'{}' is no regular file; only those can be mapped", path);
  Ref<FileBytes> bytes = Ref<FileBytes>(new FileBytes);
  bytes->source_ = path;
  bytes->size_ = static_cast<uint64_t>(status.st_size);
  if (bytes->size_ == 0) return bytes;
  // Private pages, so that training may write to weights; without reserving memory for pages that nobody
  // writes to, so that files may be larger than memory.
  void* data =
      ::mmap(nullptr, bytes->size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.number, 0);
  require(data != MAP_FAILED, "cannot map the {} bytes of '{}': {}", bytes->size_, path,
          std::strerror(errno));
  bytes->data_ = static_cast<char*>(data);
  bytes->mapped_ = bytes->size_;
  return bytes;
}

Ref<FileBytes> FileBytes::copy_of(std::string_view content, std::string source) {
  Ref<FileBytes> bytes = Ref<FileBytes>(new FileBytes);
  bytes->owned_ = content;
  bytes->data_ = bytes->owned_.data();
  bytes->size_ = content.size();
  bytes->source_ = std::move(source);
  return bytes;
}

Ref<FileBytes> FileBytes::part(Ref<FileBytes> whole, uint64_t offset, uint64_t size, std::string source) {
  Ref<FileBytes> bytes = Ref<FileBytes>(new FileBytes);
  bytes->data_ = whole->data_ + offset;
  bytes->size_ = size;
  bytes->source_ = std::move(source);
  bytes->whole_ = std::move(whole);
  return bytes;
}

FileBytes::~FileBytes() {
  if (mapped_) ::munmap(data_, mapped_);
}

Ref<Storage> FileBytes::storage(uint64_t offset, uint64_t count, size_t alignment) {
  char* const data = data_ + offset;
  if (count > 0 && reinterpret_cast<uintptr_t>(data) % alignment == 0) {
    auto release = [](void* context) { Ref<FileBytes>::adopt(static_cast<FileBytes*>(context)); };
    Ref<FileBytes> kept(this);
    return Storage::borrow(data, count, kCpu, release, kept.detach());
  }
  Ref<Storage> copy = Storage::allocate(count, kCpu);
  if (count > 0) std::memcpy(copy->data(), data, count);
  return copy;
}

// --- writing ---------------------------------------------------------------------------------------------

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  static std::atomic<uint64_t> count = 0;
  temporary_ = fmt::format("{}.{}-{}.part", path_, ::getpid(), ++count);
  file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  require(file_ >= 0, "cannot open '{}' for writing: {}", path_, std::strerror(errno));
  buffer_.reserve(kBufferSize);
}

FileWriter::~FileWriter() { discard(); }

void FileWriter::discard() noexcept {
  if (file_ < 0) return;
  ::close(std::exchange(file_, -1));
  ::unlink(temporary_.c_str());
}

namespace {

bool write_all(int file, const char* data, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(file, data, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    count -= static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

void FileWriter::write(const void* data, size_t count) {
  auto put = [&](const char* bytes, size_t size) {
    require(write_all(file_, bytes, size), "writing '{}' failed: {}", path_, std::strerror(errno));
  };
  if (buffer_.size() + count > kBufferSize) {
    put(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  if (count >= kBufferSize) put(static_cast<const char*>(data), count);
  else buffer_.append(static_cast<const char*>(data), count);
}

void FileWriter::finish() {
  bool ok = write_all(file_, buffer_.data(), buffer_.size());
  // A file that is replaced keeps its mode.
  struct stat status{};
  if (::stat(path_.c_str(), &status) == 0) ok = ok && ::fchmod(file_, status.st_mode & 07777) == 0;
  ok = ok && ::fsync(file_) == 0;
  ok = ok && ::rename(temporary_.c_str(), path_.c_str()) == 0;
  if (!ok) {
    const int error = errno;
    discard();
    fail("writing '{}' failed: {}", path_, std::strerror(error));
  }
  ::close(std::exchange(file_, -1));
}

}  // namespace weft
