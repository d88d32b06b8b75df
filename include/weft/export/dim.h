#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "weft/sym/value_range.h"

namespace weft {

// What becomes of a size that no Dim is declared for.
enum class DimHint : uint8_t {
  kAuto,     // dynamic as far as the program allows: a relation or a constant that it needs is taken over
  kDynamic,  // dynamic: a constant that the program needs is an error
  kStatic,   // the example's
};

// A size that varies from call to call, by name: sizes with one Dim are equal.
//
//   auto batch = Dim("batch", {.min = 2, .max = 4096});
//   auto padded = 2 * batch + 1;  // a size that follows from it
class Dim {
 public:
  static constexpr int64_t kNoLimit = sym::ValueRange::kInf;
  struct Range {
    int64_t min = 0, max = kNoLimit;
  };
  static constexpr DimHint AUTO = DimHint::kAuto, DYNAMIC = DimHint::kDynamic, STATIC = DimHint::kStatic;

  explicit Dim(std::string name) : Dim(std::move(name), Range()) {}
  Dim(std::string name, Range range);

  // "2*batch + 1"
  std::string name() const;
  // The sizes that the declared range allows.
  sym::ValueRange range() const;
  // scale * root + offset.
  bool is_derived() const { return scale_ != 1 || offset_ != 0; }
  Dim root() const { return Dim(root_, 1, 0); }
  const std::string& root_name() const { return root_->name; }
  int64_t scale() const { return scale_; }
  int64_t offset() const { return offset_; }
  // The root's value that gives this size; nothing where none does.
  std::optional<int64_t> root_value(int64_t size) const;
  // "Dim('batch', min=2, max=4096)"; of a derived one its name.
  std::string to_string() const;
  // The same name, range and derivation.
  bool operator==(const Dim& other) const;

  // The scale must stay positive.
  friend Dim operator*(const Dim& dim, int64_t factor) { return dim.scaled(factor); }
  friend Dim operator*(int64_t factor, const Dim& dim) { return dim.scaled(factor); }
  friend Dim operator+(const Dim& dim, int64_t offset) { return dim.shifted(offset); }
  friend Dim operator+(int64_t offset, const Dim& dim) { return dim.shifted(offset); }
  friend Dim operator-(const Dim& dim, int64_t offset) { return dim.shifted(-offset); }

 private:
  struct Root {
    std::string name;
    Range range;
  };
  Dim(std::shared_ptr<const Root> root, int64_t scale, int64_t offset)
      : root_(std::move(root)), scale_(scale), offset_(offset) {}
  Dim scaled(int64_t factor) const;
  Dim shifted(int64_t offset) const;

  std::shared_ptr<const Root> root_;
  int64_t scale_ = 1, offset_ = 0;
};

// A Dim of each name: auto [height, width] = dims("height", "width").
template <typename... Names>
auto dims(Names... names) {
  return std::array<Dim, sizeof...(Names)>{Dim(names)...};
}

// "3*root - 1", "root": how linear expressions are written.
std::string linear_text(int64_t scale, const std::string& root, int64_t offset);
// "Dim('root', min=3, max=6)". A minimum below `least_shown` says nothing: any program takes sizes 0 and 1.
std::string dim_text(const std::string& name, const sym::ValueRange& range, int64_t least_shown);

// What one size is declared to be: nothing (the example's, as for kStatic), a number that the example must
// have, a Dim, a hint.
class DimSpec {
 public:
  DimSpec() = default;
  DimSpec(std::nullopt_t) {}                           // NOLINT(google-explicit-constructor)
  DimSpec(int64_t size) : what_(size) {}               // NOLINT(google-explicit-constructor)
  DimSpec(int size) : DimSpec(int64_t{size}) {}        // NOLINT(google-explicit-constructor)
  DimSpec(Dim dim) : what_(std::move(dim)) {}          // NOLINT(google-explicit-constructor)
  DimSpec(DimHint hint) {                              // NOLINT(google-explicit-constructor)
    if (hint != DimHint::kStatic) what_ = hint;
  }

  const Dim* dim() const { return std::get_if<Dim>(&what_); }
  const int64_t* size() const { return std::get_if<int64_t>(&what_); }
  const DimHint* hint() const { return std::get_if<DimHint>(&what_); }
  bool is_dynamic() const { return dim() || hint(); }
  std::string to_string() const;

 private:
  std::variant<std::monostate, int64_t, Dim, DimHint> what_;
};

}  // namespace weft
