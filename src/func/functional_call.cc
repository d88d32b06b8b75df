#include "func/functional_call.h"

#include <algorithm>

#include "autograd/function.h"
#include "dispatch/inplace_view.h"
#include "func/control_flow_rules.h"
#include "func/functional_arguments.h"
#include "func/functional_function.h"
#include "ops/out_call.h"
#include "ops/silent_mutation.h"
#include "ops/structured.h"
#include "ops/view_replay.h"
#include "weft/base/error.h"
#include "weft/core/callable.h"
#include "weft/ops/fake.h"
#include "weft/ops/operator_value.h"

namespace weft {

const Operator* with_written_results(const Operator& op) {
  if (!op.info().is_mutable || op.form() != OpForm::kFunctional) return nullptr;
  const Operator* values = op.relative(Operator::Relative::kWithWrittenResults);
  if (!values || values->info().is_mutable) return nullptr;
  // Another operator may have that name by chance.
  const auto written = static_cast<size_t>(std::ranges::count(op.info().written, true));
  const bool fits = values->schema().arguments.size() == op.schema().arguments.size() &&
                    values->schema().returns.size() == op.schema().returns.size() + written;
  return fits ? values : nullptr;
}

namespace {

// --- one call --------------------------------------------------------------------------------------------

class FunctionalCall : FunctionalArguments {
 public:
  FunctionalCall(const Position& position, const Operator& op, Args args)
      : FunctionalArguments(position, op, args) {}
  // A call that writes though its schema does not say so: `mutating` says so, and no version is counted.
  static FunctionalCall without_versions(const Position& position, const Operator& mutating, Args args) {
    FunctionalCall call(position, mutating, args);
    call.counts_versions_ = false;
    return call;
  }

  Value run() {
    // An in-place view is made of the value that was seen last: whoever reads the tensor next replays it
    // anyway.
    if (!changes_geometry()) update_all(args_);
    if (const HigherOrder* higher_order = op_.def().higher_order; higher_order && higher_order->branches)
      return over_functions();
    if (op_.def().higher_order) return custom_function();
    if (const Operator* mutating = mutating_equivalent(op_, args_); mutating && owns_written(*mutating))
      return without_versions(position_, *mutating, args_).run();
    if (const std::optional<EquivalentCall> call = writeless_equivalent(op_, args_))
      return FunctionalCall(position_, *call->op, call->args).run();
    if (op_.has(Traits::kGeometry) && op_.has(Traits::kEffectful))
      return change_memory(position_, op_, args_);
    if (op_.info().is_mutable) return mutate();
    if (op_.info().is_view && own(args_[0])) return view(op_);
    if (reads_elements(op_)) refuse_emptied(args_);
    return compute();
  }

 private:
  bool changes_geometry() const {
    if (!op_.info().is_mutable || op_.form() != OpForm::kInplace) return false;
    const Operator& functional = op_.functional();
    return functional.info().is_view && !functional.has(Traits::kReadsStrides);
  }

  // --- values

  Value compute() const {
    std::vector<Value> inner = unwrapped(args_);
    Value result = call_below(op_, inner);
    // A call on tensors that are all foreign stays foreign; one without tensors makes ours, and so does one
    // that takes a value into the program.
    if (!any_own(args_) && any_tensor(args_) && !op_.has(Traits::kFactory | Traits::kLifts)) return result;
    return map_tensors(result, [&](const Tensor& t) {
      for (size_t i = 0; i < inner.size(); ++i)
        if (inner[i].is_tensor() && inner[i].tensor_ref().is_same(t)) return args_[i];
      return Value(wrap_value(position_, t));
    });
  }

  // --- functions

  // An operator over functions runs them as values too.
  Value over_functions() const {
    std::vector<Value> inner = unwrapped(args_);
    for (Value& value : inner)
      if (Callable* function = callable_in(value))
        value = Value(Ref<ValueObject>(
            make_closure([position = position_, name = op_.name(), f = Ref<Callable>(function)](Args given) {
              return run_function(position, name, *f, given);
            })));
    return map_tensors(call_below(op_, inner),
                       [&](const Tensor& t) { return Value(wrap_value(position_, t)); });
  }

