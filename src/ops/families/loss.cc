// Losses.
#include "base/ceil_div.h"
#include "dispatch/rule_calls.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "weft/base/parallel.h"

namespace weft::ops {
namespace {

enum Reduce : int64_t { kNone = 0, kMean = 1, kSum = 2 };

// --- mse -------------------------------------------------------------------------------------------------

TensorSpec mse_meta(const Tensor& self, const Tensor& target, int64_t reduction) {
  TensorSpec spec = pointwise_spec({&self, &target}, common_type(self, target));
  require(is_floating(spec.dtype), "\"mse_cpu\" not implemented for '{}'", dtype_name(spec.dtype));
  return reduction == kNone ? spec : contiguous_spec({}, spec.dtype, spec.device);
}
void mse_into(const Tensor& self, const Tensor& target, int64_t reduction, const Tensor& out) {
  DType type = common_type(self, target);
  if (reduction == kNone) return run_pointwise(cpu::kSquaredDifference, type, out, {&self, &target});
  Tensor squares = allocate(pointwise_spec({&self, &target}, type));
  run_pointwise(cpu::kSquaredDifference, type, squares, {&self, &target});
  copy_values(out, reduction == kMean ? mean(squares) : sum(squares));
}
TensorSpec mse_backward_meta(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t) {
  bool computes = is_floating(self.dtype()) && !target.is_complex() && target.dtype() != kBool;
  require(computes && !grad.is_complex(),
          "mse_loss_backward: result type Float can't be cast to the desired output type {}; the arguments "
          "are {}, {} and {}",
          dtype_name(self.dtype()), describe(grad), describe(self), describe(target));
  return pointwise_spec({&self, &target, &grad}, self.dtype());
}
void mse_backward_into(const Tensor& grad, const Tensor& self, const Tensor& target, int64_t reduction,
                       const Tensor& out) {
  double norm = reduction == kMean ? 2.0 / static_cast<double>(self.plain_numel()) : 2.0;
  copy_values(out, (self - target) * grad * norm);
}

// --- nll -------------------------------------------------------------------------------------------------

// Classes are dim 1 of [N, C, ...] or dim 0 of [C]. Seen as [n, c, inner] with n and inner 1 where they are
// missing.
struct NllShape {
  int64_t n, c, inner;
};
NllShape nll_shape(const Tensor& self) {
  IntSpan sizes = self.plain_sizes();
  if (sizes.size() == 1) return {1, sizes[0], 1};
  NllShape shape{sizes[0], sizes[1], 1};
  for (size_t d = 2; d < sizes.size(); ++d) shape.inner *= sizes[d];
  return shape;
}
void check_nll(const Tensor& self, const Tensor& target, const Tensor& weight, bool spatial) {
  if (spatial) {
    require(target.dim() == 3,
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
            target.dim());
    require(self.dim() == 4,
            "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
            self.dim());
    for (int64_t d : {0, 2, 3})
      if (!guard_or(self.size(d) == target.size(d ? d - 1 : 0), true))
        fail("size mismatch (got input: {} , target: {}", describe_sizes(self.sizes()),
             describe_sizes(target.sizes()));
  } else {
    require(self.dim() == 1 || self.dim() == 2, "input tensor should be 1D or 2D, but it is {}",
            describe(self));
    require(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported; it is {}",
            describe(target));
    require(!(self.dim() == 1 && target.dim() == 1 && !guard_or(target.sizes()[0] == 1, true)),
            "For 1D input, 1D target must have size 1, but got target size: {}",
            describe_sizes(target.sizes()));
    if (self.dim() == 2 && (target.dim() != 1 || !guard_or(self.sizes()[0] == target.sizes()[0], true)))
      fail("size mismatch (got input: {}, target: {})", describe_sizes(self.sizes()),
           describe_sizes(target.sizes()));
  }
  // Only images of classes must be of the wide type, and only where there are any.
  bool takes_bytes = !spatial || guard_or(target.numel() == 0, false);
  require(target.dtype() != kUInt8 || takes_bytes,
          "expected scalar type Long but found Byte; convert the targets, which are {}", describe(target));
  require(target.dtype() == kInt64 || target.dtype() == kUInt8, "expected scalar type Long but found {}",
          dtype_name(target.dtype()));
  if (weight.defined()) {
    SymInt classes = self.dim() == 1 ? self.sizes()[0] : self.sizes()[1];
    if (weight.dim() != 1 || !guard_or(weight.numel() == classes, true))
      fail(
          "weight tensor should be defined either for all {} classes or no classes but got weight tensor of "
          "shape: {}",
          classes.to_string(), describe_sizes(weight.sizes()));
  }
}

template <bool spatial>
std::tuple<TensorSpec, TensorSpec> nll_meta(const Tensor& self, const Tensor& target, const Tensor& weight,
                                            int64_t reduction, const SymInt&) {
  check_nll(self, target, weight, spatial);
  require(is_floating(self.dtype()), "\"nll_loss_out_frame\" not implemented for '{}'",
          dtype_name(self.dtype()));
  if (weight.defined()) check_dtype(spatial ? "nll_loss2d" : "nll_loss", "weight", weight, self.dtype());
  bool whole = reduction == kNone && self.dim() > 1;
  return {contiguous_spec(whole ? target.sizes() : SymIntSpan(), self.dtype(), self.device()),
          contiguous_spec({}, self.dtype(), self.device())};
}

template <typename F>
void visit_float(DType dtype, F f) {
  switch (dtype) {
    case kFloat64:
      return f.template operator()<double>();
    case kFloat16:
      return f.template operator()<Half>();
    case kBFloat16:
      return f.template operator()<BFloat16>();
    default:
      return f.template operator()<float>();
  }
}

// The targets of a call, and what each of them weighs.
template <typename T>
struct NllTargets {
  Tensor target, weight;  // dense; of i64, and of T or undefined
  NllShape shape;
  int64_t ignore;

