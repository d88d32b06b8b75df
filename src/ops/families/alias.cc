// The same memory under another handle: with its history, without it, or read as another type; and what
// enters a program from outside.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

Tensor alias_kernel(const Tensor& self) {
  return alias_with(self, self.sizes(), self.strides(), self.storage_offset());
}
Tensor alias_inverse(const Tensor&, const Tensor& mutated) { return alias(mutated); }

// Drops the history here as well as in the autograd layer, which is not asked while gradients are off.
const Tensor& detach_inplace(const Tensor& self) {
  require(!self.is_view(),
          "Can't detach views in-place. Use detach() instead, which gives a new tensor without history");
  self.impl()->forget_history();
  return self;
}

// --- view.dtype ------------------------------------------------------------------------------------------

bool divides(int64_t ratio, const SymInt& value) { return guard_or(mod(value, ratio) == 0, true); }

void check_last_dim(const Tensor& self, DType dtype) {
  require(self.dim() > 0, "self.dim() cannot be 0 to view {} as {} (different element sizes)",
          dtype_name(self.dtype()), dtype_name(dtype));
  if (!guard_or(self.stride(-1) == 1, true))
    fail("self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
         dtype_name(self.dtype()), dtype_name(dtype), self.stride(-1).to_string());
}

struct Geometry {
  SymInts sizes, strides;
  SymInt offset;
};
// Elements become `ratio` smaller ones each.
Geometry with_smaller_elements(const Tensor& self, int64_t ratio) {
  Geometry seen{SymInts(self.sizes()), SymInts(self.strides()), self.storage_offset() * ratio};
  size_t last = seen.sizes.size() - 1;
  for (size_t d = 0; d < last; ++d) seen.strides[d] = seen.strides[d] * ratio;
  seen.sizes[last] = seen.sizes[last] * ratio;
  return seen;
}
// `ratio` elements become one.
Geometry with_larger_elements(const Tensor& self, DType dtype, int64_t ratio) {
  Geometry seen{SymInts(self.sizes()), SymInts(self.strides()), floor_div(self.storage_offset(), ratio)};
  size_t last = seen.sizes.size() - 1;
  auto refuse = [&](const char* what, const SymInt& value) {
    fail("{} must be divisible by {} to view {} as {} (different element sizes), but got {}", what, ratio,
         dtype_name(self.dtype()), dtype_name(dtype), value.to_string());
  };
  if (!divides(ratio, seen.sizes[last])) refuse("self.size(-1)", seen.sizes[last]);
  if (!divides(ratio, self.storage_offset())) refuse("self.storage_offset()", self.storage_offset());
  for (size_t d = 0; d < last; ++d) {
    if (!divides(ratio, seen.strides[d])) refuse("every stride but the last", seen.strides[d]);
    seen.strides[d] = floor_div(seen.strides[d], ratio);
  }
  seen.sizes[last] = floor_div(seen.sizes[last], ratio);
  return seen;
}
Tensor view_dtype_kernel(const Tensor& self, DType dtype) {
  require(dtype == self.dtype() || !(self.is_conj() || self.is_neg()),
          "torch.Tensor.view is not supported for {} view tensors when converting to a different dtype.",
          self.is_conj() ? "conjugate" : "negative");
  int64_t from = item_size(self.dtype()), to = item_size(dtype);
  Geometry seen{SymInts(self.sizes()), SymInts(self.strides()), self.storage_offset()};
  if (from != to) check_last_dim(self, dtype);
  if (from > to) seen = with_smaller_elements(self, from / to);
  if (from < to) seen = with_larger_elements(self, dtype, to / from);
  Tensor view = alias_with(self, self.sizes(), self.strides(), self.storage_offset());
  view.impl()->set_dtype(dtype);
  view.impl()->set_geometry(seen.sizes, seen.strides, seen.offset);
  return view;
}
Tensor view_dtype_inverse(const Tensor& base, const Tensor& mutated, DType) {
  return view(mutated, base.dtype());
}

// --- batching --------------------------------------------------------------------------------------------

Batched same_batch(const Batch& call) {
  return {weft::call(call.op(), std::vector<Value>{call.tensor(0)}), {call.batch_dim(0)}};
}
Batched view_dtype_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto dtype = call.arg<DType>(1);
  // The last dim is the one that changes, and it must not be the batch.
  require(self.dim() > 1 || item_size(self.dtype()) == item_size(dtype),
          "self.dim() cannot be 0 to view {} as {} (different element sizes)", dtype_name(self.dtype()),
          dtype_name(dtype));
  return {view(self, dtype), {0}};
}

// --- lift ------------------------------------------------------------------------------------------------

// Marks where a tensor that was made outside enters a program; the value is its own.
Tensor lift_composite(const Tensor& self) { return self; }
TensorSpec lift_copy_meta(const Tensor& self) {
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void lift_copy_into(const Tensor& self, const Tensor& out) { copy_values(out, self); }

}  // namespace

WEFT_OPERATOR(alias) = {
    .schema = "aten::alias(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&alias_kernel>(),
    .kernel = view_kernels<&alias_kernel>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = same_batch,
    .inverse = function<&alias_inverse>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}}; },
};

WEFT_OPERATOR(detach) = {
    .schema = "aten::detach(Tensor(a) self) -> Tensor(a)",
    .inplace = "aten::detach_(Tensor(a!) self) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kNotDifferentiable | Traits::kReadsConjNeg,
    .meta = function<&alias_kernel>(),
    .kernel = {.functional = function<&alias_kernel>(), .inplace = function<&detach_inplace>()},
    .batch = same_batch,
    .decompose = function<&detach_parts>(),
    .inverse = function<&alias_inverse>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}}; },
};

WEFT_OPERATOR(lift_fresh) = {
    .schema = "aten::lift_fresh(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&lift_composite>()},
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}}; },
};

WEFT_OPERATOR(lift) = {
    .schema = "aten::lift(Tensor self) -> Tensor",
    .out = "aten::lift.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kMayAlias,
    .composite = composite<&lift_composite>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}}; },
};

WEFT_OPERATOR(lift_fresh_copy) = {
    .schema = "aten::lift_fresh_copy(Tensor self) -> Tensor",
    .out = "aten::lift_fresh_copy.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear | Traits::kLifts,
    .meta = function<&lift_copy_meta>(),
    .kernel = structured_exact<&lift_copy_meta, &lift_copy_into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = same_batch,
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}, {"transposed", {transposed(f64({3, 4}))}}}; },
};

WEFT_OPERATOR(view_dtype) = {
    .schema = "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
    .traits = Traits::kReadsStrides | Traits::kView | Traits::kNotDifferentiable | Traits::kReadsConjNeg,
    .meta = function<&view_dtype_kernel>(),
    .kernel = {.functional = function<&view_dtype_kernel>()},
    .batch = view_dtype_batch,
    .inverse = function<&view_dtype_inverse>(),
    .samples =
        [] {
          return Samples{{"same_size", {f32({2, 3}), kInt32}},
                         {"smaller", {f64({2, 3}), kFloat32}},
                         {"larger", {f32({3, 4}), kFloat64}}};
        },
};

}  // namespace weft::ops
