// Prints as SymPy does, with the parentheses of PyTorch's FloorDiv and Mod.
#include "sym/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "weft/sym/shape_env.h"
#include "weft/sym/text.h"

namespace weft::sym {
namespace {

// SymPy's precedences. An argument gets parentheses when its precedence is at most the level it stands at.
constexpr int kPrecedenceFunction = 70, kPrecedencePow = 60, kPrecedenceMul = 50, kPrecedenceAdd = 40,
              kPrecedenceAnd = 30, kPrecedenceOr = 20, kPrecedenceLow = 35, kPrecedenceNot = 100,
              kPrecedenceAtom = 1000;
constexpr int kLevelNone = 0, kLevelTerm = kPrecedenceAdd - 1, kLevelJunction = 38,
              kLevelDivision = kPrecedenceAtom - 1;

// A shared subexpression is written wherever it is used, so text can be exponentially longer than its
// expression; nobody reads further than this.
constexpr size_t kMaxLength = size_t{1} << 24;

enum class Style : uint8_t {
  kSympy,
  kGuard,      // Python, with symbols by their sources
  kCanonical,  // SymPy's, with < and <= only
};

// The first argument source that has the value; else the name.
std::string source_of(const Expr* symbol) {
  if (const Symbol* live = symbol->env()->symbol_of(symbol))
    for (const Source& source : live->sources)
      if (source.is_argument()) return source.guard_text();
  return symbol_name(symbol);
}

class Printer {
 public:
  explicit Printer(const Expr* root, Style style = Style::kSympy) : style_(style), order_(root) {
    stack_.push_back({.power = power_of(root)});
  }

  std::string run() {
    while (!stack_.empty()) {
      Piece piece = std::move(stack_.back());
      stack_.pop_back();
      if (out_.size() > kMaxLength) return out_ + "...";
      if (!piece.power.base) out_ += piece.text;
      else expand(piece);
    }
    return std::move(out_);
  }

 private:
  // A text, or an expression that is still to be written at a level.
  struct Piece {
    std::string text = {};
    Power power = {nullptr};
    int level = kLevelNone;
  };
  using Pieces = std::vector<Piece>;

  static Piece text(std::string s) { return {.text = std::move(s)}; }
  static Piece item(const Power& power, int level) { return {.power = power, .level = level}; }
  static Piece item(const Expr* expr, int level) { return item(power_of(expr), level); }

  void expand(const Piece& piece) {
    Pieces pieces = spell(piece.power);
    if (precedence(piece.power) <= piece.level && !has_own_parentheses(piece.power)) {
      pieces.insert(pieces.begin(), text("("));
      pieces.push_back(text(")"));
    }
    std::move(pieces.rbegin(), pieces.rend(), std::back_inserter(stack_));
  }

  static bool is_sum(const Expr* e) { return e->kind() == Kind::kAdd || e->kind() == Kind::kFloatAdd; }

  static int precedence(const Power& power) {
    if (power.coefficient < 0) return kPrecedenceAdd;
    if (power.coefficient != 1) return kPrecedenceMul;
    return power.exponent != 1 ? kPrecedencePow : precedence(power.base);
  }

  static int precedence(const Expr* e) {
    switch (e->kind()) {
      case Kind::kConstant: {
        bool negative = e->type() == Type::kFloat ? e->float_value() < 0 : e->value() < 0;
        return negative ? kPrecedenceAdd : kPrecedenceAtom;
      }
      case Kind::kSymbol:
      case Kind::kMin:
      case Kind::kMax:
      case Kind::kFloatMin:
      case Kind::kFloatMax:
        return kPrecedenceAtom;
      case Kind::kAdd:
      case Kind::kFloatAdd:
        return kPrecedenceAdd;
      case Kind::kMul:
      case Kind::kFloatMul:
      case Kind::kPow:
      case Kind::kEq:
      case Kind::kNe:
        return kPrecedenceMul;
      case Kind::kFloatPow:
        return kPrecedencePow;
      case Kind::kAnd:
        return kPrecedenceAnd;
      case Kind::kOr:
        return kPrecedenceOr;
      case Kind::kNot:
        return kPrecedenceNot;
      case Kind::kFloorDiv:
      case Kind::kMod:
      case Kind::kWhere:
      case Kind::kIntTrueDiv:
      case Kind::kFloatTrueDiv:
      case Kind::kLt:
      case Kind::kLe:
        return kPrecedenceLow;
      default:
        return kPrecedenceFunction;
    }
  }

