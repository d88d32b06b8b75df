// Python's arithmetic in the script view. Sizes are tensors there, so that one operator serves for both.
#include "graph/script/lowering.h"

namespace weft {

using Kind = ScriptType::Kind;

namespace {

// An operator that a function of Python is.
struct Form {
  std::string_view name, overload;
  bool is_plain = false;    // a number stays a number, otherwise it becomes a tensor
  bool is_swapped = false;  // the operands are swapped
  bool of_inverse = false;  // the tensor is replaced by one over it
};

enum class Gives : uint8_t { kSame, kReal, kBool };

// For two tensors, and for a tensor with a number on either side.
struct Row {
  std::string_view function;
  Form tensors, number_right, number_left;
  Gives gives = Gives::kSame;
};

constexpr Row comparison(std::string_view function, std::string_view name, std::string_view mirrored) {
  return {function, {name, "Tensor"}, {name, "Scalar", true}, {mirrored, "Scalar", true, true}, Gives::kBool};
}
constexpr Row symmetric(std::string_view function, std::string_view name) {
  return {function, {name, "Tensor"}, {name, "Tensor"}, {name, "Tensor", false, true}};
}
// Numbers become tensors wherever they are.
constexpr Row on_tensors(std::string_view function, std::string_view name, std::string_view overload = "",
                         Gives gives = Gives::kSame) {
  return {function, {name, overload}, {name, overload}, {name, overload}, gives};
}

constexpr Row kRows[] = {
    symmetric("operator.add", "add"),
    {"operator.sub", {"sub", "Tensor"}, {"sub", "Tensor"}, {"rsub", "Scalar", true, true}},
    symmetric("operator.mul", "mul"),
    {"operator.truediv",
     {"div", "Tensor"},
     {"div", "Tensor"},
     {"mul", "Tensor", false, true, true},
     Gives::kReal},
    on_tensors("operator.floordiv", "floor_divide"),
    {"operator.mod",
     {"remainder", "Tensor"},
     {"remainder", "Scalar", true},
     {"remainder", "Scalar_Tensor", true}},
    {"operator.pow", {"pow", "Tensor_Tensor"}, {"pow", "Tensor_Scalar", true}, {"pow", "Scalar", true}},
    comparison("operator.eq", "eq", "eq"),
    comparison("operator.ne", "ne", "ne"),
    comparison("operator.lt", "lt", "gt"),
    comparison("operator.le", "le", "ge"),
    comparison("operator.gt", "gt", "lt"),
    comparison("operator.ge", "ge", "le"),
    comparison("operator.and_", "__and__", "__and__"),
    comparison("operator.or_", "__or__", "__or__"),
    on_tensors("operator.neg", "neg"),
    on_tensors("torch.sym_min", "minimum"),
    on_tensors("torch.sym_max", "maximum"),
    on_tensors("torch.sym_ite", "where", "self"),
    on_tensors("torch.sym_not", "logical_not", "", Gives::kBool),
    on_tensors("torch._sym_sqrt", "sqrt", "", Gives::kReal),
    on_tensors("math.floor", "floor"),
    on_tensors("math.ceil", "ceil"),
    on_tensors("math.trunc", "trunc"),
    on_tensors("round", "round"),
};

const Row* find_row(std::string_view function) {
  for (const Row& row : kRows)
    if (row.function == function) return &row;
  return nullptr;
}

bool is_number_tensor(const ScriptType& type) {
  return !type.is(Kind::kTensor) || (type.sizes && type.sizes->empty());
}

// Sizes are tensors of integers; their quotient is of the default type. Nothing is known of what comes from
// other tensors, unless the node notes it.
ScriptType type_of_result(const Node& node, Gives gives, const ScriptValue& first, const ScriptValue& last) {
  const Value& noted = noted_value(node);
  if (noted.is_tensor()) return ScriptType::of(noted);
  if (!is_number_tensor(first.type) || !is_number_tensor(last.type)) return {};
  if (gives == Gives::kBool || noted.is_bool()) return number_tensor_type(kBool);
  return number_tensor_type(gives == Gives::kReal || noted.is_double() ? kFloat32 : kInt64);
}

const Form& form_for(const Row& row, const ValueList& args) {
  if (args.size() != 2) return row.tensors;
  if (args[0].is_number() && !args[1].is_number()) return row.number_left;
  return args[1].is_number() && !args[0].is_number() ? row.number_right : row.tensors;
}

}  // namespace

ScriptValue* ScriptLowering::operand(const Value& value, bool is_plain) {
  static const Type kTensor(Type::Kind::kTensor);
  return value.is_number() && is_plain ? builder_.constant(value) : argument(value, &kTensor);
}

bool ScriptLowering::lower_arithmetic(const Node& node) {
  const PythonFunction* function = node.target().function();
  const ValueList& args = node.args();
  if (!function || args.empty() || !node.kwargs().empty()) return false;
  for (const Value& arg : args)
    if (arg.is_sequence() || arg.is_dict()) return false;  // containers know + too
  static const PythonFunction& to_float = python_function("torch.sym_float");
  if (function == &to_float) {
    define(node, {builder_.aten("Float", {operand(args[0], false)}, {.kind = Kind::kFloat})});
    return true;
  }
  const Row* row = find_row(function->name);
  if (!row) return false;
  const Form& form = form_for(*row, args);
  ValueList operands = args;
  if (form.is_swapped) std::swap(operands[0], operands[1]);
  Inputs inputs;
  for (const Value& value : operands) {
    inputs.push_back(operand(value, form.is_plain));
    if (!form.of_inverse || inputs.size() != 1) continue;
    ScriptType inverse = type_of_result(node, row->gives, *inputs[0], *inputs[0]);
    inputs[0] = builder_.aten("reciprocal", {inputs[0]}, std::move(inverse));
  }
  ScriptType type = type_of_result(node, row->gives, *inputs.front(), *inputs.back());
  // What the operator takes beyond the operands has its default.
  std::string kind = "aten::" + std::string(form.name);
  const Operator* op =
      find_operator(form.overload.empty() ? kind : fmt::format("{}.{}", kind, form.overload));
  for (size_t i = inputs.size(); op && i < op->schema().arguments.size(); ++i)
    inputs.push_back(argument(op->info().defaults[i], &op->schema().arguments[i].type));
  ScriptNode& line = builder_.line(std::move(kind), std::move(inputs));
  line.op = op;
  define(node, {builder_.result(line, std::move(type))});
  return true;
}

}  // namespace weft
