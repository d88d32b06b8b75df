#include "autograd/view_history.h"

#include "dispatch/rule_calls.h"
#include "ops/view_replay.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft::autograd {

namespace {

constexpr const char* kMultiOutputRefusal =
    "This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output "
    "views to be modified inplace. You should replace the inplace operation by an out-of-place one.";

// What cannot be made anew by replaying views is lost with a write to the base.
void refuse_lost_history(const ViewStep& step) {
  require(step.creation != ViewCreation::kMultiOutput,
          "The base of a view, or another view of it, has been modified inplace. {}", kMultiOutputRefusal);
}

}  // namespace

void refresh_view_history(const Tensor& tensor) {
  const Ref<ViewStep>& step = tensor.impl()->view;
  if (!step || !tensor.requires_grad() || !step->base.requires_grad()) return;
  if (step->creation == ViewCreation::kNoGrad) return;  // nobody asked for one
  VariableMeta& meta = variable_meta(tensor);
  if (meta.grad_fn && meta.view_version == tensor.version()) return;
  if (meta.grad_fn) refuse_lost_history(*step);
  FullStackScope scope;
  // What stands above autograd knows of no history.
  layer_state().mask &= ~(layer::kRecorderUpper | layer::kFunctionalizeUpper);
  EnableGrad enable;
  Tensor fresh = replay_view(step, step->base);
  VariableMeta& made = variable_meta(fresh);
  meta.grad_fn = made.grad_fn;
  meta.result = made.result;
  meta.view_version = tensor.version();
  tensor.impl()->set_flags(layer::kAutograd);
}

namespace {

// The history of a base after an in-place call on a view of it: the gradient outside the view passes on as it
// is, inside it goes through the call's own node.
class CopySlices final : public GradNode {
 public:
  // The steps are kept without the base: the base's history is this node, which must not own itself.
  CopySlices(const Tensor& base, const Tensor& view, Ref<GradNode> inner)
      : steps_(without_base(view.impl()->view)),
        strides_(base.strides()),
        view_sizes_(view.sizes()),
        view_strides_(view.strides()),
        offset_(view.storage_offset() - base.storage_offset()),
        is_of_memory_(is_of_memory(base, view)),
        inner_(std::move(inner)) {
    // Its saved result is a part of the base now, but has it for its history: a second derivative runs both.
    inner_->is_part = true;
    next = inner_->next;
    next[0] = gradient_edge(base);
  }
  std::string name() const override { return "CopySlices"; }

  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    require(static_cast<bool>(inner_),
            "Trying to backward through the graph a second time: the saved tensors of CopySlices are "
            "freed; pass retain_graph=true to the first backward");
    if (!grads[0].defined()) return std::vector<Tensor>(next.size());
    const dispatch::RuleCalls of_rule;
    if (!is_of_memory_) return apply_to_views(grads[0]);
    const Tensor whole = new_empty_strided(grads[0], grads[0].sizes(), strides_);
    whole.copy_(grads[0]);
    const Tensor part = as_strided(whole, view_sizes_, view_strides_, offset_);
    // What the call's node saves of it for a second derivative must not change with it.
    std::vector<Tensor> inner = inner_->apply({clone(part, MemoryFormat::kContiguous)});
    if (!next[0]) return inner;
    if (!inner[0].defined()) inner[0] = zeros_like(part);
    if (boxes_of(inner[0]) > boxes_of(part)) {
      inner[0] = put_back_view(steps_, laid_out_for(steps_, grads[0], strides_), inner[0]);
      return inner;
    }
    part.copy_(inner[0]);
    inner[0] = whole;
    return inner;
  }
  void release_saved() override { inner_.reset(); }

