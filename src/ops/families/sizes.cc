// The geometry of tensors as operators, for programs in which sizes are values. All of them read the tensor
// they are given, whatever layer it belongs to: a wrapper shows the sizes that its user sees.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// Unlike other operators, these take no dim of a tensor without any.
size_t dim_of(const Tensor& self, int64_t dim) {
  require(self.dim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  return static_cast<size_t>(normalize_dim(dim, self.dim()));
}

SymInts sym_sizes(const Tensor& self) { return SymInts(self.sizes()); }
SymInt sym_size_at(const Tensor& self, int64_t dim) { return self.sizes()[dim_of(self, dim)]; }
SymInts sym_strides(const Tensor& self) { return SymInts(self.strides()); }
SymInt sym_stride_at(const Tensor& self, int64_t dim) { return self.strides()[dim_of(self, dim)]; }
SymInt sym_numel_of(const Tensor& self) { return self.numel(); }
SymInt sym_offset_of(const Tensor& self) { return self.storage_offset(); }

// The same as C++ integers: a symbolic one is fixed to its hint.
Ints plain(const SymInts& values) {
  Ints list;
  for (const SymInt& value : values) list.push_back(guard_int(value));
  return list;
}
Ints sizes_of(const Tensor& self) { return plain(sym_sizes(self)); }
int64_t size_at(const Tensor& self, int64_t dim) { return guard_int(sym_size_at(self, dim)); }
Ints strides_of(const Tensor& self) { return plain(sym_strides(self)); }
int64_t stride_at(const Tensor& self, int64_t dim) { return guard_int(sym_stride_at(self, dim)); }
int64_t numel_of(const Tensor& self) { return guard_int(sym_numel_of(self)); }
int64_t offset_of(const Tensor& self) { return guard_int(sym_offset_of(self)); }
int64_t rank_of(const Tensor& self) { return self.dim(); }

// Only the typed function has to give C++ integers. As Values sizes stay what they are, so that a program run
// on symbolic tensors keeps their symbols.
template <auto typed, auto symbolic>
constexpr KernelSet geometry() {
  Function both = function<typed>();
  both.boxed = function<symbolic>().boxed;
  return {.functional = both};
}

Samples shape_samples() { return {{"plain", {f64({2, 3})}}, {"transposed", {transposed(f64({3, 4}))}}}; }
Samples shape_dim_samples() { return {{"last", {f64({2, 3}), -1}}, {"first", {transposed(f64({3, 4})), 0}}}; }

}  // namespace

WEFT_OPERATOR(sym_size) = {
    .schema = "aten::sym_size(Tensor self) -> SymInt[]",
    .traits = Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_sizes>()},
    .samples = shape_samples,
};

WEFT_OPERATOR(sym_size_int) = {
    .schema = "aten::sym_size.int(Tensor self, int dim) -> SymInt",
    .traits = Traits::kCore | Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_size_at>()},
    .samples = shape_dim_samples,
};

WEFT_OPERATOR(sym_stride) = {
    .schema = "aten::sym_stride(Tensor self) -> SymInt[]",
    .traits = Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_strides>()},
    .samples = shape_samples,
};

WEFT_OPERATOR(sym_stride_int) = {
    .schema = "aten::sym_stride.int(Tensor self, int dim) -> SymInt",
    .traits = Traits::kCore | Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_stride_at>()},
    .samples = shape_dim_samples,
};

WEFT_OPERATOR(sym_numel) = {
    .schema = "aten::sym_numel(Tensor self) -> SymInt",
    .traits = Traits::kCore | Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_numel_of>()},
    .samples = shape_samples,
};

WEFT_OPERATOR(sym_storage_offset) = {
    .schema = "aten::sym_storage_offset(Tensor self) -> SymInt",
    .traits = Traits::kCore | Traits::kNotDifferentiable,
    .composite = {.functional = function<&sym_offset_of>()},
    .samples = shape_samples,
};

WEFT_OPERATOR(size) = {
    .schema = "aten::size(Tensor self) -> int[]",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&sizes_of, &sym_sizes>(),
    .samples = shape_samples,
};

WEFT_OPERATOR(size_int) = {
    .schema = "aten::size.int(Tensor self, int dim) -> int",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&size_at, &sym_size_at>(),
    .samples = shape_dim_samples,
};

WEFT_OPERATOR(stride) = {
    .schema = "aten::stride(Tensor self) -> int[]",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&strides_of, &sym_strides>(),
    .samples = shape_samples,
};

WEFT_OPERATOR(stride_int) = {
    .schema = "aten::stride.int(Tensor self, int dim) -> int",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&stride_at, &sym_stride_at>(),
    .samples = shape_dim_samples,
};

WEFT_OPERATOR(numel) = {
    .schema = "aten::numel(Tensor self) -> int",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&numel_of, &sym_numel_of>(),
    .samples = shape_samples,
};

WEFT_OPERATOR(storage_offset) = {
    .schema = "aten::storage_offset(Tensor self) -> int",
    .traits = Traits::kNotDifferentiable,
    .composite = geometry<&offset_of, &sym_offset_of>(),
    .samples = shape_samples,
};

WEFT_OPERATOR(dim) = {
    .schema = "aten::dim(Tensor self) -> int",
    .traits = Traits::kNotDifferentiable,
    .composite = {.functional = function<&rank_of>()},
    .samples = shape_samples,
};

}  // namespace weft::ops
