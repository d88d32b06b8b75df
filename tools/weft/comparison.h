#pragma once

#include <functional>
#include <optional>

#include "commands.h"
#include "tensor_files.h"

namespace weft::cli {

// How far two numbers may be apart: |got - wanted| <= atol + rtol * |wanted|.
struct Tolerance {
  double rtol = 0, atol = 0;
};
// By the type of what is compared; of integers and bools nothing.
Tolerance default_tolerance(DType dtype);

// Where two tensors differ most, in tolerances: beyond 1 they do not agree.
struct Difference {
  std::string key;
  double error = 0;     // |got - wanted| there
  double excess = 0;    // as a multiple of what is allowed; infinity for another type or size
  std::string place;    // "[0, 3]"
  std::string message;  // what is wrong

  bool agrees() const { return excess <= 1; }
};
Difference compare(const std::string& key, const Tensor& got, const Tensor& wanted,
                   const Tolerance& tolerance);
// The rule of gradients in f32 and f64: 1e-3 |r| + 1e-4 max|r| + 1e-6 `largest`, the largest of all.
Difference compare_gradient(const std::string& key, const Tensor& got, const Tensor& wanted, double largest);
double largest_magnitude(const Tensor& tensor);

// Compares what came with what a file has, key by key, and prints the worst; the exit code. Keys that are
// missing on either side differ.
int report_differences(
    const NamedTensors& got, const Expectation& expect,
    const std::function<Difference(const std::string&, const Tensor&, const Tensor&)>& compare_one);
// The same at the tolerances of an expectation, or else those of the types.
int report_differences(const NamedTensors& got, const Expectation& expect);

}  // namespace weft::cli
