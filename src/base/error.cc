#include "weft/base/error.h"

#include <fmt/format.h>

#include <utility>

namespace weft {
namespace {
thread_local While* innermost = nullptr;
}

Error::Error(ErrorKind kind, std::string message, std::source_location where)
    : kind_(kind), message_(std::move(message)), what_(message_), where_(where) {
  for (While* scope = innermost; scope; scope = scope->outer_) {
    // Describing a scope must not itself run under that scope, or an error in it would recurse.
    While* saved = innermost;
    innermost = nullptr;
    what_ += "\n  while " + scope->call_(scope->describe_);
    innermost = saved;
  }
  if (kind_ == ErrorKind::kInternal)
    what_ += fmt::format("\n  this is a fault in weft ({}:{} in {}); please report it", where_.file_name(),
                         where_.line(), where_.function_name());
}

void While::push() {
  outer_ = innermost;
  innermost = this;
}

While::~While() { innermost = outer_; }

While* detail::open_scopes() noexcept { return innermost; }
While* detail::exchange_scopes(While* scopes) noexcept { return std::exchange(innermost, scopes); }

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
