// Views by sizes, strides and dims: the same memory, seen differently.
#include <algorithm>

#include "ops/support/family.h"
#include "ops/support/view_geometry.h"

namespace weft::ops {
namespace {

Tensor view_kernel(const Tensor& self, SymIntSpan size) {
  SymInts target = infer_size(size, self.numel());
  auto strides = view_strides(self.sizes(), self.strides(), target);
  require(strides.has_value(),
          "view size is not compatible with input tensor's size and stride (at least one dimension spans "
          "across two contiguous "
          "subspaces): {} with strides {} cannot be seen as {}. Use .reshape(...) instead.",
          describe(self), describe_sizes(self.strides()), describe_sizes(target));
  return alias_with(self, target, *strides, self.storage_offset());
}

Tensor reshape_composite(const Tensor& self, SymIntSpan shape) {
  SymInts target = infer_size(shape, self.numel());
  auto strides = view_strides(self.sizes(), self.strides(), target);
  if (strides) return view(self, target);
  return _unsafe_view(clone(self, MemoryFormat::kContiguous), target);
}
Tensor reshape_as_composite(const Tensor& self, const Tensor& other) { return reshape(self, other.sizes()); }
Tensor view_as_composite(const Tensor& self, const Tensor& other) { return view(self, other.sizes()); }

Tensor flatten_composite(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  int64_t first = normalize_dim(start_dim, self.dim()), last = normalize_dim(end_dim, self.dim());
  require(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim; got {} and {}",
          start_dim, end_dim);
  if (self.dim() == 0) return reshape(self, {1});
  if (first == last) return self;
  SymInts shape;
  SymInt merged = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < first || d > last) shape.push_back(self.size(d));
    else merged = merged * self.size(d);
    if (d == last) shape.push_back(merged);
  }
  return reshape(self, shape);
}

// The caller gives up the tensor that it views, so no view is noted.
Tensor unsafe_view_kernel(const Tensor& self, SymIntSpan size) { return view_kernel(self, size); }

Tensor as_strided_kernel(const Tensor& self, SymIntSpan size, SymIntSpan stride,
                         const std::optional<SymInt>& storage_offset) {
  require(size.size() == stride.size(), "mismatch in length of strides and shape: {} and {}",
          describe_sizes(size), describe_sizes(stride));
  SymInt offset = storage_offset.value_or(self.storage_offset());
  int64_t last = offset.is_symbolic() ? 0 : offset.plain();
  require(last >= 0, "Tensor: invalid storage offset {}", last);
  bool empty = false;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d].is_symbolic() || stride[d].is_symbolic()) continue;
    require(stride[d].plain() >= 0,
            "as_strided: Negative strides are not supported at the moment, got strides: {}",
            describe_sizes(stride));
    require(size[d].plain() >= 0, "as_strided: negative size in {}", describe_sizes(size));
    empty |= size[d].plain() == 0;
    last += (size[d].plain() - 1) * stride[d].plain();
  }
  if (self.storage()->has_memory() && !empty)
    require(static_cast<size_t>((last + 1) * item_size(self.dtype())) <= self.storage()->bytes(),
            "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size "
            "of {} are out of bounds for storage of size {}",
            describe_sizes(size), describe_sizes(stride), offset.to_string(), item_size(self.dtype()),
            (last + 1) * item_size(self.dtype()), self.storage()->bytes());
  return alias_with(self, size, stride, offset);
}

