// Views of a part: select, slice, split, unbind, diagonal, with the operators that put a part back.
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/preserved_copy.h"
#include "ops/support/view_geometry.h"

namespace weft::ops {
namespace {

using MaybeInt = std::optional<SymInt>;

Tensor select_kernel(const Tensor& self, int64_t dim, const SymInt& index) {
  require(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim()));
  const SymInt& size = self.sizes()[d];
  if (!index.is_symbolic() && !size.is_symbolic())
    require(index.plain() >= -size.plain() && index.plain() < size.plain(),
            "select(): index {} out of range for tensor of size {} at dimension {}", index.plain(),
            describe_sizes(self.sizes()), d);
  else check((index >= -size) & (index < size), "select(): index out of range");
  SymInts sizes(self.sizes()), strides(self.strides());
  SymInt offset = self.storage_offset() + wrapped_position(index, size) * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return alias_with(self, std::move(sizes), std::move(strides), std::move(offset));
}

Tensor slice_kernel(const Tensor& self, int64_t dim, const MaybeInt& start, const MaybeInt& end,
                    const SymInt& step) {
  require(self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim()));
  SliceRange range = slice_range(self.sizes()[d], start, end, step);
  SymInts sizes(self.sizes()), strides(self.strides());
  SymInt offset = self.storage_offset() + range.start * strides[d];
  sizes[d] = range.length;
  strides[d] = strides[d] * step;
  return alias_with(self, std::move(sizes), std::move(strides), std::move(offset));
}