  NllTargets(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t ignore)
      : target(dense_as(target, kInt64)),
        weight(weight.defined() ? dense_as(weight, dtype_of<T>) : weight),
        shape(nll_shape(self)),
        ignore(ignore) {}

  int64_t count() const { return shape.n * shape.inner; }
  // Calls f(position, element of self, weight) for those of [first, last) that are not ignored.
  template <typename F>
  void for_each(int64_t first, int64_t last, F f) const {
    const int64_t* classes = target.data<int64_t>();
    const T* weights = weight.defined() ? weight.data<T>() : nullptr;
    for (int64_t i = first; i < last; ++i) {
      int64_t c = classes[i];
      if (c == ignore) continue;
      require(c >= 0 && c < shape.c, "Target {} is out of bounds.", c);
      f(i, (i / shape.inner * shape.c + c) * shape.inner + i % shape.inner,
        weights ? static_cast<double>(weights[c]) : 1.0);
    }
  }
};
constexpr int64_t kTargetsPerBlock = 16384;

// Sums over blocks of targets, so that their order does not depend on the number of threads.
struct NllSums {
  double loss = 0, weight = 0;
};
template <typename T>
NllSums nll_sums(const NllTargets<T>& targets, const T* input) {
  std::vector<NllSums> blocks(static_cast<size_t>(ceil_div(targets.count(), kTargetsPerBlock)));
  parallel_for(0, targets.count(), kTargetsPerBlock, [&](int64_t first, int64_t last) {
    NllSums sums;
    targets.for_each(first, last, [&](int64_t, int64_t element, double w) {
      sums.loss -= w * static_cast<double>(input[element]);
      sums.weight += w;
    });
    blocks[static_cast<size_t>(first / kTargetsPerBlock)] = sums;
  });
  NllSums total;
  for (const NllSums& sums : blocks) {
    total.loss += sums.loss;
    total.weight += sums.weight;
  }
  return total;
}
template <typename T>
void nll_losses(const NllTargets<T>& targets, const T* input, T* losses) {
  parallel_for(0, targets.count(), kTargetsPerBlock, [&](int64_t first, int64_t last) {
    std::fill(losses + first, losses + last, T(0));
    targets.for_each(first, last, [&](int64_t i, int64_t element, double w) {
      losses[i] = static_cast<T>(-w * static_cast<double>(input[element]));
    });
  });
}

void nll_into(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
              const SymInt& ignore_index, const Tensor& out, const Tensor& total_weight) {
  Tensor input = dense_as(self, self.dtype());
  visit_float(self.dtype(), [&]<typename T>() {
    NllTargets<T> targets(self, target, weight, guard_int(ignore_index));
    if (reduction == kNone && self.dim() > 1) {
      Tensor losses = out.is_contiguous() ? out : allocate_contiguous(out.sizes(), out.dtype());
      nll_losses(targets, input.data<T>(), losses.data<T>());
      if (!losses.is_same(out)) copy_values(out, losses);
      fill_values(total_weight, 0);
      return;
    }
    NllSums sums = nll_sums(targets, input.data<T>());
    fill_values(out, reduction == kMean ? sums.loss / sums.weight : sums.loss);
    fill_values(total_weight, sums.weight);
  });
}

template <bool spatial>
TensorSpec nll_backward_meta(const Tensor& grad, const Tensor& self, const Tensor& target,
                             const Tensor& weight, int64_t reduction, const SymInt&,
                             const Tensor& total_weight) {
  const char* op = spatial ? "nll_loss2d_backward" : "nll_loss_backward";
  check_nll(self, target, weight, spatial);
  require(is_floating(self.dtype()), "\"{}_out_frame\" not implemented for '{}'", op,
          dtype_name(self.dtype()));
  check_dtype(op, "grad_output", grad, self.dtype());
  if (weight.defined()) check_dtype(op, "weight", weight, self.dtype());
  check_numel(op, "total_weight", total_weight, 1);
  if (reduction == kNone && self.dim() > 1) {
    check_sizes(op, "grad_output", grad, target.sizes());
  } else {
    require(grad.dim() <= 1, "{}: Expected a single element grad_output tensor, but got: {}", op,
            describe_sizes(grad.sizes()));
    check_numel(op, "grad_output", grad, 1);
    check_dtype(op, "total_weight", total_weight, self.dtype());
  }
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
void nll_backward_into(const Tensor& grad, const Tensor& self, const Tensor& target, const Tensor& weight,
                       int64_t reduction, const SymInt& ignore_index, const Tensor& total_weight,
                       const Tensor& out) {
  bool each = reduction == kNone && self.dim() > 1;
  Tensor result = out.is_contiguous() ? out : allocate_contiguous(out.sizes(), out.dtype());
  fill_values(result, 0);
  visit_float(self.dtype(), [&]<typename T>() {
    NllTargets<T> targets(self, target, weight, guard_int(ignore_index));
    Tensor grads = dense_as(grad, dtype_of<T>), total = dense_as(total_weight, dtype_of<T>);
    const T* g = grads.data<T>();
    double norm = reduction == kMean ? static_cast<double>(total.data<T>()[0]) : 1;
    T* to = result.data<T>();
    parallel_for(0, targets.count(), kTargetsPerBlock, [&](int64_t first, int64_t last) {
      targets.for_each(first, last, [&](int64_t i, int64_t element, double w) {
        to[element] = static_cast<T>(-w * static_cast<double>(g[each ? i : 0]) / norm);
      });
    });
  });
  if (!result.is_same(out)) copy_values(out, result);
}

Tensor nll_loss_composite(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          const SymInt& ignore) {
  return std::get<0>(nll_loss_forward(self, target, weight, reduction, ignore));
}
Tensor nll_loss2d_composite(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                            const SymInt& ignore) {
  return std::get<0>(nll_loss2d_forward(self, target, weight, reduction, ignore));
}
// Of [N, C, rest] the targets are [N, rest].
void check_nd_target(const Tensor& self, const Tensor& target) {
  if (target.dim() == 0 || !guard_or(self.sizes()[0] == target.sizes()[0], true))
    fail("Expected input batch_size ({}) to match target batch_size ({}).", self.sizes()[0].to_string(),
         target.dim() == 0 ? "0" : target.sizes()[0].to_string());
  SymInts expected(self.sizes());
  expected.erase(1);
  if (!sizes_fit(target.sizes(), expected))
    fail("Expected target size {}, got {}", describe_sizes(expected), describe_sizes(target.sizes()));
}
Tensor nll_loss_nd_composite(const Tensor& self, const Tensor& target, const Tensor& weight,
                             int64_t reduction, const SymInt& ignore) {
  require(self.dim() >= 1, "Expected 1 or more dimensions (got {})", self.dim());
  if (self.dim() <= 2) return nll_loss(self, target, weight, Reduction(reduction), ignore);
  if (self.dim() == 4) return nll_loss2d(self, target, weight, Reduction(reduction), ignore);
  // Other ranks are seen as [N, C, 1, rest].
  SymInts sizes(self.sizes()), rest(target.sizes());
  check_nd_target(self, target);
  SymInt inner = 1;
  for (size_t d = 2; d < sizes.size(); ++d) inner = inner * sizes[d];
  Tensor seen = reshape(self, {sizes[0], sizes[1], 1, inner}), labels = reshape(target, {sizes[0], 1, inner});
  Tensor loss = nll_loss2d(seen, labels, weight, Reduction(reduction), ignore);
  return reduction == kNone ? view(loss, rest) : loss;
}

// Targets that are probabilities, or smoothed labels.
Tensor cross_entropy_of_probabilities(const Tensor& self, const Tensor& target, const Tensor& weight,
                                      int64_t reduction, double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  SymInt classes = self.size(class_dim);
  if (weight.defined() && (weight.dim() != 1 || !guard_or(weight.numel() == classes, true)))
    fail(
        "cross_entropy: weight tensor should be defined either for all {} classes or no classes but got "
        "weight tensor of shape: {}",
        classes.to_string(), describe_sizes(weight.sizes()));
  Tensor input = log_softmax(self, class_dim);
  Tensor wanted = smoothing > 0 ? target * (1 - smoothing) +
                                      Scalar(smoothing / static_cast<double>(guard_int(self.size(class_dim))))
                                : target;
  if (weight.defined()) {
    SymInts shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(class_dim)] = weight.numel();
    wanted = wanted * reshape(weight, shape);
  }
  Tensor product = input * wanted;
  if (reduction == kNone) return -sum(product, {class_dim});
  Tensor total = -sum(product);
  if (reduction == kSum) return total;
  return total / Scalar(class_dim == 0 ? SymInt(1) : self.numel() / self.size(1));
}
Tensor cross_entropy_of_labels(const Tensor& self, const Tensor& target, const Tensor& weight,
                               int64_t reduction, const SymInt& ignore, double smoothing) {
  int64_t class_dim = self.dim() == 1 ? 0 : 1;
  Tensor input = log_softmax(self, class_dim);
  Tensor nll = nll_loss_nd(input, target, weight, Reduction(reduction), ignore);
  if (smoothing == 0) return nll;
  Tensor smooth;
  if (weight.defined()) {
    SymInts shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(class_dim)] = weight.numel();
    smooth = -sum(input * reshape(weight, shape), {class_dim});
  } else {
    smooth = -sum(input, {class_dim});
  }
  Tensor counted = target != Scalar(ignore);
  smooth = where(counted, smooth, Scalar(0));
  Tensor reduced_smooth = smooth;
  if (reduction == kSum) reduced_smooth = sum(smooth);
  if (reduction == kMean) {
    Tensor norm = sum(counted.to(input.dtype()));
    if (weight.defined()) {
      Tensor labels = where(counted, target, Scalar(0));
      Tensor weights = view(index_select(weight, 0, flatten(labels)), labels.sizes());
      norm = sum(where(counted, weights, Scalar(0)));
    }
    reduced_smooth = sum(smooth) / norm;
  }
  double share = smoothing / static_cast<double>(guard_int(self.size(class_dim)));
  return nll * (1 - smoothing) + reduced_smooth * share;
}
Tensor cross_entropy_composite(const Tensor& self, const Tensor& target, const Tensor& weight,
                               int64_t reduction, const SymInt& ignore, double smoothing) {
  require(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: {}",
          smoothing);
  require(self.dim() >= 1, "cross_entropy: expected an input with a class dim, but got {}", describe(self));
  if (same_sizes(self.sizes(), target.sizes())) {
    require(is_floating(target.dtype()),
            "Expected floating point type for target with class probabilities, got {}",
            dtype_name(target.dtype()));
    return cross_entropy_of_probabilities(self, target, weight, reduction, smoothing);
  }
  return cross_entropy_of_labels(self, target, weight, reduction, ignore, smoothing);
}

Samples nll_samples() {
  return {{"mean", {f64({3, 4}), i64({3}, 0, 4), Value(), 1, -100}},
          {"weighted", {f64({3, 4}), i64({3}, 0, 4), positive({4}), 2, -100}},
          {"none", {f64({3, 4}), i64({3}, 0, 4), Value(), 0, 1}}};
}
Samples nll2d_samples() {
  return {{"mean", {f64({2, 3, 2, 2}), i64({2, 2, 2}, 0, 3), Value(), 1, -100}},
          {"none", {f64({2, 3, 2, 2}), i64({2, 2, 2}, 0, 3), Value(), 0, -100}}};
}

template <auto backward>
Grads nll_vjp(const Vjp& v) {
  refuse_gradients(v, "nll_loss_forward", {{2, "weight"}});
  return {backward(v.grad(0), v.input(0), v.input(1), v.has(2) ? v.input(2) : Tensor(), v.arg<int64_t>(3),
                   v.arg<SymInt>(4), v.output(1)),
          Tensor(), Tensor()};
}
// The backward is linear in grad and does not depend on the values of self: its transpose is the loss itself.
template <auto forward>
Grads nll_backward_vjp(const Vjp& v) {
  refuse_gradients(v, "nll_loss_backward", {{3, "weight"}, {6, "total_weight"}});
  int64_t reduction = v.arg<int64_t>(4);
  Tensor weight = v.has(3) ? v.input(3) : Tensor();
  Tensor to_grad = std::get<0>(forward(v.grad(), v.input(2), weight,
                                       reduction == kMean ? int64_t{kSum} : reduction, v.arg<SymInt>(5)));
  if (reduction == kMean) to_grad = to_grad / v.input(6);
  return {to_grad, zeros_like(v.grad()), Tensor(), Tensor(), Tensor()};
}

// The elementwise loss of rows that have all elements of an example, then reduced.
Batched mse_batch(const Batch& call) {
  const Tensor self = batch_first(call.tensor(0), call.batch_dim(0)),
               target = batch_first(call.tensor(1), call.batch_dim(1));
  const bool self_batched = call.batch_dim(0) >= 0, target_batched = call.batch_dim(1) >= 0;
  const SymIntSpan own = self.sizes().subspan(self_batched ? 1 : 0),
                   its = target.sizes().subspan(target_batched ? 1 : 0);
  if (!same_sizes(own, its)) return loop_batch(call);
  auto rows = [](const Tensor& t, bool batched) {
    if (!batched) return flatten(t);
    return t.dim() > 1 ? flatten(t, 1) : t;
  };
  const Tensor self_rows = rows(self, self_batched), target_rows = rows(target, target_batched);
  const Tensor losses = mse_loss(self_rows, target_rows, Reduction::kNone);
  if (losses.dim() == 1) return {losses, {0}};
  switch (call.arg<int64_t>(2)) {
    case kMean:
      return {mean(losses, -1), {0}};
    case kSum:
      return {sum(losses, -1), {0}};
    default:
      return {reshape(losses, self_batched ? self.sizes() : target.sizes()), {0}};
  }
}
// 2 (self - target) grad, over the number of elements of an example for their mean.
Batched mse_backward_batch(const Batch& call) {
  const Tensor grad = call.tensor(0), self = batch_first(call.tensor(1), call.batch_dim(1)),
               target = batch_first(call.tensor(2), call.batch_dim(2));
  const bool self_batched = call.batch_dim(1) >= 0, target_batched = call.batch_dim(2) >= 0;
  const SymIntSpan own = self.sizes().subspan(self_batched ? 1 : 0),
                   its = target.sizes().subspan(target_batched ? 1 : 0);
  if (!same_sizes(own, its)) return loop_batch(call);
  SymInt count = 1;
  for (const SymInt& size : own) count = count * size;
  const Scalar norm = call.arg<int64_t>(3) == kMean ? Scalar(true_div(SymInt(2), count)) : Scalar(2);
  // As a program in Python, which PyTorch's is.
  const dispatch::RuleCalls as_program(false);
  const Tensor slope = (self - target) * norm;
  const int64_t slope_dim = self_batched || target_batched ? 0 : -1;
  static const Operator& times = operator_named("aten::mul.Tensor");
  return call_pointwise(times, {slope, grad}, {slope_dim, call.batch_dim(0)});
}

}  // namespace

