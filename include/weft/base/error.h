#pragma once

#include <fmt/core.h>

#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class ErrorKind : unsigned char {
  kUser,         // the caller asked for something that cannot be; the message says what to change
  kUnsupported,  // a sound request that weft does not implement
  kInternal,     // a broken invariant of weft itself
};

namespace detail {
struct ErrorPlace;  // where an error was made
}

// What every failure in weft throws. `what()` is the message, followed by one "while ..." line for each
// `While` scope that was open when the error was made, innermost first, by the module that was running, and
// by the line of the user's code:
//
//   mat1 and mat2 shapes cannot be multiplied (2x3 and 4x4)
//     while calling aten::mm(self=f32[2, 3], mat2=f32[4, 4])
//     in layers.0.fc (nn::Linear) of Net
//     at model.cc:41 in Net::forward(weft::Tensor)
//
// The line is looked up when somebody asks for `what()`: an error that is caught and handled costs little.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, std::source_location where = std::source_location::current());

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& message() const noexcept { return message_; }
  // The line of weft that found the fault.
  const std::source_location& where() const noexcept { return where_; }
  const char* what() const noexcept override;
  // The message with its "while ..." lines only.
  const std::string& text() const noexcept { return text_; }
  // The innermost line that is not weft's: "model.cc:41 in Net::forward(weft::Tensor)", the function alone
  // where there is no debug information, nothing where there is no such function.
  std::string user_line() const;
  // Adds a "while ..." line on the way out: inside of the scopes that are open where this is called.
  void add_while(std::string_view text);

  // The calls of modules that it came out of, as they are known on the way out.
  struct ModuleTrail {
    const void* outermost = nullptr;  // whatever stands for the module that was noted last
    std::string path, class_name;     // of the innermost: from the outermost, "layers.0.fc"; "nn::Linear"
    std::string root_class;           // the outermost's class
  };
  const ModuleTrail& modules() const noexcept { return modules_; }
  void set_modules(ModuleTrail trail);

 private:
  // Made by the first `what()`. A copy of an error makes its own.
  struct Whole {
    Whole() = default;
    Whole(const Whole&) noexcept {}
    Whole& operator=(const Whole&) noexcept {
      text.clear();
      return *this;
    }
    std::string text;
  };

  ErrorKind kind_;
  std::string message_;
  std::string text_;
  std::vector<size_t> lines_;  // where the lines of `text_` begin that scopes added, and where the last ends
  std::source_location where_;
  ModuleTrail modules_;
  std::shared_ptr<detail::ErrorPlace> place_;
  mutable Whole whole_;
};

struct UserError : Error {
  explicit UserError(std::string message, std::source_location where = std::source_location::current())
      : Error(ErrorKind::kUser, std::move(message), where) {}
};
struct UnsupportedError : Error {
  explicit UnsupportedError(std::string message, std::source_location where = std::source_location::current())
      : Error(ErrorKind::kUnsupported, std::move(message), where) {}
};
struct InternalError : Error {
  explicit InternalError(std::string message, std::source_location where = std::source_location::current())
      : Error(ErrorKind::kInternal, std::move(message), where) {}
};
// A file that is not what it claims to be; the message names the entry.
struct FormatError : UserError {
  using UserError::UserError;
};
// An assertion of the user's program does not hold: assert_that, aten::_assert_scalar, a check of a graph.
struct AssertionError : UserError {
  using UserError::UserError;
};
// An allocation that the machine cannot satisfy.
struct OutOfMemoryError : UserError {
  using UserError::UserError;
};

namespace detail {
// What every While is, whatever describes it.
class WhileScope {
 public:
  ~WhileScope();
  WhileScope(const WhileScope&) = delete;
  WhileScope& operator=(const WhileScope&) = delete;

 protected:
  using Text = std::string (*)(const WhileScope&);
  explicit WhileScope(Text text) noexcept;

 private:
  friend Error;
  Text text_;
  WhileScope* outer_;
};

// Makes `scopes` the open ones of this thread and returns those that were, so that a thread that works for
// another one, which waits, can report the other one's scopes.
WhileScope* exchange_scopes(WhileScope* scopes) noexcept;
WhileScope* open_scopes() noexcept;
}  // namespace detail

// Adds "while <text>" to every error made in its scope. The text is only built when an error is:
//   While scope([&] { return fmt::format("loading {}", path); });
template <typename Describe>
class While : public detail::WhileScope {
 public:
  explicit While(Describe describe)
      : WhileScope([](const WhileScope& self) -> std::string {
          return static_cast<const While&>(self).describe_();
        }),
        describe_(std::move(describe)) {}

 private:
  const Describe describe_;
};

namespace detail {

// A format string that remembers where it was written, so that errors carry the caller's location.
struct Located {
  template <typename Text>
  // NOLINTNEXTLINE(google-explicit-constructor): a literal converts silently by design.
  Located(const Text& text, std::source_location where = std::source_location::current())
      : text(text), where(where) {}
  // A literal, whose length is known without a look at it.
  template <size_t n>
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Located(const char (&text)[n], std::source_location where = std::source_location::current())
      : text(text, n - 1), where(where) {}
  std::string_view text;
  std::source_location where;
};
[[noreturn, gnu::cold]] void throw_error(ErrorKind kind, const Located& text, fmt::format_args args);
}  // namespace detail

// Throws a UserError unless `ok`. Message form: what is wrong with the values; what was expected; what to do.
//   require(dim < rank, "select: dim {} is out of range for a tensor of {} dims", dim, rank);
template <typename... Args>
inline void require(bool ok, const detail::Located& text, const Args&... args) {
  if (!ok) [[unlikely]]
    detail::throw_error(ErrorKind::kUser, text, fmt::make_format_args(args...));
}
template <typename... Args>
[[noreturn, gnu::cold]] inline void fail(const detail::Located& text, const Args&... args) {
  detail::throw_error(ErrorKind::kUser, text, fmt::make_format_args(args...));
}
template <typename... Args>
[[noreturn, gnu::cold]] inline void unsupported(const detail::Located& text, const Args&... args) {
  detail::throw_error(ErrorKind::kUnsupported, text, fmt::make_format_args(args...));
}
// Throws an InternalError unless `ok`: a condition that only a bug in weft can break.
template <typename... Args>
inline void invariant(bool ok, const detail::Located& text, const Args&... args) {
  if (!ok) [[unlikely]]
    detail::throw_error(ErrorKind::kInternal, text, fmt::make_format_args(args...));
}

}  // namespace weft
