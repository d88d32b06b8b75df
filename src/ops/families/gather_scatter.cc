// Elements picked and placed by index along a dim.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

void check_index_type(const char* op, const Tensor& index) {
  if (guard_or(index.numel() == 0, false)) return;
  require(index.dtype() == kInt64 || index.dtype() == kInt32,
          "{}(): Expected dtype int64 for index, but got {}", op, dtype_name(index.dtype()));
}
// A 0-dim tensor counts as a vector of one.
int64_t rank_of(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }

void check_gather(const char* op, const Tensor& self, int64_t dim, const Tensor& index) {
  int64_t d = normalize_dim(dim, self.dim());
  check_index_type(op, index);
  require(guard_or(index.numel() == 0, false) || rank_of(index) == rank_of(self),
          "Index tensor must have the same number of dimensions as {} tensor: {} and {}",
          op[0] == 'g' ? "input" : "self", describe(index), describe(self));
  for (int64_t i = 0; i < std::min(index.dim(), self.dim()); ++i)
    if (i != d && !guard_or(index.numel() == 0, false) && !guard_or(index.size(i) <= self.size(i), true))
      fail(
          "Size does not match at dimension {} expected index {} to be no larger than self {} apart from "
          "dimension {}",
          i, describe_sizes(index.sizes()), describe_sizes(self.sizes()), d);
}

// Visits every element of `index`: f(its number in row-major order, the element of `self` it names). Both
// tensors have row-major memory of their own.
template <typename F>
void for_each_index(const char* op, const Tensor& self, int64_t dim, const Tensor& index, F f) {
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim()));
  Ints sizes(index.dim() == 0 ? Ints{1} : Ints(index.plain_sizes())),
      self_sizes(self.dim() == 0 ? Ints{1} : Ints(self.plain_sizes()));
  Ints strides(self_sizes.size(), 1), at(sizes.size(), 0);
  for (size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * self_sizes[i + 1];
  const int64_t* values = index.data<int64_t>();
  for (int64_t i = 0; i < index.plain_numel(); ++i) {
    int64_t chosen = values[i];
    require(chosen >= 0 && chosen < self_sizes[d],
            "{}(): index {} is out of bounds for dimension {} with size {}", op, chosen, d, self_sizes[d]);
    int64_t element = 0;
    for (size_t k = 0; k < at.size(); ++k) element += (k == d ? chosen : at[k]) * strides[k];
    f(i, element);
    for (size_t k = at.size(); k-- > 0;) {
      if (++at[k] < sizes[k]) break;
      at[k] = 0;
    }
  }
}

Tensor dense(const Tensor& t, DType dtype) {
  if (t.is_contiguous() && t.dtype() == dtype) return t;
  Tensor copy = allocate_contiguous(t.sizes(), dtype);
  copy_values(copy, t);
  return copy;
}
Tensor fresh_copy(const Tensor& t) {
  Tensor copy = allocate_contiguous(t.sizes(), t.dtype());
  copy_values(copy, t);
  return copy;
}

TensorSpec gather_meta(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_gather("gather", self, dim, index);
  return contiguous_spec(index.sizes(), self.dtype(), self.device());
}
void gather_into(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  Tensor from = dense(self, self.dtype()), at = dense(index, kInt64),
         result = allocate_contiguous(index.sizes(), self.dtype());
  visit_dtype(self.dtype(), [&]<typename T>() {
    const T* source = static_cast<const T*>(from.raw_data());
    T* target = static_cast<T*>(result.raw_data());
    for_each_index("gather", self, dim, at, [&](int64_t i, int64_t element) { target[i] = source[element]; });
  });
  copy_values(out, result);
}

