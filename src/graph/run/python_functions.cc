// Python's operators on Values of any kind: tensors, numbers, symbolic numbers, containers.
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/core/callable.h"
#include "weft/core/future.h"
#include "weft/core/struct.h"
#include "weft/dispatch/layers.h"
#include "weft/func/func.h"
#include "weft/graph/node.h"
#include "weft/ops/functions.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

void check_count(std::string_view name, Args args, size_t count) {
  require(args.size() == count, "{} takes {} arguments, but got {}", name, count, args.size());
}

bool any_tensor(Args args) {
  return std::any_of(args.begin(), args.end(), [](const Value& value) { return value.is_tensor(); });
}
bool all_int(Args args) {
  return std::all_of(args.begin(), args.end(),
                     [](const Value& value) { return value.is_int() || value.is_bool(); });
}

Tensor as_tensor(const Value& value) {
  if (value.is_tensor()) return value.to_tensor();
  return scalar_tensor(value.to_scalar());
}

// A function of two numbers or tensors, from what it is for each kind.
template <typename OnTensors, typename OnInts, typename OnReals>
Value arithmetic(std::string_view name, Args args, OnTensors tensors, OnInts ints, OnReals reals) {
  check_count(name, args, 2);
  if (any_tensor(args)) return tensors(args[0], args[1]);
  for (const Value& value : args)
    require(value.is_number(), "{}: expected numbers or tensors, but got {}", name, value.kind_name());
  if (all_int(args)) return ints(args[0].to_sym_int(), args[1].to_sym_int());
  return reals(args[0].to_sym_float(), args[1].to_sym_float());
}

// Tensors with a number on either side go by the operator for that side.
template <typename Both, typename Number>
Value with_number(const Value& a, const Value& b, Both both, Number number) {
  if (a.is_tensor() && !b.is_tensor()) return number(a.to_tensor(), b.to_scalar());
  return both(as_tensor(a), as_tensor(b));
}

Value add_values(Args args) {
  if (args.size() == 2 && args[0].is_sequence() && args[1].kind() == args[0].kind()) {
    ValueList joined = args[0].elements();
    joined.insert(joined.end(), args[1].elements().begin(), args[1].elements().end());
    return args[0].is_list() ? Value::list(std::move(joined)) : Value::tuple(std::move(joined));
  }
  return arithmetic(
      "operator.add", args,
      [](const Value& a, const Value& b) {
        return with_number(
            a, b, [](const Tensor& x, const Tensor& y) { return add(x, y); },
            [](const Tensor& x, const Scalar& y) { return add(x, y); });
      },
      [](const SymInt& a, const SymInt& b) { return Value(a + b); },
      [](const SymFloat& a, const SymFloat& b) { return Value(a + b); });
}
Value sub_values(Args args) {
  return arithmetic(
      "operator.sub", args,
      [](const Value& a, const Value& b) {
        return with_number(
            a, b, [](const Tensor& x, const Tensor& y) { return sub(x, y); },
            [](const Tensor& x, const Scalar& y) { return sub(x, y); });
      },
      [](const SymInt& a, const SymInt& b) { return Value(a - b); },
      [](const SymFloat& a, const SymFloat& b) { return Value(a - b); });
}
Value mul_values(Args args) {
  return arithmetic(
      "operator.mul", args,
      [](const Value& a, const Value& b) {
        return with_number(
            a, b, [](const Tensor& x, const Tensor& y) { return mul(x, y); },
            [](const Tensor& x, const Scalar& y) { return mul(x, y); });
      },
      [](const SymInt& a, const SymInt& b) { return Value(a * b); },
      [](const SymFloat& a, const SymFloat& b) { return Value(a * b); });
}
Value truediv_values(Args args) {
  return arithmetic(
      "operator.truediv", args,
      [](const Value& a, const Value& b) {
        return with_number(
            a, b, [](const Tensor& x, const Tensor& y) { return div(x, y); },
            [](const Tensor& x, const Scalar& y) { return div(x, y); });
      },
      [](const SymInt& a, const SymInt& b) { return Value(true_div(a, b)); },
      [](const SymFloat& a, const SymFloat& b) { return Value(a / b); });
}

