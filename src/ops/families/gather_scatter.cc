// Elements picked and placed by index along a dim.
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/index_offsets.h"
#include "ops/support/number_range.h"

namespace weft::ops {
namespace {

// A 0-dim tensor counts as a vector of one.
int64_t rank_of(const Tensor& t) { return std::max<int64_t>(t.dim(), 1); }
SymInt size_of(const Tensor& t, int64_t dim) { return t.dim() == 0 ? SymInt(1) : t.size(dim); }

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

TensorSpec gather_meta(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  check_gather("gather", self, dim, index);
  return contiguous_spec(index.sizes(), self.dtype(), self.device());
}
// A 0-dim tensor is seen as a vector of one.
Ints sizes_of(const Tensor& t) { return t.dim() == 0 ? Ints{1} : Ints(t.plain_sizes()); }

// The offsets of the elements of `self` that the index selects; must outlive what `places` gives.
struct NamedElements {
  Tensor positions;
  OffsetsAround around;
  int64_t dim, stride, picks, size;

  NamedElements(const Tensor& self, int64_t dim_, const Tensor& index)
      : positions(dense_as(index, kInt64)),
        around(self, normalize_dim(dim_, self.dim()), sizes_of(index)),
        dim(normalize_dim(dim_, self.dim())),
        stride(self.dim() == 0 ? 1 : self.plain_strides()[static_cast<size_t>(dim)]),
        picks(sizes_of(index)[static_cast<size_t>(dim)]),
        size(sizes_of(self)[static_cast<size_t>(dim)]) {}
  cpu::ElementPlaces places() const {
    return {around.before, around.after, picks, positions.data<int64_t>(), stride, size};
  }
  [[noreturn]] void name_the_wrong_one(const char* op) const {
    check_positions(positions.data<int64_t>(), positions.plain_numel(), size, [&](int64_t wrong) {
      fail("{}(): index {} is out of bounds for dimension {} with size {}", op, wrong, dim, size);
    });
    fail("{}(): an index was out of bounds, and is no longer; another thread has changed it", op);
  }
};

void gather_into(const Tensor& self, int64_t dim, const Tensor& index, bool, const Tensor& out) {
  if (index.plain_numel() == 0) return;
  NamedElements named(self, dim, index);
  write_dense(out, [&](const Tensor& dense) {
    bool inside = cpu::gather_elements(named.places(), static_cast<const char*>(self.raw_data()),
                                       static_cast<char*>(dense.raw_data()), item_size(self.dtype()));
    if (!inside) named.name_the_wrong_one("gather");
  });
}

Tensor gather_backward_composite(const Tensor& grad, const Tensor& self, int64_t dim, const Tensor& index,
                                 bool) {
  return scatter_add(new_zeros(grad, self.sizes()), dim, index, grad);
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
  for (int64_t i = 0; i < std::min(rank_of(index), rank_of(src)); ++i)
    if (!guard_or(index.numel() == 0, false) && !guard_or(size_of(index, i) <= size_of(src, i), true))
      fail(
          "Expected index {} to be no larger than self {} apart from dimension {} and to be no larger size "
          "than src {}",
          describe_sizes(index.sizes()), describe_sizes(self.sizes()), normalize_dim(dim, self.dim()),
          describe_sizes(src.sizes()));
}
// The part of src that the index covers, in row-major memory that is not written to.
Tensor covered(const Tensor& src, const Tensor& index, const Tensor& out) {
  Tensor part = src;
  if (src.dim() > 0 && index.dim() > 0)
    part = alias_with(src, index.sizes(), src.strides(), src.storage_offset());
  Tensor dense = dense_as(part, src.dtype());
  if (dense.storage() != out.storage()) return dense;
  Tensor copy = allocate_contiguous(part.sizes(), part.dtype());
  copy_values(copy, part);
  return copy;
}
using cpu::Combine;
void scatter_values(const char* op, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    Combine how, const Tensor& out) {
  check_apart(out, index);
  check_apart(out, src);
  Tensor at = index;
  if (index.storage() == out.storage()) {  // positions are read before they are written over
    at = allocate_contiguous(index.sizes(), kInt64);
    copy_values(at, index);
  }
  if (at.plain_numel() == 0) {
    if (!out.is_same(self)) copy_values(out, self);
    return;
  }
  NamedElements named(out, dim, at);
  // In place, all are looked at before anything is written: an error leaves the target as it was.
  bool in_place = out.is_same(self);
  if (in_place && !cpu::are_inside(named.places())) named.name_the_wrong_one(op);
  Tensor from = covered(src, index, out);
  if (!in_place) copy_values(out, self);
  bool single = from.plain_numel() == 1 && at.plain_numel() != 1;
  bool inside =
      cpu::scatter_elements(named.places(), static_cast<char*>(out.raw_data()),
                            static_cast<const char*>(from.raw_data()), single, how, out.dtype(), in_place);
  if (!inside) named.name_the_wrong_one(op);
}

TensorSpec scatter_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter", self, dim, index, src);
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  const Tensor& out) {
  scatter_values("scatter", self, dim, index, src, Combine::kReplace, out);
}
TensorSpec scatter_add_meta(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_scatter("scatter_add", self, dim, index, src);
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void scatter_add_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      const Tensor& out) {
  scatter_values("scatter_add", self, dim, index, src, Combine::kAdd, out);
}
Tensor typed_number(const Scalar& value, DType dtype, const Tensor& index) {
  if (index.plain_numel() > 0) require_fits(value, dtype);
  Tensor number = allocate_contiguous({}, dtype);
  copy_values(number, wrapped_number(value));
  return number;
}
TensorSpec scatter_value_meta(const Tensor& self, int64_t dim, const Tensor& index, const Scalar&) {
  check_scatter("scatter", self, dim, index, Tensor());
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void scatter_value_into(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                        const Tensor& out) {
  scatter_values("scatter", self, dim, index, typed_number(value, self.dtype(), index), Combine::kReplace,
                 out);
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
  scatter_values("scatter", self, dim, index, typed_number(value, self.dtype(), index), combine_named(reduce),
                 out);
}

// What is multiplied into self is multiplied into its gradient.
Grads scatter_reduce_vjp(const Vjp& v) {
  const auto dim = v.arg<int64_t>(1);
  const auto reduce = v.arg<std::string_view>(4);
  if (combine_named(reduce) == Combine::kAdd)
    return {v.grad(), Tensor(), v.wants(3) ? gather(v.grad(), dim, v.input(2)) : Tensor()};
  if (v.wants(3))
    unsupported("scatter: the gradient of src with reduce=\"multiply\" is not there; give src.detach()");
  return {scatter(v.grad(), dim, v.input(2), v.input(3), reduce), Tensor(), Tensor()};
}
Grads scatter_value_reduce_vjp(const Vjp& v) {
  const auto reduce = v.arg<std::string_view>(4);
  if (combine_named(reduce) == Combine::kAdd) return {v.grad(), Tensor()};
  return {scatter(v.grad(), v.arg<int64_t>(1), v.input(2), v.arg<Scalar>(3), reduce), Tensor()};
}

// --- batching --------------------------------------------------------------------------------------------

// All tensors batched in front, the dim counted behind. A tensor without dims counts as a vector of one; the
// result has the sizes of the tensor at `result_like`.
template <int result_like, int tensor_a, int tensor_b, int tensor_c = -1>
Batched along_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  for (int i : {tensor_a, tensor_b, tensor_c}) {
    if (i < 0) continue;
    Tensor batch = with_batch_first(call.tensor(i), call.batch_dim(i), call.batch_size());
    args[static_cast<size_t>(i)] = batch.dim() == 1 ? unsqueeze(batch, 1) : batch;
  }
  auto rank_at = [&](int i) { return logical_rank(call.tensor(i), call.batch_dim(i)); };
  args[1] = normalize_dim(call.arg<int64_t>(1), rank_at(0)) + 1;
  Tensor result = weft::call(call.op(), args).to_tensor();
  return {rank_at(result_like) == 0 ? squeeze(result, 1) : result, {0}};
}

Samples scatter_samples() {
  return {{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4), f64({3, 2})}},
          {"vector", {f64({5}), 0, i64({3}, 0, 5), f64({3})}},
          {"one_of_a_vector", {f64({5}), 0, i64({}, 0, 5), f64({})}},
          {"scalars", {f64({}), 0, i64({}, 0, 1), f64({})}},
          {"of_a_scalar", {f64({}), 0, i64({1}, 0, 1), f64({1})}}};
}

}  // namespace

