// Views by sizes, strides and dims: the same memory, seen differently.
#include <algorithm>

#include "ops/decompositions/decompositions.h"
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
  // As it was asked for, where that holds for other sizes.
  if (strides) return view(self, self.is_contiguous() ? SymIntSpan(shape) : SymIntSpan(target));
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
  if (self.dim() == 0) return alias(self);
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
std::vector<Tensor> broadcast_composite(TensorSpan tensors) {
  SymInts sizes;
  for (const Tensor& tensor : tensors) sizes = broadcast_sizes(sizes, tensor.sizes());
  std::vector<Tensor> all;
  for (const Tensor& tensor : tensors) {
    const bool fits = std::ranges::equal(
        tensor.sizes(), sizes, [](const SymInt& a, const SymInt& b) { return guard_or(a == b, false); });
    all.push_back(fits ? tensor : expand(tensor, sizes));
  }
  return all;
}

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
  // What is inferred for one example is for all of them; without elements it is not.
  if (!guard_or(numel == 0, false)) target = SymInts(size.get());
  return {
      weft::call(call.op(), std::vector<Value>{self, Value::list_of(with_batch(self.sizes()[0], target))}),
      {0}};
}
Batched expand_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  SymIntSpan size = holder.get();
  SymInts padded(self.sizes());
  while (padded.size() - 1 < size.size()) padded.insert(1, 1);
  self = view(self, padded);
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
  if (rank == 0) return {call.tensor(0), {call.batch_dim(0)}};
  return {transpose(self, a + 1, b + 1), {0}};
}
Batched t_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  require(self.dim() <= 3, "t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim() - 1);
  if (self.dim() == 1) return {call.tensor(0), {call.batch_dim(0)}};
  return {transpose(self, 1, self.dim() - 1), {0}};
}
Batched squeeze_batch(const Batch& call) {
  const Tensor self = call.tensor(0);
  SymInts sizes;
  int64_t batch_dim = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == call.batch_dim(0)) batch_dim = static_cast<int64_t>(sizes.size());
    else if (guard_or(self.size(d) == 1, false)) continue;
    sizes.push_back(self.size(d));
  }
  return {view(self, sizes), {batch_dim}};
}
Batched squeeze_in_front(const Batch& call, IntSpan dims) {
  const Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  const int64_t rank = self.dim() - 1;
  Ints shifted;
  for (int64_t dim : dims) shifted.push_back(normalize_dim(dim, rank) + 1);
  if (rank == 0) return {alias(self), {0}};
  return {squeeze(self, IntSpan(shifted)), {0}};
}
// No dims in the list are no dims to squeeze.
Batched squeeze_dims_batch(const Batch& call) {
  if (call.args()[1].elements().empty()) return {alias(call.tensor(0)), {call.batch_dim(0)}};
  return squeeze_in_front(call, boxing::Unboxed<IntSpan>(call.args()[1]).get());
}
Batched squeeze_dim_batch(const Batch& call) {
  const int64_t dim = call.arg<int64_t>(1);
  return squeeze_in_front(call, IntSpan(&dim, 1));
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
// The copies of an element share its memory. A write to all of them at once is refused before it comes here;
// one to some copy of it (`x.expand(2, 3)[0].add_(1)`) is a write to the element: of the copies, the one that
// changed counts.
Tensor expand_inverse(const Tensor& base, const Tensor& mutated, SymIntSpan, bool) {
  if (guard_or(mutated.numel() == 0, false)) return base;
  const int64_t added = mutated.dim() - base.dim();
  Tensor kept = mutated, changed;
  for (int64_t d = 0; d < mutated.dim(); ++d) {
    if (d >= added && base.size(d - added).same_as(mutated.size(d))) continue;
    if (!changed.defined()) changed = ne(mutated, expand(base, mutated.sizes()));
    kept = gather(kept, d, argmax(changed.to(kUInt8), d, true));
    changed = any(changed, d, true);
  }
  return reshape_composite(kept, base.sizes());
}

}  // namespace

