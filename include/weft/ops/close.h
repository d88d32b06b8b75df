#pragma once

#include <optional>
#include <string>

#include "weft/base/error.h"
#include "weft/core/scalar.h"
#include "weft/core/tensor.h"

namespace weft {

// Two numbers are close when |actual - expected| <= atol + rtol * |expected|.
struct Tolerances {
  double rtol = 0, atol = 0;
};

// What is asked of results of these types when nothing else is said: the larger of each type's own, which are
// 0 for integers and bools.
Tolerances default_tolerances(DType a, DType b);

struct CloseOptions {
  std::optional<double> rtol, atol;  // both or none: the default ones
  bool equal_nan = false;            // NaN is close to NaN
  bool check_dtype = true;           // false: values are compared in the common type
  bool check_device = true;          // false: values are compared on the CPU
  bool check_stride = false;
};

// Why `actual` is not close to `expected`, in the words of torch.testing.assert_close; nothing if it is:
//   Tensor-likes are not close!
//
//   Mismatched elements: 1 / 3 (33.3%)
//   Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
//   Greatest relative difference: 0.20000000298023224 at index (1,) (up to 1.3e-06 allowed)
// Tensors on the device `meta` have no values: sizes and types are all that is compared. Calls operators that
// no recorder, mode or tape of this thread sees.
std::optional<std::string> find_mismatch(const Tensor& actual, const Tensor& expected,
                                         const CloseOptions& options = {});
std::optional<std::string> find_mismatch(const Scalar& actual, const Scalar& expected,
                                         const CloseOptions& options = {});

struct NotCloseError : UserError {
  using UserError::UserError;
};

// Throws a NotCloseError with the text of find_mismatch, if there is one.
void assert_close(const Tensor& actual, const Tensor& expected, const CloseOptions& options = {},
                  std::source_location where = std::source_location::current());

}  // namespace weft