Ints permutation(IntSpan dims, int64_t rank) {
  require(static_cast<int64_t>(dims.size()) == rank,
          "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
          "desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
          rank, dims.size());
  Ints order;
  uint64_t seen = 0;
  for (int64_t dim : dims) {
    int64_t d = normalize_dim(dim, rank);
    require(!(seen >> d & 1), "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    order.push_back(d);
  }
  return order;
}
Tensor permute_kernel(const Tensor& self, IntSpan dims) {
  SymInts sizes, strides;
  for (int64_t d : permutation(dims, self.dim())) {
    sizes.push_back(self.sizes()[static_cast<size_t>(d)]);
    strides.push_back(self.strides()[static_cast<size_t>(d)]);
  }
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}
Ints inverse_permutation(const Ints& order) {
  Ints inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

Tensor transpose_kernel(const Tensor& self, int64_t dim0, int64_t dim1) {
  auto a = static_cast<size_t>(normalize_dim(dim0, self.dim())),
       b = static_cast<size_t>(normalize_dim(dim1, self.dim()));
  SymInts sizes(self.sizes()), strides(self.strides());
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}
Tensor t_kernel(const Tensor& self) {
  require(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim());
  return transpose_kernel(self, 0, self.dim() < 2 ? 0 : 1);
}
Tensor movedim_composite(const Tensor& self, int64_t source, int64_t destination) {
  int64_t from = normalize_dim(source, self.dim()), to = normalize_dim(destination, self.dim());
  Ints order;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != from) order.push_back(d);
  if (self.dim() > 0) order.insert(static_cast<size_t>(to), from);
  return permute(self, order);
}

Tensor expand_kernel(const Tensor& self, SymIntSpan size, bool) {
  auto rank = static_cast<size_t>(self.dim());
  require(size.size() >= rank,
          "expand({}, size={}): the number of sizes provided ({}) must be greater or equal to the number of "
          "dimensions in the tensor ({})",
          describe(self), describe_sizes(size), size.size(), rank);
  size_t missing = size.size() - rank;
  SymInts sizes(size), strides(size.size());
  if (rank == 0) {
    for (const SymInt& s : size)
      require(s.is_symbolic() || s.plain() >= 0, "expand({}, size={}): a 0-dim tensor has no size to keep",
              describe(self), describe_sizes(size));
    return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
  }
  for (size_t d = size.size(); d-- > 0;) {
    bool is_new = d < missing;
    bool keep = !size[d].is_symbolic() && size[d].plain() == -1;
    if (is_new) {
      require(!keep,
              "expand({}, size={}): the expanded size of the tensor (-1) isn't allowed in a leading, "
              "non-existing dimension {}",
              describe(self), describe_sizes(size), d);
      require(size[d].is_symbolic() || size[d].plain() >= 0, "expand: negative size in {}",
              describe_sizes(size));
      // A new dim of size 1 has the stride that continues the next one; a larger one repeats it.
      if (!guard_or(sizes[d] == 1, false)) strides[d] = 0;
      else strides[d] = d + 1 < size.size() ? sizes[d + 1] * strides[d + 1] : SymInt(1);
      continue;
    }
    const SymInt& have = self.sizes()[d - missing];
    strides[d] = self.strides()[d - missing];
    if (keep) {
      sizes[d] = have;
      continue;
    }
    if (have.same_as(size[d]) || guard_or(have == size[d], false)) continue;
    if (guard_or(have == 1, false)) {
      strides[d] = 0;
      continue;
    }
    // Sizes that only data can tell are taken for equal, and checked when the program runs.
    if ((have == size[d]).hint())
      fail(
          "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension "
          "{}.  Target sizes: {}.  Tensor sizes: {}",
          size[d].to_string(), have.to_string(), d, describe_sizes(size), describe_sizes(self.sizes()));
    check(have == size[d], "expand: the expanded size must match the existing size");
  }
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}
Tensor expand_as_composite(const Tensor& self, const Tensor& other) { return expand(self, other.sizes()); }

Tensor squeezed(const Tensor& self, uint64_t mask) {
  SymInts sizes, strides;
  for (size_t d = 0; d < static_cast<size_t>(self.dim()); ++d) {
    if ((mask >> d & 1) && guard_or(self.sizes()[d] == 1, false)) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}
Tensor squeeze_kernel(const Tensor& self) { return squeezed(self, ~uint64_t{0}); }
Tensor squeeze_dim_kernel(const Tensor& self, int64_t dim) {
  return squeezed(self, uint64_t{1} << normalize_dim(dim, self.dim()));
}
Tensor squeeze_dims_kernel(const Tensor& self, IntSpan dims) {
  return squeezed(self, dim_mask(dims, self.dim(), false));
}

Tensor unsqueeze_kernel(const Tensor& self, int64_t dim) {
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim() + 1));
  SymInts sizes(self.sizes()), strides(self.strides());
  SymInt stride = d >= sizes.size() ? SymInt(1) : sizes[d] * strides[d];
  sizes.insert(d, 1);
  strides.insert(d, stride);
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}

// Puts squeezed dims back.
Tensor unsqueeze_to(const Tensor& grad, SymIntSpan sizes, uint64_t mask) {
  Tensor result = grad;
  for (size_t d = 0; d < sizes.size(); ++d)
    if ((mask >> d & 1) && guard_or(sizes[d] == 1, false))
      result = unsqueeze(result, static_cast<int64_t>(d));
  return result;
}

