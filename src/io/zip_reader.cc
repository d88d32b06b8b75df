#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "io/zip.h"
#include "weft/base/error.h"

// Records and field offsets are those of PKWARE's APPNOTE.TXT.

namespace weft::zip {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50,
                   kEnd64Mark = 0x06064b50, kLocatorMark = 0x07064b50, kDescriptorMark = 0x08074b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocatorSize = 20;
constexpr uint16_t kEncrypted = 1, kHasDescriptor = 1 << 3, kStrongEncryption = 1 << 6,
                   kMaskedHeaders = 1 << 13;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint32_t kIn64 = 0xFFFFFFFF;
// Deflate codes at most 258 bytes in 2 bits.
constexpr uint64_t kMostRatio = 1032, kInflateSlack = 64;
// Text in a program's words is not deflated to less than this; beyond a size, whatever is must be an attack.
constexpr uint64_t kMostTextRatio = 100, kAnyRatio = 16 << 20;

template <typename... A>
void check_format(bool ok, std::string_view source, fmt::format_string<const A&...> text, const A&... args) {
  if (!ok) [[unlikely]]
    throw FormatError(fmt::format("{}: {}", source, fmt::format(text, args...)));
}

// Numbers of a record that is known to be inside the file.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}
  uint16_t u16(size_t at) const { return number<uint16_t>(at); }
  uint32_t u32(size_t at) const { return number<uint32_t>(at); }
  uint64_t u64(size_t at) const { return number<uint64_t>(at); }

 private:
  template <typename T>
  T number(size_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  std::string_view bytes_;
};

// A header as far as both copies of it have the same fields.
struct Header {
  uint16_t flags, method;
  uint32_t crc;
  uint64_t stored, size;
};

class DirectoryReader {
 public:
  explicit DirectoryReader(const FileBytes& file) : file_(file), source_(file.source()) {}

  std::vector<Entry> run() {
    find_end();
    std::vector<Entry> entries;
    uint64_t at = directory_;
    for (uint64_t i = 0; i < count_; ++i) {
      check_format(directory_end_ - at >= kCentralSize, source_,
                   "the directory ends inside of its entry {} of {}", i, count_);
      const std::string_view bytes = file_.view(at, directory_end_ - at);
      check_format(Record(bytes).u32(0) == kCentralMark, source_,
                   "entry {} of the directory has no signature", i);
      at += read_entry(bytes, i, entries);
    }
    check_format(at == directory_end_, source_, "{} bytes of the directory belong to no entry",
                 directory_end_ - at);
    check_layout();
    return entries;
  }

 private:
  struct Extent {
    uint64_t begin, end;
    std::string name;
  };

  // --- the end of the file -------------------------------------------------------------------------------

  void find_end() {
    const uint64_t size = file_.size();
    check_format(size >= kEndSize, source_, "{} bytes are no zip archive; the shortest has {}", size,
                 kEndSize);
    // A comment may follow the record; its length must fit exactly.
    const uint64_t farthest = std::min<uint64_t>(size, kEndSize + 0xFFFF);
    std::optional<uint64_t> end;
    for (uint64_t back = kEndSize; back <= farthest && !end; ++back) {
      const Record record(file_.view(size - back, back));
      if (record.u32(0) == kEndMark && record.u16(20) == back - kEndSize) end = size - back;
    }
    check_format(end.has_value(), source_,
                 "there is no end record of a zip archive; the file is another format or truncated");
    const Record record(file_.view(*end, kEndSize));
    count_ = record.u16(10);
    uint64_t directory_size = record.u32(12);
    directory_ = record.u32(16);
    directory_end_ = *end;
    check_format(record.u16(4) == 0 || record.u16(4) == 0xFFFF, source_, "it is disk {} of several",
                 record.u16(4));
    const bool needs64 = count_ == 0xFFFF || directory_size == kIn64 || directory_ == kIn64;
    const bool has64 =
        *end >= kLocatorSize && Record(file_.view(*end - kLocatorSize, kLocatorSize)).u32(0) == kLocatorMark;
    check_format(has64 || record.u16(8) == count_, source_, "it is one of several disks");
    if (has64) read_end64(*end - kLocatorSize, directory_size);
    else check_format(!needs64, source_, "its end record refers to a zip64 record that is not there");
    check_format(directory_size <= directory_end_ && directory_ == directory_end_ - directory_size, source_,
                 "the directory of {} bytes at {} does not end where the end record begins, at {}",
                 directory_size, directory_, directory_end_);
    check_format(count_ <= directory_size / kCentralSize, source_,
                 "{} entries do not fit a directory of {} bytes", count_, directory_size);
  }

