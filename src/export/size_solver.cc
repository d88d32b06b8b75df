#include "export/size_solver.h"

#include <algorithm>
#include <numeric>

#include "sym/analysis.h"
#include "sym/build.h"
#include "sym/polynomial.h"
#include "weft/base/error.h"

namespace weft {

using sym::Expr;
using sym::Kind;
using sym::Polynomial;
using sym::Term;
using sym::ValueRange;

namespace {

bool is_linear(const Polynomial& p) {
  return std::ranges::all_of(p.terms, [](const Term& term) { return term.monomial->is_symbol(); });
}
bool has_unit(const Polynomial& p) {
  return std::ranges::any_of(p.terms, [](const Term& term) {
    return term.monomial->is_symbol() && std::abs(term.coefficient) == 1;
  });
}
bool is_integer_comparison(const Expr* condition) {
  return condition->is_comparison() && condition->args().size() == 1;
}

// scale * symbol <= bound, or below it: the term of the symbol.
std::optional<Term> bounded_term(const Expr* condition) {
  if (condition->kind() != Kind::kLt && condition->kind() != Kind::kLe) return {};
  if (!is_integer_comparison(condition)) return {};
  const Polynomial p = sym::polynomial_of(condition->arg(0));
  return is_linear(p) && p.terms.size() == 1 ? std::optional<Term>(p.terms[0]) : std::nullopt;
}

// Mod(scale * symbol + offset, modulus) == remainder.
struct RemainderOf {
  const Expr* symbol;
  int64_t scale, offset, modulus, remainder;
};
std::optional<RemainderOf> as_remainder(const Expr* condition) {
  if (condition->kind() != Kind::kEq || !is_integer_comparison(condition)) return {};
  const Polynomial p = sym::polynomial_of(condition->arg(0));
  if (p.terms.size() != 1 || std::abs(p.terms[0].coefficient) != 1) return {};
  const Expr* atom = p.terms[0].monomial;
  if (atom->kind() != Kind::kMod || !atom->arg(1)->is_constant()) return {};
  const Polynomial inner = sym::polynomial_of(atom->arg(0));
  if (inner.terms.size() != 1 || !inner.terms[0].monomial->is_symbol()) return {};
  return RemainderOf{inner.terms[0].monomial, inner.terms[0].coefficient, inner.constant,
                     atom->arg(1)->value(), -p.constant * p.terms[0].coefficient};
}

// What a size is divided by, anywhere in the expression.
void collect_divisors(const Expr* root, std::vector<const Expr*>& divisors) {
  std::vector<const Expr*> open = {root};
  while (!open.empty()) {
    const Expr* expr = open.back();
    open.pop_back();
    const bool divides = expr->kind() == Kind::kMod || expr->kind() == Kind::kFloorDiv;
    if (divides) divisors.push_back(expr->arg(1));
    open.insert(open.end(), expr->args().begin(), expr->args().end());
  }
}

// Beyond it nothing is tried: a period, a bound that is looked for by trying, values of a size.
constexpr int64_t kFurthest = int64_t{1} << 20, kLongestPeriod = 4096, kMostValues = 4096;

// Beyond it, in both directions, a comparison of a polynomial of one symbol with 0 is what it is at it: there
// are no roots (Cauchy's bound).
std::optional<int64_t> root_bound(const Expr* condition) {
  if (!is_integer_comparison(condition)) return {};
  int64_t degree = 0, first = 1, largest = 0;
  const Polynomial p = sym::polynomial_of(condition->arg(0));
  largest = std::abs(p.constant);
  for (const Term& term : p.terms) {
    const Expr* monomial = term.monomial;
    const bool is_power =
        monomial->kind() == Kind::kMul && monomial->args().size() == 1 && monomial->arg(0)->is_symbol();
    if (!monomial->is_symbol() && !is_power) return {};
    const int64_t power = is_power ? monomial->coefficients()[0] : 1;
    if (power > degree) degree = power, first = std::abs(term.coefficient);
    largest = std::max(largest, std::abs(term.coefficient));
  }
  return 2 + largest / first;
}

}  // namespace

bool is_expressible(const Expr* condition) {
  if (condition->is_constant()) return true;
  if (condition->kind() == Kind::kAnd)
    return std::ranges::all_of(condition->args(), [](const Expr* arg) { return is_expressible(arg); });
  if (!is_integer_comparison(condition)) return false;
  const Polynomial p = sym::polynomial_of(condition->arg(0));
  if (condition->kind() == Kind::kEq) return (is_linear(p) && has_unit(p)) || as_remainder(condition);
  return condition->kind() != Kind::kNe && is_linear(p) && p.terms.size() == 1;
}

bool SizeSolver::Size::is_forced() const {
  return std::ranges::any_of(causes, [](const Cause& cause) { return cause.is_forced; });
}

SizeSolver::SizeSolver(ShapeEnv& env, std::vector<Unknown> unknowns, std::vector<const Expr*> conditions)
    : env_(env), own_(ShapeEnv::create(env.options())) {
  for (const auto& [expr, declared] : unknowns) {
    const sym::Symbol& symbol = *env.symbol_of(expr);
    symbols_.push_back(expr);
    declared_.push_back(declared);
    own_symbols_.push_back(own_->add_symbol({.name = symbol.name,
                                             .hint = symbol.hint,
                                             .declared = declared,
                                             .is_size = symbol.is_size,
                                             .sources = symbol.sources}));
  }
  for (const Expr* condition : conditions) conditions_.push_back(copied(condition));
}

// The same expression over the own symbols; others stand for their examples.
const Expr* SizeSolver::copied(const Expr* expr) {
  std::unordered_map<const Expr*, const Expr*> done;
  for (size_t i = 0; i < symbols_.size(); ++i) done.emplace(symbols_[i], own_symbols_[i]);
  std::vector<const Expr*> args;
  sym::visit_post_order(
      expr, [&](const Expr* e) { return done.contains(e); },
      [&](const Expr* e) {
        args.clear();
        for (const Expr* arg : e->args()) args.push_back(done.at(arg));
        sym::ExprPool& pool = own_->pool();
        if (e->is_symbol()) {
          const std::optional<sym::Number> hint = env_.hint(e);
          const int64_t* value = hint ? std::get_if<int64_t>(&*hint) : nullptr;
          require(value != nullptr, "a condition on sizes depends on '{}', which has no example",
                  e->to_string());
          done.emplace(e, own_->constant(*value));
        } else if (e->is_constant()) {
          done.emplace(e, e->type() == sym::Type::kFloat  ? pool.real(e->float_value())
                          : e->type() == sym::Type::kBool ? pool.boolean(e->value() != 0)
                                                          : own_->constant(e->value()));
        } else {
          done.emplace(e, sym::rebuild(pool, e, args));
        }
      });
  return sym::released(own_->pool(), done.at(expr));
}

int64_t SizeSolver::example(const Expr* symbol) const { return std::get<int64_t>(*own_->hint(symbol)); }

std::vector<const Expr*> SizeSolver::symbols_in(const Expr* expr) const {
  std::vector<const Expr*> all;
  for (const sym::Symbol* symbol : own_->free_symbols(expr)) all.push_back(symbol->expr);
  return all;
}

bool SizeSolver::holds(const Expr* expr, int64_t value, const Expr* symbol) const {
  const std::optional<sym::Number> truth = own_->evaluate(expr, {{symbol, value}});
  return truth && std::get<bool>(*truth);
}

// The values that a size may have: between `lo` and `hi`, `step` apart; without a limit where the range has
// none.
SizeSolver::Values SizeSolver::values_of(const Expr* symbol) const {
  const ValueRange range = own_->range(symbol);
  Values values{range.lo, range.hi, 1};
  const auto known = congruences_.find(symbol);
  if (known == congruences_.end()) return values;
  const auto [modulus, remainder] = known->second;
  values.step = modulus;
  if (values.lo != ValueRange::kNegInf) values.lo += sym::floor_modulo(remainder - values.lo, modulus);
  if (values.hi != ValueRange::kInf) values.hi -= sym::floor_modulo(values.hi - remainder, modulus);
  return values;
}

// Whether a condition on one size holds for all that it may be: few values are tried one by one.
bool SizeSolver::holds_everywhere(const Expr* expr) const {
  const std::vector<const Expr*> symbols = symbols_in(expr);
  if (symbols.size() != 1) return false;
  Values values = values_of(symbols[0]);
  if (const std::optional<Term> term = bounded_term(expr)) {
    // The value that is closest to the bound.
    const int64_t extreme = term->coefficient < 0 ? values.lo : values.hi;
    return extreme != ValueRange::kNegInf && extreme != ValueRange::kInf && holds(expr, extreme, symbols[0]);
  }
  if (values.lo == ValueRange::kNegInf) return false;
  if (const std::optional<RemainderOf> plain = as_remainder(expr)) {
    // They repeat.
    if (plain->modulus <= 0 || plain->modulus > kMostValues) return false;
    values.hi = std::min(values.hi, values.lo + values.step * plain->modulus);
  }
  if (values.hi == ValueRange::kInf) {
    const std::optional<int64_t> bound = root_bound(expr);
    if (!bound || *bound > kFurthest) return false;
    values.hi = std::max(values.lo, *bound) + values.step;
  }
  if ((values.hi - values.lo) / values.step > kMostValues) return false;
  for (int64_t value = values.lo; value <= values.hi; value += values.step)
    if (!holds(expr, value, symbols[0])) return false;
  return true;
}

// Whatever becomes of a size by this condition, it is its cause.
bool SizeSolver::learn(size_t condition, const Expr* expr, bool is_forced) {
  struct State {
    const Expr* value;
    ValueRange range;
    bool operator==(const State&) const = default;
  };
  auto state = [&](const Expr* symbol) { return State{own_->simplify(symbol), range_of(symbol)}; };
  std::vector<State> before;
  for (const Expr* symbol : own_symbols_) before.push_back(state(symbol));
  own_->check(expr, {}, {});
  bool has_changed = false;
  for (size_t i = 0; i < own_symbols_.size(); ++i) {
    if (state(own_symbols_[i]) == before[i]) continue;
    has_changed = true;
    causes_[own_symbols_[i]].push_back(
        {condition, is_forced && own_->simplify(own_symbols_[i])->is_constant()});
  }
  return has_changed;
}

// --- one condition ---------------------------------------------------------------------------------------

// A relation that tells one size from the others.
bool SizeSolver::settle_equality(size_t condition, const Expr* expr) {
  if (expr->kind() != Kind::kEq || !is_integer_comparison(expr)) return false;
  const Polynomial p = sym::polynomial_of(expr->arg(0));
  return is_linear(p) && has_unit(p) && learn(condition, expr);
}

// A remainder of one size: proven by putting modulus * t + remainder in its place.
bool SizeSolver::settle_congruence(size_t condition, const Expr* expr) {
  const std::vector<const Expr*> symbols = symbols_in(expr);
  if (symbols.size() != 1) return false;
  const Expr* symbol = symbols[0];
  std::vector<const Expr*> divisors;
  collect_divisors(expr, divisors);
  int64_t period = 1;
  for (const Expr* divisor : divisors) {
    if (!divisor->is_constant() || divisor->value() <= 0 || divisor->value() > kLongestPeriod) return false;
    period = std::lcm(period, divisor->value());
    if (period > kLongestPeriod) return false;
  }
  if (period == 1) return false;
  auto known = congruences_.find(symbol);
  const int64_t base = known == congruences_.end() ? 1 : known->second.modulus;
  const int64_t value = example(symbol);
  // The example fulfils it, and with it all of its remainder.
  if (const std::optional<RemainderOf> plain = as_remainder(expr); plain && base % plain->modulus == 0)
    return true;
  for (int64_t modulus = base; modulus <= std::lcm(period, base); modulus += base) {
    if (std::lcm(period, base) % modulus != 0) continue;
    int64_t remainder = sym::floor_modulo(value, modulus);
    // Written as the condition has it: s + 1 is divided by 3, so that s is 3*t - 1.
    if (std::optional<RemainderOf> plain = as_remainder(expr); plain && plain->scale == 1 && base == 1)
      remainder = plain->remainder - sym::floor_modulo(plain->offset, plain->modulus);
    else if (known != congruences_.end() && modulus == base) remainder = known->second.remainder;
    sym::Trial trial(*own_);
    const ValueRange range = own_->range(symbol);
    const auto down = [&](int64_t bound) { return sym::floor_divide(bound - remainder, modulus); };
    const ValueRange steps = {
        range.lo == ValueRange::kNegInf ? range.lo : -sym::floor_divide(-(range.lo - remainder), modulus),
        range.hi == ValueRange::kInf ? range.hi : down(range.hi)};
    const Expr* step = own_->add_symbol({.hint = (value - remainder) / modulus, .declared = steps});
    const Expr* instead = sym::add(own_->pool(), sym::multiply(own_->pool(), own_->constant(modulus), step),
                                   own_->constant(remainder));
    if (own_->decide(own_->substitute(expr, {{symbol, instead}})) != true) continue;
    if (modulus == base && known != congruences_.end()) return true;  // it says nothing new
    congruences_[symbol] = {modulus, remainder};
    causes_[symbol].push_back({condition, false});
    return true;
  }
  return false;
}

// What holds for one size between two bounds, looked for around the example and then proven.
bool SizeSolver::settle_bounds(size_t condition, const Expr* expr) {
  const std::vector<const Expr*> symbols = symbols_in(expr);
  if (symbols.size() != 1) return false;
  const Expr* symbol = symbols[0];
  if (bounded_term(expr)) return learn(condition, expr);
  const ValueRange range = own_->range(symbol);
  const int64_t value = example(symbol);
  // The last value in a direction for which it holds, by doubling steps and then halves.
  auto furthest = [&](int64_t limit, int64_t direction) {
    const bool is_infinite = limit == ValueRange::kInf || limit == ValueRange::kNegInf;
    const int64_t room = is_infinite ? kFurthest : std::abs(limit - value);
    if (is_infinite ? holds(expr, value + direction * kFurthest, symbol) : false) {
      // Far out it holds; so it must at each step on the way that is tried.
      bool everywhere = true;
      for (int64_t step = 1; step < room && everywhere; step = step < 4096 ? step + 1 : step * 2)
        everywhere = holds(expr, value + direction * step, symbol);
      if (everywhere) return limit;
    }
    int64_t good = 0;
    while (good < room && good < 4096 && holds(expr, value + direction * (good + 1), symbol)) ++good;
    if (good == 4096) {
      int64_t bad = room;
      if (holds(expr, value + direction * bad, symbol)) return value + direction * bad;
      while (bad - good > 1) {
        const int64_t middle = good + (bad - good) / 2;
        (holds(expr, value + direction * middle, symbol) ? good : bad) = middle;
      }
    }
    return good == room && !is_infinite ? limit : value + direction * good;
  };
  const ValueRange wanted = {furthest(range.lo, -1), furthest(range.hi, 1)};
  auto bound_by = [&](const ValueRange& by) {
    bool changed = false;
    if (by.lo != range.lo)
      changed |= learn(condition, sym::compare(own_->pool(), Kind::kLe, own_->constant(by.lo), symbol));
    if (by.hi != range.hi)
      changed |= learn(condition, sym::compare(own_->pool(), Kind::kLe, symbol, own_->constant(by.hi)));
    return changed;
  };
  if (wanted.lo == wanted.hi) return false;
  {
    sym::Trial trial(*own_);
    const auto causes = causes_;
    bound_by(wanted);
    const bool is_proven = own_->decide(own_->simplify(expr)) == true || holds_everywhere(expr);
    causes_ = causes;
    if (!is_proven) return false;
  }
  return bound_by(wanted);
}

// A linear inequality of several sizes: each goes no further than its example. A difference of two leaves the
// room between the examples to the smaller one.
bool SizeSolver::settle_at_hints(size_t condition, const Expr* expr) {
  if (!is_integer_comparison(expr) || expr->kind() == Kind::kEq) return false;
  Polynomial p = sym::polynomial_of(expr->arg(0));
  if (!is_linear(p) || p.terms.size() < 2) return false;
  int64_t at_example = p.constant;
  for (const Term& term : p.terms) at_example += term.coefficient * example(term.monomial);
  if (expr->kind() == Kind::kNe && at_example > 0) {
    p = sym::scaled(p, -1);
    at_example = -at_example;
  }
  const int64_t limit = expr->kind() == Kind::kLe ? 0 : -1;
  int64_t room = limit - at_example;
  bool changed = false;
  for (const Term& term : p.terms) {
    const int64_t value = example(term.monomial);
    const bool takes_room = term.coefficient == 1 && room > 0;
    const Expr* bound = own_->constant(takes_room ? value + room : value);
    if (takes_room) room = 0;
    const Expr* condition_on_one = term.coefficient > 0
                                       ? sym::compare(own_->pool(), Kind::kLe, term.monomial, bound)
                                       : sym::compare(own_->pool(), Kind::kLe, bound, term.monomial);
    if (!condition_on_one->is_constant()) changed |= learn(condition, condition_on_one);
  }
  return changed;
}

sym::ValueRange SizeSolver::range_of(const Expr* symbol) const {
  return sym::intersect(own_->range(symbol), own_->range(own_->simplify(symbol)));
}

// With modulus * t + remainder in the place of a size, what divides it may be a plain relation.
bool SizeSolver::introduce_steps(const Expr* expr) {
  bool changed = false;
  for (const Expr* symbol : symbols_in(expr)) {
    const auto found = congruences_.find(symbol);
    const auto place = std::ranges::find(own_symbols_, symbol);
    if (found == congruences_.end() || place == own_symbols_.end()) continue;
    const auto [modulus, remainder] = found->second;
    const Values values = values_of(symbol);
    const ValueRange range = {
        values.lo == ValueRange::kNegInf ? values.lo : (values.lo - remainder) / modulus,
        values.hi == ValueRange::kInf ? values.hi : (values.hi - remainder) / modulus};
    const Expr* step = own_->add_symbol({.hint = (example(symbol) - remainder) / modulus, .declared = range});
    steps_.emplace(step, static_cast<size_t>(place - own_symbols_.begin()));
    const Expr* instead = sym::add(own_->pool(), sym::multiply(own_->pool(), own_->constant(modulus), step),
                                   own_->constant(remainder));
    congruences_.erase(found);
    own_->check(sym::compare(own_->pool(), Kind::kEq, symbol, instead), {}, {});
    changed = true;
  }
  return changed;
}

// The sizes that something is divided by, or else all.
bool SizeSolver::force(size_t condition, const Expr* expr) {
  has_replaced_ = true;
  bool changed = false;
  std::vector<const Expr*> divisors, symbols;
  collect_divisors(expr, divisors);
  for (const Expr* divisor : divisors)
    for (const Expr* symbol : symbols_in(divisor)) symbols.push_back(symbol);
  if (symbols.empty()) symbols = symbols_in(expr);
  for (const Expr* symbol : symbols) {
    const Expr* now = own_->simplify(symbol);
    if (now->is_constant()) continue;
    const Expr* is_example = sym::compare(own_->pool(), Kind::kEq, now, own_->constant(example(symbol)));
    changed |= learn(condition, is_example, /*is_forced=*/true);
  }
  return changed;
}

// Whether anything was learnt; a condition that holds by now says nothing.
bool SizeSolver::settle(size_t condition, const Expr* expr) {
  expr = own_->simplify(expr);
  if (expr->is_constant() || own_->decide(expr) == true || holds_everywhere(expr)) return false;
  if (expr->kind() == Kind::kAnd) {
    bool changed = false;
    for (const Expr* arg : expr->args()) changed |= settle(condition, arg);
    return changed;
  }
  // The alternative that the example takes.
  if (expr->kind() == Kind::kOr)
    for (const Expr* arg : expr->args())
      if (const std::optional<sym::Number> truth = own_->hint(arg); truth && std::get<bool>(*truth))
        return settle(condition, arg);
  const size_t congruences = congruences_.size();
  if (settle_equality(condition, expr)) return true;
  const std::map<const Expr*, Congruence> before = congruences_;
  if (settle_congruence(condition, expr))
    return congruences != congruences_.size() ||
           !std::ranges::equal(before, congruences_, [](const auto& a, const auto& b) {
             return a.first == b.first && a.second.modulus == b.second.modulus;
           });
  if (settle_bounds(condition, expr) || settle_at_hints(condition, expr)) return true;
  if (introduce_steps(expr)) {
    has_replaced_ = true;
    settle(condition, expr);
    return true;
  }
  return force(condition, expr);
}

// A remainder and a range may leave one value.
bool SizeSolver::settle_single_values() {
  for (const auto& [symbol, congruence] : congruences_) {
    const Values values = values_of(symbol);
    if (values.lo != values.hi || own_->simplify(symbol)->is_constant()) continue;
    const Expr* is_it = sym::compare(own_->pool(), Kind::kEq, symbol, own_->constant(values.lo));
    return learn(causes_[symbol].back().condition, is_it);
  }
  return false;
}

bool SizeSolver::pass() {
  if (settle_single_values()) return true;
  // What can be declared comes first: it may decide the rest.
  bool changed = false;
  for (size_t i = 0; i < conditions_.size(); ++i)
    if (const Expr* expr = own_->simplify(conditions_[i]); is_expressible(expr)) changed |= settle(i, expr);
  if (changed) return true;
  // What follows from a number in the place of a size comes before the next complex one, too.
  has_replaced_ = false;
  for (size_t i = 0; i < conditions_.size() && !has_replaced_; ++i)
    if (const Expr* expr = own_->simplify(conditions_[i]); !is_expressible(expr)) changed |= settle(i, expr);
  return changed;
}

std::vector<SizeSolver::Size> SizeSolver::solve() {
  while (pass()) continue;
  std::vector<Size> sizes;
  for (size_t i = 0; i < symbols_.size(); ++i) {
    Size size{.symbol = symbols_[i]};
    size.declared = declared_[i];
    size.range = range_of(own_symbols_[i]);
    const Expr* value = own_->simplify(own_symbols_[i]);
    if (auto found = causes_.find(own_symbols_[i]); found != causes_.end()) size.causes = found->second;
    const Polynomial p = sym::polynomial_of(value);
    if (value->is_constant()) {
      size.constant = value->value();
    } else if (value != own_symbols_[i] && is_linear(p) && p.terms.size() == 1 &&
               p.terms[0].coefficient > 0) {
      const Expr* root = p.terms[0].monomial;
      int64_t scale = p.terms[0].coefficient, offset = p.constant;
      const auto step = steps_.find(root);
      // A step may have a remainder, too.
      if (auto more = congruences_.find(root); step != steps_.end() && more != congruences_.end()) {
        offset += scale * more->second.remainder;
        scale *= more->second.modulus;
      }
      if (step != steps_.end() && step->second == i) {
        size.congruence = Congruence{scale, offset};
      } else {
        size.is_of_step = step != steps_.end();
        const auto at = std::ranges::find(own_symbols_, root);
        size.other =
            symbols_[size.is_of_step ? step->second : static_cast<size_t>(at - own_symbols_.begin())];
        size.scale = scale;
        size.offset = offset;
      }
    } else if (value != own_symbols_[i]) {
      size.relation = value->to_string();
    }
    if (auto found = congruences_.find(own_symbols_[i]); found != congruences_.end() && !size.constant)
      size.congruence = found->second;
    sizes.push_back(std::move(size));
  }
  return sizes;
}

}  // namespace weft
