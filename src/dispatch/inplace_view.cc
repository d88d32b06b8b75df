#include "dispatch/inplace_view.h"

#include "weft/core/view_step.h"
#include "weft/dispatch/layers.h"

namespace weft::dispatch {
namespace {

bool has_views(const TensorImpl& base) {
  bool found = false;
  ViewStep::for_each_view(base, [&](TensorImpl&) { found = true; });
  return found;
}

}  // namespace

InplaceView::InplaceView(const Operator& op, Args args, Ref<TensorBox> box) : args_(args) {
  if (op.form() != OpForm::kInplace) return;
  const Operator& functional = op.functional();
  if (!functional.has(Traits::kView) || functional.has(Traits::kNotDifferentiable)) return;
  const Tensor& self = args[0].tensor_ref();
  if (self.is_inference()) return;
  functional_ = &functional;
  TensorImpl& impl = *self.impl();
  // A wrapper is what its level says it is; and without recording nobody would pass a history on.
  const bool is_replaceable =
      (!impl.box || box) && (layer_state().grad_mode || !(impl.flags() & layer::kAutograd));
  if (impl.view || !is_replaceable || !has_views(impl)) return;
  was_ = alias_with(self, self.sizes(), self.strides(), self.storage_offset());
  was_.impl()->set_flags(impl.flags());
  was_.impl()->box = std::move(box);
}

void InplaceView::done() const {
  if (!functional_) return;
  const Tensor& self = args_[0].tensor_ref();
  if (was_.defined()) ViewStep::move_views(*self.impl(), was_);
  const Tensor before = was_;
  const Ref<ViewStep> earlier = self.impl()->view;
  if (!earlier && !before.defined()) return;  // a base that nobody looks at stays one
  auto step = make_ref<ViewStep>();
  step->base = earlier ? earlier->base : before;
  step->previous = earlier;
  step->op = functional_;
  step->args.assign(args_.begin(), args_.end());
  step->args[0] = Value();
  step->creation = earlier ? earlier->creation : ViewCreation::kDefault;
  ViewStep::attach(std::move(step), *self.impl());
}

}  // namespace weft::dispatch