// --- batching --------------------------------------------------------------------------------------------

SymInts with_batch(const SymInt& batch, SymIntSpan sizes) {
  SymInts all{batch};
  for (const SymInt& size : sizes) all.push_back(size);
  return all;
}
Batched view_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  SymInt numel = 1;
  for (size_t d = 1; d < self.sizes().size(); ++d) numel = numel * self.sizes()[d];
  auto size = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  SymInts target = infer_size(size.get(), numel);
  return {
      weft::call(call.op(), std::vector<Value>{self, Value::list_of(with_batch(self.sizes()[0], target))}),
      {0}};
}
Batched expand_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  SymIntSpan size = holder.get();
  while (self.dim() - 1 < static_cast<int64_t>(size.size())) self = unsqueeze(self, 1);
  return {expand(self, with_batch(self.sizes()[0], size), call.arg<bool>(2)), {0}};
}
Batched permute_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<IntSpan>(call.args()[1]);
  Ints dims{0};
  for (int64_t dim : permutation(holder.get(), self.dim() - 1)) dims.push_back(dim + 1);
  return {permute(self, dims), {0}};
}
Batched transpose_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t rank = self.dim() - 1, a = normalize_dim(call.arg<int64_t>(1), rank),
          b = normalize_dim(call.arg<int64_t>(2), rank);
  if (rank == 0) return {alias(self), {0}};
  return {transpose(self, a + 1, b + 1), {0}};
}
Batched t_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  require(self.dim() <= 3, "t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim() - 1);
  return {self.dim() == 3 ? transpose(self, 1, 2) : alias(self), {0}};
}
Batched squeeze_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  Ints dims;
  for (int64_t d = 1; d < self.dim(); ++d) dims.push_back(d);
  return {squeeze(self, IntSpan(dims)), {0}};
}
Batched unsqueeze_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  return {unsqueeze(self, normalize_dim(call.arg<int64_t>(1), self.dim()) + 1), {0}};
}
// Views whose inverse is another reshuffle of all elements.
Tensor view_inverse(const Tensor& base, const Tensor& mutated, SymIntSpan) {
  return reshape_composite(mutated, base.sizes());
}
Tensor permute_inverse(const Tensor& base, const Tensor& mutated, IntSpan dims) {
  return permute(mutated, inverse_permutation(permutation(dims, base.dim())));
}
Tensor transpose_inverse(const Tensor&, const Tensor& mutated, int64_t dim0, int64_t dim1) {
  return transpose(mutated, dim0, dim1);
}
Tensor t_inverse(const Tensor&, const Tensor& mutated) { return t(mutated); }
Tensor squeeze_inverse(const Tensor& base, const Tensor& mutated) {
  return reshape_composite(mutated, base.sizes());
}
Tensor squeeze_dim_inverse(const Tensor& base, const Tensor& mutated, int64_t) {
  return reshape_composite(mutated, base.sizes());
}
Tensor squeeze_dims_inverse(const Tensor& base, const Tensor& mutated, IntSpan) {
  return reshape_composite(mutated, base.sizes());
}
Tensor unsqueeze_inverse(const Tensor&, const Tensor& mutated, int64_t dim) { return squeeze(mutated, dim); }
Tensor as_strided_inverse(const Tensor& base, const Tensor& mutated, SymIntSpan size, SymIntSpan stride,
                          const std::optional<SymInt>& offset) {
  return as_strided_scatter(base, mutated, size, stride, offset);
}
// A write to an expanded tensor is refused before it comes here: several elements would share memory.
Tensor expand_inverse(const Tensor& base, const Tensor& mutated, SymIntSpan, bool) {
  return sum_to_size(mutated, base.sizes());
}

Tensor as_strided_scatter_kernel(const Tensor& self, const Tensor& src, SymIntSpan size, SymIntSpan stride,
                                 const std::optional<SymInt>& offset) {
  Tensor result = allocate({self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)});
  copy_values(result, self);
  Tensor target = as_strided_kernel(result, size, stride, offset);
  require(same_sizes(target.sizes(), src.sizes()),
          "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
          describe_sizes(src.sizes()), describe_sizes(target.sizes()));
  copy_values(target, src);
  return result;
}
TensorSpec as_strided_scatter_meta(const Tensor& self, const Tensor&, SymIntSpan, SymIntSpan,
                                   const std::optional<SymInt>&) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
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
  Ints order;
  for (int64_t d = 0; d < self.dim(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return guard_or(strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)], false);
  });
  Tensor dense = permute(contiguous(permute(self, order)), inverse_permutation(order));
  return same_sizes(dense.strides(), strides) ? dense : copy_(new_empty_strided(self, sizes, strides), self);
}

