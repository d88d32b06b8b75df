#include "autograd/view_history.h"

#include "weft/base/error.h"
#include "weft/ops/functions.h"
#include "weft/ops/layers.h"

namespace weft::autograd {

namespace {
using ViewArgs = decltype(ViewStep::args);

Tensor view_of(const Operator* op, ViewArgs args, int output, const Tensor& source) {
  args[0] = source;
  Value result = call(*op, args);
  return output >= 0 ? result.elements()[static_cast<size_t>(output)].to_tensor() : result.to_tensor();
}
}  // namespace

Tensor replay_view(const Ref<ViewStep>& step, const Tensor& base) {
  std::vector<const ViewStep*> chain;
  for (const ViewStep* s = step.get(); s; s = s->previous.get()) chain.push_back(s);
  Tensor view = base;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    view = view_of((*it)->op, (*it)->args, (*it)->output, view);
  }
  return view;
}

void refresh_view_history(const Tensor& tensor) {
  const Ref<ViewStep>& step = tensor.impl()->view;
  if (!step || !tensor.requires_grad() || !step->base.requires_grad()) return;
  VariableMeta& meta = variable_meta(tensor);
  if (meta.grad_fn && meta.view_version == tensor.version()) return;
  FullStackScope scope;
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
  CopySlices(const Tensor& base, const Ref<ViewStep>& view, Ref<GradNode> inner) : inner_(std::move(inner)) {
    for (const ViewStep* s = view.get(); s; s = s->previous.get()) steps_.insert(steps_.begin(), {s->op, s->args, s->output});
    next = inner_->next;
    next[0] = gradient_edge(base);
  }
  std::string name() const override { return "CopySlices"; }

  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    require(static_cast<bool>(inner_), "Trying to backward through the graph a second time: the saved tensors of CopySlices are "
            "freed; pass retain_graph=true to the first backward");
    if (!grads[0].defined()) return std::vector<Tensor>(next.size());
    Tensor base_grad = grads[0].clone();
    grads.clear();
    Tensor slice = base_grad;
    for (const Step& step : steps_) slice = view_of(step.op, step.args, step.output, slice);
    std::vector<Tensor> inner = inner_->apply({slice.clone()});
    if (inner[0].defined()) slice.copy_(inner[0]);
    else slice.zero_();
    inner[0] = base_grad;
    return inner;
  }
  void release_saved() override {
    if (inner_) inner_->release_saved();
    inner_.reset();
  }

 private:
  // The view's story without its base: the base's history is this node, which must not own itself.
  struct Step {
    const Operator* op;
    ViewArgs args;
    int output;
  };
  std::vector<Step> steps_;
  Ref<GradNode> inner_;
};

// The views of a base that now requires a gradient require one too.
void mark_views(const Tensor& base) {
  ViewStep::for_each_view(*base.impl(), [](TensorImpl& view) { view.set_flags(layer::kAutograd); });
}

}  // namespace

void rebase_history(const Tensor& self, const Ref<GradNode>& node) {
  const Ref<ViewStep>& step = self.impl()->view;
  if (!step) {
    set_history(self, node);
    mark_views(self);
    return;
  }
  node->results.push_back({self.dtype(), self.device(), SymInts(self.sizes())});
  const Tensor& base = step->base;
  Ref<GradNode> slices(new CopySlices(base, step, node));
  set_history(base, slices);
  mark_views(base);
  variable_meta(self).grad_fn.reset();  // made anew from the base on next use
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
  const VariableMeta* base_meta = variable_meta_or_null(step->base);
  require(!(step->base.requires_grad() && !(base_meta && base_meta->grad_fn)),
          "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  const char* why = nullptr;
  switch (step->creation) {
    case ViewCreation::kDefault: return;
    case ViewCreation::kMultiOutput:
      why = "This view is the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
      break;
    case ViewCreation::kNoGrad:
      why = "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Clone it, or make "
            "the view with gradients on.";
      break;
    case ViewCreation::kInference: why = "A view was created in inference mode and is being modified inplace in normal mode."; break;
    case ViewCreation::kCustomFunction:
      why = "A view that a custom Function returned is being modified inplace. Clone it in the Function's forward.";
      break;
  }
  fail("{}", why);
}

}  // namespace weft::autograd
