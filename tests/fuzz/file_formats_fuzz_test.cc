// A libFuzzer program for everything that is read from files: any bytes are read, or refused with an error of
// the caller's kind, and what was read is written and read again.
//
//   test_fuzz_files --target=zip -runs=1000         zip, entry, symbols, guards, pickle, safetensors, npy,
//   json test_fuzz_files --target=entry -max_total_time=600 -rss_limit_mb=4096
//
// The programs of tests/compat are what it begins with. `entry` changes one entry of an archive, whose
// checksum then fits: the first byte says which program, the second which entry.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include "base/json.h"
#include "export/guard_expr.h"
#include "io/pickle.h"
#include "io/zip.h"
#include "weft/base/warning.h"
#include "weft/io/numpy.h"
#include "weft/io/pt2.h"
#include "weft/io/safetensors.h"
#include "weft/sym/shape_env.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

const std::filesystem::path kPrograms = WEFT_SOURCE_DIR "/tests/compat/cases";
constexpr uint64_t kLargest = 1 << 22;  // of an entry that is read

[[noreturn]] void finding(const char* what, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", what, detail.c_str());
  std::abort();
}
void check(bool ok, const char* what, const std::string& detail) {
  if (!ok) finding(what, detail);
}

// Whatever f refuses is a mistake of the caller, or something that weft does not have.
void expect_no_fault(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    check(error.kind() != ErrorKind::kInternal, "a fault of weft's own", error.what());
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// --- the archives of tests/compat, small ones first

Entries entries_of(const zip::Archive& archive, std::string_view below) {
  Entries entries;
  for (const zip::Entry& entry : archive.entries())
    if (entry.name.starts_with(below) && entry.size < 40000)
      entries.emplace_back("model/" + entry.name.substr(below.size()), archive.read(entry));
  return entries;
}

const std::vector<Entries>& programs() {
  static const std::vector<Entries> all = [] {
    std::vector<std::pair<uintmax_t, std::filesystem::path>> files;
    for (const auto& file : std::filesystem::directory_iterator(kPrograms))
      files.emplace_back(file.file_size(), file.path());
    std::ranges::sort(files);
    std::vector<Entries> programs;
    for (size_t i = 0; i < std::min<size_t>(files.size(), 40); ++i)
      programs.push_back(entries_of(zip::Archive::open(files[i].second.string()), "pt2/"));
    return programs;
  }();
  return all;
}

std::string zipped(const Entries& entries) {
  std::string bytes;
  zip::Writer writer([&](std::string_view part) { bytes += part; });
  for (const auto& [name, content] : entries) writer.add(name, content);
  writer.finish();
  return bytes;
}

// --- what is done with an input

void read_zip(std::string_view bytes) {
  const zip::Archive archive(FileBytes::copy_of(bytes, "x"));
  for (const zip::Entry& entry : archive.entries())
    if (entry.size < kLargest) archive.read(entry);
}

void read_entry(std::string_view bytes) {
  if (bytes.size() < 2) return;
  Entries entries = programs()[static_cast<uint8_t>(bytes[0]) % programs().size()];
  entries[static_cast<uint8_t>(bytes[1]) % entries.size()].second = bytes.substr(2);
  const WarningCapture warnings;
  const ExportedProgram program = parse_pt2(zipped(entries), "x");
  // What was accepted holds: it prints, is a module, and is saved as the same bytes again.
  program.to_string();
  expect_no_fault([&] { program.module(); });
  std::string saved;
  expect_no_fault([&] { saved = pt2_bytes(program); });
  if (!saved.empty()) check(pt2_bytes(parse_pt2(saved, "saved")) == saved, "saved as other bytes", "");
}

void read_symbols(std::string_view bytes) {
  const Ref<ShapeEnv> env = ShapeEnv::create();
  std::map<std::string, const sym::Expr*> symbols;
  auto lookup = [&](const sym::SymbolText& text) {
    const sym::Expr*& symbol = symbols[text.name];
    if (!symbol) symbol = env->create_unbacked_int().expr();
    return symbol;
  };
  const sym::Expr* expr = sym::parse(*env, bytes, lookup);
  sym::source_text(expr);
  const std::string text = sym::srepr(expr);
  auto known = [&](const sym::SymbolText& wanted) -> const sym::Expr* {
    for (const auto& [name, symbol] : symbols)
      if (symbol->to_string() == wanted.name) return symbol;
    return nullptr;
  };
  check(sym::parse(*env, text, known) == expr, "reads back as another expression", text);
}

void read_guards(std::string_view bytes) {
  const std::optional<GuardExpr> guard = GuardExpr::parse(bytes);
  if (!guard) return;
  guard->holds([](const GuardExpr::Reading&) { return std::optional<double>(4); });
  guard->readings();
  guard->to_string([](const GuardExpr::Reading& reading) { return reading.root; });
}

void read_pickle(std::string_view bytes) {
  auto storage = [](const pickle::StorageName& name) {
    require(name.elements >= 0 && name.elements < 1000, "no such storage");
    return Storage::allocate(static_cast<size_t>(name.elements) * item_size(name.dtype), kCpu);
  };
  const Value value = pickle::load(bytes, "x", storage, {.most_values = 10000});
  value.to_string();
  expect_no_fault([&] { pickle::dump(value); });
}

void read_safetensors(std::string_view bytes) {
  const SafeTensors tensors = parse_safetensors(bytes, "x");
  const std::string saved = safetensors_bytes(tensors);
  check(safetensors_bytes(parse_safetensors(saved)) == saved, "saved as other bytes", "");
}

void read_npy(std::string_view bytes) {
  const std::string saved = npy_bytes(parse_npy(bytes, "x"));
  check(npy_bytes(parse_npy(saved)) == saved, "saved as other bytes", "");
}

void read_json(std::string_view bytes) {
  const std::string text = Json::parse(bytes).to_text();
  check(Json::parse(text).to_text() == text, "written in another way", text);
}

// --- what to begin with

// Calls f for each text of a JSON value, at any depth.
void for_each_text(const Json& json, const std::function<void(const std::string&)>& f) {
  if (json.is_string()) f(json.as_string());
  if (json.is_object())
    for (const auto& [key, value] : json.as_object()) for_each_text(value, f);
  if (json.is_array())
    for (const Json& value : json.as_array()) for_each_text(value, f);
}

// Calls f for the program of each archive.
void for_each_json(const std::function<void(const Json&)>& f) {
  for (const Entries& program : programs())
    for (const auto& [name, content] : program)
      if (name.ends_with("models/model.json")) f(Json::parse(content));
}

using Add = std::function<void(std::string_view)>;

void zip_seeds(const Add& add) {
  for (size_t i = 0; i < 6; ++i) add(zipped(programs()[i]));
  add(text_of(kPrograms / "actor_critic.zip"));
}
void entry_seeds(const Add& add) {
  for (size_t i = 0; i < programs().size(); ++i)
    for (size_t k = 0; k < programs()[i].size(); ++k)
      add(std::string{static_cast<char>(i), static_cast<char>(k)} + programs()[i][k].second);
}
void symbol_seeds(const Add& add) {
  for_each_json([&](const Json& program) {
    for_each_text(program, [&](const std::string& text) {
      if (text.find("Symbol('") != text.npos) add(text);
    });
  });
  add("2*s0**2 + FloorDiv(s1, 3)");
  add("Ne(Mod(s0, 20), 0) & (s0 < Max(4, s1))");
}
void guard_seeds(const Add& add) {
  for_each_json([&](const Json& program) {
    if (const Json* guards = program.find("guards_code")) for_each_text(*guards, add);
  });
  add("L['x'].size()[0] <= 64 and (L['y']['a'][0].size()[1] % 2 == 0 or not L['n'] != -1.5)");
}
void pickle_seeds(const Add& add) {
  for (const Entries& program : programs())
    for (const auto& [name, content] : program)
      if (name.ends_with(".pt")) {
        const zip::Archive archive(FileBytes::copy_of(content, name));
        for (const zip::Entry& entry : archive.entries())
          if (entry.name.ends_with("data.pkl")) add(archive.read(entry));
      }
}
void safetensors_seeds(const Add& add) {
  for (const char* name : {"actor_critic", "bert"}) {
    const zip::Archive archive = zip::Archive::open((kPrograms / (std::string(name) + ".zip")).string());
    for (const zip::Entry& entry : archive.entries())
      if (entry.name.ends_with(".safetensors") && entry.size < 10000) add(archive.read(entry));
  }
}
void npy_seeds(const Add& add) {
  for (const char* header : {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                             "{'descr': '>i2', 'fortran_order': True, 'shape': (3,), }",
                             "{'descr': '|b1', 'fortran_order': False, 'shape': (), }"}) {
    const std::string text = header;
    add(std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text +
        std::string(24, '\1'));
  }
}
void json_seeds(const Add& add) {
  add(R"({"a": [1, -2.5e3, "\u00e9\n", null, true], "b": {}})");
  for (size_t i = 0; i < 3; ++i)
    for (const auto& [name, content] : programs()[i])
      if (name.ends_with(".json")) add(content);
}

struct FuzzTarget {
  const char* name;
  void (*read)(std::string_view bytes);
  void (*seeds)(const Add& add);
};
constexpr FuzzTarget kTargets[] = {
    {"zip", read_zip, zip_seeds},
    {"entry", read_entry, entry_seeds},
    {"symbols", read_symbols, symbol_seeds},
    {"guards", read_guards, guard_seeds},
    {"pickle", read_pickle, pickle_seeds},
    {"safetensors", read_safetensors, safetensors_seeds},
    {"npy", read_npy, npy_seeds},
    {"json", read_json, json_seeds},
};
const FuzzTarget* chosen = &kTargets[0];

}  // namespace
}  // namespace weft

