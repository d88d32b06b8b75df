// Trigonometric and hyperbolic functions and their inverses, exponentials and logarithms to other bases.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

Samples around_zero() {
  return {{"plain", {make({3, 4}, kFloat64, -0.9, 0.9)}},
          {"transposed", {transposed(make({3, 4}, kFloat64, -0.9, 0.9))}},
          {"zero_dim", {make({}, kFloat64, -0.9, 0.9)}},
          {"f32", {make({5}, kFloat32, -0.9, 0.9)}}};
}
Samples above_one() {
  return {{"plain", {make({3, 4}, kFloat64, 1.1, 3)}}, {"f32", {make({5}, kFloat32, 1.1, 3)}}};
}
Samples above_zero() { return {{"plain", {positive({3, 4})}}, {"integers", {i64({3}, 1, 9)}}}; }

// Inverse functions of complex numbers are logarithms, taken in double precision.
template <const cpu::PointwiseKernel& kernel, Tensor (*of_complex)(const Tensor&)>
struct Inverse {
  using Real = Unary<kernel, TypeRule::kFloat>;
  static TensorSpec meta(const Tensor& self) {
    return self.is_complex() ? pointwise_spec({&self}, self.dtype()) : Real::meta(self);
  }
  static Lowering lower(const Tensor& self) {
    if (self.is_complex()) return NotLowered{"of complex numbers it is several calls"};
    return Real::lower(self);
  }
  static void into(const Tensor& self, const Tensor& out) {
    if (self.is_complex()) return copy_values(out, of_complex(self.to(kComplex128)));
    run_call(Real::lower(self), out, self);
  }
  static constexpr KernelSet kernels() { return structured<&meta, &into, true>(); }
};
Scalar imaginary(double y) { return Complex<double>(0, y); }
Tensor complex_asin(const Tensor& z) { return log(z * imaginary(1) + sqrt(1 - z * z)) * imaginary(-1); }
Tensor complex_acos(const Tensor& z) { return rsub(complex_asin(z), 1.5707963267948966); }
Tensor complex_atan(const Tensor& z) {
  Tensor turned = z * imaginary(1);
  return (log(1 - turned) - log(1 + turned)) * imaginary(0.5);
}
Tensor complex_asinh(const Tensor& z) { return log(z + sqrt(z * z + 1)); }
Tensor complex_acosh(const Tensor& z) { return log(z + sqrt(z + 1) * sqrt(z - 1)); }
Tensor complex_atanh(const Tensor& z) { return (log(1 + z) - log(1 - z)) * 0.5; }

}  // namespace

