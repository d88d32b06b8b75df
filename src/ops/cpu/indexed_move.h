#pragma once

#include <cstdint>
#include <span>

#include "weft/base/dtype.h"

// Elements picked out of strided memory by index, and put back.
namespace weft::cpu {

// Where element [i, j, k] of a dense block array lies in strided memory: at before[i] + at[j] + after[k], in
// elements. `before` and `after` run over the dims around the indexed ones, `at` over the chosen positions.
struct IndexedPlaces {
  std::span<const int64_t> before, at, after;
};

// dense[i, j, k] = memory[i, j, k]. Any type of `item_size` bytes.
void gather_indexed(const IndexedPlaces& places, const char* memory, char* dense, int64_t item_size);

// memory[i, j, k] = dense[i, j, k]. Where places repeat, the last one stays. `is_single`: `dense` holds one
// element, which goes everywhere.
void scatter_indexed(const IndexedPlaces& places, char* memory, const char* dense, bool is_single,
                     int64_t item_size);

// memory[i, j, k] += dense[i, j, k], in the order of j: the same bits for any number of threads. Of bools,
// or.
void accumulate_indexed(const IndexedPlaces& places, char* memory, const char* dense, bool is_single,
                        DType dtype);

// The same where every element has a position of its own: [i, j, k] lies at
// before[i] + positions[i, j, k] * stride + after[k], and `positions` is dense.
struct ElementPlaces {
  std::span<const int64_t> before, after;
  int64_t picks;  // how many j there are
  const int64_t* positions;
  int64_t stride;
  int64_t size;  // of the indexed dim: a position is below it

  int64_t count() const { return static_cast<int64_t>(before.size() * after.size()) * picks; }
};
enum class Combine : uint8_t { kReplace, kAdd, kMultiply };

// Whether all positions are at least 0 and below the size.
bool are_inside(const ElementPlaces& places);
// The same while it gathers: false, with unspecified elements in `dense`, for a position that is not.
bool gather_elements(const ElementPlaces& places, const char* memory, char* dense, int64_t item_size);
// memory = combine(memory, dense), in the order of j. `is_checked`: positions are known to be inside; if not,
// the answer is false, with part of the elements written, for one that is not.
bool scatter_elements(const ElementPlaces& places, char* memory, const char* dense, bool is_single,
                      Combine how, DType dtype, bool is_checked);

}  // namespace weft::cpu
