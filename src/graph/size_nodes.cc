#include "graph/size_nodes.h"

#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/sym/shape_env.h"

namespace weft {

Value symbolic_value(const sym::Expr* expr) {
  switch (expr->type()) {
    case sym::Type::kInt:
      return SymInt::from_expr(expr);
    case sym::Type::kBool:
      return SymBool::from_expr(expr);
    case sym::Type::kFloat:
      return SymFloat::from_expr(expr);
  }
  __builtin_unreachable();
}

void SizeNodes::offer(const Tensor& tensor, Node& node) {
  if (!tensor.is_symbolic()) return;
  auto note = [&](const SymInt& number, Quantity quantity, size_t dim) {
    if (number.is_symbolic() && number.expr()->is_symbol())
      sources_.try_emplace(number.expr(), Source{&node, quantity, static_cast<int64_t>(dim)});
  };
  SymIntSpan sizes = tensor.impl()->sizes(), strides = tensor.impl()->strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    note(sizes[d], Quantity::kSize, d);
    if (!sizes[d].is_symbolic()) continue;
    const sym::Expr* size = sizes[d].expr();
    if (size->kind() == sym::Kind::kAdd && size->args().size() == 1 && size->arg(0)->is_symbol())
      solved_.try_emplace(size->arg(0), Solved{{&node, Quantity::kSize, static_cast<int64_t>(d)},
                                               size,
                                               size->coefficients()[0],
                                               size->value()});
  }
  for (size_t d = 0; d < strides.size(); ++d) note(strides[d], Quantity::kStride, d);
  note(tensor.impl()->storage_offset(), Quantity::kOffset, 0);
}

// Named as PyTorch names them.
Node& SizeNodes::read(const Source& source) {
  // Before a call gives the tensor another geometry.
  auto change = changes_.find(source.tensor);
  Graph::InsertScope insertion(graph_, change == changes_.end() ? graph_.insertion_point() : change->second);
  Node* number = nullptr;
  const Value tensor = value_of(*source.tensor);
  switch (source.quantity) {
    case Quantity::kSize:
      number = &graph_.call_function("aten::sym_size.int", {tensor, source.dim});
      number->rename("sym_size_int");
      break;
    case Quantity::kStride:
      number = &graph_.call_function("aten::sym_stride.int", {tensor, source.dim});
      number->rename("sym_stride_int");
      break;
    case Quantity::kOffset:
      number = &graph_.call_function("aten::sym_storage_offset", {tensor});
      number->rename("sym_storage_offset_default");
      break;
  }
  return *number;
}

Node& SizeNodes::solve(const Solved& equation) {
  auto known = nodes_.find(equation.size);
  if (known == nodes_.end()) {
    Node& size = read(equation.source);
    if (notes_ == Notes::kValues) size.meta().value = symbolic_value(equation.size);
    known = nodes_.emplace(equation.size, &size).first;
  }
  Value symbol = value_of(*known->second);
  if (equation.shift != 0) symbol = call("operator.sub", {symbol, equation.shift});
  if (equation.scale != 1) symbol = call("operator.floordiv", {symbol, equation.scale});
  return *node_in(symbol);
}

Value SizeNodes::value_for(const Value& number) {
  switch (number.kind()) {
    case Value::Kind::kSymInt: {
      SymInt value = number.to_sym_int();
      return value.is_symbolic() ? node_for(value.expr()) : number;
    }
    case Value::Kind::kSymFloat: {
      SymFloat value = number.to_sym_float();
      return value.is_symbolic() ? node_for(value.expr()) : number;
    }
    case Value::Kind::kSymBool: {
      SymBool value = number.to_sym_bool();
      return value.is_symbolic() ? node_for(value.expr()) : number;
    }
    default:
      return number;
  }
}

