// Operators over functions that only run them, in a state of their own or in a certain order: no layer meets
// them as a whole, so captures and gradients are of what they run.
#include "func/regions.h"

#include "func/control_flow.h"
#include "func/control_flow_rules.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/autocast.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// (enabled, function, operands)
Value run_with_grad_mode(Args args) {
  const GradModeScope mode(args[0].to_bool());
  return flow::function_at(args, 1).call(args[2].elements());
}

// (device, type, enabled, whether casts are kept, function, operands)
Value run_with_autocast(Args args) {
  const Autocast scope(args[1].is_none() ? kBFloat16 : args[1].to_dtype(), args[2].to_bool());
  return flow::function_at(args, 4).call(args[5].elements());
}

// y[0] = x[0], y[i] = combine(y[i - 1], x[i]), over dim 0 of each x.
Value run_associative_scan(Args args) {
  Callable& combine = flow::function_at(args, 0);
  const ValueList& xs = args[1].elements();
  const ValueList& fixed = args[2].elements();
  require(!xs.empty() && xs[0].is_tensor() && xs[0].tensor_ref().dim() > 0,
          "associative_scan: expected tensors whose rows it goes through");
  const int64_t count = guard_int(xs[0].tensor_ref().size(0));
  if (count == 0) return Value::tuple(xs);
  ValueList carry = flow::slices(xs, 0);
  std::vector<std::vector<Tensor>> columns(xs.size());
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0) {
      const Value next =
          flow::as_tuple(combine.call(flow::joined(flow::joined(carry, flow::slices(xs, i)), fixed)));
      carry = next.elements();
      require(carry.size() == xs.size(), "associative_scan: its function gives {} values for {}",
              carry.size(), xs.size());
    }
    for (size_t c = 0; c < columns.size(); ++c) columns[c].push_back(carry[c].to_tensor());
  }
  ValueList results;
  for (const std::vector<Tensor>& column : columns) results.emplace_back(stack(column, 0));
  return Value::tuple(std::move(results));
}

constexpr HigherOrder run_only(Value (*run)(Args)) { return {.seen_by = 0, .run = run, .fake = run}; }
constexpr HigherOrder kGradModeRules = run_only(run_with_grad_mode),
                      kAutocastRules = run_only(run_with_autocast),
                      kAssociativeScanRules = run_only(run_associative_scan);

constinit const OpDef kGradMode = {.schema =
                                       "higher_order::wrap_with_set_grad_enabled(bool enable_grad, Any "
                                       "wrapped_func, Any[] args, ...) -> Any",
                                   .higher_order = &kGradModeRules};
constinit const OpDef kAutocast = {.schema =
                                       "higher_order::wrap_with_autocast(str device_type, ScalarType? dtype, "
                                       "bool enabled, bool? cache_enabled, "
                                       "Any wrapped_func, Any[] args, ...) -> Any",
                                   .higher_order = &kAutocastRules};
constinit const OpDef kAssociativeScan = {
    .schema = "higher_order::associative_scan(Any combine_fn, Any[] xs, Any[] additional_inputs) -> Any[]",
    .higher_order = &kAssociativeScanRules};

}  // namespace

const OpDef& grad_mode_region_definition() { return kGradMode; }
const OpDef& autocast_region_definition() { return kAutocast; }
const OpDef& associative_scan_definition() { return kAssociativeScan; }

}  // namespace weft
