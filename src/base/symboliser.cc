#include "base/symboliser.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "base/debug_info.h"

namespace weft::detail {
namespace {

// "foo(int)" of "_Z3fooi.part.0"; a name that is not mangled stays as it is. Some lambdas within templates
// are beyond the run-time library.
std::string demangled(const std::string& symbol) {
  const std::string name = symbol.substr(0, symbol.find('.'));
  int status = 0;
  auto release = [](char* text) { std::free(text); };
  std::unique_ptr<char, decltype(release)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  if (status == 0 && text) return text.get();
  const bool is_lambda =
      name.starts_with("_Z") && (name.find("EUl") != name.npos || name.find("KUl") != name.npos);
  return is_lambda ? "(a lambda)" : name;
}

// Whether the mangled name of a function says that it is in this namespace, or a lambda of a function there.
bool is_in(std::string_view symbol, std::string_view mangled_namespace) {
  if (!symbol.starts_with("_Z")) return false;
  symbol.remove_prefix(2);
  // A call through a second base class passes a thunk (Th), one through a virtual base a Tv: offsets, each
  // with a _ behind it, come before the name.
  int offsets = symbol.starts_with("Th") ? 1 : symbol.starts_with("Tv") ? 2 : 0;
  for (; offsets > 0; --offsets) symbol.remove_prefix(std::min(symbol.find('_'), symbol.size() - 1) + 1);
  // Z: of a function's own, N: nested, K, V, R, O: of a member function's const, volatile and reference.
  symbol.remove_prefix(std::min(symbol.find_first_not_of("ZNKVRO"), symbol.size()));
  return symbol.starts_with(mangled_namespace);
}
bool is_in_weft(std::string_view symbol) { return is_in(symbol, "4weft"); }
bool is_in_run_time(std::string_view symbol) { return is_in(symbol, "St") || is_in(symbol, "9__gnu_cxx"); }

// Whether "include/weft" is a run of folders of this path.
bool is_below(std::string_view path, std::string_view folders) {
  for (size_t at = path.find(folders); at != path.npos; at = path.find(folders, at + 1)) {
    const size_t end = at + folders.size();
    if ((at == 0 || path[at - 1] == '/') && end < path.size() && path[end] == '/') return true;
  }
  return false;
}

// Inline code that others compile into their own.
bool is_library_header(std::string_view file) {
  return is_below(file, "include/weft") || is_below(file, "generated/weft") || is_below(file, "include/c++");
}

// Tests and tools are in weft's namespace too, but not in its source folders.
bool is_library_source(std::string_view symbol, std::string_view file) {
  return is_in_weft(symbol) && (file.empty() || is_below(file, "src") || is_below(file, "generated"));
}

bool is_run_time_module(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (std::string_view library : {"libc.so", "libstdc++.so", "libgcc_s.so", "libpthread.so", "ld-linux"})
    if (name.starts_with(library)) return true;
  return false;
}

std::vector<SourceFrame> make_frames(const Code& code) {
  if (code.locations.empty()) return {};
  // What is inlined into the library's own sources is the library's, whatever the name that is left of it.
  const CodeLocation& function = code.locations.back();
  const bool is_library = is_library_source(function.symbol, function.file) ||
                          (function.file.empty() && is_in_run_time(function.symbol)) ||
                          is_run_time_module(code.module);
  std::vector<SourceFrame> frames;
  for (const CodeLocation& location : code.locations) {
    SourceFrame& frame = frames.emplace_back();
    frame.function = demangled(location.symbol);
    frame.file = location.file;
    frame.folder = location.folder;
    frame.line = location.line;
    frame.is_library = is_library || is_library_header(location.file);
  }
  return frames;
}

}  // namespace

std::vector<SourceFrame> symbolise(const void* return_address) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::unordered_map<const void*, std::vector<SourceFrame>>;
  std::lock_guard lock(mutex);
  auto [entry, is_new] = known.try_emplace(return_address);
  // The call is before the address that it returns to, which may be of another line or even function.
  if (is_new) entry->second = make_frames(find_code(static_cast<const char*>(return_address) - 1));
  return entry->second;
}

}  // namespace weft::detail