Tensor narrow_composite(const Tensor& self, int64_t dim, const SymInt& start, const SymInt& length) {
  require(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  require(length.is_symbolic() || length.plain() >= 0, "narrow(): length must be non-negative.");
  SymInt size = self.size(dim);
  bool plain = !start.is_symbolic() && !length.is_symbolic() && !size.is_symbolic();
  if (plain) {
    require(start.plain() >= -size.plain() && start.plain() <= size.plain(),
            "start out of range (expected to be in range of [{}, {}], but got {})", -size.plain(),
            size.plain(), start.plain());
    int64_t first = start.plain() < 0 ? start.plain() + size.plain() : start.plain();
    require(length.plain() <= size.plain() - first, "start ({}) + length ({}) exceeds dimension size ({}).",
            first, length.plain(), size.plain());
    return slice(self, dim, first, first + length.plain(), 1);
  }
  check(length >= 0, "narrow(): length must be non-negative.");
  check((start >= -size) & (start <= size), "narrow(): start out of range");
  SymInt first = wrapped_position(start, size);
  check(first + length <= size, "narrow(): start + length exceeds dimension size");
  return slice(self, dim, first, first + length, 1);
}

// Each view is an object of its own: beyond some millions a number of views is a mistake, and would take all
// memory.
void check_view_count(const char* op, int64_t count) {
  constexpr int64_t kMostViews = int64_t{1} << 24;
  require(count <= kMostViews, "{}: {} parts are more than the {} views that one call gives", op, count,
          kMostViews);
}

std::vector<Tensor> split_with_sizes_kernel(const Tensor& self, SymIntSpan split_sizes, int64_t dim) {
  require(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  int64_t d = normalize_dim(dim, self.dim());
  SymInt total = 0;
  std::vector<Tensor> parts;
  for (const SymInt& length : split_sizes) {
    require(length.is_symbolic() || length.plain() >= 0,
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={}",
            describe_sizes(split_sizes));
    check(length >= 0, "split_with_sizes expects split_sizes have only non-negative entries");
    SymInts sizes(self.sizes());
    sizes[static_cast<size_t>(d)] = length;
    parts.push_back(alias_with(self, sizes, self.strides(), self.storage_offset() + total * self.stride(d)));
    total = total + length;
  }
  SymInt size = self.size(d);
  if (!total.is_symbolic() && !size.is_symbolic())
    require(total.plain() == size.plain(),
            "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension "
            "{}), but got split_sizes={}",
            size.plain(), d, describe_sizes(split_sizes));
  else check(total == size, "split_with_sizes: the sizes must sum to the dimension");
  return parts;
}

// How many parts of this length cover a size, or how long so many parts are.
SymInt ceil_parts(const SymInt& size, const SymInt& part) {
  // The sum is what PyTorch's graphs have; of numbers it may overflow.
  const bool is_symbolic = size.is_symbolic() || part.is_symbolic();
  return is_symbolic ? floor_div(size + part - 1, part) : ceil_div(size, part);
}

SymInts equal_parts(const SymInt& size, const SymInt& part) {
  require(!guard_or(part < 0, false), "split expects split_size be non-negative, but got split_size={}",
          part.to_string());
  if (guard_or(part == 0, false)) {
    require(guard_or(size == 0, false),
            "split_size can only be 0 if dimension size is 0, but got dimension size of {}",
            size.to_string());
    return {SymInt(0)};
  }
  // How many parts there are must be known; how long they are need not.
  const int64_t count = guard_int(max(ceil_parts(size, part), SymInt(1)));
  check_view_count("split", count);
  SymInts sizes(static_cast<size_t>(count), part);
  sizes.back() = size - part * (count - 1);
  return sizes;
}
std::vector<Tensor> split_kernel(const Tensor& self, const SymInt& split_size, int64_t dim) {
  require(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  return split_with_sizes_kernel(self, equal_parts(self.size(dim), split_size), dim);
}
std::vector<Tensor> split_sizes_composite(const Tensor& self, SymIntSpan sizes, int64_t dim) {
  return split_with_sizes(self, sizes, dim);
}
std::vector<Tensor> chunk_composite(const Tensor& self, int64_t chunks, int64_t dim) {
  require(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  require(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  SymInt size = self.size(dim);
  if (!guard_or(size == 0, false)) return split(self, ceil_parts(size, chunks), dim);
  check_view_count("chunk", chunks);
  return split_with_sizes(self, SymInts(static_cast<size_t>(chunks), 0), dim);
}

std::vector<Tensor> unbind_kernel(const Tensor& self, int64_t dim) {
  require(self.dim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  std::vector<Tensor> parts;
  const int64_t count = guard_int(self.size(dim));
  check_view_count("unbind", count);
  for (int64_t i = 0; i < count; ++i) parts.push_back(select_kernel(self, dim, i));
  return parts;
}

Tensor diagonal_kernel(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  auto a = static_cast<size_t>(normalize_dim(dim1, self.dim())),
       b = static_cast<size_t>(normalize_dim(dim2, self.dim()));
  require(a != b, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  SymInts sizes(self.sizes()), strides(self.strides());
  SymInt length = offset >= 0 ? min(sizes[a], sizes[b] - offset) : min(sizes[a] + offset, sizes[b]);
  length = max(length, SymInt(0));
  SymInt start = self.storage_offset();
  if (!guard_or(length == 0, false))
    start = start + (offset >= 0 ? offset * strides[b] : -offset * strides[a]);
  SymInt stride = strides[a] + strides[b];
  for (size_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(length);
  strides.push_back(stride);
  return alias_with(self, std::move(sizes), std::move(strides), start);
}

// --- putting a part back ---------------------------------------------------------------------------------

// A copy of `self` in which the part that `view` picks is replaced by `src`. A fresh result keeps what lies
// between the elements of `self`, too.
template <auto view, typename... A>
struct Scatter {
  static TensorSpec meta(const Tensor& self, const Tensor&, A...) { return preserved_copy_spec(self); }
  static void replace(const Tensor& part, const Tensor& src) {
    require(same_sizes(part.sizes(), src.sizes()),
            "expected src to have a size equal to the slice of self. src size = {}, slice size = {}",
            describe_sizes(src.sizes()), describe_sizes(part.sizes()));
    copy_values(part, src);
  }
  static Tensor functional(const Tensor& self, const Tensor& src, A... args) {
    Tensor result = preserved_copy(self);
    replace(view(result, args...), src);
    return result;
  }
  static void into(const Tensor& self, const Tensor& src, A... args, const Tensor& out) {
    copy_values(out, self);
    replace(view(out, args...), src);
  }
  static constexpr KernelSet kernels() {
    return with_functional<&functional>(structured_exact<&meta, &into>());
  }
};
using SelectScatter = Scatter<&select_kernel, int64_t, const SymInt&>;
using SliceScatter = Scatter<&slice_kernel, int64_t, const MaybeInt&, const MaybeInt&, const SymInt&>;
using DiagonalScatter = Scatter<&diagonal_kernel, int64_t, int64_t, int64_t>;

// Zeros of the sizes that a view was taken of, with the gradient in the part that the view read.
template <const char* op, auto view, typename... A>
struct PartBackward {
  // The sizes of the part: the view itself answers, on nothing but geometry.
  static TensorSpec meta(const Tensor& grad, SymIntSpan sizes, A... args) {
    Tensor whole = allocate(contiguous_spec(sizes, grad.dtype(), kMeta));
    check_expandable(op, "grad_output", grad, view(whole, args...).sizes());
    return contiguous_spec(sizes, grad.dtype(), grad.device());
  }
  static Tensor functional(const Tensor& grad, SymIntSpan sizes, A... args) {
    Tensor result = allocate_contiguous(sizes, grad.dtype(), grad.device());
    into(grad, sizes, args..., result);
    return result;
  }
  static void into(const Tensor& grad, SymIntSpan, A... args, const Tensor& out) {
    Tensor part = view(out, args...);
    check_expandable(op, "grad_output", grad, part.sizes());
    fill_values(out, 0);
    copy_values(part, grad);
  }
  static constexpr KernelSet kernels() {
    return with_functional<&functional>(structured_exact<&meta, &into>());
  }
};
constexpr char kSelectBackward[] = "select_backward", kSliceBackward[] = "slice_backward",
               kDiagonalBackward[] = "diagonal_backward";
using SelectBackward = PartBackward<kSelectBackward, &select_kernel, int64_t, const SymInt&>;
using SliceBackward =
    PartBackward<kSliceBackward, &slice_kernel, int64_t, const SymInt&, const SymInt&, const SymInt&>;
using DiagonalBackward = PartBackward<kDiagonalBackward, &diagonal_kernel, int64_t, int64_t, int64_t>;

// The gradient of a list of parts: the parts joined again, zeros for parts without one.
Tensor join_parts(const Vjp& v, SymIntSpan lengths, int64_t dim) {
  std::vector<Tensor> parts;
  const TensorShape& whole = v.shape(0);
  const int64_t d = normalize_dim(dim, static_cast<int64_t>(whole.sizes.size()));
  for (size_t i = 0; i < lengths.size(); ++i) {
    const Tensor& part = v.grad(static_cast<int>(i));
    SymInts sizes(whole.sizes);
    sizes[static_cast<size_t>(d)] = lengths[i];
    parts.push_back(part.defined() ? part : zeros(sizes, whole.dtype, Layout::kStrided, whole.device));
  }
  return cat(parts, d);
}

// --- batching --------------------------------------------------------------------------------------------

int64_t shifted(int64_t dim, const Tensor& self) { return normalize_dim(dim, self.dim() - 1) + 1; }

Batched list_batch(const Batch& call, const Tensor& self, int dim_argument) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = self;
  args[static_cast<size_t>(dim_argument)] = shifted(call.arg<int64_t>(dim_argument), self);
  Value parts = weft::call(call.op(), args);
  return {parts, std::vector<int64_t>(parts.elements().size(), 0)};
}
Batched split_batch(const Batch& call) {
  return list_batch(call, batch_first(call.tensor(0), call.batch_dim(0)), 2);
}
Batched unbind_batch(const Batch& call) {
  return list_batch(call, batch_first(call.tensor(0), call.batch_dim(0)), 1);
}
Batched diagonal_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  return {diagonal(self, call.arg<int64_t>(1), shifted(call.arg<int64_t>(2), self),
                   shifted(call.arg<int64_t>(3), self)),
          {0}};
}
// (self, src, dims...): both get the batch dim in front.
template <int first_dim, int last_dim = first_dim>
Batched scatter_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  Tensor self = with_batch_first(call.tensor(0), call.batch_dim(0), call.batch_size());
  args[0] = self;
  args[1] = with_batch_first(call.tensor(1), call.batch_dim(1), call.batch_size());
  for (int i = first_dim; i <= last_dim; ++i)
    args[static_cast<size_t>(i)] = shifted(call.arg<int64_t>(i), self);
  return {weft::call(call.op(), args), {0}};
}
// (grad, sizes, dims...)
template <int first_dim, int last_dim = first_dim>
Batched part_backward_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  ValueList sizes{call.batch_size()};
  for (const Value& size : call.args()[1].elements()) sizes.push_back(size);
  auto rank = static_cast<int64_t>(sizes.size()) - 1;
  args[1] = Value::list(sizes);
  for (int i = first_dim; i <= last_dim; ++i)
    args[static_cast<size_t>(i)] = normalize_dim(call.arg<int64_t>(i), rank) + 1;
  return {weft::call(call.op(), args), {0}};
}

Tensor select_inverse(const Tensor& base, const Tensor& mutated, int64_t dim, const SymInt& index) {
  return select_scatter(base, mutated, dim, index);
}
Tensor slice_inverse_of(const Tensor& base, const Tensor& mutated, int64_t dim, const MaybeInt& start,
                        const MaybeInt& end, const SymInt& step) {
  return slice_scatter(base, mutated, dim, start, end, step);
}
Tensor diagonal_inverse(const Tensor& base, const Tensor& mutated, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return diagonal_scatter(base, mutated, offset, dim1, dim2);
}
// Part `output` of several is a slice.
Tensor split_with_sizes_inverse(const Tensor& base, const Tensor& mutated, int64_t output,
                                SymIntSpan split_sizes, int64_t dim) {
  SymInt start = 0;
  for (size_t i = 0; i < static_cast<size_t>(output); ++i) start = start + split_sizes[i];
  return slice_scatter(base, mutated, dim, start, start + split_sizes[static_cast<size_t>(output)], 1);
}
Tensor split_inverse(const Tensor& base, const Tensor& mutated, int64_t output, const SymInt& split_size,
                     int64_t dim) {
  SymInt start = split_size * output;
  return slice_scatter(base, mutated, dim, start, min(start + split_size, base.size(dim)), 1);
}
Tensor unbind_inverse(const Tensor& base, const Tensor& mutated, int64_t output, int64_t dim) {
  return select_scatter(base, mutated, dim, output);
}

}  // namespace

WEFT_OPERATOR(select_int) = {
    .schema = "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&select_kernel>(),
    .kernel = view_kernels<&select_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{select_backward(v.grad(), v.sizes(0), v.arg<int64_t>(1), v.arg<SymInt>(2))};
                }},
    .batch = dim_batch<1>,
    .inverse = function<&select_inverse>(),
    .samples = [] { return Samples{{"row", {f64({3, 4}), 0, 1}}, {"last_column", {f64({3, 4}), 1, -1}}}; },
};

WEFT_OPERATOR(select_backward) = {
    .schema =
        "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    .out =
        "aten::select_backward.out(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&SelectBackward::meta>(),
    .kernel = SelectBackward::kernels(),
    .vjp = {.rule =
                [](const Vjp& v) { return Grads{select(v.grad(), v.arg<int64_t>(2), v.arg<SymInt>(3))}; }},
    .batch = part_backward_batch<2>,
    .decompose = function<&select_backward_parts>(),
    .samples = [] { return Samples{{"row", {f64({4}), ints({3, 4}), 0, 1}}}; },
};

WEFT_OPERATOR(select_scatter) = {
    .schema = "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    .out =
        "aten::select_scatter.out(Tensor self, Tensor src, int dim, SymInt index, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&SelectScatter::meta>(),
    .kernel = SelectScatter::kernels(),
    .vjp = {.saves = sizes(1),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(2);
                  SymInt index = v.arg<SymInt>(3);
                  return Grads{select_scatter(v.grad(), new_zeros(v.grad(), v.sizes(1)), dim, index),
                               select(v.grad(), dim, index)};
                }},
    .batch = scatter_batch<2>,
    .decompose = function<&select_scatter_parts>(),
    .samples = [] { return Samples{{"row", {f64({3, 4}), f64({4}), 0, 1}}}; },
};

