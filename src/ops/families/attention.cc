// Scaled dot-product attention.
#include <cmath>

#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "weft/ops/attention.h"

namespace weft::ops {
namespace {

using MaybeScale = std::optional<double>;
using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

// 1 / sqrt(E) unless it is given.
SymFloat scale_of(const Tensor& query, MaybeScale scale) {
  return scale ? SymFloat(*scale) : SymFloat(1.0) / sqrt(sym_float(query.size(-1)));
}
void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                  bool is_causal) {
  require(query.dtype() == key.dtype() && query.dtype() == value.dtype(),
          "Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and "
          "value.dtype: {} instead.",
          dtype_name(query.dtype()), dtype_name(key.dtype()), dtype_name(value.dtype()));
  require(
      query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2,
      "Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {}, key.dim: {} "
      "and value.dim: {} instead.",
      query.dim(), key.dim(), value.dim());
  if (!mask.defined()) return;
  require(mask.dtype() == kBool || mask.dtype() == query.dtype() || mask.dtype() == kFloat32,
          "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {} "
          "and query.dtype: {} instead.",
          dtype_name(mask.dtype()), dtype_name(query.dtype()));
  require(!is_causal, "Explicit attn_mask should not be set when is_causal=True");
}
// What is added to the scores: minus infinity where a truth value says no.
Tensor added_mask(const Tensor& mask, DType type) {
  if (!mask.defined() || mask.dtype() != kBool) return mask;
  Tensor zero = scalar_tensor(0.0, type, Layout::kStrided, mask.device());
  Tensor never =
      scalar_tensor(-std::numeric_limits<double>::infinity(), type, Layout::kStrided, mask.device());
  return where(mask, zero, never);
}
Tensor causal_mask(const Tensor& query, const Tensor& key) {
  return tril(ones({query.size(-2), key.size(-2)}, kBool, std::nullopt, query.device()));
}

// --- _safe_softmax ---------------------------------------------------------------------------------------

// A row in which nothing is allowed is zeros.
TensorSpec safe_softmax_meta(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  normalize_dim(dim, self.dim());
  const DType type = dtype.value_or(self.dtype());
  require(is_floating(type), "\"softmax_lastdim_kernel_impl\" not implemented for '{}'", dtype_name(type));
  return contiguous_spec(self.sizes(), type, self.device());
}
Tensor safe_softmax_parts(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  Tensor shares = softmax(self, dim, dtype);
  Tensor is_masked = eq(self, Scalar(-std::numeric_limits<double>::infinity()));
  Tensor has_none = logical_not(any(logical_not(is_masked), dim, true));
  return where(has_none, zeros_like(shares), shares);
}
void safe_softmax_into(const Tensor& self, int64_t dim, std::optional<DType> dtype, const Tensor& out) {
  copy_values(out, safe_softmax_parts(self, dim, dtype));
}

// --- by its formula --------------------------------------------------------------------------------------

Pair math_composite(const Tensor& query_, const Tensor& key_, const Tensor& value_, const Tensor& mask_,
                    double dropout_p, bool is_causal, const Tensor& dropout_mask, MaybeScale scale,
                    bool enable_gqa) {
  Tensor mask = mask_, key = key_, value = value_;
  require(!is_causal || !mask.defined(),
          "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  // Truth values were turned into numbers by who calls this; here they would be added as they are.
  if (is_causal) mask = added_mask(causal_mask(query_, key_), query_.dtype());
  if (enable_gqa) {
    const SymInt heads = query_.size(-3);
    key = repeat_interleave(key, floor_div(heads, key.size(-3)), -3);
    value = repeat_interleave(value, floor_div(heads, value.size(-3)), -3);
  }
  // Scaling both factors by its root keeps the scores small.
  const Scalar root(sqrt(scale_of(query_, scale)));
  Tensor scaled_query = query_ * root, scaled_key = transpose(key, -2, -1) * root;
  Tensor scores = matmul(scaled_query, scaled_key);
  if (mask.defined()) scores = scores + mask;
  Tensor shares = mask.defined() ? _safe_softmax(scores, -1) : softmax(scores, -1);
  if (dropout_p > 0) {
    if (dropout_mask.defined()) {
      Tensor kept = masked_fill(shares, logical_not(dropout_mask), 0.0);
      return {matmul(kept, value * (1.0 / (1.0 - dropout_p))), shares};
    }
    shares = dropout(shares, dropout_p, true);
  }
  return {matmul(shares, value), shares};
}

// --- in one operator -------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> flash_meta(const Tensor& query, const Tensor& key, const Tensor& value,
                                              double dropout_p, bool is_causal, const Tensor& mask,
                                              MaybeScale) {
  const char* op = "_scaled_dot_product_flash_attention_for_cpu";
  require(is_floating(query.dtype()), "{}: expected data type in FP32, FP64, BF16, FP16, but got {} instead.",
          op, dtype_name(query.dtype()));
  require(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
          "{}: Accept only 4 dims inputs shape of {{B, H, T, K}}", op);
  require(dropout_p == 0, "{}: Currently do not support dropout > 0", op);
  require(guard_or(query.size(3) == value.size(3), true) && guard_or(key.size(3) == value.size(3), true),
          "{}: Q/K/V should have the same head size, but they are {}, {} and {}", op, describe(query),
          describe(key), describe(value));
  require(!mask.defined() || mask.dim() == 2 || mask.dim() == 4, "{}: Attention mask dim in {{2, 4}}", op);
  check_inputs(query, key, value, mask, is_causal);
  // The result lies in memory as the queries do, the logarithms with the heads of a position side by side.
  const SymInt batch = query.size(0), heads = query.size(1), rows = query.size(2), width = value.size(3);
  const DType statistics = query.dtype() == kFloat64 ? kFloat64 : kFloat32;
  return {TensorSpec{query.dtype(), query.device(), {batch, heads, rows, width}, preserved_strides(query)},
          TensorSpec{statistics, query.device(), {batch, heads, rows}, {rows * heads, 1, heads}}};
}
// Fewer heads of keys and values than of queries: each serves several.
Tensor as_many_heads(const Tensor& tensor, const Tensor& query) {
  if (guard_or(tensor.size(1) == query.size(1), true)) return tensor;
  return repeat_interleave(tensor, floor_div(query.size(1), tensor.size(1)), 1);
}
Tensor back_to_heads(const Tensor& grad, const Tensor& tensor) {
  if (guard_or(tensor.size(1) == grad.size(1), true)) return grad;
  return sum(unflatten(grad, 1, {tensor.size(1), -1}), {2});
}
// Scores in the wide type, with everything that is added to them.
Tensor wide_scores(const Tensor& query, const Tensor& key, bool is_causal, const Tensor& mask,
                   const SymFloat& scale, DType type) {
  Tensor scores = matmul(query.to(type), transpose(key.to(type), -2, -1)) * Scalar(scale);
  if (mask.defined()) scores = scores + added_mask(mask, type).to(type);
  if (is_causal) scores = scores + added_mask(causal_mask(query, key), type);
  return scores;
}
Tensor shares_of(const Tensor& scores, const Tensor& logsumexp) {
  return exp(scores - unsqueeze(logsumexp, -1));
}
// Zero for a row in which nothing is allowed, so that its shares are zeros.
Tensor logsumexp_of(const Tensor& scores) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Tensor largest = amax(scores, {-1}, true);
  largest = masked_fill(largest, abs(largest) == kInfinity, 0.0);
  Tensor norm = squeeze(log(sum(exp(scores - largest), {-1}, true)) + largest, -1);
  return masked_fill(norm, norm == -kInfinity, 0.0);
}
Tensor softmax_of_scores(const Tensor& scores) { return shares_of(scores, logsumexp_of(scores)); }
void flash_into(const Tensor& query, const Tensor& key, const Tensor& value, double, bool is_causal,
                const Tensor& mask, MaybeScale scale, const Tensor& out, const Tensor& logsumexp) {
  if (out.plain_numel() == 0 || key.plain_numel() == 0) {
    copy_values(out, zeros(out.sizes(), out.dtype()));
    return copy_values(logsumexp,
                       full(logsumexp.sizes(), -std::numeric_limits<double>::infinity(), logsumexp.dtype()));
  }
  const DType type = wide_type(query.dtype());
  Tensor scores =
      wide_scores(query, as_many_heads(key, query), is_causal, mask, scale_of(query, scale), type);
  Tensor norm = logsumexp_of(scores);
  copy_values(out, matmul(shares_of(scores, norm), as_many_heads(value, query).to(type)));
  copy_values(logsumexp, norm);
}
// As the formula: what PyTorch's graphs have.
Pair flash_parts(const Tensor& query, const Tensor& key_, const Tensor& value_, double dropout_p,
                 bool is_causal, const Tensor& mask, MaybeScale scale) {
  Tensor key = as_many_heads(key_, query), value = as_many_heads(value_, query);
  auto [output, shares] = _scaled_dot_product_attention_math(query, key, value, mask, dropout_p, is_causal,
                                                             Tensor(), scale, false);
  const DType statistics = query.dtype() == kFloat64 ? kFloat64 : kFloat32;
  Tensor scores = wide_scores(query, key, is_causal, mask, scale_of(query, scale), statistics);
  Tensor norm = transpose(contiguous(transpose(logsumexp_of(scores), 1, 2)), 1, 2);
  // As the operator's own result, so that views of it stay possible.
  const bool has_heads_inside = !query.is_contiguous() && transpose(query, 1, 2).is_contiguous();
  return {has_heads_inside ? transpose(contiguous(transpose(output, 1, 2)), 1, 2) : output, norm};
}