void check_scatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_gather(op, self, dim, index);
  if (!src.defined()) return;
  require(self.dtype() == src.dtype(),
          "{}(): Expected self.dtype to be equal to src.dtype, but they are {} and {}", op,
          dtype_name(self.dtype()), dtype_name(src.dtype()));
  require(guard_or(index.numel() == 0, false) || rank_of(src) == rank_of(index),
          "Index tensor must have the same number of dimensions as src tensor: {} and {}", describe(index),
          describe(src));
  for (int64_t i = 0; i < std::min(index.dim(), src.dim()); ++i)
    if (!guard_or(index.numel() == 0, false) && !guard_or(index.size(i) <= src.size(i), true))
      fail(
          "Expected index {} to be no larger than self {} apart from dimension {} and to be no larger size "
          "than src {}",
          describe_sizes(index.sizes()), describe_sizes(self.sizes()), normalize_dim(dim, self.dim()),
          describe_sizes(src.sizes()));
}
// The part of src that the index covers, in row-major memory.
Tensor covered(const Tensor& src, const Tensor& index) {
  if (src.dim() == 0 || index.dim() == 0) return dense(src, src.dtype());
  Tensor part = alias_with(src, index.sizes(), src.strides(), src.storage_offset()),
         copy = allocate_contiguous(index.sizes(), src.dtype());
  copy_values(copy, part);
  return copy;
}
enum class Combine { kReplace, kAdd, kMultiply };
template <typename T>
T combined(T a, T b, Combine how) {
  if (how == Combine::kReplace) return b;
  if constexpr (std::same_as<T, bool>) return how == Combine::kAdd ? (a || b) : (a && b);
  else if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>)
    return T(how == Combine::kAdd ? float(a) + float(b) : float(a) * float(b));
  else return static_cast<T>(how == Combine::kAdd ? a + b : a * b);
}
void scatter_values(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    Combine how, const Tensor& out) {
  Tensor at = dense(index, kInt64), result = fresh_copy(self),
         from = src.dim() == 0 && index.dim() != 0 ? src : covered(src, index);
  bool single = from.plain_numel() == 1 && at.plain_numel() != 1;
  visit_dtype(self.dtype(), [&]<typename T>() {
    const T* source = static_cast<const T*>(from.raw_data());
    T* target = static_cast<T*>(result.raw_data());
    for_each_index(op, self, dim, at, [&](int64_t i, int64_t element) {
      target[element] = combined(target[element], source[single ? 0 : i], how);
    });
  });
  copy_values(out, result);
}
TensorSpec like(const Tensor& self) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), contiguous_strides(self.sizes())};
}

TensorSpec scatter_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
  return like(self);
}
void scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  const Tensor& out) {
  scatter_values("scatter", self, dim, index, src, Combine::kReplace, out);
}
TensorSpec scatter_add_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter_add", self, dim, index, src);
  return like(self);
}
void scatter_add_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  scatter_values("scatter_add", self, dim, index, src, Combine::kAdd, out);
}
Tensor typed_number(const Scalar& value, DType dtype) {
  Tensor number = allocate_contiguous({}, dtype);
  copy_values(number, wrapped_number(value));
  return number;
}
TensorSpec scatter_value_meta(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
  check_scatter("scatter", self, dim, index, Tensor());
  return like(self);
}
void scatter_value_into(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                        const Tensor& out) {
  scatter_values("scatter", self, dim, index, typed_number(value, self.dtype()), Combine::kReplace, out);
}
Combine combine_named(std::string_view reduce) {
  require(reduce == "add" || reduce == "multiply",
          "reduce argument must be either add or multiply, but got '{}'", reduce);
  return reduce == "add" ? Combine::kAdd : Combine::kMultiply;
}
TensorSpec scatter_reduce_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                               std::string_view reduce) {
  combine_named(reduce);
  return scatter_meta(self, dim, index, src);
}
void scatter_reduce_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         std::string_view reduce, const Tensor& out) {
  scatter_values("scatter", self, dim, index, src, combine_named(reduce), out);
}
TensorSpec scatter_value_reduce_meta(const Tensor& self, int64_t dim, const Tensor& index,
                                     const Scalar& value, std::string_view reduce) {
  combine_named(reduce);
  return scatter_value_meta(self, dim, index, value);
}
void scatter_value_reduce_into(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                               std::string_view reduce, const Tensor& out) {
  scatter_values("scatter", self, dim, index, typed_number(value, self.dtype()), combine_named(reduce), out);
}

// --- index_select
// ---------------------------------------------------------------------------------------------------------------