WEFT_OPERATOR(gather) = {
    .schema = "aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    .out =
        "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&gather_meta>(),
    .kernel = structured_apart<&gather_meta, &gather_into, OutType::kExact, 1>(),
    .vjp = {.saves = inputs(2) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      scatter_add(new_zeros(v.grad(), v.sizes(0)), v.arg<int64_t>(1), v.input(2), v.grad()),
                      Tensor()};
                }},
    .batch = along_batch<2, 0, 2>,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4)}},
                         {"columns", {f64({3, 4}), 0, i64({2, 4}, 0, 3)}},
                         {"one_of_a_vector", {f64({3}), 0, i64({}, 0, 3)}},
                         {"of_a_scalar", {f64({}), 0, i64({2}, 0, 1)}},
                         {"scalars", {f64({}), 0, i64({}, 0, 1)}},
                         {"empty", {f64({3}), 0, i64({0})}}};
        },
};

WEFT_OPERATOR(gather_backward) = {
    .schema =
        "aten::gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
    .composite = {.functional = function<&gather_backward_composite>()},
    .samples = [] { return Samples{{"rows", {f64({3, 2}), f64({3, 4}), 1, i64({3, 2}, 0, 4), false}}}; },
};

WEFT_OPERATOR(scatter_src) = {
    .schema = "aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .inplace = "aten::scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .out =
        "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&scatter_meta>(),
    .kernel = structured_exact<&scatter_meta, &scatter_into, true>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  int64_t dim = v.arg<int64_t>(1);
                  return Grads{scatter(v.grad(), dim, v.input(2), 0), Tensor(),
                               gather(v.grad(), dim, v.input(2))};
                }},
    .batch = along_batch<0, 0, 2, 3>,
    .samples =
        [] {
          return Samples{{"vector", {f64({5}), 0, i64({3}, 0, 5), f64({3})}},
                         {"one_of_a_vector", {f64({5}), 0, i64({}, 0, 5), f64({})}},
                         {"of_a_scalar", {f64({}), 0, i64({1}, 0, 1), f64({})}}};
        },
};