std::tuple<TensorSpec, TensorSpec, TensorSpec> flash_backward_meta(const Tensor& grad, const Tensor& query,
                                                                   const Tensor& key, const Tensor& value,
                                                                   const Tensor& out, const Tensor& logsumexp,
                                                                   double, bool, const Tensor&, MaybeScale) {
  const char* op = "_scaled_dot_product_flash_attention_for_cpu_backward";
  require(query.dim() == 4 && key.dim() == 4 && value.dim() == 4,
          "{}: expected inputs of 4 dims, but got {}, {} and {}", op, describe(query), describe(key),
          describe(value));
  require(is_floating(query.dtype()), "{}: expected data type in FP32, FP64, BF16, FP16, but got {} instead.",
          op, dtype_name(query.dtype()));
  check_sizes(op, "grad_out", grad, out.sizes());
  check_dtype(op, "grad_out", grad, query.dtype());
  check_sizes(op, "logsumexp", logsumexp, SymInts{query.size(0), query.size(1), query.size(2)});
  auto spec = [](const Tensor& t) {
    const SymInt batch = t.size(0), heads = t.size(1), rows = t.size(2), width = t.size(3);
    return TensorSpec{
        t.dtype(), t.device(), SymInts(t.sizes()), {rows * heads * width, width, heads * width, 1}};
  };
  return {spec(query), spec(key), spec(value)};
}
// With p = softmax(s): dv = p' do, ds = p (do v' - <do, o>), dq = ds k scale, dk = ds' q scale.
Three flash_gradients(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                      const Tensor& out, const Tensor& logsumexp, bool is_causal, const Tensor& mask,
                      MaybeScale scale_) {
  const DType type = wide_type(query.dtype());
  const SymFloat scale = scale_of(query, scale_);
  Tensor g = grad.to(type), q = query.to(type), k = key.to(type), v = value.to(type);
  Tensor shares = shares_of(wide_scores(query, key, is_causal, mask, scale, type), logsumexp.to(type));
  Tensor to_shares = matmul(g, transpose(v, -2, -1));
  Tensor to_scores = shares * (to_shares - sum(g * out.to(type), {-1}, true)) * Scalar(scale);
  return {matmul(to_scores, k), matmul(transpose(to_scores, -2, -1), q),
          matmul(transpose(shares, -2, -1), g)};
}
void flash_backward_into(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                         const Tensor& out, const Tensor& logsumexp, double, bool is_causal,
                         const Tensor& mask, MaybeScale scale, const Tensor& dq, const Tensor& dk,
                         const Tensor& dv) {
  if (query.plain_numel() == 0 || key.plain_numel() == 0) {
    for (const Tensor* result : {&dq, &dk, &dv})
      copy_values(*result, zeros(result->sizes(), result->dtype()));
    return;
  }
  auto [to_query, to_key, to_value] =
      flash_gradients(grad, query, as_many_heads(key, query), as_many_heads(value, query), out, logsumexp,
                      is_causal, mask, scale);
  copy_values(dq, to_query);
  copy_values(dk, back_to_heads(to_key, key));
  copy_values(dv, back_to_heads(to_value, value));
}
Grads flash_vjp(const Vjp& v) {
  Tensor mask = v.has(5) ? v.input(5) : Tensor();
  require(!mask.defined() || !v.wants(5),
          "_scaled_dot_product_flash_attention_for_cpu: the mask has no gradient here; "
          "_scaled_dot_product_attention_math has one");
  auto [query, key, value] = _scaled_dot_product_flash_attention_for_cpu_backward(
      v.grad(), v.input(0), v.input(1), v.input(2), v.output(0).detach(), v.output(1).detach(),
      v.arg<double>(3), v.arg<bool>(4), mask, v.arg<MaybeScale>(6));
  return {query, key, value, Tensor()};
}