  Pieces spell(const Power& power) const {
    if (power.coefficient != 1) return spell_product(power);
    if (power.exponent != 1)
      return {item(Power{power.base}, kPrecedencePow), text(fmt::format("**{}", power.exponent))};
    const Expr* e = power.base;
    switch (e->kind()) {
      case Kind::kConstant:
        return {text(constant_text(e))};
      case Kind::kSymbol:
        return {text(is_guard() ? source_of(e) : symbol_name(e))};
      case Kind::kAdd:
        return spell_sum(order_.parts(e));
      case Kind::kMul:
        return spell_product(power);
      case Kind::kFloorDiv:
        return spell_division(e, is_guard() ? " // " : "//");
      case Kind::kMod:
        return is_guard() ? spell_division(e, " % ") : spell_call(e);
      case Kind::kEq:
      case Kind::kNe:
      case Kind::kLt:
      case Kind::kLe:
        return spell_comparison(e);
      case Kind::kAnd:
        return join(order_.parts(e), is_guard() ? " and " : " & ", junction_level());
      case Kind::kOr:
        return join(order_.parts(e), is_guard() ? " or " : " | ", junction_level());
      case Kind::kNot:
        return {text(is_guard() ? "not " : "~"), item(e->arg(0), kPrecedenceNot)};
      case Kind::kFloatAdd:
        return spell_float_sum(e);
      case Kind::kFloatMul:
        return spell_float_product(e);
      default:
        return spell_call(e);
    }
  }

  static std::string constant_text(const Expr* e) {
    if (e->type() == Type::kFloat) return real_text(e->float_value());
    if (e->type() == Type::kBool) return e->value() ? "True" : "False";
    return std::to_string(e->value());
  }

  Pieces join(const std::vector<Power>& parts, std::string_view separator, int level) const {
    Pieces pieces;
    for (const Power& part : parts) {
      if (!pieces.empty()) pieces.push_back(text(std::string(separator)));
      pieces.push_back(item(part, level));
    }
    return pieces;
  }

  static Pieces spell_division(const Expr* e, std::string sign) {
    return {text("("), item(e->arg(0), kLevelDivision), text(std::move(sign)),
            item(e->arg(1), kLevelDivision), text(")")};
  }

  Pieces spell_call(const Expr* e) const {
    Pieces pieces = join(order_.parts(e), ", ", kLevelNone);
    pieces.insert(pieces.begin(), text(fmt::format("{}(", class_name(e))));
    pieces.push_back(text(")"));
    return pieces;
  }

  // "-2*s0*s1": the sign, the number, the factors.
  Pieces spell_product(const Power& power) const {
    Pieces pieces;
    int level = power.coefficient < 0 ? kPrecedenceAdd : kPrecedenceMul;
    std::string number = std::to_string(power.coefficient);
    if (power.coefficient == -1) pieces.push_back(text("-"));
    if (power.coefficient != 1 && power.coefficient != -1) pieces.push_back(text(number + "*"));
    if (power.base->kind() != Kind::kMul || power.exponent != 1) {
      pieces.push_back(item(Power{power.base, power.exponent}, level));
      return pieces;
    }
    Pieces factors = join(order_.parts(power.base), "*", level);
    std::move(factors.begin(), factors.end(), std::back_inserter(pieces));
    return pieces;
  }

  Pieces spell_sum(const std::vector<Power>& terms) const {
    Pieces pieces;
    for (Power term : terms) {
      bool is_constant = term.base->is_constant();
      bool negative = is_constant ? term.base->value() < 0 : term.coefficient < 0;
      if (!pieces.empty()) pieces.push_back(text(negative ? " - " : " + "));
      if (is_constant) {
        std::string number = std::to_string(term.base->value());
        pieces.push_back(text(negative && !pieces.empty() ? number.substr(1) : number));
        continue;
      }
      if (negative && !pieces.empty() && term.coefficient != INT64_MIN) {
        int level = kPrecedenceAdd;  // SymPy decides on parentheses before it takes the sign out
        term.coefficient = -term.coefficient;
        push_positive(pieces, term, level);
      } else {
        pieces.push_back(item(term, negative ? kLevelNone : kLevelTerm));
      }
    }
    return pieces;
  }