 private:
  // Whether the view is sizes and strides in the memory of its base, elements being what they are in it.
  static bool is_of_memory(const Tensor& base, const Tensor& view) {
    constexpr uint32_t kLazy = tensor_flag::kConjugate | tensor_flag::kNegative;
    if (base.dtype() != view.dtype() || ((base.flags() | view.flags()) & kLazy)) return false;
    if (!base.impl()->is_non_overlapping_and_dense()) return false;
    // The offsets of an extension's views are those of its inner tensors.
    for (const Tensor* inside = &base; inside && inside->defined();) {
      if (inside->flags() & layer::kExtension) return false;
      const Ref<TensorBox>& box = inside->impl()->box;
      inside = box ? box->stands_for() : nullptr;
    }
    return true;
  }
  std::vector<Tensor> apply_to_views(const Tensor& grad) {
    const Tensor whole = laid_out_for(steps_, grad, strides_), part = replay_view(steps_, whole);
    std::vector<Tensor> inner = inner_->apply({part});
    inner[0] = put_back_view(steps_, whole, inner[0].defined() ? inner[0] : zeros_like(part));
    return inner;
  }
  // A value of more levels than the base's gradient (a batch of one) cannot be written into it.
  static int boxes_of(const Tensor& tensor) {
    int count = 0;
    for (const Tensor* inside = &tensor; inside && inside->defined(); ++count) {
      const Ref<TensorBox>& box = inside->impl()->box;
      inside = box ? box->stands_for() : nullptr;
    }
    return count;
  }

  Ref<ViewStep> steps_;
  SymInts strides_;  // of the base
  SymInts view_sizes_, view_strides_;
  SymInt offset_;  // of the view in the base
  bool is_of_memory_;
  Ref<GradNode> inner_;
};

}  // namespace

void mark_views(const Tensor& base) {
  ViewStep::for_each_view(*base.impl(), [](TensorImpl& view) { view.set_flags(layer::kAutograd); });
}

namespace {

// A tensor that keeps its gradient keeps that of the value it has now.
void move_retained(const Tensor& tensor, const Ref<GradNode>& before) {
  const VariableMeta* meta = variable_meta_or_null(tensor);
  if (!before || !before->hooks || !meta || !meta->slot) return;
  const auto is_own = [&](const auto& entry) { return entry.second == meta->slot; };
  if (std::erase_if(before->hooks->retained, is_own) > 0) retain_grad(tensor);
}

}  // namespace

void rebase_history(const Tensor& self, const Ref<GradNode>& node) {
  const Ref<ViewStep>& step = self.impl()->view;
  const VariableMeta* meta = variable_meta_or_null(self);
  const Ref<GradNode> before = meta ? meta->grad_fn : nullptr;
  if (!step) {
    // Views of a base that requires a gradient do so too: they are told when it begins to.
    const bool begins = !self.requires_grad();
    set_history(self, node);
    if (begins) mark_views(self);
    move_retained(self, before);
    return;
  }
  node->results.push_back({self.dtype(), self.device(), SymInts(self.sizes())});
  const Tensor& base = step->base;
  Ref<GradNode> slices(new CopySlices(base, self, node));
  const bool begins = !base.requires_grad();
  set_history(base, slices);
  if (begins) mark_views(base);
  variable_meta(self).grad_fn.reset();  // made anew from the base on next use
  move_retained(self, before);
}

void pass_history_on(const Tensor& self, const Tensor& base) {
  VariableMeta &own = variable_meta(self), &its = variable_meta(base);
  its.grad_fn = std::move(own.grad_fn);
  its.result = own.result;
  its.view_version = base.version();
  own.forget_history();  // made anew from the base on next use
}

void check_inplace(const Tensor& self, bool op_requires_grad) {
  if (!op_requires_grad) return;
  const Ref<ViewStep>& step = self.impl()->view;
  const VariableMeta* meta = variable_meta_or_null(self);
  if (!step) {
    require(!(self.requires_grad() && !(meta && meta->grad_fn)),
            "a leaf Variable that requires grad is being used in an in-place operation.");
    return;
  }
  const char* why = nullptr;
  switch (step->creation) {
    case ViewCreation::kDefault: {
      const VariableMeta* base_meta = variable_meta_or_null(step->base);
      require(!(step->base.requires_grad() && !(base_meta && base_meta->grad_fn)),
              "a view of a leaf Variable that requires grad is being used in an in-place operation.");
      return;
    }
    case ViewCreation::kMultiOutput:
      why = kMultiOutputRefusal;
      break;
    case ViewCreation::kNoGrad:
      why =
          "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Clone "
          "it, or make "
          "the view with gradients on.";
      break;
    case ViewCreation::kInference:
      why = "A view was created in inference mode and is being modified inplace in normal mode.";
      break;
    case ViewCreation::kCustomFunction:
      why =
          "A view that a custom Function returned is being modified inplace. Clone it in the Function's "
          "forward.";
      break;
  }
  fail("{}", why);
}

}  // namespace weft::autograd
