#include "weft/base/warning.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace weft {

// What a thread does with its warnings.
struct WarningState {
  WarningCapture* innermost = nullptr;
  int library_off = 0;

  // False when nobody captures.
  bool collect(Warning& warning) {
    if (!innermost) return false;
    innermost->warnings_.push_back(std::move(warning));
    return true;
  }
};

namespace {

constinit thread_local WarningState state;

// A loop that warns in every iteration says so once.
void print_once(const Warning& warning) {
  static std::mutex& mutex = *new std::mutex;
  static auto& printed = *new std::unordered_set<std::string>;
  std::string text = warning.to_string() + "\n";
  std::lock_guard lock(mutex);
  if (auto [entry, is_new] = printed.insert(std::move(text)); is_new) std::fputs(entry->c_str(), stderr);
}

// The handler is kept alive by those who run it: another thread may replace it meanwhile.
struct Handlers {
  std::mutex mutex;
  std::shared_ptr<const WarningHandler> current;  // null: print_once

  std::shared_ptr<const WarningHandler> exchange(std::shared_ptr<const WarningHandler> handler) {
    std::lock_guard lock(mutex);
    return std::exchange(current, std::move(handler));
  }
  std::shared_ptr<const WarningHandler> get() {
    std::lock_guard lock(mutex);
    return current;
  }
};

Handlers& handlers() {
  static Handlers& all = *new Handlers;
  return all;
}

}  // namespace

std::string_view to_string(WarningKind kind) {
  switch (kind) {
    case WarningKind::kUser:
      return "UserWarning";
    case WarningKind::kTracer:
      return "TracerWarning";
    case WarningKind::kDeprecated:
      break;
  }
  return "DeprecationWarning";
}

std::string Warning::to_string() const {
  const std::string location = where.is_known() ? where.place() + ": " : "";
  return fmt::format("{}{}: {}", location, weft::to_string(kind), message);
}

WarningHandler set_warning_handler(WarningHandler handler) {
  std::shared_ptr<const WarningHandler> made;
  if (handler) made = std::make_shared<const WarningHandler>(std::move(handler));
  const auto previous = handlers().exchange(std::move(made));
  return previous ? *previous : WarningHandler();
}

WarningCapture::WarningCapture() noexcept : outer_(std::exchange(state.innermost, this)) {}
WarningCapture::~WarningCapture() { state.innermost = outer_; }

LibraryWarningsOff::LibraryWarningsOff() noexcept { ++state.library_off; }
LibraryWarningsOff::~LibraryWarningsOff() { --state.library_off; }

bool detail::is_warning_off(WarningKind kind) noexcept {
  return kind == WarningKind::kTracer && state.library_off != 0;
}

void detail::emit_warning(WarningKind kind, const SourceFrame* where, fmt::string_view text,
                          fmt::format_args args) {
  Warning warning{kind, fmt::vformat(text, args), where ? *where : StackTrace::capture().user_frame()};
  if (state.collect(warning)) return;
  const auto handler = handlers().get();
  handler ? (*handler)(warning) : print_once(warning);
}

}  // namespace weft
