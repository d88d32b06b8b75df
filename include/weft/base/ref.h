#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace weft {

// A base for reference-counted objects. `Ref<T>` deletes through `T::release_last`, which a type
// may shadow to free long chains without recursion or to return memory to a pool.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : count_(0) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

  // The first reference of an object that nobody else knows yet.
  void start_count() const noexcept { count_.store(1, std::memory_order_relaxed); }
  void add_ref() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when this was the last reference.
  bool drop_ref() const noexcept {
    // A sole owner needs no read-modify-write: nobody else can add a reference.
    if (count_.load(std::memory_order_acquire) == 1) {
      count_.store(0, std::memory_order_relaxed);
      return true;
    }
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }

  template <typename T>
  static void release_last(T* object) noexcept {
    delete object;
  }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{0};
};

// A reference-counted handle, 8 bytes, possibly null.
template <typename T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_) object_->add_ref();
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) noexcept : Ref(other.get()) {}  // NOLINT(google-explicit-constructor)
  template <typename U>
    requires std::is_convertible_v<U*, T*>
  Ref(Ref<U>&& other) noexcept : object_(other.detach()) {}  // NOLINT(google-explicit-constructor)
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { reset(); }

  // Takes over a reference that `detach` gave up.
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  T* detach() noexcept { return std::exchange(object_, nullptr); }
  void reset() noexcept {
    if (T* object = std::exchange(object_, nullptr); object && object->drop_ref()) T::release_last(object);
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  bool operator==(const Ref& other) const noexcept { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  T* object = new T(std::forward<Args>(args)...);
  object->start_count();
  return Ref<T>::adopt(object);
}

}  // namespace weft
