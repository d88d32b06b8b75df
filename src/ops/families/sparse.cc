// Sparse tensors: an extension of indices and values.
#include "weft/ops/sparse.h"

#include <algorithm>
#include <numeric>

#include "ops/support/dense.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {
namespace ops {
extern const OpDef add_tensor_op, sub_tensor_op, mul_tensor_op, mul_scalar_op, div_tensor_op, div_scalar_op,
    neg_op, alias_op, detach_op, clone_op, to_copy_op, copy_op;
}  // namespace ops

namespace {

class SparseTensor final : public Extension {
 public:
  SparseTensor(Tensor indices, Tensor values, SymInts sizes)
      : indices_(std::move(indices)), values_(std::move(values)), sizes_(std::move(sizes)) {}

  const Tensor& indices() const { return indices_; }
  const Tensor& values() const { return values_; }
  const SymInts& sizes() const { return sizes_; }

  std::string type_name() const override { return "SparseTensor"; }
  std::string_view layout() const override { return "sparse_coo"; }
  std::vector<Tensor> inner_tensors() const override { return {indices_, values_}; }
  std::vector<std::string> inner_names() const override { return {"indices", "values"}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<SparseTensor>(std::move(inner[0]), std::move(inner[1]), sizes_);
  }
  Value context_value() const override { return Value::list_of(sizes_); }
  std::optional<Tensor> to_dense() const override {
    return added_to(zeros(sizes_, values_.dtype(), std::nullopt, values_.device()));
  }

  std::optional<Value> handle(const Operator& op, Args args) override {
    const OpDef* def = &op.def();
    const bool writes = op.form() == OpForm::kInplace;
    if (op.form() == OpForm::kOut) refuse(op);
    if (def == &ops::add_tensor_op || def == &ops::sub_tensor_op) {
      Scalar factor = args[2].to_scalar();
      if (def == &ops::sub_tensor_op) factor = negative(factor);
      return add(op, args[0].to_tensor(), args[1].to_tensor(), factor, writes);
    }
    if (writes) return write(op, args);
    for (const OpDef* mapped : {&ops::mul_scalar_op, &ops::div_scalar_op, &ops::neg_op, &ops::alias_op,
                                &ops::detach_op, &ops::clone_op, &ops::to_copy_op})
      if (def == mapped) return mapped_values(op, args);
    if (def == &ops::mul_tensor_op || def == &ops::div_tensor_op) return scaled(op, args);
    refuse(op);
  }

  // `dense` with the values added at the indices.
  Tensor added_to(const Tensor& dense) const { return index_put(dense, places(), values_, true); }
  std::vector<Tensor> places() const { return unbind(indices_, 0); }

 private:
  [[noreturn]] static void refuse(const Operator& op) {
    unsupported("{}: sparse tensors do not support it; take the dense form, to_dense(tensor)", op.name());
  }
  static Scalar negative(const Scalar& number) {
    return number.is_integral() ? Scalar(-number.to_int()) : Scalar(-number.to_double());
  }
  static Tensor times(const Tensor& tensor, const Scalar& factor) {
    return factor.equals_number(1) ? tensor : tensor * factor;
  }
  Tensor around(const Tensor& values) const { return sparse_tensor(indices_, values, sizes_); }

