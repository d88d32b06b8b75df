// Sums with a product or quotient, and points between two tensors.
#include "ops/decompositions/steps.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// --- self + value * a * b, self + value * a / b ----------------------------------------------------------

template <const cpu::PointwiseKernel& kernel>
struct MultiplyAdd {
  static DType compute(const Tensor& self, const Tensor& a, const Tensor& b) {
    const DType type = common_type(self, a, b);
    require_supported(kernel, type);
    return type;
  }
  static TensorSpec meta(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar&) {
    const DType type = compute(self, a, b);
    return {type, device_of({&self, &a, &b}), broadcast_sizes({&self, &a, &b}),
            pointwise_strides({&self, &a, &b}, broadcast_sizes({&self, &a, &b}))};
  }
  static PointwiseCall lower(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
    PointwiseCall call(kernel, compute(self, a, b), {0, 1, 2});
    call.add_param(3, value);
    return call;
  }
};
using AddCMul = MultiplyAdd<cpu::kAddCMul>;
using AddCDiv = MultiplyAdd<cpu::kAddCDiv>;

Tensor addcmul_parts(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  const Steps steps(self, a, b);
  Tensor start = steps.in(self), x = steps.in(a), y = steps.in(b), product = x * value * y;
  return steps.out(start + product);
}
Tensor addcdiv_parts(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value) {
  const Steps steps(self, a, b);
  Tensor start = steps.in(self), x = steps.in(a), y = steps.in(b), quotient = x * value / y;
  return steps.out(start + quotient);
}
Tensor scaled(const Tensor& grad, const Scalar& value) {
  return value.equals_number(1) ? grad : grad * conj_of(value);
}
Grads addcmul_vjp(const Vjp& v) {
  const Scalar value = v.arg<Scalar>(3);
  return {v.grad(), v.wants(1) ? scaled(v.grad() * conj_of(v.input(2)), value) : Tensor(),
          v.wants(2) ? scaled(v.grad() * conj_of(v.input(1)), value) : Tensor()};
}
Grads addcdiv_vjp(const Vjp& v) {
  const Scalar value = v.arg<Scalar>(3);
  Tensor a = v.input(1), b = v.input(2);
  return {v.grad(), v.wants(1) ? scaled(v.grad() / conj_of(b), value) : Tensor(),
          v.wants(2) ? -scaled(v.grad() * conj_of(a / (b * b)), value) : Tensor()};
}
Samples three_samples() {
  return {{"plain", {f64({3, 4}), f64({3, 4}), positive({3, 4})}},
          {"broadcast", {f64({3, 1}), f64({4}), positive({3, 4}), 0.5}},
          {"f32", {f32({5}), f32({5}), make({5}, kFloat32, 0.5, 2), -2}}};
}

// --- self + weight * (end - self) ------------------------------------------------------------------------

void check_lerp(const Tensor& self, const Tensor& end) {
  require(self.dtype() == end.dtype(), "expected dtype {} for `end` but got dtype {}",
          dtype_name(self.dtype()), dtype_name(end.dtype()));
}
TensorSpec lerp_scalar_meta(const Tensor& self, const Tensor& end, const Scalar&) {
  check_lerp(self, end);
  require_supported(cpu::kLerpScalar, self.dtype());
  return pointwise_spec({&self, &end}, self.dtype());
}
PointwiseCall lerp_scalar_lower(const Tensor& self, const Tensor&, const Scalar& weight) {
  PointwiseCall call(cpu::kLerpScalar, self.dtype(), {0, 1});
  call.add_param(2, weight);
  return call;
}
TensorSpec lerp_tensor_meta(const Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end);
  require(self.dtype() == weight.dtype(), "expected dtype {} for `weight` but got dtype {}",
          dtype_name(self.dtype()), dtype_name(weight.dtype()));
  require_supported(cpu::kLerp, self.dtype());
  return {self.dtype(), device_of({&self, &end, &weight}), broadcast_sizes({&self, &end, &weight}),
          pointwise_strides({&self, &end, &weight}, broadcast_sizes({&self, &end, &weight}))};
}
PointwiseCall lerp_tensor_lower(const Tensor& self, const Tensor&, const Tensor&) {
  return {cpu::kLerp, self.dtype(), {0, 1, 2}};
}
// From the nearer end.
Tensor lerp_scalar_parts(const Tensor& start, const Tensor& end, const Scalar& weight) {
  const Steps steps(start);
  Tensor a = steps.in(start), b = steps.in(end), way = b - a;
  const bool is_near = weight.is_complex() || std::abs(weight.to_double()) < 0.5;
  return steps.out(is_near ? a + way * weight : b - way * Scalar(1 - weight.to_double()));
}
Tensor lerp_tensor_parts(const Tensor& start, const Tensor& end, const Tensor& weight) {
  const Steps steps(start);
  Tensor a = steps.in(start), b = steps.in(end), w = steps.in(weight), is_far = abs(w) >= 0.5;
  Tensor factor = where(is_far, w - 1, w), from = where(is_far, b, a), way = b - a;
  return steps.out(from + factor * way);
}

}  // namespace

