// Reads both of SymPy's spellings: operators as it prints them, and constructor calls.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "sym/build.h"
#include "weft/base/error.h"
#include "weft/sym/text.h"

namespace weft::sym {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

enum class Function : uint8_t {
  kAdd,
  kMul,
  kPow,
  kMin,
  kMax,
  kAnd,
  kOr,
  kNot,
  kFloorDiv,
  kCeilDiv,
  kMod,
  kModularIndexing,
  kWhere,
  kTrueDiv,
  kToFloat,
  kSqrt,
  kIdentity,
  kFloor,
  kCeil,
  kTrunc,
  kRound,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
};

struct Entry {
  std::string_view name;
  Function function;
  size_t least, most;  // how many arguments
};
constexpr size_t kMany = SIZE_MAX;
constexpr Entry kFunctions[] = {
    {"Add", Function::kAdd, 1, kMany},
    {"Mul", Function::kMul, 1, kMany},
    {"Pow", Function::kPow, 2, 2},
    {"PowByNatural", Function::kPow, 2, 2},
    {"FloatPow", Function::kPow, 2, 2},
    {"Min", Function::kMin, 1, kMany},
    {"Max", Function::kMax, 1, kMany},
    {"And", Function::kAnd, 0, kMany},
    {"Or", Function::kOr, 0, kMany},
    {"Not", Function::kNot, 1, 1},
    {"FloorDiv", Function::kFloorDiv, 2, 2},
    {"CleanDiv", Function::kFloorDiv, 2, 2},
    {"CeilDiv", Function::kCeilDiv, 2, 2},
    {"Mod", Function::kMod, 2, 2},
    {"PythonMod", Function::kMod, 2, 2},
    {"ModularIndexing", Function::kModularIndexing, 3, 3},
    {"Where", Function::kWhere, 3, 3},
    {"IntTrueDiv", Function::kTrueDiv, 2, 2},
    {"FloatTrueDiv", Function::kTrueDiv, 2, 2},
    {"ToFloat", Function::kToFloat, 1, 1},
    {"OpaqueUnaryFn_sqrt", Function::kSqrt, 1, 1},
    {"sqrt", Function::kSqrt, 1, 1},
    {"Identity", Function::kIdentity, 1, 1},
    {"FloorToInt", Function::kFloor, 1, 1},
    {"floor", Function::kFloor, 1, 1},
    {"CeilToInt", Function::kCeil, 1, 1},
    {"ceiling", Function::kCeil, 1, 1},
    {"TruncToInt", Function::kTrunc, 1, 1},
    {"RoundToInt", Function::kRound, 1, 1},
    {"Eq", Function::kEq, 2, 2},
    {"Equality", Function::kEq, 2, 2},
    {"Ne", Function::kNe, 2, 2},
    {"Unequality", Function::kNe, 2, 2},
    {"Lt", Function::kLt, 2, 2},
    {"StrictLessThan", Function::kLt, 2, 2},
    {"Le", Function::kLe, 2, 2},
    {"LessThan", Function::kLe, 2, 2},
    {"Gt", Function::kGt, 2, 2},
    {"StrictGreaterThan", Function::kGt, 2, 2},
    {"Ge", Function::kGe, 2, 2},
    {"GreaterThan", Function::kGe, 2, 2},
};

class Parser {
 public:
  Parser(ShapeEnv& env, std::string_view text, SymbolLookup lookup)
      : pool_(env.pool()), text_(text), lookup_(lookup) {}

  const Expr* run() {
    const Expr* result = expression(0);
    skip_spaces();
    if (at_ != text_.size()) refuse("the end");
    return result;
  }

 private:
  using Args = std::vector<const Expr*>;

  // --- text --------------------------------------------------------------------------------------------

