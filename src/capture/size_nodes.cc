#include "capture/size_nodes.h"

#include "weft/base/error.h"
#include "weft/sym/shape_env.h"

namespace weft {

void SizeNodes::offer(const Tensor& tensor, Node& node) {
  if (!tensor.is_symbolic()) return;
  SymIntSpan sizes = tensor.impl()->sizes();
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].is_symbolic() && sizes[d].expr()->is_symbol())
      sources_.try_emplace(sizes[d].expr(), Source{&node, static_cast<int64_t>(d)});
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
  nodes_.emplace(expr, &made);
  return value_of(made);
}

Value SizeNodes::call(std::string_view function, ValueList args) {
  return value_of(graph_.call_function(function, std::move(args)));
}

// value() + the sum of coefficients()[i] * args()[i], in the order that keeps the constant last.
Value SizeNodes::polynomial(const sym::Expr* expr) {
  Value sum;
  for (size_t i = 0; i < expr->args().size(); ++i) {
    int64_t coefficient = expr->coefficients()[i];
    Value term = node_for(expr->arg(i));
    if (coefficient == -1 && !sum.is_none()) {
      sum = call("operator.sub", {sum, term});
      continue;
    }
    if (coefficient != 1) term = call("operator.mul", {term, coefficient});
    sum = sum.is_none() ? term : call("operator.add", {sum, term});
  }
  if (expr->value() < 0) return call("operator.sub", {sum, -expr->value()});
  if (expr->value() > 0) return call("operator.add", {sum, expr->value()});
  return sum;
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

Node& SizeNodes::make(const sym::Expr* expr) {
  auto all_args = [&] {
    ValueList args;
    for (const sym::Expr* arg : expr->args()) args.push_back(node_for(arg));
    return args;
  };
  auto folded = [&](std::string_view function) {
    ValueList args = all_args();
    Value result = args[0];
    for (size_t i = 1; i < args.size(); ++i) result = call(function, {result, args[i]});
    return result;
  };
  // A comparison of integers is one of a polynomial with 0; of floats, of two values.
  auto comparison = [&](std::string_view function) {
    ValueList args = all_args();
    if (args.size() == 1) args.emplace_back(0);
    return call(function, std::move(args));
  };
  auto one = [&](std::string_view function) { return call(function, all_args()); };
  Value made;
  switch (expr->kind()) {
    case sym::Kind::kSymbol: {
      auto source = sources_.find(expr);
      require(source != sources_.end(),
              "the symbol {} is used, but no input or result of the capture tells its value",
              expr->to_string());
      Node& tensor = *source->second.tensor;
      auto change = changes_.find(&tensor);
      Graph::InsertScope place(graph_, change == changes_.end() ? graph_.insertion_point() : change->second);
      Node& size = graph_.call_function("aten::sym_size.int", {value_of(tensor), source->second.dim});
      size.rename("sym_size_int");
      made = value_of(size);
      break;
    }
    case sym::Kind::kAdd:
      made = polynomial(expr);
      break;
    case sym::Kind::kMul:
      made = product(expr);
      break;
    case sym::Kind::kFloorDiv:
      made = one("operator.floordiv");
      break;
    case sym::Kind::kMod:
      made = one("operator.mod");
      break;
    case sym::Kind::kMin:
    case sym::Kind::kFloatMin:
      made = folded("torch.sym_min");
      break;
    case sym::Kind::kMax:
    case sym::Kind::kFloatMax:
      made = folded("torch.sym_max");
      break;
    case sym::Kind::kPow:
    case sym::Kind::kFloatPow:
      made = one("operator.pow");
      break;
    case sym::Kind::kWhere:
      made = one("torch.sym_ite");
      break;
    case sym::Kind::kFloorToInt:
      made = one("math.floor");
      break;
    case sym::Kind::kCeilToInt:
      made = one("math.ceil");
      break;
    case sym::Kind::kTruncToInt:
      made = one("math.trunc");
      break;
    case sym::Kind::kRoundToInt:
      made = one("round");
      break;
    case sym::Kind::kEq:
      made = comparison("operator.eq");
      break;
    case sym::Kind::kNe:
      made = comparison("operator.ne");
      break;
    case sym::Kind::kLt:
      made = comparison("operator.lt");
      break;
    case sym::Kind::kLe:
      made = comparison("operator.le");
      break;
    case sym::Kind::kAnd:
      made = folded("operator.and_");
      break;
    case sym::Kind::kOr:
      made = folded("operator.or_");
      break;
    case sym::Kind::kNot:
      made = one("torch.sym_not");
      break;
    case sym::Kind::kToFloat:
      made = one("torch.sym_float");
      break;
    case sym::Kind::kIntTrueDiv:
    case sym::Kind::kFloatTrueDiv:
      made = one("operator.truediv");
      break;
    case sym::Kind::kFloatAdd:
      made = folded("operator.add");
      break;
    case sym::Kind::kFloatMul:
      made = folded("operator.mul");
      break;
    case sym::Kind::kSqrt:
      made = one("torch.sym_sqrt");
      break;
    case sym::Kind::kConstant:
      break;
  }
  Node* node = node_in(made);
  invariant(node != nullptr, "the expression {} became no node", expr->to_string());
  return *node;
}

}  // namespace weft