// The derivative of the backward pass, by its formula. The result and the logarithms are functions of the
// input.
Grads flash_backward_vjp(const Vjp& v) {
  refuse_gradients(v, "_scaled_dot_product_flash_attention_for_cpu_backward", {{4, "out"}, {5, "logsumexp"}});
  Tensor g = v.input(0), q = v.input(1), k = v.input(2), w = v.input(3);
  require(guard_or(q.size(1) == k.size(1), true) && guard_or(q.size(1) == w.size(1), true),
          "_scaled_dot_product_flash_attention_for_cpu_backward: it has a derivative where queries, keys and "
          "values have "
          "as many heads, but they are {}, {} and {}",
          describe(q), describe(k), describe(w));
  const SymFloat scale = scale_of(q, v.arg<MaybeScale>(9));
  Tensor p = softmax_of_scores(
      wide_scores(q, k, v.arg<bool>(7), v.has(8) ? v.input(8) : Tensor(), scale, q.dtype()));
  auto turned = [](const Tensor& t) { return transpose(t, -2, -1); };
  auto total = [](const Tensor& t) { return sum(t, {-1}, true); };
  Tensor dp = matmul(g, turned(w)), spread = dp - total(p * dp), ds = p * spread;
  Tensor to_grad, to_query, to_key, to_value, to_p, to_ds;
  auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; };
  const Tensor &of_query = v.grad(0), &of_key = v.grad(1), &of_value = v.grad(2);
  if (of_query.defined()) {
    add_to(to_ds, matmul(of_query, turned(k)) * Scalar(scale));
    add_to(to_key, matmul(turned(ds), of_query) * Scalar(scale));
  }
  if (of_key.defined()) {
    add_to(to_ds, matmul(q, turned(of_key)) * Scalar(scale));
    add_to(to_query, matmul(ds, of_key) * Scalar(scale));
  }
  if (of_value.defined()) {
    add_to(to_p, matmul(g, turned(of_value)));
    add_to(to_grad, matmul(p, of_value));
  }
  if (to_ds.defined()) {
    Tensor mean_slope = total(to_ds * p), to_dp = p * (to_ds - mean_slope);
    add_to(to_grad, matmul(to_dp, w));
    add_to(to_value, matmul(turned(to_dp), g));
    add_to(to_p, to_ds * spread - mean_slope * dp);
  }
  if (to_p.defined()) {
    Tensor to_scores = p * (to_p - total(p * to_p)) * Scalar(scale);
    add_to(to_query, matmul(to_scores, k));
    add_to(to_key, matmul(turned(to_scores), q));
  }
  return {to_grad, to_query, to_key, to_value, Tensor(), Tensor(), Tensor()};
}

