// No code of an instruction set may replace another's at link time: the files of an instruction set define no
// weak symbol that does not carry a type of theirs in its name.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "ops/cpu/isa.h"

namespace weft {
namespace {

// Object files of an instruction set, wherever this build put them.
std::vector<std::string> objects_of(const std::string& isa) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(WEFT_BINARY_DIR)) {
    std::string path = entry.path().string();
    if (path.find("/weft-" + isa + ".dir/") != std::string::npos && path.ends_with(".o"))
      found.push_back(path);
  }
  return found;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (pipe && fgets(buffer, sizeof(buffer), pipe)) text += buffer;
  if (pipe) pclose(pipe);
  return text;
}

void expect_own_symbols(const std::string& isa) {
  const std::string mangled = std::to_string(isa.size()) + isa;  // the namespace
  std::vector<std::string> objects = objects_of(isa);
  ASSERT_FALSE(objects.empty()) << "the kernels for " << isa << " are not where this test looks for them";
  for (const std::string& object : objects) {
    std::string symbols = output_of("nm --defined-only '" + object + "'");
    EXPECT_FALSE(symbols.empty()) << object;
    for (size_t at = 0; at < symbols.size();) {
      size_t end = symbols.find('\n', at);
      std::string line = symbols.substr(at, end - at);
      at = end + 1;
      if (line.size() < 20) continue;
      bool is_weak = line[17] == 'W' || line[17] == 'V' || line[17] == 'u';
      // The compiler's own reference to its exception routine is data, the same for all.
      bool is_fine = line.find(mangled) != std::string::npos || line.find("DW.ref.") != std::string::npos;
      EXPECT_TRUE(!is_weak || is_fine) << object << ": " << line;
    }
  }
}

TEST(Symbols, WeakOnesOfAnInstructionSetNameIt) {
  // What comes with the compiler is there; code for the baseline runs wherever it ends up.
  ASSERT_FALSE(output_of("nm --version").empty());
  for (int isa = 1; isa <= static_cast<int>(cpu::best_isa()); ++isa)
    expect_own_symbols(cpu::isa_name(static_cast<cpu::IsaLevel>(isa)));
}

}  // namespace
}  // namespace weft