// --- comparisons -----------------------------------------------------------------------------------------

template <typename OnTensors, typename OnNumbers>
Value compare(std::string_view name, Args args, OnTensors tensors, OnNumbers numbers) {
  return arithmetic(
      name, args, [&](const Value& a, const Value& b) { return Value(tensors(as_tensor(a), as_tensor(b))); },
      [&](const SymInt& a, const SymInt& b) { return Value(numbers(a, b)); },
      [&](const SymFloat& a, const SymFloat& b) { return Value(numbers(a, b)); });
}

Value eq_values(Args args) {
  check_count("operator.eq", args, 2);
  bool numbers = (args[0].is_number() || args[0].is_tensor()) && (args[1].is_number() || args[1].is_tensor());
  if (!numbers) return args[0] == args[1];
  return compare(
      "operator.eq", args, [](const Tensor& x, const Tensor& y) { return eq(x, y); },
      [](const auto& a, const auto& b) { return a == b; });
}
Value ne_values(Args args) {
  check_count("operator.ne", args, 2);
  bool numbers = (args[0].is_number() || args[0].is_tensor()) && (args[1].is_number() || args[1].is_tensor());
  if (!numbers) return !(args[0] == args[1]);
  return compare(
      "operator.ne", args, [](const Tensor& x, const Tensor& y) { return ne(x, y); },
      [](const auto& a, const auto& b) { return a != b; });
}
Value lt_values(Args args) {
  return compare(
      "operator.lt", args, [](const Tensor& x, const Tensor& y) { return lt(x, y); },
      [](const auto& a, const auto& b) { return a < b; });
}
Value le_values(Args args) {
  return compare(
      "operator.le", args, [](const Tensor& x, const Tensor& y) { return le(x, y); },
      [](const auto& a, const auto& b) { return a <= b; });
}
Value gt_values(Args args) {
  return compare(
      "operator.gt", args, [](const Tensor& x, const Tensor& y) { return gt(x, y); },
      [](const auto& a, const auto& b) { return a > b; });
}
Value ge_values(Args args) {
  return compare(
      "operator.ge", args, [](const Tensor& x, const Tensor& y) { return ge(x, y); },
      [](const auto& a, const auto& b) { return a >= b; });
}

// --- the rest --------------------------------------------------------------------------------------------

Value floordiv_values(Args args) {
  check_count("operator.floordiv", args, 2);
  require(all_int(args), "operator.floordiv: expected integers, but got {} and {}", args[0].kind_name(),
          args[1].kind_name());
  return floor_div(args[0].to_sym_int(), args[1].to_sym_int());
}
Value mod_values(Args args) {
  check_count("operator.mod", args, 2);
  require(all_int(args), "operator.mod: expected integers, but got {} and {}", args[0].kind_name(),
          args[1].kind_name());
  return mod(args[0].to_sym_int(), args[1].to_sym_int());
}

Value neg_value(Args args) {
  check_count("operator.neg", args, 1);
  if (args[0].is_tensor()) return neg(args[0].to_tensor());
  if (all_int(args)) return -args[0].to_sym_int();
  return -args[0].to_sym_float();
}

Value getitem(Args args) {
  check_count("operator.getitem", args, 2);
  const Value &from = args[0], &key = args[1];
  if (from.is_dict()) return from.to_dict().at(key);
  if (auto* record = from.object_as<StructObject>())
    return key.is_string() ? record->field(key.to_string_view())
                           : getitem(ValueList{Value::tuple(record->fields()), key});
  if (from.is_tensor()) return select(from.to_tensor(), 0, key.to_sym_int());
  require(from.is_sequence(), "operator.getitem: {} has no items", from.kind_name());
  const ValueList& elements = from.elements();
  auto count = static_cast<int64_t>(elements.size());
  int64_t at = key.to_int();
  require(at >= -count && at < count, "operator.getitem: index {} is out of range for {} elements", at,
          count);
  return elements[static_cast<size_t>(at < 0 ? at + count : at)];
}

// --- symbolic numbers ------------------------------------------------------------------------------------

