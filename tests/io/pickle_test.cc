// Pickles: data comes through, and nothing else does.
#include "io/pickle.h"

#include <filesystem>

#include "io/pickled_archive.h"
#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/core/struct.h"
#include "weft/ops/functions.h"

namespace weft::pickle {
namespace {

Value load_text(const std::string& bytes) {
  return load(bytes, "x.pkl", [](const StorageName& name) {
    EXPECT_EQ(name.key, "0");
    Ref<Storage> storage =
        Storage::allocate(static_cast<size_t>(name.elements * item_size(name.dtype)), kCpu);
    for (size_t i = 0; i < storage->bytes(); ++i) static_cast<uint8_t*>(storage->data())[i] = 0;
    return storage;
  });
}
std::string bytes(std::initializer_list<unsigned char> list) { return {list.begin(), list.end()}; }

void expect_refused(const std::string& pickle, const char* words) {
  EXPECT_ERROR_TYPE(FormatError, load_text(pickle), words);
}

TEST(Pickle, ReadsNumbersAndStringsOfEveryProtocol) {
  EXPECT_EQ(load_text("N."), Value());
  EXPECT_EQ(load_text("I01\n."), Value(true));
  EXPECT_EQ(load_text("I-12\n."), Value(-12));
  EXPECT_EQ(load_text("L123456789012L\n."), Value(int64_t{123456789012}));
  EXPECT_EQ(load_text("F-1.5\n."), Value(-1.5));
  EXPECT_EQ(load_text("G" + bytes({0x3f, 0xf8, 0, 0, 0, 0, 0, 0}) + "."), Value(1.5));
  EXPECT_EQ(load_text("J" + bytes({0xfe, 0xff, 0xff, 0xff}) + "."), Value(-2));
  EXPECT_EQ(load_text("M" + bytes({0x34, 0x12}) + "."), Value(0x1234));
  EXPECT_EQ(load_text(bytes({0x8a, 2, 0x00, 0xff}) + "."), Value(-256));
  EXPECT_EQ(load_text(bytes({0x8a, 0}) + "."), Value(0));
  EXPECT_EQ(load_text(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0xff}) + "."), Value(INT64_MIN));
  EXPECT_EQ(load_text(bytes({0x8c, 2}) + "hi."), Value("hi"));
  EXPECT_EQ(load_text("X" + bytes({2, 0, 0, 0}) + "hi."), Value("hi"));
}

TEST(Pickle, ReadsContainers) {
  EXPECT_EQ(load_text("(lI1\na(I2\nI3\ne.").to_string(), "[1, 2, 3]");
  EXPECT_EQ(load_text("(I1\nI2\nt.").to_string(), "(1, 2)");
  EXPECT_EQ(load_text("I1\n" + bytes({0x85}) + ".").to_string(), "(1,)");
  EXPECT_EQ(load_text("}(U\x01"
                      "aI1\nU\x01"
                      "bI2\nu.")
                .to_string(),
            "{'a': 1, 'b': 2}");
  EXPECT_EQ(load_text("ccollections\nOrderedDict\n)RU\x01"
                      "aI1\ns.")
                .to_string(),
            "{'a': 1}");
  EXPECT_EQ(load_text("ccollections\nOrderedDict\n(((U\x01"
                      "aI1\ntltR.")
                .to_string(),
            "{'a': 1}");
  EXPECT_EQ(
      load_text("ccollections\ndefaultdict\nc__builtin__\nlist\n" + bytes({0x85}) + "RU\x01" + "aI1\ns.")
          .to_string(),
      "{'a': 1}");
  EXPECT_EQ(load_text("ccollections\ndeque\n()I5\ntR(I1\nI2\ne.").to_string(), "[1, 2]");
  // A list that grows after it was kept and used.
  EXPECT_EQ(load_text("(]q" + bytes({0}) + "h" + bytes({0}) + "I5\na0h" + bytes({0}) + "t.").to_string(),
            "([5], [5])");
}

