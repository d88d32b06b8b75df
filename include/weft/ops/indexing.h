#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <variant>

#include "weft/core/tensor.h"

// Parts of tensors, as brackets select them in Python:
//   at(x, 0)                      x[0]
//   at(x, {Slice(), {1, 3}})      x[:, 1:3]
//   at(x, {kEllipsis, mask})      x[..., mask]
//   put_at(x, {Slice(), 2}, y)    x[:, 2] = y

namespace weft {

// From `start` up to `stop`; without one, from the beginning or to the end. Negative ones count from the end.
struct Slice {
  Slice() = default;
  Slice(std::optional<SymInt> first, std::optional<SymInt> last, SymInt every = 1)
      : start(std::move(first)), stop(std::move(last)), step(std::move(every)) {}
  std::optional<SymInt> start = {}, stop = {};
  SymInt step = 1;
};

// As many full slices as the other entries leave dims.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis;

// One entry between brackets: an index, a slice, a tensor of indices or a mask, a bool,
// kEllipsis, or std::nullopt for a new dim of size 1.
class Index {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Index(std::nullopt_t) {}
  Index(Ellipsis all) : entry_(all) {}
  template <std::same_as<bool> T>
  Index(T keep) : entry_(keep) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Index(T position) : entry_(SymInt(static_cast<int64_t>(position))) {}
  Index(SymInt position) : entry_(std::move(position)) {}
  Index(Slice slice) : entry_(std::move(slice)) {}
  Index(std::optional<SymInt> start, std::optional<SymInt> stop, SymInt step = 1)
      : entry_(Slice(std::move(start), std::move(stop), std::move(step))) {}
  Index(Tensor positions) : entry_(std::move(positions)) {}
  // NOLINTEND(google-explicit-constructor)

  using Entry = std::variant<std::monostate, Ellipsis, bool, SymInt, Slice, Tensor>;
  const Entry& entry() const noexcept { return entry_; }

 private:
  Entry entry_;
};

// What the entries select: a view where they are indices and slices, a copy where there are tensors. Too
// many entries, or more than one ellipsis, are errors.
Tensor at(const Tensor& tensor, std::span<const Index> entries);
inline Tensor at(const Tensor& tensor, std::initializer_list<Index> entries) {
  return at(tensor, std::span(entries.begin(), entries.size()));
}
inline Tensor at(const Tensor& tensor, const Index& entry) { return at(tensor, std::span(&entry, 1)); }

// Writes into what the entries select; the value is broadcast to it.
void put_at(const Tensor& tensor, std::span<const Index> entries, const Tensor& value);
void put_at(const Tensor& tensor, std::span<const Index> entries, const Scalar& value);
template <typename V>
void put_at(const Tensor& tensor, std::initializer_list<Index> entries, const V& value) {
  put_at(tensor, std::span(entries.begin(), entries.size()), value);
}
template <typename V>
void put_at(const Tensor& tensor, const Index& entry, const V& value) {
  put_at(tensor, std::span(&entry, 1), value);
}

}  // namespace weft
