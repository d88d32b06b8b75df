#pragma once

#include "ops/cpu/reduction_loops.h"

// Positions of extremes: the first one wins, and any NaN wins over numbers. A block is first reduced to its
// extreme value; only a block that improves on what is known is searched.
namespace weft::cpu {

template <typename Isa, typename T, bool largest>
struct ExtremePositions {
  using R = std::conditional_t<largest, scalar::AmaxReduction, scalar::AminReduction>;
  using Simple = SimpleReduction<Isa, R, T>;
  using Io = ValueIo<T, Isa>;
  using Value = typename Io::Value;
  using Element = typename Value::Element;  // float for 16-bit floats
  static constexpr int kLanes = Io::kLanes;
  static constexpr int64_t kBlock = 1024;

  // Positions come first in a block: they need the alignment.
  static int64_t* positions(char* block) { return reinterpret_cast<int64_t*>(block + kReductionHeader); }
  static Element* values(char* block, int64_t columns) {
    return reinterpret_cast<Element*>(positions(block) + columns);
  }

  static void init(char* block, int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) positions(block)[c] = -1;
  }
  static bool is_nan_value(Element x) { return x != x; }
  // Whether a later x takes the place of y.
  static bool is_better(Element x, Element y) { return scalar::is_better<largest>(x, y); }
  static Element at(const char* p, int64_t i) {
    if constexpr (sizeof(T) == sizeof(Element)) {
      Element x;
      __builtin_memcpy(&x, p + i * Io::kSize, sizeof(x));
      return x;
    } else {
      alignas(64) char buffer[kLanes * Io::kSize] = {};
      __builtin_memcpy(buffer, p + i * Io::kSize, Io::kSize);
      return Io::load(buffer).v[0];
    }
  }
  static int64_t find(const char* p, int64_t n, Element wanted) {
    Value goal(wanted);
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Value x = Io::load(p + i * Io::kSize);
      if (any((x == goal) | is_nan(x))) break;
    }
    for (; i < n; ++i)
      if (Element x = at(p, i); x == wanted || is_nan_value(x)) break;
    return i;
  }

  static void row(char* block, int64_t columns, int64_t column, const char* data, int64_t n, int64_t index) {
    int64_t& position = positions(block)[column];
    Element& best = values(block, columns)[column];
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t size = n - i < kBlock ? n - i : kBlock;
      const char* p = data + i * Io::kSize;
      Element extreme = Simple::across(Simple::reduce_block(p, size, false)).v[0];
      if (position >= 0 && !is_better(extreme, best)) continue;
      best = extreme;
      position = index + i + find(p, size, extreme);
    }
  }

  static void rows(char* block, int64_t columns, const char* data, int64_t rows, int64_t stride,
                   int64_t index) {
    int64_t* where_found = positions(block);
    Element* best = values(block, columns);
    for (int64_t r = 0; r < rows; ++r, data += stride) {
      bool first = where_found[0] < 0;
      int64_t c = 0;
      // Most packs of a later row improve nothing.
      for (; c + kLanes <= columns; c += kLanes) {
        Value x = Io::load(data + c * Io::kSize);
        if (!first) {
          Value known = Value::load(best + c);
          auto better = largest ? x > known : x < known;
          if (!any((better | is_nan(x)) & !is_nan(known))) continue;
        }
        take(where_found + c, best + c, data + c * Io::kSize, kLanes, index + r, first);
      }
      take(where_found + c, best + c, data + c * Io::kSize, columns - c, index + r, first);
    }
  }
  static void take(int64_t* where_found, Element* best, const char* p, int64_t count, int64_t index,
                   bool first) {
    for (int64_t c = 0; c < count; ++c) {
      Element x = at(p, c);
      if (!first && !is_better(x, best[c])) continue;
      best[c] = x;
      where_found[c] = index;
    }
  }

  static void combine(char* block, const char* other_block, int64_t columns) {
    char* other = const_cast<char*>(other_block);
    for (int64_t c = 0; c < columns; ++c) {
      if (positions(other)[c] < 0) continue;
      Element x = values(other, columns)[c];
      if (positions(block)[c] >= 0 && !is_better(x, values(block, columns)[c])) continue;
      positions(block)[c] = positions(other)[c];
      values(block, columns)[c] = x;
    }
  }
  template <bool with_value>
  static void finish(const char* block_, int64_t columns, int64_t, double, char* const* outputs) {
    char* block = const_cast<char*>(block_);
    if (with_value) __builtin_memcpy(outputs[0], values(block, columns), columns * sizeof(Element));
    __builtin_memcpy(outputs[with_value ? 1 : 0], positions(block), columns * sizeof(int64_t));
  }

  static constexpr DType kValueType = sizeof(T) == sizeof(Element) ? dtype_of<T> : DType::kFloat32;
  template <bool with_value>
  static constexpr ReductionLoops kLoopsFor = {sizeof(int64_t) + sizeof(Element),
                                               {with_value ? kValueType : DType::kInt64, DType::kInt64},
                                               init,
                                               row,
                                               rows,
                                               combine,
                                               finish<with_value>};
};

// The positions, or both values and positions: all loops but `finish` are the same.
template <typename Isa, typename T, bool largest, bool with_value>
struct ArgReduction {
  static constexpr ReductionLoops kLoops = ExtremePositions<Isa, T, largest>::template kLoopsFor<with_value>;
};

}  // namespace weft::cpu
