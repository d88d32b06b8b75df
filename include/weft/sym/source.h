#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace weft::sym {

// Where the value of a symbol is read: at an argument of the program, or within it.
//   Source x = Source::argument("x", {"['k']", "[0]"});
//   x.size(0).to_string();   // "x['k'][0].size(0)", for messages
//   x.size(0).guard_text();  // "L['x']['k'][0].size()[0]", as PyTorch writes guards
struct Source {
  enum class Kind : uint8_t {
    kComputed,  // within the program; `root` describes where: "y.item()"
    kValue,     // the number itself
    kSize,      // of the tensor's dimension `dim`
    kStride,
    kOffset,  // of the tensor into its storage
  };

  Kind kind = Kind::kComputed;
  std::string root = {};                // the argument's name
  std::vector<std::string> steps = {};  // from the argument to the leaf, as Python writes them
  int64_t dim = 0;

  Source() = default;
  // From the text that `to_string` gives: "x['k'][0].size(0)", "x.stride(1)", "n". Text that names no
  // argument describes a value within the program.
  template <std::convertible_to<std::string_view> Text>
  Source(const Text& text)  // NOLINT(google-explicit-constructor)
      : Source(parse(text)) {}
  static Source argument(std::string root, std::vector<std::string> steps = {});
  static Source computed(std::string description);

  // Of the same argument: one step further, a size, a stride, the offset.
  Source step(std::string text) const;
  Source size(int64_t dimension) const { return property(Kind::kSize, dimension); }
  Source stride(int64_t dimension) const { return property(Kind::kStride, dimension); }
  Source offset() const { return property(Kind::kOffset, 0); }

  bool is_argument() const { return kind != Kind::kComputed; }
  bool is_empty() const { return root.empty(); }
  std::string to_string() const;
  std::string guard_text() const;
  bool operator==(const Source&) const = default;

 private:
  static Source parse(std::string_view text);
  Source property(Kind which, int64_t dimension) const;
};

std::ostream& operator<<(std::ostream& out, const Source& source);

}  // namespace weft::sym
