#include "ops/scalar/scalar_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft::scalar {
namespace {

Ref<ScalarNode> new_node(ScalarOp op, Category category) {
  static std::atomic<uint64_t> next_serial{1};
  auto node = make_ref<ScalarNode>();
  node->op = op;
  node->category = category;
  node->serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  return node;
}

std::string leaf_text(char letter, const ScalarNode& node) {
  std::string_view part = node.part == Part::kReal ? ".re" : node.part == Part::kImaginary ? ".im" : "";
  return fmt::format("{}{}{}", letter, node.index, part);
}

bool is_integer(const ScalarNode& node) {
  return node.category == Category::kSigned || node.category == Category::kUnsigned;
}

double truncated_division(double a, double b) { return b == 0 ? 0 : std::trunc(a / b); }
double floored_division(double a, double b) { return b == 0 ? 0 : std::floor(a / b); }

double integer_power(double base, double exponent) {
  if (exponent >= 0) return std::pow(base, exponent);
  if (base == 1) return 1;
  if (base == -1) return std::fmod(exponent, 2) == 0 ? 1 : -1;
  return 0;
}

double propagate_nan(double a, double b, double otherwise) {
  return std::isnan(a) ? a : std::isnan(b) ? b : otherwise;
}

double apply_unary(const ScalarNode& node, double x) {
  switch (node.op) {
    case ScalarOp::k_neg:
      return -x;
    case ScalarOp::k_abs:
      return std::fabs(x);
    case ScalarOp::k_bit_not: {
      if (node.category == Category::kBool) return x == 0;
      return static_cast<double>(node.category == Category::kUnsigned ? 255 - static_cast<int64_t>(x)
                                                                      : ~static_cast<int64_t>(x));
    }
    case ScalarOp::k_logical_not:
      return x == 0;
    case ScalarOp::k_is_nan:
      return std::isnan(x);
    case ScalarOp::k_is_infinite:
      return std::isinf(x);
    case ScalarOp::k_rsqrt:
      return 1 / std::sqrt(x);
    case ScalarOp::k_sigmoid:
      return 1 / (1 + std::exp(-x));
    case ScalarOp::k_normal_cdf:
      return 0.5 * std::erfc(-x * std::sqrt(0.5));
    case ScalarOp::k_round:
      return std::nearbyint(x);
#define WEFT_X(name)       \
  case ScalarOp::k_##name: \
    return std::name(x);
      WEFT_X(exp)
      WEFT_X(exp2)
      WEFT_X(expm1) WEFT_X(log) WEFT_X(log2) WEFT_X(log10) WEFT_X(log1p) WEFT_X(sqrt) WEFT_X(sin) WEFT_X(cos)
          WEFT_X(tan) WEFT_X(asin) WEFT_X(acos) WEFT_X(atan) WEFT_X(sinh) WEFT_X(cosh) WEFT_X(tanh)
              WEFT_X(asinh) WEFT_X(acosh) WEFT_X(atanh) WEFT_X(erf) WEFT_X(erfc) WEFT_X(floor) WEFT_X(ceil)
                  WEFT_X(trunc)
#undef WEFT_X
                      default : break;
  }
  fail("evaluate: {} takes no single operand", op_name(node.op));
}

double apply_binary(const ScalarNode& node, double a, double b) {
  auto as_int = [](double x) { return static_cast<int64_t>(x); };
  switch (node.op) {
    case ScalarOp::k_add:
      return node.category == Category::kBool ? (a != 0 || b != 0) : a + b;
    case ScalarOp::k_sub:
      return a - b;
    case ScalarOp::k_mul:
      return a * b;
    case ScalarOp::k_div:
      return a / b;
    case ScalarOp::k_eq:
      return a == b;
    case ScalarOp::k_ne:
      return a != b;
    case ScalarOp::k_lt:
      return a < b;
    case ScalarOp::k_le:
      return a <= b;
    case ScalarOp::k_gt:
      return a > b;
    case ScalarOp::k_ge:
      return a >= b;
    case ScalarOp::k_bit_and:
      return static_cast<double>(as_int(a) & as_int(b));
    case ScalarOp::k_bit_or:
      return static_cast<double>(as_int(a) | as_int(b));
    case ScalarOp::k_bit_xor:
      return static_cast<double>(as_int(a) ^ as_int(b));
    case ScalarOp::k_logical_and:
      return a != 0 && b != 0;
    case ScalarOp::k_logical_or:
      return a != 0 || b != 0;
    case ScalarOp::k_logical_xor:
      return (a != 0) != (b != 0);
    case ScalarOp::k_maximum:
      return propagate_nan(a, b, std::max(a, b));
    case ScalarOp::k_minimum:
      return propagate_nan(a, b, std::min(a, b));
    case ScalarOp::k_copysign:
      return std::copysign(a, b);
    case ScalarOp::k_hypot:
      return std::hypot(a, b);
    case ScalarOp::k_atan2:
      return std::atan2(a, b);
    case ScalarOp::k_fmod:
      return std::fmod(a, b);
    case ScalarOp::k_pow:
      return is_integer(node) ? integer_power(a, b) : std::pow(a, b);
    case ScalarOp::k_floor_div:
      return floored_division(a, b);
    case ScalarOp::k_trunc_div:
      return truncated_division(a, b);
    case ScalarOp::k_floor_mod:
      return b == 0 ? 0 : a - floored_division(a, b) * b;
    case ScalarOp::k_trunc_mod:
      return b == 0 ? 0 : a - truncated_division(a, b) * b;
    default:
      break;
  }
  fail("evaluate: {} takes no two operands", op_name(node.op));
}

size_t leaf_position(const ScalarNode& node) {
  size_t index = static_cast<size_t>(node.index);
  return node.part == Part::kWhole ? index : 2 * index + (node.part == Part::kImaginary);
}

}  // namespace