  Value custom_function() const {
    autograd::AppliedFunction& applied = autograd::applied_function(args_);
    auto below = make_ref<autograd::AppliedFunction>(functionalized(applied.function));
    below->needs = applied.needs;
    std::vector<Tensor> tensors = autograd::tensor_list(args_[1]);
    const Value inner[] = {Value(Ref<ValueObject>(below)), unwrapped(args_[1])};
    std::vector<Tensor> results = autograd::tensor_list(call_below(op_, inner));
    for (Tensor& result : results) {
      Tensor own = autograd::own_tensor_for(result, {&tensors});
      if (!result.defined() || !any_own(args_)) continue;
      result = own.is_same(result) ? wrap_value(position_, result) : own;
    }
    applied.context = below->context.translated(
        [&](const Tensor& own) { return autograd::own_tensor_for(own, {&tensors, &results}); });
    return Value::list_of(results);
  }

  // Levels may have come and gone since the operator was called: the function has a level of its own.
  static Value run_function(Position position, std::string_view name, Callable& function, Args given) {
    std::optional<LevelEntry> entry;
    if (position.level) position.level = entry.emplace(new_functionalize_level()).level();
    ValueList wrapped;
    for (const Value& value : given)
      wrapped.push_back(map_tensors(value, [&](const Tensor& t) { return Value(wrap_value(position, t)); }));
    Value result;
    {
      AtPosition at(position);
      result = function.call(wrapped);
    }
    BelowPosition below(position);
    std::vector<FunctionalMemory*> inputs;
    for (const Value& value : wrapped) {
      FunctionalBox* box = value.is_tensor() ? position.box_of(value.tensor_ref()) : nullptr;
      if (!box) continue;
      require(
          box->memory->changes.writes == 0,
          "{}: one of its functions writes to its input; return the new value instead, or write to a clone",
          name);
      inputs.push_back(box->memory.get());
    }
    return map_tensors(result, [&](const Tensor& t) {
      FunctionalBox* box = position.box_of(t);
      if (!box) return Value(t);
      Tensor value = box->live_value();
      bool shares = std::find(inputs.begin(), inputs.end(), box->memory.get()) != inputs.end();
      return Value(shares ? value.clone() : value);
    });
  }

  // --- views

  // The geometry comes from the wrapper, which has the strides that the program knows of; the values from
  // below.
  Value view(const Operator& op) const {
    const Tensor& source = args_[0].tensor_ref();
    FunctionalBox& box = *own(args_[0]);
    const bool lies_alike = same_strides(source.strides(), box.value.strides(), source.sizes()) &&
                            guard_or(source.storage_offset() == box.value.storage_offset(), false);
    if (op.has(Traits::kReadsStrides) && !lies_alike) {
      BelowPosition below(position_);
      box.memory->restore_layout(box.steps, &op);
      box.live_value();
    }
    Value inner = call_below(op, unwrapped(args_));
    Value shape = shape_below_everything(op);
    auto made = [&](const Value& outer, const Value& value, int output) {
      return Value(wrap_view(op, source, outer.to_tensor(), value.to_tensor(), output));
    };
    Value result;
    if (!shape.is_sequence()) {
      result = made(shape, inner, -1);
    } else {
      ValueList views;
      for (size_t i = 0; i < shape.elements().size(); ++i)
        views.push_back(made(shape.elements()[i], inner.elements()[i], static_cast<int>(i)));
      result = Value::list(std::move(views));
    }
    dispatch::note_views(op, args_, result);
    return result;
  }

  Value shape_below_everything(const Operator& op) const {
    MaskScope mask(0);
    return run_meta(op, args_);
  }

  Tensor wrap_view(const Operator& op, const Tensor& source, const Tensor& shape, const Tensor& value,
                   int output) const {
    if (shape.storage() != source.storage()) return wrap_value(position_, value);  // it had to copy
    FunctionalBox& from = *position_.box_of(source);
    auto box = make_ref<FunctionalBox>();
    box->level = position_.level;
    box->value = value;
    box->memory = from.memory;
    box->generation = from.generation;
    box->steps = make_ref<ViewStep>();
    box->steps->previous = from.steps;
    box->steps->op = &op;
    box->steps->args.assign(args_.begin(), args_.end());
    box->steps->args[0] = Value();
    box->steps->output = output;
    shape.impl()->set_flags(position_.bit);
    shape.impl()->box = std::move(box);
    return shape;
  }

