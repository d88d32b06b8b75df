// Rows of a table looked up by number.
#include "ops/cpu/embedding.h"
#include "ops/decompositions/decompositions.h"

#include "ops/cpu/indexed_move.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "weft/ops/sparse.h"

namespace weft::ops {
namespace {

void check_lookup(const char* op, const Tensor& indices) {
  require(indices.dtype() == kInt64 || indices.dtype() == kInt32,
          "{}: Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; "
          "but got {} instead",
          op, describe(indices));
}
SymInts with_width(SymIntSpan sizes, const SymInt& width) {
  SymInts all(sizes);
  all.push_back(width);
  return all;
}
void check_rows(const Tensor& indices, int64_t rows) {
  const int64_t* values = indices.data<int64_t>();
  for (int64_t i = 0; i < indices.plain_numel(); ++i)
    require(values[i] >= 0 && values[i] < rows, "index out of range in self: row {} of a table of {}",
            values[i], rows);
}

TensorSpec embedding_meta(const Tensor& weight, const Tensor& indices, const SymInt&, bool, bool) {
  require(weight.dim() == 2, "'weight' must be 2-D, but it is {}", describe(weight));
  check_lookup("embedding", indices);
  return contiguous_spec(with_width(indices.sizes(), weight.size(1)), weight.dtype(), weight.device());
}
void embedding_into(const Tensor& weight, const Tensor& indices, const SymInt&, bool, bool,
                    const Tensor& out) {
  Tensor rows = dense_as(indices, kInt64);
  IntSpan sizes = weight.plain_sizes(), strides = weight.plain_strides();
  check_rows(rows, sizes[0]);
  std::vector<int64_t> at(rows.data<int64_t>(), rows.data<int64_t>() + rows.plain_numel()), after, before{0};
  for (int64_t& row : at) row *= strides[0];
  for (int64_t k = 0; k < sizes[1]; ++k) after.push_back(k * strides[1]);
  write_dense(out, [&](const Tensor& dense) {
    cpu::gather_indexed({before, at, after}, static_cast<const char*>(weight.raw_data()),
                        static_cast<char*>(dense.raw_data()), item_size(weight.dtype()));
  });
}

TensorSpec embedding_backward_meta(const Tensor& grad, const Tensor& indices, const SymInt& rows,
                                   const SymInt&, bool) {
  check_lookup("embedding_dense_backward", indices);
  require(is_floating(grad.dtype()) || is_complex(grad.dtype()),
          "\"embedding_backward\" not implemented for '{}'", dtype_name(grad.dtype()));
  require(grad.dim() > 0, "embedding_dense_backward: expected the gradient of rows, but it is {}",
          describe(grad));
  require(!guard_or(rows < 0, false),
          "embedding_dense_backward: expected num_weights to be at least 0, but got {}", rows.to_string());
  check_numel("embedding_dense_backward", "grad_output", grad, indices.numel() * grad.size(-1));
  return contiguous_spec({rows, grad.size(-1)}, grad.dtype(), grad.device());
}
void embedding_backward_into(const Tensor& grad, const Tensor& indices, const SymInt& rows,
                             const SymInt& padding, bool scale_by_frequency, const Tensor& out) {
  Tensor lookups = dense_as(indices, kInt64), from = dense_as(grad, grad.dtype());
  check_rows(lookups, rows.plain());
  write_dense(out, [&](const Tensor& dense) {
    cpu::EmbeddingBackwardArgs args{rows.plain(),          grad.size(-1).plain(), lookups.data<int64_t>(),
                                    lookups.plain_numel(), guard_int(padding),    scale_by_frequency};
    cpu::embedding_backward(args, static_cast<const char*>(from.raw_data()),
                            static_cast<char*>(dense.raw_data()), dense.dtype());
  });
}
// As PyTorch has it: the division by frequencies belongs to the first backward only.
Tensor embedding_double_backward(const Tensor& grad, const Tensor& indices, const SymInt& padding,
                                 SymIntSpan sizes) {
  Tensor flat = reshape(indices, {-1});
  Tensor rows = index_select(grad, 0, flat);
  if (!guard_or(padding < 0, false)) rows = masked_fill(rows, unsqueeze(flat == Scalar(padding), 1), 0);
  return reshape(rows, sizes);
}

Tensor embedding_backward_composite(const Tensor& grad, const Tensor& indices, const SymInt& rows,
                                    const SymInt& padding, bool scale_by_frequency, bool) {
  return embedding_dense_backward(grad, indices, rows, padding, scale_by_frequency);
}

Batched embedding_batch(const Batch& call) {
  if (call.batch_dim(0) >= 0) return loop_batch(call);
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[1] = batch_first(call.tensor(1), call.batch_dim(1));
  return {weft::call(call.op(), args), {0}};
}

}  // namespace

WEFT_OPERATOR(embedding) = {
    .schema =
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
        "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    .out =
        "aten::embedding.out(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool "
        "scale_grad_by_freq=False, bool sparse=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&embedding_meta>(),
    .kernel = structured_exact<&embedding_meta, &embedding_into>(),
    .vjp = {.saves = inputs(1) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  if (v.arg<bool>(4) && may_be_sparse(v.grad(), v.sizes(0)[0]))
                    return Grads{sparse_rows_gradient(v.grad(), v.input(1), v.sizes(0)[0], v.arg<SymInt>(2),
                                                      v.arg<bool>(3)),
                                 Tensor()};
                  return Grads{embedding_dense_backward(v.grad(), v.input(1), v.sizes(0)[0], v.arg<SymInt>(2),
                                                        v.arg<bool>(3)),
                               Tensor()};
                }},
    // The padding row has no gradient, but a tangent: it is looked up like any other.
    .jvp = [](const Jvp& j) { return std::vector<Tensor>{embedding(j.tangent(0), j.input(1))}; },
    .batch = embedding_batch,
    .samples =
        [] {
          return Samples{{"matrix", {f64({5, 3}), i64({2, 2}, 0, 5)}},
                         {"scalar", {f64({5, 3}), i64({}, 2, 3)}}};
        },
};

WEFT_OPERATOR(embedding_dense_backward) = {
    .schema =
        "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
        "padding_idx, bool scale_grad_by_freq) -> Tensor",
    .out =
        "aten::embedding_dense_backward.out(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt "
        "padding_idx, bool scale_grad_by_freq, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&embedding_backward_meta>(),
    .kernel = structured_exact<&embedding_backward_meta, &embedding_backward_into>(),
    .vjp = {.saves = inputs(1) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{embedding_double_backward(v.grad(), v.input(1), v.arg<SymInt>(3), v.sizes(0)),
                               Tensor()};
                }},
    .batch = loop_batch,
    .decompose = function<&embedding_dense_backward_parts>(),
    .samples =
        [] {
          return Samples{{"rows", {f64({4, 3}), i64({4}, 0, 5), 5, -1, false}},
                         {"padding", {f64({2, 3, 2}), i64({2, 3}, 0, 4), 4, 1, false}}};
        },
};

WEFT_OPERATOR(embedding_backward) = {
    .schema =
        "aten::embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
        "scale_grad_by_freq, bool sparse) -> Tensor",
    .composite = {.functional = function<&embedding_backward_composite>()},
    .samples = [] { return Samples{{"rows", {f64({4, 3}), i64({4}, 0, 5), 5, -1, false, false}}}; },
};

}  // namespace weft::ops
