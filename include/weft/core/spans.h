#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/error.h"
#include "weft/sym/sym_int.h"

namespace weft {

class Tensor;

// A read-only view of a sequence, as operators take them. Built from braces, vectors and arrays alike; it
// owns nothing, so it is for parameters only.
template <typename T>
class ListSpan {
 public:
  using Element = T;
  constexpr ListSpan() = default;
  constexpr ListSpan(const T* data, size_t size) : data_(data), size_(size) {}
  // NOLINTBEGIN(google-explicit-constructor)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // a parameter lives as long as the call's braces
#endif
  constexpr ListSpan(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  template <typename Range>
    requires requires(const Range& r) {
      { r.data() } -> std::convertible_to<const T*>;
      r.size();
    }
  constexpr ListSpan(const Range& range) : data_(range.data()), size_(range.size()) {}
  template <size_t n>
  constexpr ListSpan(const T (&array)[n]) : data_(array), size_(n) {}
  // NOLINTEND(google-explicit-constructor)

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  ListSpan subspan(size_t from) const { return {data_ + from, size_ - from}; }
  std::vector<T> vec() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntSpan = ListSpan<int64_t>;
using TensorSpan = ListSpan<Tensor>;

// A list of sizes that may be symbolic. A list of plain integers is not copied: an int64_t is its own
// SymInt, but for the far negative values that SymInt keeps for its pointers.
class SymIntSpan : public ListSpan<SymInt> {
 public:
  using ListSpan<SymInt>::ListSpan;
  SymIntSpan() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  SymIntSpan(ListSpan<SymInt> list) : ListSpan<SymInt>(list) {}
  SymIntSpan(IntSpan plain) : ListSpan<SymInt>(reinterpret_cast<const SymInt*>(plain.data()), plain.size()) {
    for (int64_t value : plain)
      require(value >= -(int64_t{1} << 62), "a size or index of {} is out of range", value);
  }
  template <typename Range>
    requires requires(const Range& r) {
      { r.data() } -> std::convertible_to<const int64_t*>;
      r.size();
    }
  SymIntSpan(const Range& range) : SymIntSpan(IntSpan(range)) {}
  // NOLINTEND(google-explicit-constructor)

  bool is_plain() const {
    for (const SymInt& value : *this)
      if (value.is_symbolic()) return false;
    return true;
  }
  // The same list as integers; an error where an element depends on symbols, or is too far below zero.
  IntSpan plain() const {
    if (!is_plain()) [[unlikely]]
      refuse_symbolic();
    return unsafe_plain();
  }
  // The same without a look at the elements.
  IntSpan unsafe_plain() const { return {reinterpret_cast<const int64_t*>(data()), size()}; }

 private:
  [[noreturn, gnu::cold]] void refuse_symbolic() const;
};

// A list that may be left out. Unlike std::optional it takes braces as they are: sum(x, {0, 1}).
template <typename Span>
class OptionalSpan {
 public:
  using Element = typename Span::Element;
  constexpr OptionalSpan() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  constexpr OptionalSpan(std::nullopt_t) {}
  constexpr OptionalSpan(Span list) : list_(list), has_value_(true) {}
  constexpr OptionalSpan(std::initializer_list<typename Span::Element> list)
      : list_(list.begin(), list.size()), has_value_(true) {}
  template <typename Range>
    requires(std::is_constructible_v<Span, const Range&> && !std::same_as<Range, Span>)
  constexpr OptionalSpan(const Range& range) : list_(range), has_value_(true) {}
  OptionalSpan(const std::optional<Span>& list)
      : list_(list ? *list : Span()), has_value_(list.has_value()) {}
  // NOLINTEND(google-explicit-constructor)
  constexpr bool has_value() const { return has_value_; }
  constexpr explicit operator bool() const { return has_value_; }
  constexpr const Span& operator*() const { return list_; }
  constexpr const Span* operator->() const { return &list_; }

 private:
  Span list_;
  bool has_value_ = false;
};
// A list that may be given as one number: sum(x, 0), x.view(-1), max_pool2d(x, 2). A bool is no number.
template <typename Span>
class OneOrMore : public Span {
 public:
  using Span::Span;
  constexpr OneOrMore() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  constexpr OneOrMore(Span list) : Span(list) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  OneOrMore(T one) : is_one_(true), one_(static_cast<int64_t>(one)) {
    look_at_own();
  }
  OneOrMore(const SymInt& one) : is_one_(true), one_(one) { look_at_own(); }
  // NOLINTEND(google-explicit-constructor)
  OneOrMore(const OneOrMore& other) : Span(other), is_one_(other.is_one_), one_(other.one_) {
    if (is_one_) look_at_own();
  }
  OneOrMore& operator=(const OneOrMore&) = delete;

 private:
  static constexpr bool kIsSymbolic = std::same_as<typename Span::Element, SymInt>;
  void look_at_own() { static_cast<Span&>(*this) = Span(ListSpan<typename Span::Element>(&one_, 1)); }

  bool is_one_ = false;
  std::conditional_t<kIsSymbolic, SymInt, int64_t> one_ = 0;
};

using OptionalIntSpan = OptionalSpan<IntSpan>;
using OptionalSymIntSpan = OptionalSpan<SymIntSpan>;

}  // namespace weft