WEFT_OPERATOR(mse_loss) = {
    .schema = "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
    .out = "aten::mse_loss.out(Tensor self, Tensor target, int reduction=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kAutocastWide,
    .meta = function<&mse_meta>(),
    .kernel = structured<&mse_meta, &mse_into>(),
    .vjp = {.saves = inputs(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor self = v.input(0), target = v.input(1);
                  const int64_t reduction = v.arg<int64_t>(2);
                  Tensor to_self, to_target;
                  if (v.wants(0)) to_self = mse_loss_backward(v.grad(), self, target, reduction);
                  if (v.wants(1)) to_target = mse_loss_backward(v.grad(), target, self, reduction);
                  return Grads{to_self, to_target};
                }},
    .batch = mse_batch,
    .decompose = function<&mse_loss_parts>(),
    .samples =
        [] {
          return Samples{{"mean", {f64({3, 4}), f64({3, 4})}},
                         {"none", {f64({3}), f64({3}), 0}},
                         {"sum", {f64({3}), f64({3}), 2}}};
        },
};

WEFT_OPERATOR(mse_loss_backward) = {
    .schema =
        "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
    .out =
        "aten::mse_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, int reduction, "
        "*, Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&mse_backward_meta>(),
    .kernel = structured<&mse_backward_meta, &mse_backward_into>(),
    .vjp = {.saves = inputs(0, 1, 2),
            .rule =
                [](const Vjp& v) {
                  Tensor grad = v.input(0), difference = v.input(1) - v.input(2);
                  Scalar norm = v.arg<int64_t>(3) == kMean ? Scalar(true_div(SymInt(2), difference.numel()))
                                                           : Scalar(2);
                  Tensor to_self = v.grad() * grad * norm;
                  return Grads{v.grad() * difference * norm, to_self, -to_self};
                }},
    .batch = mse_backward_batch,
    .decompose = function<&mse_loss_backward_parts>(),
    .samples =
        [] {
          return Samples{{"mean", {f64({}), f64({3, 4}), f64({3, 4}), 1}},
                         {"none", {f64({3}), f64({3}), f64({3}), 0}}};
        },
};

