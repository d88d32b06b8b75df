// Zip archives: what is written is read, and whatever is not exactly an archive is refused.
#include "io/zip.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"

namespace weft::zip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entries = std::vector<std::pair<std::string, std::string>>;

std::string zipped(const Entries& entries, WriterOptions options = {}) {
  std::string bytes;
  Writer writer([&](std::string_view part) { bytes += part; }, options);
  for (const auto& [name, content] : entries) writer.add(name, content);
  writer.finish();
  return bytes;
}

Archive read(std::string_view bytes) { return Archive(FileBytes::copy_of(bytes, "x.zip")); }

Entries contents(const Archive& archive) {
  Entries entries;
  for (const Entry& entry : archive.entries()) entries.emplace_back(entry.name, archive.read(entry));
  return entries;
}

template <typename T>
std::string number(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}
std::string u16(uint64_t value) { return number(static_cast<uint16_t>(value)); }
std::string u32(uint64_t value) { return number(static_cast<uint32_t>(value)); }

// An archive made by hand, field by field, so that each can be wrong.
struct Part {
  std::string name = "a", data = "hello";
  uint16_t method = 0, flags = 0;
  uint64_t size = 5;
  uint32_t crc = 0x3610a686;  // of "hello"
  // Of the local header, if they differ; -1: as in the directory.
  int64_t local_size = -1, local_stored = -1, local_crc = -1, local_method = -1, local_flags = -1;
  std::string local_name = {}, after = {}, extra = {}, local_extra = {};
  int64_t offset = -1;  // what the directory says
};

uint64_t either(int64_t given, uint64_t otherwise) {
  return given < 0 ? otherwise : static_cast<uint64_t>(given);
}

std::string by_hand(const std::vector<Part>& parts, const std::string& comment = "", int64_t count = -1) {
  std::string bytes, directory;
  for (const Part& p : parts) {
    const uint64_t at = bytes.size();
    const std::string& local_name = p.local_name.empty() ? p.name : p.local_name;
    bytes += u32(0x04034b50) + u16(20) + u16(either(p.local_flags, p.flags)) +
             u16(either(p.local_method, p.method)) + u32(0) + u32(either(p.local_crc, p.crc)) +
             u32(either(p.local_stored, p.data.size())) + u32(either(p.local_size, p.size)) +
             u16(local_name.size()) + u16(p.local_extra.size()) + local_name + p.local_extra + p.data +
             p.after;
    directory += u32(0x02014b50) + u16(20) + u16(20) + u16(p.flags) + u16(p.method) + u32(0) + u32(p.crc) +
                 u32(p.data.size()) + u32(p.size) + u16(p.name.size()) + u16(p.extra.size()) + u16(0) +
                 u16(0) + u16(0) + u32(0) + u32(either(p.offset, at)) + p.name + p.extra;
  }
  const uint64_t entries = either(count, parts.size());
  return bytes + directory + u32(0x06054b50) + u16(0) + u16(0) + u16(entries) + u16(entries) +
         u32(directory.size()) + u32(bytes.size()) + u16(comment.size()) + comment;
}

void expect_refused(const std::string& bytes, const char* words) {
  EXPECT_ERROR_TYPE(FormatError, contents(read(bytes)), words);
}

std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(content.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<unsigned char*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Part deflated_part(const std::string& content) {
  Part part{.data = deflated(content), .method = 8, .size = content.size()};
  part.crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const unsigned char*>(content.data()), static_cast<uInt>(content.size())));
  return part;
}

TEST(Zip, ReadsWhatItWrites) {
  const Entries entries = {{"m/a", "hello"}, {"m/empty", ""}, {"m/data/w", std::string(1000, 'x')}};
  const std::string bytes = zipped(entries);
  const Archive archive = read(bytes);
  EXPECT_EQ(contents(archive), entries);
  for (const Entry& entry : archive.entries()) EXPECT_EQ(entry.offset % 64, 0u) << entry.name;
  EXPECT_EQ(zipped(entries), bytes);
  EXPECT_EQ(archive.find("m"), nullptr);
  EXPECT_ERROR_TYPE(FormatError, archive.at("b"),
                    "x.zip: there is no entry 'b' among the 3 here: m/a, m/empty, m/data/w");
}

