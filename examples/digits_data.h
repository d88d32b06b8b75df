#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The handwritten digits of data/digits.bin; data/README.md has their source and the format.

namespace weft::examples {

inline constexpr int64_t kDigitSide = 8;
inline constexpr int64_t kDigitPixels = kDigitSide * kDigitSide;
inline constexpr int64_t kDigitClasses = 10;

struct DigitSet {
  std::vector<float> pixels;    // kDigitPixels for each image, row by row, from 0 (paper) to 1 (ink)
  std::vector<int64_t> labels;  // 0 ... 9
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct DigitSplit {
  DigitSet train, test;
};

// All images in the order of the file. A FormatError says what is wrong with a file that does not hold them.
DigitSet load_digits(const std::string& path);

// A shuffled split in which both parts have the classes in the same proportions. It depends on the images and
// `test_size` only: every run and every machine sees the same one.
DigitSplit split_digits(const DigitSet& all, int64_t test_size = 360);

}  // namespace weft::examples
