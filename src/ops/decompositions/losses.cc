// Losses and the operators of their derivatives.
#include "ops/decompositions/decompositions.h"
#include "ops/decompositions/steps.h"
#include "ops/support/shapes.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft::ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

bool is(int64_t reduction, Reduction wanted) { return reduction == static_cast<int64_t>(wanted); }

// Classes are dim 1, or the only dim.
int64_t class_dim(const Tensor& self) { return self.dim() < 2 ? 0 : 1; }
Tensor along_classes(const Tensor& weight, const Tensor& self) {
  if (self.dim() < 2) return weight;
  SymInts shape(static_cast<size_t>(self.dim()), 1);
  shape[1] = weight.size(0);
  return view(weight, shape);
}
Tensor labels_of(const Tensor& target) { return target.dtype() == kInt64 ? target : target.to(kInt64); }
// Of each row the element of its class.
Tensor of_class(const Tensor& rows, int64_t dim, const Tensor& labels) {
  return squeeze(gather(rows, dim, labels), dim);
}

}  // namespace

Tensor mse_loss_parts(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Steps steps(self, target);
  Tensor x = steps.in(self), y = steps.in(target), losses = pow(x - y, 2);
  if (is(reduction, Reduction::kMean)) return steps.out(mean(losses));
  return steps.out(is(reduction, Reduction::kSum) ? sum(losses) : losses);
}
Tensor mse_loss_backward_parts(const Tensor& grad, const Tensor& self, const Tensor& target,
                               int64_t reduction) {
  const Steps steps(grad, self, target);
  Tensor wide_grad = steps.in(grad), x = steps.in(self), y = steps.in(target);
  const Scalar norm =
      is(reduction, Reduction::kMean) ? Scalar(SymFloat(2.0) / sym_float(self.numel())) : Scalar(2.0);
  return steps.out(norm * (x - y) * wide_grad);
}

Pair nll_loss_forward_parts(const Tensor& self_, const Tensor& target_, const Tensor& weight_,
                            int64_t reduction, const SymInt& ignore_index) {
  const int64_t dim = class_dim(self_);
  Tensor target = labels_of(target_), self = self_, weight;
  if (weight_.defined()) {
    weight = along_classes(weight_, self);
    self = self * weight;
  }
  auto counts = [&] { return target != Scalar(ignore_index); };
  Tensor labels = unsqueeze(where(counts(), target, Scalar(0)), dim);
  Tensor losses = -of_class(self, dim, labels), is_counted = counts();
  losses = where(is_counted, losses, Scalar(0));
  if (is(reduction, Reduction::kNone) && self.dim() > 1)
    return {losses, full({}, 0.0, self.dtype(), Layout::kStrided, self.device())};
  Tensor total;
  if (weight.defined()) {
    Tensor weights = of_class(expand(weight, self.sizes()), dim, labels);
    total = sum(where(counts(), weights, Scalar(0)));
  } else {
    total = sum(counts()).to(self.dtype());
  }
  if (is(reduction, Reduction::kSum)) losses = sum(losses);
  if (is(reduction, Reduction::kMean)) losses = sum(losses) / total;
  return {losses, total};
}
Tensor nll_loss_backward_parts(const Tensor& grad_, const Tensor& self, const Tensor& target_,
                               const Tensor& weight, int64_t reduction, const SymInt& ignore_index,
                               const Tensor& total_weight) {
  const int64_t dim = class_dim(self);
  Tensor grad = is(reduction, Reduction::kMean) ? grad_ / total_weight : grad_;
  Tensor target = unsqueeze(labels_of(target_), dim);
  auto counts = [&] { return target != Scalar(ignore_index); };
  Tensor labels = where(counts(), target, Scalar(0));
  Tensor chosen = scatter(full_like(self, 0), dim, labels, -1.0);
  if (chosen.dim() > grad.dim() && grad.dim() > 0) grad = unsqueeze(grad, dim);
  if (weight.defined()) grad = grad * along_classes(weight, self);
  return chosen * where(counts(), grad, Scalar(0));
}

}  // namespace weft::ops