WEFT_OPERATOR(slice_tensor) = {
    .schema =
        "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) "
        "-> Tensor(a)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&slice_kernel>(),
    .kernel = view_kernels<&slice_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto end = v.arg<MaybeInt>(3);
                  return Grads{slice_backward(v.grad(), v.sizes(0), v.arg<int64_t>(1),
                                              v.arg<MaybeInt>(2).value_or(0), end.value_or(INT64_MAX),
                                              v.arg<SymInt>(4))};
                }},
    .batch = dim_batch<1>,
    .inverse = function<&slice_inverse_of>(),
    .samples =
        [] {
          return Samples{{"middle", {f64({5, 3}), 0, 1, 4}},
                         {"step", {f64({3, 6}), 1, 0, 6, 2}},
                         {"negative", {f64({5}), 0, -3, -1}},
                         {"empty", {f64({5}), 0, 4, 2}}};
        },
};

WEFT_OPERATOR(slice_backward) = {
    .schema =
        "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
        "SymInt step) -> Tensor",
    .out =
        "aten::slice_backward.out(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt "
        "end, SymInt step, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&SliceBackward::meta>(),
    .kernel = SliceBackward::kernels(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{slice(v.grad(), v.arg<int64_t>(2), v.arg<SymInt>(3), v.arg<SymInt>(4),
                                     v.arg<SymInt>(5))};
                }},
    .batch = part_backward_batch<2>,
    .decompose = function<&slice_backward_parts>(),
    .samples = [] { return Samples{{"middle", {f64({3, 3}), ints({5, 3}), 0, 1, 4, 1}}}; },
};

