#include "func/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "weft/autograd/data.h"
#include "weft/base/error.h"
#include "weft/core/view_step.h"

namespace weft {
namespace {

thread_local std::vector<Ref<Level>> level_stack;

void set_depth(uint16_t depth) {
  LayerState& state = layer_state();
  state.level_depth = depth;
  state.active = depth ? state.active | layer::kLevels : state.active & ~layer::kLevels;
}

bool any_tensor(Args args, FunctionRef<bool(const Tensor&)> f) {
  for (const Value& value : args) {
    if (value.is_tensor() && f(value.tensor_ref())) return true;
    if (value.is_sequence() && any_tensor(Args(value.elements()), f)) return true;
  }
  return false;
}

}  // namespace

Tensor living(Tensor tensor) {
  while (LevelBox* box = level_box(tensor)) {
    if (box->level->alive) break;
    tensor = box->live_value();
  }
  return tensor;
}

LevelBox* level_box(const Tensor& tensor) {
  if (!tensor.defined() || !(tensor.impl()->flags() & layer::kLevels)) return nullptr;
  return static_cast<LevelBox*>(tensor.impl()->box.get());
}

LevelBox* box_at(const Tensor& tensor, const Level& level) {
  LevelBox* box = level_box(tensor);
  return box && box->level.get() == &level ? box : nullptr;
}

namespace {

// Lines without text stay empty.
std::string indented(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    if (text[at] != '\n') result += "    ";
    result += text.substr(at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

// A batch says which level it belonged to even after its end.
std::string LevelBox::text_of(const Tensor&) const {
  const std::string kind =
      batch_dim >= 0 ? fmt::format("BatchedTensor(lvl={}, bdim={}", level->depth, batch_dim)
                     : fmt::format("GradTrackingTensor(lvl={}", level->alive ? int{level->depth} : -2);
  std::optional<BelowLevel> below;  // where the value's history is asked for
  if (level->alive) below.emplace(*level);
  return fmt::format("{}, value=\n{}\n)", kind, indented(value.to_string()));
}

Ref<TensorBox> LevelBox::untracked() const {
  auto box = make_ref<LevelBox>();
  box->level = level;
  box->value = autograd::untracked_data(value);
  box->batch_dim = batch_dim;
  return box;
}

namespace {

void show_value(TensorImpl& impl, const LevelBox& box) {
  SymInts sizes(box.value.sizes()), strides(box.value.strides());
  if (box.batch_dim >= 0) {
    sizes.erase(static_cast<size_t>(box.batch_dim));
    strides.erase(static_cast<size_t>(box.batch_dim));
  }
  impl.set_geometry(sizes, strides, box.value.storage_offset());
}

}  // namespace

Tensor wrap_at(const Ref<Level>& level, const Tensor& value, int64_t batch_dim, Tensor tangent) {
  auto box = make_ref<LevelBox>();
  box->level = level;
  box->value = value;
  box->batch_dim = batch_dim;
  box->tangent = std::move(tangent);
  auto impl = make_ref<TensorImpl>(value.storage(), value.dtype(), value.device());
  impl->set_flags(layer::kLevels | (value.flags() & (tensor_flag::kConjugate | tensor_flag::kNegative |
                                                     tensor_flag::kWrappedNumber)));
  show_value(*impl, *box);
  impl->box = std::move(box);
  return Tensor(std::move(impl));
}

void refresh_wrapper(const Tensor& wrapper) {
  LevelBox* box = level_box(wrapper);
  wrapper.impl()->set_storage(box->value.storage());
  show_value(*wrapper.impl(), *box);
}

LevelEntry::LevelEntry(Ref<Level> level) : level_(std::move(level)), saved_stack_(level_stack) {
  level_->outer_grad_mode = layer_state().grad_mode;
  // Levels above the current depth belong to handlers further up the C++ level_stack: a new one goes on top
  // of those that calls still meet.
  level_stack.resize(layer_state().level_depth);
  level_stack.push_back(level_);
  level_->depth = static_cast<uint16_t>(level_stack.size());
  set_depth(level_->depth);
  // Whoever enters a level wants it to see what follows, also where a layer below the levels runs a function.
  layer_state().mask |= layer::kLevels;
  if (level_->owns_grad_mode()) layer_state().grad_mode = true;
}

LevelEntry::~LevelEntry() {
  level_->alive = false;
  level_stack = std::move(saved_stack_);
}

BelowLevel::BelowLevel(const Level& level) {
  set_depth(static_cast<uint16_t>(level.depth - 1));
  if (level.owns_grad_mode()) layer_state().grad_mode = level.outer_grad_mode;
}

std::vector<Value> arguments_to_keep(const Ref<Level>& level, Args args) {
  std::vector<Value> kept(args.begin(), args.end());
  auto is_watched = [&](const Tensor& t) {
    LevelBox* box = box_at(t, *level);
    return ((box ? box->value : t).flags() & (layer::kLevels | layer::kAutograd)) ||
           (box && box->tangent.defined() && (box->tangent.flags() & (layer::kLevels | layer::kAutograd)));
  };
  if (!any_tensor(args, is_watched)) return kept;
  LevelBox* box = box_at(args[0].tensor_ref(), *level);
  BelowLevel below(*level);
  Tensor tangent = box->tangent.defined() ? box->tangent.clone() : Tensor();
  kept[0] = wrap_at(level, box->value.clone(), box->batch_dim, tangent);
  return kept;
}

Value wrap_results(const Operator& op, Args args, const Value& result,
                   FunctionRef<Value(const Tensor&)> wrap) {
  const Operator::Info& info = op.info();
  auto one = [&](const Value& value, size_t i) -> Value {
    int16_t alias = i < info.result_aliases.size() ? info.result_aliases[i] : int16_t{-1};
    if (alias >= 0 && info.written[static_cast<size_t>(alias)]) return args[static_cast<size_t>(alias)];
    return map_tensors(value, wrap);
  };
  if (info.result_aliases.size() <= 1) return one(result, 0);
  ValueList results;
  for (size_t i = 0; i < result.elements().size(); ++i) results.push_back(one(result.elements()[i], i));
  return Value::tuple(std::move(results));
}

bool meets_batch() {
  const LayerState& state = layer_state();
  if (!(state.mask & layer::kLevels)) return false;
  return std::any_of(level_stack.begin(), level_stack.begin() + state.level_depth,
                     [](const Ref<Level>& level) { return level->draws_for_batch(); });
}

Tensor LevelLiterals::literal(const Tensor& tensor) {
  // Whoever runs below this level, as the kernel of a user's operator, works with values.
  const LayerState& state = layer_state();
  const bool is_inside = (state.mask & layer::kLevels) && state.level_depth == level_->depth;
  std::optional<BelowLevel> below;
  if (is_inside) below.emplace(*level_);
  const Tensor made = outer_ ? outer_->literal(tensor) : tensor;
  return is_inside ? wrap_at(level_, made) : made;
}

bool is_writable_at(const Tensor& tensor, const Level& level) {
  const Ref<ViewStep>& step = tensor.impl()->view;
  return box_at(tensor, level) && (!step || box_at(step->base, level));
}

Value layers::levels(const Operator& op, Args args) {
  auto is_dead = [](const Tensor& t) {
    LevelBox* box = level_box(t);
    return box && !box->level->alive;
  };
  uint16_t depth = layer_state().level_depth;
  if (any_tensor(args, is_dead)) {
    if (depth > 0 && level_stack[depth - 1u]->sees_ended())
      return Ref<Level>(level_stack[depth - 1u])->handle(op, args);
    std::vector<Value> alive = map_tensors(args, [](const Tensor& t) { return Value(living(t)); });
    return dispatch::redispatch(op, alive);
  }
  if (depth == 0) fail("{}: a tensor of a transform is used outside of it", op.name());
  Ref<Level> level = level_stack[depth - 1u];
  bool has_own = any_tensor(args, [&](const Tensor& t) { return box_at(t, *level) != nullptr; });
  if (!has_own && !level->sees_everything()) {
    BelowLevel below(*level);
    return dispatch::redispatch(op, args);
  }
  // A composite means its parts: they come back to this level one by one.
  if (op.is_composite() && level->decomposes()) return op.kernel().boxed(args);
  return level->handle(op, args);
}

}  // namespace weft
