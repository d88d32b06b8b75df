// Memory seen with any sizes and strides, and its transposes.
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/preserved_copy.h"
#include "ops/support/view_geometry.h"
#include "ops/view_replay.h"

namespace weft::ops {
namespace {

// The bytes that the geometry reaches, which of symbolic numbers is not known.
size_t check_geometry(SymIntSpan size, SymIntSpan stride, const SymInt& offset, DType dtype) {
  require(size.size() == stride.size(), "mismatch in length of strides and shape: {} and {}",
          describe_sizes(size), describe_sizes(stride));
  // The lowest numbers are kept as symbols are: they are asked, not taken out.
  for (const SymInt& s : size)
    require(!known(s < 0), "as_strided: negative size in {}", describe_sizes(size));
  for (const SymInt& s : stride)
    require(!known(s < 0), "as_strided: Negative strides are not supported at the moment, got strides: {}",
            describe_sizes(stride));
  require(!known(offset < 0), "Tensor: invalid storage offset {}", offset.to_string());
  if (offset.is_symbolic() || !size.is_plain() || !stride.is_plain()) return 0;
  return reached_bytes(size, stride, offset, dtype);
}
void check_inside(const Tensor& self, SymIntSpan size, SymIntSpan stride, const SymInt& offset) {
  size_t bytes = check_geometry(size, stride, offset, self.dtype());
  if (self.storage()->has_memory())
    require(bytes <= self.storage()->bytes(),
            "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size "
            "of {} are out of bounds for storage of size {}",
            describe_sizes(size), describe_sizes(stride), offset.to_string(), item_size(self.dtype()), bytes,
            self.storage()->bytes());
}

Tensor as_strided_kernel(const Tensor& self, SymIntSpan size, SymIntSpan stride,
                         const std::optional<SymInt>& storage_offset) {
  SymInt offset = storage_offset.value_or(self.storage_offset());
  check_inside(self, size, stride, offset);
  return alias_with(self, size, stride, offset);
}

Tensor as_strided_inverse(const Tensor& base, const Tensor& mutated, SymIntSpan size, SymIntSpan stride,
                          const std::optional<SymInt>& offset) {
  return as_strided_scatter(base, mutated, size, stride, offset);
}

TensorSpec as_strided_scatter_meta(const Tensor& self, const Tensor& src, SymIntSpan size, SymIntSpan stride,
                                   const std::optional<SymInt>& offset) {
  check_geometry(size, stride, offset.value_or(0), self.dtype());
  require(sizes_fit(src.sizes(), size),
          "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
          describe_sizes(src.sizes()), describe_sizes(size));
  return preserved_copy_spec(self);
}
Tensor as_strided_scatter_kernel(const Tensor& self, const Tensor& src, SymIntSpan size, SymIntSpan stride,
                                 const std::optional<SymInt>& offset) {
  as_strided_scatter_meta(self, src, size, stride, offset);
  Tensor result = preserved_copy(self);
  Tensor target = as_strided_kernel(result, size, stride, offset);
  check_no_internal_overlap(target);
  copy_values(target, src);
  return result;
}

// Calls f(element number, position) for each element of a strided geometry, row-major.
template <typename F>
void for_each_position(IntSpan sizes, IntSpan strides, int64_t offset, F f) {
  int64_t numel = 1;
  for (int64_t size : sizes) numel *= size;
  Ints index(sizes.size(), 0);
  int64_t position = offset;
  for (int64_t i = 0; i < numel; ++i) {
    f(i, position);
    for (size_t d = sizes.size(); d-- > 0;) {
      position += strides[d];
      if (++index[d] < sizes[d]) break;
      position -= index[d] * strides[d];
      index[d] = 0;
    }
  }
}

// The values of `self` in memory of these strides. Without a write where the strides are dense, so that
// transforms can follow.
Tensor with_strides(const Tensor& self, SymIntSpan sizes, SymIntSpan strides) {
  Tensor dense = laid_out_as(self, SymInts(strides));
  return same_sizes(dense.strides(), strides) ? dense : copy_(new_empty_strided(self, sizes, strides), self);
}

// The number of elements from the beginning of memory to the last one of a geometry.
SymInt reached_elements(SymIntSpan sizes, SymIntSpan strides, const SymInt& offset) {
  SymInt last = offset;
  for (size_t d = 0; d < sizes.size(); ++d) last = last + max(sizes[d] - 1, SymInt(0)) * strides[d];
  return last + 1;
}

// The same view of a tangent of the primal's layout; what the view reads between
// them does not vary.
std::vector<Tensor> as_strided_jvp(const Jvp& j) {
  Tensor self = j.input(0), tangent = j.tangent(0);
  auto size = boxing::Unboxed<SymIntSpan>(j.arg(1)), stride = boxing::Unboxed<SymIntSpan>(j.arg(2));
  SymInt offset = j.arg(3).is_none() ? self.storage_offset() : j.arg(3).to_sym_int();
  bool lies_alike = same_strides(self.strides(), tangent.strides(), self.sizes()) &&
                    guard_or(self.storage_offset() == tangent.storage_offset(), false);
  if (!lies_alike) {
    SymInt elements = max(reached_elements(self.sizes(), self.strides(), self.storage_offset()),
                          reached_elements(size.get(), stride.get(), offset));
    tangent = as_strided_scatter(new_zeros(tangent, SymInts{elements}), tangent, self.sizes(), self.strides(),
                                 self.storage_offset());
  }
  return {as_strided(tangent, size.get(), stride.get(), offset)};
}

// The view that the first example asks for, once more for each example: a storage offset counts from where
// the batch begins, as a program that sees one example takes it to.
Batched as_strided_batch(const Batch& call) {
  Tensor self = call.tensor(0);
  const int64_t dim = call.batch_dim(0);
  auto size = boxing::Unboxed<SymIntSpan>(call.args()[1]),
       stride = boxing::Unboxed<SymIntSpan>(call.args()[2]);
  SymInts sizes{self.size(dim)}, strides{self.stride(dim)};
  for (const SymInt& s : size.get()) sizes.push_back(s);
  for (const SymInt& s : stride.get()) strides.push_back(s);
  const Value& offset = call.args()[3];
  return {as_strided(self, sizes, strides, offset.is_none() ? self.storage_offset() : offset.to_sym_int()),
          {0}};
}

Batched as_strided_scatter_batch(const Batch& call) {
  const Tensor self = with_batch_first(call.tensor(0), call.batch_dim(0), call.batch_size()),
               src = with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size());
  auto size = boxing::Unboxed<SymIntSpan>(call.args()[2]),
       stride = boxing::Unboxed<SymIntSpan>(call.args()[3]);
  // The examples lie one after the other.
  const Tensor own = call.batch_dim(0) == 0 ? self : contiguous(self);
  SymInts sizes{own.size(0)}, strides{own.stride(0)};
  for (const SymInt& s : size.get()) sizes.push_back(s);
  for (const SymInt& s : stride.get()) strides.push_back(s);
  const Value& offset = call.args()[4];
  return {as_strided_scatter(own, src, sizes, strides,
                             offset.is_none() ? own.storage_offset() : offset.to_sym_int()),
          {0}};
}

// More than any memory holds.
constexpr int64_t kMostElements = int64_t{1} << 55;
TensorSpec as_strided_backward_meta(const Tensor& grad, SymIntSpan input_size, SymIntSpan input_stride,
                                    SymIntSpan size, SymIntSpan stride, const SymInt& offset) {
  const char* op = "as_strided_backward";
  check_sizes(op, "grad", grad, size);
  require(grad.dtype() != kBool, "{}: bool has no gradient", op);
  // Both geometries must be ones that memory can have; a view may begin before its input does.
  check_geometry(input_size, input_stride, 0, grad.dtype());
  check_geometry(size, stride, max(offset, SymInt(0)), grad.dtype());
  require(!known(offset < -kMostElements), "{}: the view begins {} elements before its input", op,
          offset.to_string());
  return contiguous_spec(input_size, grad.dtype(), grad.device());
}
template <typename T>
Tensor zeros_of(int64_t count) {
  Tensor memory = allocate_contiguous({count}, dtype_of<T>);
  fill_values(memory, 0);
  return memory;
}
// The transpose of as_strided: each element of `grad` is added where the view read it. `offset` counts from
// the input's first element. Where elements of the input share memory, each gets its share of the sum.
void add_where_read(const Tensor& grad, SymIntSpan input_size, SymIntSpan input_stride, SymIntSpan size,
                    SymIntSpan stride, const SymInt& offset, const Tensor& result) {
  Tensor dense = dense_as(grad, grad.dtype());
  int64_t low = std::min<int64_t>(0, offset.plain()), high = offset.plain();
  int64_t input_high = 0;
  for (size_t d = 0; d < size.size(); ++d)
    high += std::max<int64_t>(0, (size[d].plain() - 1) * stride[d].plain());
  for (size_t d = 0; d < input_size.size(); ++d)
    input_high += std::max<int64_t>(0, (input_size[d].plain() - 1) * input_stride[d].plain());
  const int64_t reach = std::max(high, input_high) - low + 1;
  visit_dtype(grad.dtype(), [&]<typename T>() {
    using Sum = std::conditional_t<std::same_as<T, Half> || std::same_as<T, BFloat16>, float, T>;
    // Tensors, since they may be larger than memory: that is an error of the caller's.
    const Tensor sum_memory = zeros_of<Sum>(reach), sharer_memory = zeros_of<int32_t>(reach);
    Sum* const sums = static_cast<Sum*>(sum_memory.raw_data());
    int32_t* const sharers = static_cast<int32_t*>(sharer_memory.raw_data());
    const T* from = static_cast<const T*>(dense.raw_data());
    T* to = static_cast<T*>(result.raw_data());
    if constexpr (!std::same_as<T, bool>) {
      for_each_position(size.plain(), stride.plain(), offset.plain() - low, [&](int64_t i, int64_t at) {
        sums[at] = static_cast<Sum>(sums[at] + static_cast<Sum>(from[i]));
      });
      for_each_position(input_size.plain(), input_stride.plain(), -low,
                        [&](int64_t, int64_t at) { ++sharers[at]; });
      for_each_position(input_size.plain(), input_stride.plain(), -low, [&](int64_t i, int64_t at) {
        double share = 1.0 / sharers[at];
        if constexpr (requires(Sum s) { s.re; })
          to[i] = sums[at] * Sum(static_cast<decltype(Sum::re)>(share));
        else to[i] = static_cast<T>(static_cast<Sum>(static_cast<double>(sums[at]) * share));
      });
    }
  });
}
void as_strided_backward_into(const Tensor& grad, SymIntSpan input_size, SymIntSpan input_stride,
                              SymIntSpan size, SymIntSpan stride, const SymInt& offset, const Tensor& out) {
  write_dense(out, [&](const Tensor& result) {
    add_where_read(grad, input_size, input_stride, size, stride, offset, result);
  });
}

}  // namespace