// --- in one operator, on an accelerator ------------------------------------------------------------------

// What it gives besides the result and the logarithms says how sequences were packed, and which random
// numbers dropout drew: here there are none.
using AcceleratorResults = std::tuple<Tensor, Tensor, Tensor, Tensor, SymInt, SymInt, Tensor, Tensor, Tensor>;
std::tuple<TensorSpec, TensorSpec, std::optional<TensorSpec>, std::optional<TensorSpec>, SymInt, SymInt,
           TensorSpec, TensorSpec, TensorSpec>
accelerator_meta(const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p,
                 bool is_causal, bool, MaybeScale scale) {
  auto [output, logsumexp] = flash_meta(query, key, value, dropout_p, is_causal, Tensor(), scale);
  logsumexp = contiguous_spec(logsumexp.sizes, logsumexp.dtype, query.device());
  auto empty_of = [&](SymInts sizes, DType type) { return contiguous_spec(sizes, type, query.device()); };
  return {output,
          logsumexp,
          std::nullopt,
          std::nullopt,
          query.size(2),
          key.size(2),
          empty_of({2}, kInt64),
          empty_of({}, kInt64),
          empty_of({0}, query.dtype())};
}
AcceleratorResults accelerator_flash(const Tensor& query, const Tensor& key, const Tensor& value,
                                     double dropout_p, bool is_causal, bool, MaybeScale scale) {
  auto [output_spec, logsumexp_spec] = flash_meta(query, key, value, dropout_p, is_causal, Tensor(), scale);
  const Device device = query.device();
  Tensor output = empty_strided(output_spec.sizes, output_spec.strides, query.dtype(), std::nullopt, device),
         logsumexp = empty(logsumexp_spec.sizes, logsumexp_spec.dtype, std::nullopt, device);
  flash_into(query, key, value, dropout_p, is_causal, Tensor(), scale, output, logsumexp);
  auto zeros_of = [&](SymIntSpan sizes, DType type) { return zeros(sizes, type, std::nullopt, device); };
  return {output,
          logsumexp,
          Tensor(),
          Tensor(),
          query.size(2),
          key.size(2),
          zeros_of({2}, kInt64),
          zeros_of({}, kInt64),
          zeros_of({0}, query.dtype())};
}
Grads accelerator_vjp(const Vjp& v) {
  auto [query, key, value] = _scaled_dot_product_flash_attention_for_cpu_backward(
      v.grad(), v.input(0), v.input(1), v.input(2), v.output(0).detach(), v.output(1).detach(),
      v.arg<double>(3), v.arg<bool>(4), Tensor(), v.arg<MaybeScale>(6));
  return {query, key, value};
}
// A batch of batches is a larger batch.
Batched accelerator_batch(const Batch& call) {
  SymInt count;
  for (size_t i = 0; i < 3; ++i)
    if (call.batch_dim(i) >= 0) count = call.tensor(i).size(call.batch_dim(i));
  ValueList args(call.args().begin(), call.args().end());
  for (size_t i = 0; i < 3; ++i) {
    const Tensor& given = call.tensor(i);
    SymInts sizes(given.sizes());
    sizes.insert(0, count);
    args[i] =
        flatten(call.batch_dim(i) >= 0 ? batch_first(given, call.batch_dim(i)) : expand(given, sizes), 0, 1);
  }
  ValueList results = weft::call(call.op(), args).elements();
  for (size_t i = 0; i < 2; ++i) results[i] = unflatten(results[i].to_tensor(), 0, {count, -1});
  return {Value::tuple(results), {0, 0, -1, -1, -1, -1, -1}};
}

