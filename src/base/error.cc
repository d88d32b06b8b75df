#include "weft/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weft {
namespace {
thread_local detail::WhileScope* innermost_while = nullptr;
}

Error::Error(ErrorKind kind, std::string message, std::source_location where)
    : kind_(kind), message_(std::move(message)), what_(message_), where_(where) {
  for (detail::WhileScope* scope = innermost_while; scope; scope = scope->outer_) {
    // Describing a scope must not itself run under that scope, or an error in it would recurse.
    detail::WhileScope* saved = innermost_while;
    innermost_while = nullptr;
    lines_.push_back(what_.size());
    what_ += "\n  while " + scope->text_(*scope);
    innermost_while = saved;
  }
  lines_.push_back(what_.size());
  if (kind_ == ErrorKind::kInternal)
    what_ += fmt::format("\n  this is a fault in weft ({}:{} in {}); please report it", where_.file_name(),
                         where_.line(), where_.function_name());
}

void Error::add_while(std::string_view text) {
  size_t open = 0;
  for (const detail::WhileScope* scope = innermost_while; scope; scope = scope->outer_) ++open;
  const size_t at = lines_.size() - 1 - std::min(open, lines_.size() - 1);
  const std::string line = fmt::format("\n  while {}", text);
  const size_t offset = lines_[at];
  what_.insert(offset, line);
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
