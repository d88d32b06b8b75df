// SymPy's constructor spelling.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sym/print.h"
#include "weft/sym/text.h"

namespace weft::sym {
namespace {

class ReprPrinter {
 public:
  explicit ReprPrinter(const Expr* root) : order_(root) { push(power_of(root)); }

  std::string run() {
    while (!stack_.empty()) {
      Piece piece = std::move(stack_.back());
      stack_.pop_back();
      if (piece.power.base) expand(piece.power);
      else out_ += piece.text;
    }
    return std::move(out_);
  }

 private:
  // A text, or an expression that is still to be written.
  struct Piece {
    std::string text;
    Power power;
  };

  void push(std::string text) { stack_.push_back({std::move(text), {nullptr}}); }
  void push(const Power& power) { stack_.push_back({{}, power}); }

  static std::string integer_text(int64_t value) { return fmt::format("Integer({})", value); }

  // "name(first, args...)"; what is pushed last comes first.
  void call(std::string_view name, std::string first, const std::vector<Power>& args) {
    push(")");
    for (size_t i = args.size(); i-- > 0;) {
      push(args[i]);
      if (i > 0 || !first.empty()) push(", ");
    }
    push(fmt::format("{}({}", name, first));
  }

  void expand(const Power& power) {
    const Expr* e = power.base;
    if (power.coefficient != 1) {
      bool is_product = e->kind() == Kind::kMul && power.exponent == 1;
      std::vector<Power> factors = is_product ? order_.parts(e) : std::vector<Power>{{e, power.exponent}};
      return call("Mul", integer_text(power.coefficient), factors);
    }
    if (power.exponent != 1) {
      push(fmt::format(", {})", integer_text(power.exponent)));
      push(Power{e});
      return push("Pow(");
    }
    if (e->args().empty()) return push(leaf_text(e));
    if (e->is_comparison()) return relation(e);
    call(name_of(e), {}, order_.parts(e));
  }

  static std::string_view name_of(const Expr* e) {
    switch (e->kind()) {
      case Kind::kAdd:
      case Kind::kFloatAdd:
        return "Add";
      case Kind::kMul:
      case Kind::kFloatMul:
        return "Mul";
      default:
        return class_name(e);
    }
  }

  void relation(const Expr* e) {
    if (e->args().size() == 2) return call(class_name(e), {}, {power_of(e->arg(0)), power_of(e->arg(1))});
    const Sides& sides = order_.sides(e);
    std::string_view name = class_name(e);
    if (sides.is_flipped && e->kind() == Kind::kLt) name = "StrictGreaterThan";
    if (sides.is_flipped && e->kind() == Kind::kLe) name = "GreaterThan";
    call(name, {}, {power_of(sides.left), power_of(sides.right)});
  }

  static std::string leaf_text(const Expr* e) {
    if (e->is_symbol()) return symbol_text(e);
    if (e->type() == Type::kBool) return e->value() ? "true" : "false";
    if (e->type() == Type::kInt) return integer_text(e->value());
    double value = e->float_value();
    return std::isfinite(value) ? fmt::format("Float('{}', precision=53)", real_text(value))
                                : real_text(value);
  }

  static std::string symbol_text(const Expr* e) {
    const Symbol* symbol = e->env()->symbol_of(e);
    if (e->type() == Type::kFloat) return fmt::format("Symbol('{}', real=True)", symbol_name(e));
    return fmt::format("Symbol('{}', {}integer=True)", symbol_name(e),
                       symbol && symbol->is_size ? "positive=True, " : "");
  }

  SympyOrder order_;
  std::vector<Piece> stack_;
  std::string out_;
};

}  // namespace

std::string srepr(const Expr* expr) { return ReprPrinter(expr).run(); }

}  // namespace weft::sym