  // --- writes

  Value mutate() const {
    const Operator& functional = op_.functional();
    if (!any_own(args_)) return call_below(op_, args_);
    if (const Operator* values = with_written_results(op_)) {
      refuse_emptied(args_);
      return write_results(*values);
    }
    if (functional.info().is_view) return mutate_geometry(functional);
    if (op_.has(Traits::kGeometry) && op_.form() != OpForm::kOut) return change_memory(position_, op_, args_);
    refuse_emptied(args_);
    for (size_t i = 0; i < args_.size(); ++i)
      if (op_.info().written[i]) refuse_frozen(args_.subspan(i, 1));
    require(owns_written(op_),
            "{}: a tensor from outside of functionalize is written to with functional arguments; the write "
            "would be lost. "
            "Pass it as an argument of the function",
            op_.name());
    Value result = functional.info().is_mutable ? auto_functionalize()
                   : op_.form() == OpForm::kOut ? write_out(functional)
                                                : write_inplace(functional);
    dispatch::bump_versions(op_, args_);
    return result;
  }

  Value write_inplace(const Operator& functional) const {
    const Value& self = args_[first_written()];
    const Tensor& target = self.tensor_ref();
    Tensor result = call_below(functional, unwrapped(args_)).to_tensor();
    check_inplace(spec_of(result), target);
    check_no_internal_overlap(target);
    write(target, result);
    return self;
  }

  // An operator without a functional form has one made for it.
  Value auto_functionalize() const {
    refuse_shared_elements();
    const Value call[] = {operator_value(op_), Value::list(unwrapped(args_))};
    const Value all = call_below(auto_functionalized_operator(), call);
    const size_t returns = op_.schema().returns.size();
    const ValueList& values = all.elements();
    size_t next = std::max<size_t>(returns, 1);
    for (size_t i = 0; i < args_.size(); ++i)
      if (op_.info().written[i]) write_all(args_[i], values.at(next++));
    const Value result =
        returns > 1
            ? Value::tuple(ValueList(values.begin(), values.begin() + static_cast<ptrdiff_t>(returns)))
            : values[0];
    return with_given_back(
        wrap_results(op_, args_, result, [&](const Tensor& t) { return Value(wrap_value(position_, t)); }));
  }

  // A result for which the meta function gives an argument that is written is that argument, after the write.
  Value with_given_back(const Value& result) const {
    if (!op_.def().meta || op_.has(Traits::kDataDependent)) return result;
    const Value shape = shape_below_everything(op_);
    auto given_back = [&](const Value& made, const Value& described) {
      for (size_t i = 0; i < args_.size(); ++i)
        if (op_.info().written[i] && args_[i].is_tensor() && described.is_tensor() &&
            described.tensor_ref().is_same(args_[i].tensor_ref()))
          return args_[i];
      return made;
    };
    if (!result.is_tuple()) return given_back(result, shape);
    ValueList results;
    for (size_t i = 0; i < result.elements().size(); ++i)
      results.push_back(given_back(result.elements()[i], shape.elements().at(i)));
    return Value::tuple(std::move(results));
  }

  // The values are apart: a write to one argument would not be seen in another one.
  void refuse_shared_elements() const {
    std::vector<std::pair<Tensor, bool>> tensors;
    for (size_t i = 0; i < args_.size(); ++i)
      map_tensors(args_[i], [&](const Tensor& t) {
        if (position_.box_of(t)) tensors.emplace_back(t, op_.info().written[i]);
        return Value(t);
      });
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const auto& [a, a_written] = tensors[i];
        const auto& [b, b_written] = tensors[j];
        if ((!a_written && !b_written) || a.is_same(b) || !may_share_elements(a, b)) continue;
        unsupported(
            "functionalize: {} writes to {}, which shares elements with {}, another of its arguments; clone "
            "one of them",
            op_.name(), describe(a_written ? a : b), describe(a_written ? b : a));
      }
  }

  // One new value for each tensor of a written argument, which may be a list.
  void write_all(const Value& target, const Value& value) const {
    if (target.is_tensor()) return write(target.tensor_ref(), value.to_tensor());
    if (!target.is_sequence()) return;  // an optional one that is not there
    for (size_t i = 0; i < target.elements().size(); ++i)
      write_all(target.elements()[i], value.elements().at(i));
  }