WEFT_OPERATOR(addcmul) = {
    .schema = "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .inplace =
        "aten::addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    .out =
        "aten::addcmul.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&AddCMul::meta>(),
    .kernel = lowered<&AddCMul::meta, &AddCMul::lower>(),
    .lower = lowering<&AddCMul::lower>(),
    .vjp = {.saves = each_for_the_other(1, 2), .rule = addcmul_vjp},
    .batch = pointwise_batch,
    .decompose = function<&addcmul_parts>(),
    .samples = three_samples,
};

WEFT_OPERATOR(addcdiv) = {
    .schema = "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .inplace =
        "aten::addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)",
    .out =
        "aten::addcdiv.out(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&AddCDiv::meta>(),
    .kernel = lowered<&AddCDiv::meta, &AddCDiv::lower>(),
    .lower = lowering<&AddCDiv::lower>(),
    .vjp = {.saves = inputs(1, 2), .rule = addcdiv_vjp},
    .batch = pointwise_batch,
    .decompose = function<&addcdiv_parts>(),
    .samples = three_samples,
};

WEFT_OPERATOR(lerp_scalar) = {
    .schema = "aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    .inplace = "aten::lerp_.Scalar(Tensor(a!) self, Tensor end, Scalar weight) -> Tensor(a!)",
    .out = "aten::lerp.Scalar_out(Tensor self, Tensor end, Scalar weight, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&lerp_scalar_meta>(),
    .kernel = lowered_exact<&lerp_scalar_meta, &lerp_scalar_lower>(),
    .lower = lowering<&lerp_scalar_lower>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  const Scalar weight = conj_of(v.arg<Scalar>(2));
                  return Grads{v.wants(0) ? v.grad() - v.grad() * weight : Tensor(),
                               v.wants(1) ? v.grad() * weight : Tensor()};
                }},
    .batch = pointwise_batch,
    .decompose = function<&lerp_scalar_parts>(),
    .samples =
        [] {
          return Samples{{"near", {f64({3, 4}), f64({3, 4}), 0.25}}, {"far", {f64({3, 1}), f64({4}), 0.75}}};
        },
};

WEFT_OPERATOR(lerp_tensor) = {
    .schema = "aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    .inplace = "aten::lerp_.Tensor(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)",
    .out = "aten::lerp.Tensor_out(Tensor self, Tensor end, Tensor weight, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&lerp_tensor_meta>(),
    .kernel = lowered_exact<&lerp_tensor_meta, &lerp_tensor_lower>(),
    .lower = lowering<&lerp_tensor_lower>(),
    .vjp = {.saves = inputs(0, 1, 2),
            .rule =
                [](const Vjp& v) {
                  Tensor weight = conj_of(v.input(2));
                  return Grads{v.wants(0) ? v.grad() * (1 - weight) : Tensor(),
                               v.wants(1) ? v.grad() * weight : Tensor(),
                               v.wants(2) ? v.grad() * conj_of(v.input(1) - v.input(0)) : Tensor()};
                }},
    .batch = pointwise_batch,
    .decompose = function<&lerp_tensor_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), f64({3, 4}), positive({3, 4})}},
                         {"broadcast", {f64({3, 1}), f64({4}), positive({4})}}};
        },
};

}  // namespace weft::ops
