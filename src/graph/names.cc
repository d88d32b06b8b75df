#include <algorithm>
#include <array>

#include "graph/numbered_name.h"
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

bool is_legal(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_decimal_digit(c) || c == '_';
}

std::string as_identifier(std::string_view wanted) {
  std::string name;
  bool after_illegal = false;  // a run of them becomes one _
  for (char c : wanted) {
    const bool legal = is_legal(c);
    if (legal || !after_illegal) name += legal ? c : '_';
    after_illegal = !legal;
  }
  if (name.empty()) name = "_unnamed";
  if (is_decimal_digit(name[0])) name = "_" + name;
  return name;
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

Names::Family& Names::family(std::string_view base) {
  auto found = families_.find(base);
  return found == families_.end() ? families_[std::string(base)] : found->second;
}

bool Names::is_taken(std::string_view name) const {
  const NumberedName parts(name);
  const auto family = families_.find(parts.is_plain ? parts.base : name);
  return family != families_.end() && family->second.has(parts.is_plain ? parts.number : std::nullopt);
}

std::string Names::make(std::string_view wanted) {
  std::string name = as_identifier(wanted);
  const NumberedName parts(name);
  Family& like = family(parts.base);
  if (parts.number && !is_taken(name)) {
    like.last = *parts.number;
    if (parts.is_plain) like.take(parts.number);
    else family(name).take(std::nullopt);
    return name;
  }
  int64_t last = like.last;
  std::optional<int64_t> number;
  if (parts.number || is_reserved(name) || like.has_bare) number = ++last;
  while (like.has(number)) number = ++last;
  like.last = last;
  like.take(number);
  return number ? fmt::format("{}_{}", parts.base, *number) : name;
}

}  // namespace weft