Value pow_values(Args args) {
  return arithmetic(
      "operator.pow", args,
      [](const Value& a, const Value& b) {
        return with_number(
            a, b, [](const Tensor& x, const Tensor& y) { return pow(x, y); },
            [](const Tensor& x, const Scalar& y) { return pow(x, y); });
      },
      [](const SymInt& a, const SymInt& b) { return Value(pow(a, b)); },
      [](const SymFloat& a, const SymFloat& b) { return Value(pow(a, b)); });
}
Value sym_min(Args args) {
  check_count("torch.sym_min", args, 2);
  if (all_int(args)) return min(args[0].to_sym_int(), args[1].to_sym_int());
  return min(args[0].to_sym_float(), args[1].to_sym_float());
}
Value sym_max(Args args) {
  check_count("torch.sym_max", args, 2);
  if (all_int(args)) return max(args[0].to_sym_int(), args[1].to_sym_int());
  return max(args[0].to_sym_float(), args[1].to_sym_float());
}
Value sym_ite_values(Args args) {
  check_count("torch.sym_ite", args, 3);
  return sym_ite(args[0].to_sym_bool(), args[1].to_sym_int(), args[2].to_sym_int());
}
Value sym_not_value(Args args) {
  check_count("torch.sym_not", args, 1);
  return !args[0].to_sym_bool();
}
Value sym_float_value(Args args) {
  check_count("torch.sym_float", args, 1);
  return args[0].to_sym_float();
}
template <SymInt (*round_to)(const SymFloat&)>
Value rounded(Args args) {
  check_count("math.floor", args, 1);
  return round_to(args[0].to_sym_float());
}
Value sym_sqrt_value(Args args) {
  check_count("torch._sym_sqrt", args, 1);
  return sqrt(args[0].to_sym_float());
}
Value and_values(Args args) {
  check_count("operator.and_", args, 2);
  if (any_tensor(args)) return bitwise_and(as_tensor(args[0]), as_tensor(args[1]));
  return args[0].to_sym_bool() & args[1].to_sym_bool();
}
Value or_values(Args args) {
  check_count("operator.or_", args, 2);
  if (any_tensor(args)) return bitwise_or(as_tensor(args[0]), as_tensor(args[1]));
  return args[0].to_sym_bool() | args[1].to_sym_bool();
}

// --- what a program does beside computing ----------------------------------------------------------------

Value set_grad_enabled(Args args) {
  check_count("torch._C._set_grad_enabled", args, 1);
  set_grad_mode(args[0].to_bool());
  return {};
}

Value assert_value(Args args) {
  check_count("torch._assert", args, 2);
  bool holds = args[0].is_tensor() ? args[0].to_tensor().item().to_bool() : args[0].to_bool();
  const bool has_message = args[1].is_string() && !args[1].to_string_view().empty();
  if (!holds)
    throw AssertionError(has_message ? std::string(args[1].to_string_view())
                                     : "an assertion of the program failed");
  return {};
}

Value is_value(Args args) {
  check_count("operator.is_", args, 2);
  return args[0].kind() == args[1].kind() && args[0] == args[1];
}

// A function that travels as a Value, with its arguments.
Value call_value(Args args) {
  require(!args.empty() && callable_in(args[0]), "weft.call: the first argument must be a function");
  return callable_in(args[0])->call(args.subspan(1));
}

Value fork_value(Args args) {
  require(!args.empty() && callable_in(args[0]), "weft.fork: the first argument must be a function");
  return Value(
      Ref<ValueObject>(make_ref<FutureObject>([&] { return callable_in(args[0])->call(args.subspan(1)); })));
}

Value wait_value(Args args) {
  check_count("weft.wait", args, 1);
  const auto* future = args[0].object_as<FutureObject>();
  require(future != nullptr, "weft.wait: expected a future, but got {}", args[0].kind_name());
  return future->wait();
}

// --- vmap ------------------------------------------------------------------------------------------------

// A graph of PyTorch's before dispatch begins and ends a level by calls. Run one by one they would leave a
// level open should the graph fail: whoever runs such a graph makes weft.vmap of each region first.
Value part_of_a_region(Args) {
  unsupported(
      "a call that begins or ends a level of vmap runs as part of its region only; "
      "ExportedProgram::module() makes calls of weft.vmap of regions");
}
Value load_decompositions(Args) { return {}; }

