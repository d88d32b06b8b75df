// Complex numbers: conjugates (lazy and real), parts, and views between complex and pairs.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

Tensor flipped(const Tensor& self, uint32_t flag) {
  Tensor view = alias_with(self, self.sizes(), self.strides(), self.storage_offset());
  TensorImpl* impl = view.impl();
  if (self.flags() & flag) impl->clear_flags(flag);
  else impl->set_flags(flag);
  constexpr uint32_t lazy = tensor_flag::kConjugate | tensor_flag::kNegative;
  bool detour = (impl->flags() & (lazy | tensor_flag::kSymbolic)) || !self.device().is_cpu();
  if (detour) impl->set_flags(layer::kKernelDetour);
  else impl->clear_flags(layer::kKernelDetour);
  return view;
}
Tensor conj_view_kernel(const Tensor& self) {
  require(self.is_complex(), "_conj: expected a complex tensor but got {}", describe(self));
  return flipped(self, tensor_flag::kConjugate);
}
Tensor neg_view_kernel(const Tensor& self) { return flipped(self, tensor_flag::kNegative); }
TensorSpec conj_physical_meta(const Tensor& self) { return pointwise_spec({&self}, self.dtype()); }
PointwiseCall conj_physical_lower(const Tensor& self) {
  return {self.is_complex() ? cpu::kConj : cpu::kCopy, self.dtype(), {0}};
}
Tensor conj_composite(const Tensor& self) { return self.is_complex() ? _conj(self) : self; }
Tensor conj_physical_composite(const Tensor& self) { return self.is_complex() ? _conj_physical(self) : self; }
Tensor resolve_conj_composite(const Tensor& self) { return self.is_conj() ? clone(self) : self; }
Tensor resolve_neg_composite(const Tensor& self) { return self.is_neg() ? clone(self) : self; }

Tensor view_as_real_kernel(const Tensor& self) {
  require(self.is_complex(), "view_as_real is only supported for complex tensors, but got {}",
          describe(self));
  require(!self.is_conj(),
          "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so "
          "you can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor "
          "will NOT alias the original.");
  SymInts sizes(self.sizes()), strides;
  for (const SymInt& stride : self.strides()) strides.push_back(stride * 2);
  sizes.push_back(2);
  strides.push_back(1);
  auto impl = make_ref<TensorImpl>(self.storage(), real_type(self.dtype()), self.device());
  impl->set_flags(self.flags() & (layer::kFake | layer::kKernelDetour | tensor_flag::kNegative));
  impl->set_geometry(sizes, strides, self.storage_offset() * 2);
  return Tensor(std::move(impl));
}
Tensor view_as_complex_kernel(const Tensor& self) {
  require(self.dtype() >= kFloat32 && !self.is_complex(),
          "view_as_complex is only supported for floating point tensors, but got a tensor of scalar type: {}",
          dtype_name(self.dtype()));
  require(self.dim() > 0, "Input tensor must have one or more dimensions");
  size_t last = static_cast<size_t>(self.dim()) - 1;
  check(self.sizes()[last] == 2, "Tensor must have a last dimension of size 2");
  check(self.strides()[last] == 1, "Tensor must have a last dimension with stride 1");
  SymInts sizes, strides;
  for (size_t d = 0; d < last; ++d) {
    require(guard_or(mod(self.strides()[d], 2) == 0, true),
            "Tensor must have a stride divisible by 2 for all but last dimension");
    sizes.push_back(self.sizes()[d]);
    strides.push_back(floor_div(self.strides()[d], 2));
  }
  require(guard_or(mod(self.storage_offset(), 2) == 0, true),
          "Tensor must have a storage_offset divisible by 2");
  auto impl = make_ref<TensorImpl>(self.storage(), complex_type(self.dtype()), self.device());
  impl->set_flags(self.flags() & (layer::kFake | layer::kKernelDetour));
  impl->set_geometry(sizes, strides, floor_div(self.storage_offset(), 2));
  return Tensor(std::move(impl));
}
Tensor real_composite(const Tensor& self) {
  if (!self.is_complex()) return self;
  return select(view_as_real(self.is_conj() ? _conj(self) : self), -1, 0);
}
Tensor imag_composite(const Tensor& self) {
  require(self.is_complex(), "imag is not implemented for tensors with non-complex dtypes.");
  Tensor part = select(view_as_real(self.is_conj() ? _conj(self) : self), -1, 1);
  return self.is_conj() ? _neg_view(part) : part;
}

