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

// Those that begin otherwise. Only names that are asked for can be one of them: what comes from a target has
// small letters and no __ around it.
constexpr std::array kReservedCapitals = std::to_array<std::string_view>({"ArithmeticError",
                                                                          "AssertionError",
                                                                          "AttributeError",
                                                                          "BaseException",
                                                                          "BaseExceptionGroup",
                                                                          "BlockingIOError",
                                                                          "BrokenPipeError",
                                                                          "BufferError",
                                                                          "BytesWarning",
                                                                          "ChildProcessError",
                                                                          "ConnectionAbortedError",
                                                                          "ConnectionError",
                                                                          "ConnectionRefusedError",
                                                                          "ConnectionResetError",
                                                                          "DeprecationWarning",
                                                                          "EOFError",
                                                                          "Ellipsis",
                                                                          "EncodingWarning",
                                                                          "EnvironmentError",
                                                                          "Exception",
                                                                          "ExceptionGroup",
                                                                          "False",
                                                                          "FileExistsError",
                                                                          "FileNotFoundError",
                                                                          "FloatingPointError",
                                                                          "FutureWarning",
                                                                          "GeneratorExit",
                                                                          "IOError",
                                                                          "ImportError",
                                                                          "ImportWarning",
                                                                          "IndentationError",
                                                                          "IndexError",
                                                                          "InterruptedError",
                                                                          "IsADirectoryError",
                                                                          "KeyError",
                                                                          "KeyboardInterrupt",
                                                                          "LookupError",
                                                                          "MemoryError",
                                                                          "ModuleNotFoundError",
                                                                          "NameError",
                                                                          "None",
                                                                          "NoneType",
                                                                          "NotADirectoryError",
                                                                          "NotImplemented",
                                                                          "NotImplementedError",
                                                                          "OSError",
                                                                          "OverflowError",
                                                                          "PendingDeprecationWarning",
                                                                          "PermissionError",
                                                                          "ProcessLookupError",
                                                                          "RecursionError",
                                                                          "ReferenceError",
                                                                          "ResourceWarning",
                                                                          "RuntimeError",
                                                                          "RuntimeWarning",
                                                                          "StopAsyncIteration",
                                                                          "StopIteration",
                                                                          "SyntaxError",
                                                                          "SyntaxWarning",
                                                                          "SystemError",
                                                                          "SystemExit",
                                                                          "TabError",
                                                                          "TimeoutError",
                                                                          "True",
                                                                          "TypeError",
                                                                          "UnboundLocalError",
                                                                          "UnicodeDecodeError",
                                                                          "UnicodeEncodeError",
                                                                          "UnicodeError",
                                                                          "UnicodeTranslateError",
                                                                          "UnicodeWarning",
                                                                          "UserWarning",
                                                                          "ValueError",
                                                                          "Warning",
                                                                          "ZeroDivisionError",
                                                                          "__build_class__",
                                                                          "__debug__",
                                                                          "__doc__",
                                                                          "__import__",
                                                                          "__loader__",
                                                                          "__name__",
                                                                          "__package__",
                                                                          "__spec__"});
static_assert(std::is_sorted(kReservedCapitals.begin(), kReservedCapitals.end()));

bool is_reserved(std::string_view name) {
  return std::binary_search(kReserved.begin(), kReserved.end(), name) ||
         std::binary_search(kReservedCapitals.begin(), kReservedCapitals.end(), name);
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
  bool is_plain = true;  // false for a number with zeros before it, as in "add_012"
};
// "add_12" is "add" and 12; "add" and "add_x" have no number.
Numbered split_number(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  const size_t digits = name.size() - end;
  if (digits == 0 || digits >= 18 || end < 2 || name[end - 1] != '_') return {name, std::nullopt};
  return {name.substr(0, end - 1), std::stoll(name.substr(end)), digits == 1 || name[end] != '0'};
}

}  // namespace

bool Names::Family::has(std::optional<int64_t> number) const {
  if (!number) return has_bare;
  return (*number >= 1 && *number < dense) || scattered.contains(*number);
}

void Names::Family::take(std::optional<int64_t> number) {
  if (!number) {
    has_bare = true;
  } else if (*number == dense) {
    ++dense;
    while (scattered.erase(dense)) ++dense;
  } else {
    scattered.insert(*number);
  }
}

bool Names::is_taken(std::string_view name) const {
  const Numbered parts = split_number(std::string(name));
  const auto family = families_.find(parts.is_plain ? parts.base : std::string(name));
  return family != families_.end() && family->second.has(parts.is_plain ? parts.number : std::nullopt);
}

std::string Names::make(std::string_view wanted) {
  const std::string name = as_identifier(wanted);
  const Numbered parts = split_number(name);
  Family& family = families_[parts.base];
  if (parts.number && !is_taken(name)) {
    family.last = *parts.number;
    if (parts.is_plain) family.take(parts.number);
    else families_[name].take(std::nullopt);
    return name;
  }
  int64_t last = family.last;
  std::optional<int64_t> number;
  if (parts.number || is_reserved(name) || family.has_bare) number = ++last;
  while (family.has(number)) number = ++last;
  family.last = last;
  family.take(number);
  return number ? fmt::format("{}_{}", parts.base, *number) : parts.base;
}

}  // namespace weft