// The transpose of as_strided: each element of `grad` is added where the view read it. `offset` counts from
// the input's first element. Where elements of the input share memory, each gets its share of the sum.
Tensor as_strided_backward_kernel(const Tensor& grad, SymIntSpan input_size, SymIntSpan input_stride,
                                  SymIntSpan size, SymIntSpan stride, const SymInt& offset) {
  Tensor dense = grad.is_contiguous() ? grad : allocate_contiguous(grad.sizes(), grad.dtype());
  if (!dense.is_same(grad)) copy_values(dense, grad);
  Tensor result = allocate_contiguous(input_size, grad.dtype(), grad.device());
  int64_t low = std::min<int64_t>(0, offset.plain()), high = offset.plain();
  int64_t input_high = 0;
  for (size_t d = 0; d < size.size(); ++d)
    high += std::max<int64_t>(0, (size[d].plain() - 1) * stride[d].plain());
  for (size_t d = 0; d < input_size.size(); ++d)
    input_high += std::max<int64_t>(0, (input_size[d].plain() - 1) * input_stride[d].plain());
  auto reach = static_cast<size_t>(std::max(high, input_high) - low + 1);
  visit_dtype(grad.dtype(), [&]<typename T>() {
    using Sum = std::conditional_t<std::same_as<T, Half> || std::same_as<T, BFloat16>, float, T>;
    std::vector<Sum> sums(reach, Sum(0));
    std::vector<int32_t> sharers(reach, 0);
    const T* from = static_cast<const T*>(dense.raw_data());
    T* to = static_cast<T*>(result.raw_data());
    if constexpr (std::same_as<T, bool>) fail("as_strided_backward: bool has no gradient");
    else {
      for_each_position(size.plain(), stride.plain(), offset.plain() - low, [&](int64_t i, int64_t at) {
        sums[static_cast<size_t>(at)] =
            static_cast<Sum>(sums[static_cast<size_t>(at)] + static_cast<Sum>(from[i]));
      });
      for_each_position(input_size.plain(), input_stride.plain(), -low,
                        [&](int64_t, int64_t at) { ++sharers[static_cast<size_t>(at)]; });
      for_each_position(input_size.plain(), input_stride.plain(), -low, [&](int64_t i, int64_t at) {
        double share = 1.0 / sharers[static_cast<size_t>(at)];
        if constexpr (requires(Sum s) { s.re; })
          to[i] = sums[static_cast<size_t>(at)] * Sum(static_cast<decltype(Sum::re)>(share));
        else
          to[i] =
              static_cast<T>(static_cast<Sum>(static_cast<double>(sums[static_cast<size_t>(at)]) * share));
      });
    }
  });
  return result;
}
TensorSpec as_strided_backward_meta(const Tensor& grad, SymIntSpan input_size, SymIntSpan, SymIntSpan,
                                    SymIntSpan, const SymInt&) {
  return contiguous_spec(input_size, grad.dtype(), grad.device());
}

Value sizes_value(std::initializer_list<int64_t> sizes) {
  return Value::list_of(std::vector<int64_t>(sizes));
}

}  // namespace

WEFT_OPERATOR(view) = {
    .schema = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    .traits = Traits::kReadsStrides | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&view_kernel>(),
    .kernel = view_kernels<&view_kernel>(),
    .vjp = {.saves = sizes(0), .rule = [](const Vjp& v) { return Grads{reshape(v.grad(), v.sizes(0))}; }},
    .batch = view_batch,
    .inverse = function<&view_inverse>(),
    .samples =
        [] {
          return Samples{{"merge", {f64({2, 3, 4}), sizes_value({6, 4})}},
                         {"infer", {f64({2, 6}), sizes_value({3, -1})}},
                         {"empty", {f64({0, 3}), sizes_value({3, 0})}},
                         {"scalar", {f64({}), sizes_value({1, 1})}}};
        },
};