Batched same_batch(const Batch& call) {
  return {weft::call(call.op(), std::vector<Value>{call.tensor(0)}), {call.batch_dim(0)}};
}
Batched front_batch(const Batch& call) {
  return {weft::call(call.op(), std::vector<Value>{batch_first(call.tensor(0), call.batch_dim(0))}), {0}};
}
Tensor conj_inverse(const Tensor&, const Tensor& mutated) { return conj(mutated); }
Tensor neg_inverse(const Tensor&, const Tensor& mutated) { return _neg_view(mutated); }
Tensor as_real_inverse(const Tensor&, const Tensor& mutated) { return view_as_complex(mutated); }
Tensor as_complex_inverse(const Tensor&, const Tensor& mutated) {
  return view_as_real(resolve_conj(mutated));
}

Samples complex_samples() { return {{"plain", {c128({2, 3})}}, {"transposed", {transposed(c128({2, 3}))}}}; }

}  // namespace

WEFT_OPERATOR(conj_view) = {
    .schema = "aten::_conj(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kView | Traits::kReadsConjNeg,
    .meta = function<&conj_view_kernel>(),
    .kernel = {.functional = function<&conj_view_kernel>()},
    .vjp = {.rule = [](const Vjp& v) { return Grads{conj(v.grad())}; }},
    .batch = same_batch,
    .inverse = function<&conj_inverse>(),
    .samples = complex_samples,
};

WEFT_OPERATOR(neg_view) = {
    .schema = "aten::_neg_view(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&neg_view_kernel>(),
    .kernel = {.functional = function<&neg_view_kernel>()},
    .vjp = {.rule = [](const Vjp& v) { return Grads{neg(v.grad())}; }},
    .batch = same_batch,
    .inverse = function<&neg_inverse>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3})}}}; },
};

WEFT_OPERATOR(conj) = {
    .schema = "aten::conj(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&conj_composite>()},
    .samples = complex_samples,
};

WEFT_OPERATOR(conj_physical_kernel) = {
    .schema = "aten::_conj_physical(Tensor self) -> Tensor",
    .out = "aten::_conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&conj_physical_meta>(),
    .kernel = lowered_exact<&conj_physical_meta, &conj_physical_lower>(),
    .lower = lowering<&conj_physical_lower>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{conj_physical(v.grad())}; }},
    .batch = pointwise_batch,
    .samples = complex_samples,
};

WEFT_OPERATOR(conj_physical) = {
    .schema = "aten::conj_physical(Tensor self) -> Tensor",
    .inplace = "aten::conj_physical_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::conj_physical.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kMayAlias,
    .composite = composite_exact<&conj_physical_composite>(),
    .samples = complex_samples,
};

WEFT_OPERATOR(resolve_conj) = {
    .schema = "aten::resolve_conj(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&resolve_conj_composite>()},
    .samples = complex_samples,
};

WEFT_OPERATOR(resolve_neg) = {
    .schema = "aten::resolve_neg(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&resolve_neg_composite>()},
    .samples = complex_samples,
};

WEFT_OPERATOR(view_as_real) = {
    .schema = "aten::view_as_real(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kView | Traits::kReadsConjNeg,
    .meta = function<&view_as_real_kernel>(),
    .kernel = {.functional = function<&view_as_real_kernel>()},
    .vjp = {.rule = [](const Vjp& v) { return Grads{view_as_complex(contiguous(v.grad()))}; }},
    .batch = front_batch,
    .inverse = function<&as_real_inverse>(),
    .samples = complex_samples,
};

WEFT_OPERATOR(view_as_complex) = {
    .schema = "aten::view_as_complex(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kReadsStrides | Traits::kView | Traits::kReadsConjNeg,
    .meta = function<&view_as_complex_kernel>(),
    .kernel = {.functional = function<&view_as_complex_kernel>()},
    .vjp = {.rule = [](const Vjp& v) { return Grads{view_as_real(resolve_conj(v.grad()))}; }},
    .batch = front_batch,
    .inverse = function<&as_complex_inverse>(),
    .samples = [] { return Samples{{"plain", {f64({3, 2})}}}; },
};

WEFT_OPERATOR(real) = {
    .schema = "aten::real(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&real_composite>()},
    .samples = complex_samples,
};

WEFT_OPERATOR(imag) = {
    .schema = "aten::imag(Tensor(a) self) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&imag_composite>()},
    .samples = complex_samples,
};

}  // namespace weft::ops