  static Value add(const Operator& op, const Tensor& self, const Tensor& other, const Scalar& factor,
                   bool writes) {
    const auto *a = extension_of<SparseTensor>(self), *b = extension_of<SparseTensor>(other);
    require(may_be_same(self, other),
            "{}: expected tensors of the same sizes, but got {} and {}, one of them sparse", op.name(),
            describe(self), describe(other));
    if (!a) {
      Tensor added = times(b->values_, factor).to(self.dtype());
      return writes ? Value(index_put_(self, b->places(), added, true))
                    : Value(index_put(self, b->places(), added, true));
    }
    if (writes) refuse(op);
    if (!b) return a->added_to(times(other, factor));
    require(a->indices_.size(0).same_as(b->indices_.size(0)),
            "{}: expected sparse tensors with as many sparse dims, but they have {} and {}", op.name(),
            a->indices_.size(0).to_string(), b->indices_.size(0).to_string());
    return sparse_tensor(cat({a->indices_, b->indices_}, 1), cat({a->values_, times(b->values_, factor)}, 0),
                         a->sizes_);
  }
  static bool may_be_same(const Tensor& a, const Tensor& b) {
    if (a.dim() != b.dim()) return false;
    for (int64_t d = 0; d < a.dim(); ++d)
      if (!guard_or(a.size(d) == b.size(d), true)) return false;
    return true;
  }
  // A dense target takes a sparse tensor's elements.
  static Value write(const Operator& op, Args args) {
    if (&op.def() != &ops::copy_op || extension_of<SparseTensor>(args[0].to_tensor())) refuse(op);
    return copy_(args[0].to_tensor(), weft::to_dense(args[1].to_tensor()));
  }
  Value mapped_values(const Operator& op, Args args) const {
    ValueList own(args.begin(), args.end());
    own[0] = values_;
    if (&op.def() == &ops::to_copy_op) own[6] = Value();  // a layout in memory is the values' own
    return around(dispatch::redispatch(op, own).to_tensor());
  }
  // By a number, or element by element.
  static Value scaled(const Operator& op, Args args) {
    const Tensor a = args[0].to_tensor(), b = args[1].to_tensor();
    const auto* self = extension_of<SparseTensor>(a);
    if (!self && &op.def() == &ops::mul_tensor_op && !extension_of<SparseTensor>(a)) {
      Value swapped[] = {args[1], args[0]};
      return scaled(op, swapped);
    }
    if (!self || extension_of<SparseTensor>(b)) refuse(op);
    Tensor factor = b.dim() == 0 ? b : index(expand(b, self->sizes_), self->places());
    return self->around(dispatch::redispatch(op, ValueList{self->values_, factor}).to_tensor());
  }

  Tensor indices_, values_;
  SymInts sizes_;
};

const SparseTensor& sparse_in(const Tensor& tensor, const char* what) {
  const auto* sparse = extension_of<SparseTensor>(tensor);
  require(sparse != nullptr, "{}: expected a sparse tensor, but got {}", what, describe(tensor));
  return *sparse;
}

}  // namespace

Tensor sparse_tensor(const Tensor& indices, const Tensor& values, SymIntSpan sizes) {
  require(indices.dim() == 2 && indices.dtype() == kInt64,
          "sparse_tensor: expected int64 indices of [dims, count], but got {}", describe(indices));
  const int64_t sparse = guard_int(indices.size(0));
  require(values.dim() >= 1 && guard_or(values.size(0) == indices.size(1), true),
          "sparse_tensor: expected a value for each index, but got {} and {}", describe(indices),
          describe(values));
  require(sparse >= 1 && sparse + values.dim() - 1 == static_cast<int64_t>(sizes.size()),
          "sparse_tensor: indices of {} dims and values of {} make {} dims, but {} sizes were given", sparse,
          describe(values), sparse + values.dim() - 1, sizes.size());
  for (int64_t d = 1; d < values.dim(); ++d)
    require(guard_or(values.size(d) == sizes[static_cast<size_t>(sparse + d - 1)], true),
            "sparse_tensor: values of {} do not fit the sizes {}", describe(values), describe_sizes(sizes));
  auto impl =
      make_ref<TensorImpl>(Storage::without_memory(0, values.device()), values.dtype(), values.device());
  impl->set_geometry(sizes, contiguous_strides(sizes));
  impl->set_flags(layer::kExtension);
  impl->box = make_ref<SparseTensor>(indices, values, SymInts(sizes));
  return Tensor(std::move(impl));
}
bool is_sparse(const Tensor& tensor) { return extension_of<SparseTensor>(tensor) != nullptr; }
Tensor sparse_indices(const Tensor& tensor) { return sparse_in(tensor, "sparse_indices").indices(); }
Tensor sparse_values(const Tensor& tensor) { return sparse_in(tensor, "sparse_values").values(); }
Tensor to_dense(const Tensor& tensor) {
  const auto* sparse = extension_of<SparseTensor>(tensor);
  return sparse ? *sparse->to_dense() : tensor;
}