Value SizeNodes::node_for(const sym::Expr* expr) {
  if (expr->is_constant()) {
    switch (expr->type()) {
      case sym::Type::kInt:
        return expr->value();
      case sym::Type::kBool:
        return expr->value() != 0;
      case sym::Type::kFloat:
        return expr->float_value();
    }
  }
  auto known = nodes_.find(expr);
  if (known != nodes_.end()) return value_of(*known->second);
  Node& made = make(expr);
  if (notes_ == Notes::kValues) made.meta().value = symbolic_value(expr);
  nodes_.emplace(expr, &made);
  return value_of(made);
}

Value SizeNodes::call(std::string_view function, ValueList args) {
  Node& node = graph_.call_function(function, std::move(args));
  if (notes_ == Notes::kValues) note_result(node);
  return value_of(node);
}

// Of a step on the way to an expression, too, which no expression of its own stands for.
void SizeNodes::note_result(Node& node) {
  ValueList values;
  for (const Value& arg : node.args()) {
    const Node* input = node_in(arg);
    if (input && !input->meta_or_null()) return;
    values.push_back(input ? input->meta_or_null()->value : arg);
    if (!values.back().is_number()) return;
  }
  node.meta().value = node.target().function()->run(values);
}

// In the order that keeps the constant last.
Value SizeNodes::sum(std::span<const Term> terms, int64_t constant) {
  Value sum;
  for (const auto& [factor, coefficient] : terms) {
    Value term = node_for(factor);
    if (coefficient == -1 && !sum.is_none()) {
      sum = call("operator.sub", {sum, term});
      continue;
    }
    if (coefficient != 1) term = call("operator.mul", {term, coefficient});
    sum = sum.is_none() ? term : call("operator.add", {sum, term});
  }
  if (constant < 0) return call("operator.sub", {sum, -constant});
  if (constant > 0) return call("operator.add", {sum, constant});
  return sum;
}

// value() + the sum of coefficients()[i] * args()[i]
Value SizeNodes::polynomial(const sym::Expr* expr) {
  std::vector<Term> terms;
  for (size_t i = 0; i < expr->args().size(); ++i) terms.push_back({expr->arg(i), expr->coefficients()[i]});
  return sum(terms, expr->value());
}

// Of floats two values are compared; of integers one with 0, which is written with what is subtracted on the
// other side: s > 4 for 4 - s < 0.
Value SizeNodes::comparison(const sym::Expr* expr, std::string_view function, std::string_view mirrored) {
  const sym::Expr* difference = expr->arg(0);
  if (expr->args().size() == 2) return call(function, {node_for(difference), node_for(expr->arg(1))});
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();  // has no negative
  const std::span<const int64_t> coefficients = difference->coefficients();
  if (difference->kind() != sym::Kind::kAdd || nodes_.contains(difference) ||
      difference->value() == kLowest ||
      std::find(coefficients.begin(), coefficients.end(), kLowest) != coefficients.end())
    return call(function, {node_for(difference), 0});
  const int64_t constant = difference->value();
  std::vector<Term> left, right;
  for (size_t i = 0; i < coefficients.size(); ++i) {
    if (coefficients[i] > 0) left.push_back({difference->arg(i), coefficients[i]});
    else right.push_back({difference->arg(i), -coefficients[i]});
  }
  if (left.empty()) return call(mirrored, {sum(right, 0), constant});
  if (right.empty()) return call(function, {sum(left, 0), -constant});
  Value smaller = sum(left, std::max<int64_t>(constant, 0));
  return call(function, {std::move(smaller), sum(right, std::max<int64_t>(-constant, 0))});
}

Value SizeNodes::product(const sym::Expr* expr) {
  Value result;
  for (size_t i = 0; i < expr->args().size(); ++i) {
    Value factor = node_for(expr->arg(i));
    int64_t power = expr->coefficients()[i];
    if (power != 1) factor = call("operator.pow", {factor, power});
    result = result.is_none() ? factor : call("operator.mul", {result, factor});
  }
  return result;
}

