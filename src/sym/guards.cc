// The four questions: known, guard, guard_or, check.
#include <fmt/format.h>

#include <algorithm>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/open_conditions.h"
#include "weft/sym/shape_env.h"

namespace weft {

using sym::Expr;
using sym::Location;
using sym::Number;
using sym::ValueRange;

constinit thread_local int sym::OpenConditions::depth_ = 0;

namespace {

thread_local int implicit_guards_forbidden = 0;

// The location with its stack trace. The calls are still open when the answer turns out to matter: taking
// it then makes a question that adds nothing cost nothing for its location.
Location with_calls(const Location& where) {
  Location location = where;
  location.trace = StackTrace::capture();
  return location;
}
std::string location_of(const Location& where) { return with_calls(where).to_string(); }

// "u0 (from nonzero(x))": the symbols that `is_meant`.
template <typename IsMeant>
std::string symbols_text(const ShapeEnv& env, const Expr* expr, IsMeant is_meant) {
  std::string text;
  for (const sym::Symbol* symbol : env.free_symbols(expr)) {
    if (!is_meant(*symbol)) continue;
    if (!text.empty()) text += ", ";
    text += symbol->name;
    if (!symbol->sources[0].is_empty()) text += fmt::format(" (from {})", symbol->sources[0].to_string());
  }
  return text;
}

bool is_unbacked(const sym::Symbol& symbol) { return symbol.backing == sym::Backing::kUnbacked; }
bool is_unhinted(const sym::Symbol& symbol) { return !is_unbacked(symbol) && !symbol.hint; }

// Whether an example value is missing that would answer.
bool lacks_hint(const ShapeEnv& env, const Expr* expr) {
  if (env.hint(expr)) return false;
  std::vector<const sym::Symbol*> symbols = env.free_symbols(expr);
  return std::ranges::any_of(symbols, [](const sym::Symbol* symbol) { return is_unhinted(*symbol); });
}

// Why backed symbols leave it open. `rest` says what to do when an example is missing.
[[noreturn]] void fail_unanswered(ShapeEnv& env, const Expr* expr, std::string_view what,
                                  const Location& where, std::string_view rest) {
  std::string text = expr->to_string(), missing = symbols_text(env, expr, is_unhinted);
  if (missing.empty())
    fail(
        "cannot {} at {}: it has no value at the example sizes (division by zero or overflow); check its "
        "divisors first",
        fmt::format(fmt::runtime(what), text), location_of(where));
  fail("cannot {} at {}: only an example value could tell, and {} has none. Give it one by set_hint, {}",
       fmt::format(fmt::runtime(what), text), location_of(where), missing,
       fmt::format(fmt::runtime(rest), text));
}

[[noreturn]] void fail_undecided(ShapeEnv& env, const Expr* condition, const Location& where) {
  if (!condition->has_unbacked())
    fail_unanswered(env, condition, "decide {}", where, "or write check({}) before this line");
  std::string text = condition->to_string();
  throw DataDependentError(fmt::format(
      "Could not guard on data-dependent expression {}, at {}: {} is only known at run time. (Tried to use "
      "data-dependent value in the subsequent computation.) If it always holds, write check({}) before this "
      "line; if it never does, check({}); to go on without knowing, ask guard_or(..., otherwise)",
      text, location_of(where), symbols_text(env, condition, is_unbacked), text,
      sym::logical_not(env.pool(), condition)->to_string()));
}

[[noreturn]] void fail_no_number(ShapeEnv& env, const Expr* expr, const Location& where) {
  if (!expr->has_unbacked())
    fail_unanswered(env, expr, "turn {} into a number", where,
                    "or write check(Eq({}, value)) before this line");
  std::string text = expr->to_string();
  std::string_view kind = expr->type() == sym::Type::kInt ? "SymInt" : "SymFloat";
  throw DataDependentError(
      fmt::format("Could not use data-dependent expression as a number: cannot turn {} into a number at {}: "
                  "{} is only known "
                  "at run time. (Tried to use data-dependent value in the subsequent computation.) Keep it a "
                  "{}, or, if it "
                  "always has one value, write check(Eq({}, value)) before this line",
                  text, location_of(where), symbols_text(env, expr, is_unbacked), kind, text));
}

void refuse_if_forbidden(const Expr* expr) {
  if (expr->env() == nullptr) return;
  if (implicit_guards_forbidden != 0)
    invariant(false,
              "{} is used as a plain value where implicit guards are forbidden; ask known, guard, guard_or "
              "or check",
              expr->to_string());
}

}  // namespace

SymBool sym::Guard::as_bool() const { return SymBool::from_expr(held(*condition->pool(), condition)); }

std::optional<bool> ShapeEnv::decide(const Expr* condition) {
  const Expr* simple = simplify(condition);
  if (simple->is_constant()) return simple->value() != 0;
  ValueRange range = sym::current_range(*pool_, simple);
  if (range.is_point()) return range.lo != 0;
  return std::nullopt;
}

std::optional<int64_t> ShapeEnv::constant_value(const Expr* expr) {
  const Expr* simple = simplify(expr);
  if (simple->is_constant()) return simple->value();
  ValueRange range = sym::known_range(*pool_, simple);
  if (range.is_point()) return range.lo;
  return std::nullopt;
}

std::optional<bool> ShapeEnv::decide_with_sizes_at_least_two(const Expr* condition) {
  std::unordered_map<const Expr*, ValueRange> ranges;
  auto range_of = [&](const Expr* e) {
    const sym::Symbol* symbol = symbol_of(e);
    if (!symbol) return sym::propagate(*e, [&](const Expr* arg) { return ranges.at(arg); });
    ValueRange larger = sym::intersect(symbol->range, {2, ValueRange::kInf});
    return symbol->size_like && !larger.is_empty() ? larger : symbol->range;
  };
  sym::visit_post_order(
      condition, [&](const Expr* e) { return ranges.contains(e); },
      [&](const Expr* e) { ranges.emplace(e, range_of(e)); });
  ValueRange truth = ranges.at(condition);
  if (truth.is_point()) return truth.lo != 0;
  // Max(1, u0) is u0 then: what remains may be decided by its form, as u0 == Max(1, u0) is.
  std::unordered_map<const Expr*, const Expr*> largest;
  for (const auto& [expr, range] : ranges) {
    if (expr->kind() != sym::Kind::kMax) continue;
    for (const Expr* arg : expr->args()) {
      auto is_below = [&](const Expr* other) {
        return other == arg || ranges.at(other).hi <= ranges.at(arg).lo;
      };
      if (std::all_of(expr->args().begin(), expr->args().end(), is_below)) largest[expr] = arg;
    }
  }
  return largest.empty() ? std::nullopt : decide(substitute(condition, largest));
}

void ShapeEnv::record(const Expr* condition, std::string_view message, const Location& where) {
  if (frozen_)
    fail(
        "{} is asked at {}, but the sizes of this program are final and it would need the new guard {}; "
        "ask before the capture ends",
        condition->to_string(), location_of(where), condition->to_string());
  // A condition that was taken from a guard is known, though it does not say so.
  if (const Expr* released = sym::released(*pool_, condition); released != condition) {
    condition = released;
    if (decide(condition) == true) return;
  }
  bool is_asserted = condition->has_unbacked() || (is_deferred_ && is_deferred_(condition));
  auto& list = is_asserted ? runtime_asserts_ : guards_;
  list.push_back({condition, with_calls(where), std::string(message)});
  learn(condition);
}

bool ShapeEnv::guard_bool(const Expr* condition, const Location& where) {
  if (std::optional<bool> answer = decide(condition)) return *answer;
  const Expr* simple = simplify(condition);
  std::optional<Number> value = hint(simple);
  if (!value) fail_undecided(*this, simple, where);
  bool answer = std::get<bool>(*value);
  if (options_.record_guards) record(answer ? simple : sym::logical_not(*pool_, simple), {}, where);
  return answer;
}

bool ShapeEnv::guard_bool_or(const Expr* condition, bool otherwise, const Location& where) {
  if (std::optional<bool> answer = decide(condition)) return *answer;
  const Expr* simple = simplify(condition);
  if (!simple->has_unbacked() && !lacks_hint(*this, simple)) return guard_bool(simple, where);
  return decide_with_sizes_at_least_two(simple).value_or(otherwise);
}

int64_t ShapeEnv::guard_int(const Expr* expr, const Location& where) {
  if (std::optional<int64_t> value = constant_value(expr)) return *value;
  const Expr* simple = simplify(expr);
  std::optional<Number> value = hint(simple);
  if (!value) fail_no_number(*this, simple, where);
  int64_t number = std::get<int64_t>(*value);
  if (options_.record_guards)
    record(sym::compare(*pool_, sym::Kind::kEq, simple, pool_->constant(number)), {}, where);
  return number;
}

double ShapeEnv::guard_float(const Expr* expr, const Location& where) {
  const Expr* simple = simplify(expr);
  if (simple->is_constant()) return simple->float_value();
  std::optional<Number> value = hint(simple);
  if (!value) fail_no_number(*this, simple, where);
  double number = std::get<double>(*value);
  const Expr* equal = sym::float_compare(*pool_, sym::Kind::kEq, simple, pool_->real(number));
  // NaN equals nothing, itself included: such a value cannot be guarded by equality.
  if (options_.record_guards && number == number && !decide(equal)) record(equal, {}, where);
  return number;
}

void ShapeEnv::check(const Expr* condition, std::string_view message, const Location& where) {
  const Expr* simple = simplify(condition);
  std::optional<bool> answer = decide(simple);
  std::optional<Number> value = hint(simple);
  if (!answer && value && !std::get<bool>(*value)) answer = false;
  if (answer == false) {
    std::string_view separator = message.empty() ? "" : ": ";
    fail("{}{}{} does not hold at {}; it is required there", message, separator, condition->to_string(),
         location_of(where));
  }
  if (answer || !options_.record_guards) return;
  if (!value && !simple->has_unbacked() && !lacks_hint(*this, simple)) fail_undecided(*this, simple, where);
  record(simple, message, where);
}

bool known_symbolic(const SymBool& condition) { return condition.env()->decide(condition.expr()) == true; }

bool guard_symbolic(const SymBool& condition, const std::source_location& where) {
  return condition.env()->guard_bool(condition.expr(), where);
}

bool guard_or_symbolic(const SymBool& condition, bool otherwise, const std::source_location& where) {
  return condition.env()->guard_bool_or(condition.expr(), otherwise, where);
}

void check_symbolic(const SymBool& condition, std::string_view message, const std::source_location& where) {
  if (condition.is_symbolic()) return condition.env()->check(condition.expr(), message, where);
  if (message.empty())
    message = "Expected cond to be True, but got False: a required condition does not hold";
  throw UserError(std::string(message), where);
}

int64_t guard_int_symbolic(const SymInt& value, const std::source_location& where) {
  if (!value.env()) return value.expr()->value();
  return value.env()->guard_int(value.expr(), where);
}

void check_size_like(const SymInt& value, std::source_location where) {
  if (!value.env()) return check(value >= 0, "a size must be at least 0", where);
  check(value >= 0, {}, where);
  const Expr* expr = value.env()->simplify(value.expr());
  if (expr->is_symbol() && expr->has_unbacked()) value.env()->mark_size_like(expr);
}

int64_t sym::detail::implicit_int(const Expr* expr) {
  if (!expr->env()) return expr->value();
  refuse_if_forbidden(expr);
  return expr->env()->guard_int(expr, Location());
}

bool sym::detail::implicit_bool(const Expr* expr) {
  refuse_if_forbidden(expr);
  return expr->env()->guard_bool(expr, Location());
}

double sym::detail::implicit_double(const Expr* expr) {
  refuse_if_forbidden(expr);
  return expr->env()->guard_float(expr, Location());
}

ForbidImplicitGuards::ForbidImplicitGuards() { ++implicit_guards_forbidden; }
ForbidImplicitGuards::~ForbidImplicitGuards() { --implicit_guards_forbidden; }

}  // namespace weft