TensorSpec index_select_meta(const Tensor& self, int64_t dim, const Tensor& index) {
  int64_t d = normalize_dim(dim, self.dim());
  require(index.dim() <= 1, "index_select(): Index is supposed to be a vector, but it is {}",
          describe(index));
  check_index_type("index_select", index);
  require(self.dim() > 0 || guard_or(index.numel() == 1, true),
          "index_select(): Index to scalar can have only 1 value, got {} value(s)",
          index.is_symbolic() ? 0 : index.plain_numel());
  SymInts sizes(self.sizes());
  if (self.dim() > 0) sizes[static_cast<size_t>(d)] = index.numel();
  return contiguous_spec(sizes, self.dtype(), self.device());
}
void index_select_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  Tensor at = dense(index, kInt64);
  int64_t size = self.dim() == 0 ? 1 : guard_int(self.size(dim));
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim()));
  for (int64_t i = 0; i < at.plain_numel(); ++i) {
    int64_t chosen = at.data<int64_t>()[i];
    require(chosen >= 0 && chosen < size, "index out of range in self: {} for dimension {} with size {}",
            chosen, d, size);
    if (self.dim() == 0) {
      copy_values(out, self);
      continue;
    }
    SymInts sizes(self.sizes()), out_sizes(out.sizes());
    sizes[d] = 1;
    out_sizes[d] = 1;
    copy_values(alias_with(out, out_sizes, out.strides(), out.storage_offset() + i * out.strides()[d]),
                alias_with(self, sizes, self.strides(), self.storage_offset() + chosen * self.strides()[d]));
  }
}
TensorSpec index_add_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                          const Scalar&) {
  normalize_dim(dim, self.dim());
  require(index.dim() <= 1, "index_add_(): Index is supposed to be a vector, but it is {}", describe(index));
  check_index_type("index_add_", index);
  require(self.dtype() == source.dtype(),
          "index_add_(): self ({}) and source ({}) must have the same scalar type", dtype_name(self.dtype()),
          dtype_name(source.dtype()));
  if (self.dim() > 0 && source.dim() > 0 && !guard_or(source.size(dim) == index.numel(), true))
    fail("index_add_(): Number of indices should be equal to source.size(dim): source {}, index {}",
         describe(source), describe(index));
  if (source.dim() != self.dim())
    fail(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape "
        "= {} source.shape = {}",
        describe_sizes(self.sizes()), describe_sizes(source.sizes()));
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != normalize_dim(dim, self.dim()) && !guard_or(self.size(i) == source.size(i), true))
      fail(
          "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
          "self.shape = {} source.shape = {}",
          describe_sizes(self.sizes()), describe_sizes(source.sizes()));
  return like(self);
}
void index_add_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    const Scalar& alpha, const Tensor& out) {
  Tensor at = dense(index, kInt64), result = fresh_copy(self);
  auto d = static_cast<size_t>(normalize_dim(dim, self.dim()));
  int64_t size = self.dim() == 0 ? 1 : self.plain_sizes()[d];
  cpu::ParamValue param = param_of(alpha, self.dtype());
  for (int64_t i = 0; i < at.plain_numel(); ++i) {
    int64_t chosen = at.data<int64_t>()[i];
    require(chosen >= 0 && chosen < size, "index out of range in self: {} for dimension {} with size {}",
            chosen, d, size);
    Tensor target = result, from = source;
    if (self.dim() > 0) {
      SymInts sizes(result.sizes()), source_sizes(source.sizes());
      sizes[d] = 1;
      if (source.dim() > 0) source_sizes[d] = 1;
      target =
          alias_with(result, sizes, result.strides(), result.storage_offset() + chosen * result.strides()[d]);
      if (source.dim() > 0)
        from = alias_with(source, source_sizes, source.strides(),
                          source.storage_offset() + i * source.strides()[d]);
    }
    run_pointwise(cpu::kAddAlpha, self.dtype(), target, {&target, &from}, {&param, 1});
  }
  copy_values(out, result);
}

Tensor index_select_backward_composite(const Tensor& grad, SymIntSpan self_sizes, int64_t dim,
                                       const Tensor& index) {
  return index_add(new_zeros(grad, self_sizes), dim, index, grad);
}

// --- masked_fill
// ------------------------------------------------------------------------------------------------------------------