Tensor coalesce(const Tensor& tensor) {
  const SparseTensor& sparse = sparse_in(tensor, "coalesce");
  const Tensor indices = dense_as(sparse.indices(), kInt64);
  const auto dims = static_cast<size_t>(indices.plain_sizes()[0]),
             count = static_cast<size_t>(indices.plain_sizes()[1]);
  const int64_t* at = indices.data<int64_t>();
  auto compare = [&](size_t a, size_t b) {
    for (size_t d = 0; d < dims; ++d)
      if (at[d * count + a] != at[d * count + b]) return at[d * count + a] < at[d * count + b] ? -1 : 1;
    return 0;
  };
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return compare(a, b) < 0; });
  std::vector<size_t> firsts;  // of each run of equal indices
  Tensor group = allocate_contiguous({static_cast<int64_t>(count)}, kInt64);
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || compare(order[i - 1], order[i]) != 0) firsts.push_back(order[i]);
    group.data<int64_t>()[order[i]] = static_cast<int64_t>(firsts.size()) - 1;
  }
  const auto groups = static_cast<int64_t>(firsts.size());
  Tensor kept = allocate_contiguous({static_cast<int64_t>(dims), groups}, kInt64);
  for (size_t d = 0; d < dims; ++d)
    for (size_t g = 0; g < firsts.size(); ++g)
      kept.data<int64_t>()[d * firsts.size() + g] = at[d * count + firsts[g]];
  SymInts sizes(sparse.values().sizes());
  sizes[0] = groups;
  Tensor sums = index_add(zeros(sizes, sparse.values().dtype()), 0, group, sparse.values());
  return sparse_tensor(kept, sums, sparse.sizes());
}

namespace {
constinit thread_local bool records_sparse_gradients = false;
}  // namespace

SparseGradientScope::SparseGradientScope(bool welcome) : before_(records_sparse_gradients) {
  records_sparse_gradients = welcome;
}
SparseGradientScope::~SparseGradientScope() { records_sparse_gradients = before_; }

bool may_be_sparse(const Tensor& grad, const SymInt& count) {
  // A symbolic size of the whole could not be told from its parts.
  if (layer_state().grad_mode || count.is_symbolic()) return false;
  constexpr uint32_t kNoWatchers = layer::kKernelDetour | layer::kAutograd | layer::kAutocast;
  constexpr uint32_t kCapture = layer::kFunctionalizeLower | layer::kRecorderLower | layer::kFake;
  const uint32_t watchers = (grad.flags() | layer_state().active) & layer::kAll & ~kNoWatchers;
  return records_sparse_gradients ? (watchers & ~kCapture) == 0 : watchers == 0 && !grad.impl()->box;
}

Tensor sparse_rows_gradient(const Tensor& rows_, const Tensor& indices_, const SymInt& count,
                            const SymInt& padding, bool scale_by_frequency) {
  Tensor indices = reshape(indices_, {-1}).to(kInt64);
  const SymInt width = rows_.size(-1);
  Tensor rows = reshape(rows_, {indices.size(0), width});
  if (scale_by_frequency) {
    Tensor counts = index_add(zeros({count}, kInt64), 0, indices, ones({indices.size(0)}, kInt64));
    rows = rows / unsqueeze(index_select(counts, 0, indices), 1);
  }
  if (!guard_or(padding < 0, false)) {
    Tensor kept = reshape(nonzero(indices != Scalar(padding)), {-1});
    indices = index_select(indices, 0, kept);
    rows = index_select(rows, 0, kept);
  }
  return sparse_tensor(unsqueeze(indices, 0), rows, SymInts{count, width});
}

}  // namespace weft