int64_t mapped_dim(const Value& dim) { return dim.is_none() ? func::kNoDim : dim.to_int(); }

// (function, in_dims, out_dims, randomness, operands...): operands that are no tensors are the same for all.
Value vmap_values(Args args) {
  require(args.size() > 4 && callable_in(args[0]) && args[1].elements().size() == args.size() - 4,
          "weft.vmap: expected a function, a dim for each operand and each result, and operands");
  const Args operands = args.subspan(4);
  func::VmapOptions options;
  for (const Value& dim : args[2].elements()) options.out_dims.push_back(mapped_dim(dim));
  const std::string_view randomness = args[3].to_string_view();
  options.randomness = randomness == "same"        ? func::Randomness::kSame
                       : randomness == "different" ? func::Randomness::kDifferent
                                                   : func::Randomness::kError;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_tensor()) continue;
    tensors.push_back(operands[i].to_tensor());
    options.in_dims.push_back(mapped_dim(args[1].elements()[i]));
  }
  const func::Fn body = [&](const std::vector<Tensor>& mapped) {
    ValueList inputs(operands.begin(), operands.end());
    size_t next = 0;
    for (Value& input : inputs)
      if (input.is_tensor()) input = mapped[next++];
    std::vector<Tensor> results;
    const Value given = callable_in(args[0])->call(inputs);
    for (const Value& result : given.elements()) results.push_back(result.to_tensor());
    return results;
  };
  ValueList results;
  for (const Tensor& result : func::vmap_of(body, options)(tensors)) results.emplace_back(result);
  return Value::tuple(std::move(results));
}

constexpr PythonFunction kFunctions[] = {
    {"operator.add", "+", add_values},
    {"operator.sub", "-", sub_values},
    {"operator.mul", "*", mul_values},
    {"operator.truediv", "/", truediv_values},
    {"operator.floordiv", "//", floordiv_values},
    {"operator.mod", "%", mod_values},
    {"operator.eq", "==", eq_values},
    {"operator.ne", "!=", ne_values},
    {"operator.lt", "<", lt_values},
    {"operator.le", "<=", le_values},
    {"operator.gt", ">", gt_values},
    {"operator.ge", ">=", ge_values},
    {"operator.neg", "-", neg_value},
    {"operator.getitem", "[]", getitem},
    {"operator.is_", "", is_value},
    {"operator.pow", "**", pow_values},
    {"operator.and_", "&", and_values},
    {"operator.or_", "|", or_values},
    {"torch.sym_min", "", sym_min},
    {"torch.sym_max", "", sym_max},
    {"torch.sym_ite", "", sym_ite_values},
    {"torch.sym_not", "", sym_not_value},
    {"torch.sym_float", "", sym_float_value},
    {"torch._sym_sqrt", "", sym_sqrt_value},
    {"math.floor", "", rounded<sym_floor>},
    {"math.ceil", "", rounded<sym_ceil>},
    {"math.trunc", "", rounded<sym_trunc>},
    {"round", "", rounded<sym_round>},
    {"torch._C._set_grad_enabled", "", set_grad_enabled, true},
    {"torch._assert", "", assert_value, true},
    {"weft.call", "", call_value, true},  // what the function does is not known
    {"weft.fork", "", fork_value, true},
    {"weft.wait", "", wait_value, true},
    {"weft.vmap", "", vmap_values, true},
    {"torch._functorch.predispatch.lazy_load_decompositions", "", load_decompositions, true},
    {"torch._functorch.predispatch._vmap_increment_nesting", "", part_of_a_region, true},
    {"torch._functorch.predispatch._vmap_decrement_nesting", "", part_of_a_region, true},
    {"torch._functorch.predispatch._add_batch_dim", "", part_of_a_region, true},
    {"torch._functorch.predispatch._remove_batch_dim", "", part_of_a_region, true},
};

}  // namespace

const PythonFunction& python_function(std::string_view name) {
  std::string known;
  for (const PythonFunction& function : kFunctions) {
    if (function.name == name) return function;
    known += (known.empty() ? "" : ", ") + std::string(function.name);
  }
  fail("there is no function '{}'; there are {}", name, known);
}

}  // namespace weft