WEFT_OPERATOR(scatter_value) = {
    .schema = "aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    .inplace = "aten::scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)",
    .out =
        "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&scatter_value_meta>(),
    .kernel = structured_exact<&scatter_value_meta, &scatter_value_into, true>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{scatter(v.grad(), v.arg<int64_t>(1), v.input(2), 0), Tensor()};
                }},
    .batch = along_batch<0, 0, 2>,
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), 1, i64({3, 2}, 0, 4), 1.5}},
                         {"one_of_a_vector", {f64({5}), 0, i64({}, 0, 5), 1.5}},
                         {"of_a_scalar", {f64({}), 0, i64({1}, 0, 1), 1.5}}};
        },
};

WEFT_OPERATOR(scatter_reduce) = {
    .schema = "aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    .inplace =
        "aten::scatter_.reduce(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str reduce) -> "
        "Tensor(a!)",
    .out =
        "aten::scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) "
        "out) -> Tensor(a!)",
    .meta = function<&scatter_reduce_meta>(),
    .kernel = structured_exact<&scatter_reduce_meta, &scatter_reduce_into, true>(),
    .vjp = {.saves = inputs(2, 3), .rule = scatter_reduce_vjp},
    .batch = along_batch<0, 0, 2, 3>,
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
    .meta = function<&scatter_value_reduce_meta>(),
    .kernel = structured_exact<&scatter_value_reduce_meta, &scatter_value_reduce_into, true>(),
    .vjp = {.saves = inputs(2), .rule = scatter_value_reduce_vjp},
    .batch = along_batch<0, 0, 2>,
    .samples = [] { return Samples{{"multiply", {f64({3, 4}), 1, i64({3, 2}, 0, 4), 2.0, "multiply"}}}; },
};

WEFT_OPERATOR(scatter_add) = {
    .schema = "aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .inplace = "aten::scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
    .out =
        "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&scatter_add_meta>(),
    .kernel = structured_exact<&scatter_add_meta, &scatter_add_into, true>(),
    .vjp = {.saves = inputs(2),
            .rule =
                [](const Vjp& v) {
                  return Grads{v.grad(), Tensor(), gather(v.grad(), v.arg<int64_t>(1), v.input(2))};
                }},
    .batch = along_batch<0, 0, 2, 3>,
    .samples = scatter_samples,
};

}  // namespace weft::ops