WEFT_OPERATOR(reshape) = {
    .schema = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&reshape_composite>()},
    .samples =
        [] {
          return Samples{{"view", {f64({2, 6}), sizes_value({3, 4})}},
                         {"copy", {transposed(f64({3, 4})), sizes_value({12})}}};
        },
};

WEFT_OPERATOR(reshape_as) = {
    .schema = "aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&reshape_as_composite>()},
    .samples = [] { return Samples{{"plain", {f64({2, 6}), f64({3, 4})}}}; },
};

WEFT_OPERATOR(view_as) = {
    .schema = "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&view_as_composite>()},
    .samples = [] { return Samples{{"plain", {f64({2, 6}), f64({3, 4})}}}; },
};

WEFT_OPERATOR(flatten_using_ints) = {
    .schema = "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&flatten_composite>()},
    .samples =
        [] {
          return Samples{{"all", {f64({2, 3, 2})}}, {"some", {f64({2, 3, 2}), 1}}, {"scalar", {f64({})}}};
        },
};

WEFT_OPERATOR(unsafe_view) = {
    .schema = "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    .traits = Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&unsafe_view_kernel>(),
    .kernel = {.functional = function<&unsafe_view_kernel>()},
    .vjp = {.saves = sizes(0), .rule = [](const Vjp& v) { return Grads{reshape(v.grad(), v.sizes(0))}; }},
    .batch = view_batch,
    .samples = [] { return Samples{{"plain", {f64({2, 6}), sizes_value({3, 4})}}}; },
};

WEFT_OPERATOR(as_strided) = {
    .schema =
        "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
        "Tensor(a)",
    .inplace =
        "aten::as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
        "Tensor(a!)",
    .traits = Traits::kReadsStrides | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg |
              Traits::kNotBatchable,
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
    .inverse = function<&as_strided_inverse>(),
    .samples =
        [] {
          return Samples{{"diagonal", {f64({3, 3}), sizes_value({3}), sizes_value({4})}},
                         {"overlapping", {f64({6}), sizes_value({3, 2}), sizes_value({1, 1}), 1}}};
        },
};

WEFT_OPERATOR(as_strided_backward) = {
    .schema =
        "weft::as_strided_backward(Tensor grad, SymInt[] input_size, SymInt[] input_stride, SymInt[] size, "
        "SymInt[] stride, SymInt offset) -> Tensor",
    .traits = Traits::kLinear | Traits::kNotBatchable,
    .meta = function<&as_strided_backward_meta>(),
    .kernel = plain<&as_strided_backward_kernel>(),
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
          return Samples{{"overlapping",
                          {f64({3, 2}), sizes_value({6}), sizes_value({1}), sizes_value({3, 2}),
                           sizes_value({1, 1}), 1}}};
        },
};

WEFT_OPERATOR(as_strided_scatter) = {
    .schema =
        "aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor",
    .out =
        "aten::as_strided_scatter.out(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotBatchable,
    .meta = function<&as_strided_scatter_meta>(),
    .kernel = plain<&as_strided_scatter_kernel>(),
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
    .samples =
        [] { return Samples{{"diagonal", {f64({3, 3}), f64({3}), sizes_value({3}), sizes_value({4})}}}; },
};

WEFT_OPERATOR(permute) = {
    .schema = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&permute_kernel>(),
    .kernel = view_kernels<&permute_kernel>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto dims = boxing::Unboxed<IntSpan>(v.arg(1));
                  return Grads{
                      permute(v.grad(), inverse_permutation(permutation(dims.get(), v.grad().dim())))};
                }},
    .batch = permute_batch,
    .inverse = function<&permute_inverse>(),
    .samples =
        [] {
          return Samples{{"three", {f64({2, 3, 4}), sizes_value({2, 0, 1})}},
                         {"negative", {f64({2, 3}), sizes_value({-1, 0})}}};
        },
};

WEFT_OPERATOR(transpose_int) = {
    .schema = "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    .inplace = "aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&transpose_kernel>(),
    .kernel = view_kernels<&transpose_kernel>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{transpose(v.grad(), v.arg<int64_t>(1), v.arg<int64_t>(2))};
                }},
    .batch = transpose_batch,
    .inverse = function<&transpose_inverse>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({2, 3, 4}), 0, 2}},
                         {"negative", {f64({2, 3}), -1, 0}},
                         {"scalar", {f64({}), 0, -1}}};
        },
};