namespace {

// A kind of expression as a call of a function on its arguments: all at once, or two at a time.
struct Application {
  std::string_view function;
  bool is_folded = false;
};
std::optional<Application> application_of(sym::Kind kind) {
  switch (kind) {
    case sym::Kind::kFloorDiv:
      return Application{"operator.floordiv"};
    case sym::Kind::kMod:
      return Application{"operator.mod"};
    case sym::Kind::kPow:
    case sym::Kind::kFloatPow:
      return Application{"operator.pow"};
    case sym::Kind::kWhere:
      return Application{"torch.sym_ite"};
    case sym::Kind::kFloorToInt:
      return Application{"math.floor"};
    case sym::Kind::kCeilToInt:
      return Application{"math.ceil"};
    case sym::Kind::kTruncToInt:
      return Application{"math.trunc"};
    case sym::Kind::kRoundToInt:
      return Application{"round"};
    case sym::Kind::kNot:
      return Application{"torch.sym_not"};
    case sym::Kind::kToFloat:
      return Application{"torch.sym_float"};
    case sym::Kind::kIntTrueDiv:
    case sym::Kind::kFloatTrueDiv:
      return Application{"operator.truediv"};
    case sym::Kind::kSqrt:
      return Application{"torch._sym_sqrt"};
    case sym::Kind::kMin:
    case sym::Kind::kFloatMin:
      return Application{"torch.sym_min", true};
    case sym::Kind::kMax:
    case sym::Kind::kFloatMax:
      return Application{"torch.sym_max", true};
    case sym::Kind::kAnd:
      return Application{"operator.and_", true};
    case sym::Kind::kOr:
      return Application{"operator.or_", true};
    case sym::Kind::kFloatAdd:
      return Application{"operator.add", true};
    case sym::Kind::kFloatMul:
      return Application{"operator.mul", true};
    default:
      return std::nullopt;
  }
}

}  // namespace

Value SizeNodes::applied(std::string_view function, bool is_folded, const sym::Expr* expr) {
  ValueList args;
  for (const sym::Expr* arg : expr->args()) args.push_back(node_for(arg));
  if (!is_folded) return call(function, std::move(args));
  Value result = args[0];
  for (size_t i = 1; i < args.size(); ++i) result = call(function, {result, args[i]});
  return result;
}

Node& SizeNodes::node_of_symbol(const sym::Expr* symbol) {
  auto source = sources_.find(symbol);
  if (source != sources_.end()) return read(source->second);
  if (auto equation = solved_.find(symbol); equation != solved_.end()) return solve(equation->second);
  require(static_cast<bool>(unknown_),
          "the symbol {} is used, but no input or result of the capture tells its value",
          symbol->to_string());
  return unknown_(symbol);
}

Value SizeNodes::computed(const sym::Expr* expr) {
  if (const std::optional<Application> application = application_of(expr->kind()))
    return applied(application->function, application->is_folded, expr);
  switch (expr->kind()) {
    case sym::Kind::kAdd:
      return polynomial(expr);
    case sym::Kind::kMul:
      return product(expr);
    case sym::Kind::kEq:
      return comparison(expr, "operator.eq", "operator.eq");
    case sym::Kind::kNe:
      return comparison(expr, "operator.ne", "operator.ne");
    case sym::Kind::kLt:
      return comparison(expr, "operator.lt", "operator.gt");
    case sym::Kind::kLe:
      return comparison(expr, "operator.le", "operator.ge");
    case sym::Kind::kHeld:
      return node_for(expr->arg(0));
    default:
      return {};
  }
}

Node& SizeNodes::make(const sym::Expr* expr) {
  if (expr->kind() == sym::Kind::kSymbol) return node_of_symbol(expr);
  Node* node = node_in(computed(expr));
  invariant(node != nullptr, "the expression {} became no node", expr->to_string());
  return *node;
}

}  // namespace weft
