#pragma once

#include "ops/scalar/complex_pair.h"

// Activation functions and their derivatives. A `Backward` functor takes the gradient first.
namespace weft::scalar {

struct Relu {
  template <typename T>
  T operator()(T x) const {
    return where(x < T(0), T(0), x);  // a NaN stays
  }
};
struct Threshold {
  template <typename T>
  T operator()(T x, T threshold, T value) const {
    return where(x <= threshold, value, x);
  }
};
struct ThresholdBackward {
  template <typename T>
  T operator()(T grad, T x, T threshold) const {
    return where(x <= threshold, T(0), grad);
  }
};
// The derivative of a clamp, open at both ends.
struct HardtanhBackward {
  template <typename T>
  T operator()(T grad, T x, T low, T high) const {
    return where((x > low) & (x < high), grad, T(0));
  }
};
struct Hardsigmoid {
  template <typename T>
  T operator()(T x) const {
    return minimum(maximum(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardsigmoidBackward {
  template <typename T>
  T operator()(T grad, T x) const {
    return where((x > T(-3)) & (x < T(3)), grad / T(6), T(0));
  }
};
struct Hardswish {
  template <typename T>
  T operator()(T x) const {
    return x * minimum(maximum(x + T(3), T(0)), T(6)) / T(6);
  }
};
struct HardswishBackward {
  template <typename T>
  T operator()(T grad, T x) const {
    return where(x <= T(-3), T(0), where(x >= T(3), grad, grad * (x / T(3) + T(0.5))));
  }
};
struct LeakyRelu {
  template <typename T>
  T operator()(T x, T slope) const {
    return x * where(x > T(0), T(1), slope);
  }
};
struct LeakyReluBackward {
  template <typename T>
  T operator()(T grad, T x, T slope) const {
    return grad * where(x > T(0), T(1), slope);
  }
};

// elu(x) = scale * x above zero, scale * alpha * (e^(input_scale x) - 1) below.
struct Elu {
  template <typename T>
  T operator()(T x, T alpha, T scale, T input_scale) const {
    return where(x < T(0), expm1(x * input_scale) * (alpha * scale), x * scale);
  }
};
struct EluBackward {
  template <typename T>
  T operator()(T grad, T x, T alpha, T scale, T input_scale) const {
    T below = grad * input_scale * (alpha * scale) * exp(x * input_scale);
    return where(x > T(0), grad * scale, below);
  }
};
// The same from the result of elu.
struct EluBackwardOfResult {
  template <typename T>
  T operator()(T grad, T y, T alpha, T scale, T input_scale) const {
    return where(y > T(0), grad * scale, grad * input_scale * (y + alpha * scale));
  }
};
// softplus(x) = log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold.
struct Softplus {
  template <typename T>
  T operator()(T x, T beta, T threshold) const {
    T scaled = x * beta;
    return where(scaled > threshold, x, log1p(exp(scaled)) / beta);
  }
};
struct SoftplusBackward {
  template <typename T>
  T operator()(T grad, T x, T beta, T threshold) const {
    T scaled = x * beta;
    return where(scaled > threshold, grad, grad * sigmoid(scaled));
  }
};

struct Silu {
  template <typename T>
  T operator()(T x) const {
    if constexpr (IsComplex<T>) return x * sigmoid(x);
    else return x / (T(1) + exp(-x));
  }
};
struct SiluBackward {
  template <typename T>
  T operator()(T grad, T x) const {
    T s = sigmoid(x);
    return grad * s * (T(1) + x * (T(1) - s));
  }
};
struct SigmoidBackward {
  template <typename T>
  T operator()(T grad, T y) const {
    if constexpr (IsComplex<T>) return grad * conj((T(1) - y) * y);
    else return grad * (T(1) - y) * y;  // a zero gradient stays zero beside a huge y
  }
};
struct TanhBackward {
  template <typename T>
  T operator()(T grad, T y) const {
    return grad * conj(T(1) - y * y);
  }
};

struct Gelu {
  template <typename T>
  T operator()(T x) const {
    return x * normal_cdf(x);
  }
};
struct GeluBackward {
  template <typename T>
  T operator()(T grad, T x) const {
    T density = T(0.39894228040143267794) * exp(T(-0.5) * x * x);
    return grad * (normal_cdf(x) + x * density);
  }
};

// gelu(x, approximate="tanh") = x/2 (1 + tanh(inner(x))).
struct GeluTanh {
  static constexpr double kBeta = 0.79788456080286535588, kKappa = 0.044715;
  template <typename T>
  static T inner(T x) {
    return T(kBeta) * (x + T(kKappa) * (x * x * x));
  }
  template <typename T>
  T operator()(T x) const {
    return T(0.5) * x * (T(1) + tanh(inner(x)));
  }
};
struct GeluTanhBackward {
  template <typename T>
  T operator()(T grad, T x) const {
    T t = tanh(GeluTanh::inner(x));
    T slope = T(GeluTanh::kBeta) * (T(1) + T(3 * GeluTanh::kKappa) * (x * x));
    return grad * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * slope);
  }
};

}  // namespace weft::scalar
