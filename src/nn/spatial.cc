#include "weft/nn/spatial.h"

namespace weft::nn {

Tensor MaxPool2d::forward(const Tensor& x) {
  int64_t stride = options_.stride ? options_.stride : kernel_;
  return max_pool2d(x, {kernel_, kernel_}, {stride, stride}, {options_.padding, options_.padding},
                    {options_.dilation, options_.dilation}, options_.ceil_mode);
}

Tensor AvgPool2d::forward(const Tensor& x) {
  int64_t stride = options_.stride ? options_.stride : kernel_;
  return avg_pool2d(x, {kernel_, kernel_}, {stride, stride}, {options_.padding, options_.padding},
                    options_.ceil_mode, options_.count_include_pad, options_.divisor_override);
}

Tensor AdaptiveAvgPool2d::forward(const Tensor& x) {
  return adaptive_avg_pool2d(
      x, {height_ ? SymInt(*height_) : x.size(-2), width_ ? SymInt(*width_) : x.size(-1)});
}

}  // namespace weft::nn