// --- the choice ------------------------------------------------------------------------------------------

// Whether the one operator takes the call: as PyTorch decides it on a CPU.
bool takes_flash(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 double dropout_p, bool enable_gqa) {
  const bool is_plain =
      query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && dropout_p == 0 && !enable_gqa;
  if (!is_plain || !is_floating(query.dtype())) return false;
  const bool same_width =
      guard_or(query.size(3) == key.size(3), true) && guard_or(key.size(3) == value.size(3), true);
  const bool same_heads =
      guard_or(query.size(1) == key.size(1), true) && guard_or(key.size(1) == value.size(1), true) &&
      guard_or(query.size(0) == key.size(0), true) && guard_or(key.size(0) == value.size(0), true);
  const bool has_elements = !guard_or(query.size(2) == 0, false) && !guard_or(key.size(2) == 0, false) &&
                            !guard_or(query.size(3) == 0, false);
  const bool has_rows = guard_or(query.stride(-1) == 1, true) && guard_or(key.stride(-1) == 1, true) &&
                        guard_or(value.stride(-1) == 1, true);
  if (!same_width || !same_heads || !has_elements || !has_rows) return false;
  if (!mask.defined()) return true;
  if (mask.requires_grad() || (mask.dim() != 2 && mask.dim() != 4)) return false;
  auto broadcasts = [&](int64_t dim, const SymInt& size) {
    return guard_or(mask.size(dim) == size, true) || guard_or(mask.size(dim) == 1, false);
  };
  if (!broadcasts(-2, query.size(2)) || !broadcasts(-1, key.size(2))) return false;
  return mask.dim() == 2 || (broadcasts(0, query.size(0)) && broadcasts(1, query.size(1)));
}
// Whether the accelerator's one operator takes it: as PyTorch decides it on a GPU.
bool takes_accelerator_flash(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                             double dropout_p, bool enable_gqa) {
  constexpr int64_t kWidest = 256, kStep = 8;
  const bool is_narrow = query.dtype() == kFloat16 || query.dtype() == kBFloat16;
  if (query.device().type != DeviceType::kSim || !is_narrow || mask.defined()) return false;
  return takes_flash(query, key, value, mask, dropout_p, enable_gqa) &&
         guard_or(query.size(3) % kStep == 0, false) && guard_or(query.size(3) <= kWidest, false);
}
MaybeScale known_scale(const Tensor& query, MaybeScale scale) {
  const std::optional<int64_t> width = query.size(-1).maybe_plain();
  return scale || !width ? scale : MaybeScale(1 / std::sqrt(static_cast<double>(*width)));
}

