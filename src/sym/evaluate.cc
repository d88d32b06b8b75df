#include <cmath>

#include "sym/analysis.h"
#include "weft/sym/shape_env.h"

namespace weft {
namespace sym {
namespace {

using Wide = __int128;

std::optional<Number> narrow(Wide value) {
  if (value < INT64_MIN || value > INT64_MAX) return std::nullopt;
  return Number(static_cast<int64_t>(value));
}

int64_t integer(const Number& value) { return std::get<int64_t>(value); }
double real(const Number& value) { return std::get<double>(value); }
bool truth(const Number& value) { return std::get<bool>(value); }

// Wide values stay below 2^126 when both factors fit into 63 bits: multiply only values that were narrowed.
std::optional<Number> raise(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  if (exponent == 0 || base == 1) return Number(int64_t{1});
  if (base == 0) return Number(int64_t{0});
  if (base == -1) return Number(int64_t{exponent % 2 == 0 ? 1 : -1});
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) return std::nullopt;
  return Number(result);
}

std::optional<Number> add(const Expr& expr, const std::vector<Number>& args) {
  // Each product is below 2^126, and saturation is caught per term: partial sums may pass int64 and return.
  Wide sum = expr.value();
  for (size_t i = 0; i < args.size(); ++i)
    if (__builtin_add_overflow(sum, static_cast<Wide>(expr.coefficients()[i]) * integer(args[i]), &sum))
      return std::nullopt;
  return narrow(sum);
}

std::optional<Number> multiply_values(const Expr& expr, const std::vector<Number>& args) {
  int64_t product = 1;
  for (size_t i = 0; i < args.size(); ++i) {
    std::optional<Number> factor = raise(integer(args[i]), expr.coefficients()[i]);
    if (!factor || __builtin_mul_overflow(product, integer(*factor), &product)) return std::nullopt;
  }
  return Number(product);
}

std::optional<Number> divide(int64_t a, int64_t b, bool remainder) {
  if (b == 0) return std::nullopt;
  if (b == -1) return remainder ? Number(int64_t{0}) : narrow(-static_cast<Wide>(a));
  int64_t rest = a % b, quotient = a / b;
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b, --quotient;
  return Number(remainder ? rest : quotient);
}

std::optional<Number> to_integer(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return std::nullopt;
  return Number(static_cast<int64_t>(value));
}

template <typename T>
bool compare(Kind kind, T a, T b) {
  switch (kind) {
    case Kind::kEq:
      return a == b;
    case Kind::kNe:
      return a != b;
    case Kind::kLt:
      return a < b;
    default:
      return a <= b;
  }
}

std::optional<Number> apply_bool(const Expr& expr, const std::vector<Number>& args) {
  switch (expr.kind()) {
    case Kind::kAnd:
      return std::ranges::all_of(args, truth);
    case Kind::kOr:
      return std::ranges::any_of(args, truth);
    case Kind::kNot:
      return !truth(args[0]);
    case Kind::kHeld:
      return truth(args[0]);
    default:
      if (args.size() == 2) return compare(expr.kind(), real(args[0]), real(args[1]));
      return compare(expr.kind(), integer(args[0]), int64_t{0});
  }
}

std::optional<Number> apply_float(const Expr& expr, const std::vector<Number>& args) {
  switch (expr.kind()) {
    case Kind::kToFloat:
      return static_cast<double>(integer(args[0]));
    case Kind::kIntTrueDiv:
      if (integer(args[1]) == 0) return std::nullopt;
      return static_cast<double>(integer(args[0])) / static_cast<double>(integer(args[1]));
    case Kind::kFloatAdd:
      return real(args[0]) + real(args[1]);
    case Kind::kFloatMul:
      return real(args[0]) * real(args[1]);
    case Kind::kFloatTrueDiv:
      return real(args[0]) / real(args[1]);
    case Kind::kFloatPow:
      return std::pow(real(args[0]), real(args[1]));
    case Kind::kFloatMin:
      return real(args[1]) < real(args[0]) ? args[1] : args[0];
    case Kind::kFloatMax:
      return real(args[0]) < real(args[1]) ? args[1] : args[0];
    default:
      return std::sqrt(real(args[0]));
  }
}

std::optional<Number> apply_int(const Expr& expr, const std::vector<Number>& args) {
  switch (expr.kind()) {
    case Kind::kAdd:
      return add(expr, args);
    case Kind::kMul:
      return multiply_values(expr, args);
    case Kind::kFloorDiv:
    case Kind::kMod:
      return divide(integer(args[0]), integer(args[1]), expr.kind() == Kind::kMod);
    case Kind::kMin:
      return *std::ranges::min_element(args);
    case Kind::kMax:
      return *std::ranges::max_element(args);
    case Kind::kPow:
      return raise(integer(args[0]), integer(args[1]));
    case Kind::kWhere:
      return truth(args[0]) ? args[1] : args[2];
    case Kind::kFloorToInt:
      return to_integer(std::floor(real(args[0])));
    case Kind::kCeilToInt:
      return to_integer(std::ceil(real(args[0])));
    case Kind::kTruncToInt:
      return to_integer(std::trunc(real(args[0])));
    default:
      return to_integer(std::nearbyint(real(args[0])));
  }
}

}  // namespace

std::optional<Number> apply_operation(const Expr& expr, const std::vector<Number>& args) {
  if (expr.is_constant()) {
    if (expr.type() == Type::kFloat) return expr.float_value();
    if (expr.type() == Type::kBool) return expr.value() != 0;
    return expr.value();
  }
  if (expr.type() == Type::kInt) return apply_int(expr, args);
  return expr.type() == Type::kBool ? apply_bool(expr, args) : apply_float(expr, args);
}

std::optional<Number> current_hint(ExprPool& pool, const Expr* expr) {
  auto is_current = [&](const Expr* e) {
    return pool.state(e).hint_epoch == pool.hint_epoch || e->is_symbol();
  };
  // Until a hint changes, the value found when the node was made is the current one.
  if (pool.hint_epoch == 1) return pool.state(expr).hint;
  visit_post_order(expr, is_current, [&](const Expr* e) {
    ExprPool::State& own = pool.state(e);
    own.hint =
        fold(*e, [&](const Expr* arg) -> const std::optional<Number>& { return pool.state(arg).hint; });
    own.hint_epoch = pool.hint_epoch;
  });
  return pool.state(expr).hint;
}

}  // namespace sym

std::optional<sym::Number> ShapeEnv::hint(const sym::Expr* expr) const {
  return sym::current_hint(*pool_, expr);
}

std::optional<sym::Number> ShapeEnv::evaluate(const sym::Expr* expr, const sym::Bindings& bindings) const {
  std::unordered_map<const sym::Expr*, std::optional<sym::Number>> values;
  for (const auto& [bound, value] : bindings) values.emplace(bound, value);
  sym::visit_post_order(
      expr, [&](const sym::Expr* e) { return values.contains(e); },
      [&](const sym::Expr* e) {
        auto value = sym::fold(
            *e, [&](const sym::Expr* arg) -> const std::optional<sym::Number>& { return values.at(arg); });
        values.emplace(e, value);
      });
  return values.at(expr);
}

}  // namespace weft