WEFT_OPERATOR(as_strided) = {
    .schema =
        "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
        "Tensor(a)",
    .inplace =
        "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kReadsStrides | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&as_strided_kernel>(),
    .kernel = view_kernels<&as_strided_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  // The gradient lands where the view read, in a tensor of the input's own layout.
                  const TensorShape& shape = v.shape(0);
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(1)),
                       stride = boxing::Unboxed<SymIntSpan>(v.arg(2));
                  SymInt offset = v.arg<std::optional<SymInt>>(3).value_or(shape.offset);
                  return Grads{as_strided_backward(v.grad(), shape.sizes, shape.strides, size.get(),
                                                   stride.get(), offset - shape.offset)};
                }},
    .jvp = as_strided_jvp,
    .batch = as_strided_batch,
    .inverse = function<&as_strided_inverse>(),
    .samples =
        [] {
          return Samples{{"diagonal", {f64({3, 3}), ints({3}), ints({4})}},
                         {"transposed", {transposed(f64({2, 3})), ints({3}), ints({1})}},
                         {"overlapping", {f64({6}), ints({3, 2}), ints({1, 1}), 1}}};
        },
};

WEFT_OPERATOR(as_strided_backward) = {
    .schema =
        "weft::as_strided_backward(Tensor grad, SymInt[] input_size, SymInt[] input_stride, SymInt[] size, "
        "SymInt[] stride, SymInt offset) -> Tensor",
    .traits = Traits::kLinear | Traits::kNotBatchable,
    .meta = function<&as_strided_backward_meta>(),
    .kernel = structured<&as_strided_backward_meta, &as_strided_backward_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  // The transpose of a transpose: the view itself, of a gradient laid out as the input was.
                  auto input_size = boxing::Unboxed<SymIntSpan>(v.arg(1)),
                       input_stride = boxing::Unboxed<SymIntSpan>(v.arg(2));
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(3)),
                       stride = boxing::Unboxed<SymIntSpan>(v.arg(4));
                  Tensor laid_out = with_strides(v.grad(), input_size.get(), input_stride.get());
                  return Grads{as_strided(laid_out, size.get(), stride.get(), v.arg<SymInt>(5))};
                }},
    .samples =
        [] {
          return Samples{{"overlapping", {f64({3, 2}), ints({6}), ints({1}), ints({3, 2}), ints({1, 1}), 1}}};
        },
};

WEFT_OPERATOR(as_strided_scatter) = {
    .schema =
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor",
    .out =
        "aten::as_strided_scatter.out(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&as_strided_scatter_meta>(),
    .kernel = plain<&as_strided_scatter_kernel, OutType::kExact>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(2)),
                       stride = boxing::Unboxed<SymIntSpan>(v.arg(3));
                  auto offset = v.arg<std::optional<SymInt>>(4);
                  Tensor grad = contiguous(v.grad());
                  Tensor zero = new_zeros(grad, size.get());
                  return Grads{as_strided_scatter(grad, zero, size.get(), stride.get(), offset),
                               as_strided(grad, size.get(), stride.get(), offset)};
                }},
    .batch = as_strided_scatter_batch,
    .samples = [] { return Samples{{"diagonal", {f64({3, 3}), f64({3}), ints({3}), ints({4})}}}; },
};

}  // namespace weft::ops
