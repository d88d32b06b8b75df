#include "weft/io/numpy.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  const auto size = static_cast<uint32_t>(header.size());
  bytes.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return bytes + header + data;
}
std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}
template <typename T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}
void expect_refused(const std::string& bytes, const char* words) {
  EXPECT_ERROR_TYPE(FormatError, parse_npy(bytes, "x.npy"), words);
}

TEST(Npy, ReadsBothOrdersOfDims) {
  const std::string data = raw<int32_t>({0, 1, 2, 3, 4, 5});
  const Tensor c = parse_npy(npy(header("<i4", "(2, 3)"), data));
  EXPECT_TRUE(equal(c, from_data<int32_t>({0, 1, 2, 3, 4, 5}, {2, 3})));
  const Tensor f = parse_npy(npy(header("<i4", "(2, 3)", true), data, 2));
  EXPECT_TRUE(equal(f, from_data<int32_t>({0, 2, 4, 1, 3, 5}, {2, 3})));
  EXPECT_EQ(parse_npy(npy(header("<f8", "()"), raw<double>({2.5}))).item().to_double(), 2.5);
  EXPECT_EQ(parse_npy(npy(header("<f4", "(0, 3)"), "")).plain_numel(), 0);
}

TEST(Npy, ConvertsBigEndianNumbers) {
  const Tensor tensor = parse_npy(npy(header(">i2", "(2,)"), std::string("\x01\x02\xff\xfe", 4)));
  EXPECT_TRUE(equal(tensor, from_data<int16_t>({0x102, -2})));
  const Tensor z = parse_npy(npy(header(">c8", "(1,)"), std::string("\x3f\x80\x00\x00\xbf\x80\x00\x00", 8)));
  EXPECT_TRUE(equal(view_as_real(z), from_data<float>({1, -1}, {1, 2})));
}

TEST(Npy, WritesWhatItReads) {
  for (DType dtype : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64, kComplex64,
                      kComplex128}) {
    const Tensor tensor = ones({2, 3}, dtype);
    const std::string bytes = npy_bytes(tensor);
    const Tensor back = parse_npy(bytes);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_TRUE(equal(back, tensor)) << dtype_name(dtype);
    EXPECT_EQ(bytes.find('\n') % 64, 63u);
  }
  const Tensor strided = from_data<int64_t>({0, 1, 2, 3, 4, 5}, {2, 3}).t();
  EXPECT_TRUE(equal(parse_npy(npy_bytes(strided)), strided));
  EXPECT_TRUE(equal(parse_npy(npy_bytes(ones({3}))), ones({3})));
  EXPECT_TRUE(equal(parse_npy(npy_bytes(ones({}))), ones({})));
  EXPECT_ERROR(npy_bytes(ones({1}, kBFloat16)), "NumPy has no bfloat16; save tensor.to(kFloat32)");
}

TEST(Npy, RefusesEverythingElse) {
  expect_refused("hello", "x.npy: it is no .npy file");
  expect_refused(npy(header("<f4", "(2,)"), "1234"),
                 "sizes [2] with strides [1] at offset 0 reach beyond the 1 elements");
  expect_refused(npy(header("<f4", "(1,)"), "12345678"), "has 4 bytes, but 8 follow");
  expect_refused(npy(header("<U4", "(1,)"), ""), "elements of type '<U4' are not supported (b1, u1");
  expect_refused(npy(header("|O", "(1,)"), ""), "elements of type '|O'");
  expect_refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", ""),
                 "arrays of records");
  expect_refused(npy("{'descr': '<f4'}", ""), "the header lacks");
  expect_refused(npy("{'descr': '<f4', 'descr': '<f4'}", ""), "unexpected key 'descr'");
  expect_refused(npy(header("<f4", "(-1,)"), ""), "'shape' is no tuple of sizes");
  expect_refused(npy(header("<f4", "(9223372036854775807, 4)"), ""), "reach beyond");
  expect_refused(npy(header("|b1", "(1,)"), "\x02"), "a bool is neither 0 nor 1");
  expect_refused(npy(header("<f4", "(1,)"), "1234", 9), "version 9 of the format is not known");
  const std::string bytes = npy_bytes(ones({2}));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_npy(bytes.substr(0, size)), FormatError) << size;
}

TEST(Npz, KeepsNamesAndOrder) {
  const std::string path = ::testing::TempDir() + "weft_test.npz";
  save_npz({{"b", ones({2, 2})}, {"a", zeros({3}, kInt64)}}, path);
  const NamedArrays arrays = load_npz(path);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].first, "b");
  EXPECT_TRUE(equal(arrays[0].second, ones({2, 2})));
  EXPECT_TRUE(equal(arrays[1].second, zeros({3}, kInt64)));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_ERROR_TYPE(FormatError, load_npz(path), path.c_str());
  save_npy(ones({2}), path);
  EXPECT_TRUE(equal(load_npy(path), ones({2})));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weft