WEFT_OPERATOR(t) = {
    .schema = "aten::t(Tensor(a) self) -> Tensor(a)",
    .inplace = "aten::t_(Tensor(a!) self) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&t_kernel>(),
    .kernel = view_kernels<&t_kernel>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{t(v.grad())}; }},
    .batch = t_batch,
    .inverse = function<&t_inverse>(),
    .samples = [] { return Samples{{"matrix", {f64({2, 3})}}, {"vector", {f64({3})}}}; },
};

WEFT_OPERATOR(movedim_int) = {
    .schema = "aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&movedim_composite>()},
    .samples = [] { return Samples{{"plain", {f64({2, 3, 4}), 0, 2}}}; },
};

WEFT_OPERATOR(expand) = {
    .schema = "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&expand_kernel>(),
    .kernel = view_kernels<&expand_kernel>(),
    .vjp = {.saves = sizes(0), .rule = [](const Vjp& v) { return Grads{sum_to_size(v.grad(), v.sizes(0))}; }},
    .batch = expand_batch,
    .inverse = function<&expand_inverse>(),
    .samples =
        [] {
          return Samples{{"leading", {f64({3}), sizes_value({2, 3})}},
                         {"inner", {f64({2, 1}), sizes_value({2, 4})}},
                         {"keep", {f64({2, 1}), sizes_value({-1, 4})}}};
        },
};

WEFT_OPERATOR(expand_as) = {
    .schema = "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&expand_as_composite>()},
    .samples = [] { return Samples{{"plain", {f64({3}), f64({2, 3})}}}; },
};

WEFT_OPERATOR(squeeze) = {
    .schema = "aten::squeeze(Tensor(a) self) -> Tensor(a)",
    .inplace = "aten::squeeze_(Tensor(a!) self) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&squeeze_kernel>(),
    .kernel = view_kernels<&squeeze_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule = [](const Vjp& v) { return Grads{unsqueeze_to(v.grad(), v.sizes(0), ~uint64_t{0})}; }},
    .batch = squeeze_batch,
    .inverse = function<&squeeze_inverse>(),
    .samples = [] { return Samples{{"plain", {f64({2, 1, 3, 1})}}, {"none", {f64({2})}}}; },
};

WEFT_OPERATOR(squeeze_dim) = {
    .schema = "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
    .inplace = "aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&squeeze_dim_kernel>(),
    .kernel = view_kernels<&squeeze_dim_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto rank = static_cast<int64_t>(v.sizes(0).size());
                  return Grads{unsqueeze_to(v.grad(), v.sizes(0),
                                            uint64_t{1} << normalize_dim(v.arg<int64_t>(1), rank))};
                }},
    .batch = dim_batch<1>,
    .inverse = function<&squeeze_dim_inverse>(),
    .samples = [] { return Samples{{"one", {f64({2, 1, 3}), 1}}, {"other", {f64({2, 1, 3}), 0}}}; },
};

WEFT_OPERATOR(squeeze_dims) = {
    .schema = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    .inplace = "aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&squeeze_dims_kernel>(),
    .kernel = view_kernels<&squeeze_dims_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto dims = boxing::Unboxed<IntSpan>(v.arg(1));
                  uint64_t mask = dim_mask(dims.get(), static_cast<int64_t>(v.sizes(0).size()), false);
                  return Grads{unsqueeze_to(v.grad(), v.sizes(0), mask)};
                }},
    .batch = dims_batch<1>,
    .inverse = function<&squeeze_dims_inverse>(),
    .samples = [] { return Samples{{"two", {f64({1, 2, 1, 3}), sizes_value({0, 2})}}}; },
};

WEFT_OPERATOR(unsqueeze) = {
    .schema = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    .inplace = "aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&unsqueeze_kernel>(),
    .kernel = view_kernels<&unsqueeze_kernel>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(1);
                  return Grads{squeeze(v.grad(), dim < 0 ? dim + v.grad().dim() : dim)};
                }},
    .batch = unsqueeze_batch,
    .inverse = function<&unsqueeze_inverse>(),
    .samples =
        [] {
          return Samples{{"front", {f64({2, 3}), 0}}, {"last", {f64({2, 3}), -1}}, {"scalar", {f64({}), 0}}};
        },
};

}  // namespace weft::ops
