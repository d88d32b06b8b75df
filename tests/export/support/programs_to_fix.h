// Programs whose sizes are not as free as they are declared. The test sees what is suggested, and a program
// that it writes has the suggestion pasted in.
#pragma once

#include "weft/weft.h"

namespace weft::testing {

// The sizes of x and y, first dimensions, are declared as a and b.
template <typename M>
ExportedProgram exported(const M& module, int64_t x, int64_t y, const DimSpec& a, const DimSpec& b) {
  return export_program(module, {ones({x, 3}), ones({y, 3})},
                        {.dynamic_shapes = {{"x", {{0, a}}}, {"y", {{0, b}}}}});
}

struct OneMore : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + slice(y, 0, 1); }
  WEFT_ARGS(x, y)
};
struct Equal : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + y; }
  WEFT_ARGS(x, y)
};
struct Halves : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x.view({-1, 2, 3}) + y.unsqueeze(1); }
  WEFT_ARGS(x, y)
};
struct Thirds : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x.view({-1, 3, 3}).sum() + y; }
  WEFT_ARGS(x, y)
};
struct Bounded : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) {
    return x.size(0) > 5 && y.size(0) < 40 ? x.sum() + y : y;
  }
  WEFT_ARGS(x, y)
};
struct Fixed : nn::Module {
  Tensor forward(const Tensor& x, const Tensor& y) { return x + ones({7, 3}) + y.sum(); }
  WEFT_ARGS(x, y)
};

}  // namespace weft::testing
