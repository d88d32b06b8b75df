#include "weft/io/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "weft/base/allocator.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

// A file from its parts; the length in front is that of the header unless given.
std::string file_of(const std::string& header, const std::string& data = "", int64_t length = -1) {
  uint64_t claimed = length < 0 ? header.size() : static_cast<uint64_t>(length);
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &claimed, 8);
  return bytes + header + data;
}

template <typename T>
Tensor counted(int64_t count) {
  Tensor tensor = allocate_contiguous({count}, dtype_of<T>);
  for (int64_t i = 0; i < count; ++i) tensor.data<T>()[i] = static_cast<T>(i);
  return tensor;
}

void expect_refused(const std::string& header, const std::string& data, const char* words) {
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors(file_of(header, data), "x.safetensors"), words);
}

TEST(Safetensors, ReadsNamesTypesShapesAndNotes) {
  std::string header =
      R"({"__metadata__":{"made by":"hand"},"b":{"dtype":"I16","shape":[2],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )";
  float number = 1.5;
  std::string data(reinterpret_cast<const char*>(&number), 4);
  data += std::string("\x01\x00\xff\xff", 4);
  SafeTensors file = parse_safetensors(file_of(header, data));
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(file.begin()->first, "b");
  EXPECT_EQ(file.at("a").dim(), 0);
  EXPECT_EQ(*file.at("a").data<float>(), 1.5f);
  EXPECT_EQ(file.at("b").data<int16_t>()[0], 1);
  EXPECT_EQ(file.at("b").data<int16_t>()[1], -1);
  EXPECT_THAT(file.metadata, ElementsAre(std::pair<std::string, std::string>("made by", "hand")));
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_ERROR(file.at("c"), "there is no tensor 'c' among the 2 here: b, a");
}

TEST(Safetensors, ReadsAFileWithoutTensors) { EXPECT_EQ(parse_safetensors(file_of("{}")).size(), 0u); }

TEST(Safetensors, RefusesTruncatedAndOversizedHeaders) {
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors("1234567", "x"), "x: 7 bytes are no safetensors file");
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors(file_of("{}", "", 3), "x"),
                    "the header claims 3 bytes, but 2 follow");
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors(file_of("", "", 0), "x"), "the header claims 0 bytes");
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors(file_of("{}", "", 100'000'001), "x"),
                    "at most 100000000 are read");
  EXPECT_ERROR_TYPE(FormatError, parse_safetensors(file_of("{}", "", INT64_MAX), "x"), "the header claims");
}

TEST(Safetensors, RefusesWhatIsNoHeader) {
  expect_refused(" {}", "", "does not begin with '{'");
  expect_refused("[]", "", "does not begin with '{'");
  expect_refused("{\"a\":}", "", "x.safetensors: header");
  expect_refused(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
      "xy", "the key \"a\" comes twice");
  expect_refused(R"({"__metadata__":{"a":1}})", "", "'__metadata__': the note 'a' is no string");
}

TEST(Safetensors, RefusesEntriesThatAreNotTensors) {
  expect_refused(R"({"a":3})", "", "entry 'a' is no object");
  expect_refused(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "x", "entry 'a' has no dtype");
  expect_refused(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "x", "entry 'a' has no shape");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1]}})", "x", "entry 'a' has no data_offsets");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"scale":2}})", "x",
                 "entry 'a': unknown member 'scale'");
  expect_refused(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x",
                 "entry 'a': shape holds -1");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "x",
                 "entry 'a': shape holds 1.0");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "x",
                 "entry 'a': data_offsets are not two numbers");
  expect_refused(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02",
                 "entry 'a': a bool is neither 0 nor 1");
}

TEST(Safetensors, RefusesOtherElementTypesByName) {
  std::string header =
      R"({"a":{"dtype":"U64","shape":[1],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})";
  expect_refused(header, "123456789", "entry 'a': element type 'U64' is not supported");
  SafeTensors file = parse_safetensors(file_of(header, "123456789"), "x", {.leave_out_unsupported = true});
  EXPECT_THAT(file.left_out, ElementsAre("a"));
  EXPECT_EQ(*file.at("b").data<uint8_t>(), '9');
}

