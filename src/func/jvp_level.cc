// Forward mode: a level whose wrappers carry a tangent beside their value.
#include <algorithm>

#include "autograd/engine.h"
#include "autograd/op_node.h"
#include "dispatch/inplace_view.h"
#include "func/level.h"
#include "func/transpose.h"
#include "ops/support/shapes.h"
#include "ops/view_replay.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"

namespace weft {
namespace {

class JvpLevel final : public Level {
 public:
  const char* name() const override { return "jvp"; }
  bool sees_everything() const override {
    return true;
  }  // what is made inside may be written to with a tangent
  Value handle(const Operator& op, Args args) override;

 private:
  Value handle_functional(const Operator& op, Args args);
  Value handle_inplace(const Operator& op, Args args);
  void set_tangent(const Tensor& self, const Tensor& tangent);
};

// What a jvp rule sees: the arguments below the level, their tangents, the result.
class TangentCall final : public Jvp {
 public:
  TangentCall(const Operator& op, Args args, const Level& level) : op_(op) {
    values_ = map_tensors(args, [&](const Tensor& t) {
      LevelBox* box = box_at(t, level);
      return Value(box ? box->value : t);
    });
    tangents_ = map_tensors(args, [&](const Tensor& t) {
      LevelBox* box = box_at(t, level);
      return Value(box ? box->tangent : Tensor());
    });
  }
  void set_result(Value result) { result_ = std::move(result); }
  const Value& result() const { return result_; }
  const Operator& op() const { return op_; }

  Tensor input(int argument) const override { return values_[static_cast<size_t>(argument)].to_tensor(); }
  std::vector<Tensor> inputs(int argument) const override {
    return list_of(values_[static_cast<size_t>(argument)]);
  }
  Tensor output(int result) const override {
    return result_.is_sequence() ? result_.elements()[static_cast<size_t>(result)].to_tensor()
                                 : result_.to_tensor();
  }
  Tensor tangent(int argument) const override { return tangents_[static_cast<size_t>(argument)].to_tensor(); }
  std::vector<Tensor> tangents(int argument) const override {
    return list_of(tangents_[static_cast<size_t>(argument)]);
  }
  const Value& arg(int argument) const override { return values_[static_cast<size_t>(argument)]; }
  Args args() const override { return values_; }

  bool has_tangents() const {
    std::vector<Tensor> all = flat_tangents();
    return std::any_of(all.begin(), all.end(), [](const Tensor& tangent) { return tangent.defined(); });
  }
  // The tangents of all tensor inputs, lists flattened, in the order that a vjp counts them.
  std::vector<Tensor> flat_tangents() const {
    std::vector<Tensor> flat;
    const auto& kinds = op_.info().is_tensor;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!kinds[i]) continue;
      if (kinds[i] == 2 && values_[i].is_sequence())
        for (const Tensor& t : list_of(tangents_[i])) flat.push_back(t);
      else flat.push_back(tangents_[i].to_tensor());
    }
    return flat;
  }

 private:
  static std::vector<Tensor> list_of(const Value& value) {
    std::vector<Tensor> list;
    for (const Value& element : value.elements())
      list.push_back(element.is_tensor() ? element.to_tensor() : Tensor());
    return list;
  }
  const Operator& op_;
  std::vector<Value> values_, tangents_;
  Value result_;
};

std::vector<Tensor> results_of(const Value& result) {
  if (!result.is_sequence()) return {result.to_tensor()};
  std::vector<Tensor> all;
  for (const Value& element : result.elements())
    all.push_back(element.is_tensor() ? element.to_tensor() : Tensor());
  return all;
}

bool carries(const Operator& op, const Tensor& result, size_t i) {
  return result.defined() && is_differentiable(result.dtype()) &&
         (i >= 32 || (op.def().vjp.differentiable_results >> i & 1));
}

std::vector<Tensor> transpose_vjp(const TangentCall& call) {
  const Operator& op = call.op();
  std::vector<Tensor> results = results_of(call.result()), tangents = call.flat_tangents();
  std::vector<bool> wanted, carried;
  for (const Tensor& tangent : tangents) wanted.push_back(tangent.defined());
  for (size_t i = 0; i < results.size(); ++i) carried.push_back(carries(op, results[i], i));
  auto pull = [&](const std::vector<Tensor>& gradients) {
    Ref<OpNode> node(new OpNode(op, call.args()));
    node->want(wanted);
    node->save_inputs(call.args());
    node->save_outputs(call.result(), false);
    return node->apply(gradients);
  };
  return transpose_pullback(pull, results, carried, tangents);
}