TEST(Pickle, MakesATupleOfAClassThatIsNotKnown) {
  EXPECT_EQ(load_text("cmine\nPoint\n(I1\nI2\nt" + bytes({0x81}) + ".").to_string(), "(1, 2)");
  EXPECT_EQ(load_text("cos\nsystem\n(U\x02lstR.").to_string(), "('ls',)");
  EXPECT_EQ(load_text("cmine\nPoint\n)" + bytes({0x81}) + "}U\x01xI1\nsb.").to_string(), "{'x': 1}");
  EXPECT_EQ(load_text("ctorch\nfloat16\n."), Value(kFloat16));
  expect_refused("cos\nsystem\n.", "os.system is a class or a function; only data can be read");
  expect_refused("I1\n)R.", "an object is made of what is no class");
  expect_refused("cmine\nPoint\nI1\nR.", "expected a tuple of arguments");
}

std::string tensor_pickle(const std::string& offset, const std::string& sizes, const std::string& strides,
                          const std::string& elements = "I6\n") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01"
         "0U\x03"
         "cpu" +
         elements + "tQ" + offset + sizes + strides + bytes({0x89}) + "ccollections\nOrderedDict\n)RtR.";
}

TEST(Pickle, ChecksThatTensorsLieInTheirStorage) {
  const Tensor tensor = load_text(tensor_pickle("I1\n", "(I2\nI2\nt", "(I3\nI1\nt")).to_tensor();
  EXPECT_EQ(describe(tensor).str(), "f32[2, 2]");
  EXPECT_EQ(tensor.storage_offset().plain(), 1);
  expect_refused(tensor_pickle("I2\n", "(I2\nI2\nt", "(I3\nI1\nt"),
                 "reach beyond the 6 elements that are there");
  expect_refused(tensor_pickle("I-1\n", "(I1\nt", "(I1\nt"), "the offset -1 must not be negative");
  expect_refused(tensor_pickle("I0\n", "(I-1\nt", "(I1\nt"), "must not be negative");
  expect_refused(tensor_pickle("I0\n", "(I1\nt", ")"), "1 sizes have 0 strides");
  expect_refused(tensor_pickle("I0\n", "(I4611686018427387904\nI4\nt", "(I4\nI1\nt"), "reach beyond");
  // A stride of zero repeats an element as often as one likes.
  EXPECT_EQ(load_text(tensor_pickle("I0\n", "(I1000000\nt", "(I0\nt")).to_tensor().plain_numel(), 1000000);
}

TEST(Pickle, RefusesEverythingElse) {
  expect_refused("", "it ends in the middle of a value");
  expect_refused("I1\n", "it ends in the middle of a value");
  expect_refused("I1\nI2\n.", "it ends with 2 values, not one");
  expect_refused(".", "it ends with 0 values");
  expect_refused("N.N", "1 bytes follow its end");
  expect_refused("(.", "it ends with 0 values");
  expect_refused("t.", "there is no mark");
  expect_refused("0.", "the stack is empty");
  expect_refused("(N0a.", "the stack is empty");
  expect_refused("Nq.", "it ends in the middle");
  expect_refused("h" + bytes({7}) + ".", "nothing was kept under 7");
  expect_refused("I1x\n.", "'1x' is no number");
  expect_refused("I99999999999999999999\n.", "is no number");
  expect_refused(bytes({0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0x80, 0}) + ".", "does not fit 64 bits");
  expect_refused(bytes({0x80, 6}) + "N.", "protocol 6 is newer than the newest that is known (5)");
  expect_refused(bytes({0x8f}) + ".", "opcode 0x8f is not among those that data needs");
  expect_refused("imine\nPoint\n.", "opcode 0x69");
  expect_refused("X" + bytes({255, 255, 255, 255}) + "hi.", "it ends in the middle of a value");
  expect_refused("NI1\na.", "expected a list to append to");
  expect_refused("NI1\nI2\ns.", "expected a dictionary to add to");
  expect_refused("}(I1\nu.", "a dictionary has a key without a value");
  expect_refused("}(NI1\nu.", "a key of a dictionary is None");
  expect_refused("N" + bytes({0x85}) + "Q.", "a reference is to no storage");
}

