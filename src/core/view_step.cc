#include "weft/core/view_step.h"

#include <thread>

namespace weft {
namespace {

class SpinLock {
 public:
  explicit SpinLock(std::atomic_flag& flag) : flag_(flag) {
    // Whoever has it may wait for a processor.
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  ~SpinLock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& flag_;
};

}  // namespace

void ViewStep::attach(Ref<ViewStep> step, TensorImpl& view) {
  TensorImpl& base = *step->base.impl();
  {
    SpinLock lock(base.views_lock_);
    step->view_ = &view;
    step->next_ = base.views_;
    if (base.views_) base.views_->before_ = step.get();
    base.views_ = step.get();
  }
  if (view.view) view.view->forget_view();
  view.view = std::move(step);
}

void ViewStep::for_each_view(const TensorImpl& base, FunctionRef<void(TensorImpl&)> f) {
  SpinLock lock(base.views_lock_);
  for (ViewStep* step = base.views_; step; step = step->next_)
    if (step->view_) f(*step->view_);
}

void ViewStep::move_views(TensorImpl& from, const Tensor& to) {
  SpinLock lock(from.views_lock_);
  to.impl()->views_ = std::exchange(from.views_, nullptr);
  for (ViewStep* step = to.impl()->views_; step; step = step->next_) step->base = to;
}

void ViewStep::forget_view() noexcept {
  SpinLock lock(base.impl()->views_lock_);
  view_ = nullptr;
}

ViewStep::~ViewStep() {
  if (!base.defined()) return;
  SpinLock lock(base.impl()->views_lock_);
  if (next_) next_->before_ = before_;
  if (before_) before_->next_ = next_;
  else if (base.impl()->views_ == this) base.impl()->views_ = next_;
}

void ViewStep::release_last(ViewStep* step) noexcept {
  while (step) {
    ViewStep* previous = step->previous.detach();
    delete step;
    step = previous && previous->drop_ref() ? previous : nullptr;
  }
}

}  // namespace weft
