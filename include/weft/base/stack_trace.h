#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace weft {

// A source location: what is not known is empty, and 0 for the line.
struct SourceFrame {
  std::string function;     // "forward(weft::Tensor)"
  std::string file;         // as the compiler was given it, like std::source_location's
  std::string folder;       // where the compiler ran that was given a relative file
  uint32_t line = 0;        // 0 without debug information
  bool is_library = false;  // weft's own code or that of the C++ run time, which messages do not blame

  SourceFrame() = default;
  SourceFrame(const std::source_location& where)  // NOLINT(google-explicit-constructor)
      : function(where.function_name()), file(where.file_name()), line(where.line()) {}
  bool is_known() const { return line != 0 || !function.empty(); }
  // "model.cc:41", or the function where the line is not known, or "an unknown place".
  std::string place() const;
  // "model.cc:41 in forward(weft::Tensor)"
  std::string to_string() const;
  // What stands in that line, without space around it; empty where the file is not there any more.
  std::string code() const;
};

// The calls that were open on a thread, innermost first. Taking one costs some nanoseconds and no memory
// beyond its own; names and lines are found when somebody asks. Code whose callers are to be seen is compiled
// with -fno-omit-frame-pointer (as weft is); the first caller outside weft is seen in any case.
class StackTrace {
 public:
  static constexpr size_t kMostFrames = 48;

  StackTrace() noexcept {}  // no frames
  StackTrace(const StackTrace& other) noexcept { *this = other; }
  StackTrace& operator=(const StackTrace& other) noexcept {
    count_ = other.count_;
    std::copy_n(other.addresses_.begin(), count_, addresses_.begin());
    return *this;
  }

  // The calls that led here; the first is that of the function that calls this one.
  static StackTrace capture() noexcept;

  bool empty() const { return count_ == 0; }
  // What the calls return to.
  std::span<const void* const> addresses() const { return {addresses_.data(), count_}; }

  // Names and lines, calls that were inlined included. Takes milliseconds for addresses that were never asked
  // for before.
  std::vector<SourceFrame> frames() const;
  // The innermost frame that is not the library's: whom a message should name. Unknown when there is none.
  SourceFrame user_frame() const;
  // A line a frame, "  at model.cc:41 in forward(weft::Tensor)", without the library's frames.
  std::string to_string() const;

 private:
  size_t count_ = 0;
  std::array<const void*, kMostFrames> addresses_;  // only the first count_ have a value
};

}  // namespace weft
