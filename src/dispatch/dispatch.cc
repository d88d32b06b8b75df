#include <bit>
#include <utility>

#include "dispatch/call_text.h"
#include "dispatch/inplace_view.h"
#include "dispatch/kept_composites.h"
#include "weft/base/error.h"
#include "weft/core/view_step.h"
#include "weft/dispatch/layers.h"

namespace weft {

constinit thread_local LayerState detail::layer_state;

InferenceMode::InferenceMode(bool enabled) : saved_flags_(detail::new_tensor_flags) {
  LayerState& state = layer_state();
  state.inference_mode = enabled;
  state.grad_mode = !enabled;
  constexpr uint32_t bit = tensor_flag::kInference;
  // Inside the mode an inference tensor is like any other, on the fast path too.
  state.mask = enabled ? state.mask & ~bit : state.mask | bit;
  detail::new_tensor_flags = enabled ? saved_flags_ | bit : saved_flags_ & ~bit;
}
InferenceMode::~InferenceMode() { detail::new_tensor_flags = saved_flags_; }

namespace dispatch {

void note_call(Error& error, const Operator& op, Args args) noexcept {
  try {
    error.add_while("calling " + call_text(op, args));
  } catch (...) {
    // The error itself is what counts.
  }
}

namespace {

Value run_kernel(const Operator& op, Args args, uint32_t flags);

template <typename F>
[[gnu::always_inline]] inline Value noted(const Operator& op, Args args, const F& run) {
  try {
    return run();
  } catch (Error& error) {
    note_call(error, op, args);
    throw;
  }
}

}  // namespace

uint32_t flags_of(Args args) noexcept {
  uint32_t flags = 0;
  for (const Value& value : args) {
    if (const TensorImpl* impl = value.tensor_impl()) flags |= impl->flags();
    else if (value.is_sequence()) flags |= flags_of(Args(value.elements()));
  }
  return flags;
}

namespace {

// Layers and kernels take what the schema calls a tensor for one.
void require_tensors(const Operator& op, Args args) {
  const Operator::Info& info = op.info();
  for (size_t i = 0; i < args.size(); ++i) {
    if (info.is_tensor[i] != 1 || args[i].is_tensor()) [[likely]]
      continue;
    const Argument& argument = info.schema.arguments[i];
    if (args[i].is_none() && argument.type.is_optional()) continue;
    require(!args[i].is_none(), "{}: argument '{}' is an undefined tensor", op.name(), argument.name);
    fail("{}: argument '{}': expected a tensor but got {} ({})", op.name(), argument.name,
         args[i].kind_name(), args[i].to_string());
  }
}

constinit thread_local const std::unordered_set<const Operator*>* kept_composites = nullptr;

bool is_kept(const Operator& op, uint32_t bits) {
  if (!kept_composites) [[likely]]
    return false;
  const bool is_seen = (bits & (layer::kFunctionalizeLower | layer::kRecorderLower)) != 0;
  return is_seen && !(bits & layer::kAutograd) && kept_composites->contains(&op);
}

}  // namespace

Value redispatch(const Operator& op, Args args) {
  require_tensors(op, args);
  const LayerState& state = layer_state();
  uint32_t mask = state.grad_mode ? state.mask : state.mask & ~layer::kAutograd;
  const uint32_t flags = flags_of(args);
  uint32_t bits = (state.active | flags) & mask & layer::kAll;
  // A composite has no meaning of its own for whatever is below, even where a call starts there.
  if (op.is_composite() && bits < layer::kComposites && !is_kept(op, bits)) bits |= layer::kComposites;
  if (const HigherOrder* higher_order = op.def().higher_order) bits &= higher_order->seen_by;
  switch (std::bit_floor(bits)) {
    case layer::kLevels:
      return layers::levels(op, args);
    case layer::kFunctionalizeUpper:
      return layers::functionalize_upper(op, args);
    case layer::kRecorderUpper:
      return layers::recorder_upper(op, args);
    case layer::kAutocast:
      return layers::autocast(op, args);
    case layer::kComposites: {
      if (bits & layer::kExtension) layers::check_decomposable(op, args);
      MaskScope scope(layer::at_and_below(layer::kComposites));
      return noted(op, args, [&] { return op.kernel().boxed(args); });
    }
    case layer::kAutograd:
      return layers::autograd(op, args);
    case layer::kModes:
      return layers::modes(op, args);
    case layer::kExtension:
      return layers::extension(op, args);
    case layer::kFunctionalizeLower:
      return layers::functionalize_lower(op, args);
    case layer::kRecorderLower:
      return layers::recorder_lower(op, args);
    case layer::kFake:
      return layers::fake(op, args);
    default:
      return run_kernel(op, args, flags);
  }
}

OutCall split_out_call(const Operator& op, Args args) {
  const Operator& functional = op.functional();
  const std::vector<Argument>& own = op.schema().arguments;
  OutCall call;
  for (size_t i = 0; i < own.size(); ++i)
    if (op.info().written[i] && !functional.schema().argument_index(own[i].name))
      call.targets.push_back(args[i]);
  const std::vector<Argument>& wanted = functional.schema().arguments;
  for (size_t i = 0; i < wanted.size(); ++i) {
    std::optional<size_t> at = op.schema().argument_index(wanted[i].name);
    const Tensor* target = call.targets[0].is_tensor() ? &call.targets[0].tensor_ref() : nullptr;
    // A type that the call does not name is the target's, unless the target must have the result's own.
    const bool names_no_type =
        wanted[i].name == "dtype" && (!at || (args[*at].is_none() && !op.def().kernel.out_type_is_exact));
    if (target && names_no_type) call.inputs.push_back(target->dtype());
    else if (at) call.inputs.push_back(args[*at]);
    else if (target && wanted[i].name == "device") call.inputs.push_back(target->device());
    else call.inputs.push_back(functional.info().defaults[i]);
  }
  return call;
}

void bump_versions(const Operator& op, Args args) {
  const Operator::Info& info = op.info();
  if (!info.is_mutable) return;
  if (op.has(Traits::kView) && op.has(Traits::kNotDifferentiable)) return;  // detach_ writes nothing
  for (size_t i = 0; i < args.size(); ++i) {
    if (!info.written[i]) continue;
    if (args[i].is_tensor()) args[i].tensor_ref().impl()->bump_version();
    else if (args[i].is_sequence())
      for (const Value& element : args[i].elements())
        if (element.is_tensor()) element.tensor_ref().impl()->bump_version();
  }
}

void note_view(const Operator& op, const Tensor& source, const Tensor& view, Args args, int output) {
  // A result that is its argument itself (a no-op contiguous) is no view of it.
  if (view.is_same(source) || source.is_inference()) return;
  // A detached tensor shares memory but no history.
  if (op.has(Traits::kNotDifferentiable)) return;
  auto step = make_ref<ViewStep>();
  const Ref<ViewStep>& before = source.impl()->view;
  step->base = before ? before->base : source;
  step->previous = before;
  step->op = &op;
  step->args.assign(args.begin(), args.end());
  step->args[0] = Value();
  step->output = output;
  // What may not be written to by its history stays so for views of it.
  step->creation = before && before->creation != ViewCreation::kDefault ? before->creation
                   : layer_state().inference_mode                       ? ViewCreation::kInference
                   : !layer_state().grad_mode                           ? ViewCreation::kNoGrad
                   : output >= 0                                        ? ViewCreation::kMultiOutput
                                                                        : ViewCreation::kDefault;
  // Writes to it are to be noticed where gradients are recorded again.
  if (step->creation == ViewCreation::kNoGrad && step->base.requires_grad() &&
      is_differentiable(view.dtype()))
    view.impl()->set_flags(layer::kAutograd);
  ViewStep::attach(std::move(step), *view.impl());
}

void note_views(const Operator& op, Args args, const Value& result) {
  const Operator::Info& info = op.info();
  if (!info.is_view || args.empty() || !args[0].is_tensor()) return;
  const Tensor& source = args[0].tensor_ref();
  auto note = [&](const Value& view, int output) {
    if (!view.is_tensor() || view.tensor_ref().storage() != source.storage()) return;  // it had to copy
    note_view(op, source, view.tensor_ref(), args, output);
  };
  if (!result.is_sequence()) return note(result, -1);
  int output = 0;
  for (const Value& element : result.elements()) note(element, output++);
}

namespace {

void refuse_inference_writes(const Operator& op, Args args) {
  const Operator::Info& info = op.info();
  for (size_t i = 0; i < args.size(); ++i)
    require(!(info.written[i] && (flags_of(args.subspan(i, 1)) & tensor_flag::kInference)),
            "{}: Inplace update to inference tensor outside InferenceMode is not allowed. You can make a "
            "clone to get a "
            "normal tensor before doing inplace update.",
            op.name());
}

}  // namespace

Value run_kernel(const Operator& op, Args args) { return run_kernel(op, args, flags_of(args)); }

namespace {

// `flags` are those of the arguments.
Value run_kernel(const Operator& op, Args args, uint32_t flags) {
  if (const HigherOrder* higher_order = op.def().higher_order) return higher_order->run(args);
  if (!op.kernel()) unsupported("{}: no kernel is defined for it", op.name());
  const Operator::Info& info = op.info();
  if (!info.is_mutable && !info.is_view && !(flags & layer::kKernelDetour)) [[likely]]
    return noted(op, args, [&] { return op.kernel().boxed(args); });
  auto run = [&] {
    return noted(op, args, [&] {
      return flags & layer::kKernelDetour ? layers::kernel_detour(op, args, flags) : op.kernel().boxed(args);
    });
  };
  if (!info.is_mutable) {
    Value result = run();
    note_views(op, args, result);
    return result;
  }
  if ((flags & tensor_flag::kInference) && !layer_state().inference_mode) refuse_inference_writes(op, args);
  const InplaceView view(op, args);
  Value result = run();
  view.done();
  bump_versions(op, args);
  note_views(op, args, result);
  return result;
}

}  // namespace
}  // namespace dispatch

Value call(const Operator& op, Args args) {
  const Operator::Info& info = op.info();
  const Schema& schema = info.schema;
  require(args.size() <= schema.arguments.size(), "{} takes {} arguments but {} were given", op.name(),
          schema.arguments.size(), args.size());
  if (args.size() == schema.arguments.size()) return dispatch::redispatch(op, args);
  std::vector<Value> complete(args.begin(), args.end());
  for (size_t i = args.size(); i < schema.arguments.size(); ++i) {
    require(schema.arguments[i].default_value.has_value() || schema.arguments[i].type.is_optional(),
            "{}: argument '{}' is missing; the schema is {}", op.name(), schema.arguments[i].name,
            op.schema_text());
    complete.push_back(info.defaults[i]);
  }
  return dispatch::redispatch(op, complete);
}

Value call(const Operator& op, std::initializer_list<Value> args) {
  return call(op, Args(args.begin(), args.size()));
}

Value call(std::string_view name, std::initializer_list<Value> args) {
  return call(operator_named(name), Args(args.begin(), args.size()));
}

KeptCompositesScope::KeptCompositesScope(std::unordered_set<const Operator*> operators)
    : operators_(std::move(operators)), outer_(std::exchange(dispatch::kept_composites, &operators_)) {}
KeptCompositesScope::~KeptCompositesScope() { dispatch::kept_composites = outer_; }

}  // namespace weft