WEFT_OPERATOR(slice_scatter) = {
    .schema =
        "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1) -> Tensor",
    .out =
        "aten::slice_scatter.out(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
        "SymInt step=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&SliceScatter::meta>(),
    .kernel = SliceScatter::kernels(),
    .vjp = {.saves = sizes(1),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(2);
                  auto start = v.arg<MaybeInt>(3), end = v.arg<MaybeInt>(4);
                  SymInt step = v.arg<SymInt>(5);
                  return Grads{
                      slice_scatter(v.grad(), new_zeros(v.grad(), v.sizes(1)), dim, start, end, step),
                      slice(v.grad(), dim, start, end, step)};
                }},
    .batch = scatter_batch<2>,
    .samples = [] { return Samples{{"middle", {f64({5, 3}), f64({3, 3}), 0, 1, 4}}}; },
};

WEFT_OPERATOR(narrow) = {
    .schema = "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&narrow_composite>()},
    .samples = [] { return Samples{{"plain", {f64({5, 3}), 0, 1, 2}}}; },
};

WEFT_OPERATOR(split_tensor) = {
    .schema = "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&split_kernel>(),
    .kernel = view_kernels<&split_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(2);
                  SymInt size = v.sizes(
                      0)[static_cast<size_t>(normalize_dim(dim, static_cast<int64_t>(v.sizes(0).size())))];
                  return Grads{join_parts(v, equal_parts(size, v.arg<SymInt>(1)), dim)};
                }},
    .batch = split_batch,
    .decompose = function<&split_parts>(),
    .inverse = function<&split_inverse>(),
    .samples = [] { return Samples{{"even", {f64({4, 3}), 2}}, {"rest", {f64({3, 5}), 2, 1}}}; },
};