  void read_end64(uint64_t locator_at, uint64_t& directory_size) {
    const Record locator(file_.view(locator_at, kLocatorSize));
    const uint64_t at = locator.u64(8);
    check_format(locator.u32(4) == 0 && locator.u32(16) <= 1, source_, "it is one of several disks");
    check_format(at <= locator_at && locator_at - at >= kEnd64Size, source_,
                 "the zip64 end record at {} is outside of the file", at);
    const Record record(file_.view(at, kEnd64Size));
    check_format(record.u32(0) == kEnd64Mark, source_, "the zip64 end record has no signature");
    check_format(record.u64(4) == locator_at - at - 12, source_, "the zip64 end record has {} bytes, not {}",
                 locator_at - at - 12, record.u64(4));
    check_format(record.u32(16) == 0 && record.u32(20) == 0 && record.u64(24) == record.u64(32), source_,
                 "it is one of several disks");
    auto agree = [&](const char* what, uint64_t narrow, uint64_t limit, uint64_t wide) {
      check_format(narrow == limit || narrow == wide, source_,
                   "the end records disagree about the {} of the directory: {} and {}", what, narrow, wide);
      return wide;
    };
    count_ = agree("entries", count_, 0xFFFF, record.u64(32));
    directory_size = agree("size", directory_size, kIn64, record.u64(40));
    directory_ = agree("offset", directory_, kIn64, record.u64(48));
    directory_end_ = at;
  }

  // --- entries -------------------------------------------------------------------------------------------

  uint64_t read_entry(std::string_view bytes, uint64_t index, std::vector<Entry>& entries) {
    const Record record(bytes);
    const uint64_t name_size = record.u16(28), extra_size = record.u16(30), comment_size = record.u16(32);
    const uint64_t whole = kCentralSize + name_size + extra_size + comment_size;
    check_format(whole <= bytes.size(), source_, "the directory ends inside of its entry {} of {}", index,
                 count_);
    Entry entry{.name = std::string(bytes.substr(kCentralSize, name_size))};
    check_name(entry.name);
    Header header{record.u16(8), record.u16(10), record.u32(16), record.u32(20), record.u32(24)};
    uint64_t local = record.u32(42);
    read_extra(entry.name, bytes.substr(kCentralSize + name_size, extra_size),
               {&header.size, &header.stored, &local});
    check_entry(header.flags & (kEncrypted | kStrongEncryption | kMaskedHeaders), entry, "it is encrypted");
    check_entry(
        header.method != kStored && header.method != kDeflated, entry,
        fmt::format("compression method {} is not supported (stored and deflated are)", header.method));
    entry.is_deflated = header.method == kDeflated;
    check_entry(!entry.is_deflated && header.size != header.stored, entry,
                fmt::format("{} bytes are stored for {}", header.stored, header.size));
    check_entry(entry.is_deflated && header.size / kMostRatio > header.stored + kInflateSlack, entry,
                fmt::format("{} deflated bytes cannot be {}", header.stored, header.size));
    check_entry(record.u16(34) != 0 && record.u16(34) != 0xFFFF, entry, "it is on another disk");
    entry.stored = header.stored, entry.size = header.size, entry.crc = header.crc;
    read_local(local, header, entry);
    if (entry.name.back() != '/') entries.push_back(std::move(entry));
    else check_entry(entry.size != 0, entry, "a folder has no content");
    return whole;
  }

  void check_entry(bool bad, const Entry& entry, std::string_view reason) const {
    check_format(!bad, source_, "entry '{}': {}", entry.name, reason);
  }

  // Names are used as names only, but whoever unpacks the file next might use them as paths.
  void check_name(std::string_view name) {
    check_format(!name.empty(), source_, "an entry has no name");
    const auto bad = std::find_if(name.begin(), name.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
    });
    check_format(bad == name.end(), source_, "the name of an entry has the character {:#04x}",
                 bad == name.end() ? 0u : static_cast<unsigned>(static_cast<unsigned char>(*bad)));
    check_format(name[0] != '/' && !(name.size() > 1 && name[1] == ':'), source_,
                 "entry '{}': the name is an absolute path", name);
    for (std::string_view rest = name; !rest.empty();) {
      const size_t slash = std::min(rest.find('/'), rest.size());
      const std::string_view part = rest.substr(0, slash);
      check_format(part != ".." && part != "." && !part.empty(), source_,
                   "entry '{}': the name has a part '{}'", name, part);
      rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    check_format(names_.emplace(name).second, source_, "entry '{}': there are two of that name", name);
  }