std::string_view op_name(ScalarOp op) {
  switch (op) {
    case ScalarOp::kConstant:
      return "constant";
    case ScalarOp::kInput:
      return "input";
    case ScalarOp::kParam:
      return "param";
    case ScalarOp::k_where:
      return "where";
#define WEFT_X(name)       \
  case ScalarOp::k_##name: \
    return #name;
      WEFT_SCALAR_UNARY(WEFT_X) WEFT_SCALAR_BINARY(WEFT_X)
#undef WEFT_X
  }
  return "?";
}

ScalarExpr ScalarExpr::constant(double value, Category category) {
  Ref<ScalarNode> node = new_node(ScalarOp::kConstant, category);
  node->value = value;
  ScalarExpr result;
  result.node_ = node;
  return result;
}

namespace {
Ref<ScalarNode> new_leaf(ScalarOp op, int index, Part part, Category category) {
  Ref<ScalarNode> node = new_node(op, category);
  node->index = index;
  node->part = part;
  return node;
}
}  // namespace

ScalarExpr ScalarExpr::input(int index, Part part, Category category) {
  ScalarExpr result;
  result.node_ = new_leaf(ScalarOp::kInput, index, part, category);
  return result;
}

ScalarExpr ScalarExpr::param(int index, Part part, Category category) {
  ScalarExpr result;
  result.node_ = new_leaf(ScalarOp::kParam, index, part, category);
  return result;
}

ScalarExpr ScalarExpr::call(ScalarOp op, Category category, std::span<const ScalarExpr> operands) {
  Ref<ScalarNode> node = new_node(op, category);
  invariant(operands.size() <= std::size(node->operands), "{} with {} operands", op_name(op),
            operands.size());
  for (const ScalarExpr& operand : operands) node->operands[node->operand_count++] = operand.node_;
  ScalarExpr result;
  result.node_ = node;
  return result;
}

std::vector<const ScalarNode*> topological_order(std::span<const ScalarExpr> roots) {
  std::vector<const ScalarNode*> nodes;
  std::unordered_set<const ScalarNode*> seen;
  auto visit = [&](const ScalarNode* node) {
    if (seen.insert(node).second) nodes.push_back(node);
  };
  for (const ScalarExpr& root : roots)
    if (root) visit(&root.node());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (int k = 0; k < nodes[i]->operand_count; ++k) visit(nodes[i]->operands[k].get());
  std::sort(nodes.begin(), nodes.end(),
            [](const ScalarNode* a, const ScalarNode* b) { return a->serial < b->serial; });
  return nodes;
}

std::string ScalarExpr::to_string() const {
  std::unordered_map<const ScalarNode*, std::string> text;
  for (const ScalarNode* node : topological_order({this, 1})) {
    std::string& out = text[node];
    if (node->op == ScalarOp::kConstant) out = fmt::format("{}", node->value);
    else if (node->op == ScalarOp::kInput) out = leaf_text('x', *node);
    else if (node->op == ScalarOp::kParam) out = leaf_text('p', *node);
    else {
      out = fmt::format("{}(", op_name(node->op));
      for (int k = 0; k < node->operand_count; ++k) out += (k ? ", " : "") + text.at(node->operands[k].get());
      out += ")";
    }
  }
  return text.at(node_.get());
}

double evaluate(const ScalarExpr& expr, std::span<const double> inputs, std::span<const double> params) {
  std::unordered_map<const ScalarNode*, double> values;
  for (const ScalarNode* node : topological_order({&expr, 1})) {
    auto operand = [&](int k) { return values.at(node->operands[k].get()); };
    double& value = values[node];
    if (node->op == ScalarOp::kConstant) value = node->value;
    else if (node->op == ScalarOp::kInput) value = inputs[leaf_position(*node)];
    else if (node->op == ScalarOp::kParam) value = params[leaf_position(*node)];
    else if (node->op == ScalarOp::k_where) value = operand(0) != 0 ? operand(1) : operand(2);
    else if (node->operand_count == 1) value = apply_unary(*node, operand(0));
    else value = apply_binary(*node, operand(0), operand(1));
  }
  return values.at(&expr.node());
}

}  // namespace weft::scalar