WEFT_OPERATOR(nll_loss_forward) = {
    .schema =
        "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index) -> (Tensor output, Tensor total_weight)",
    .out =
        "aten::nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kAutocastWide,
    .meta = function<&nll_meta<false>>(),
    .kernel = structured_exact<&nll_meta<false>, &nll_into>(),
    .vjp = {.saves = inputs(0, 1, 2) | outputs(1),
            .rule =
                nll_vjp<static_cast<Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                               int64_t, const SymInt&, const Tensor&)>(&nll_loss_backward)>,
            .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&nll_loss_forward_parts>(),
    .samples = nll_samples,
};

WEFT_OPERATOR(nll_loss_backward) = {
    .schema =
        "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
        "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
    .out =
        "aten::nll_loss_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, "
        "int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&nll_backward_meta<false>>(),
    .kernel = structured_exact<&nll_backward_meta<false>, &nll_backward_into>(),
    .vjp = {.saves = inputs(2, 3, 6),
            .rule = nll_backward_vjp<static_cast<std::tuple<Tensor, Tensor> (*)(
                const Tensor&, const Tensor&, const Tensor&, int64_t, const SymInt&)>(&nll_loss_forward)>},
    .batch = loop_batch,
    .decompose = function<&nll_loss_backward_parts>(),
    .samples =
        [] {
          return Samples{{"mean", {f64({}), f64({3, 4}), i64({3}, 0, 4), Value(), 1, -100, positive({})}}};
        },
};

