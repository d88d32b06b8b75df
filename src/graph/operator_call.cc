#include "graph/operator_call.h"

#include "weft/base/error.h"
#include "weft/ops/operator_value.h"
#include "weft/ops/overloads.h"

namespace weft {
namespace {

ValueList by_names(const Operator& from, Args args, const Operator& to) {
  ValueList placed(to.info().defaults);
  for (size_t i = 0; i < args.size(); ++i)
    if (std::optional<size_t> at = to.schema().argument_index(from.schema().arguments[i].name))
      placed[*at] = args[i];
  return placed;
}

// How an overload for numbers is written; null where it is none.
const Operator* overload_for_tensors(const Operator& op) {
  return op.has(Traits::kNumberOverload) && op.form() != OpForm::kOut
             ? op.relative(Operator::Relative::kForTensors)
             : nullptr;
}

}  // namespace

WrittenCall written_call(const Operator& op, Args complete) {
  if (const Operator* tensors = overload_for_tensors(op)) {
    ValueList placed = by_names(op, complete, *tensors);
    return written_as_called(*tensors, placed);
  }
  return written_as_called(op, complete);
}

WrittenCall written_as_called(const Operator& op, Args complete) {
  const Operator::Info& info = op.info();
  const std::vector<Argument>& arguments = info.schema.arguments;
  auto is_default = [&](size_t i) {
    bool may_miss = arguments[i].default_value.has_value() || arguments[i].type.is_optional();
    return may_miss && complete[i] == info.defaults[i];
  };
  WrittenCall call{&op, {}, {}};
  size_t positional = 0;
  while (positional < arguments.size() && !arguments[positional].kwarg_only) ++positional;
  if (info.schema.is_vararg && arguments.back().kwarg_only) {
    // The arguments of the operator that comes first are written by their names.
    const Operator* inner = operator_in(complete[0]);
    invariant(inner != nullptr, "{}: its first argument is no operator", op.name());
    call.args.push_back(complete[0]);
    const ValueList& rest = complete.back().elements();
    for (size_t i = 0; i < rest.size(); ++i)
      call.kwargs.emplace_back(inner->schema().arguments[i].name, rest[i]);
    return call;
  }
  if (info.schema.is_vararg) {
    // The elements of the last argument are written as arguments of their own.
    call.args.assign(complete.begin(), complete.end() - 1);
    const ValueList& rest = complete.back().elements();
    call.args.insert(call.args.end(), rest.begin(), rest.end());
    return call;
  }
  size_t needed = positional;
  while (needed > 0 && is_default(needed - 1)) --needed;
  call.args.assign(complete.begin(), complete.begin() + static_cast<ptrdiff_t>(needed));
  for (size_t i = positional; i < arguments.size(); ++i)
    if (!is_default(i)) call.kwargs.emplace_back(arguments[i].name, complete[i]);
  return call;
}

CompleteCall complete_call(const Operator& op, Args args, const Kwargs& kwargs) {
  std::string why;
  std::optional<ValueList> placed = place_arguments(op, args, kwargs, &why);
  require(placed.has_value(), "{}: {}; the schema is {}", op.name(), why, op.schema_text());
  return with_numbers_placed(op, std::move(*placed));
}

CompleteCall with_numbers_placed(const Operator& op, ValueList complete) {
  const Operator::Info& info = op.info();
  for (size_t i = 0; i < complete.size(); ++i) {
    if (info.is_tensor[i] != 1 || !complete[i].is_number()) continue;
    if (i == 1)
      if (std::optional<BoundCall> numbers = call_on_numbers(op, complete))
        return {numbers->op, std::move(numbers->args)};
    complete[i] = number_as_tensor(complete[i]);
  }
  return {&op, std::move(complete)};
}

std::optional<CompleteCall> call_on_tensors(const Operator& op, Args complete) {
  const Operator* tensors = overload_for_tensors(op);
  if (!tensors) return std::nullopt;
  CompleteCall call{tensors, by_names(op, complete, *tensors)};
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (tensors->info().is_tensor[i] != 1 || call.args[i].is_tensor()) continue;
    // A number that only a run tells has no tensor.
    if (!call.args[i].is_number() || call.args[i].to_scalar().is_symbolic()) return std::nullopt;
    call.args[i] = number_as_tensor(call.args[i]);
  }
  return call;
}

}  // namespace weft