TEST(Safetensors, RefusesOffsetsThatDisagree) {
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234",
                 "entry 'a': F32[2] has 8 bytes, but its offsets span 4");
  expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "1",
                 "are not inside the 1 bytes of data");
  expect_refused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "1", "are not inside");
  expect_refused(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "",
                 "has more bytes than can be addressed");
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  auto two = [](const char* a, const char* b) {
    return fmt::format(
        R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":{}}},"b":{{"dtype":"U8","shape":[2],"data_offsets":{}}}}})",
        a, b);
  };
  EXPECT_EQ(parse_safetensors(file_of(two("[2,4]", "[0,2]"), "1234")).size(), 2u);
  expect_refused(two("[0,2]", "[1,3]"), "123",
                 "entry 'b' begins at byte 1, inside another entry that ends at 2");
  expect_refused(two("[0,2]", "[0,2]"), "12", "inside another entry");
  expect_refused(two("[0,2]", "[3,5]"), "12345", "bytes 2 to 3 belong to no entry");
  expect_refused(two("[0,2]", "[2,4]"), "12345", "the last 1 bytes belong to no entry");
}

TEST(Safetensors, WritesWhatItReads) {
  SafeTensors file;
  for (DType dtype :
       {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8, kBool, kComplex64})
    EXPECT_TRUE(file.add(std::string(dtype_name(dtype)), ones({2, 3}, dtype)));
  file.add("empty", zeros({0, 4}));
  file.add("transposed", counted<int64_t>(6).view({2, 3}).t());
  file.metadata = {{"format", "pt"}};
  EXPECT_FALSE(file.add("empty", zeros({1})));
  std::string bytes = safetensors_bytes(file);
  SafeTensors read = parse_safetensors(bytes);
  EXPECT_EQ(read.size(), file.size());
  EXPECT_EQ(read.metadata, file.metadata);
  for (const auto& [name, tensor] : file) {
    EXPECT_EQ(read.at(name).dtype(), tensor.dtype()) << name;
    EXPECT_TRUE(std::ranges::equal(read.at(name).plain_sizes(), tensor.plain_sizes())) << name;
  }
  const int64_t* values = read.at("transposed").data<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(values, values + 6), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_EQ(safetensors_bytes(read), bytes);
  // The data begins aligned, and wide elements come first.
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0u);
  EXPECT_EQ(item_size(read.begin()->second.dtype()), 8);
}

TEST(Safetensors, SavesAndLoadsFiles) {
  std::string path = ::testing::TempDir() + "weft_safetensors_test.safetensors";
  SafeTensors file;
  file.add("x", counted<float>(5));
  save_safetensors(file, path);
  EXPECT_EQ(load_safetensors(path).at("x").data<float>()[4], 4.0f);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_ERROR_TYPE(FormatError, load_safetensors(path), path.c_str());
  std::filesystem::remove(path);
  EXPECT_USER_ERROR(load_safetensors(path), "cannot open");
  EXPECT_USER_ERROR(save_safetensors(file, "no_such_folder/x.safetensors"), "cannot open");
}

TEST(Safetensors, UsesThePagesOfTheFileInPlace) {
  const std::string path = ::testing::TempDir() + "weft_safetensors_in_place.safetensors";
  SafeTensors file;
  constexpr int64_t kCount = 1 << 20;
  for (DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16, kBool, kComplex64})
    file.add(std::string(dtype_name(dtype)), ones({kCount}, dtype));
  save_safetensors(file, path);
  const size_t before = allocator_stats().bytes_in_use;
  SafeTensors loaded = load_safetensors(path);
  EXPECT_LT(allocator_stats().bytes_in_use - before, 10'000u);
  for (const auto& [name, tensor] : file) EXPECT_TRUE(equal(loaded.at(name), tensor)) << name;
  // Neither writing to a tensor nor saving to the same file disturbs the other.
  loaded.at("float32").fill_(3);
  EXPECT_TRUE(equal(load_safetensors(path).at("float32"), file.at("float32")));
  save_safetensors(SafeTensors({{"x", ones({1})}}), path);
  EXPECT_TRUE(equal(loaded.at("float64"), file.at("float64")));
  EXPECT_EQ(load_safetensors(path).size(), 1u);
  std::filesystem::remove(path);
}

TEST(Safetensors, RefusesToWriteWhatTheFormatLacks) {
  SafeTensors complex, undefined, reserved;
  complex.add("z", zeros({1}, kComplex128));
  EXPECT_USER_ERROR(safetensors_bytes(complex), "'z' is c128[1], which the format does not have");
  undefined.add("u", Tensor());
  EXPECT_USER_ERROR(safetensors_bytes(undefined), "'u' is an undefined tensor");
  reserved.add("__metadata__", zeros({1}));
  EXPECT_USER_ERROR(safetensors_bytes(reserved), "cannot be called '__metadata__'");
}

}  // namespace
}  // namespace weft
