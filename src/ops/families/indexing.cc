// Indexing with tensors: x[i, :, mask] read and written.
#include "dispatch/rule_calls.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/index_offsets.h"
#include "ops/support/masked_fill.h"
#include "ops/support/number_range.h"
#include "weft/base/warning.h"
#include "weft/ops/fake.h"

namespace weft::ops {
namespace {

using Tensors = std::vector<Tensor>;

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == kBool || index.dtype() == kUInt8);
}

void check_indices(const Tensor& self, TensorSpan indices) {
  int64_t dims = 0;
  for (const Tensor& index : indices) {
    dims += is_mask(index) ? index.dim() : 1;
    if (!index.defined()) continue;
    require(index.dtype() == kInt64 || index.dtype() == kInt32 || is_mask(index),
            "tensors used as indices must be long, int, byte or bool tensors, but got {}", describe(index));
  }
  require(dims <= self.dim(), "too many indices for tensor of dimension {} (got {})", self.dim(), dims);
}

// A mask of r dims stands for r indices: the positions of its true elements along each dim. `columns_of`
// makes them.
template <typename F>
Tensors without_masks(const Tensor& self, TensorSpan indices, F columns_of) {
  check_indices(self, indices);
  Tensors plain;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& index = indices[i];
    if (!is_mask(index)) {
      plain.push_back(index);
      continue;
    }
    for (int64_t d = 0; d < index.dim(); ++d) {
      auto at = static_cast<int64_t>(plain.size()) + d;
      if (!guard_or(index.size(d) == self.size(at), true))
        fail(
            "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} at index "
            "{}",
            describe_sizes(index.sizes()), d, describe_sizes(self.sizes()), at);
    }
    for (Tensor& column : columns_of(index)) plain.push_back(std::move(column));
  }
  return plain;
}
// How many elements a mask picks is data: a size without a value.
Tensors mask_columns_meta(const Tensor& mask) {
  Tensor column = allocate({kInt64, mask.device(), {unbacked_size("index", mask.numel())}, {1}});
  return Tensors(static_cast<size_t>(std::max<int64_t>(mask.dim(), 1)), column);
}
Tensors mask_columns(const Tensor& mask) {
  if (mask.dim() == 0) return {select(nonzero(unsqueeze(mask, 0)), 1, 0)};
  return unbind(nonzero(mask), 1);
}
// A 0-dim mask indexes a dim of its own.
Tensor with_mask_dims(const Tensor& self, TensorSpan indices) {
  SymInts sizes(self.sizes()), strides(self.strides());
  size_t at = 0;
  for (const Tensor& index : indices) {
    if (is_mask(index) && index.dim() == 0) {
      sizes.insert(at, 1);
      strides.insert(at, 0);
    }
    at += is_mask(index) ? static_cast<size_t>(std::max<int64_t>(index.dim(), 1)) : 1;
  }
  if (sizes.size() == static_cast<size_t>(self.dim())) return self;
  return alias_with(self, sizes, strides, self.storage_offset());
}

// --- the plan of a call ----------------------------------------------------------------------------------

struct IndexPlan {
  Tensor self;          // with the indexed dims adjacent
  Tensors indices;      // one for each of them
  size_t first = 0;     // where they begin
  SymInts index_sizes;  // what the indices broadcast to
  SymInts sizes;        // of the picked elements

  size_t after() const { return first + indices.size(); }
};

