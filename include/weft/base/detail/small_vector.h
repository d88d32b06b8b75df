#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace weft {

// Trivially relocatable: moving an object and ending the old one is a memcpy. Types of which this holds,
// though the language cannot know, say so beside their definition.
template <typename T>
inline constexpr bool is_relocatable = std::is_trivially_copyable_v<T>;

// A vector whose first `n` elements live inside it: sizes, strides and argument lists are nearly always
// short.
template <typename T, size_t n>
class SmallVector {
 public:
  using value_type = T;

  SmallVector() noexcept : data_(inline_data()) {}
  explicit SmallVector(size_t size) : SmallVector() { resize(size); }
  SmallVector(size_t size, const T& value) : SmallVector() { resize(size, value); }
  SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
  template <typename It>
    requires requires(It it) { *it; }
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  template <typename Range>
    requires requires(const Range& r) {
      r.begin();
      r.end();
    }
  explicit SmallVector(const Range& range) : SmallVector(range.begin(), range.end()) {}
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      SmallVector copy(other);
      clear();
      free_heap();
      take(copy);
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      clear();
      free_heap();
      take(other);
    }
    return *this;
  }
  ~SmallVector() {
    std::destroy_n(data_, size_);
    free_heap();
  }

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  bool operator==(const SmallVector& other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }

  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]] {
      T value(std::forward<Args>(args)...);  // an argument may live in this vector
      grow(2 * size_t{capacity_});
      return *new (data_ + size_++) T(std::move(value));
    }
    return *new (data_ + size_++) T(std::forward<Args>(args)...);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() { data_[--size_].~T(); }
  void resize(size_t size) {
    reserve(size);
    while (size_ < size) new (data_ + size_++) T();
    while (size_ > size) pop_back();
  }
  void resize(size_t size, const T& value) {
    reserve(size);
    while (size_ < size) new (data_ + size_++) T(value);
    while (size_ > size) pop_back();
  }
  void insert(size_t at, T value) {
    emplace_back(std::move(value));
    for (size_t i = size_ - 1; i > at; --i) std::swap(data_[i], data_[i - 1]);
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) data_[i] = std::move(data_[i + 1]);
    pop_back();
  }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }
  // Replaces the elements by those of [first, last), which must not be its own.
  template <typename It>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }

 private:
  template <typename It>
  void append(It first, It last) {
    reserve(size_ + static_cast<size_t>(last - first));
    for (; first != last; ++first) new (data_ + size_++) T(*first);
  }
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  bool is_inline() const noexcept { return reinterpret_cast<const unsigned char*>(data_) == inline_; }
  void grow(size_t capacity) {
    T* data = static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t(alignof(T))));
    std::uninitialized_move_n(data_, size_, data);
    std::destroy_n(data_, size_);
    free_heap();
    data_ = data;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  // Leaves no elements and no memory of its own: what `take` and the destructor begin and end with.
  void free_heap() noexcept {
    if (is_inline()) return;
    ::operator delete(data_, std::align_val_t(alignof(T)));
    data_ = inline_data();
    capacity_ = n;
  }
  // Moves all of `other` here; this vector is empty and inline.
  void take(SmallVector& other) noexcept {
    if (!other.is_inline()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, n);
    } else if constexpr (is_relocatable<T>) {
      // All of it, used or not: a copy of a fixed size takes a few instructions, one of a varying size a
      // call.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
      std::memcpy(inline_, other.inline_, sizeof(inline_));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
    } else {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      std::destroy_n(other.data_, other.size_);
    }
    size_ = std::exchange(other.size_, 0);
  }

  T* data_;
  uint32_t size_ = 0;
  uint32_t capacity_ = n;
  alignas(T) unsigned char inline_[n * sizeof(T)];
};

}  // namespace weft
