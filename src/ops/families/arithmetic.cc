// Sums, differences, products, quotients and their like.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

using cpu::PointwiseKernel;

// `a + alpha * b` and `a - alpha * b`: without the multiplication where alpha is 1.
template <const PointwiseKernel& simple, const PointwiseKernel& scaled>
struct Scaled {
  static void check_alpha(const Scalar& alpha, DType common) {
    require(!alpha.is_bool() || common == DType::kBool, "Boolean alpha only supported for Boolean results.");
    require(is_floating(common) || is_complex(common) || !(alpha.is_floating() || alpha.is_complex()),
            "For integral input tensors, argument alpha must not be a floating point number.");
    require(is_complex(common) || !alpha.is_complex(),
            "For non-complex input tensors, argument alpha must not be a complex number.");
  }
  // `other` is a tensor, or a number whose value does not matter: it may be a symbolic one.
  template <typename Other>
  static DType compute(const Tensor& self, const Other& other, const Scalar& alpha) {
    DType common = common_type(self, other);
    check_alpha(alpha, common);
    if (&simple == &cpu::kSub)
      require(self.dtype() != DType::kBool && other.dtype() != DType::kBool,
              "Subtraction, the `-` operator, with {} is not supported. Use the `^` or `logical_xor()` "
              "operator instead.",
              self.dtype() == other.dtype() ? "two bool tensors" : "a bool tensor");
    return common;
  }
  static TensorSpec meta(const Tensor& self, const Tensor& other, const Scalar& alpha) {
    return pointwise_spec({&self, &other}, compute(self, other, alpha));
  }
  template <typename Other>
  [[gnu::always_inline]] static PointwiseCall lower(const Tensor& self, const Other& other,
                                                    const Scalar& alpha) {
    const bool is_simple = alpha.equals_number(1);
    PointwiseCall call(is_simple ? simple : scaled, compute(self, other, alpha), {0, 1});
    if (!is_simple) {
      require_fits(alpha, call.compute);
      call.add_param(2, alpha);
    }
    return call;
  }
  static Tensor functional(const Tensor& self, const Tensor& other, const Scalar& alpha) {
    const PointwiseCall call = lower(self, other, alpha);
    Tensor out = allocate(pointwise_spec({&self, &other}, call.compute));
    run_call(call, out, self, other, alpha);
    return out;
  }
  static TensorSpec scalar_meta(const Tensor& self, const Scalar& other, const Scalar& alpha) {
    return {compute(self, other, alpha), self.device(), SymInts(self.sizes()), strides_beside_number(self)};
  }
  static constexpr KernelSet kernels() {
    return with_functional<&functional>(lowered<&meta, &lower<Tensor>>());
  }
  static constexpr KernelSet scalar_kernels() { return lowered_exact<&scalar_meta, &lower<Scalar>>(); }
};
using Add = Scaled<cpu::kAdd, cpu::kAddAlpha>;
using Sub = Scaled<cpu::kSub, cpu::kSubAlpha>;

Samples binary_samples() {
  return {{"same_shape", {f64({3, 4}), f64({3, 4})}},
          {"broadcast", {f64({3, 1}), f64({4})}},
          {"transposed", {transposed(f64({3, 4})), f64({3, 4})}},
          {"zero_dim", {f64({}), f64({2, 3})}},
          {"empty", {f64({0, 3}), f64({1})}},
          {"mixed_types", {f32({2, 3}), i64({2, 3})}},
          {"complex", {c128({2, 2}), c128({2, 2})}}};
}
Samples scalar_samples() {
  return {{"real", {f64({3, 4}), 2.5}},
          {"integer", {i64({4}), 3}},
          {"promotes", {i64({4}), 1.5}},
          {"empty", {f64({0}), 1}}};
}
Samples alpha_samples() {
  Samples all = binary_samples();
  all.push_back({"alpha", {f64({3, 4}), f64({4}), 0.5}});
  all.push_back({"integer_alpha", {i64({3}), i64({3}), 2}});
  return all;
}
Samples unary_samples() {
  return {{"plain", {f64({3, 4})}}, {"transposed", {transposed(f64({3, 4}))}},
          {"zero_dim", {f64({})}},  {"empty", {f64({0, 2})}},
          {"f32", {f32({5})}},      {"complex", {c128({3})}}};
}

}  // namespace

WEFT_OPERATOR(add_tensor) = {
    .schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .inplace = "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    .out = "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Add::meta>(),
    .kernel = Add::kernels(),
    .lower = lowering<&Add::lower<Tensor>>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  Scalar alpha = conj_of(v.arg<Scalar>(2));
                  Tensor other = alpha.equals_number(1) || !v.wants(1) ? v.grad() : v.grad() * alpha;
                  return Grads{v.grad(), other};
                }},
    .batch = pointwise_batch,
    .samples = alpha_samples,
};

WEFT_OPERATOR(add_scalar) = {
    .schema = "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    .inplace = "aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    .out = "aten::add.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNumberOverload,
    .meta = function<&Add::scalar_meta>(),
    .kernel = Add::scalar_kernels(),
    .lower = lowering<&Add::lower<Scalar>>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = pointwise_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(sub_tensor) = {
    .schema = "aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .inplace = "aten::sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
    .out = "aten::sub.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&Sub::meta>(),
    .kernel = Sub::kernels(),
    .lower = lowering<&Sub::lower<Tensor>>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  Scalar alpha = conj_of(v.arg<Scalar>(2));
                  Tensor other = v.wants(1) ? -v.grad() : Tensor();
                  if (other.defined() && !alpha.equals_number(1)) other = other * alpha;
                  return Grads{v.grad(), other};
                }},
    .batch = pointwise_batch,
    .samples = alpha_samples,
};