bool are_neighbours(const Tensors& indices) {
  size_t runs = 0;
  for (size_t i = 0; i < indices.size(); ++i)
    runs += indices[i].defined() && (i == 0 || !indices[i - 1].defined());
  return runs <= 1;
}
SymInts broadcast_indices(const Tensors& indices) {
  SymInts sizes;
  try {
    for (const Tensor& index : indices)
      if (index.defined()) sizes = broadcast_sizes(sizes, index.sizes());
  } catch (const UserError&) {
    std::string shapes;
    for (const Tensor& index : indices)
      if (index.defined()) shapes += (shapes.empty() ? "" : ", ") + describe_sizes(index.sizes()).str();
    fail("shape mismatch: indexing tensors could not be broadcast together with shapes {}", shapes);
  }
  return sizes;
}
// `indices` without masks. Indices that are not neighbours put their dims in front.
IndexPlan plan_index(const Tensor& self, Tensors indices) {
  IndexPlan plan;
  indices.resize(static_cast<size_t>(self.dim()));
  plan.index_sizes = broadcast_indices(indices);
  bool neighbours = are_neighbours(indices);
  SymInts sizes, strides;
  auto take = [&](size_t d) {
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  };
  auto take_indexed = [&] {
    plan.first = sizes.size();
    for (size_t d = 0; d < indices.size(); ++d) {
      if (!indices[d].defined()) continue;
      take(d);
      plan.indices.push_back(indices[d]);
    }
  };
  bool taken = !neighbours;
  if (taken) take_indexed();
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) take(d);
    else if (!taken) {
      take_indexed();
      taken = true;
    }
  }
  plan.self = alias_with(self, sizes, strides, self.storage_offset());
  for (size_t d = 0; d < plan.first; ++d) plan.sizes.push_back(sizes[d]);
  for (const SymInt& size : plan.index_sizes) plan.sizes.push_back(size);
  for (size_t d = plan.after(); d < sizes.size(); ++d) plan.sizes.push_back(sizes[d]);
  return plan;
}

