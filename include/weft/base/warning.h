#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/stack_trace.h"

namespace weft {

enum class WarningKind : unsigned char {
  kUser,        // something works, but probably not as was meant
  kTracer,      // a traced program may not do for other inputs what it did for these
  kDeprecated,  // something will go away
};

// "UserWarning", "TracerWarning", "DeprecationWarning"
std::string_view to_string(WarningKind kind);

struct Warning {
  WarningKind kind;
  std::string message;
  SourceFrame where;  // the user's line; may be unknown

  // "model.cc:41: TracerWarning: message"
  std::string to_string() const;
};

// Gets what no WarningCapture of the warning thread takes, on that thread, and possibly on several at once.
// What it throws comes out of `warn`: a handler that throws makes errors of warnings.
using WarningHandler = std::function<void(const Warning&)>;

// Replaces the handler of this process and returns the one before. An empty handler stands for the one of the
// beginning, which prints each text once to stderr.
WarningHandler set_warning_handler(WarningHandler handler);

// Collects the warnings of this thread as long as it lives. Only the innermost capture sees a warning.
//   WarningCapture capture;
//   trace(f, x);
//   EXPECT_TRUE(capture.warnings().empty());
class WarningCapture {
 public:
  WarningCapture() noexcept;
  ~WarningCapture();
  WarningCapture(const WarningCapture&) = delete;
  WarningCapture& operator=(const WarningCapture&) = delete;

  const std::vector<Warning>& warnings() const { return warnings_; }
  // Hands over what came so far, and goes on from nothing.
  std::vector<Warning> take() { return std::exchange(warnings_, {}); }

 private:
  friend struct WarningState;
  std::vector<Warning> warnings_;
  WarningCapture* outer_;
};

// No tracer warnings from this thread as long as one lives: for weft's own code where it turns tensors into
// C++ values on purpose, so that only conversions in users' code are shown.
class LibraryWarningsOff {
 public:
  LibraryWarningsOff() noexcept;
  ~LibraryWarningsOff();
  LibraryWarningsOff(const LibraryWarningsOff&) = delete;
  LibraryWarningsOff& operator=(const LibraryWarningsOff&) = delete;
};

namespace detail {
bool is_warning_off(WarningKind kind) noexcept;
[[gnu::cold]] void emit_warning(WarningKind kind, const SourceFrame* where, fmt::string_view text,
                                fmt::format_args args);
}  // namespace detail

// Warns about the line of user code that this is called from, however far up.
//   warn(WarningKind::kUser, "lr is {}, which is not positive", lr);
template <typename... Args>
void warn(WarningKind kind, fmt::format_string<const Args&...> text, const Args&... args) {
  if (!detail::is_warning_off(kind))
    detail::emit_warning(kind, nullptr, text, fmt::make_format_args(args...));
}

// Warns about another source location.
template <typename... Args>
void warn_at(const SourceFrame& where, WarningKind kind, fmt::format_string<const Args&...> text,
             const Args&... args) {
  if (!detail::is_warning_off(kind)) detail::emit_warning(kind, &where, text, fmt::make_format_args(args...));
}

}  // namespace weft
