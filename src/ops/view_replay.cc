#include "ops/view_replay.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

std::vector<const ViewStep*> steps_to(const Ref<ViewStep>& last) {
  std::vector<const ViewStep*> steps;
  for (const ViewStep* step = last.get(); step; step = step->previous.get()) steps.push_back(step);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

Tensor apply(const ViewStep& step, const Tensor& source) {
  std::vector<Value> args(step.args.begin(), step.args.end());
  args[0] = source;
  Value result = call(*step.op, args);
  return step.output < 0 ? result.to_tensor()
                         : result.elements()[static_cast<size_t>(step.output)].to_tensor();
}

Tensor put_back(const ViewStep& step, const Tensor& source, const Tensor& part) {
  const Function& inverse = step.op->def().inverse;
  if (!inverse)
    unsupported("a write to the result of {} cannot be put back into its base: the view has no inverse",
                step.op->name());
  std::vector<Value> args{source, part};
  if (step.output >= 0) args.emplace_back(step.output);
  args.insert(args.end(), step.args.begin() + 1, step.args.end());
  return inverse.boxed(args).to_tensor();
}

}  // namespace

bool reads_strides(const Ref<ViewStep>& last) {
  for (const ViewStep* step = last.get(); step; step = step->previous.get())
    if (step->op->has(Traits::kReadsStrides)) return true;
  return false;
}

bool same_strides(SymIntSpan a, SymIntSpan b, SymIntSpan sizes) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!guard_or(sizes[d] == 1, false) && !guard_or(a[d] == b[d], false)) return false;
  return true;
}

Tensor laid_out_as(const Tensor& tensor, const SymInts& strides) {
  Tensor target = alias_with(tensor, tensor.sizes(), strides, 0);
  if (!target.impl()->is_non_overlapping_and_dense()) return tensor;
  if (same_strides(strides, contiguous_strides(tensor.sizes()), tensor.sizes())) return contiguous(tensor);
  std::vector<int64_t> order(strides.size()), back(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return guard_or(strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)], false);
  });
  for (size_t d = 0; d < order.size(); ++d) back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  return permute(contiguous(permute(tensor, IntSpan(order))), IntSpan(back));
}

Tensor laid_out_for(const Ref<ViewStep>& step, const Tensor& base, const SymInts& strides) {
  if (!reads_strides(step) || same_strides(strides, base.strides(), base.sizes())) return base;
  return laid_out_as(base, strides);
}

Tensor replay_view(const Ref<ViewStep>& step, const Tensor& base) {
  Tensor view = base;
  for (const ViewStep* s : steps_to(step)) view = apply(*s, view);
  return view;
}

Ref<ViewStep> with_base(const Ref<ViewStep>& step, const Tensor& base) {
  Ref<ViewStep> copied;
  for (const ViewStep* s : steps_to(step)) {
    auto copy = make_ref<ViewStep>();
    copy->base = base;
    copy->previous = std::move(copied);
    copy->op = s->op;
    copy->args = s->args;
    copy->output = s->output;
    copy->creation = s->creation;
    copied = std::move(copy);
  }
  return copied;
}

Tensor put_back_view(const Ref<ViewStep>& step, const Tensor& base, Tensor part) {
  std::vector<const ViewStep*> steps = steps_to(step);
  std::vector<Tensor> sources{base};
  for (size_t i = 0; i + 1 < steps.size(); ++i) sources.push_back(apply(*steps[i], sources[i]));
  for (size_t i = steps.size(); i-- > 0;) part = put_back(*steps[i], sources[i], part);
  return part;
}

}  // namespace weft
