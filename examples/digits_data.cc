#include "digits_data.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string_view>

#include "weft/base/error.h"
#include "weft/base/random.h"

namespace weft::examples {
namespace {

constexpr std::string_view kMagic = "weftdig1";
constexpr size_t kHeaderSize = kMagic.size() + 4 * sizeof(uint32_t);
constexpr size_t kRowSize = kDigitPixels + 1;
constexpr uint32_t kMaxPixel = 16;
constexpr uint64_t kShuffleSeed = 1998;

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw FormatError(
      fmt::format("{}: {}; expected the digits that come with weft as data/digits.bin", path, problem));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "cannot open {}; give the path of data/digits.bin", path);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  require(!in.bad(), "reading {} failed", path);
  return bytes;
}

uint32_t byte_at(const std::string& bytes, size_t at) { return static_cast<unsigned char>(bytes[at]); }

uint32_t little_endian32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | byte_at(bytes, at + i);
  return value;
}

// The number of images, once the header is what it should be and the file is as long as it says.
size_t checked_count(const std::string& path, const std::string& bytes) {
  if (!bytes.starts_with(kMagic)) refuse(path, fmt::format("it does not begin with \"{}\"", kMagic));
  if (bytes.size() < kHeaderSize) refuse(path, fmt::format("its header ends after {} bytes", bytes.size()));
  std::array<uint32_t, 4> fields;
  for (size_t i = 0; i < fields.size(); ++i) fields[i] = little_endian32(bytes, kMagic.size() + 4 * i);
  auto [count, pixels, max_pixel, classes] = fields;
  if (pixels != kDigitPixels || max_pixel != kMaxPixel || classes != kDigitClasses)
    refuse(path, fmt::format("it has images of {} pixels up to {} in {} classes, not of {} up to {} in {}",
                             pixels, max_pixel, classes, kDigitPixels, kMaxPixel, kDigitClasses));
  size_t expected = kHeaderSize + size_t{count} * kRowSize;
  if (bytes.size() != expected)
    refuse(path, fmt::format("it has {} bytes, but {} images take {}", bytes.size(), count, expected));
  return count;
}

// The same order on every machine, which std::shuffle does not promise.
void shuffle(std::vector<int64_t>& items, uint64_t subsequence) {
  for (size_t i = items.size(); i > 1; --i) {
    PhiloxBlock words = philox4x32(kShuffleSeed, i, subsequence);
    std::swap(items[i - 1], items[bounded(words[0] | uint64_t{words[1]} << 32, i)]);
  }
}

using Classes = std::array<std::vector<int64_t>, kDigitClasses>;

// How many of each class the test part takes: in proportion, the largest remainders rounded up.
std::array<int64_t, kDigitClasses> test_shares(const Classes& classes, int64_t total, int64_t test_size) {
  std::array<int64_t, kDigitClasses> shares, by_remainder;
  auto scaled = [&](int64_t label) { return static_cast<int64_t>(classes[label].size()) * test_size; };
  for (int64_t label = 0; label < kDigitClasses; ++label) shares[label] = scaled(label) / total;
  std::iota(by_remainder.begin(), by_remainder.end(), 0);
  std::stable_sort(by_remainder.begin(), by_remainder.end(),
                   [&](int64_t a, int64_t b) { return scaled(a) % total > scaled(b) % total; });
  int64_t left = test_size - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++shares[by_remainder[i]];
  return shares;
}

DigitSet gather(const DigitSet& all, const std::vector<int64_t>& rows) {
  DigitSet part;
  part.pixels.reserve(rows.size() * kDigitPixels);
  part.labels.reserve(rows.size());
  for (int64_t row : rows) {
    auto first = all.pixels.begin() + row * kDigitPixels;
    part.pixels.insert(part.pixels.end(), first, first + kDigitPixels);
    part.labels.push_back(all.labels[row]);
  }
  return part;
}

}  // namespace

DigitSet load_digits(const std::string& path) {
  const std::string bytes = read_file(path);
  const size_t count = checked_count(path, bytes);
  DigitSet all;
  all.pixels.reserve(count * kDigitPixels);
  all.labels.reserve(count);
  for (size_t row = 0; row < count; ++row) {
    size_t at = kHeaderSize + row * kRowSize;
    for (size_t pixel = 0; pixel < kDigitPixels; ++pixel) {
      uint32_t level = byte_at(bytes, at + pixel);
      if (level > kMaxPixel) refuse(path, fmt::format("pixel {} of image {} is {}", pixel, row, level));
      all.pixels.push_back(static_cast<float>(level) / kMaxPixel);
    }
    uint32_t label = byte_at(bytes, at + kDigitPixels);
    if (label >= kDigitClasses) refuse(path, fmt::format("the label of image {} is {}", row, label));
    all.labels.push_back(label);
  }
  return all;
}

DigitSplit split_digits(const DigitSet& all, int64_t test_size) {
  require(test_size >= 0 && test_size <= all.size(), "cannot take {} test images out of {}", test_size,
          all.size());
  if (all.size() == 0) return {};
  Classes classes;
  for (int64_t row = 0; row < all.size(); ++row)
    classes.at(static_cast<size_t>(all.labels[row])).push_back(row);
  const auto shares = test_shares(classes, all.size(), test_size);
  std::vector<int64_t> train, test;
  for (int64_t label = 0; label < kDigitClasses; ++label) {
    std::vector<int64_t>& rows = classes[label];
    shuffle(rows, static_cast<uint64_t>(label));
    test.insert(test.end(), rows.begin(), rows.begin() + shares[label]);
    train.insert(train.end(), rows.begin() + shares[label], rows.end());
  }
  shuffle(train, kDigitClasses);
  shuffle(test, kDigitClasses + 1);
  return {gather(all, train), gather(all, test)};
}

}  // namespace weft::examples