  // Numbers that do not fit 32 bits are in the zip64 field, in this order, each only if it is marked.
  void read_extra(std::string_view name, std::string_view extra,
                  std::initializer_list<uint64_t*> numbers) const {
    std::string_view wide;
    bool is_there = false;
    while (!extra.empty()) {
      check_format(extra.size() >= 4, source_, "entry '{}': its extra field is truncated", name);
      const Record field(extra);
      const size_t size = field.u16(2);
      check_format(size <= extra.size() - 4, source_, "entry '{}': its extra field is truncated", name);
      if (field.u16(0) == 1) {
        check_format(!is_there, source_, "entry '{}': there are two zip64 fields", name);
        is_there = true;
        wide = extra.substr(4, size);
      }
      extra.remove_prefix(4 + size);
    }
    for (uint64_t* number : numbers) {
      if (*number != kIn64 || !is_there) continue;
      check_format(wide.size() >= 8, source_, "entry '{}': its zip64 field is truncated", name);
      *number = Record(wide).u64(0);
      wide.remove_prefix(8);
    }
  }

  void read_local(uint64_t at, const Header& central, Entry& entry) {
    check_entry(at > directory_ || directory_ - at < kLocalSize, entry,
                fmt::format("its header at {} is outside of the file", at));
    const Record record(file_.view(at, kLocalSize));
    check_entry(record.u32(0) != kLocalMark, entry, fmt::format("there is no header at {}", at));
    const uint64_t name_size = record.u16(26), extra_size = record.u16(28);
    const uint64_t begin = at + kLocalSize + name_size + extra_size;
    check_entry(begin > directory_ || entry.stored > directory_ - begin, entry,
                fmt::format("its {} bytes at {} are not inside the {} bytes before the directory",
                            entry.stored, begin, directory_));
    const std::string_view name = file_.view(at + kLocalSize, name_size);
    check_entry(name != entry.name, entry, fmt::format("its own header calls it '{}'", name));
    Header local{record.u16(6), record.u16(8), record.u32(14), record.u32(18), record.u32(22)};
    read_extra(entry.name, file_.view(at + kLocalSize + name_size, extra_size), {&local.size, &local.stored});
    check_entry(
        local.flags != central.flags, entry,
        fmt::format("its headers disagree about the flags: {:#x} and {:#x}", local.flags, central.flags));
    check_entry(
        local.method != central.method, entry,
        fmt::format("its headers disagree about the method: {} and {}", local.method, central.method));
    // With a descriptor the numbers come after the data, and may be left out here.
    const bool has_descriptor = central.flags & kHasDescriptor;
    auto agree = [&](const char* what, uint64_t here, uint64_t there) {
      check_entry(here != there && !(has_descriptor && here == 0), entry,
                  fmt::format("its headers disagree about the {}: {} and {}", what, here, there));
    };
    agree("checksum", local.crc, central.crc);
    agree("stored size", local.stored, central.stored);
    agree("size", local.size, central.size);
    entry.offset = begin;
    const uint64_t end = begin + entry.stored;
    extents_.push_back({at, has_descriptor ? check_descriptor(end, entry) : end, entry.name});
  }

  // Where it ends: the signature may be missing, and sizes have 4 or 8 bytes.
  uint64_t check_descriptor(uint64_t at, const Entry& entry) const {
    const std::string_view rest = file_.view(at, std::min<uint64_t>(directory_ - at, 24));
    const size_t mark = rest.size() >= 4 && Record(rest).u32(0) == kDescriptorMark ? 4 : 0;
    auto matches = [&](size_t wide) {
      if (rest.size() < mark + 4 + 2 * wide) return false;
      const Record record(rest.substr(mark));
      const uint64_t stored = wide == 8 ? record.u64(4) : record.u32(4);
      const uint64_t size = wide == 8 ? record.u64(12) : record.u32(8);
      return record.u32(0) == entry.crc && stored == entry.stored && size == entry.size;
    };
    for (size_t wide : {size_t{8}, size_t{4}})
      if (matches(wide)) return at + mark + 4 + 2 * wide;
    check_entry(true, entry, "the record after its data disagrees with the directory");
    return at;
  }

  void check_layout() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents_.size(); ++i)
      check_format(extents_[i].begin >= extents_[i - 1].end, source_, "entries '{}' and '{}' overlap",
                   extents_[i - 1].name, extents_[i].name);
  }

  const FileBytes& file_;
  const std::string& source_;
  uint64_t count_ = 0, directory_ = 0, directory_end_ = 0;
  std::unordered_set<std::string> names_;
  std::vector<Extent> extents_;
};

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

}  // namespace

