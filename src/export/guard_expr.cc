#include "export/guard_expr.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace weft {

// Numbers are kept as long double: sizes are exact in it, and quotients as good as Python's.
using Number = long double;

enum class GuardOp : uint8_t {
  kOr,
  kAnd,
  kNot,
  kCompare,
  kAdd,
  kSub,
  kMul,
  kTrueDiv,
  kFloorDiv,
  kMod,
  kNeg,
  kPow,
  kMin,
  kMax,
  kNumber,
  kRead,
};

struct GuardExpr::Node {
  GuardOp op = GuardOp::kNumber;
  std::vector<std::shared_ptr<const Node>> args;
  std::vector<std::string> comparisons;  // of kCompare: between its args
  Number number = 0;
  std::string text;  // of a number, as it was written
  Reading reading;
};

namespace {

using NodeRef = std::shared_ptr<const GuardExpr::Node>;

// Trees are walked by recursion, and a sum is as deep as it is long.
constexpr int kMostDepth = 200, kMostNodes = 1000;

struct NotAGuard {};

// Precedence climbing over Python's expressions.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  NodeRef run() {
    NodeRef root = disjunction();
    skip_space();
    if (at_ != text_.size()) throw NotAGuard();
    return root;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  static bool is_word(char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    const size_t end = at_ + token.size();
    if (is_word(token.back()) && end < text_.size() && is_word(text_[end])) return false;
    at_ = end;
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) throw NotAGuard();
  }
  struct Depth {
    explicit Depth(int& depth) : depth(depth) {
      if (++depth > kMostDepth) throw NotAGuard();
    }
    ~Depth() { --depth; }
    int& depth;
  };

  NodeRef make(GuardOp op, std::vector<NodeRef> args) {
    if (++made_ > kMostNodes) throw NotAGuard();
    GuardExpr::Node node;
    node.op = op;
    node.args = std::move(args);
    return std::make_shared<const GuardExpr::Node>(std::move(node));
  }

  NodeRef disjunction() {
    const Depth depth(depth_);
    std::vector<NodeRef> args = {conjunction()};
    while (accept("or")) args.push_back(conjunction());
    return args.size() == 1 ? args[0] : make(GuardOp::kOr, std::move(args));
  }
  NodeRef conjunction() {
    std::vector<NodeRef> args = {negation()};
    while (accept("and")) args.push_back(negation());
    return args.size() == 1 ? args[0] : make(GuardOp::kAnd, std::move(args));
  }
  NodeRef negation() {
    const Depth depth(depth_);
    return accept("not") ? make(GuardOp::kNot, {negation()}) : comparison();
  }
  NodeRef comparison() {
    GuardExpr::Node node;
    node.op = GuardOp::kCompare;
    node.args.push_back(sum());
    while (true) {
      std::string_view found;
      for (std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
        if (found.empty() && accept(sign)) found = sign;
      if (found.empty()) break;
      node.comparisons.emplace_back(found);
      node.args.push_back(sum());
    }
    if (node.comparisons.empty()) return node.args[0];
    return std::make_shared<const GuardExpr::Node>(std::move(node));
  }
  NodeRef sum() {
    NodeRef left = product();
    while (true) {
      if (accept("+")) left = make(GuardOp::kAdd, {left, product()});
      else if (accept("-")) left = make(GuardOp::kSub, {left, product()});
      else return left;
    }
  }
  NodeRef product() {
    NodeRef left = sign();
    while (true) {
      skip_space();
      if (text_.substr(at_).starts_with("**")) return left;
      if (accept("*")) left = make(GuardOp::kMul, {left, sign()});
      else if (accept("//")) left = make(GuardOp::kFloorDiv, {left, sign()});
      else if (accept("/")) left = make(GuardOp::kTrueDiv, {left, sign()});
      else if (accept("%")) left = make(GuardOp::kMod, {left, sign()});
      else return left;
    }
  }
  NodeRef sign() {
    const Depth depth(depth_);
    if (accept("-")) return make(GuardOp::kNeg, {sign()});
    if (accept("+")) return sign();
    NodeRef base = primary();
    return accept("**") ? make(GuardOp::kPow, {base, sign()}) : base;
  }
  NodeRef primary() {
    skip_space();
    if (accept("(")) {
      NodeRef inner = disjunction();
      expect(")");
      return inner;
    }
    for (const auto& [name, op] : {std::pair{"max", GuardOp::kMax}, std::pair{"min", GuardOp::kMin}}) {
      if (!accept(name)) continue;
      expect("(");
      std::vector<NodeRef> args = {disjunction()};
      while (accept(",")) args.push_back(disjunction());
      expect(")");
      return make(op, std::move(args));
    }
    if (at_ < text_.size() && text_[at_] == 'L') return reading();
    return number();
  }
  NodeRef number() {
    double value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) throw NotAGuard();
    GuardExpr::Node node;
    node.text = std::string(text_.data() + at_, end);
    at_ = static_cast<size_t>(end - text_.data());
    int64_t integer = 0;
    const char* last = node.text.data() + node.text.size();
    auto [int_end, int_error] = std::from_chars(node.text.data(), last, integer);
    node.number = int_error == std::errc() && int_end == last ? static_cast<Number>(integer) : value;
    return std::make_shared<const GuardExpr::Node>(std::move(node));
  }
  // L['x']['a'][0].size()[1]
  NodeRef reading() {
    expect("L");
    GuardExpr::Node node;
    node.op = GuardOp::kRead;
    using Property = GuardExpr::Reading::Property;
    GuardExpr::Reading& reading = node.reading;
    expect("[");
    reading.root = quoted();
    expect("]");
    while (true) {
      if (accept("[")) {
        reading.steps.push_back(step());
        expect("]");
        continue;
      }
      if (accept(".size()")) reading.property = Property::kSize;
      else if (accept(".stride()")) reading.property = Property::kStride;
      else if (accept(".storage_offset()")) reading.property = Property::kOffset;
      else if (accept(".")) {
        const size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        if (at_ == begin) throw NotAGuard();
        reading.steps.push_back("." + std::string(text_.substr(begin, at_ - begin)));
        continue;
      }
      break;
    }
    if (reading.property == Property::kSize || reading.property == Property::kStride) {
      expect("[");
      reading.dim = integer();
      expect("]");
    }
    return std::make_shared<const GuardExpr::Node>(std::move(node));
  }
  std::string step() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) return "['" + quoted() + "']";
    return "[" + std::to_string(integer()) + "]";
  }
  int64_t integer() {
    skip_space();
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) throw NotAGuard();
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') throw NotAGuard();
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && ++at_ == text_.size()) break;
      value += text_[at_];
    }
    if (at_ == text_.size()) throw NotAGuard();
    ++at_;
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0, made_ = 0;
};

