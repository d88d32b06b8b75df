#include "weft/sym/shape_env.h"

#include <fmt/format.h>

#include <algorithm>

#include "sym/analysis.h"
#include "sym/build.h"

namespace weft {

using sym::Backing;
using sym::DimPolicy;
using sym::Expr;
using sym::Number;
using sym::Symbol;
using sym::Type;
using sym::ValueRange;

namespace sym {
namespace {

// One of weft's own files, by the name that the compiler was given: where they ask tells the user nothing.
bool is_own_file(std::string_view file) {
  constexpr std::string_view kThis = __FILE__, kName = "sym/shape_env.cc";
  static_assert(kThis.ends_with(kName));
  return file.starts_with(kThis.substr(0, kThis.size() - kName.size())) ||
         file.find("include/weft/") != std::string_view::npos;
}

}  // namespace

std::string Location::to_string() const {
  const SourceFrame user = trace.user_frame();
  const bool is_better = user.line == 0 && line != 0 && !is_own_file(file);
  return is_better ? fmt::format("{}:{}", file, line) : user.place();
}

}  // namespace sym

ShapeEnv::ShapeEnv(Options options) : options_(options), pool_(std::make_unique<sym::ExprPool>(this)) {}

ShapeEnv::~ShapeEnv() = default;

Ref<ShapeEnv> ShapeEnv::create(Options options) { return Ref<ShapeEnv>(new ShapeEnv(options)); }

const Expr* ShapeEnv::add_symbol(Symbol symbol) {
  const Expr* expr = pool_->symbol(static_cast<int64_t>(symbols_.size()), symbol.type,
                                   symbol.backing == Backing::kUnbacked, symbol.range, symbol.hint);
  symbol.expr = expr;
  symbols_.push_back(std::move(symbol));
  return expr;
}

int64_t ShapeEnv::name_count(std::string_view prefix) { return name_counts_[std::string(prefix)]++; }

SymInt ShapeEnv::create_symbol(int64_t hint, std::string source, DimPolicy policy,
                               std::optional<ValueRange> range) {
  require(hint >= 0, "{}: a size cannot be {}; sizes are at least 0", source, hint);
  if (policy == DimPolicy::kStatic) return hint;
  bool is_duck = policy == DimPolicy::kDuck && !range;
  if (is_duck && options_.specialize_zero_one && hint <= 1) return hint;
  if (is_duck && options_.duck_shape) {
    if (auto found = duck_.find(hint); found != duck_.end()) {
      symbols_[static_cast<size_t>(found->second->value())].sources.push_back(std::move(source));
      return SymInt::from_expr(found->second);
    }
  }
  int64_t least = options_.specialize_zero_one && hint >= 2 ? 2 : 0;
  ValueRange bounds = range.value_or(ValueRange{least, ValueRange::kInf});
  if (!bounds.contains(hint))
    fail(
        "{}: the example size {} is outside of the declared range {}; give an example within it, or widen "
        "the range",
        source, hint, bounds.to_string());
  const Expr* expr = add_symbol({.name = fmt::format("s{}", name_count("s")),
                                 .hint = hint,
                                 .range = bounds,
                                 .sources = {std::move(source)}});
  if (is_duck) duck_.emplace(hint, expr);
  return SymInt::from_expr(expr);
}

SymFloat ShapeEnv::create_float_symbol(double hint, std::string source) {
  return SymFloat::from_expr(add_symbol({.name = fmt::format("zf{}", name_count("zf")),
                                         .type = Type::kFloat,
                                         .hint = hint,
                                         .sources = {std::move(source)}}));
}

SymInt ShapeEnv::create_unbacked_int(std::string source, ValueRange range) {
  if (range.is_empty()) fail("{}: the range {} of an unbacked value is empty", source, range.to_string());
  return SymInt::from_expr(add_symbol({.name = fmt::format("u{}", name_count("u")),
                                       .backing = Backing::kUnbacked,
                                       .range = range,
                                       .sources = {std::move(source)}}));
}

SymFloat ShapeEnv::create_unbacked_float(std::string source) {
  return SymFloat::from_expr(add_symbol({.name = fmt::format("zuf{}", name_count("zuf")),
                                         .type = Type::kFloat,
                                         .backing = Backing::kUnbacked,
                                         .sources = {std::move(source)}}));
}

SymBool ShapeEnv::create_unbacked_bool(std::string source) {
  // Truth values share the counter of unbacked integers, so that a name is never given twice.
  return SymBool::from_expr(add_symbol({.name = fmt::format("u{}", name_count("u")),
                                        .type = Type::kBool,
                                        .backing = Backing::kUnbacked,
                                        .range = sym::kAnyBool,
                                        .sources = {std::move(source)}}));
}

const Symbol* ShapeEnv::find_symbol(std::string_view name) const {
  auto found = std::ranges::find(symbols_, name, &Symbol::name);
  return found == symbols_.end() ? nullptr : &*found;
}

const Symbol* ShapeEnv::symbol_of(const Expr* expr) const {
  return expr->is_symbol() && expr->env() == this ? &symbols_[static_cast<size_t>(expr->value())] : nullptr;
}

void ShapeEnv::set_hint(const Expr* expr, Number value) {
  const Symbol* symbol = symbol_of(expr);
  if (symbol == nullptr) fail("set_hint: {} is not a symbol of this environment", expr->to_string());
  if (const int64_t* integer = std::get_if<int64_t>(&value))
    if (!range(expr).contains(*integer))
      fail("set_hint: {} cannot be {}; it is known to be in {}", symbol->name, *integer,
           range(expr).to_string());
  symbols_[static_cast<size_t>(expr->value())].hint = value;
  pool_->state(expr).hint = value;
  ++pool_->hint_epoch;
}

void ShapeEnv::constrain(const Expr* expr, const ValueRange& range) {
  if (symbol_of(expr) == nullptr)
    fail("constrain: {} is not a symbol of this environment", expr->to_string());
  narrow(expr, range);
}

void ShapeEnv::mark_size_like(const Expr* expr) {
  if (symbol_of(expr) == nullptr)
    fail("mark_size_like: {} is not a symbol of this environment", expr->to_string());
  symbols_[static_cast<size_t>(expr->value())].size_like = true;
  narrow(expr, {0, ValueRange::kInf});
}

std::vector<std::pair<const Expr*, const Expr*>> ShapeEnv::replacements() const {
  std::vector<std::pair<const Expr*, const Expr*>> result;
  for (const auto& [id, pair] : replacements_) result.push_back(pair);
  return result;
}

std::vector<const Symbol*> ShapeEnv::free_symbols(const Expr* expr) const {
  std::unordered_map<const Expr*, bool> seen;
  std::vector<const Symbol*> symbols;
  sym::visit_post_order(
      expr, [&](const Expr* e) { return seen.contains(e); },
      [&](const Expr* e) {
        seen.emplace(e, true);
        if (e->is_symbol()) symbols.push_back(symbol_of(e));
      });
  std::ranges::sort(symbols, {}, [](const Symbol* symbol) { return symbol->expr->id(); });
  return symbols;
}

size_t ShapeEnv::pool_size() const { return pool_->size(); }

const Expr* ShapeEnv::constant(int64_t value) { return pool_->constant(value); }

const Expr* ShapeEnv::expr_of(const SymInt& value) {
  if (!value.is_symbolic()) return pool_->constant(value.plain());
  const Expr* expr = value.expr();
  if (expr->env() == nullptr) return pool_->constant(expr->value());
  if (expr->env() != this)
    fail("{} belongs to another capture: sizes of two captures cannot be combined; pass it in as an input",
         expr->to_string());
  return expr;
}

}  // namespace weft
