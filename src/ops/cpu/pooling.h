#pragma once

#include <cstdint>
#include <vector>

#include "ops/cpu/image_array.h"

// Pooling over windows of two spatial dims: maxima with their places, and averages. The unit of work is a
// block of channels with its whole plane, seen as pixels of adjacent lanes: channels_last memory is that
// already, contiguous planes are turned a few at a time. 16-bit floats compute in f32, integers exactly.
namespace weft::cpu {

// What the windows of one dim cover: of each, the elements from `first` to before `last`. `count` is what it
// contributes to an average's divisor.
struct PoolSpan {
  int64_t first, last, count;
};
struct PoolWindows {
  std::vector<PoolSpan> rows, columns;    // one for every row and column of the output
  int64_t row_step = 1, column_step = 1;  // between the elements of a window
  int64_t divisor = 0;                    // of averages, where it is not the product of the counts
};

// `places` is an int64 array of the output's sizes and layout: positions in the plane. The first of equal
// maxima wins; a NaN beats all numbers.
void max_pool(const PoolWindows& windows, const ImageArray& in, const ImageArray& out,
              const ImageArray& places);
void max_pool_backward(const ImageArray& grad, const ImageArray& places, const ImageArray& grad_in);
void average_pool(const PoolWindows& windows, const ImageArray& in, const ImageArray& out);
void average_pool_backward(const PoolWindows& windows, const ImageArray& grad, const ImageArray& grad_in);

// One instruction set's loops for a type. Pixels are `step` elements apart.
struct PoolPlan {
  int64_t in_width, out_height, out_width;
  const PoolSpan* rows;
  const PoolSpan* columns;
  int64_t row_step, column_step, divisor;
  int64_t lowest;  // of the integers of the image's type: the maximum of an empty window
};
template <typename T>
struct PoolLoops {
  void (*max)(const PoolPlan& plan, int64_t lanes, const T* in, int64_t in_step, T* out, int64_t out_step,
              int64_t* places, int64_t places_step);
  void (*average)(const PoolPlan& plan, int64_t lanes, const T* in, int64_t in_step, T* out,
                  int64_t out_step);
  // Adds to `grad_in`.
  void (*average_backward)(const PoolPlan& plan, int64_t lanes, const T* grad, int64_t grad_step, T* grad_in,
                           int64_t in_step);
};

}  // namespace weft::cpu