// The layout of the picked elements follows the strides of `self` around them and of the indices.
SymInts picked_strides(const IndexPlan& plan) {
  size_t rank = plan.sizes.size(), index_rank = plan.index_sizes.size();
  SymInts strides(rank, 0);
  for (size_t d = 0; d < rank; ++d) {
    if (d < plan.first) strides[d] = plan.self.strides()[d];
    else if (d >= plan.first + index_rank)
      strides[d] = plan.self.strides()[d - index_rank + plan.indices.size()];
  }
  Tensors operands{alias_with(plan.self, plan.sizes, strides, plan.self.storage_offset())};
  for (const Tensor& index : plan.indices) {
    SymInts sizes(rank, 1), index_strides(rank, 0);
    size_t at = plan.first + index_rank - static_cast<size_t>(index.dim());
    for (size_t d = 0; d < static_cast<size_t>(index.dim()); ++d) {
      sizes[at + d] = index.sizes()[d];
      index_strides[at + d] = index.strides()[d];
    }
    operands.push_back(alias_with(index, sizes, index_strides, index.storage_offset()));
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return pointwise_strides(pointers, plan.sizes);
}

// Offsets of all elements of dims [from, to), in row-major order.
std::vector<int64_t> offsets_of(const Tensor& self, size_t from, size_t to) {
  IntSpan sizes = self.plain_sizes(), strides = self.plain_strides();
  return strided_offsets(IntSpan(sizes.data() + from, to - from), IntSpan(strides.data() + from, to - from));
}
// Offsets of the chosen positions. Negative ones count from the end.
std::vector<int64_t> chosen_offsets(const IndexPlan& plan) {
  int64_t count = 1;
  for (const SymInt& size : plan.index_sizes) count *= size.plain();
  std::vector<int64_t> offsets(static_cast<size_t>(count), 0);
  for (size_t i = 0; i < plan.indices.size(); ++i) {
    Tensor index = dense_as(plan.indices[i], plan.index_sizes, kInt64);
    const int64_t* values = index.data<int64_t>();
    int64_t size = plan.self.plain_sizes()[plan.first + i],
            stride = plan.self.plain_strides()[plan.first + i];
    for (int64_t k = 0; k < count; ++k) {
      require(values[k] >= -size && values[k] < size,
              "index {} is out of bounds for dimension {} with size {}", values[k], plan.first + i, size);
      offsets[static_cast<size_t>(k)] += (values[k] < 0 ? values[k] + size : values[k]) * stride;
    }
  }
  return offsets;
}
struct IndexOffsets {
  std::vector<int64_t> before, at, after;
  explicit IndexOffsets(const IndexPlan& plan)
      : before(offsets_of(plan.self, 0, plan.first)),
        at(chosen_offsets(plan)),
        after(offsets_of(plan.self, plan.after(), static_cast<size_t>(plan.self.dim()))) {}
  cpu::IndexedPlaces get() const { return {before, at, after}; }
};
char* bytes(const Tensor& tensor) { return static_cast<char*>(tensor.raw_data()); }

// --- index -----------------------------------------------------------------------------------------------

TensorSpec spec_of(const IndexPlan& plan) {
  return {plan.self.dtype(), plan.self.device(), plan.sizes, picked_strides(plan)};
}
TensorSpec index_meta(const Tensor& self, TensorSpan indices) {
  Tensor seen = with_mask_dims(self, indices);
  return spec_of(plan_index(seen, without_masks(seen, indices, mask_columns_meta)));
}
void pick_into(const IndexPlan& plan, const Tensor& out) {
  IndexOffsets offsets(plan);
  write_dense(out, [&](const Tensor& dense) {
    cpu::gather_indexed(offsets.get(), bytes(plan.self), bytes(dense), item_size(dense.dtype()));
  });
}
// One mask for every element: no positions are needed.
bool is_full_mask(const Tensor& self, TensorSpan indices) {
  return indices.size() == 1 && is_mask(indices[0]) && self.dim() > 0 &&
         same_sizes(indices[0].sizes(), self.sizes());
}
// The number of elements that a mask picks is known only here, so the result is made here.
Tensor index_kernel(const Tensor& self, TensorSpan indices) {
  if (is_full_mask(self, indices)) return masked_select(self, indices[0].to(kBool));
  Tensor seen = with_mask_dims(self, indices);
  IndexPlan plan = plan_index(seen, without_masks(seen, indices, mask_columns));
  Tensor out = allocate(spec_of(plan));
  pick_into(plan, out);
  return out;
}
void index_into(const Tensor& self, TensorSpan indices, const Tensor& out) {
  pick_into(plan_index(self, without_masks(self, indices, mask_columns)), out);
}
// Without a mask, the result is written where it is wanted.
const Tensor& index_out_kernel(const Tensor& self, TensorSpan indices, const Tensor& out) {
  using namespace structured_detail;
  using Made = Apart<Copied<&index_kernel, OutType::kExact>, 64, decltype(&index_kernel)>;
  using Written = Apart<Forms<&index_meta, &index_into, false, OutType::kExact, Elements::kDistinct>, 64,
                        decltype(&index_kernel)>;
  const bool has_mask = std::any_of(indices.begin(), indices.end(), is_mask);
  return has_mask ? Made::out(self, indices, out) : Written::out(self, indices, out);
}
Tensor unsafe_index_composite(const Tensor& self, TensorSpan indices) { return index(self, indices); }

// --- index_put -------------------------------------------------------------------------------------------

constexpr const char* kTypesDiffer =
    "Index put requires the source and destination dtypes match, got {} for the destination and {} for the "
    "source.";
void check_values(const IndexPlan& plan, const Tensor& values) {
  require(values.dtype() == plan.self.dtype(), kTypesDiffer, dtype_name(plan.self.dtype()),
          dtype_name(values.dtype()));
  bool fits = values.dim() <= static_cast<int64_t>(plan.sizes.size());
  size_t missing = fits ? plan.sizes.size() - static_cast<size_t>(values.dim()) : 0;
  for (size_t d = 0; fits && d < static_cast<size_t>(values.dim()); ++d)
    fits = guard_or(values.sizes()[d] == 1, false) ||
           guard_or(values.sizes()[d] == plan.sizes[missing + d], true);
  if (!fits)
    fail("shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of shape {}",
         describe_sizes(values.sizes()), describe_sizes(plan.sizes));
}
TensorSpec index_put_meta(const Tensor& self, TensorSpan indices, const Tensor& values, bool) {
  Tensor seen = with_mask_dims(self, indices);
  // Without an environment for sizes that only data can tell, those of masks are not looked at.
  bool has_mask = false;
  for (const Tensor& index : indices) has_mask |= is_mask(index);
  if (!has_mask) check_values(plan_index(seen, without_masks(seen, indices, mask_columns_meta)), values);
  else check_indices(self, indices);
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
// The mask where there is nothing but one, seen with all dims of `self`; undefined otherwise. One value for
// what it chooses is a fill, which converts the value to the type of `self`.
Tensor only_mask(const Tensor& self, TensorSpan indices) {
  Tensor seen;
  int64_t ahead = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      ahead += seen.defined() ? 0 : 1;
      continue;
    }
    if (!is_mask(index) || seen.defined()) return {};
    seen = index;
  }
  if (!seen.defined() || ahead + seen.dim() > self.dim()) return {};
  for (int64_t d = 0; d < seen.dim(); ++d)
    if (!guard_or(seen.size(d) == self.size(ahead + d), false)) return {};
  SymInts sizes(seen.sizes()), strides(seen.strides());
  for (int64_t d = ahead + seen.dim(); d < self.dim(); ++d) {
    sizes.push_back(1);
    strides.push_back(0);
  }
  return alias_with(seen, sizes, strides, seen.storage_offset());
}
void index_put_into(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate,
                    const Tensor& out) {
  const bool is_inplace = out.is_same(self);
  if (is_inplace && repeats_elements(self))
    warn(WarningKind::kUser,
         "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing "
         "this operation. This also applies to advanced indexing e.g. tensor[indices] = tensor");
  if (Tensor mask; !accumulate && values.plain_numel() == 1 && (mask = only_mask(self, indices)).defined()) {
    Tensor number = alias_with(values, SymInts{}, SymInts{}, values.storage_offset());
    require_value_fits(number, self.dtype());
    return fill_chosen(self, mask, number, out);
  }
  if (is_inplace) {
    check_apart(self, values);
    for (const Tensor& index : indices)
      if (index.defined()) check_apart(self, index);
  }
  Tensor target = with_mask_dims(out, indices);
  IndexPlan plan = plan_index(target, without_masks(target, indices, mask_columns));
  check_values(plan, values);
  IndexOffsets offsets(plan);
  bool is_single = values.plain_numel() == 1;
  Tensor dense = is_single ? values : dense_as(values, plan.sizes, values.dtype());
  // Values that alias the memory that is written are read first.
  if (dense.storage() == out.storage()) {
    dense = allocate_contiguous(dense.sizes(), dense.dtype());
    copy_values(dense, values);
  }
  if (!is_inplace) copy_values(out, self);
  if (accumulate)
    cpu::accumulate_indexed(offsets.get(), bytes(plan.self), bytes(dense), is_single, out.dtype());
  else cpu::scatter_indexed(offsets.get(), bytes(plan.self), bytes(dense), is_single, item_size(out.dtype()));
}
Grads index_put_vjp(const Vjp& v) {
  Tensors indices = v.inputs(1);
  const Tensor& grad = v.grad();
  Tensor to_self = grad;
  if (v.wants(0) && !v.arg<bool>(3)) to_self = index_put(grad, indices, new_zeros(grad, SymIntSpan()), false);
  return {v.wants(0) ? to_self : Tensor(), Tensors(indices.size()),
          v.wants(2) ? index(grad, indices) : Tensor()};
}
Tensor index_put_impl_composite(const Tensor& self, TensorSpan indices, const Tensor& values, bool accumulate,
                                bool) {
  return index_put(self, indices, values, accumulate);
}
const Tensor& index_put_impl_inplace(const Tensor& self, TensorSpan indices, const Tensor& values,
                                     bool accumulate, bool) {
  return index_put_(self, indices, values, accumulate);
}
const Tensor& index_put_impl_out(const Tensor& self, TensorSpan indices, const Tensor& values,
                                 bool accumulate, bool, const Tensor& out) {
  return index_put_out(out, self, indices, values, accumulate);
}
Tensor unsafe_index_put_composite(const Tensor& self, TensorSpan indices, const Tensor& values,
                                  bool accumulate) {
  return index_put(self, indices, values, accumulate);
}