using Result = std::optional<Number>;

bool compares(const std::string& sign, Number a, Number b) {
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  return sign == "<" ? a < b : a > b;
}

// Python's: rounds down, and the remainder has the divisor's sign.
Result floor_div(Number a, Number b) { return b == 0 ? Result() : Result(std::floor(a / b)); }

Result combine(GuardOp op, Number a, Number b) {
  switch (op) {
    case GuardOp::kAdd:
      return a + b;
    case GuardOp::kSub:
      return a - b;
    case GuardOp::kMul:
      return a * b;
    case GuardOp::kTrueDiv:
      return b == 0 ? Result() : Result(a / b);
    case GuardOp::kFloorDiv:
      return floor_div(a, b);
    case GuardOp::kMod:
      return b == 0 ? Result() : Result(a - std::floor(a / b) * b);
    case GuardOp::kPow:
      return std::pow(a, b);
    case GuardOp::kMin:
      return std::min(a, b);
    case GuardOp::kMax:
      return std::max(a, b);
    default:
      return std::nullopt;
  }
}

// Expressions are no deeper than the parser lets them be, so this may recurse.
Result evaluate(const GuardExpr::Node& node, const GuardExpr::Read& read) {
  if (node.op == GuardOp::kNumber) return node.number;
  if (node.op == GuardOp::kRead) {
    const std::optional<double> value = read(node.reading);
    return value ? Result(*value) : Result();
  }
  if (node.op == GuardOp::kAnd || node.op == GuardOp::kOr) {
    const bool decides = node.op == GuardOp::kOr;
    bool is_known = true;
    for (const NodeRef& arg : node.args) {
      const Result value = evaluate(*arg, read);
      if (value && (*value != 0) == decides) return decides;
      is_known = is_known && value;
    }
    return is_known ? Result(!decides) : Result();
  }
  std::vector<Number> values;
  for (const NodeRef& arg : node.args) {
    const Result value = evaluate(*arg, read);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (node.op == GuardOp::kNot) return values[0] == 0;
  if (node.op == GuardOp::kNeg) return -values[0];
  if (node.op == GuardOp::kCompare) {
    for (size_t i = 0; i < node.comparisons.size(); ++i)
      if (!compares(node.comparisons[i], values[i], values[i + 1])) return 0;
    return 1;
  }
  Result result = values[0];
  for (size_t i = 1; i < values.size() && result; ++i) result = combine(node.op, *result, values[i]);
  return result;
}

int precedence(GuardOp op) {
  switch (op) {
    case GuardOp::kOr:
      return 1;
    case GuardOp::kAnd:
      return 2;
    case GuardOp::kNot:
      return 3;
    case GuardOp::kCompare:
      return 4;
    case GuardOp::kAdd:
    case GuardOp::kSub:
      return 5;
    case GuardOp::kMul:
    case GuardOp::kTrueDiv:
    case GuardOp::kFloorDiv:
    case GuardOp::kMod:
      return 6;
    case GuardOp::kNeg:
      return 7;
    case GuardOp::kPow:
      return 8;
    default:
      return 9;
  }
}
const char* sign_of(GuardOp op) {
  switch (op) {
    case GuardOp::kOr:
      return " or ";
    case GuardOp::kAnd:
      return " and ";
    case GuardOp::kAdd:
      return " + ";
    case GuardOp::kSub:
      return " - ";
    case GuardOp::kMul:
      return " * ";
    case GuardOp::kTrueDiv:
      return " / ";
    case GuardOp::kFloorDiv:
      return " // ";
    case GuardOp::kMod:
      return " % ";
    case GuardOp::kPow:
      return " ** ";
    default:
      return ", ";
  }
}

std::string text_of(const GuardExpr::Node& node, const GuardExpr::Name& name, int around) {
  const int own = precedence(node.op);
  std::string text;
  if (node.op == GuardOp::kNumber) return node.text;
  if (node.op == GuardOp::kRead) return name(node.reading);
  if (node.op == GuardOp::kMin || node.op == GuardOp::kMax) {
    for (const NodeRef& arg : node.args) text += (text.empty() ? "" : ", ") + text_of(*arg, name, 0);
    return (node.op == GuardOp::kMin ? "min(" : "max(") + text + ")";
  }
  if (node.op == GuardOp::kNot) text = "not " + text_of(*node.args[0], name, own);
  else if (node.op == GuardOp::kNeg) text = "-" + text_of(*node.args[0], name, own);
  else
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (i) text += node.op == GuardOp::kCompare ? " " + node.comparisons[i - 1] + " " : sign_of(node.op);
      // What stands on the right of - or / needs parentheses at the same precedence, and so do comparisons.
      const bool is_strict = i > 0 || node.op == GuardOp::kCompare || node.op == GuardOp::kPow;
      text += text_of(*node.args[i], name, own + (is_strict ? 1 : 0));
    }
  return own < around ? "(" + text + ")" : text;
}

}  // namespace

std::optional<GuardExpr> GuardExpr::parse(std::string_view text) {
  try {
    return GuardExpr(Parser(text).run());
  } catch (const NotAGuard&) {
    return std::nullopt;
  }
}

std::optional<bool> GuardExpr::holds(const Read& read) const {
  const Result value = evaluate(*root_, read);
  return value ? std::optional<bool>(*value != 0) : std::nullopt;
}

std::string GuardExpr::to_string(const Name& name) const { return text_of(*root_, name, 0); }

std::vector<GuardExpr::Reading> GuardExpr::readings() const {
  std::vector<Reading> found;
  std::vector<const Node*> todo = {root_.get()};
  while (!todo.empty()) {
    const Node* node = todo.back();
    todo.pop_back();
    if (node->op == GuardOp::kRead) found.push_back(node->reading);
    for (const NodeRef& arg : node->args) todo.push_back(arg.get());
  }
  return found;
}

}  // namespace weft
