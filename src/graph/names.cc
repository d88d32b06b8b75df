#include <algorithm>
#include <array>
#include <cctype>

#include "weft/graph/graph.h"

namespace weft {
namespace {

// Keywords and builtins of Python that begin with a small letter, and what generated code calls by its name:
// a value of that name could not be told from the module in `operator.add(x)`, `self.weight`.
constexpr std::array kReserved = std::to_array<std::string_view>(
    {"abs",         "aiter",      "all",        "and",      "anext",     "any",        "as",
     "ascii",       "assert",     "async",      "await",    "bin",       "bool",       "break",
     "breakpoint",  "builtins",   "bytearray",  "bytes",    "callable",  "chr",        "class",
     "classmethod", "compile",    "complex",    "continue", "copyright", "credits",    "def",
     "del",         "delattr",    "device",     "dict",     "dir",       "divmod",     "elif",
     "else",        "enumerate",  "eval",       "except",   "exec",      "exit",       "filter",
     "finally",     "float",      "for",        "format",   "from",      "frozenset",  "fx_pytree",
     "getattr",     "global",     "globals",    "hasattr",  "hash",      "help",       "hex",
     "id",          "if",         "import",     "in",       "inf",       "input",      "int",
     "is",          "isinstance", "issubclass", "iter",     "lambda",    "len",        "license",
     "list",        "locals",     "map",        "math",     "max",       "memoryview", "min",
     "nan",         "next",       "nonlocal",   "not",      "object",    "oct",        "open",
     "operator",    "or",         "ord",        "pass",     "pow",       "print",      "property",
     "pytree",      "quit",       "raise",      "range",    "repr",      "return",     "reversed",
     "round",       "self",       "set",        "setattr",  "slice",     "sorted",     "staticmethod",
     "str",         "sum",        "super",      "torch",    "try",       "tuple",      "type",
     "vars",        "while",      "with",       "yield",    "zip"});
static_assert(std::is_sorted(kReserved.begin(), kReserved.end()));

bool is_reserved(std::string_view name) {
  constexpr std::string_view capitals[] = {"False", "None", "True", "NoneType", "Ellipsis", "NotImplemented"};
  return std::binary_search(kReserved.begin(), kReserved.end(), name) ||
         std::find(std::begin(capitals), std::end(capitals), name) != std::end(capitals);
}

std::string as_identifier(std::string_view wanted) {
  std::string name;
  bool after_illegal = false;  // a run of them becomes one _
  for (char c : wanted) {
    bool legal = std::isalnum(static_cast<unsigned char>(c)) || c == '_';
    if (legal || !after_illegal) name += legal ? c : '_';
    after_illegal = !legal;
  }
  if (name.empty()) name = "_unnamed";
  if (std::isdigit(static_cast<unsigned char>(name[0]))) name = "_" + name;
  return name;
}

struct Numbered {
  std::string base;
  std::optional<int64_t> number;
};
// "add_12" is "add" and 12; "add" and "add_x" have no number.
Numbered split_number(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  bool has_number = end < name.size() && end >= 2 && name[end - 1] == '_' && name.size() - end < 18;
  if (!has_number) return {name, std::nullopt};
  return {name.substr(0, end - 1), std::stoll(name.substr(end))};
}

}  // namespace

bool Names::is_taken(std::string_view name) const { return used_.contains(std::string(name)); }

std::string Names::make(std::string_view wanted) {
  std::string name = as_identifier(wanted);
  auto [base, given] = split_number(name);
  int64_t number = 0;
  if (given && !used_.contains(name)) {
    number = *given;
  } else {
    auto last = last_number_.find(name);
    number = last == last_number_.end() ? 0 : last->second;
    if (is_reserved(name)) name = fmt::format("{}_{}", base, ++number);
  }
  while (used_.contains(name)) name = fmt::format("{}_{}", base, ++number);
  used_.insert(name);
  last_number_[base] = number;
  return name;
}

}  // namespace weft
