#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <vector>

#include "base/ceil_div.h"

// Memory that ends where a page begins that nobody may touch: a kernel that reads or writes beyond its
// operand ends its test. AddressSanitizer would not see it, as its build has no kernels with AVX.
namespace weft::cpu::testing {

template <typename T>
struct GuardedAllocator {
  using value_type = T;

  GuardedAllocator() = default;
  template <typename U>
  GuardedAllocator(const GuardedAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t n) {
    const size_t bytes = bytes_of_pages(n);
    void* start = mmap(nullptr, bytes + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    char* end = static_cast<char*>(start) + bytes;
    if (mprotect(end, page(), PROT_NONE) != 0) throw std::bad_alloc();
    return reinterpret_cast<T*>(end) - n;
  }
  void deallocate(T* first, size_t n) {
    const size_t bytes = bytes_of_pages(n);
    munmap(reinterpret_cast<char*>(first + n) - bytes, bytes + page());
  }
  friend bool operator==(GuardedAllocator, GuardedAllocator) { return true; }

 private:
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
  static size_t bytes_of_pages(size_t n) { return ceil_div(n * sizeof(T), page()) * page(); }
};

template <typename T>
using GuardedVector = std::vector<T, GuardedAllocator<T>>;

}  // namespace weft::cpu::testing
