#include "examples/digits_data.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "support/expect_error.h"

namespace weft::examples {
namespace {

const std::string kDigits = WEFT_SOURCE_DIR "/data/digits.bin";

std::array<int64_t, kDigitClasses> class_counts(const DigitSet& set) {
  std::array<int64_t, kDigitClasses> counts{};
  for (int64_t label : set.labels) ++counts.at(static_cast<size_t>(label));
  return counts;
}

// Every image with its label, in an order that does not depend on the set's.
std::multiset<std::vector<float>> images(const DigitSet& set) {
  std::multiset<std::vector<float>> all;
  for (int64_t i = 0; i < set.size(); ++i) {
    auto first = set.pixels.begin() + i * kDigitPixels;
    std::vector<float> image(first, first + kDigitPixels);
    image.push_back(static_cast<float>(set.labels[static_cast<size_t>(i)]));
    all.insert(image);
  }
  return all;
}

// A copy of the digits with some change, gone at the end of the test.
class DigitFile {
 public:
  explicit DigitFile(FunctionRef<void(std::string&)> change)
      : path_(
            (std::filesystem::temp_directory_path() /
             ("weft_digits_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())))
                .string()) {
    std::ifstream in(kDigits, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    change(bytes);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~DigitFile() { std::filesystem::remove(path_); }
  DigitFile(const DigitFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(DigitsData, HasAllImagesOfTheSet) {
  DigitSet all = load_digits(kDigits);
  EXPECT_EQ(all.size(), 1797);
  EXPECT_EQ(all.pixels.size(), 1797u * 64u);
  EXPECT_THAT(class_counts(all), ::testing::ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
}

TEST(DigitsData, ScalesPixelsToOne) {
  DigitSet all = load_digits(kDigits);
  auto [least, most] = std::minmax_element(all.pixels.begin(), all.pixels.end());
  EXPECT_EQ(*least, 0.0f);
  EXPECT_EQ(*most, 1.0f);
  // The first image is a zero; its top row is 0 0 5 13 9 1 0 0.
  std::vector<float> top(all.pixels.begin(), all.pixels.begin() + kDigitSide);
  EXPECT_THAT(top, ::testing::ElementsAre(0, 0, 5 / 16.0f, 13 / 16.0f, 9 / 16.0f, 1 / 16.0f, 0, 0));
  EXPECT_EQ(all.labels[0], 0);
}

TEST(DigitsData, SplitKeepsEveryImageOnceAndTheProportionsOfClasses) {
  DigitSet all = load_digits(kDigits);
  DigitSplit split = split_digits(all);
  EXPECT_EQ(split.train.size(), 1437);
  EXPECT_EQ(split.test.size(), 360);
  auto both = images(split.train);
  both.merge(images(split.test));
  EXPECT_EQ(both, images(all));
  auto counts = class_counts(all), test_counts = class_counts(split.test);
  for (size_t label = 0; label < counts.size(); ++label)
    EXPECT_NEAR(static_cast<double>(test_counts[label]), static_cast<double>(counts[label]) * 360 / 1797, 1)
        << label;
}

TEST(DigitsData, SplitIsShuffledAndFixed) {
  DigitSplit split = split_digits(load_digits(kDigits));
  std::vector<int64_t> first(split.train.labels.begin(), split.train.labels.begin() + 12);
  EXPECT_THAT(first, ::testing::ElementsAre(0, 6, 8, 9, 4, 4, 4, 9, 1, 8, 3, 5));
  EXPECT_FALSE(std::is_sorted(split.test.labels.begin(), split.test.labels.end()));
  DigitSplit again = split_digits(load_digits(kDigits));
  EXPECT_EQ(split.train.pixels, again.train.pixels);
  EXPECT_EQ(split.test.labels, again.test.labels);
}

TEST(DigitsData, SplitTakesAnySizeUpToAll) {
  DigitSet all = load_digits(kDigits);
  EXPECT_EQ(split_digits(all, 0).test.size(), 0);
  EXPECT_EQ(split_digits(all, 1797).train.size(), 0);
  EXPECT_EQ(split_digits(DigitSet{}, 0).train.size(), 0);
  EXPECT_ERROR_TYPE(UserError, split_digits(all, 1798), "cannot take 1798 test images out of 1797");
  EXPECT_ERROR_TYPE(UserError, split_digits(all, -1), "cannot take -1 test images");
}

TEST(DigitsData, NamesAMissingFile) {
  EXPECT_ERROR_TYPE(UserError, load_digits("no/such/digits.bin"), "cannot open no/such/digits.bin");
}

TEST(DigitsData, RefusesAnotherFormat) {
  DigitFile file([](std::string& bytes) { bytes[0] = 'W'; });
  EXPECT_ERROR_TYPE(FormatError, load_digits(file.path()), "does not begin with \"weftdig1\"");
}

TEST(DigitsData, RefusesAShortHeader) {
  DigitFile file([](std::string& bytes) { bytes.resize(20); });
  EXPECT_ERROR_TYPE(FormatError, load_digits(file.path()), "its header ends after 20 bytes");
}

TEST(DigitsData, RefusesImagesOfAnotherSize) {
  DigitFile file([](std::string& bytes) { bytes[12] = 65; });
  EXPECT_ERROR_TYPE(FormatError, load_digits(file.path()), "images of 65 pixels up to 16 in 10 classes");
}

TEST(DigitsData, RefusesALengthThatDisagreesWithTheCount) {
  DigitFile shorter([](std::string& bytes) { bytes.pop_back(); });
  EXPECT_ERROR_TYPE(FormatError, load_digits(shorter.path()),
                    "it has 116828 bytes, but 1797 images take 116829");
  DigitFile huge([](std::string& bytes) { bytes.replace(8, 4, 4, '\xff'); });
  EXPECT_ERROR_TYPE(FormatError, load_digits(huge.path()), "but 4294967295 images take 279172874199");
}

TEST(DigitsData, RefusesPixelsAndLabelsOutOfRange) {
  DigitFile pixel([](std::string& bytes) { bytes[24 + 65 + 3] = 17; });
  EXPECT_ERROR_TYPE(FormatError, load_digits(pixel.path()), "pixel 3 of image 1 is 17");
  DigitFile label([](std::string& bytes) { bytes[24 + 64] = 10; });
  EXPECT_ERROR_TYPE(FormatError, load_digits(label.path()), "the label of image 0 is 10");
}

}  // namespace
}  // namespace weft::examples
