#include "weft/ops/fake.h"

#include <fmt/format.h>

#include <algorithm>

#include "dispatch/inplace_view.h"
#include "ops/out_call.h"
#include "ops/structured.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"

namespace weft {
namespace {

thread_local FakeMode* innermost_fake = nullptr;

Value functional_meta(const Operator& op, Args args) {
  const Function& meta = op.def().meta;
  if (!meta) unsupported("{}: it has no meta function, so it cannot run without data", op.name());
  return meta.boxed(args);
}

size_t written_at(const Operator& op) {
  const auto& written = op.info().written;
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i]) return i;
  return 0;
}

// What an operator that writes gives: where a result is a written argument, that argument.
Value with_written(const Operator& op, Args args, const Value& result) {
  const Operator::Info& info = op.info();
  auto one = [&](const Value& made, size_t i) {
    const int16_t alias = info.result_aliases[i];
    return alias >= 0 && info.written[static_cast<size_t>(alias)] ? args[static_cast<size_t>(alias)] : made;
  };
  const size_t count = info.is_mutable ? info.result_aliases.size() : 0;
  if (count == 0) return result;
  if (count == 1) return one(result, 0);
  ValueList results;
  for (size_t i = 0; i < count; ++i) results.push_back(one(result.elements().at(i), i));
  return Value::tuple(std::move(results));
}

Value inplace_meta(const Operator& op, Args args) {
  // These need no memory to work on.
  if (op.has(Traits::kView | Traits::kGeometry)) return op.kernel().boxed(args);
  Value self = args[written_at(op)];
  Tensor result = functional_meta(op, args).to_tensor();
  check_inplace(spec_of(result), self.tensor_ref());
  return self;
}

Value out_meta(const Operator& op, Args args) {
  dispatch::OutCall call = dispatch::split_out_call(op, args);
  Value result = functional_meta(op, call.inputs);
  for (size_t i = 0; i < call.targets.size(); ++i) {
    const Value& made = result.is_sequence() ? result.elements()[i] : result;
    if (made.is_none()) continue;  // not asked for
    settle_out(op, args, made.to_tensor(), call.targets[i].to_tensor());
  }
  return call.result();
}

bool is_real(const Tensor& t) {
  bool is_number = t.dim() == 0 && (t.flags() & tensor_flag::kWrappedNumber);
  return !is_fake(t) && !is_number && !t.device().is_meta();
}

bool has_real_tensors(Args args) {
  bool found = false;
  for_each_tensor(args, [&](const Tensor& t) { found |= is_real(t); });
  return found;
}

void refuse_real_tensors(const Operator& op, Args args) {
  for_each_tensor(args, [&](const Tensor& t) {
    require(
        !is_real(t),
        "{}: {} is a real tensor among fake ones; it was made outside of the fake mode. Make it fake with "
        "FakeMode::fake_of, or allow it with FakeOptions{{.allow_real_inputs = true}}",
        op.name(), describe(t));
  });
}

}  // namespace

FakeMode::FakeMode(Ref<FakeConverter> converter, bool allow_real_inputs)
    : options_{.shape_env = converter->shape_env(), .allow_real_inputs = allow_real_inputs},
      converter_(std::move(converter)),
      outer_(innermost_fake),
      was_active_(layer_state().active & layer::kFake) {
  innermost_fake = this;
  layer_state().active |= layer::kFake;
}

FakeMode::FakeMode(FakeOptions options)
    : FakeMode(make_ref<FakeConverter>(std::move(options.shape_env)), options.allow_real_inputs) {}

FakeMode::~FakeMode() {
  innermost_fake = outer_;
  if (!was_active_) layer_state().active &= ~layer::kFake;
}

FakeMode* FakeMode::current() { return layer_state().mask & layer::kFake ? innermost_fake : nullptr; }

Value run_meta(const Operator& op, Args args) {
  // Meta functions ask their questions by name; an implicit guard in one is a fault of ours.
  switch (op.form()) {
    case OpForm::kFunctional: {
      if (op.has(Traits::kGeometry))
        return op.info().is_mutable ? op.kernel().boxed(args) : functional_meta(op, args);
      return with_written(op, args, functional_meta(op, args));
    }
    case OpForm::kInplace:
      return inplace_meta(op, args);
    case OpForm::kOut:
      return out_meta(op, args);
  }
  __builtin_unreachable();
}