  [[noreturn]] void refuse(std::string_view expected) const {
    std::string_view rest = text_.substr(at_, 20);
    fail("'{}' is no expression: at {} it has '{}', where {} was expected", text_, at_, rest, expected);
  }
  [[noreturn]] void refuse_at(size_t offset, std::string_view why) const {
    fail("'{}' is no expression: at {}, {}", text_, offset, why);
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  // A word operator ends where the word does.
  bool take(std::string_view token) {
    skip_spaces();
    std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(token)) return false;
    bool is_word = is_letter(token[0]);
    if (is_word && rest.size() > token.size() &&
        (is_letter(rest[token.size()]) || is_digit(rest[token.size()])))
      return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse(fmt::format("'{}'", token));
  }
  std::string_view take_word() {
    skip_spaces();
    size_t start = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > start && is_digit(text_[at_])))) ++at_;
    return text_.substr(start, at_ - start);
  }
  std::string_view take_quoted() {
    skip_spaces();
    char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') refuse("a quoted text");
    size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("a quoted text that ends");
    std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inner;
  }

  // --- operators ---------------------------------------------------------------------------------------

  enum class Operator : uint8_t {
    kOr,
    kAnd,
    kLe,
    kGe,
    kEq,
    kNe,
    kLt,
    kGt,
    kAdd,
    kSub,
    kFloorDiv,
    kMul,
    kMod,
    kDiv
  };
  struct Spelling {
    std::string_view text;
    Operator op;
    int level;
  };
  // Python's levels; longer spellings before those that begin them.
  static constexpr int kOrWord = 1, kAndWord = 2, kNotWord = 3, kComparison = 4, kBitOr = 5, kBitAnd = 6,
                       kSum = 7, kProduct = 8;
  static constexpr Spelling kOperators[] = {
      {"or", Operator::kOr, kOrWord},        {"and", Operator::kAnd, kAndWord},
      {"<=", Operator::kLe, kComparison},    {">=", Operator::kGe, kComparison},
      {"==", Operator::kEq, kComparison},    {"!=", Operator::kNe, kComparison},
      {"<", Operator::kLt, kComparison},     {">", Operator::kGt, kComparison},
      {"|", Operator::kOr, kBitOr},          {"&", Operator::kAnd, kBitAnd},
      {"+", Operator::kAdd, kSum},           {"-", Operator::kSub, kSum},
      {"//", Operator::kFloorDiv, kProduct}, {"*", Operator::kMul, kProduct},
      {"%", Operator::kMod, kProduct},       {"/", Operator::kDiv, kProduct},
  };

  const Spelling* take_operator(int least) {
    skip_spaces();
    if (text_.substr(at_).starts_with("**")) return nullptr;
    for (const Spelling& spelling : kOperators) {
      size_t before = at_;
      if (!take(spelling.text)) continue;
      if (spelling.level >= least) return &spelling;
      at_ = before;
      return nullptr;
    }
    return nullptr;
  }

  // Operators of at least this level, from the left.
  const Expr* expression(int least) {
    if (++depth_ > kMaxParseDepth)
      refuse_at(at_, fmt::format("it is nested deeper than {} levels", kMaxParseDepth));
    const Expr* left = operand(least);
    const Expr* chained = nullptr;  // of a < b < c: a < b
    while (true) {
      size_t offset = at_;
      const Spelling* next = take_operator(least);
      if (!next) break;
      if (next->level < kComparison && chained) left = std::exchange(chained, nullptr);
      const Expr* right = next->op == Operator::kSub ? subtrahend() : expression(next->level + 1);
      if (next->level != kComparison) {
        left = apply(*next, left, right, offset);
        continue;
      }
      const Expr* compared = apply(*next, left, right, offset);
      chained = chained ? logical_and(pool_, std::array{chained, compared}) : compared;
      left = right;
    }
    --depth_;
    return chained ? chained : left;
  }

  // The least int64 has no positive counterpart: after a minus it is read with it.
  bool take_least() {
    constexpr std::string_view kMagnitude = "9223372036854775808";
    skip_spaces();
    std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(kMagnitude)) return false;
    if (rest.size() > kMagnitude.size() && (is_digit(rest[kMagnitude.size()]) ||
                                            rest[kMagnitude.size()] == '.' || rest[kMagnitude.size()] == 'e'))
      return false;
    at_ += kMagnitude.size();
    return true;
  }

  // What is added for "- x".
  const Expr* subtrahend() {
    if (take_least()) return pool_.constant(INT64_MIN);
    size_t offset = at_;
    return negate(expression(kSum + 1), offset);
  }

  const Expr* operand(int least) {
    if (least <= kNotWord && take("not")) {
      size_t offset = at_;
      return logical_not(pool_, truth(expression(kNotWord), offset));
    }
    if (take("-")) {
      if (take_least()) return pool_.constant(INT64_MIN);
      size_t offset = at_;
      // A product binds closer than its sign; the value is the same.
      return negate(nested_operand(), offset);
    }
    if (take("+")) return nested_operand();
    if (take("~")) {
      size_t offset = at_;
      return logical_not(pool_, truth(nested_operand(), offset));
    }
    const Expr* base = primary();
    size_t offset = at_;
    if (!take("**")) return base;
    return power_of(base, nested_operand(), offset);
  }
  const Expr* nested_operand() {
    if (++depth_ > kMaxParseDepth)
      refuse_at(at_, fmt::format("it is nested deeper than {} levels", kMaxParseDepth));
    const Expr* result = operand(kProduct + 1);
    --depth_;
    return result;
  }

  const Expr* apply(const Spelling& spelling, const Expr* a, const Expr* b, size_t offset) {
    switch (spelling.op) {
      case Operator::kOr:
        return logical_or(pool_, std::array{truth(a, offset), truth(b, offset)});
      case Operator::kAnd:
        return logical_and(pool_, std::array{truth(a, offset), truth(b, offset)});
      case Operator::kAdd:
      case Operator::kSub:  // of what is negated
        return sum_of(a, b, offset);
      case Operator::kMul:
        return product_of(a, b, offset);
      case Operator::kFloorDiv:
        return floor_div(pool_, integer(a, offset), integer(b, offset));
      case Operator::kMod:
        return mod(pool_, integer(a, offset), integer(b, offset));
      case Operator::kDiv:
        return quotient_of(a, b, offset);
      case Operator::kLe:
        return comparison(Kind::kLe, a, b, offset);
      case Operator::kGe:
        return comparison(Kind::kLe, b, a, offset);
      case Operator::kEq:
        return comparison(Kind::kEq, a, b, offset);
      case Operator::kNe:
        return comparison(Kind::kNe, a, b, offset);
      case Operator::kLt:
        return comparison(Kind::kLt, a, b, offset);
      case Operator::kGt:
        return comparison(Kind::kLt, b, a, offset);
    }
    __builtin_unreachable();
  }

  // --- atoms -------------------------------------------------------------------------------------------

  const Expr* primary() {
    skip_spaces();
    if (take("(")) {
      const Expr* inner = expression(0);
      expect(")");
      return inner;
    }
    if (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) return number();
    size_t offset = at_;
    std::string_view word = take_word();
    if (word.empty()) refuse("a number, a symbol or '('");
    if (take("(")) return call(word, offset);
    if (word == "True" || word == "true" || word == "False" || word == "false")
      return pool_.boolean(word[0] == 'T' || word[0] == 't');
    if (word == "oo" || word == "inf") return pool_.real(INFINITY);
    if (word == "nan") return pool_.real(NAN);
    if (word == "int_oo") refuse_at(offset, "int_oo stands for a range without end and is no number");
    return symbol({.name = std::string(word)}, offset);
  }

  const Expr* number() {
    size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    bool is_real = at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
    if (is_real) return real_number(start);
    int64_t value = 0;
    auto [end, error] = std::from_chars(text_.data() + start, text_.data() + at_, value);
    if (error != std::errc()) refuse_at(start, "the number does not fit into int64");
    return pool_.constant(value);
  }
  const Expr* real_number(size_t start) {
    double value = 0;
    auto [end, error] = std::from_chars(text_.data() + start, text_.data() + text_.size(), value);
    if (error != std::errc()) refuse_at(start, "the number is no double");
    at_ = static_cast<size_t>(end - text_.data());
    return pool_.real(value);
  }

  const Expr* symbol(const SymbolText& described, size_t offset) {
    const Expr* found = lookup_(described);
    if (!found) refuse_at(offset, fmt::format("there is no symbol {}", described.name));
    return found;
  }

  const Expr* call(std::string_view name, size_t offset) {
    if (name == "Symbol") return symbol_call(offset);
    if (name == "Integer") return integer_call();
    if (name == "Float") return float_call(offset);
    if (name == "Rational") return rational_call(offset);
    if (name == "Piecewise") return piecewise(offset);
    for (const Entry& entry : kFunctions) {
      if (entry.name != name) continue;
      Args args = arguments();
      if (args.size() < entry.least || args.size() > entry.most)
        refuse_at(offset, fmt::format("{} has {} arguments", name, args.size()));
      return build(entry.function, args, offset);
    }
    refuse_at(offset, fmt::format("there is no function {}", name));
  }

  Args arguments() {
    Args args;
    if (take(")")) return args;
    do args.push_back(expression(0));
    while (take(","));
    expect(")");
    return args;
  }

  const Expr* symbol_call(size_t offset) {
    SymbolText described{.name = std::string(take_quoted())};
    while (take(",")) {
      std::string_view assumption = take_word();
      expect("=");
      bool holds = take("True");
      if (!holds) expect("False");
      if (assumption == "positive") described.is_positive = holds;
      if (assumption == "real") described.is_integer = !holds;
      if (assumption == "integer") described.is_integer = holds;
    }
    expect(")");
    return symbol(described, offset);
  }
  const Expr* integer_call() {
    const Expr* value =
        take("-") ? take_least() ? pool_.constant(INT64_MIN) : negate(number(), at_) : number();
    expect(")");
    return value;
  }
  const Expr* float_call(size_t offset) {
    std::string digits(take_quoted());
    char* end = nullptr;
    double value = std::strtod(digits.c_str(), &end);
    if (digits.empty() || *end != '\0') refuse_at(offset, fmt::format("'{}' is no number", digits));
    if (take(",")) {
      take_word();
      expect("=");
      number();
    }
    expect(")");
    return pool_.real(value);
  }
  const Expr* rational_call(size_t offset) {
    Args args = arguments();
    bool are_whole = args.size() == 2 && args[0]->is_constant() && args[1]->is_constant() &&
                     args[0]->type() == Type::kInt && args[1]->type() == Type::kInt && args[1]->value() != 0;
    if (!are_whole) refuse_at(offset, "Rational has two integers");
    if (mod(pool_, args[0], args[1])->value() == 0) return floor_div(pool_, args[0], args[1]);
    return int_true_div(pool_, args[0], args[1]);
  }
  // Pairs of a value and its condition, the last of which always holds.
  const Expr* piecewise(size_t offset) {
    std::vector<std::pair<const Expr*, const Expr*>> pairs;
    do {
      if (!take("ExprCondPair")) skip_spaces();
      expect("(");
      const Expr* value = expression(0);
      expect(",");
      pairs.emplace_back(value, truth(expression(0), at_));
      expect(")");
    } while (take(","));
    expect(")");
    const Expr* last = pairs.back().second;
    if (!last->is_constant() || last->value() == 0)
      refuse_at(offset, "the last condition of Piecewise must be True");
    const Expr* result = integer(pairs.back().first, offset);
    for (size_t i = pairs.size() - 1; i-- > 0;)
      result = where(pool_, pairs[i].second, integer(pairs[i].first, offset), result);
    return result;
  }

  // --- values ------------------------------------------------------------------------------------------

  const Expr* truth(const Expr* e, size_t offset) const {
    if (e->type() != Type::kBool) refuse_at(offset, fmt::format("{} is no condition", e->to_string()));
    return e;
  }
  const Expr* integer(const Expr* e, size_t offset) const {
    if (e->type() != Type::kInt) refuse_at(offset, fmt::format("{} is no integer", e->to_string()));
    return e;
  }
  const Expr* real(const Expr* e, size_t offset) {
    if (e->type() == Type::kBool) refuse_at(offset, fmt::format("{} is no number", e->to_string()));
    return e->type() == Type::kFloat ? e : to_float(pool_, e);
  }
  static bool is_real(const Expr* a, const Expr* b) {
    return a->type() == Type::kFloat || b->type() == Type::kFloat;
  }

  const Expr* negate(const Expr* e, size_t offset) {
    if (e->type() != Type::kFloat) return subtract(pool_, pool_.constant(0), integer(e, offset));
    if (e->is_constant()) return pool_.real(-e->float_value());
    return float_op(pool_, Kind::kFloatMul, e, pool_.real(-1.0));
  }
  const Expr* sum_of(const Expr* a, const Expr* b, size_t offset) {
    if (is_real(a, b)) return float_op(pool_, Kind::kFloatAdd, real(a, offset), real(b, offset));
    return add(pool_, integer(a, offset), integer(b, offset));
  }
  const Expr* product_of(const Expr* a, const Expr* b, size_t offset) {
    if (is_real(a, b)) return float_op(pool_, Kind::kFloatMul, real(a, offset), real(b, offset));
    return multiply(pool_, integer(a, offset), integer(b, offset));
  }
  const Expr* quotient_of(const Expr* a, const Expr* b, size_t offset) {
    if (is_real(a, b)) return float_op(pool_, Kind::kFloatTrueDiv, real(a, offset), real(b, offset));
    return int_true_div(pool_, integer(a, offset), integer(b, offset));
  }
  const Expr* power_of(const Expr* base, const Expr* exponent, size_t offset) {
    if (is_real(base, exponent))
      return float_op(pool_, Kind::kFloatPow, real(base, offset), real(exponent, offset));
    return power(pool_, integer(base, offset), integer(exponent, offset));
  }
  const Expr* comparison(Kind kind, const Expr* a, const Expr* b, size_t offset) {
    if (is_real(a, b)) return float_compare(pool_, kind, real(a, offset), real(b, offset));
    return compare(pool_, kind, integer(a, offset), integer(b, offset));
  }
  const Expr* extremum(const Args& args, bool is_max, size_t offset) {
    bool any_real = false;
    for (const Expr* arg : args) any_real |= arg->type() == Type::kFloat;
    if (!any_real) {
      for (const Expr* arg : args) integer(arg, offset);
      return is_max ? maximum(pool_, args) : minimum(pool_, args);
    }
    const Expr* result = real(args[0], offset);
    for (size_t i = 1; i < args.size(); ++i)
      result = float_op(pool_, is_max ? Kind::kFloatMax : Kind::kFloatMin, result, real(args[i], offset));
    return result;
  }
  const Expr* rounded(Kind kind, const Expr* a) {
    return a->type() == Type::kInt ? a : to_integer(pool_, kind, a);
  }
  template <typename Combine>
  const Expr* folded(const Args& args, size_t offset, Combine combine) {
    const Expr* result = args[0];
    for (size_t i = 1; i < args.size(); ++i) result = (this->*combine)(result, args[i], offset);
    return result;
  }

  const Expr* build(Function function, const Args& args, size_t offset) {
    auto whole = [&](size_t i) { return integer(args[i], offset); };
    switch (function) {
      case Function::kAdd:
        return folded(args, offset, &Parser::sum_of);
      case Function::kMul:
        return folded(args, offset, &Parser::product_of);
      case Function::kPow:
        return power_of(args[0], args[1], offset);
      case Function::kMin:
      case Function::kMax:
        return extremum(args, function == Function::kMax, offset);
      case Function::kAnd:
      case Function::kOr:
        for (const Expr* arg : args) truth(arg, offset);
        return function == Function::kAnd ? logical_and(pool_, args) : logical_or(pool_, args);
      case Function::kNot:
        return logical_not(pool_, truth(args[0], offset));
      case Function::kFloorDiv:
        return floor_div(pool_, whole(0), whole(1));
      case Function::kCeilDiv:
        return negate(floor_div(pool_, negate(whole(0), offset), whole(1)), offset);
      case Function::kMod:
        return mod(pool_, whole(0), whole(1));
      case Function::kModularIndexing:
        return mod(pool_, floor_div(pool_, whole(0), whole(1)), whole(2));
      case Function::kWhere:
        return where(pool_, truth(args[0], offset), whole(1), whole(2));
      case Function::kTrueDiv:
        return quotient_of(args[0], args[1], offset);
      case Function::kToFloat:
        return real(args[0], offset);
      case Function::kSqrt:
        return float_sqrt(pool_, real(args[0], offset));
      case Function::kIdentity:
        return args[0];
      case Function::kFloor:
        return rounded(Kind::kFloorToInt, args[0]);
      case Function::kCeil:
        return rounded(Kind::kCeilToInt, args[0]);
      case Function::kTrunc:
        return rounded(Kind::kTruncToInt, args[0]);
      case Function::kRound:
        return rounded(Kind::kRoundToInt, args[0]);
      case Function::kEq:
        return comparison(Kind::kEq, args[0], args[1], offset);
      case Function::kNe:
        return comparison(Kind::kNe, args[0], args[1], offset);
      case Function::kLt:
        return comparison(Kind::kLt, args[0], args[1], offset);
      case Function::kLe:
        return comparison(Kind::kLe, args[0], args[1], offset);
      case Function::kGt:
        return comparison(Kind::kLt, args[1], args[0], offset);
      case Function::kGe:
        return comparison(Kind::kLe, args[1], args[0], offset);
    }
    __builtin_unreachable();
  }

  ExprPool& pool_;
  std::string_view text_;
  SymbolLookup lookup_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

const Expr* parse(ShapeEnv& env, std::string_view text, SymbolLookup lookup) {
  return Parser(env, text, lookup).run();
}

const Expr* parse(ShapeEnv& env, std::string_view text) {
  auto lookup = [&](const SymbolText& described) -> const Expr* {
    const Symbol* symbol = env.find_symbol(described.name);
    return symbol ? symbol->expr : nullptr;
  };
  return parse(env, text, lookup);
}

}  // namespace weft::sym