WEFT_OPERATOR(sub_scalar) = {
    .schema = "aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    .inplace = "aten::sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
    .out = "aten::sub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kNumberOverload,
    .meta = function<&Sub::scalar_meta>(),
    .kernel = Sub::scalar_kernels(),
    .lower = lowering<&Sub::lower<Scalar>>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = pointwise_batch,
    .samples = scalar_samples,
};

namespace {
Tensor reversed_sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  return sub(other, self, alpha);
}
// The number minus the tensor: the operands of sub, swapped.
PointwiseCall reversed_lower(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  PointwiseCall call = Sub::lower(self, other, alpha);
  call.inputs = {1, 0};
  return call;
}
}  // namespace

WEFT_OPERATOR(rsub_tensor) = {
    .schema = "aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .out =
        "aten::rsub.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .composite = composite_exact<&reversed_sub>(),
    .samples = alpha_samples,
};

WEFT_OPERATOR(rsub_scalar) = {
    .schema = "aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    .out =
        "aten::rsub.Scalar_out(Tensor self, Scalar other, Scalar alpha=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&Sub::scalar_meta>(),
    .kernel = lowered_exact<&Sub::scalar_meta, &reversed_lower>(),
    .lower = lowering<&reversed_lower>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  Scalar alpha = conj_of(v.arg<Scalar>(2));
                  return Grads{alpha.equals_number(1) ? -v.grad() : -v.grad() * alpha};
                }},
    .batch = pointwise_batch,
    .decompose = function<&rsub_scalar_parts>(),
    .samples = scalar_samples,
};

WEFT_OPERATOR(mul_tensor) = {
    .schema = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCommutative | Traits::kLinear,
    .meta = Binary<cpu::kMul>::meta_function(),
    .kernel = Binary<cpu::kMul>::kernels(),
    .lower = Binary<cpu::kMul>::lower_rule(),
    .vjp = {.saves = each_for_the_other(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor other = v.wants(1) ? times_conj(v.grad(), v.input(0)) : Tensor();
                  return Grads{v.wants(0) ? times_conj(v.grad(), v.input(1)) : Tensor(), other};
                }},
    .batch = pointwise_batch,
    .samples = binary_samples,
};

WEFT_OPERATOR(mul_scalar) = {
    .schema = "aten::mul.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::mul.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kLinear | Traits::kNumberOverload,
    .meta = BinaryScalar<cpu::kMul>::meta_function(),
    .kernel = BinaryScalar<cpu::kMul>::exact_kernels(),
    .lower = BinaryScalar<cpu::kMul>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad() * conj_of(v.arg<Scalar>(1))}; }},
    .batch = pointwise_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(div_tensor) = {
    .schema = "aten::div.Tensor(Tensor self, Tensor other) -> Tensor",
    .inplace = "aten::div_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    .out = "aten::div.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Binary<cpu::kDiv, TypeRule::kFloat>::meta_function(),
    .kernel = Binary<cpu::kDiv, TypeRule::kFloat>::kernels(),
    .lower = Binary<cpu::kDiv, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = input_for(0, 1) | inputs(1),
            .rule =
                [](const Vjp& v) {
                  Tensor other_grad;
                  if (v.wants(1)) {
                    // d(a/b)/db = -(a/b)/b; the quotient again, since it is not saved.
                    Tensor slope = conj_of((v.input(0) / v.input(1)) / v.input(1));
                    other_grad = -v.grad() * slope;
                  }
                  return Grads{v.wants(0) ? v.grad() / conj_of(v.input(1)) : Tensor(), other_grad};
                }},
    .batch = pointwise_batch,
    .samples = binary_samples,
};

WEFT_OPERATOR(div_scalar) = {
    .schema = "aten::div.Scalar(Tensor self, Scalar other) -> Tensor",
    .inplace = "aten::div_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    .out = "aten::div.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kLinear | Traits::kNumberOverload,
    .meta = BinaryScalar<cpu::kDiv, TypeRule::kFloat>::meta_function(),
    .kernel = BinaryScalar<cpu::kDiv, TypeRule::kFloat>::exact_kernels(),
    .lower = BinaryScalar<cpu::kDiv, TypeRule::kFloat>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad() / conj_of(v.arg<Scalar>(1))}; }},
    .batch = pointwise_batch,
    .samples = scalar_samples,
};

WEFT_OPERATOR(neg) = {
    .schema = "aten::neg(Tensor self) -> Tensor",
    .inplace = "aten::neg_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::neg.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kLinear,
    .meta = Unary<cpu::kNeg>::meta_function(),
    .kernel = Unary<cpu::kNeg>::exact_kernels(),
    .lower = Unary<cpu::kNeg>::lower_rule(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{-v.grad()}; }},
    .batch = pointwise_batch,
    .samples = unary_samples,
};

WEFT_OPERATOR(reciprocal) = {
    .schema = "aten::reciprocal(Tensor self) -> Tensor",
    .inplace = "aten::reciprocal_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::reciprocal.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = Unary<cpu::kReciprocal, TypeRule::kFloat>::meta_function(),
    .kernel = Unary<cpu::kReciprocal, TypeRule::kFloat>::kernels(),
    .lower = Unary<cpu::kReciprocal, TypeRule::kFloat>::lower_rule(),
    .vjp = {.saves = outputs(0),
            .rule = [](const Vjp& v) { return Grads{-v.grad() * conj_of(v.output() * v.output())}; }},
    .batch = pointwise_batch,
    .samples = unary_samples,
};

}  // namespace weft::ops