namespace {

Value with_stand_ins(const Value& value, FakeMode& mode) {
  if (!has_real_tensors(Args(&value, 1))) return value;
  return map_tensors(value,
                     [&](const Tensor& t) { return is_real(t) ? mode.converter()->convert_constant(t) : t; });
}

// Where `args` hold the tensor: what `given` has in that place. Null where they do not.
const Value* find_tensor(const Tensor& tensor, Args args, Args given) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor() && args[i].tensor_ref().is_same(tensor)) return &given[i];
    if (!args[i].is_sequence()) continue;
    if (const Value* found = find_tensor(tensor, Args(args[i].elements()), Args(given[i].elements())))
      return found;
  }
  return nullptr;
}

// `t_`, `resize_`, `set_` and the like.
bool changes_metadata(const Operator& op) {
  if (!op.info().is_mutable || op.form() == OpForm::kOut) return false;
  return op.has(Traits::kGeometry) ||
         (op.form() == OpForm::kInplace && op.has(Traits::kView) && !op.has(Traits::kNotDifferentiable));
}

// A real tensor of the program keeps its geometry, and the stand-in's alone would change: a graph of what
// follows would not be the program's.
void refuse_other_geometry(const Operator& op, Args given) {
  const bool is_recorded = layer_state().active & (layer::kRecorderLower | layer::kRecorderUpper);
  if (!is_recorded || !changes_metadata(op)) return;
  for (size_t i = 0; i < given.size(); ++i)
    require(!op.info().written[i] || !given[i].is_tensor() || !is_real(given[i].tensor_ref()),
            "Can't call metadata mutating ops on tensors that are no inputs while nothing is computed: {} "
            "would change the "
            "sizes, strides or memory of {} itself, which the program has from elsewhere. Change a clone or "
            "a view of it",
            op.name(), describe(given[i].tensor_ref()));
}

void mark_fake(const Value& result, Args args) {
  for_each_tensor(Args(&result, 1), [&](const Tensor& t) {
    // What a call gives back of its arguments stays what it was.
    if (!is_fake(t) && !find_tensor(t, args, args)) t.impl()->set_flags(layer::kFake);
  });
}

// The result with the caller's own tensors where the call gave arguments back.
Value with_arguments(const Value& result, Args args, Args given) {
  return map_tensors(result, [&](const Tensor& tensor) {
    const Value* own = find_tensor(tensor, args, given);
    return own ? *own : Value(tensor);
  });
}

}  // namespace

Value layers::fake(const Operator& op, Args given) {
  FakeMode* mode = innermost_fake;
  ValueList replaced;
  Args args = given;
  if (has_real_tensors(given)) [[unlikely]] {
    if (!mode || !mode->options().allow_real_inputs) refuse_real_tensors(op, given);
    else if (!op.def().higher_order) {
      refuse_other_geometry(op, given);
      for (const Value& value : given) replaced.push_back(with_stand_ins(value, *mode));
      args = replaced;
    }
  }
  // What an operator over functions runs comes back here, call by call.
  if (const HigherOrder* higher_order = op.def().higher_order) {
    MaskScope here(layer::at_and_below(layer::kFake));
    return higher_order->fake(args);
  }
  MaskScope mask(layer::below(layer::kFake));
  const dispatch::InplaceView view(op, args);
  Value result = [&] {
    try {
      return run_meta(op, args);
    } catch (Error& error) {
      dispatch::note_call(error, op, args);
      throw;
    }
  }();
  view.done();
  mark_fake(result, args);
  dispatch::bump_versions(op, args);
  dispatch::note_views(op, args, result);
  return replaced.empty() ? result : with_arguments(result, args, given);
}

// Meta functions run below the mode that asks them.
SymInt unbacked_size(const char* op, const SymInt& upper) {
  const FakeMode* mode = innermost_fake;
  require(mode && mode->options().shape_env,
          "{}: the size of its result depends on data, and these tensors have none; run it under a FakeMode "
          "with a ShapeEnv",
          op);
  SymInt size = mode->options().shape_env->create_unbacked_int();
  check_size_like(size);
  check(size <= upper, "a data-dependent size stays within the number of elements");
  return size;
}

Value unbacked_item(const char* op, DType dtype) {
  const FakeMode* mode = innermost_fake;
  require(mode && mode->options().shape_env,
          "{}: its value depends on data, and this tensor has none; run it under a FakeMode with a ShapeEnv",
          op);
  ShapeEnv& env = *mode->options().shape_env;
  if (dtype == DType::kBool) return env.create_unbacked_bool();
  if (is_floating(dtype)) return env.create_unbacked_float();
  require(!is_complex(dtype), "{}: a complex value that depends on data is not supported", op);
  return env.create_unbacked_int();
}

}  // namespace weft