// Takes --target, which libFuzzer leaves alone, and gives it a folder with what to begin with.
extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  using namespace weft;
  constexpr std::string_view kOption = "--target=";
  bool has_inputs = false;
  for (int i = 1; i < *count; ++i) {
    const std::string_view argument = (*arguments)[i];
    if (argument.starts_with(kOption)) {
      const auto* found = std::ranges::find_if(
          kTargets, [&](const FuzzTarget& t) { return argument.substr(kOption.size()) == t.name; });
      if (found == std::end(kTargets)) finding("no such target", std::string(argument));
      chosen = found;
    } else if (!argument.starts_with("-")) {
      has_inputs = true;
    }
  }
  if (has_inputs) return 0;
  static const std::string folder =
      (std::filesystem::temp_directory_path() / (std::string("weft_fuzz_") + chosen->name)).string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  int number = 0;
  chosen->seeds([&](std::string_view seed) {
    std::ofstream(folder + "/" + std::to_string(number++), std::ios::binary) << seed;
  });
  static std::vector<char*> all(*arguments, *arguments + *count);
  all.push_back(const_cast<char*>(folder.c_str()));
  *count = static_cast<int>(all.size());
  all.push_back(nullptr);
  *arguments = all.data();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  weft::expect_no_fault([&] { weft::chosen->read(bytes); });
  return 0;
}
