// Attacks on whoever loads a .pt2 of unknown origin, each a real archive with one thing wrong. All are
// refused, by name and with the reason, and refusing costs no more memory than the file has bytes, and some
// megabytes.
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <atomic>
#include <cstring>
#include <new>

#include "support/archives.h"
#include "support/expect_error.h"
#include "weft/base/warning.h"
#include "weft/io/pt2.h"

namespace {

// Memory from operator new, now and at the most.
std::atomic<size_t> bytes_now{0}, bytes_most{0};

[[maybe_unused]] void count_allocation(void* memory) noexcept {
  const size_t now = bytes_now += malloc_usable_size(memory);
  size_t most = bytes_most;
  while (now > most && !bytes_most.compare_exchange_weak(most, now)) {
  }
}

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
void* operator new(size_t size) {
  void* const memory = std::malloc(size ? size : 1);
  if (!memory) throw std::bad_alloc();
  count_allocation(memory);
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory) bytes_now -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
#endif

namespace weft {
namespace {

using testing::archive_bytes;
using testing::archive_entries;
using testing::archive_with;
using testing::archive_with_program;
using testing::ArchiveEntries;
using testing::program_node;
using testing::zipped_archive;

struct Attack {
  const char* name;
  std::function<std::string()> bytes;
  const char* words;  // the entry and the reason
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

// --- archives

// Where records of a zip archive begin.
std::vector<size_t> records(const std::string& bytes, std::string_view signature) {
  std::vector<size_t> found;
  for (size_t at = bytes.find(signature); at != bytes.npos; at = bytes.find(signature, at + 1))
    found.push_back(at);
  return found;
}
constexpr std::string_view kLocal = "PK\3\4", kDirectory = "PK\1\2", kEnd = "PK\5\6";

// A number of some bytes put into a record.
std::string patched(std::string bytes, size_t at, uint64_t value, size_t size) {
  std::memcpy(bytes.data() + at, &value, size);
  return bytes;
}
// ... of the directory's record of an entry, and of its own header.
std::string patched_entry(const std::string& entry, size_t in_directory, size_t in_header, uint64_t value,
                          size_t size) {
  std::string bytes = archive_bytes("tied_weights");
  for (const size_t record : records(bytes, kDirectory)) {
    if (bytes.compare(record + 46, entry.size(), entry) != 0) continue;
    uint32_t header = 0;
    std::memcpy(&header, bytes.data() + record + 42, 4);
    if (in_header) bytes = patched(bytes, header + in_header, value, size);
    if (in_directory) bytes = patched(bytes, record + in_directory, value, size);
  }
  return bytes;
}
const std::string kProgramEntry = "model/models/model.json", kWeightEntry = "model/data/weights/weight_0";

std::string renamed(const char* entry, const char* name) {
  ArchiveEntries entries = archive_entries(archive_bytes("tied_weights"));
  for (auto& [path, content] : entries)
    if (path.ends_with(entry)) path = name;
  return zipped_archive(entries);
}

// An entry whose deflated bytes are a thousandth of its content.
std::string bomb() {
  const std::string content(200'000'000, ' ');
  std::string deflated(compressBound(1 << 22), '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<unsigned char*>(deflated.data());
  stream.avail_out = static_cast<uInt>(deflated.size());
  deflate(&stream, Z_FINISH);
  deflated.resize(stream.total_out);
  deflateEnd(&stream);
  // The stored entry becomes a deflated one.
  ArchiveEntries entries = archive_entries(archive_bytes("tied_weights"));
  for (auto& [path, text] : entries)
    if (path == kProgramEntry) text = deflated;
  std::string bytes = zipped_archive(entries);
  const uint32_t checksum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const unsigned char*>(content.data()), static_cast<uInt>(content.size())));
  for (const size_t record : records(bytes, kDirectory)) {
    if (bytes.compare(record + 46, kProgramEntry.size(), kProgramEntry) != 0) continue;
    uint32_t header = 0;
    std::memcpy(&header, bytes.data() + record + 42, 4);
    for (const auto& [offset, value, size] : {std::tuple<size_t, uint64_t, size_t>{record + 10, 8, 2},
                                              {record + 16, checksum, 4},
                                              {record + 24, content.size(), 4},
                                              {header + 8, 8, 2},
                                              {header + 14, checksum, 4},
                                              {header + 22, content.size(), 4}})
      bytes = patched(bytes, offset, value, size);
  }
  return bytes;
}

std::string repeated(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

const Attack kArchiveAttacks[] = {
    {"cut off in the end record",
     [] { return archive_bytes("tied_weights").substr(0, archive_bytes("tied_weights").size() - 3); },
     "there is no end record"},
    {"cut off in the directory",
     [] {
       const std::string bytes = archive_bytes("tied_weights");
       return bytes.substr(0, records(bytes, kDirectory)[2] + 20);
     },
     "there is no end record"},
    {"a directory that points beyond the file",
     [] {
       const std::string bytes = archive_bytes("tied_weights");
       return patched(bytes, records(bytes, kEnd).back() + 16, 0xFFFFFF00, 4);
     },
     "directory"},
    {"an entry twice",
     [] {
       std::string bytes = archive_bytes("tied_weights");
       // Another weight takes the name, in both of its records.
       const std::string name = "weights/weight_1";
       for (const size_t at : records(bytes, name)) bytes[at + name.size() - 1] = '0';
       return bytes;
     },
     "two"},
    {"headers that disagree about a size", [] { return patched_entry(kWeightEntry, 0, 22, 12, 4); },
     "entry 'model/data/weights/weight_0': its headers disagree about the size: 12 and 264"},
    {"headers that disagree about a name", [] { return patched_entry(kWeightEntry, 0, 30, 'n', 1); },
     "entry 'model/data/weights/weight_0': its own header calls it 'nodel/data/weights/weight_0'"},
    {"a size beyond the file", [] { return patched_entry(kWeightEntry, 20, 18, 0x7FFFFFFF, 4); }, "weight_0"},
    {"a program whose checksum is another's", [] { return patched_entry(kProgramEntry, 16, 14, 7, 4); },
     "entry 'model/models/model.json': the record after its data disagrees with the directory"},
    {"a program that was changed in place",
     [] {
       std::string bytes = archive_bytes("tied_weights");
       bytes[bytes.find("\"schema_version\"") + 1] ^= 1;
       return bytes;
     },
     "entry 'model/models/model.json': its content does not have its checksum"},
    {"an entry inside another one",
     [] {
       std::string bytes = archive_bytes("tied_weights");
       // The example inputs are an archive too; the directory is the last.
       const std::vector<size_t> all = records(bytes, kDirectory);
       const size_t first = all[all.size() - 2], second = all.back();
       uint32_t header = 0;
       std::memcpy(&header, bytes.data() + first + 42, 4);
       return patched(bytes, second + 42, header, 4);
     },
     "': its own header calls it '"},
    {"an encrypted entry", [] { return patched_entry(kProgramEntry, 8, 6, 1, 2); },
     "entry 'model/models/model.json': it is encrypted"},
    {"a path that climbs", [] { return renamed("weight_0", "model/../../etc/weight_0"); },
     "entry 'model/../../etc/weight_0': the name has a part '..'"},
    {"an absolute path", [] { return renamed("weight_0", "/etc/passwd"); },
     "entry '/etc/passwd': the name is an absolute path"},
    {"a bomb of spaces", bomb, "model/models/model.json"},
};

// --- programs

std::string changed(const std::function<void(Json&)>& change) {
  return archive_with_program("scalar_inputs", change);
}
Json& argument(Json& program, size_t node, size_t i) {
  return program_node(program, node)["inputs"].as_array()[i]["arg"];
}
Json& tensor_value(Json& program, const char* name) {
  return program["graph_module"]["graph"]["tensor_values"][name];
}
std::string program_text(const std::function<std::string(std::string)>& change) {
  return archive_with("scalar_inputs", "models/model.json", change);
}
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}
Json expression(const std::string& text) {
  return Json::Object{{"as_expr", Json::Object{{"expr_str", text}, {"hint", nullptr}}}};
}

const Attack kProgramAttacks[] = {
    {"a program of another version",
     [] { return changed([](Json& p) { p["schema_version"]["major"] = 7; }); },
     "models/model.json: version 7."},
    {"a version of no number", [] { return changed([](Json& p) { p["schema_version"]["major"] = "x"; }); },
     "models/model.json"},
    {"a million brackets",
     [] { return program_text([](const std::string&) { return repeated("[", 1'000'000); }); },
     "models/model.json"},
    {"a million objects",
     [] { return program_text([](const std::string&) { return repeated("{\"a\":", 1'000'000); }); },
     "models/model.json"},
    {"NaN for a number",
     [] { return program_text([](std::string t) { return replaced(t, "\"major\": 8", "\"major\": NaN"); }); },
     "models/model.json"},
    {"an integer of a thousand digits",
     [] {
       return program_text(
           [](std::string t) { return replaced(t, "\"major\": 8", "\"major\": 8" + repeated("0", 1000)); });
     },
     "models/model.json"},
    {"two keys of one name",
     [] {
       return program_text(
           [](std::string t) { return replaced(t, "\"major\": 8", "\"major\": 8, \"major\": 8"); });
     },
     "models/model.json"},
    {"bytes that are no text",
     [] { return program_text([](std::string t) { return replaced(t, "flip_1", "fl\xFFp_1"); }); },
     "models/model.json"},
    {"a reference to what comes later",
     [] { return changed([](Json& p) { argument(p, 1, 0)["as_tensor"]["name"] = "mean"; }); },
     "argument 'self' of 'mul': there is no value 'mean' before it"},
    {"a node that reads itself",
     [] { return changed([](Json& p) { argument(p, 1, 0)["as_tensor"]["name"] = "mul"; }); },
     "argument 'self' of 'mul': there is no value 'mul' before it"},
    {"a value made twice",
     [] {
       return changed(
           [](Json& p) { program_node(p, 1)["outputs"].as_array()[0]["as_tensor"]["name"] = "repeat"; });
     },
     "two values are called 'repeat'"},
    {"an argument too many",
     [] {
       return changed([](Json& p) {
         Json::Array& inputs = program_node(p, 1)["inputs"].as_array();
         inputs.push_back(inputs[1]);
         inputs.push_back(inputs[1]);
       });
     },
     "mul"},
    {"an argument that is missing",
     [] { return changed([](Json& p) { program_node(p, 1)["inputs"].as_array().clear(); }); }, "mul"},
    {"an argument of another type",
     [] { return changed([](Json& p) { argument(p, 0, 1) = Json::Object{{"as_string", "x"}}; }); }, "repeat"},
    {"an argument of two types",
     [] {
       return changed([](Json& p) { argument(p, 1, 1) = Json::Object{{"as_int", 1}, {"as_float", 1.0}}; });
     },
     "expected an object with one key"},
    {"a function of Python",
     [] { return changed([](Json& p) { program_node(p, 1)["target"] = "os.system"; }); },
     "node 'mul' calls 'os.system', a function of Python that weft does not have"},
    {"a negative size",
     [] {
       return changed([](Json& p) {
         tensor_value(p, "mul")["sizes"] =
             Json::Array{Json::Object{{"as_int", -1}}, Json::Object{{"as_int", 3}}};
       });
     },
     "value 'mul'"},
    {"a size of 2^63 - 1 in each dim",
     [] {
       return changed([](Json& p) {
         const Json size = Json::Object{{"as_int", INT64_MAX}};
         tensor_value(p, "mul")["sizes"] = Json::Array{size, size};
       });
     },
     "has more elements than an int64 can count"},
    {"an expression that calls",
     [] {
       return changed([](Json& p) {
         const Json size = expression("__import__('os').system('true')");
         tensor_value(p, "mul")["sizes"] = Json::Array{size, size};
       });
     },
     "value 'mul': '__import__('os').system('true')' is no expression"},
    {"an expression a million deep",
     [] {
       return changed([](Json& p) {
         const Json size = expression(repeated("(", 1'000'000));
         tensor_value(p, "mul")["sizes"] = Json::Array{size, Json::Object{{"as_int", 3}}};
       });
     },
     "value 'mul'"},
    {"a range without numbers",
     [] {
       return changed([](Json& p) {
         p["range_constraints"] = Json::Object{{"s0", Json::Object{{"min_val", 9}, {"max_val", 1}}}};
       });
     },
     "range of 's0'"},
    {"a tree of containers a million deep",
     [] {
       return changed([](Json& p) {
         p["graph_module"]["module_call_graph"].as_array()[0]["signature"]["in_spec"] =
             repeated("[1,{\"type\":\"builtins.list\",\"context\":\"null\",\"children_spec\":[", 1'000'000);
       });
     },
     "models/model.json"},
    {"a signature that is too short",
     [] {
       return changed([](Json& p) { p["graph_module"]["signature"]["input_specs"].as_array().pop_back(); });
     },
     "placeholders, its signature"},
    {"a parameter that is nowhere",
     [] {
       return archive_with("tied_weights", "models/model.json", [](std::string t) {
         return replaced(t, "\"embedding.weight\"", "\"nowhere.weight\"");
       });
     },
     "nowhere.weight"},
};

// --- weights and pickles

std::string weights(std::string_view from, std::string_view to) {
  return archive_with("tied_weights", "model_weights_config.json",
                      [&](std::string text) { return replaced(std::move(text), from, to); });
}
// The example inputs, with another pickle.
std::string pickled(const std::string& program) {
  return archive_with("tied_weights", "sample_inputs/model.pt", [&](const std::string& content) {
    ArchiveEntries entries = archive_entries(content);
    for (auto& [name, text] : entries)
      if (name.ends_with("data.pkl")) text = program;
    return zipped_archive(entries);
  });
}

const Attack kTensorAttacks[] = {
    {"sizes beyond the storage", [] { return weights(R"({"as_int": 11})", R"({"as_int": 1000000})"); },
     "'embedding.weight': sizes [1000000, 6] with strides [6, 1] at offset 0 reach beyond the 66 elements"},
    {"a size of 2^62", [] { return weights(R"({"as_int": 11})", R"({"as_int": 4611686018427387904})"); },
     "'embedding.weight'"},
    {"a size of 2^63", [] { return weights(R"({"as_int": 11})", R"({"as_int": 9223372036854775808})"); },
     "model_weights_config.json"},
    {"a stride out of the storage",
     [] { return weights(R"("strides": [{"as_int": 6})", R"("strides": [{"as_int": 4000000000000000000})"); },
     "'embedding.weight'"},
    {"a negative stride",
     [] { return weights(R"("strides": [{"as_int": 6})", R"("strides": [{"as_int": -6})"); },
     "'embedding.weight'"},
    {"an offset out of the storage",
     [] { return weights(R"("storage_offset": {"as_int": 0})", R"("storage_offset": {"as_int": 60})"); },
     "'embedding.weight'"},
    {"a weight that is a path",
     [] { return weights(R"("path_name": "weight_0")", R"("path_name": "../../weight_0")"); },
     "there is no entry"},
    {"a type that does not exist", [] { return weights(R"("dtype": 7)", R"("dtype": 99)"); },
     "'embedding.weight'"},
};
// Example inputs that cannot be read are a warning, and no reason to refuse the program.
const Attack kPickleAttacks[] = {
    {"a pickle that calls", [] { return pickled("cos\nsystem\n(S'true'\ntR."); }, ""},
    {"a pickle that builds",
     [] {
       return pickled(
           "\x80\x02}(U\x01"
           "aI1\nub.");
     },
     ""},
    {"a pickle that makes an instance", [] { return pickled("(ios\nsystem\n."); }, ""},
    {"a pickle that contains itself",
     [] {
       return pickled(
           "]q\x01h\x01"
           "a.");
     },
     ""},
    {"a pickle a million deep",
     [] { return pickled(repeated("]", 1'000'000) + repeated("a", 999'999) + "."); }, ""},
    {"a pickle of nothing", [] { return pickled(""); }, ""},
};

class HostileArchives : public ::testing::TestWithParam<Attack> {};

std::string name_of(const ::testing::TestParamInfo<Attack>& info) {
  std::string name;
  for (const char* c = info.param.name; *c; ++c)
    name += std::isalnum(static_cast<unsigned char>(*c)) ? *c : '_';
  return name;
}

TEST_P(HostileArchives, AreRefusedByNameAndAtLittleCost) {
  const std::string bytes = GetParam().bytes();
  const size_t before = bytes_now;
  bytes_most = before;
  try {
    parse_pt2(bytes, "m.pt2").module();
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_NE(std::string(error.what()).find("m.pt2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(GetParam().words), std::string::npos) << error.what();
  }
  // parse_pt2 begins with a copy of the bytes.
  EXPECT_LE(bytes_most - before, 2 * bytes.size() + (16 << 20));
}
INSTANTIATE_TEST_SUITE_P(Zip, HostileArchives, ::testing::ValuesIn(kArchiveAttacks), name_of);
INSTANTIATE_TEST_SUITE_P(Program, HostileArchives, ::testing::ValuesIn(kProgramAttacks), name_of);
INSTANTIATE_TEST_SUITE_P(Weights, HostileArchives, ::testing::ValuesIn(kTensorAttacks), name_of);

class HostileExamples : public ::testing::TestWithParam<Attack> {};

TEST_P(HostileExamples, AreAWarningAndNotRun) {
  WarningCapture warnings;
  const ExportedProgram program = parse_pt2(GetParam().bytes(), "m.pt2");
  EXPECT_FALSE(program.example_inputs());
  ASSERT_EQ(warnings.warnings().size(), 1u);
  EXPECT_NE(warnings.warnings()[0].message.find("m.pt2"), std::string::npos)
      << warnings.warnings()[0].message;
}
INSTANTIATE_TEST_SUITE_P(Pickle, HostileExamples, ::testing::ValuesIn(kPickleAttacks), name_of);

// A program that is cut off anywhere is refused, whichever entry it ends in.
TEST(HostileArchives, AreRefusedWhereverTheyEnd) {
  const std::string bytes = archive_bytes("tied_weights");
  std::vector<size_t> ends;
  for (const std::string_view signature : {kLocal, kDirectory, kEnd})
    for (const size_t record : records(bytes, signature))
      for (const size_t more : {0, 4, 20, 30}) ends.push_back(std::min(record + more, bytes.size() - 1));
  for (const size_t end : ends) EXPECT_THROW(parse_pt2(bytes.substr(0, end), "m.pt2"), FormatError) << end;
}

}  // namespace
}  // namespace weft
