// Running sums, and the reversal that their derivative needs.
#include "ops/cpu/cumulative.h"

#include "ops/support/dense.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;

// --- cumsum ----------------------------------------------------------------------------------------------

DType cumsum_type(const Tensor& self, const MaybeType& dtype) {
  if (dtype) return *dtype;
  return self.dtype() <= kInt64 ? kInt64 : self.dtype();
}
TensorSpec cumsum_meta(const Tensor& self, int64_t dim, MaybeType dtype) {
  normalize_dim(dim, self.dim());
  DType type = cumsum_type(self, dtype);
  require(type != kBool, "\"cumsum_out_cpu\" not implemented for 'Bool'");
  return contiguous_spec(self.sizes(), type, self.device());
}
// Integers of every width add in i64: truncation at the end gives the same.
void cumsum_into(const Tensor& self, int64_t dim, MaybeType dtype, const Tensor& out) {
  DType type = cumsum_type(self, dtype), wide = type <= kInt64 ? kInt64 : type;
  // Other types of input are converted to the result's before they are added.
  Tensor in = dense_as(dense_as(self, type), wide);
  DimSplit split = split_at(self, normalize_dim(dim, self.dim()));
  bool direct = out.is_contiguous() && out.dtype() == wide;
  Tensor sums = direct ? out : allocate_contiguous(self.sizes(), wide);
  cpu::cumsum(split.outer, split.n, split.inner, static_cast<const char*>(in.raw_data()),
              static_cast<char*>(sums.raw_data()), wide);
  if (!direct) copy_values(out, sums);
}
// Without a type of its own, the sum is made in the type of the target.
const Tensor& cumsum_out_kernel(const Tensor& self, int64_t dim, MaybeType dtype, const Tensor& out) {
  if (dtype) check_out_type(OutType::kExact, {*dtype, self.device(), {}, {}}, out);
  return StructuredForms<&cumsum_meta, &cumsum_into>::out(self, dim, out.dtype(), out);
}
// In place the type stays; an integer result is truncated to it, as in PyTorch.
const Tensor& cumsum_inplace(const Tensor& self, int64_t dim, MaybeType dtype) {
  require(!dtype || *dtype == self.dtype(),
          "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
          dtype_name(self.dtype()), dtype_name(dtype.value_or(self.dtype())));
  cumsum_meta(self, dim, self.dtype());
  check_no_internal_overlap(self);
  cumsum_into(self, dim, self.dtype(), self);
  return self;
}

// --- flip ------------------------------------------------------------------------------------------------

TensorSpec flip_meta(const Tensor& self, IntSpan dims) {
  dim_mask(dims, self.dim(), false);
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
void flip_into(const Tensor& self, IntSpan dims, const Tensor& out) {
  if (self.plain_numel() == 0) return;
  uint64_t mask = dim_mask(dims, self.dim(), false);
  IntSpan sizes = self.plain_sizes();
  Ints backward(self.plain_strides());
  int64_t first = 0;  // the element that comes first
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1)) continue;
    first += (sizes[d] - 1) * backward[d];
    backward[d] = -backward[d];
  }
  char* begin = static_cast<char*>(self.raw_data()) + first * item_size(self.dtype());
  cpu::copy_strided({static_cast<char*>(out.raw_data()), out.dtype(), out.plain_strides().data()},
                    {begin, self.dtype(), backward.data()}, {sizes.data(), sizes.size()});
}
Batched flip_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<IntSpan>(call.args()[1]);
  Ints dims;
  for (int64_t dim : holder.get()) {
    int64_t d = normalize_dim(dim, self.dim() - 1);
    if (self.dim() > 1) dims.push_back(d + 1);
  }
  return {flip(self, dims), {0}};
}

}  // namespace

WEFT_OPERATOR(cumsum) = {
    .schema = "aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .inplace = "aten::cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
    .out = "aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&cumsum_meta>(),
    .kernel = {.functional = structured<&cumsum_meta, &cumsum_into>().functional,
               .inplace = function<&cumsum_inplace>(),
               .out = function<&cumsum_out_kernel>()},
    // Sums from the other end.
    .vjp = {.rule =
                [](const Vjp& v) {
                  Ints dim{v.arg<int64_t>(1)};
                  return Grads{flip(cumsum(flip(v.grad(), dim), dim[0]), dim)};
                }},
    .batch = dim_batch<1>,
    .samples =
        [] {
          return Samples{{"last", {f64({3, 4}), -1}},
                         {"first", {f64({3, 4}), 0}},
                         {"scalar", {f64({}), 0}},
                         {"integers", {i64({4}), 0}},
                         {"transposed", {transposed(f64({3, 4})), 1}},
                         {"typed", {i64({4}), 0, kFloat64}}};
        },
};

WEFT_OPERATOR(flip) = {
    .schema = "aten::flip(Tensor self, int[] dims) -> Tensor",
    .out = "aten::flip.out(Tensor self, int[] dims, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&flip_meta>(),
    .kernel = structured_exact<&flip_meta, &flip_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto holder = boxing::Unboxed<IntSpan>(v.arg(1));
                  return Grads{flip(v.grad(), holder.get())};
                }},
    .batch = flip_batch,
    .samples =
        [] {
          return Samples{{"last", {f64({3, 4}), ints({-1})}},
                         {"both", {transposed(f64({3, 4})), ints({0, 1})}},
                         {"none", {f64({3}), ints({})}}};
        },
};

}  // namespace weft::ops
