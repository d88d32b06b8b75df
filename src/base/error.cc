#include "weft/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/call_records.h"

namespace weft {
namespace {
thread_local detail::WhileScope* innermost_while = nullptr;
}

// Shared by the copies of an error, so that one look-up serves all of them.
struct detail::ErrorPlace {
  // More than a StackTrace has: under transforms and captures the user's frame may be far below.
  static constexpr size_t kMostCalls = 512;

  [[gnu::noinline]] ErrorPlace() {
    const void* found[kMostCalls];
    const size_t count = follow_calls(__builtin_frame_address(0), found);
    addresses.assign(found, found + count);
  }
  SourceFrame user_frame() const { return user_frame_of(addresses); }

  std::vector<const void*> addresses;
  std::mutex mutex;
};

Error::Error(ErrorKind kind, std::string message, std::source_location where)
    : kind_(kind),
      message_(std::move(message)),
      text_(message_),
      where_(where),
      place_(std::make_shared<detail::ErrorPlace>()) {
  for (detail::WhileScope* scope = innermost_while; scope; scope = scope->outer_) {
    // Describing a scope must not itself run under that scope, or an error in it would recurse.
    detail::WhileScope* saved = innermost_while;
    innermost_while = nullptr;
    lines_.push_back(text_.size());
    text_ += "\n  while " + scope->text_(*scope);
    innermost_while = saved;
  }
  lines_.push_back(text_.size());
  if (kind_ == ErrorKind::kInternal)
    text_ += fmt::format("\n  this is a fault in weft ({}:{} in {}); please report it", where_.file_name(),
                         where_.line(), where_.function_name());
}

std::string Error::user_line() const {
  const SourceFrame frame = place_->user_frame();
  return frame.is_known() ? frame.to_string() : "";
}

namespace {

// "in layers.0.fc (nn::Linear) of Net"
std::string module_line(const Error::ModuleTrail& modules) {
  if (!modules.outermost) return "";
  if (modules.path.empty()) return fmt::format("\n  in {}", modules.root_class);
  return fmt::format("\n  in {} ({}) of {}", modules.path, modules.class_name, modules.root_class);
}

// A place without a line is a function.
std::string place_line(const SourceFrame& frame) {
  if (!frame.is_known()) return "";
  return fmt::format("\n  {} {}", frame.line != 0 ? "at" : "in", frame.to_string());
}

}  // namespace

const char* Error::what() const noexcept {
  try {
    std::lock_guard lock(place_->mutex);
    if (whole_.text.empty()) whole_.text = text_ + module_line(modules_) + place_line(place_->user_frame());
    return whole_.text.c_str();
  } catch (...) {
    // Without memory for more, the words are what counts.
    return text_.c_str();
  }
}

void Error::set_modules(ModuleTrail trail) {
  modules_ = std::move(trail);
  whole_ = {};
}

void Error::add_while(std::string_view text) {
  size_t open = 0;
  for (const detail::WhileScope* scope = innermost_while; scope; scope = scope->outer_) ++open;
  const size_t at = lines_.size() - 1 - std::min(open, lines_.size() - 1);
  const std::string line = fmt::format("\n  while {}", text);
  const size_t offset = lines_[at];
  text_.insert(offset, line);
  whole_ = {};
  for (size_t i = at; i < lines_.size(); ++i) lines_[i] += line.size();
  lines_.insert(lines_.begin() + static_cast<ptrdiff_t>(at), offset);
}

detail::WhileScope::WhileScope(Text text) noexcept
    : text_(text), outer_(std::exchange(innermost_while, this)) {}
detail::WhileScope::~WhileScope() { innermost_while = outer_; }

detail::WhileScope* detail::open_scopes() noexcept { return innermost_while; }
detail::WhileScope* detail::exchange_scopes(WhileScope* scopes) noexcept {
  return std::exchange(innermost_while, scopes);
}

void detail::throw_error(ErrorKind kind, const Located& text, fmt::format_args args) {
  std::string message = fmt::vformat(text.text, args);
  switch (kind) {
    case ErrorKind::kUser:
      throw UserError(std::move(message), text.where);
    case ErrorKind::kUnsupported:
      throw UnsupportedError(std::move(message), text.where);
    case ErrorKind::kInternal:
      break;
  }
  throw InternalError(std::move(message), text.where);
}

}  // namespace weft
