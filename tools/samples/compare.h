#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samples/sample_file.h"

// Results beside what is stored of them: geometry, types and integers exactly, real numbers within tolerance.

namespace weft::recorded {

// The values of a tensor in row-major order, whatever its strides and lazy bits.
struct Elements {
  DType dtype;
  Ints sizes;
  std::vector<int64_t> integers;         // of bool and integer tensors
  std::vector<Complex<double>> numbers;  // of the others

  bool is_exact() const { return dtype <= DType::kInt64; }
  size_t count() const { return is_exact() ? integers.size() : numbers.size(); }
  std::string text(size_t i) const;
};
Elements elements_of(const Tensor& tensor);
// Of an entry with "values", which must not be null.
Elements stored_elements(const Json& entry, const SafeTensors& tensors);

// What |got - stored| may be: absolute + relative * |stored|.
struct Tolerance {
  double relative, absolute;
};
// That of the stored type, and twice the noise. Where the noise is more than a thousandth of most elements,
// it would hide them all: it then counts relative to the largest element, and up to a thousandth.
Tolerance tolerance_for(const Elements& stored, double noise);
// Whether element i of both is the same: exactly, or within the tolerance. NaN equals NaN.
bool same_element(const Elements& got, const Elements& stored, size_t i, Tolerance tolerance);

// The differences that were found so far.
class Differences {
 public:
  void add(std::string text) { texts_.push_back(std::move(text)); }
  bool empty() const { return texts_.empty(); }
  std::vector<std::string> take() { return std::move(texts_); }

  // One difference for all elements that are not the same: how many, and the first of them. `exact` gives the
  // same results in double precision, if there are any. Where there is noise, an element is right that is as
  // close to those as the stored one, or closer than one step of the largest element.
  using Exact = std::function<std::optional<Elements>()>;
  void compare_values(const std::string& what, const Elements& got, const Elements& stored, double noise,
                      const Exact& exact = {});
  void compare_type_and_sizes(const std::string& what, const Tensor& got, const Json& entry);
  // Strides, offset and lazy bits.
  void compare_layout(const std::string& what, const Tensor& got, const Json& entry);
  // A result that is no tensor.
  void compare_plain(const std::string& what, const Value& got, const Json& entry);

 private:
  template <typename T>
  bool expect(const std::string& what, const T& got, const T& stored);
  std::vector<std::string> texts_;
};

}  // namespace weft::recorded