WEFT_OPERATOR(split_sizes) = {
    .schema = "aten::split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&split_sizes_composite>()},
    .samples = [] { return Samples{{"plain", {f64({5, 2}), ints({2, 3})}}}; },
};

WEFT_OPERATOR(split_with_sizes) = {
    .schema = "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&split_with_sizes_kernel>(),
    .kernel = view_kernels<&split_with_sizes_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto lengths = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{join_parts(v, lengths.get(), v.arg<int64_t>(2))};
                }},
    .batch = split_batch,
    .inverse = function<&split_with_sizes_inverse>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({5, 2}), ints({2, 3})}},
                         {"inner", {f64({2, 5}), ints({1, 0, 4}), 1}}};
        },
};

WEFT_OPERATOR(chunk) = {
    .schema = "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&chunk_composite>()},
    .samples = [] { return Samples{{"plain", {f64({5, 2}), 2}}}; },
};

WEFT_OPERATOR(unbind_int) = {
    .schema = "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&unbind_kernel>(),
    .kernel = view_kernels<&unbind_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = normalize_dim(v.arg<int64_t>(1), static_cast<int64_t>(v.sizes(0).size()));
                  int64_t count = guard_int(v.sizes(0)[static_cast<size_t>(dim)]);
                  SymInts part(v.sizes(0));
                  part.erase(static_cast<size_t>(dim));
                  const TensorShape& whole = v.shape(0);
                  auto none = [&] {
                    return expand(zeros({}, whole.dtype, Layout::kStrided, whole.device), part);
                  };
                  std::vector<Tensor> parts;
                  for (int i = 0; i < count; ++i) parts.push_back(v.grad(i).defined() ? v.grad(i) : none());
                  return Grads{stack(parts, v.arg<int64_t>(1))};
                }},
    .batch = unbind_batch,
    .decompose = function<&unbind_parts>(),
    .inverse = function<&unbind_inverse>(),
    .samples = [] { return Samples{{"rows", {f64({3, 2})}}, {"columns", {f64({3, 2}), -1}}}; },
};

