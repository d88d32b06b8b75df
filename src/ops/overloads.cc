#include "weft/ops/overloads.h"

#include <algorithm>

#include "ops/support/pointwise.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

enum class Numbers : uint8_t { kAreNoTensors, kMayBeTensors };

bool fits(const Type& type, const Value& value, Numbers numbers) {
  switch (type.kind()) {
    case Type::Kind::kOptional:
      return value.is_none() || fits(type.element(), value, numbers);
    case Type::Kind::kTensor:
      return value.is_tensor() || (numbers == Numbers::kMayBeTensors && value.is_number());
    case Type::Kind::kScalar:
      return value.is_number();
    case Type::Kind::kInt:
    case Type::Kind::kSymInt:
      return value.is_int();
    case Type::Kind::kFloat:
    case Type::Kind::kSymFloat:
      return value.is_double() || value.is_int();
    case Type::Kind::kBool:
    case Type::Kind::kSymBool:
      return value.is_bool();
    case Type::Kind::kComplex:
      return value.is_number();
    case Type::Kind::kString:
      return value.is_string();
    case Type::Kind::kScalarType:
      return value.kind() == Value::Kind::kDType;
    case Type::Kind::kDevice:
      return value.kind() == Value::Kind::kDevice;
    case Type::Kind::kLayout:
      return value.kind() == Value::Kind::kLayout;
    case Type::Kind::kMemoryFormat:
      return value.kind() == Value::Kind::kMemoryFormat;
    case Type::Kind::kGenerator:
      return value.kind() == Value::Kind::kGenerator;
    case Type::Kind::kList: {
      // A single number stands for a list of a fixed size.
      if (!value.is_sequence()) return type.list_size() && fits(type.element(), value, numbers);
      const ValueList& elements = value.elements();
      return std::all_of(elements.begin(), elements.end(),
                         [&](const Value& element) { return fits(type.element(), element, numbers); });
    }
    default:
      return true;  // Any, type variables: nothing to say against it
  }
}

bool check_types(const Operator& op, const ValueList& bound, Numbers numbers, std::string* why) {
  const std::vector<Argument>& wanted = op.schema().arguments;
  for (size_t i = 0; i < wanted.size(); ++i) {
    bool left_out = bound[i].is_none() && wanted[i].default_value && wanted[i].default_value->is_none();
    if (left_out || fits(wanted[i].type, bound[i], numbers)) continue;
    if (why)
      *why = fmt::format("argument '{}' must be {}, not {}", wanted[i].name, wanted[i].type.to_string(),
                         bound[i].kind_name());
    return false;
  }
  return true;
}

std::optional<ValueList> bind_checked(const Operator& op, Args args, const Kwargs& kwargs, Numbers numbers,
                                      std::string* why) {
  std::optional<ValueList> bound = place_arguments(op, args, kwargs, why);
  if (bound && !check_types(op, *bound, numbers, why)) return std::nullopt;
  return bound;
}

}  // namespace