void check_mask(const Tensor& mask) {
  require(mask.dtype() == kBool, "masked_fill only supports boolean masks, but got mask with dtype {}",
          dtype_name(mask.dtype()));
}
TensorSpec masked_fill_tensor_meta(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  require(value.dim() == 0,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
          value.dim());
  require(can_cast(value.dtype(), self.dtype()), "value cannot be converted to type {} without overflow",
          dtype_name(self.dtype()));
  SymInts sizes = broadcast_sizes(self.sizes(), mask.sizes());
  return {self.dtype(), self.device(), sizes, pointwise_strides({&self, &mask}, sizes)};
}
void masked_fill_tensor_into(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out) {
  run_pointwise(cpu::kWhere, self.dtype(), out, {&mask, &value, &self});
}
TensorSpec masked_fill_meta(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  require(!value.is_complex() || self.is_complex(), "value cannot be converted to type {} without overflow",
          dtype_name(self.dtype()));
  SymInts sizes = broadcast_sizes(self.sizes(), mask.sizes());
  return {self.dtype(), self.device(), sizes, pointwise_strides({&self, &mask}, sizes)};
}
void masked_fill_into(const Tensor& self, const Tensor& mask, const Scalar& value, const Tensor& out) {
  masked_fill_tensor_into(self, mask, wrapped_number(value), out);
}

// --- batching
// ----------------------------------------------------------------------------------------------------------------------

// All tensors batched in front, the dim counted behind.
template <int tensor_a, int tensor_b = -1, int tensor_c = -1>
Batched along_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  int64_t rank = 0;
  for (int i : {tensor_a, tensor_b, tensor_c})
    if (i >= 0) rank = std::max(rank, logical_rank(call.tensor(i), call.batch_dim(i)));
  if (rank == 0) return loop_batch(call);
  for (int i : {tensor_a, tensor_b, tensor_c})
    if (i >= 0)
      args[static_cast<size_t>(i)] = with_batch_first(call.tensor(i), call.batch_dim(i), call.batch_size());
  args[1] = normalize_dim(call.arg<int64_t>(1), rank) + 1;
  return {weft::call(call.op(), args), {0}};
}

Samples scatter_samples() {
  return {{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4), f64({3, 2})}},
          {"vector", {f64({5}), 0, i64({3}, 0, 5), f64({3})}}};
}

}  // namespace

WEFT_OPERATOR(gather) = {
    .schema = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .out =
        "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&gather_meta>(),
    .kernel = structured_exact<&gather_meta, &gather_into>(),
    .vjp = {.saves = inputs(2) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      scatter_add(new_zeros(v.grad(), v.sizes(0)), v.arg<int64_t>(1), v.input(2), v.grad()),
                      Tensor()};
                }},
    .batch = along_batch<0, 2>,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4)}},
                         {"columns", {f64({3, 4}), 0, i64({2, 4}, 0, 3)}},
                         {"empty", {f64({3}), 0, i64({0})}}};
        },
};

WEFT_OPERATOR(scatter_src) = {
    .schema = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .inplace = "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .out =
        "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .meta = function<&scatter_meta>(),
    .kernel = structured<&scatter_meta, &scatter_into>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(1);
                  return Grads{scatter(v.grad(), dim, v.input(2), 0), Tensor(),
                               gather(v.grad(), dim, v.input(2))};
                }},
    .batch = along_batch<0, 2, 3>,
    .samples = [] { return Samples{{"vector", {f64({5}), 0, i64({3}, 0, 5), f64({3})}}}; },
};

WEFT_OPERATOR(scatter_value) = {
    .schema = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .inplace = "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    .out =
        "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .meta = function<&scatter_value_meta>(),
    .kernel = structured<&scatter_value_meta, &scatter_value_into>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{scatter(v.grad(), v.arg<int64_t>(1), v.input(2), 0), Tensor()};
                }},
    .batch = along_batch<0, 2>,
    .samples = [] { return Samples{{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4), 1.5}}}; },
};

