#include "ops/support/samples.h"

#include <algorithm>

#include <cmath>

#include "ops/structured.h"

namespace weft::samples {
namespace {

// A low-discrepancy walk: evenly spread and never repeating.
double spread(int64_t i) {
  double x = 0.5 + 0.6180339887498949 * static_cast<double>(i + 1);
  return x - std::floor(x);
}

}  // namespace

Tensor make(SymIntSpan sizes, DType dtype, double low, double high) {
  Tensor tensor = allocate_contiguous(sizes, dtype);
  visit_dtype(dtype, [&]<typename T>() {
    T* data = static_cast<T*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.plain_numel(); ++i) {
      double value = low + (high - low) * spread(i);
      if constexpr (requires(T t) { t.re; })
        data[i] = T(Complex<double>(value, low + (high - low) * spread(i + 7919)));
      else data[i] = Scalar(value).to<T>();
    }
  });
  return tensor;
}

Tensor i64(SymIntSpan sizes, int64_t low, int64_t high) {
  Tensor tensor = allocate_contiguous(sizes, kInt64);
  for (int64_t i = 0; i < tensor.plain_numel(); ++i)
    tensor.data<int64_t>()[i] = low + static_cast<int64_t>(spread(i) * static_cast<double>(high - low));
  return tensor;
}

Tensor i64_list(std::initializer_list<int64_t> values) {
  Tensor list = allocate_contiguous({static_cast<int64_t>(values.size())}, kInt64);
  std::copy(values.begin(), values.end(), list.data<int64_t>());
  return list;
}
Tensor boolean(SymIntSpan sizes) {
  Tensor tensor = allocate_contiguous(sizes, kBool);
  for (int64_t i = 0; i < tensor.plain_numel(); ++i) tensor.data<bool>()[i] = spread(i) < 0.5;
  return tensor;
}

Tensor transposed(const Tensor& tensor) {
  SymInts sizes(tensor.sizes());
  size_t n = sizes.size();
  std::swap(sizes[n - 1], sizes[n - 2]);
  Tensor memory = allocate_contiguous(sizes, tensor.dtype());
  SymInts strides(memory.strides());
  std::swap(strides[n - 1], strides[n - 2]);
  Tensor view = alias_with(memory, tensor.sizes(), strides, 0);
  copy_values(view, tensor);
  return view;
}

}  // namespace weft::samples