Archive::Archive(Ref<FileBytes> file) : file_(std::move(file)), entries_(DirectoryReader(*file_).run()) {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
  places_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) places_.emplace(entries_[i].name, i);
}

const Entry* Archive::find(std::string_view name) const {
  auto found = places_.find(name);
  return found == places_.end() ? nullptr : &entries_[found->second];
}

const Entry& Archive::at(std::string_view name) const {
  if (const Entry* entry = find(name)) return *entry;
  std::string names;
  for (size_t i = 0; i < entries_.size() && i < 8; ++i) names += (i ? ", " : "") + entries_[i].name;
  throw FormatError(fmt::format("{}: there is no entry '{}' among the {} here: {}{}", source(), name,
                                entries_.size(), names, entries_.size() > 8 ? ", ..." : ""));
}

void Archive::inflate_into(const Entry& entry, char* into) const {
  auto refuse = [&](std::string_view reason) {
    throw FormatError(fmt::format("{}: entry '{}': {}", source(), entry.name, reason));
  };
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) refuse("there is no memory to inflate it");
  struct End {
    z_stream& stream;
    ~End() { ::inflateEnd(&stream); }
  } end{stream};
  // zlib counts in 32 bits.
  constexpr uint64_t kStep = uint64_t{1} << 30;
  uint64_t read = 0, written = 0;
  int status = Z_OK;
  unsigned char beyond = 0;
  while (status == Z_OK) {
    const uint64_t in = std::min(kStep, entry.stored - read), out = std::min(kStep, entry.size - written);
    stream.next_in =
        reinterpret_cast<unsigned char*>(const_cast<char*>(file_->view(entry.offset + read, in).data()));
    stream.avail_in = static_cast<uInt>(in);
    // One byte more than was declared shows content that is longer.
    stream.next_out = out ? reinterpret_cast<unsigned char*>(into + written) : &beyond;
    stream.avail_out = out ? static_cast<uInt>(out) : 1;
    const uint64_t room = stream.avail_out;
    status = ::inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    const uint64_t given = room - stream.avail_out;
    if (!out && given)
      refuse(fmt::format("it inflates to more than the {} bytes that it declares", entry.size));
    written += given;
    if (status == Z_OK && read == entry.stored && given == 0) break;
  }
  if (status != Z_STREAM_END) refuse("its deflated content is corrupt or truncated");
  if (written != entry.size)
    refuse(fmt::format("it inflates to {} bytes and declares {}", written, entry.size));
  if (read != entry.stored) refuse(fmt::format("{} bytes follow its deflated content", entry.stored - read));
}

std::string Archive::read(const Entry& entry, uint64_t most) const {
  check_format(entry.size <= most, source(), "entry '{}': {} bytes are more than it may have ({})",
               entry.name, entry.size, most);
  check_format(!entry.is_deflated || entry.size <= kAnyRatio || entry.size / kMostTextRatio <= entry.stored,
               source(), "entry '{}': {} deflated bytes would become {}; so does a zip bomb", entry.name,
               entry.stored, entry.size);
  std::string content;
  if (entry.is_deflated) {
    content.resize(entry.size);
    inflate_into(entry, content.data());
  } else {
    content = file_->view(entry.offset, entry.size);
  }
  check_format(checksum(content) == entry.crc, source(), "entry '{}': its content does not have its checksum",
               entry.name);
  return content;
}

Ref<Storage> Archive::storage(const Entry& entry, size_t alignment) const {
  if (!entry.is_deflated) return file_->storage(entry.offset, entry.size, alignment);
  Ref<Storage> storage = Storage::allocate(entry.size, kCpu);
  inflate_into(entry, static_cast<char*>(storage->data()));
  check_format(checksum({static_cast<const char*>(storage->data()), entry.size}) == entry.crc, source(),
               "entry '{}': its content does not have its checksum", entry.name);
  return storage;
}

Ref<FileBytes> Archive::file(const Entry& entry) const {
  std::string name = fmt::format("{}: {}", source(), entry.name);
  if (entry.is_deflated) return FileBytes::copy_of(read(entry), std::move(name));
  return FileBytes::part(file_, entry.offset, entry.size, std::move(name));
}

void Archive::check(const Entry& entry) const {
  if (entry.is_deflated) read(entry, entry.size);
  else
    check_format(checksum(file_->view(entry.offset, entry.size)) == entry.crc, source(),
                 "entry '{}': its content does not have its checksum", entry.name);
}

}  // namespace weft::zip