// --- batching --------------------------------------------------------------------------------------------

// The indices of a batched call: what the rules need to know of them.
struct BatchedIndices {
  Tensors indices;  // without masks; batched ones have their batch dim first and equal ranks behind it
  bool are_batched = false;
  bool neighbours = true;
  int64_t rank = 0;     // of what they broadcast to, as the user sees it
  int64_t leading = 0;  // whole dims ahead of the first index
};
BatchedIndices indices_of(const Batch& call) {
  BatchedIndices found;
  auto holder = boxing::Unboxed<TensorSpan>(call.args()[1]);
  TensorSpan given = holder.get();
  const std::vector<int64_t>& dims = call.batch_dims(1);
  std::vector<int64_t> plain_dims;
  for (size_t i = 0; i < given.size(); ++i) {
    if (is_mask(given[i])) {
      require(
          dims[i] < 0,
          "vmap: {} with a mask that differs within the batch gives sizes that differ; it cannot be batched. "
          "Use where instead",
          call.op().name());
      for (Tensor& column : mask_columns(given[i])) {
        found.indices.push_back(std::move(column));
        plain_dims.push_back(-1);
      }
      continue;
    }
    found.indices.push_back(given[i].defined() ? batch_first(given[i], dims[i]) : given[i]);
    plain_dims.push_back(given[i].defined() ? dims[i] : -1);
  }
  for (size_t i = 0; i < found.indices.size(); ++i) {
    if (!found.indices[i].defined()) continue;
    found.are_batched |= plain_dims[i] >= 0;
    found.rank = std::max(found.rank, found.indices[i].dim() - (plain_dims[i] >= 0 ? 1 : 0));
  }
  for (size_t i = 0; i < found.indices.size(); ++i)
    if (plain_dims[i] >= 0)
      while (found.indices[i].dim() - 1 < found.rank) found.indices[i] = unsqueeze(found.indices[i], 1);
  found.neighbours = are_neighbours(found.indices);
  while (found.leading < static_cast<int64_t>(found.indices.size()) &&
         !found.indices[static_cast<size_t>(found.leading)].defined())
    ++found.leading;
  return found;
}
// The number of the example, in the shape of indices that have the batch first.
Tensor example_numbers(const SymInt& batch_size, int64_t rank) {
  const dispatch::RuleCalls of_rule;
  Tensor numbers = arange(Scalar(batch_size), kInt64, Layout::kStrided, kCpu);
  for (int64_t d = 0; d < rank; ++d) numbers = unsqueeze(numbers, -1);
  return numbers;
}
Tensors preceded_by(const Tensor& first, const Tensors& rest) {
  Tensors all{first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}
bool has_zero_dim_mask(const Batch& call) {
  for (const Value& element : call.args()[1].elements())
    if (element.is_tensor() && is_mask(element.tensor_ref()) && element.tensor_ref().dim() == 0) return true;
  return false;
}

Batched index_batch(const Batch& call) {
  if (has_zero_dim_mask(call)) return loop_batch(call);
  BatchedIndices found = indices_of(call);
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  int64_t index_front = found.neighbours ? found.leading : 0;
  // The dims of the indices begin with the batch.
  if (call.batch_dim(0) < 0) return {index(self, found.indices), {index_front}};
  if (!found.are_batched) {
    // Indices that are no neighbours go in front of the batch dim.
    return {index(self, preceded_by(Tensor(), found.indices)), {found.neighbours ? 0 : found.rank}};
  }
  Tensor picked = index(self, preceded_by(example_numbers(call.batch_size(), found.rank), found.indices));
  // [batch, index dims, others]: the index dims go to their position behind the leading ones.
  if (found.neighbours && found.leading > 0) {
    Ints order{0};
    for (int64_t d = 0; d < found.leading; ++d) order.push_back(1 + found.rank + d);
    for (int64_t d = 0; d < found.rank; ++d) order.push_back(1 + d);
    for (auto d = static_cast<int64_t>(order.size()); d < picked.dim(); ++d) order.push_back(d);
    picked = permute(picked, order);
  }
  return {picked, {0}};
}

Batched index_put_batch(const Batch& call) {
  if (has_zero_dim_mask(call)) return loop_batch(call);
  BatchedIndices found = indices_of(call);
  // The batch must come first among the picked dims, where broadcasting of the values finds it.
  if (!found.neighbours || (found.are_batched && found.leading > 0)) return loop_batch(call);
  Tensor self = with_batch_first(call.tensor(0), call.batch_dim(0), call.batch_size());
  int64_t indexed = 0;
  for (const Tensor& index : found.indices) indexed += index.defined();
  int64_t picked_rank = self.dim() - 1 - indexed + found.rank;
  Tensor values = batch_first(call.tensor(2), call.batch_dim(2));
  if (call.batch_dim(2) >= 0)
    while (values.dim() - 1 < picked_rank) values = unsqueeze(values, 1);
  Tensor first = found.are_batched ? example_numbers(call.batch_size(), found.rank) : Tensor();
  return {index_put(self, preceded_by(first, found.indices), values, call.arg<bool>(3)), {0}};
}

// --- samples ---------------------------------------------------------------------------------------------

// Masks have tests of their own: their results have sizes that only data can tell.
Value picks(ValueList indices) { return Value::list(std::move(indices)); }
Samples index_samples() {
  return {{"rows", {f64({4, 3}), picks({i64({5}, -4, 4)})}},
          {"columns", {f64({2, 4, 3}), picks({Value(), i64({3}, 0, 4)})}},
          {"pairs", {f64({4, 3}), picks({i64({2, 2}, 0, 4), i64({2}, 0, 3)})}},
          {"apart", {f64({2, 4, 3}), picks({i64({2}, 0, 2), Value(), i64({2}, 0, 3)})}},
          {"transposed", {transposed(f64({4, 3})), picks({i64({5}, 0, 4)})}},
          {"empty", {f64({4, 3}), picks({i64({0}, 0, 4)})}}};
}
Samples index_put_samples() {
  return {{"rows", {f64({4, 3}), picks({i64({2}, 0, 4)}), f64({2, 3})}},
          {"broadcast", {f64({2, 4, 3}), picks({Value(), i64({3}, 0, 4)}), f64({3})}},
          {"add", {f64({4, 3}), picks({i64({6}, 0, 4)}), f64({6, 3}), true}},
          {"apart", {f64({2, 4, 3}), picks({i64({2}, 0, 2), Value(), i64({2}, 0, 3)}), f64({2, 4}), true}},
          {"number", {f64({4, 3}), picks({i64({2}, 0, 4)}), f64({})}}};
}

}  // namespace

