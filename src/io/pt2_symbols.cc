#include "io/pt2_symbols.h"

#include "weft/sym/text.h"

namespace weft::pt2 {
namespace {

bool is_identifier(std::string_view text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == text.npos;
}

int64_t bound(const Json& json, int64_t infinity, std::string_view what) {
  if (json.is_null()) return infinity;
  if (!json.is_int()) refuse("range of '{}': expected an integer or null, found {}", what, json.to_text());
  return json.as_int();
}

}  // namespace

Symbols::Symbols(const Json& ranges)
    : env_(ShapeEnv::create({.duck_shape = false, .specialize_zero_one = false})) {
  for (const auto& [text, range] : ranges.as_object()) {
    const sym::ValueRange limits{bound(range.at("min_val"), sym::ValueRange::kNegInf, text),
                                 bound(range.at("max_val"), sym::ValueRange::kInf, text)};
    if (limits.is_empty()) refuse("range of '{}': {} is empty", text, limits.to_string());
    ranges_.emplace_back(text, limits);
  }
}

// u0 and zuf0 are known at run time only, all others from the inputs; zf0 and zuf0 are floats, whatever a
// text says of them: PyTorch writes no assumption, or none but the name.
const sym::Expr* Symbols::symbol_named(const std::string& name, bool is_integer) {
  if (const sym::Symbol* known = env_->find_symbol(name)) return known->expr;
  is_integer = is_integer && !name.starts_with("zf") && !name.starts_with("zuf");
  const bool is_unbacked = name.starts_with("u") || name.starts_with("zuf");
  sym::Symbol symbol;
  symbol.name = name;
  symbol.type = is_integer ? sym::Type::kInt : sym::Type::kFloat;
  symbol.backing = is_unbacked ? sym::Backing::kUnbacked : sym::Backing::kBacked;
  for (const auto& [text, range] : ranges_)
    if (is_integer && text == name) symbol.declared = range;
  if (source_) {
    symbol.sources = {*source_};
    symbol.is_size = source_->kind == sym::Source::Kind::kSize;
  } else {
    symbol.sources = {sym::Source::computed(name)};
  }
  return env_->add_symbol(std::move(symbol));
}

const sym::Expr* Symbols::expr_of(const Json& json, std::string_view what) {
  const std::string& text = json.at("expr_str").as_string();
  auto found = known_.find(text);
  if (found != known_.end()) return found->second;
  const sym::Expr* expr = nullptr;
  try {
    expr = sym::parse(*env_, text, [&](const sym::SymbolText& symbol) {
      return symbol_named(symbol.name, symbol.is_integer);
    });
  } catch (const UserError& error) {
    refuse("{}: '{}' is no expression: {}", what, text.substr(0, 200), error.message());
  }
  known_.emplace(text, expr);
  // The example's value of a symbol by itself.
  const Json* hint = json.find("hint");
  if (hint && hint->is_object() && expr->is_symbol() && !expr->has_unbacked()) {
    const Variant value = variant_of(*hint, what);
    if (value.is("as_int") && value.value.is_int() &&
        env_->symbol_of(expr)->declared.contains(value.value.as_int()))
      env_->set_hint(expr, value.value.as_int());
    if (value.is("as_float")) env_->set_hint(expr, pt2::float_of(value.value, what));
  }
  return expr;
}

SymInt Symbols::int_of(const Json& json, std::string_view what) {
  const Variant number = variant_of(json, what);
  if (number.is("as_int")) return number.value.as_int();
  if (!number.is("as_expr")) refuse("{}: expected an integer, found {}", what, number.name);
  const sym::Expr* expr = expr_of(number.value, what);
  if (expr->type() != sym::Type::kInt) refuse("{}: {} is no integer", what, expr->to_string());
  return SymInt::from_expr(expr);
}

SymBool Symbols::bool_of(const Json& json, std::string_view what) {
  const Variant number = variant_of(json, what);
  if (number.is("as_bool")) return number.value.as_bool();
  if (!number.is("as_expr")) refuse("{}: expected a bool, found {}", what, number.name);
  const sym::Expr* expr = expr_of(number.value, what);
  if (expr->type() != sym::Type::kBool) refuse("{}: {} is no bool", what, expr->to_string());
  return SymBool::from_expr(expr);
}

SymFloat Symbols::float_of(const Json& json, std::string_view what) {
  const Variant number = variant_of(json, what);
  if (number.is("as_float")) return pt2::float_of(number.value, what);
  if (!number.is("as_expr")) refuse("{}: expected a float, found {}", what, number.name);
  const sym::Expr* expr = expr_of(number.value, what);
  if (expr->type() == sym::Type::kInt) return sym_float(SymInt::from_expr(expr));
  if (expr->type() != sym::Type::kFloat) refuse("{}: {} is no float", what, expr->to_string());
  return SymFloat::from_expr(expr);
}

SymInts Symbols::ints_of(const Json& list, std::string_view what, bool are_sizes) {
  const sym::Source* const tensor = source_;
  SymInts numbers;
  int64_t dim = 0;
  for (const Json& number : list.as_array()) {
    sym::Source source;
    if (tensor && are_sizes) source = tensor->size(dim);
    source_ = tensor && are_sizes ? &source : nullptr;
    numbers.push_back(int_of(number, what));
    ++dim;
  }
  source_ = tensor;
  return numbers;
}

std::vector<RangeConstraint> Symbols::constraints() {
  std::vector<RangeConstraint> constraints;
  source_ = nullptr;
  for (const auto& [text, range] : ranges_) {
    const sym::Expr* expr = nullptr;
    if (is_identifier(text)) {
      expr = symbol_named(text, true);
    } else {
      try {
        expr = sym::parse(*env_, text);
      } catch (const UserError& error) {
        refuse("range_constraints: '{}' is no expression: {}", text.substr(0, 200), error.message());
      }
    }
    constraints.push_back({expr, range});
  }
  return constraints;
}

// --- writing ---------------------------------------------------------------------------------------------

namespace {

Json expression(const sym::Expr* expr, Json hint) {
  return variant("as_expr", Json::Object{{"expr_str", sym::srepr(expr)}, {"hint", std::move(hint)}});
}

}  // namespace

Json json_of(const SymInt& value) {
  if (const std::optional<int64_t> plain = value.maybe_plain()) return variant("as_int", *plain);
  const std::optional<int64_t> hint = value.hint();
  return expression(value.expr(), hint ? variant("as_int", *hint) : Json());
}
Json json_of(const SymBool& value) {
  if (const std::optional<bool> plain = value.is_symbolic() ? std::nullopt : std::optional(value.plain()))
    return variant("as_bool", *plain);
  const std::optional<bool> hint = value.hint();
  return expression(value.expr(), hint ? variant("as_bool", *hint) : Json());
}
Json json_of(const SymFloat& value) {
  if (!value.is_symbolic()) return variant("as_float", json_of(value.plain()));
  const std::optional<double> hint = value.hint();
  return expression(value.expr(), hint ? variant("as_float", json_of(*hint)) : Json());
}

}  // namespace weft::pt2
