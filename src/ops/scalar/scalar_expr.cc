#include "ops/scalar/scalar_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"

namespace weft::scalar {
namespace {

Ref<ScalarNode> new_node(ScalarOp op, DType dtype) {
  static std::atomic<uint64_t> next_serial{1};
  auto node = make_ref<ScalarNode>();
  node->op = op;
  node->dtype = dtype;
  node->serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  return node;
}
Ref<ScalarNode> new_leaf(ScalarOp op, int index, Part part, DType dtype) {
  Ref<ScalarNode> node = new_node(op, dtype);
  node->index = index;
  node->part = part;
  return node;
}

std::string leaf_text(char letter, const ScalarNode& node) {
  std::string_view part = node.part == Part::kReal ? ".re" : node.part == Part::kImaginary ? ".im" : "";
  return fmt::format("{}{}{}", letter, node.index, part);
}

// The low bits, as a number of the type.
int64_t wrapped(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
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
    case ScalarOp::kConvert:
      return "convert";
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

ScalarExpr ScalarExpr::constant(double value, DType dtype) {
  if (dtype <= DType::kInt64) return constant(static_cast<int64_t>(value), dtype);
  Ref<ScalarNode> node = new_node(ScalarOp::kConstant, dtype);
  node->real = dtype == DType::kFloat64 ? value : static_cast<double>(static_cast<float>(value));
  ScalarExpr result;
  result.node_ = node;
  return result;
}

ScalarExpr ScalarExpr::constant(int64_t value, DType dtype) {
  if (dtype > DType::kInt64) return constant(static_cast<double>(value), dtype);
  Ref<ScalarNode> node = new_node(ScalarOp::kConstant, dtype);
  node->integer = wrapped(value, dtype);
  ScalarExpr result;
  result.node_ = node;
  return result;
}

ScalarExpr ScalarExpr::input(int index, Part part, DType dtype) {
  ScalarExpr result;
  result.node_ = new_leaf(ScalarOp::kInput, index, part, dtype);
  return result;
}

ScalarExpr ScalarExpr::param(int index, Part part, DType dtype) {
  ScalarExpr result;
  result.node_ = new_leaf(ScalarOp::kParam, index, part, dtype);
  return result;
}

ScalarExpr ScalarExpr::call(ScalarOp op, DType dtype, std::span<const ScalarExpr> operands) {
  Ref<ScalarNode> node = new_node(op, dtype);
  invariant(operands.size() <= std::size(node->operands), "{} with {} operands", op_name(op),
            operands.size());
  for (const ScalarExpr& operand : operands) node->operands[node->operand_count++] = operand.node_;
  ScalarExpr result;
  result.node_ = node;
  return result;
}

ScalarExpr ScalarExpr::converted(DType dtype) const {
  return node_->dtype == dtype ? *this : call(ScalarOp::kConvert, dtype, {this, 1});
}

ScalarExpr unary_expr(ScalarOp op, DType dtype, const ScalarExpr& a) {
  return ScalarExpr::call(op, dtype, {&a, 1});
}
ScalarExpr binary_expr(ScalarOp op, DType dtype, const ScalarExpr& a, const ScalarExpr& b) {
  ScalarExpr operands[] = {a, b};
  return ScalarExpr::call(op, dtype, operands);
}
ScalarExpr where_expr(DType dtype, const MaskExpr& mask, const ScalarExpr& a, const ScalarExpr& b) {
  ScalarExpr operands[] = {mask.expr, a, b};
  return ScalarExpr::call(ScalarOp::k_where, dtype, operands);
}

ScalarExpr extreme_expr(DType dtype, bool highest) {
  if (category_of(dtype) == Category::kReal) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return ScalarExpr::constant(highest ? kInfinity : -kInfinity, dtype);
  }
  if (category_of(dtype) != Category::kSigned)
    return ScalarExpr::constant(highest ? int64_t{-1} : int64_t{0}, dtype);  // all bits: true, or 255
  const int bits = 8 * static_cast<int>(item_size(dtype));
  const int64_t lowest = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return ScalarExpr::constant(highest ? ~lowest : lowest, dtype);
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
    if (node->op == ScalarOp::kConstant) {
      out = node->dtype > DType::kInt64 ? fmt::format("{}", node->real) : fmt::format("{}", node->integer);
    } else if (node->op == ScalarOp::kInput) {
      out = leaf_text('x', *node);
    } else if (node->op == ScalarOp::kParam) {
      out = leaf_text('p', *node);
    } else {
      out = fmt::format("{}(", node->op == ScalarOp::kConvert ? short_name(node->dtype) : op_name(node->op));
      for (int k = 0; k < node->operand_count; ++k) out += (k ? ", " : "") + text.at(node->operands[k].get());
      out += ")";
    }
  }
  return text.at(node_.get());
}

}  // namespace weft::scalar