TEST(Zip, ReadsAndWritesZip64Records) {
  const Entries entries = {{"a", "hello"}, {"b", "you"}};
  EXPECT_EQ(contents(read(zipped(entries, {.zip64_size = 0}))), entries);
  EXPECT_EQ(contents(read(zipped(entries, {.zip64_size = 4}))), entries);
  EXPECT_EQ(contents(read(zipped(entries, {.zip64_count = 2}))), entries);
  Entries many;
  for (int i = 0; i < 70'000; ++i) many.emplace_back(std::to_string(i), "");
  EXPECT_EQ(read(zipped(many)).entries().size(), 70'000u);
}

TEST(Zip, RefusesTwoEntriesOfOneName) {
  EXPECT_ERROR(zipped({{"a", ""}, {"a", ""}}), "zip: there are two entries 'a'");
  expect_refused(by_hand({{}, {}}), "x.zip: entry 'a': there are two of that name");
}

TEST(Zip, ReadsDeflatedEntries) {
  const std::string text = std::string(100'000, 'a') + "b";
  EXPECT_THAT(contents(read(by_hand({deflated_part(text), {.name = "b"}}))),
              ElementsAre(std::pair<std::string, std::string>("a", text),
                          std::pair<std::string, std::string>("b", "hello")));
  const Archive archive = read(by_hand({deflated_part("hello")}));
  const Ref<Storage> storage = archive.storage(archive.at("a"), 8);
  EXPECT_EQ(std::string(static_cast<const char*>(storage->data()), storage->bytes()), "hello");
}

TEST(Zip, RefusesDeflatedContentOfAnotherSize) {
  Part part = deflated_part("hello");
  part.size = 4;
  expect_refused(by_hand({part}), "entry 'a': it inflates to more than the 4 bytes that it declares");
  part.size = 6;
  expect_refused(by_hand({part}), "entry 'a': it inflates to 5 bytes and declares 6");
  part.size = 1'000'000;
  expect_refused(by_hand({part}), "deflated bytes cannot be 1000000");
  part = deflated_part("hello");
  part.data += "x";
  expect_refused(by_hand({part}), "entry 'a': 1 bytes follow its deflated content");
  part.data.resize(3);
  expect_refused(by_hand({part}), "entry 'a': its deflated content is corrupt or truncated");
  part = deflated_part("hello");
  part.crc ^= 1;
  expect_refused(by_hand({part}), "entry 'a': its content does not have its checksum");
}

TEST(Zip, ReadsDescriptorsAndComments) {
  const std::string sizes32 = u32(0x3610a686) + u32(5) + u32(5);
  const std::string sizes64 = u32(0x3610a686) + number(uint64_t{5}) + number(uint64_t{5});
  for (const std::string& after : {u32(0x08074b50) + sizes32, sizes32, u32(0x08074b50) + sizes64, sizes64}) {
    const Part part{.flags = 8, .local_size = 0, .local_stored = 0, .local_crc = 0, .after = after};
    EXPECT_EQ(contents(read(by_hand({part, {.name = "b"}}, "a comment"))).size(), 2u);
  }
  expect_refused(by_hand({{.flags = 8, .after = u32(0x08074b50) + u32(1) + u32(5) + u32(5)}}),
                 "entry 'a': the record after its data disagrees with the directory");
  expect_refused(by_hand({{.flags = 8}}), "the record after its data disagrees");
}

TEST(Zip, RefusesHeadersThatDisagree) {
  expect_refused(by_hand({{.local_size = 4}}), "entry 'a': its headers disagree about the size: 4 and 5");
  expect_refused(by_hand({{.local_stored = 4}}),
                 "entry 'a': its headers disagree about the stored size: 4 and 5");
  expect_refused(by_hand({{.local_crc = 0}}), "entry 'a': its headers disagree about the checksum: 0 and");
  expect_refused(by_hand({{.local_method = 8}}), "entry 'a': its headers disagree about the method: 8 and 0");
  expect_refused(by_hand({{.local_flags = 8}}), "entry 'a': its headers disagree about the flags");
  expect_refused(by_hand({{.local_name = "b"}}), "entry 'a': its own header calls it 'b'");
}

TEST(Zip, RefusesEntriesThatOverlap) {
  expect_refused(by_hand({{}, {.name = "b", .offset = 0}}), "entry 'b': its own header calls it 'a'");
  // The header of b lies in what a says is its data.
  Part a{.data = std::string(200, 'x'), .size = 200};
  std::string inner = u32(0x04034b50) + u16(20) + u16(0) + u16(0) + u32(0) + u32(0x3610a686) + u32(5) +
                      u32(5) + u16(1) + u16(0) + "b" + "hello";
  a.data.replace(50, inner.size(), inner);
  expect_refused(by_hand({a, {.name = "b", .offset = 31 + 50}}), "entries 'a' and 'b' overlap");
}

TEST(Zip, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"/etc/passwd", "C:/x"})
    expect_refused(by_hand({{.name = name}}), "the name is an absolute path");
  expect_refused(by_hand({{.name = "a/../../x"}}), "entry 'a/../../x': the name has a part '..'");
  for (const char* name : {"../x", "./a", "a//b"})
    expect_refused(by_hand({{.name = name}}), "the name has a part '");
  expect_refused(by_hand({{.name = "a\\b"}}), "the name of an entry has the character 0x5c");
  expect_refused(by_hand({{.name = std::string("a\0b", 3)}}), "the name of an entry has the character 0x00");
  expect_refused(by_hand({{.name = ""}}), "an entry has no name");
  EXPECT_THAT(contents(read(by_hand({{.name = "folder/", .data = "", .size = 0, .crc = 0}}))), IsEmpty());
}

TEST(Zip, RefusesEncryptionAndOtherMethods) {
  expect_refused(by_hand({{.flags = 1}}), "entry 'a': it is encrypted");
  expect_refused(by_hand({{.method = 12}}), "entry 'a': compression method 12 is not supported");
  expect_refused(by_hand({{.size = 6}}), "entry 'a': 5 bytes are stored for 6");
}

TEST(Zip, RefusesWhatPointsOutside) {
  expect_refused(by_hand({{.offset = 5000}}), "entry 'a': its header at 5000 is outside of the file");
  expect_refused(by_hand({{.offset = 3}}), "entry 'a': there is no header at 3");
  expect_refused(by_hand({{}}, "", 2), "2 entries do not fit a directory of 47 bytes");
  expect_refused(by_hand({{}}, "", 0), "47 bytes of the directory belong to no entry");
  expect_refused(by_hand({{.extra = "\x01\x00\xff\x00"}}), "entry 'a': its extra field is truncated");
  EXPECT_ERROR_TYPE(FormatError, read("PK"), "x.zip: 2 bytes are no zip archive");
  EXPECT_ERROR_TYPE(FormatError, read(std::string(100, 'x')), "there is no end record of a zip archive");
}

TEST(Zip, RefusesEveryTruncatedFile) {
  const std::string bytes = zipped({{"m/a", "hello"}, {"m/b", "you"}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(read(std::string_view(bytes).substr(0, size)), FormatError) << size;
  EXPECT_THROW(read(bytes + "x"), FormatError);
}

// A changed byte is noticed, or is in one that nobody reads: dates, versions, padding.
TEST(Zip, AChangedByteNeverChangesContent) {
  const Entries entries = {{"m/a", "hello"}, {"m/b", "you"}};
  for (const WriterOptions& options : {WriterOptions{}, WriterOptions{.zip64_size = 0}}) {
    const std::string bytes = zipped(entries, options);
    for (size_t at = 0; at < bytes.size(); ++at)
      for (unsigned char bit = 1; bit; bit = static_cast<unsigned char>(bit << 1)) {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ bit);
        try {
          EXPECT_EQ(contents(read(changed)), entries) << at;
        } catch (const FormatError&) {
        }
      }
  }
}

std::string temporary(const char* name) { return ::testing::TempDir() + name; }

// 100 GB, of which the file system keeps two pages.
TEST(Zip, OpensALargeFileWithoutReadingIt) {
  const std::string path = temporary("weft_large.zip");
  constexpr uint64_t kSize = 100'000'000'000;
  const std::string name = "w";
  const std::string field = u16(1) + u16(16) + number(kSize) + number(kSize);
  const std::string local = u32(0x04034b50) + u16(45) + u16(0) + u16(0) + u32(0) + u32(0) + u32(0xFFFFFFFF) +
                            u32(0xFFFFFFFF) + u16(1) + u16(field.size()) + name + field;
  const uint64_t directory = local.size() + kSize;
  std::string end = u32(0x02014b50) + u16(45) + u16(45) + u16(0) + u16(0) + u32(0) + u32(0) +
                    u32(0xFFFFFFFF) + u32(0xFFFFFFFF) + u16(1) + u16(field.size()) + u16(0) + u16(0) +
                    u16(0) + u32(0) + u32(0) + name + field;
  const uint64_t size = end.size();
  end += u32(0x06064b50) + number(uint64_t{44}) + u16(45) + u16(45) + u32(0) + u32(0) + number(uint64_t{1}) +
         number(uint64_t{1}) + number(size) + number(directory);
  end += u32(0x07064b50) + u32(0) + number(directory + size) + u32(1);
  end += u32(0x06054b50) + u16(0) + u16(0) + u16(1) + u16(1) + u32(size) + u32(0xFFFFFFFF) + u16(0);
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  ASSERT_GE(file, 0);
  const bool is_made = ::pwrite(file, local.data(), local.size(), 0) == static_cast<ssize_t>(local.size()) &&
                       ::pwrite(file, end.data(), end.size(), static_cast<off_t>(directory)) ==
                           static_cast<ssize_t>(end.size());
  ::close(file);
  if (!is_made) {
    std::filesystem::remove(path);
    GTEST_SKIP() << "the file system has no sparse files";
  }
  const auto start = std::chrono::steady_clock::now();
  {
    const Archive archive = Archive::open(path);
    const Ref<Storage> storage = archive.storage(archive.at("w"), 1);
    EXPECT_EQ(storage->bytes(), kSize);
    EXPECT_EQ(static_cast<const char*>(storage->data())[kSize / 2], 0);
    // Writing changes the process's own page.
    static_cast<char*>(storage->data())[kSize / 2] = 1;
    const Archive again = Archive::open(path);
    EXPECT_EQ(static_cast<const char*>(again.storage(again.at("w"), 1)->data())[kSize / 2], 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  std::filesystem::remove(path);
}

TEST(Zip, StorageKeepsTheFileMapped) {
  const std::string path = temporary("weft_kept.zip");
  {
    FileWriter file(path);
    file.write(zipped({{"a", "12345678"}}));
    file.finish();
  }
  Ref<Storage> storage;
  {
    const Archive archive = Archive::open(path);
    storage = archive.storage(archive.at("a"), 8);
  }
  // Replacing the file leaves what is mapped alone.
  FileWriter file(path);
  file.write("shorter");
  file.finish();
  std::filesystem::remove(path);
  EXPECT_EQ(std::string(static_cast<const char*>(storage->data()), 8), "12345678");
}

TEST(FileWriter, LeavesTheOldFileWhereItDoesNotFinish) {
  const std::string folder = temporary("weft_writer"), path = folder + "/f";
  std::filesystem::create_directory(folder);
  {
    FileWriter file(path);
    file.write("old");
    file.finish();
  }
  {
    FileWriter(path).write("new");
  }
  std::ifstream in(path);
  std::string content;
  in >> content;
  EXPECT_EQ(content, "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
  EXPECT_ERROR(FileWriter(folder + "/none/f"), "cannot open");
}

TEST(FileBytes, RefusesWhatIsNoFile) {
  EXPECT_ERROR(FileBytes::open(temporary("weft_nothing")), "cannot open");
  EXPECT_ERROR(FileBytes::open(::testing::TempDir()), "is no regular file");
}

}  // namespace
}  // namespace weft::zip