TEST(Pickle, RefusesCyclesAndTooManyValues) {
  expect_refused("]q" + bytes({0}) + "h" + bytes({0}) + "a.", "a container contains itself");
  // Each list has the one before twice: 2 ** 40 values.
  std::string bomb = "N";
  for (unsigned char i = 0; i < 40; ++i)
    bomb += "q" + bytes({i}) + "0(h" + bytes({i}) + "h" + bytes({i}) + "l";
  expect_refused(bomb + ".", "it has more than 10000000 values");
  // Many opcodes deep, and none of them recurses.
  std::string deep = std::string(200'000, ']') + std::string(199'999, 'a') + ".";
  expect_refused(deep, "containers are nested more than 512 deep");
}

TEST(Pickle, EveryTruncatedOrChangedPickleIsReadOrRefused) {
  const Pickled pickled =
      dump(Value::tuple({ones({2, 3}), Dict{{"a", 1}, {"b", Value::list({1.5, "x", false})}}}));
  auto try_load = [](std::string_view text) {
    try {
      load(text, "x", [](const StorageName& name) {
        return Storage::allocate(
            static_cast<size_t>(std::min<int64_t>(std::max<int64_t>(name.elements, 0), 100)) * 8, kCpu);
      });
    } catch (const FormatError&) {
    }
  };
  for (size_t size = 0; size < pickled.bytes.size(); ++size)
    try_load(std::string_view(pickled.bytes).substr(0, size));
  for (size_t at = 0; at < pickled.bytes.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = pickled.bytes;
      changed[at] = static_cast<char>(byte);
      try_load(changed);
    }
}

TEST(PickledArchive, KeepsValuesAndAliases) {
  const Tensor base = from_data<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  Tensor parameter = ones({2}, kFloat64);
  parameter.set_requires_grad();
  const Value value = Value::tuple({Value::list({base, base.t(), base.select(0, 1)}),
                                    Dict{{"n", int64_t{1} << 40},
                                         {"x", -7},
                                         {"c", Complex<double>(1, -2)},
                                         {"s", "text"},
                                         {"none", Value()}},
                                    parameter, ones({3}, kBool), zeros({0, 4}, kBFloat16), kInt64});
  const std::string file = pickled_archive(value);
  EXPECT_EQ(pickled_archive(value), file);
  const zip::Archive archive(FileBytes::copy_of(file, "x.pt"));
  const Value back = read_pickled_archive(archive);
  const ValueList& list = back.elements()[0].elements();
  EXPECT_TRUE(equal(list[0].to_tensor(), base));
  EXPECT_TRUE(equal(list[1].to_tensor(), base.t()));
  EXPECT_TRUE(equal(list[2].to_tensor(), base.select(0, 1)));
  for (const Value& view : list)
    EXPECT_EQ(view.to_tensor().storage().get(), list[0].to_tensor().storage().get());
  EXPECT_EQ(back.elements()[1], value.elements()[1]);
  EXPECT_TRUE(back.elements()[2].to_tensor().requires_grad());
  EXPECT_EQ(describe(back.elements()[3].to_tensor()).str(), "b8[3]");
  EXPECT_EQ(describe(back.elements()[4].to_tensor()).str(), "bf16[0, 4]");
  EXPECT_EQ(back.elements()[5], Value(kInt64));
  EXPECT_ERROR(pickled_archive(Value(Device(DeviceType::kSim, 0))), "a pickle cannot hold");
}

}  // namespace
}  // namespace weft::pickle
