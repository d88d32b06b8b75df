// Bags of rows of a table: their sums, means or maxima.
#include <cmath>

#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "weft/ops/sparse.h"

namespace weft::ops {
namespace {

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using FourSpecs = std::tuple<TensorSpec, TensorSpec, TensorSpec, TensorSpec>;

void check_index(const char* name, const Tensor& tensor) {
  require(
      tensor.dtype() == kInt64 || tensor.dtype() == kInt32,
      "embedding_bag: expected '{}' to have one of the following scalar types: Long, Int; but got {} instead",
      name, describe(tensor));
}
void check_bags(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                const Tensor& per_sample_weights, bool include_last_offset) {
  require(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
  require(is_floating(weight.dtype()),
          "Expected tensor for argument 'weight' to have one of the following scalar types: Half, BFloat16, "
          "Float, Double; but got {} instead (while checking arguments for embedding_bag)",
          describe(weight));
  check_index("indices", indices);
  check_index("offsets", offsets);
  require(indices.dim() == 1 && offsets.dim() == 1,
          "embedding_bag: expected lists of indices and offsets, but got {} and {}", describe(indices),
          describe(offsets));
  require(mode >= kSum && mode <= kMax, "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), but is {}",
          mode);
  require(!include_last_offset || !guard_or(offsets.size(0) == 0, false),
          "include_last_offset: numBags should be at least 1");
  if (!per_sample_weights.defined()) return;
  require(
      mode == kSum,
      "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
      "(got mode={})",
      mode == kMean ? "'mean'" : "'max'");
  require(per_sample_weights.dtype() == weight.dtype(),
          "expected weight and per_sample_weights to have the same type, but got {} and {}", describe(weight),
          describe(per_sample_weights));
  require(per_sample_weights.dim() == 1, "embedding_bag: expected a list of per_sample_weights, but got {}",
          describe(per_sample_weights));
  require(guard_or(per_sample_weights.size(0) == indices.size(0), true),
          "Expected per_sample_weights to have as many elements as indices, but got {} and {}",
          describe(per_sample_weights), describe(indices));
}
// Where rows lie one behind the other and nothing is padded, sums need no list of bags.
bool needs_bags(const Tensor& weight, int64_t mode, const Tensor& per_sample_weights, int64_t padding_idx) {
  const bool has_rows = weight.dtype() != kFloat64 && guard_or(weight.stride(1) == 1, false);
  const bool has_factors =
      !per_sample_weights.defined() || guard_or(per_sample_weights.stride(0) == 1, false);
  return mode != kSum || !has_rows || !has_factors || padding_idx >= 0;
}

template <bool for_gradients>
struct Bag {
  static FourSpecs meta(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                        int64_t mode, bool, const Tensor& per_sample_weights, bool include_last_offset,
                        int64_t padding_idx) {
    check_bags(weight, indices, offsets, mode, per_sample_weights, include_last_offset);
    const DType index_type = indices.dtype() == kInt64 || offsets.dtype() == kInt64 ? kInt64 : kInt32;
    const SymInt given = offsets.size(0), bags = include_last_offset ? given - 1 : given;
    auto list = [&](const SymInt& size) { return contiguous_spec({size}, index_type, weight.device()); };
    TensorSpec sizes = list(for_gradients || mode != kSum ? bags : given);
    TensorSpec largest =
        mode == kMax ? contiguous_spec({bags, weight.size(1)}, index_type, weight.device()) : sizes;
    return {contiguous_spec({bags, weight.size(1)}, weight.dtype(), weight.device()),
            list(needs_bags(weight, mode, per_sample_weights, padding_idx) ? indices.size(0) : SymInt(0)),
            sizes, largest};
  }
  static void into(const Tensor& weight_, const Tensor& indices_, const Tensor& offsets_, bool, int64_t mode,
                   bool, const Tensor& factors_, bool, int64_t padding_idx, const Tensor& out,
                   const Tensor& offset2bag, const Tensor& bag_size, const Tensor& max_indices) {
    const DType type = wide_type(weight_.dtype());
    const Tensor indices = dense_as(indices_, kInt64), offsets = dense_as(offsets_, kInt64),
                 weight = dense_as(weight_, type),
                 factors = factors_.defined() ? dense_as(factors_, type) : factors_;
    const int64_t count = indices.plain_numel(), bags = out.plain_sizes()[0], width = out.plain_sizes()[1],
                  rows = weight_.plain_sizes()[0];
    const int64_t *lookups = indices.data<int64_t>(), *starts = offsets.data<int64_t>();
    const int64_t given = offsets.plain_numel();
    require(
        given == 0 || starts[0] == 0,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
        "However, got {}",
        given == 0 ? 0 : starts[0]);
    for (int64_t b = 1; b < given; ++b)
      require(starts[b - 1] <= starts[b],
              "offsets must not fall, but offsets[{}] is {} and offsets[{}] is {}", b - 1, starts[b - 1], b,
              starts[b]);
    require(given == 0 || starts[given - 1] <= count,
            "offsets[-1] can not be greater than input's length({}) but got offsets[-1] of {}", count,
            given == 0 ? 0 : starts[given - 1]);
    for (int64_t i = 0; i < count; ++i)
      require(lookups[i] >= 0 && lookups[i] < rows,
              "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {}", lookups[i]);
    Tensor wide = zeros({bags, width}, type), places = zeros({count}, kInt64), sizes = zeros({bags}, kInt64),
           largest = zeros({bags, width}, kInt64);
    auto run = [&]<typename T>() {
      const T *table = weight.data<T>(), *scale = factors.defined() ? factors.data<T>() : nullptr;
      for (int64_t b = 0; b < bags; ++b) {
        const int64_t end = b + 1 < given ? starts[b + 1] : count;
        T* to = wide.data<T>() + b * width;
        int64_t used = 0;
        for (int64_t i = starts[b]; i < end; ++i) {
          places.data<int64_t>()[i] = b;
          if (lookups[i] == padding_idx) continue;
          const T* row = table + lookups[i] * width;
          for (int64_t k = 0; k < width; ++k) {
            if (mode != kMax) {
              to[k] += scale ? row[k] * scale[i] : row[k];
            } else if (used == 0 || row[k] > to[k] || std::isnan(row[k])) {
              to[k] = row[k];
              largest.data<int64_t>()[b * width + k] = lookups[i];
            }
          }
          ++used;
        }
        sizes.data<int64_t>()[b] = used;
        if (mode == kMean && used > 0)
          for (int64_t k = 0; k < width; ++k) to[k] /= static_cast<T>(used);
      }
    };
    if (type == kFloat64) run.template operator()<double>();
    else run.template operator()<float>();
    copy_values(out, wide);
    if (offset2bag.plain_numel() > 0) copy_values(offset2bag, places);
    // Of sums, nobody counts.
    copy_values(bag_size, mode == kSum ? zeros(bag_size.sizes(), kInt64) : sizes);
    copy_values(max_indices, mode == kMax    ? largest
                             : mode == kMean ? sizes
                                             : zeros(max_indices.sizes(), kInt64));
  }
};
using BagForGradients = Bag<true>;
using BagForward = Bag<false>;

// Of each index the bag, which sums of plain rows do not write down.
Tensor bags_of(const Tensor& offset2bag, const Tensor& indices, const Tensor& offsets) {
  if (!guard_or(offset2bag.size(0) == 0, false) || guard_or(indices.size(0) == 0, false)) return offset2bag;
  Tensor begins = zeros({indices.size(0) + 1}, kInt64, std::nullopt, indices.device());
  begins = index_add(begins, 0, offsets, ones({offsets.size(0)}, kInt64, std::nullopt, indices.device()));
  return slice(cumsum(begins, 0) - 1, 0, 0, indices.size(0)).to(indices.dtype());
}

TensorSpec dense_backward_meta(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                               const Tensor& bag_size, const Tensor& max_indices, const SymInt& num_weights,
                               bool, int64_t mode, const Tensor& per_sample_weights, int64_t) {
  const char* op = "_embedding_bag_dense_backward";
  require(grad.dim() == 2, "{}: expected a gradient of rows, but got {}", op, describe(grad));
  require(is_floating(grad.dtype()), "{}: not implemented for '{}'", op, dtype_name(grad.dtype()));
  check_index("indices", indices);
  check_index("offset2bag", offset2bag);
  require(!guard_or(num_weights < 0, false), "{}: expected num_weights to be at least 0, but got {}", op,
          num_weights.to_string());
  if (mode != kMax) check_numel(op, "offset2bag", offset2bag, indices.numel());
  if (mode == kMax) check_sizes(op, "maximum_indices", max_indices, grad.sizes());
  if (mode == kMean) check_numel(op, "bag_size", bag_size, grad.size(0));
  require(mode >= kSum && mode <= kMax, "{}: mode must be 0 (sum), 1 (mean) or 2 (max), but is {}", op, mode);
  if (per_sample_weights.defined())
    check_numel(op, "per_sample_weights", per_sample_weights, indices.numel());
  return contiguous_spec({num_weights, grad.size(1)}, grad.dtype(), grad.device());
}
void dense_backward_into(const Tensor& grad_, const Tensor& indices_, const Tensor& offset2bag_,
                         const Tensor& bag_size_, const Tensor& max_indices_, const SymInt& num_weights,
                         bool scale_grad_by_freq, int64_t mode, const Tensor& factors_, int64_t padding_idx,
                         const Tensor& out) {
  const DType type = wide_type(grad_.dtype());
  const Tensor grad = dense_as(grad_, type), indices = dense_as(indices_, kInt64),
               places = dense_as(offset2bag_, kInt64), sizes = dense_as(bag_size_, kInt64),
               largest = dense_as(max_indices_, kInt64),
               factors = factors_.defined() ? dense_as(factors_, type) : factors_;
  const int64_t rows = guard_int(num_weights), width = grad.plain_sizes()[1], bags = grad.plain_sizes()[0],
                count = indices.plain_numel();
  const int64_t* lookups = indices.data<int64_t>();
  for (int64_t i = 0; i < count; ++i)
    require(lookups[i] >= 0 && lookups[i] < rows, "embedding_bag: index {} is not in a table of {} rows",
            lookups[i], rows);
  std::vector<int64_t> frequency(static_cast<size_t>(rows));
  for (int64_t i = 0; i < count; ++i) ++frequency[static_cast<size_t>(lookups[i])];
  Tensor wide = zeros({rows, width}, type);
  auto run = [&]<typename T>() {
    const T *from = grad.data<T>(), *scale = factors.defined() ? factors.data<T>() : nullptr;
    T* to = wide.data<T>();
    if (mode == kMax) {
      for (int64_t b = 0; b < bags; ++b)
        for (int64_t k = 0; k < width; ++k) {
          if (sizes.plain_numel() == bags && sizes.data<int64_t>()[b] == 0) continue;
          const int64_t row = largest.data<int64_t>()[b * width + k];
          require(row >= 0 && row < rows, "embedding_bag: maximum index {} is not in a table of {} rows", row,
                  rows);
          to[row * width + k] += from[b * width + k];
        }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      if (lookups[i] == padding_idx) continue;
      const int64_t bag = places.data<int64_t>()[i];
      require(bag >= 0 && bag < bags, "embedding_bag: offset2bag[{}] is {}, but there are {} bags", i, bag,
              bags);
      T factor = scale ? scale[i] : T(1);
      if (scale_grad_by_freq) factor /= static_cast<T>(frequency[static_cast<size_t>(lookups[i])]);
      if (mode == kMean) factor /= static_cast<T>(sizes.data<int64_t>()[bag]);
      for (int64_t k = 0; k < width; ++k) to[lookups[i] * width + k] += factor * from[bag * width + k];
    }
  };
  if (type == kFloat64) run.template operator()<double>();
  else run.template operator()<float>();
  copy_values(out, wide);
}

TensorSpec factors_backward_meta(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                                 const Tensor&, const Tensor&, int64_t mode, int64_t) {
  require(mode == kSum, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  require(is_floating(grad.dtype()), "_embedding_bag_per_sample_weights_backward: not implemented for '{}'",
          dtype_name(grad.dtype()));
  require(grad.dim() == 2 && weight.dim() == 2 && guard_or(grad.size(1) == weight.size(1), true),
          "_embedding_bag_per_sample_weights_backward: expected a gradient of rows as wide as the weight's, "
          "but got {} "
          "and {}",
          describe(grad), describe(weight));
  check_dtype("_embedding_bag_per_sample_weights_backward", "grad", grad, weight.dtype());
  check_index("indices", indices);
  return contiguous_spec({indices.size(0)}, grad.dtype(), grad.device());
}
void factors_backward_into(const Tensor& grad, const Tensor& weight, const Tensor& indices,
                           const Tensor& offsets, const Tensor& offset2bag, int64_t, int64_t padding_idx,
                           const Tensor& out) {
  const DType type = wide_type(grad.dtype());
  Tensor bags = bags_of(offset2bag, indices, offsets);
  Tensor products = index_select(grad, 0, bags).to(type) * index_select(weight, 0, indices).to(type);
  Tensor slopes = sum(products, {1});
  if (padding_idx >= 0) slopes = masked_fill(slopes, indices == padding_idx, 0);
  copy_values(out, slopes);
}

// The rows that were looked up, and what each of them adds.
Tensor sparse_backward(const Tensor& grad, const Tensor& indices, const Tensor& offset2bag,
                       const Tensor& bag_size, const SymInt& num_weights, bool scale_grad_by_freq,
                       int64_t mode, const Tensor& per_sample_weights, int64_t padding_idx) {
  require(mode != kMax, "embedding_bag: the maximum of a bag has no sparse gradient; use sparse = false");
  Tensor rows = index_select(grad, 0, offset2bag);
  if (mode == kMean) rows = rows / unsqueeze(index_select(bag_size, 0, offset2bag), 1);
  if (per_sample_weights.defined()) rows = rows * unsqueeze(per_sample_weights, 1);
  return sparse_rows_gradient(rows, indices, num_weights, padding_idx, scale_grad_by_freq);
}
Tensor backward_composite(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                          const Tensor& offset2bag, const Tensor& bag_size, const Tensor& max_indices,
                          const SymInt& num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                          const Tensor& per_sample_weights, int64_t padding_idx) {
  Tensor bags = bags_of(offset2bag, indices, offsets);
  if (sparse)
    return sparse_backward(grad, indices, bags, bag_size, num_weights, scale_grad_by_freq, mode,
                           per_sample_weights, padding_idx);
  return _embedding_bag_dense_backward(grad, indices, bags, bag_size, max_indices, num_weights,
                                       scale_grad_by_freq, mode, per_sample_weights, padding_idx);
}
Grads bag_vjp(const Vjp& v) {
  Tensor factors = v.has(6) ? v.input(6) : Tensor(), indices = v.input(1), offsets = v.input(2);
  const auto mode = v.arg<int64_t>(4), padding = v.arg<int64_t>(8);
  const bool sparse = v.arg<bool>(5) && may_be_sparse(v.grad(), v.sizes(0)[0]);
  Tensor to_weight, to_factors;
  if (v.arg<bool>(7)) offsets = slice(offsets, 0, 0, offsets.size(0) - 1);
  if (v.wants(0))
    to_weight = _embedding_bag_backward(v.grad(), indices, offsets, v.output(1), v.output(2), v.output(3),
                                        v.sizes(0)[0], v.arg<bool>(3), mode, sparse, factors, padding);
  if (factors.defined() && v.wants(6))
    to_factors = _embedding_bag_per_sample_weights_backward(v.grad(), v.input(0), indices, offsets,
                                                            v.output(1), mode, padding);
  return {to_weight, Tensor(), Tensor(), to_factors};
}

// The backward pass is linear in the gradient: what arrives for the rows goes back to the bags.
Grads dense_backward_vjp(const Vjp& v) {
  Tensor indices = v.input(1), bags = v.input(2), sizes = v.input(3), largest = v.input(4);
  const auto mode = v.arg<int64_t>(7), padding = v.arg<int64_t>(9);
  Tensor factors = v.has(8) ? v.input(8) : Tensor(), to_grad, to_factors,
         start = new_zeros(v.grad(), v.sizes(0));
  if (mode == kMax) {
    to_grad = gather(v.grad(), 0, largest.to(kInt64));
    to_grad = masked_fill(to_grad, unsqueeze(sizes == 0, 1), 0);
    return {to_grad, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
  Tensor rows = index_select(v.grad(), 0, indices);
  if (v.arg<bool>(6)) {
    Tensor counts = index_add(zeros({v.arg<SymInt>(5)}, kInt64, std::nullopt, indices.device()), 0, indices,
                              ones_like(indices).to(kInt64));
    rows = rows / unsqueeze(index_select(counts, 0, indices), 1);
  }
  if (mode == kMean) rows = rows / unsqueeze(index_select(sizes, 0, bags), 1);
  if (padding >= 0) rows = masked_fill(rows, unsqueeze(indices == padding, 1), 0);
  if (factors.defined() && v.wants(8)) to_factors = sum(rows * index_select(v.input(0), 0, bags), {1});
  if (factors.defined()) rows = rows * unsqueeze(factors, 1);
  return {index_add(start, 0, bags, rows), Tensor(), Tensor(), Tensor(), Tensor(), to_factors};
}
Grads factors_backward_vjp(const Vjp& v) {
  Tensor grad = v.input(0), weight = v.input(1), indices = v.input(2);
  Tensor bags = bags_of(v.input(4), indices, v.input(3)), slope = unsqueeze(v.grad(), 1);
  const auto padding = v.arg<int64_t>(6);
  if (padding >= 0) slope = masked_fill(slope, unsqueeze(indices == padding, 1), 0);
  Tensor to_grad = index_add(zeros_like(grad), 0, bags, slope * index_select(weight, 0, indices));
  Tensor to_weight = index_add(zeros_like(weight), 0, indices, slope * index_select(grad, 0, bags));
  return {to_grad, to_weight, Tensor(), Tensor(), Tensor()};
}

// --- the choice ------------------------------------------------------------------------------------------

Four bag_by_need(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq,
                 int64_t mode, bool sparse, const Tensor& per_sample_weights, bool include_last_offset,
                 int64_t padding_idx) {
  const bool is_recorded = weight.requires_grad() || per_sample_weights.requires_grad();
  if (is_recorded)
    return _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                          include_last_offset, padding_idx);
  return _embedding_bag_forward_only(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                                     per_sample_weights, include_last_offset, padding_idx);
}
Four bag_composite(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                   bool scale_grad_by_freq, int64_t mode, bool sparse, const Tensor& per_sample_weights,
                   bool include_last_offset) {
  return bag_by_need(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                     include_last_offset, -1);
}
Four bag_padding_composite(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                           bool scale_grad_by_freq, int64_t mode, bool sparse,
                           const Tensor& per_sample_weights, bool include_last_offset,
                           std::optional<int64_t> padding_idx) {
  int64_t row = -1;
  if (padding_idx) {
    require(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
    const SymInt rows = weight.size(0);
    require(guard_or((SymInt(*padding_idx) >= -rows) & (SymInt(*padding_idx) < rows), true),
            "padding_idx must be within the number of embeddings, -{} through {}, but got {}",
            rows.to_string(), (rows - 1).to_string(), *padding_idx);
    row = *padding_idx < 0 ? *padding_idx + guard_int(rows) : *padding_idx;
  }
  return bag_by_need(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                     include_last_offset, row);
}

Samples bag_samples() {
  Tensor offsets = i64_list({0, 2});
  return {{"sum", {f64({5, 3}), i64({4}, 0, 5), offsets}},
          {"mean", {f64({5, 3}), i64({4}, 0, 5), offsets, false, 1}},
          {"max", {f64({5, 3}), i64({4}, 0, 5), offsets, false, 2}},
          {"weighted", {f64({5, 3}), i64({4}, 0, 5), offsets, false, 0, false, f64({4})}}};
}

}  // namespace

WEFT_OPERATOR(embedding_bag_kernel) = {
    .schema =
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
        "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
        "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    .out =
        "aten::_embedding_bag.out(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
        "include_last_offset=False, int padding_idx=-1, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) "
        "out2, Tensor(d!) out3) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))",
    .traits = Traits::kCore,
    .meta = function<&BagForGradients::meta>(),
    .kernel = structured_exact<&BagForGradients::meta, &BagForGradients::into>(),
    .vjp = {.saves = input_for(0, 6) | inputs(1, 2, 6) | outputs(1, 2, 3) | sizes(0),
            .rule = bag_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples = bag_samples,
};

WEFT_OPERATOR(embedding_bag_forward_only) = {
    .schema =
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
        "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
    .out =
        "aten::_embedding_bag_forward_only.out(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
        "include_last_offset=False, int padding_idx=-1, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) "
        "out2, Tensor(d!) out3) -> (Tensor(a!), Tensor(b!), Tensor(c!), Tensor(d!))",
    .meta = function<&BagForward::meta>(),
    .kernel = structured_exact<&BagForward::meta, &BagForward::into>(),
    .vjp = {.saves = input_for(0, 6) | inputs(1, 2, 6) | outputs(1, 2, 3) | sizes(0),
            .rule = bag_vjp,
            .differentiable_results = 1},
    .batch = loop_batch,
    .samples = bag_samples,
};

WEFT_OPERATOR(embedding_bag) = {
    .schema =
        "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, "
        "int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> "
        "(Tensor, Tensor, Tensor, Tensor)",
    .composite = {.functional = function<&bag_composite>()},
    .samples = bag_samples,
};

WEFT_OPERATOR(embedding_bag_padding_idx) = {
    .schema =
        "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, "
        "int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
    .composite = {.functional = function<&bag_padding_composite>()},
    .samples =
        [] {
          return Samples{
              {"padding",
               {f64({5, 3}), i64({4}, 0, 5), i64_list({0, 2}), false, 1, false, Value(), false, 1}}};
        },
};

WEFT_OPERATOR(embedding_bag_backward) = {
    .schema =
        "aten::_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, "
        "Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, "
        "bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
    .composite = {.functional = function<&backward_composite>()},
    .samples =
        [] {
          return Samples{{"mean",
                          {f64({2, 3}), i64({4}, 0, 5), i64_list({0, 2}), i64_list({0, 0, 1, 1}),
                           i64_list({2, 2}), i64_list({0, 0}), 5, false, 1, false, Value()}}};
        },
};

WEFT_OPERATOR(embedding_bag_dense_backward) = {
    .schema =
        "aten::_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor "
        "bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? "
        "per_sample_weights, int padding_idx=-1) -> Tensor",
    .out =
        "aten::_embedding_bag_dense_backward.out(Tensor grad, Tensor indices, Tensor offset2bag, Tensor "
        "bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? "
        "per_sample_weights, int padding_idx=-1, *, Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&dense_backward_meta>(),
    .kernel = structured_exact<&dense_backward_meta, &dense_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2, 3, 4, 8) | sizes(0), .rule = dense_backward_vjp},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"mean",
                          {f64({2, 3}), i64({4}, 0, 5), i64_list({0, 0, 1, 1}), i64_list({2, 2}),
                           i64_list({0, 0}), 5, false, 1, Value()}}};
        },
};

WEFT_OPERATOR(embedding_bag_per_sample_weights_backward) = {
    .schema =
        "aten::_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor "
        "offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
    .out =
        "aten::_embedding_bag_per_sample_weights_backward.out(Tensor grad, Tensor weight, Tensor indices, "
        "Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1, *, Tensor(a!) out) -> Tensor(a!)",
    .meta = function<&factors_backward_meta>(),
    .kernel = structured_exact<&factors_backward_meta, &factors_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2, 3, 4), .rule = factors_backward_vjp},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{
              {"plain",
               {f64({2, 3}), f64({5, 3}), i64({4}, 0, 5), i64_list({0, 2}), i64_list({0, 0, 1, 1}), 0}}};
        },
};

}  // namespace weft::ops