std::optional<ValueList> place_arguments(const Operator& op, Args args, const Kwargs& kwargs,
                                         std::string* why) {
  const Operator::Info& info = op.info();
  const std::vector<Argument>& wanted = info.schema.arguments;
  auto refuse = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  size_t positional = 0;
  while (positional < wanted.size() && !wanted[positional].kwarg_only) ++positional;
  if (info.schema.is_vararg && wanted.back().kwarg_only) {
    // All that remain are the arguments of the operator that comes first, by their names.
    const Operator* inner = args.size() == 1 ? operator_in(args[0]) : nullptr;
    if (!inner) return refuse("it takes an operator, and that operator's arguments by name");
    std::optional<ValueList> rest = place_arguments(*inner, {}, kwargs, why);
    if (!rest) return std::nullopt;
    return ValueList{args[0], Value::list(std::move(*rest))};
  }
  if (info.schema.is_vararg && args.size() + 1 >= positional) {
    // The last argument of the schema is the list of all that remain.
    ValueList rest(args.begin() + static_cast<ptrdiff_t>(positional - 1), args.end());
    ValueList packed(args.begin(), args.begin() + static_cast<ptrdiff_t>(positional - 1));
    packed.push_back(Value::list(std::move(rest)));
    return packed;
  }
  if (args.size() > positional)
    return refuse(fmt::format("it takes {} positional arguments, not {}", positional, args.size()));
  ValueList bound(info.defaults);
  std::vector<bool> given(wanted.size());
  for (size_t i = 0; i < args.size(); ++i) {
    bound[i] = args[i];
    given[i] = true;
  }
  for (const auto& [name, value] : kwargs) {
    std::optional<size_t> at = info.schema.argument_index(name);
    if (!at) return refuse(fmt::format("it has no argument '{}'", name));
    if (given[*at]) return refuse(fmt::format("argument '{}' is given twice", name));
    bound[*at] = value;
    given[*at] = true;
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!given[i] && !wanted[i].default_value && !wanted[i].type.is_optional())
      return refuse(fmt::format("argument '{}' is missing", wanted[i].name));
  return bound;
}

bool is_of(const Type& type, const Value& value) { return fits(type, value, Numbers::kAreNoTensors); }

bool accepts(const Type& type, const Value& value) { return fits(type, value, Numbers::kMayBeTensors); }

std::optional<ValueList> bind_arguments(const Operator& op, Args args, const Kwargs& kwargs,
                                        std::string* why) {
  return bind_checked(op, args, kwargs, Numbers::kMayBeTensors, why);
}

BoundCall resolve_overload(std::string_view base, Args args, const Kwargs& kwargs) {
  std::vector<const Operator*> overloads = overloads_of(base);
  require(!overloads.empty(), "there is no operator '{}'", base);
  for (Numbers numbers : {Numbers::kAreNoTensors, Numbers::kMayBeTensors})
    for (const Operator* op : overloads)
      if (std::optional<ValueList> bound = bind_checked(*op, args, kwargs, numbers, nullptr))
        return {op, std::move(*bound)};
  std::string reasons;
  for (const Operator* op : overloads) {
    std::string why;
    bind_checked(*op, args, kwargs, Numbers::kMayBeTensors, &why);
    reasons += fmt::format("\n  {}: {}", op->schema_text(), why);
  }
  fail("no overload of {} takes these arguments:{}", base, reasons);
}

std::optional<BoundCall> call_on_numbers(const Operator& op, Args complete) {
  const Operator* numbers = op.relative(Operator::Relative::kForNumbers);
  if (!numbers || !numbers->has(Traits::kNumberOverload) || numbers->form() != op.form()) return std::nullopt;
  if (complete.size() < 2 || op.info().is_tensor[1] != 1 || !complete[1].is_number()) return std::nullopt;
  BoundCall call{numbers, ValueList(numbers->info().defaults)};
  for (size_t i = 0; i < complete.size(); ++i)
    if (std::optional<size_t> at = numbers->schema().argument_index(op.schema().arguments[i].name))
      call.args[*at] = complete[i];
  return call;
}

Value call_bound(BoundCall call) {
  // A symbolic number has no value to put into a tensor.
  const bool is_symbolic =
      call.args.size() > 1 && call.args[1].is_number() && call.args[1].to_scalar().is_symbolic();
  if (is_symbolic)
    if (std::optional<BoundCall> on_numbers = call_on_numbers(*call.op, call.args))
      call = std::move(*on_numbers);
  const Operator::Info& info = call.op->info();
  for (size_t i = 0; i < call.args.size(); ++i)
    if (info.is_tensor[i] == 1 && call.args[i].is_number()) call.args[i] = number_as_tensor(call.args[i]);
  return dispatch::redispatch(*call.op, call.args);
}

Tensor number_as_tensor(const Value& number) {
  return number.is_number() ? wrapped_number(number.to_scalar()) : number.to_tensor();
}

}  // namespace weft