constexpr uint32_t bit_of(AttentionBackend backend) { return 1u << static_cast<uint32_t>(backend); }
constinit thread_local uint32_t allowed_backends = ~0u;
bool is_allowed(AttentionBackend backend) { return (allowed_backends & bit_of(backend)) != 0; }

Tensor attention_composite(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                           double dropout_p, bool is_causal, MaybeScale scale, bool enable_gqa) {
  check_inputs(query, key, value, mask, is_causal);
  if (is_allowed(AttentionBackend::kFlash) &&
      takes_accelerator_flash(query, key, value, mask, dropout_p, enable_gqa))
    return std::get<0>(_scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, false,
                                                           known_scale(query, scale)));
  if (is_allowed(AttentionBackend::kFlash) && takes_flash(query, key, value, mask, dropout_p, enable_gqa))
    return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal,
                                                                   added_mask(mask, query.dtype()), scale));
  require(is_allowed(AttentionBackend::kMath),
          "scaled_dot_product_attention: No available kernel: of the back ends that the enclosing "
          "AttentionBackends "
          "allows, none takes these arguments: query {}, key {}, value {}. AttentionBackend::kMath takes all",
          describe(query), describe(key), describe(value));
  return std::get<0>(_scaled_dot_product_attention_math(query, key, value, added_mask(mask, query.dtype()),
                                                        dropout_p, is_causal, Tensor(), scale, enable_gqa));
}

