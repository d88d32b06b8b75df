#pragma once

#include "ops/table_support.h"
#include "weft/autograd/autograd.h"

// Derivatives by finite differences, in double precision, for the tests over the whole table.

namespace weft::table {

// The same call in double precision: differences of single precision show nothing.
inline std::vector<Value> in_double(const std::vector<Value>& args) {
  GradModeScope no_grad(false);
  return map_tensors(args, [](const Tensor& t) -> Tensor {
    if (!is_differentiable(t.dtype()) || t.dtype() == kFloat64 || t.dtype() == kComplex128) return t;
    Tensor wide = allocate_contiguous(t.sizes(), t.is_complex() ? kComplex128 : kFloat64);
    copy_(wide, t);
    return wide;
  });
}

// The same call with complex tensors for real ones, of nearby values.
inline std::vector<Value> in_complex(const std::vector<Value>& args) {
  GradModeScope no_grad(false);
  return map_tensors(args, [](const Tensor& t) -> Tensor {
    if (!is_differentiable(t.dtype())) return t;
    Tensor wide = allocate_contiguous(t.sizes(), kComplex128);
    copy_(wide, t);
    auto* elements = wide.data<Complex<double>>();
    for (size_t i = 0; i < static_cast<size_t>(wide.plain_numel()); ++i)
      elements[i].im += 0.125 + 0.0625 * static_cast<double>((3 * i) % 5);
    return wide;
  });
}
// Whether the operator takes these arguments at all.
inline bool accepts(const Operator& op, const std::vector<Value>& args) {
  GradModeScope no_grad(false);
  try {
    call(op, args);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whether the operator has gradients of this argument, or says that it is a constant.
inline bool takes_gradient(const Operator& op, const std::vector<Value>& args, const Tensor& tensor) {
  if (!is_differentiable(tensor.dtype())) return false;
  GradModeScope with_grad(true);
  tensor.set_requires_grad();
  bool takes = true;
  try {
    std::vector<Tensor> outputs, ones;
    for (const Tensor& result : tensors_in(call(op, args)))
      if (result.requires_grad()) outputs.push_back(result), ones.push_back(ones_like(result));
    if (!outputs.empty()) autograd::grad(outputs, {tensor}, ones, {.allow_unused = true});
  } catch (const UserError& error) {
    takes = error.message().find("is not differentiable with respect to argument") == std::string::npos;
  }
  tensor.set_requires_grad(false);
  return takes;
}
inline std::vector<Tensor> differentiable_in(const Operator& op, const std::vector<Value>& args) {
  std::vector<Tensor> found;
  for (const Tensor& tensor : tensors_in(args))
    if (takes_gradient(op, args, tensor)) found.push_back(tensor);
  return found;
}

// Fixed weights, none of them zero and no two alike nearby.
inline Complex<double> weight(size_t i) {
  return {0.25 + 0.5 * static_cast<double>((7 * i + 3) % 11) / 11,
          -0.4 + 0.7 * static_cast<double>((5 * i + 1) % 7) / 7};
}
inline Tensor weights_like(const Tensor& tensor, size_t first = 0) {
  Tensor weights = allocate_contiguous(tensor.sizes(), tensor.dtype());
  for (size_t i = 0; i < static_cast<size_t>(weights.plain_numel()); ++i) {
    if (weights.dtype() == kFloat64) weights.data<double>()[i] = weight(first + i).re;
    else weights.data<Complex<double>>()[i] = weight(first + i);
  }
  return weights;
}
// The real number whose gradient has the weights for cotangents: sum of Re(conj(w) x).
inline double weighted_sum(const Tensor& tensor, size_t first = 0) {
  recorded::Elements elements = recorded::elements_of(tensor);
  double sum = 0;
  for (size_t i = 0; i < elements.numbers.size(); ++i) {
    Complex<double> w = weight(first + i), x = elements.numbers[i];
    sum += w.re * x.re + (tensor.is_complex() ? w.im * x.im : 0);
  }
  return sum;
}

// Backward operators take what the forward call saved, and their derivatives take that for functions of the
// input. The second derivatives of the forward operators check them.
inline const Exceptions kSavedStatistics = {
    {"aten::native_batch_norm_backward", "mean and deviation are functions of the input"},
    {"aten::native_layer_norm_backward", "mean and deviation are functions of the input"},
    {"aten::native_group_norm_backward", "mean and deviation are functions of the input"},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     "out and logsumexp are functions of the input"},
};
inline Exceptions both(Exceptions a, const Exceptions& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Pointers to the parts of every element, in row-major order.
inline std::vector<double*> parts_of(const Tensor& tensor) {
  std::vector<double*> parts;
  IntSpan sizes = tensor.plain_sizes(), strides = tensor.plain_strides();
  int64_t width = tensor.is_complex() ? 2 : 1;
  Ints index(sizes.size(), 0);
  auto* data = static_cast<double*>(tensor.raw_data());
  int64_t at = 0;
  for (int64_t left = tensor.plain_numel(); left > 0; --left) {
    for (int64_t part = 0; part < width; ++part) parts.push_back(data + at * width + part);
    for (size_t d = sizes.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= sizes[d] * strides[d];
      index[d] = 0;
    }
  }
  return parts;
}

// df/dx for every part of every element of `x`, by central differences.
inline std::vector<double> differences(const Tensor& x, FunctionRef<double()> f) {
  std::vector<double> result;
  for (double* part : parts_of(x)) {
    double saved = *part, step = 1e-6 * std::max(1.0, std::abs(saved));
    *part = saved + step;
    double above = f();
    *part = saved - step;
    double below = f();
    *part = saved;
    result.push_back((above - below) / (2 * step));
  }
  return result;
}

inline bool close(double got, double expected) {
  return std::abs(got - expected) <= 1e-6 + 1e-4 * std::abs(expected);
}

// The gradient (zero when undefined) beside the differences.
inline void compare_gradient(const std::string& what, const Tensor& gradient, const Tensor& x,
                             const std::vector<double>& expected, std::vector<std::string>& texts) {
  std::vector<double> got(expected.size(), 0);
  if (gradient.defined()) {
    if (gradient.dtype() != x.dtype() || !std::ranges::equal(gradient.plain_sizes(), x.plain_sizes()))
      return texts.push_back(fmt::format("{} is {}, expected {}", what, weft::describe(gradient).str(),
                                         weft::describe(x).str()));
    recorded::Elements elements = recorded::elements_of(gradient);
    for (size_t i = 0, at = 0; i < elements.numbers.size(); ++i) {
      got[at++] = elements.numbers[i].re;
      if (x.is_complex()) got[at++] = elements.numbers[i].im;
    }
  }
  for (size_t i = 0; i < expected.size(); ++i)
    if (!std::isnan(expected[i]) && !close(got[i], expected[i]))
      return texts.push_back(fmt::format("{}: part {} of {}: got {}, expected {}", what, i, expected.size(),
                                         got[i], expected[i]));
}

}  // namespace weft::table