WEFT_OPERATOR(index_tensor) = {
    .schema = "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    .out = "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&index_meta>(),
    .kernel = {.functional = function<&index_kernel>(),
               .out = function<&index_out_kernel>(),
               .out_type_is_exact = true},
    .vjp = {.saves = inputs(1) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  Tensors indices = v.inputs(1);
                  const TensorShape& shape = v.shape(0);
                  Tensor zeros =
                      new_zeros(v.grad(), shape.sizes, shape.dtype, Layout::kStrided, shape.device);
                  return Grads{index_put(zeros, indices, v.grad(), true), Tensors(indices.size())};
                }},
    .batch = index_batch,
    .samples = index_samples,
};

WEFT_OPERATOR(unsafe_index) = {
    .schema = "aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    .composite = {.functional = function<&unsafe_index_composite>()},
    .samples = [] { return Samples{{"rows", {f64({4, 3}), picks({i64({5}, 0, 4)})}}}; },
};

WEFT_OPERATOR(index_put) = {
    .schema =
        "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    .inplace =
        "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
        "Tensor(a!)",
    .out =
        "aten::index_put.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&index_put_meta>(),
    .kernel = structured_exact<&index_put_meta, &index_put_into, true, Elements::kMayRepeat>(),
    .vjp = {.saves = inputs(1), .rule = index_put_vjp},
    .batch = index_put_batch,
    .samples = index_put_samples,
};

WEFT_OPERATOR(index_put_impl) = {
    .schema =
        "aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
        "unsafe=False) -> Tensor",
    .inplace =
        "aten::_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, "
        "bool unsafe=False) -> Tensor(a!)",
    .out =
        "aten::_index_put_impl.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, "
        "bool unsafe=False, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = {.functional = function<&index_put_impl_composite>(),
                  .inplace = function<&index_put_impl_inplace>(),
                  .out = function<&index_put_impl_out>()},
    .samples = index_put_samples,
};

WEFT_OPERATOR(unsafe_index_put) = {
    .schema =
        "aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
        "Tensor",
    .composite = {.functional = function<&unsafe_index_put_composite>()},
    .samples = index_put_samples,
};

}  // namespace weft::ops