  // An operator that gives what this one writes, after what this one gives.
  Value write_results(const Operator& values) const {
    Value all = call_below(values, unwrapped(args_));
    size_t own_results = op_.schema().returns.size(), next = own_results;
    const auto& written = op_.info().written;
    for (size_t i = 0; i < args_.size(); ++i) {
      if (!written[i] || !args_[i].is_tensor() || !args_[i].tensor_ref().defined()) continue;
      Tensor value = all.elements().at(next++).to_tensor();
      if (own(args_[i])) write(args_[i].tensor_ref(), value);
    }
    if (counts_versions_) dispatch::bump_versions(op_, args_);
    ValueList results;
    for (size_t i = 0; i < own_results; ++i)
      results.emplace_back(wrap_value(position_, all.elements()[i].to_tensor()));
    return own_results == 1 ? results[0] : Value::tuple(std::move(results));
  }

  // Arguments of the functional form go by name; each result is the new value of the target in its place.
  Value write_out(const Operator& functional) const {
    dispatch::OutCall call = dispatch::split_out_call(op_, args_);
    Value result = call_below(functional, unwrapped(call.inputs));
    for (size_t i = 0; i < call.targets.size(); ++i)
      write_result(call.targets[i], result.is_tuple() ? result.elements()[i] : result);
    return call.result();
  }

  // A target may be a list, and its result then is one; a result that was not asked for is None.
  void write_result(const Value& target, const Value& result) const {
    if (result.is_none()) return;
    if (!target.is_sequence()) return write_result(target.tensor_ref(), result.to_tensor());
    for (size_t i = 0; i < target.elements().size(); ++i)
      write_result(target.elements()[i], result.elements().at(i));
  }
  void write_result(const Tensor& target, const Tensor& value) const {
    FunctionalBox& box = *position_.box_of(target);
    const bool resizes = !guard_or(sizes_agree(value, target), true);
    if (resizes && box.steps) unsupported("functionalize: {} would resize a view", op_.name());
    settle_out(op_, args_, value, target);
    box.metadata_changed |= resizes;
    write(target, value);
    if (!resizes) return;
    box.memory->strides = SymInts(target.strides());
    box.memory->offset = target.storage_offset();
    box.memory->changes.resized = true;
  }

  static SymBool sizes_agree(const Tensor& a, const Tensor& b) {
    if (a.dim() != b.dim()) return SymBool(false);
    SymBool agree(true);
    for (size_t d = 0; d < a.sizes().size(); ++d) agree = agree & (a.sizes()[d] == b.sizes()[d]);
    return agree;
  }

  // Gives the wrapper's memory a new value in which the wrapper's part is `value`.
  void write(const Tensor& wrapper, Tensor value) const {
    FunctionalBox& box = *position_.box_of(wrapper);
    FunctionalMemory& memory = *box.memory;
    BelowPosition below(position_);
    if (value.dtype() != wrapper.dtype()) value = value.to(wrapper.dtype());
    memory.restore_layout(box.steps);
    memory.base = put_back_view(box.steps, memory.base, value);
    ++memory.generation;
    note_write(wrapper, box);
    // A level replays after each write, as PyTorch's functionalize does; a compiler's capture, which removes
    // what nobody uses, where the view is read next.
    if (position_.level) box.live_value();
  }

  bool counts_versions_ = true;

  // An in-place view (`t_`): the tensor becomes that view of itself.
  Value mutate_geometry(const Operator& functional) const {
    const Tensor& self = args_[0].tensor_ref();
    const dispatch::InplaceView story(op_, args_, position_.box_of(self)->untracked());
    Tensor made = view(functional).to_tensor();
    FunctionalBox &box = *position_.box_of(self), &from = *position_.box_of(made);
    box.value = from.value;
    box.steps = from.steps;
    box.generation = from.generation;
    box.metadata_changed = true;
    self.impl()->set_geometry(made.sizes(), made.strides(), made.storage_offset());
    story.done();
    dispatch::bump_versions(op_, args_);
    return args_[0];
  }
};

}  // namespace

Value functional_call(const Position& position, const Operator& op, Args args) {
  return FunctionalCall(position, op, args).run();
}

}  // namespace weft
