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
using sym::Source;
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

namespace {

bool is_identifier(std::string_view name) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && is_letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// As PyTorch names them. Truth values share the counter of unbacked integers.
std::string_view name_prefix(const Symbol& symbol) {
  bool is_unbacked = symbol.backing == Backing::kUnbacked;
  if (symbol.type == Type::kFloat) return is_unbacked ? "zuf" : "zf";
  return is_unbacked ? "u" : "s";
}

void require_in_range(const Symbol& symbol) {
  const int64_t* hint = symbol.hint ? std::get_if<int64_t>(&*symbol.hint) : nullptr;
  if (hint && !symbol.declared.contains(*hint))
    fail(
        "{}: the example {} {} is outside of the declared range {}; give an example within it, or widen "
        "the range",
        symbol.sources[0].to_string(), symbol.is_size ? "size" : "value", *hint, symbol.declared.to_string());
  if (symbol.declared.is_empty())
    fail("{}: the range {} of {} is empty", symbol.sources[0].to_string(), symbol.declared.to_string(),
         symbol.backing == Backing::kUnbacked ? "an unbacked value" : "a symbol");
}

}  // namespace

std::string ShapeEnv::next_name(const Symbol& symbol) {
  std::string_view prefix = name_prefix(symbol);
  int64_t& count = name_counts_[std::string(prefix)];
  // A name that was given by hand is left out.
  for (;;)
    if (std::string name = fmt::format("{}{}", prefix, count++); !names_.contains(name)) return name;
}

const Expr* ShapeEnv::add_symbol(Symbol symbol) {
  if (symbol.sources.empty()) symbol.sources.emplace_back();
  if (symbol.type == Type::kBool) symbol.declared = sym::intersect(symbol.declared, sym::kAnyBool);
  require_in_range(symbol);
  if (symbol.name.empty()) symbol.name = next_name(symbol);
  require(is_identifier(symbol.name), "'{}' cannot name a symbol: letters, digits and '_' can", symbol.name);
  require(!names_.contains(symbol.name), "there is a symbol {} already, and a name is given once",
          symbol.name);
  symbol.range = symbol.declared;
  symbol.expr = pool_->symbol(static_cast<int64_t>(symbols_.size()), symbol.type,
                              symbol.backing == Backing::kUnbacked, symbol.range, symbol.hint);
  names_.emplace(symbol.name, symbol.expr);
  symbols_.push_back(std::move(symbol));
  return symbols_.back().expr;
}

// What a duck-shaped input is without a symbol of its own.
std::optional<SymInt> ShapeEnv::shared_or_constant(int64_t hint, const Source& source, bool is_size) {
  if (options_.specialize_zero_one && (hint == 0 || hint == 1)) return hint;
  if (!options_.duck_shape) return std::nullopt;
  auto found = duck_.find(hint);
  if (found == duck_.end()) return std::nullopt;
  Symbol& symbol = mutable_symbol(found->second, "create_symbol");
  symbol.sources.push_back(source);
  if (is_size && !symbol.is_size) {
    // A number that equals a size is in the range of sizes.
    symbol.is_size = true;
    narrow(symbol.expr, {options_.specialize_zero_one ? 2 : 0, ValueRange::kInf});
  }
  return SymInt::from_expr(found->second);
}

SymInt ShapeEnv::create_symbol(int64_t hint, Source source, DimPolicy policy,
                               std::optional<ValueRange> range) {
  require(hint >= 0, "{}: a size cannot be {}; sizes are at least 0", source.to_string(), hint);
  if (policy == DimPolicy::kStatic) return hint;
  if (policy == DimPolicy::kUnbacked) {
    SymInt size = create_unbacked_int(std::move(source), range.value_or(ValueRange{0, ValueRange::kInf}));
    mark_size_like(size.expr());
    mutable_symbol(size.expr(), "create_symbol").is_size = true;
    return size;
  }
  bool is_duck = policy == DimPolicy::kDuck && !range;
  if (is_duck)
    if (std::optional<SymInt> known = shared_or_constant(hint, source, /*is_size=*/true)) return *known;
  int64_t least = options_.specialize_zero_one && hint >= 2 ? 2 : 0;
  const Expr* expr = add_symbol({.hint = hint,
                                 .declared = range.value_or(ValueRange{least, ValueRange::kInf}),
                                 .is_size = true,
                                 .sources = {std::move(source)}});
  if (is_duck) duck_.emplace(hint, expr);
  return SymInt::from_expr(expr);
}

SymInt ShapeEnv::create_value(int64_t hint, Source source, DimPolicy policy,
                              std::optional<ValueRange> range) {
  if (policy == DimPolicy::kStatic) return hint;
  bool is_duck = policy == DimPolicy::kDuck && !range;
  if (is_duck)
    if (std::optional<SymInt> known = shared_or_constant(hint, source, /*is_size=*/false)) return *known;
  const Expr* expr =
      add_symbol({.hint = hint, .declared = range.value_or(ValueRange{}), .sources = {std::move(source)}});
  if (is_duck) duck_.emplace(hint, expr);
  return SymInt::from_expr(expr);
}