WEFT_OPERATOR(scatter_reduce) = {
    .schema = "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    .inplace =
        "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> "
        "Tensor(a!)",
    .out =
        "aten::scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&scatter_reduce_meta>(),
    .kernel = structured<&scatter_reduce_meta, &scatter_reduce_into>(),
    .batch = along_batch<0, 2, 3>,
    .samples = [] { return Samples{{"add", {f64({3, 4}), 1, i64({3, 2}, 0, 4), f64({3, 2}), "add"}}}; },
};

WEFT_OPERATOR(scatter_value_reduce) = {
    .schema =
        "aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> "
        "Tensor",
    .inplace =
        "aten::scatter_.value_reduce(Tensor(a!) self, int dim, Tensor index, Scalar value, *, str reduce) -> "
        "Tensor(a!)",
    .out =
        "aten::scatter.value_reduce_out(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&scatter_value_reduce_meta>(),
    .kernel = structured<&scatter_value_reduce_meta, &scatter_value_reduce_into>(),
    .batch = along_batch<0, 2>,
    .samples = [] { return Samples{{"multiply", {f64({3, 4}), 1, i64({3, 2}, 0, 4), 2.0, "multiply"}}}; },
};

WEFT_OPERATOR(scatter_add) = {
    .schema = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .inplace = "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .out =
        "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&scatter_add_meta>(),
    .kernel = structured<&scatter_add_meta, &scatter_add_into>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{v.grad(), Tensor(), gather(v.grad(), v.arg<int64_t>(1), v.input(2))};
                }},
    .batch = along_batch<0, 2, 3>,
    .samples = scatter_samples,
};

WEFT_OPERATOR(index_select) = {
    .schema = "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .out = "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&index_select_meta>(),
    .kernel = structured<&index_select_meta, &index_select_into>(),
    .vjp = {.saves = inputs(2) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      index_add(new_zeros(v.grad(), v.sizes(0)), v.arg<int64_t>(1), v.input(2), v.grad()),
                      Tensor()};
                }},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 0, i64({5}, 0, 3)}},
                         {"columns", {f64({3, 4}), -1, i64({2}, 0, 4)}}};
        },
};

WEFT_OPERATOR(index_select_backward) = {
    .schema =
        "aten::index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
    .composite = {.functional = function<&index_select_backward_composite>()},
    .samples = [] { return Samples{{"rows", {f64({5, 4}), Value::list({3, 4}), 0, i64({5}, 0, 3)}}}; },
};

WEFT_OPERATOR(index_add) = {
    .schema =
        "aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .inplace =
        "aten::index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
        "Tensor(a!)",
    .out =
        "aten::index_add.out(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&index_add_meta>(),
    .kernel = structured<&index_add_meta, &index_add_into>(),
    .vjp = {.saves = inputs(2) | sizes(3),
            .rule =
                [](const Vjp& v) {
                  Tensor source =
                      index_select(v.grad(), v.arg<int64_t>(1), v.input(2)) * conj_of(v.arg<Scalar>(4));
                  return Grads{v.grad(), Tensor(), view(source, v.sizes(3))};
                }},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 0, i64({2}, 0, 3), f64({2, 4})}},
                         {"scaled", {f64({3}), 0, i64({2}, 0, 3), f64({2}), 0.5}}};
        },
};

WEFT_OPERATOR(masked_fill_scalar) = {
    .schema = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    .inplace = "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    .out =
        "aten::masked_fill.Scalar_out(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&masked_fill_meta>(),
    .kernel = structured<&masked_fill_meta, &masked_fill_into, true>(),
    .vjp = {.saves = inputs(1),
            .rule = [](const Vjp& v) { return Grads{masked_fill(v.grad(), v.input(1), 0), Tensor()}; }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), 2.5}},
                         {"broadcast", {f64({3, 4}), boolean({4}), 1}}};
        },
};

WEFT_OPERATOR(masked_fill_tensor) = {
    .schema = "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    .inplace = "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    .out =
        "aten::masked_fill.Tensor_out(Tensor self, Tensor mask, Tensor value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&masked_fill_tensor_meta>(),
    .kernel = structured<&masked_fill_tensor_meta, &masked_fill_tensor_into, true>(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{masked_fill(v.grad(), v.input(1), 0), Tensor(),
                               sum(masked(v.grad(), v.input(1)))};
                }},
    .batch = loop_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), f64({})}}}; },
};

}  // namespace weft::ops
