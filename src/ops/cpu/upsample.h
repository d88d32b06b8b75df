#pragma once

#include <optional>

#include "ops/cpu/image_array.h"

// Images resized to other heights and widths: by their nearest pixel, or by a mix of the four around a place.
// 16-bit floats compute in f32; bytes of a mix are rounded after each of the two axes.
namespace weft::cpu {

// One axis of a resize. `scale`: how many times larger it becomes, where that was said; else the sizes tell.
struct ResizeAxis {
  int64_t in, out;
  std::optional<double> scale;
};
struct Resize {
  ResizeAxis rows, columns;
  bool align_corners = false;  // a mix takes the corner pixels' centres for the corners of both images
};

// `in` and `out` have one layout and one type: a float, or bytes.
void upsample_nearest(const Resize& resize, const ImageArray& in, const ImageArray& out);
// `in` and `out` have one layout and one type: a float, or contiguous bytes.
void upsample_bilinear(const Resize& resize, const ImageArray& in, const ImageArray& out);

// Gradients: floats, both arrays contiguous. `grad_in` is overwritten.
void upsample_nearest_backward(const Resize& resize, const ImageArray& grad, const ImageArray& grad_in);
void upsample_bilinear_backward(const Resize& resize, const ImageArray& grad, const ImageArray& grad_in);

}  // namespace weft::cpu