SymFloat ShapeEnv::create_float_symbol(double hint, Source source) {
  return SymFloat::from_expr(
      add_symbol({.type = Type::kFloat, .hint = hint, .sources = {std::move(source)}}));
}

// A new symbol, or the next of those that are to be used again.
const Expr* ShapeEnv::unbacked(Symbol symbol) {
  symbol.backing = Backing::kUnbacked;
  if (reused_.empty()) return add_symbol(std::move(symbol));
  const Expr* known = reused_.front();
  reused_.erase(reused_.begin());
  if (known->type() == symbol.type && symbol_of(known)) return known;
  reused_.clear();
  return add_symbol(std::move(symbol));
}

SymInt ShapeEnv::create_unbacked_int(Source source, ValueRange range) {
  return SymInt::from_expr(unbacked({.declared = range, .sources = {std::move(source)}}));
}

SymFloat ShapeEnv::create_unbacked_float(Source source) {
  return SymFloat::from_expr(unbacked({.type = Type::kFloat, .sources = {std::move(source)}}));
}

SymBool ShapeEnv::create_unbacked_bool(Source source) {
  return SymBool::from_expr(unbacked({.type = Type::kBool, .sources = {std::move(source)}}));
}

void ShapeEnv::add_source(const Expr* symbol, Source source) {
  std::vector<Source>& sources = mutable_symbol(symbol, "add_source").sources;
  if (sources.size() == 1 && sources[0].is_empty()) sources.clear();
  sources.push_back(std::move(source));
}

const Symbol* ShapeEnv::find_symbol(std::string_view name) const {
  auto found = names_.find(name);
  return found == names_.end() ? nullptr : symbol_of(found->second);
}

const Symbol* ShapeEnv::symbol_of(const Expr* expr) const {
  if (!expr->is_symbol() || expr->env() != this) return nullptr;
  auto index = static_cast<size_t>(expr->value());
  // After a rollback another symbol may have the index.
  return index < symbols_.size() && symbols_[index].expr == expr ? &symbols_[index] : nullptr;
}

Symbol& ShapeEnv::mutable_symbol(const Expr* expr, const char* what) {
  if (symbol_of(expr) == nullptr) fail("{}: {} is not a symbol of this environment", what, expr->to_string());
  return symbols_[static_cast<size_t>(expr->value())];
}

void ShapeEnv::set_hint(const Expr* expr, Number value) {
  Symbol& symbol = mutable_symbol(expr, "set_hint");
  if (const int64_t* integer = std::get_if<int64_t>(&value))
    if (!range(expr).contains(*integer))
      fail("set_hint: {} cannot be {}; it is known to be in {}", symbol.name, *integer,
           range(expr).to_string());
  symbol.hint = value;
  pool_->state(expr).hint = value;
  ++pool_->hint_epoch;
}

void ShapeEnv::constrain(const Expr* expr, const ValueRange& range) {
  Symbol& symbol = mutable_symbol(expr, "constrain");
  narrow(expr, range);
  symbol.declared = sym::intersect(symbol.declared, range);
}

void ShapeEnv::mark_size_like(const Expr* expr) {
  mutable_symbol(expr, "mark_size_like").size_like = true;
  narrow(expr, {0, ValueRange::kInf});
}

std::vector<std::pair<const Expr*, const Expr*>> ShapeEnv::replacements() const {
  std::vector<std::pair<const Expr*, const Expr*>> result;
  for (const auto& [id, pair] : replacements_) result.push_back(pair);
  return result;
}

const Symbol& sym::live_symbol(const ShapeEnv& env, const Expr* expr) {
  const Symbol* symbol = env.symbol_of(expr);
  if (!symbol)
    fail(
        "{} was made after a checkpoint of its ShapeEnv and is forgotten since the rollback: nothing can be "
        "asked about it; make a new symbol",
        expr->to_string());
  return *symbol;
}

std::vector<const Symbol*> ShapeEnv::free_symbols(const Expr* expr) const {
  std::unordered_map<const Expr*, bool> seen;
  std::vector<const Symbol*> symbols;
  sym::visit_post_order(
      expr, [&](const Expr* e) { return seen.contains(e); },
      [&](const Expr* e) {
        seen.emplace(e, true);
        if (e->is_symbol()) symbols.push_back(&live_symbol(*this, e));
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

std::string ShapeEnv::format_guards() const {
  std::string text;
  for (const sym::Guard& guard : guards_)
    text += (text.empty() ? " - " : "\n - ") + guard.condition->to_string();
  return text;
}

}  // namespace weft