std::vector<Tensor> tangents_of(const TangentCall& call) {
  const OpDef& def = call.op().def();
  if (call.op().has(Traits::kNotDifferentiable)) return std::vector<Tensor>(results_of(call.result()).size());
  if (def.jvp) return def.jvp(call);
  if (!def.vjp) unsupported("{}: neither a jvp nor a vjp is implemented for it", call.op().name());
  // A view of the value is the same view of the tangent, so that writes to either are seen through both.
  if (call.op().has(Traits::kView) && call.tangent(0).defined() && call.op().has(Traits::kLinear)) {
    std::vector<Value> args(call.args().begin(), call.args().end());
    Tensor tangent = call.tangent(0);
    if (call.op().has(Traits::kReadsStrides) &&
        !same_strides(call.input(0).strides(), tangent.strides(), tangent.sizes()))
      tangent = laid_out_as(tangent, SymInts(call.input(0).strides()));
    args[0] = tangent;
    return results_of(dispatch::redispatch(call.op(), args));
  }
  return transpose_vjp(call);
}

Value JvpLevel::handle_functional(const Operator& op, Args args) {
  TangentCall call(op, args, *this);
  std::vector<Tensor> tangents;
  {
    BelowLevel below(*this);
    call.set_result(dispatch::redispatch(op, call.args()));
    if (call.has_tangents()) tangents = tangents_of(call);
  }
  Ref<Level> self(this);
  size_t next = 0;
  auto wrap = [&](const Value& value) {
    Tensor tangent = next < tangents.size() ? tangents[next] : Tensor();
    ++next;
    return value.is_tensor() ? Value(wrap_at(self, value.tensor_ref(), -1, tangent)) : value;
  };
  const Value wrapped = map_leaves(call.result(), wrap);
  dispatch::note_views(op, args, wrapped);
  return wrapped;
}

// Tangents are values: a write gives the base a new one, and its views see that.
void JvpLevel::set_tangent(const Tensor& self, const Tensor& tangent) {
  const Ref<ViewStep>& step = self.impl()->view;
  Tensor base = step ? step->base : self;
  LevelBox* box = box_at(base, *this);
  invariant(box, "a view inside jvp has a base outside");
  if (!tangent.defined() && !box->tangent.defined()) return;
  Tensor part = tangent.defined() ? tangent : zeros_like(box_at(self, *this)->value);
  Tensor before = box->tangent.defined() || !step ? box->tangent : zeros_like(box->value);
  box->tangent = put_back_view(step, before, part);
  ViewStep::for_each_view(*base.impl(), [&](TensorImpl& view) {
    static_cast<LevelBox*>(view.box.get())->tangent = replay_view(view.view, box->tangent);
  });
}

Value JvpLevel::handle_inplace(const Operator& op, Args args) {
  const Operator& functional = op.functional();
  const Tensor& self = args[0].tensor_ref();
  LevelBox* box = box_at(self, *this);
  require(is_writable_at(self, *this),
          "{}: a function under jvp writes in place to a tensor that was made outside of it; its tangent "
          "would be lost",
          op.name());
  std::vector<Value> kept = arguments_to_keep(Ref<Level>(this), args);
  TangentCall call(functional, kept, *this), written(op, args, *this);
  BelowLevel below(*this);
  call.set_result(dispatch::redispatch(functional, call.args()));
  Tensor tangent = call.has_tangents() ? tangents_of(call)[0] : Tensor();
  const dispatch::InplaceView view(op, args);
  dispatch::redispatch(op, written.args());
  // An in-place view shows the same elements, and so does its tangent.
  if (functional.has(Traits::kView)) box->tangent = tangent;
  else set_tangent(self, tangent);
  refresh_wrapper(self);
  view.done();
  return args[0];
}

Value JvpLevel::handle(const Operator& op, Args args) {
  if (const HigherOrder* higher_order = op.def().higher_order) return higher_order->jvp(*this, op, args);
  if (op.form() == OpForm::kOut) unsupported("{}: out= forms have no forward-mode derivative", op.name());
  return op.info().is_mutable ? handle_inplace(op, args) : handle_functional(op, args);
}

}  // namespace

namespace func {

std::pair<Tensors, Tensors> jvp_of(const Fn& f, const Tensors& inputs, const Tensors& tangents) {
  require(inputs.size() == tangents.size(), "jvp: {} inputs but {} tangents", inputs.size(), tangents.size());
  LevelEntry entry(make_ref<JvpLevel>());
  const LevelLiterals literals(entry.level());
  Tensors wrapped;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool differentiable = tangents[i].defined() && is_differentiable(inputs[i].dtype());
    if (differentiable)
      require(may_be_same_sizes(inputs[i].sizes(), tangents[i].sizes()),
              "jvp: input {} is {}, but its tangent is {}; they must be of the same size", i,
              describe(inputs[i]), describe(tangents[i]));
    // One without a tangent may be written to, and have one then.
    wrapped.push_back(wrap_at(entry.level(), inputs[i], -1, differentiable ? tangents[i] : Tensor()));
  }
  std::pair<Tensors, Tensors> results;
  for (const Tensor& result : f(wrapped)) {
    LevelBox* box = box_at(result, *entry.level());
    BelowLevel below(*entry.level());
    Tensor value = box ? box->value : result;
    results.first.push_back(value);
    results.second.push_back(box && box->tangent.defined() ? box->tangent : zeros_like(value));
  }
  return results;
}

}  // namespace func
}  // namespace weft
