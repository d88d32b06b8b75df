// Rows divided by their lengths: rms_norm and cosine_similarity.
#include "ops/decompositions/steps.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// --- rms_norm --------------------------------------------------------------------------------------------

Tensor rms_norm_composite(const Tensor& input, SymIntSpan shape, const Tensor& weight,
                          std::optional<double> eps) {
  require(!shape.empty(),
          "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
          "but got "
          "normalized_shape = []");
  require(!weight.defined() || may_be_same_sizes(weight.sizes(), shape),
          "Expected weight to be of same shape as normalized_shape, but got weight of shape {} and "
          "normalized_shape = {}",
          weight.defined() ? describe_sizes(weight.sizes()) : describe_sizes(shape), describe_sizes(shape));
  require(input.dim() >= static_cast<int64_t>(shape.size()),
          "Input tensor must have at least {} dimensions, but got {}", shape.size(), input.dim());
  Ints dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t d = input.dim() - static_cast<int64_t>(shape.size() - i);
    require(guard_or(input.size(d) == shape[i], true),
            "Given normalized_shape={}, expected input with shape [*, {}], but got input of size {}",
            describe_sizes(shape), describe_sizes(shape), describe_sizes(input.sizes()));
    dims.push_back(d);
  }
  const Steps steps(input);
  Tensor x = steps.in(input);
  const double smallest = steps.compute() == kFloat64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  Tensor scale = rsqrt(mean(pow(x, 2), dims, true) + eps.value_or(smallest));
  Tensor normal = x * scale;
  if (!weight.defined()) return steps.out(normal);
  return Steps(input, weight).out(normal * weight);
}

// --- cosine_similarity -----------------------------------------------------------------------------------

Tensor cosine_composite(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const DType type = common_type(x1, x2);
  require(is_floating(type), "expected common dtype to be floating point, yet common dtype is {}",
          dtype_name(type));
  const SymInts sizes = broadcast_sizes(x1.sizes(), x2.sizes());
  Tensor a = expand(x1.to(type), sizes), b = expand(x2.to(type), sizes);
  auto bounded_norm = [&](const Tensor& t) {
    Tensor norm = linalg_vector_norm(t, 2, {dim}, true);
    return clamp(norm, Scalar(eps));
  };
  Tensor norm_a = bounded_norm(a), norm_b = bounded_norm(b);
  return sum((a / norm_a) * (b / norm_b), {dim});
}

}  // namespace

WEFT_OPERATOR(rms_norm) = {
    .schema =
        "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> "
        "Tensor",
    .composite = {.functional = function<&rms_norm_composite>()},
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), ints({4}), f64({4})}},
                         {"eps", {f64({3, 4}), ints({3, 4}), Value(), 0.5}}};
        },
};

WEFT_OPERATOR(cosine_similarity) = {
    .schema = "aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .composite = {.functional = function<&cosine_composite>()},
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), f64({3, 4})}},
                         {"broadcast", {f64({2, 3}), f64({2, 1, 3}), -1}}};
        },
};

}  // namespace weft::ops