WEFT_OPERATOR(nll_loss2d_forward) = {
    .schema =
        "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index) -> (Tensor output, Tensor total_weight)",
    .out =
        "aten::nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
        "ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kAutocastWide,
    .meta = function<&nll_meta<true>>(),
    .kernel = structured_exact<&nll_meta<true>, &nll_into>(),
    .vjp = {.saves = inputs(0, 1, 2) | outputs(1),
            .rule =
                nll_vjp<static_cast<Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                               int64_t, const SymInt&, const Tensor&)>(&nll_loss2d_backward)>,
            .differentiable_results = 1},
    .batch = loop_batch,
    .decompose = function<&nll_loss_forward_parts>(),
    .samples = nll2d_samples,
};

WEFT_OPERATOR(nll_loss2d_backward) = {
    .schema =
        "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
        "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
    .out =
        "aten::nll_loss2d_backward.grad_input(Tensor grad_output, Tensor self, Tensor target, Tensor? "
        "weight, int reduction, SymInt ignore_index, Tensor total_weight, *, Tensor(a!) grad_input) -> "
        "Tensor(a!)",
    .meta = function<&nll_backward_meta<true>>(),
    .kernel = structured_exact<&nll_backward_meta<true>, &nll_backward_into>(),
    .vjp = {.saves = inputs(2, 3, 6),
            .rule = nll_backward_vjp<static_cast<std::tuple<Tensor, Tensor> (*)(
                const Tensor&, const Tensor&, const Tensor&, int64_t, const SymInt&)>(&nll_loss2d_forward)>},
    .batch = loop_batch,
    .decompose = function<&nll_loss_backward_parts>(),
    .samples =
        [] {
          return Samples{
              {"mean", {f64({}), f64({2, 3, 2, 2}), i64({2, 2, 2}, 0, 3), Value(), 1, -100, positive({})}}};
        },
};

WEFT_OPERATOR(nll_loss) = {
    .schema =
        "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100) -> Tensor",
    .out =
        "aten::nll_loss.out(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&nll_loss_composite>(),
    .samples = nll_samples,
};

WEFT_OPERATOR(nll_loss2d) = {
    .schema =
        "aten::nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100) -> Tensor",
    .out =
        "aten::nll_loss2d.out(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite_exact<&nll_loss2d_composite>(),
    .samples = nll2d_samples,
};

WEFT_OPERATOR(nll_loss_nd) = {
    .schema =
        "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100) -> Tensor",
    .composite = {.functional = function<&nll_loss_nd_composite>()},
    .samples = nll_samples,
};

WEFT_OPERATOR(cross_entropy_loss) = {
    .schema =
        "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
        "ignore_index=-100, float label_smoothing=0.) -> Tensor",
    .traits = Traits::kAutocastWide,
    .composite = {.functional = function<&cross_entropy_composite>()},
    .samples =
        [] {
          return Samples{{"labels", {f64({3, 4}), i64({3}, 0, 4)}},
                         {"probabilities", {f64({3, 4}), make({3, 4}, kFloat64, 0, 1)}}};
        },
};

}  // namespace weft::ops