  // The rest of a negative term after its sign.
  void push_positive(Pieces& pieces, const Power& term, int level) const {
    if (term.coefficient != 1) pieces.push_back(text(std::to_string(term.coefficient) + "*"));
    if (term.base->kind() == Kind::kMul && term.exponent == 1) {
      Pieces factors = join(order_.parts(term.base), "*", level);
      std::move(factors.begin(), factors.end(), std::back_inserter(pieces));
    } else {
      pieces.push_back(item(Power{term.base, term.exponent}, level));
    }
  }

  Pieces spell_comparison(const Expr* e) const {
    bool is_float = e->args().size() == 2;
    Sides sides = is_float ? Sides{e->kind(), false, e->arg(0), e->arg(1)} : order_.sides(e);
    // A float constant stands on the right.
    if (is_float && sides.left->is_constant()) {
      std::swap(sides.left, sides.right);
      sides.is_flipped = true;
    }
    bool is_equality = e->kind() == Kind::kEq || e->kind() == Kind::kNe;
    if (is_equality && is_guard())
      return {item(sides.left, kPrecedenceLow), text(e->kind() == Kind::kEq ? " == " : " != "),
              item(sides.right, kPrecedenceLow)};
    if (is_equality)
      return {text(e->kind() == Kind::kEq ? "Eq(" : "Ne("), item(sides.left, kLevelNone), text(", "),
              item(sides.right, kLevelNone), text(")")};
    if (style_ == Style::kCanonical && std::exchange(sides.is_flipped, false))
      std::swap(sides.left, sides.right);
    std::string sign = sides.is_flipped ? " >" : " <";
    sign += e->kind() == Kind::kLe ? "= " : " ";
    return {item(sides.left, kPrecedenceLow), text(sign), item(sides.right, kPrecedenceLow)};
  }

  // x for -1.0 * x; null otherwise.
  static const Expr* negated(const Expr* e) {
    if (e->kind() != Kind::kFloatMul) return nullptr;
    for (int i : {0, 1})
      if (e->arg(i)->is_constant() && e->arg(i)->float_value() == -1.0) return e->arg(1 - i);
    return nullptr;
  }

  static Pieces spell_float_sum(const Expr* e) {
    const Expr *a = e->arg(0), *b = e->arg(1);
    if (a->is_constant() || (negated(a) && !negated(b) && !b->is_constant())) std::swap(a, b);
    if (const Expr* x = negated(b)) return {item(a, kLevelTerm), text(" - "), item(x, kPrecedenceMul)};
    if (b->is_constant() && b->float_value() < 0)
      return {item(a, kLevelTerm), text(" - " + real_text(-b->float_value()))};
    return {item(a, kLevelTerm), text(" + "), item(b, is_sum(b) ? kPrecedenceAdd : kLevelTerm)};
  }

  static Pieces spell_float_product(const Expr* e) {
    if (const Expr* x = negated(e)) return {text("-"), item(x, kPrecedenceMul)};
    const Expr *a = e->arg(0), *b = e->arg(1);
    if (b->is_constant()) std::swap(a, b);
    return {item(a, a->is_constant() ? kLevelNone : kPrecedenceMul), text("*"), item(b, kPrecedenceMul)};
  }

  // SymPy, which does not know that a division brings its own, adds a pair.
  bool has_own_parentheses(const Power& power) const {
    bool is_division = power.base->kind() == Kind::kFloorDiv || power.base->kind() == Kind::kMod;
    return is_guard() && is_division && power.exponent == 1 && power.coefficient == 1;
  }
  bool is_guard() const { return style_ == Style::kGuard; }
  // Python's comparisons need no parentheses between `and`.
  int junction_level() const { return is_guard() ? kPrecedenceLow - 1 : kLevelJunction; }

  Style style_;
  SympyOrder order_;
  std::vector<Piece> stack_;
  std::string out_;
};

}  // namespace

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-oo" : "oo";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

const std::string& symbol_name(const Expr* symbol) {
  const Symbol* live = symbol->env()->symbol_of(symbol);
  return live ? live->name : symbol->pool()->forgotten_names.at(symbol);
}

std::string Expr::to_string() const { return Printer(this).run(); }

std::string canonical_text(const Expr* expr) { return Printer(expr, Style::kCanonical).run(); }

std::string source_text(const Expr* expr) { return Printer(expr, Style::kGuard).run(); }

}  // namespace weft::sym
