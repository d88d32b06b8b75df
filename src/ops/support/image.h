#pragma once

#include "ops/cpu/image_array.h"
#include "weft/dispatch/op_def.h"

// Images of [N, C, H, W] or [C, H, W] for operators over their two spatial dims.

namespace weft {

// The arrays of one call, all in one layout: themselves where they have it, else copies.
class ImageArrays {
 public:
  explicit ImageArrays(MemoryFormat format) : format_(format) {}

  Tensor to_write(const Tensor& t) const;
  Tensor to_read(const Tensor& t) const;
  cpu::ImageArray array(const Tensor& t) const;

 private:
  MemoryFormat format_;
};
// The end of a write: what `to_write` gave, if that is a copy, goes to where it belongs.
void copy_back(const Tensor& written, const Tensor& target);

// The batch dim joins the batch of images, and comes back out of every result.
Batched image_batch(const Batch& call);

}  // namespace weft