Samples attention_samples() { return {{"plain", {f64({2, 2, 3, 4}), f64({2, 2, 5, 4}), f64({2, 2, 5, 4})}}}; }

}  // namespace

WEFT_OPERATOR(safe_softmax) = {
    .schema = "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .meta = function<&safe_softmax_meta>(),
    .kernel = structured_exact<&safe_softmax_meta, &safe_softmax_into>(),
    .vjp = {.saves = outputs(0) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{
                      _softmax_backward_data(v.grad(), v.output(), v.arg<int64_t>(1), v.shape(0).dtype)};
                }},
    .batch = dim_batch<1>,
    .decompose = function<&safe_softmax_parts>(),
    .samples = [] { return Samples{{"rows", {f64({2, 3}), -1}}, {"columns", {f64({2, 3}), 0}}}; },
};

WEFT_OPERATOR(scaled_dot_product_attention) = {
    .schema =
        "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
        "float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    .traits = Traits::kAutocastNarrow,
    .composite = {.functional = function<&attention_composite>()},
    .samples =
        [] {
          return Samples{
              {"heads", {f64({2, 2, 3, 4}), f64({2, 2, 5, 4}), f64({2, 2, 5, 4})}},
              {"one_head", {f64({3, 4}), f64({5, 4}), f64({5, 2})}},
              {"masked", {f64({2, 2, 3, 4}), f64({2, 2, 3, 4}), f64({2, 2, 3, 4}), Value(), 0.0, true}}};
        },
};

WEFT_OPERATOR(scaled_dot_product_attention_math) = {
    .schema =
        "aten::_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? "
        "attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? "
        "scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
    .composite = {.functional = function<&math_composite>()},
    .samples = attention_samples,
};

WEFT_OPERATOR(flash_attention_for_cpu) = {
    .schema =
        "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
        "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
        "output, Tensor logsumexp)",
    .meta = function<&flash_meta>(),
    .kernel = {.functional = structured<&flash_meta, &flash_into>().functional},
    .vjp = {.saves = inputs(0, 1, 2, 5) | outputs(0, 1), .rule = flash_vjp, .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&flash_parts>(),
    .samples = attention_samples,
};

WEFT_OPERATOR(flash_attention) = {
    .schema =
        "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
        "dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor "
        "output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor "
        "rng_state, Tensor unused, Tensor debug_attn_mask)",
    .meta = function<&accelerator_meta>(),
    .kernel = {.functional = function<&accelerator_flash>()},
    .vjp = {.saves = inputs(0, 1, 2) | outputs(0, 1), .rule = accelerator_vjp, .differentiable_results = 1},
    .batch = accelerator_batch,
    .samples = attention_samples,
};

WEFT_OPERATOR(flash_attention_for_cpu_backward) = {
    .schema =
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor "
        "key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
        "attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    .meta = function<&flash_backward_meta>(),
    .kernel = {.functional = structured<&flash_backward_meta, &flash_backward_into>().functional},
    .vjp = {.saves = inputs(0, 1, 2, 3, 8), .rule = flash_backward_vjp},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"plain",
                          {f64({1, 2, 3, 4}), f64({1, 2, 3, 4}), f64({1, 2, 5, 4}), f64({1, 2, 5, 4}),
                           f64({1, 2, 3, 4}), positive({1, 2, 3}), 0.0, false}}};
        },
};

}  // namespace weft::ops

namespace weft {

AttentionBackends::AttentionBackends(std::initializer_list<AttentionBackend> allowed)
    : saved_(ops::allowed_backends) {
  ops::allowed_backends = 0;
  for (const AttentionBackend backend : allowed) ops::allowed_backends |= ops::bit_of(backend);
}
AttentionBackends::~AttentionBackends() { ops::allowed_backends = saved_; }

}  // namespace weft