WEFT_OPERATOR(view) = {
    .schema = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    .traits = Traits::kCore | Traits::kReadsStrides | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&view_kernel>(),
    .kernel = view_kernels<&view_kernel>(),
    .vjp = {.saves = sizes(0), .rule = [](const Vjp& v) { return Grads{reshape(v.grad(), v.sizes(0))}; }},
    .batch = view_batch,
    .inverse = function<&view_inverse>(),
    .samples =
        [] {
          return Samples{{"merge", {f64({2, 3, 4}), ints({6, 4})}},
                         {"infer", {f64({2, 6}), ints({3, -1})}},
                         {"empty", {f64({0, 3}), ints({3, 0})}},
                         {"scalar", {f64({}), ints({1, 1})}}};
        },
};

WEFT_OPERATOR(reshape) = {
    .schema = "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&reshape_composite>()},
    .samples =
        [] {
          return Samples{{"view", {f64({2, 6}), ints({3, 4})}},
                         {"copy", {transposed(f64({3, 4})), ints({12})}}};
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
    .decompose = function<&unsafe_view_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 6}), ints({3, 4})}}}; },
};

WEFT_OPERATOR(permute) = {
    .schema = "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
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
          return Samples{{"three", {f64({2, 3, 4}), ints({2, 0, 1})}},
                         {"negative", {f64({2, 3}), ints({-1, 0})}}};
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
    .decompose = function<&transpose_parts>(),
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
    .decompose = function<&t_parts>(),
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
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&expand_kernel>(),
    .kernel = view_kernels<&expand_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  const bool is_same = same_sizes(v.grad().sizes(), v.sizes(0));
                  return Grads{is_same ? v.grad() : sum_to_size(v.grad(), v.sizes(0))};
                }},
    .batch = expand_batch,
    .inverse = function<&expand_inverse>(),
    .samples =
        [] {
          return Samples{{"leading", {f64({3}), ints({2, 3})}},
                         {"inner", {f64({2, 1}), ints({2, 4})}},
                         {"keep", {f64({2, 1}), ints({-1, 4})}}};
        },
};

WEFT_OPERATOR(expand_as) = {
    .schema = "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&expand_as_composite>()},
    .samples = [] { return Samples{{"plain", {f64({3}), f64({2, 3})}}}; },
};

WEFT_OPERATOR(broadcast_tensors) = {
    .schema = "aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&broadcast_composite>()},
    .samples =
        [] {
          return Samples{{"rows", {Value::list({f64({3}), f64({2, 3}), f64({2, 1})})}},
                         {"one", {Value::list({f64({2, 3})})}}};
        },
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
    .decompose = function<&squeeze_parts>(),
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
    .batch = squeeze_dim_batch,
    .decompose = function<&squeeze_dim_parts>(),
    .inverse = function<&squeeze_dim_inverse>(),
    .samples = [] { return Samples{{"one", {f64({2, 1, 3}), 1}}, {"other", {f64({2, 1, 3}), 0}}}; },
};

WEFT_OPERATOR(squeeze_dims) = {
    .schema = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
    .inplace = "aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&squeeze_dims_kernel>(),
    .kernel = view_kernels<&squeeze_dims_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto dims = boxing::Unboxed<IntSpan>(v.arg(1));
                  uint64_t mask = dim_mask(dims.get(), static_cast<int64_t>(v.sizes(0).size()), false);
                  return Grads{unsqueeze_to(v.grad(), v.sizes(0), mask)};
                }},
    .batch = squeeze_dims_batch,
    .inverse = function<&squeeze_dims_inverse>(),
    .samples =
        [] {
          return Samples{{"two", {f64({1, 2, 1, 3}), ints({0, 2})}},
                         {"none", {f64({1, 2, 1}), ints({})}},
                         {"scalar", {f64({}), ints({})}}};
        },
};

WEFT_OPERATOR(unsqueeze) = {
    .schema = "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
    .inplace = "aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&unsqueeze_kernel>(),
    .kernel = view_kernels<&unsqueeze_kernel>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{squeeze(v.grad(), v.arg<int64_t>(1))}; }},
    .batch = unsqueeze_batch,
    .inverse = function<&unsqueeze_inverse>(),
    .samples =
        [] {
          return Samples{{"front", {f64({2, 3}), 0}}, {"last", {f64({2, 3}), -1}}, {"scalar", {f64({}), 0}}};
        },
};

}  // namespace weft::ops