WEFT_OPERATOR(tan) = {
    .schema = "aten::tan(Tensor self) -> Tensor",
    .inplace = "aten::tan_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::tan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kTan, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kTan, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kTan, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor y = v.output();
                  return Grads{v.grad() * (1 + conj_of(y) * conj_of(y))};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(asin) = {
    .schema = "aten::asin(Tensor self) -> Tensor",
    .inplace = "aten::asin_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::asin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAsin, complex_asin>::meta>(),
    .kernel = Inverse<cpu::kAsin, complex_asin>::kernels(),
    .lower = lowering<&Inverse<cpu::kAsin, complex_asin>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{v.grad() * conj_of(rsqrt(1 - x * x))};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(acos) = {
    .schema = "aten::acos(Tensor self) -> Tensor",
    .inplace = "aten::acos_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::acos.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAcos, complex_acos>::meta>(),
    .kernel = Inverse<cpu::kAcos, complex_acos>::kernels(),
    .lower = lowering<&Inverse<cpu::kAcos, complex_acos>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{v.grad() * -conj_of(rsqrt(1 - x * x))};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(atan) = {
    .schema = "aten::atan(Tensor self) -> Tensor",
    .inplace = "aten::atan_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::atan.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAtan, complex_atan>::meta>(),
    .kernel = Inverse<cpu::kAtan, complex_atan>::kernels(),
    .lower = lowering<&Inverse<cpu::kAtan, complex_atan>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{v.grad() / conj_of(x * x + 1)};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(sinh) = {
    .schema = "aten::sinh(Tensor self) -> Tensor",
    .inplace = "aten::sinh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::sinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kSinh, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kSinh, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kSinh, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() * conj_of(cosh(v.input(0)))}; }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(cosh) = {
    .schema = "aten::cosh(Tensor self) -> Tensor",
    .inplace = "aten::cosh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::cosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kCosh, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kCosh, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kCosh, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() * conj_of(sinh(v.input(0)))}; }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(asinh) = {
    .schema = "aten::asinh(Tensor self) -> Tensor",
    .inplace = "aten::asinh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::asinh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAsinh, complex_asinh>::meta>(),
    .kernel = Inverse<cpu::kAsinh, complex_asinh>::kernels(),
    .lower = lowering<&Inverse<cpu::kAsinh, complex_asinh>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{v.grad() * conj_of(rsqrt(x * x + 1))};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(acosh) = {
    .schema = "aten::acosh(Tensor self) -> Tensor",
    .inplace = "aten::acosh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::acosh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAcosh, complex_acosh>::meta>(),
    .kernel = Inverse<cpu::kAcosh, complex_acosh>::kernels(),
    .lower = lowering<&Inverse<cpu::kAcosh, complex_acosh>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  // The branch that acosh takes.
                  if (x.is_complex()) return Grads{v.grad() * conj_of(rsqrt(x + 1) * rsqrt(x - 1))};
                  return Grads{v.grad() * rsqrt(x * x - 1)};
                }},
    .batch = pointwise_batch,
    .samples = above_one,
};

WEFT_OPERATOR(atanh) = {
    .schema = "aten::atanh(Tensor self) -> Tensor",
    .inplace = "aten::atanh_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::atanh.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Inverse<cpu::kAtanh, complex_atanh>::meta>(),
    .kernel = Inverse<cpu::kAtanh, complex_atanh>::kernels(),
    .lower = lowering<&Inverse<cpu::kAtanh, complex_atanh>::lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{v.grad() / conj_of(1 - x * x)};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(exp2) = {
    .schema = "aten::exp2(Tensor self) -> Tensor",
    .inplace = "aten::exp2_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::exp2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Unary<cpu::kExp2, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kExp2, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kExp2, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() * conj_of(v.output()) * 0.6931471805599453}; }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

WEFT_OPERATOR(log2) = {
    .schema = "aten::log2(Tensor self) -> Tensor",
    .inplace = "aten::log2_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::log2.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kLog2, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kLog2, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kLog2, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) { return Grads{v.grad() / (conj_of(v.input(0)) * 0.6931471805599453)}; }},
    .batch = pointwise_batch,
    .samples = above_zero,
};

WEFT_OPERATOR(log10) = {
    .schema = "aten::log10(Tensor self) -> Tensor",
    .inplace = "aten::log10_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::log10.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kLog10, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kLog10, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kLog10, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule = [](const Vjp& v) { return Grads{v.grad() / (conj_of(v.input(0)) * 2.302585092994046)}; }},
    .batch = pointwise_batch,
    .samples = above_zero,
};

WEFT_OPERATOR(erfc) = {
    .schema = "aten::erfc(Tensor self) -> Tensor",
    .inplace = "aten::erfc_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::erfc.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Unary<cpu::kErfc, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kErfc, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kErfc, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor x = v.input(0);
                  return Grads{-1.1283791670955126 * exp(-(x * x)) * v.grad()};
                }},
    .batch = pointwise_batch,
    .samples = around_zero,
};

// --- of two numbers --------------------------------------------------------------------------------------

namespace {
Samples pairs() {
  return {{"plain", {positive({3, 4}), f64({3, 4})}},
          {"broadcast", {positive({3, 1}), f64({4})}},
          {"f32", {f32({5}), f32({5})}}};
}
}  // namespace

WEFT_OPERATOR(atan2) = {
    .schema = "aten::atan2(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::atan2.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Binary<cpu::kAtan2, TypeRule::kFloat>::meta_function(),
    .kernel = Binary<cpu::kAtan2, TypeRule::kFloat>::kernels(),
    .lower = Binary<cpu::kAtan2, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor y = v.input(0), x = v.input(1), square = y * y + x * x;
                  Tensor scaled = masked_fill(v.grad() / square, square == 0, 0);
                  return Grads{scaled * x, scaled * -y};
                }},
    .batch = pointwise_batch,
    .samples = pairs,
};

WEFT_OPERATOR(hypot) = {
    .schema = "aten::hypot(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::hypot.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = Binary<cpu::kHypot>::meta_function(),
    .kernel = Binary<cpu::kHypot>::kernels(),
    .lower = Binary<cpu::kHypot>::lower_rule(),
    .vjp = {.saves = inputs(0, 1) | outputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor ratio = v.grad() / v.output();
                  return Grads{v.input(0) * ratio, v.input(1) * ratio};
                }},
    .batch = pointwise_batch,
    .samples = pairs,
};

}  // namespace weft::ops
