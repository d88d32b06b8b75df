// where: a choice for each element.
#include "ops/support/family.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

void check_condition(const Tensor& condition) {
  require(condition.dtype() == kBool || condition.dtype() == kUInt8,
          "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
          dtype_name(condition.dtype()));
}
TensorSpec where_meta(const Tensor& condition, const Tensor& self, const Tensor& other) {
  check_condition(condition);
  DType type = common_type(self, other);
  return {type, device_of({&condition, &self, &other}), broadcast_sizes({&condition, &self, &other}),
          pointwise_strides({&condition, &self, &other}, broadcast_sizes({&condition, &self, &other}))};
}
PointwiseCall where_lower(const Tensor&, const Tensor& self, const Tensor& other) {
  return {cpu::kWhere, common_type(self, other), {0, 1, 2}};
}
// The number as a tensor of the type that the result has.
Tensor typed_beside(const Tensor& condition, const Scalar& number, DType type) {
  require_fits_computation(number, type);
  return scalar_tensor(number, type, Layout::kStrided, condition.device());
}
Tensor where_scalar_self(const Tensor& condition, const Scalar& self, const Tensor& other) {
  DType type = common_type(self, other);
  return where(condition, typed_beside(condition, self, type), to(other, type));
}
Tensor where_scalar_other(const Tensor& condition, const Tensor& self, const Scalar& other) {
  DType type = common_type(self, other);
  Tensor number = typed_beside(condition, other, type);
  return where(condition, to(self, type), number);
}
Tensor where_scalar(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return where(condition, wrapped_number(self), wrapped_number(other));
}

}  // namespace

WEFT_OPERATOR(where_self) = {
    .schema = "aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    .out =
        "aten::where.self_out(Tensor condition, Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise,
    .meta = function<&where_meta>(),
    .kernel = lowered_exact<&where_meta, &where_lower>(),
    .lower = lowering<&where_lower>(),
    .vjp = {.saves = inputs(0),
            .rule =
                [](const Vjp& v) {
                  Tensor condition = v.input(0);
                  Tensor other = v.wants(2) ? where(condition, Scalar(0), v.grad()) : Tensor();
                  return Grads{Tensor(), v.wants(1) ? masked(v.grad(), condition) : Tensor(), other};
                }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"same_shape", {boolean({2, 3}), f64({2, 3}), f64({2, 3})}},
                         {"broadcast", {boolean({3}), f64({2, 1}), f64({})}},
                         {"mixed", {boolean({3}), f32({3}), i64({3})}}};
        },
};

WEFT_OPERATOR(where_scalar_self) = {
    .schema = "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&where_scalar_self>()},
    .samples = [] { return Samples{{"plain", {boolean({3}), 1.5, f64({3})}}}; },
};

WEFT_OPERATOR(where_scalar_other) = {
    .schema = "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&where_scalar_other>()},
    .samples = [] { return Samples{{"plain", {boolean({3}), f64({3}), 2}}}; },
};

WEFT_OPERATOR(where_scalar) = {
    .schema = "aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    .traits = Traits::kPointwise,
    .composite = {.functional = function<&where_scalar>()},
    .samples = [] { return Samples{{"plain", {boolean({3}), 1.5, 2}}}; },
};

}  // namespace weft::ops