WEFT_OPERATOR(diagonal) = {
    .schema = "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    .traits = Traits::kCore | Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&diagonal_kernel>(),
    .kernel = view_kernels<&diagonal_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{diagonal_backward(v.grad(), v.sizes(0), v.arg<int64_t>(1), v.arg<int64_t>(2),
                                                 v.arg<int64_t>(3))};
                }},
    .batch = diagonal_batch,
    .inverse = function<&diagonal_inverse>(),
    .samples =
        [] {
          return Samples{
              {"main", {f64({3, 3})}}, {"upper", {f64({3, 4}), 1}}, {"dims", {f64({2, 3, 3}), -1, 1, 2}}};
        },
};

WEFT_OPERATOR(diagonal_backward) = {
    .schema =
        "aten::diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) "
        "-> Tensor",
    .out =
        "aten::diagonal_backward.out(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int "
        "dim2, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&DiagonalBackward::meta>(),
    .kernel = DiagonalBackward::kernels(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{diagonal(v.grad(), v.arg<int64_t>(2), v.arg<int64_t>(3), v.arg<int64_t>(4))};
                }},
    .batch = part_backward_batch<3, 4>,
    .decompose = function<&diagonal_backward_parts>(),
    .samples = [] { return Samples{{"main", {f64({3}), ints({3, 3}), 0, 0, 1}}}; },
};

WEFT_OPERATOR(diagonal_scatter) = {
    .schema =
        "aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .out =
        "aten::diagonal_scatter.out(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&DiagonalScatter::meta>(),
    .kernel = DiagonalScatter::kernels(),
    .vjp = {.saves = sizes(1),
            .rule =
                [](const Vjp& v) {
                  int64_t offset = v.arg<int64_t>(2), a = v.arg<int64_t>(3), b = v.arg<int64_t>(4);
                  return Grads{diagonal_scatter(v.grad(), new_zeros(v.grad(), v.sizes(1)), offset, a, b),
                               diagonal(v.grad(), offset, a, b)};
                }},
    .batch = scatter_batch<3, 4>,
    .samples = [] { return Samples{{"main", {f64({3, 3}), f64({3})}}}; },
};

}  // namespace weft::ops
