#pragma once

#include <utility>

#include "weft/core/callable.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/operator.h"

// What the rules of the operators over functions share: what they are (control_flow_operators.cc), their
// gradients (control_flow_gradients.cc), and their batching rules (control_flow_batching.cc).

namespace weft {

const Operator& cond_operator();
const Operator& map_operator();
const Operator& scan_operator();
const Operator& while_operator();
const Operator& stacked_while_operator();  // a while_loop that gives what each iteration gave, stacked
const Operator& out_dtype_operator();
const OpDef& out_dtype_definition();
// An operator that writes, as one that gives what it would have written: (its results..., the new values of
// the written arguments...). The first is None for an operator without results.
const Operator& auto_functionalized_operator();
const OpDef& auto_functionalized_definition();

// The call as a custom function whose backward is a call over pullbacks.
Value differentiate_cond(Args args);
Value differentiate_map(Args args);
Value differentiate_scan(Args args);
Value differentiate_while(Args args);

Value vmap_cond(Level& level, const Operator& op, Args args);
Value vmap_map(Level& level, const Operator& op, Args args);
Value vmap_scan(Level& level, const Operator& op, Args args);
Value vmap_while(Level& level, const Operator& op, Args args);  // of both kinds

namespace flow {

inline constexpr uint32_t kSeenBy = layer::kLevels | layer::kFunctionalizeUpper | layer::kRecorderUpper |
                                    layer::kAutograd | layer::kFunctionalizeLower | layer::kRecorderLower |
                                    layer::kFake;

Callable& function_at(Args args, size_t i);
inline ValueList list_at(Args args, size_t i) { return args[i].elements(); }
inline Value as_tuple(const Value& value) {
  return value.is_sequence() ? Value::tuple(value.elements()) : Value::tuple({value});
}
inline Value callable_value(ValueFunction f) { return Value(Ref<ValueObject>(make_closure(std::move(f)))); }

ValueList joined(ValueList a, const ValueList& b);
// `count` entries from `begin` on.
ValueList part(Args values, size_t begin, size_t count);
// Entry i of dim 0 of each.
ValueList slices(const ValueList& xs, int64_t i);

// The tensors among leaves, and the leaves again with others instead.
std::vector<Tensor> tensors_among(const ValueList& leaves);
ValueList with_tensors(ValueList leaves, std::span<const Tensor> tensors);

// Results of functions, as they are or without data: errors where the two of a cond differ in type, where a
// value that is carried changes its type, and where the condition of a while_loop is not one bool.
void check_branches(const ValueList& on_true, const ValueList& on_false);
void check_carry(std::string_view what, const ValueList& carried, const ValueList& next);
void check_condition(const ValueList& results);

// A number of this type that only a run of the program tells: a symbol of the fake mode.
Value unknown_number(const char* what, const Value& like);
// Values that are others in every iteration: their numbers are such symbols.
ValueList varying(const char* what, ValueList values);

// While it lives, what functions give without data is known, from the run that captured them: the rules for
// tensors without data do not run them again.
class KnownResults {
 public:
  KnownResults();
  ~KnownResults();
  KnownResults(const KnownResults&) = delete;
  void add(const Callable& function, ValueList results) {
    entries_.emplace_back(&function, std::move(results));
  }
  static const ValueList* find(const Callable& function);

 private:
  const KnownResults* outer_;
  std::vector<std::pair<const Callable*, ValueList>> entries_;
};

// Whether gradients are recorded, and one of the arguments has one.
bool wants_gradient(Args args);

}  // namespace flow
}  // namespace weft
