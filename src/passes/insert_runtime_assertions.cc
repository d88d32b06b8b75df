#include "weft/passes/insert_runtime_assertions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/size_nodes.h"
#include "sym/build.h"
#include "weft/sym/text.h"

namespace weft {
namespace {

using sym::Expr;
using sym::ValueRange;

constexpr std::string_view kFailed = "Runtime assertion failed for expression ";

struct Assertion {
  const Expr* condition;
  std::string message;  // the program's own; may be empty
};

// --- bounds of one symbol --------------------------------------------------------------------------------

struct Bound {
  const Expr* symbol;
  ValueRange range;
};

// u0 >= 2, 1 < u0, u0 <= 8: one symbol against a constant.
std::optional<Bound> as_bound(const Expr* condition) {
  const bool is_strict = condition->kind() == sym::Kind::kLt;
  if (!(is_strict || condition->kind() == sym::Kind::kLe) || condition->args().size() != 1) return {};
  const Expr* difference = condition->arg(0);
  if (difference->is_symbol()) return Bound{difference, {ValueRange::kNegInf, is_strict ? -1 : 0}};
  if (difference->kind() != sym::Kind::kAdd || difference->args().size() != 1) return {};
  const Expr* symbol = difference->arg(0);
  const int64_t coefficient = difference->coefficients()[0], constant = difference->value();
  if (!symbol->is_symbol() || constant == ValueRange::kNegInf || constant == ValueRange::kInf) return {};
  if (coefficient == 1) return Bound{symbol, {ValueRange::kNegInf, -constant - (is_strict ? 1 : 0)}};
  if (coefficient == -1) return Bound{symbol, {constant + (is_strict ? 1 : 0), ValueRange::kInf}};
  return {};
}

// Conditions that hold, and whether they imply another one.
class Asserted {
 public:
  void add(const Expr* condition) {
    conditions_.insert(condition);
    if (std::optional<Bound> bound = as_bound(condition)) add_range(bound->symbol, bound->range);
  }
  void add_range(const Expr* symbol, const ValueRange& range) {
    auto [known, is_new] = ranges_.try_emplace(symbol, range);
    if (!is_new) known->second = sym::intersect(known->second, range);
  }
  bool implies(const Expr* condition) const {
    if (conditions_.contains(condition)) return true;
    std::optional<Bound> bound = as_bound(condition);
    if (!bound) return false;
    auto known = ranges_.find(bound->symbol);
    return known != ranges_.end() && bound->range.contains(known->second);
  }

 private:
  std::unordered_set<const Expr*> conditions_;
  std::unordered_map<const Expr*, ValueRange> ranges_;
};

// What was asserted before says nothing new.
std::vector<Assertion> without_implied(std::vector<Assertion> all) {
  Asserted before;
  std::erase_if(all, [&](const Assertion& assertion) {
    if (before.implies(assertion.condition)) return true;
    before.add(assertion.condition);
    return false;
  });
  return all;
}

bool is_unbacked_int(const sym::Symbol& symbol) {
  return symbol.backing == sym::Backing::kUnbacked && symbol.type == sym::Type::kInt;
}

std::vector<Assertion> assertions_of(ShapeEnv& env, Bounds bounds) {
  std::vector<Assertion> all;
  for (const sym::Guard& guard : env.runtime_asserts())
    all.push_back({sym::released(env.pool(), guard.condition), guard.message});
  for (const sym::Symbol& symbol : env.symbols()) {
    if (bounds == Bounds::kConstraints || !is_unbacked_int(symbol)) continue;
    auto add = [&](const Expr* smaller, const Expr* larger) {
      const Expr* condition = sym::compare(env.pool(), sym::Kind::kLe, smaller, larger);
      if (!condition->is_constant()) all.push_back({condition, {}});
    };
    if (symbol.declared.lo != ValueRange::kNegInf) add(env.constant(symbol.declared.lo), symbol.expr);
    if (symbol.declared.hi != ValueRange::kInf) add(symbol.expr, env.constant(symbol.declared.hi));
  }
  return without_implied(std::move(all));
}

// --- one graph -------------------------------------------------------------------------------------------

// Null for a Value that is no symbolic number.
const Expr* expr_in(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kSymInt: {
      SymInt number = value.to_sym_int();
      return number.is_symbolic() ? number.expr() : nullptr;
    }
    case Value::Kind::kSymFloat: {
      SymFloat number = value.to_sym_float();
      return number.is_symbolic() ? number.expr() : nullptr;
    }
    case Value::Kind::kSymBool: {
      SymBool number = value.to_sym_bool();
      return number.is_symbolic() ? number.expr() : nullptr;
    }
    default:
      return nullptr;
  }
}

const Expr* expr_of(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  return meta ? expr_in(meta->value) : nullptr;
}

// A number that can be read off what a node gives.
struct Reading {
  enum class Kind : uint8_t { kSize, kStride, kOffset, kItem };
  const Expr* expr;
  Node* node;
  Kind kind;
  int64_t index;
};

class Inserter {
 public:
  Inserter(GraphModule& module, ShapeEnv& env, std::vector<Assertion>& pending,
           std::vector<const sym::Symbol*>& unconstrained)
      : graph_(module.graph()),
        env_(env),
        pending_(pending),
        unconstrained_(unconstrained),
        nodes_(graph_, SizeNodes::Notes::kValues) {}

  bool run() {
    note_asserted();
    for (const Assertion& assertion : pending_)
      for (const sym::Symbol* symbol : env_.free_symbols(assertion.condition)) wanted_.insert(symbol->expr);
    for (const sym::Symbol* symbol : unconstrained_) wanted_.insert(symbol->expr);
    std::vector<Node*> inputs = graph_.placeholders(), others;
    for (Node& node : graph_)
      if (node.kind() != NodeKind::kPlaceholder) others.push_back(&node);
    if (others.empty()) return false;
    {
      Graph::InsertScope insertion = graph_.inserting_before(*others[0]);
      for (Node* input : inputs) learn(*input);
      read_and_assert();
      advanced_.reset();
    }
    for (Node* node : others) {
      if (node->kind() == NodeKind::kOutput || (pending_.empty() && unconstrained_.empty())) break;
      Graph::InsertScope insertion = graph_.inserting_after(*node);
      learn(*node);
      read_and_assert();
      Node* const end = graph_.insertion_point();
      advanced_.reset();
      for (Node* made = node->next(); made != end; made = made->next()) take_origin(*made, *node);
    }
    erase_unused();
    return changed_;
  }

 private:
  // A call that is there for its effect only and takes a condition asserts it; one that takes an integer
  // keeps that within its declared range.
  void note_asserted() {
    Asserted asserted;
    for (const Node& node : graph_) {
      const Operator* op = node.target().op();
      const bool is_assertion = op && op->has(Traits::kEffectful) && op->schema().returns.empty();
      const Node* about = is_assertion && !node.args().empty() ? node_in(node.args()[0]) : nullptr;
      const Expr* expr = about ? expr_of(*about) : nullptr;
      if (!expr) continue;
      if (expr->type() == sym::Type::kBool) asserted.add(sym::released(env_.pool(), expr));
      else if (const sym::Symbol* symbol = env_.symbol_of(expr)) asserted.add_range(expr, symbol->declared);
    }
    std::erase_if(pending_, [&](const Assertion& a) { return asserted.implies(a.condition); });
  }

  // A new node belongs to the line and the module call whose value it is about.
  static void take_origin(Node& made, const Node& from) {
    const NodeMeta* origin = from.meta_or_null();
    const bool has_own = !made.meta().source.empty() || made.meta().trace || !made.meta().modules.empty();
    if (!origin || has_own) return;
    made.meta().source = origin->source;
    made.meta().trace = origin->trace;
    made.meta().modules = origin->modules;
  }

  // --- what a node tells

  void learn(Node& node) {
    const NodeMeta* meta = node.meta_or_null();
    if (!meta) return;
    if (const Expr* expr = expr_in(meta->value)) {
      if (!nodes_.has(expr)) {
        nodes_.define(expr, node);
        gained_ |= expr->is_symbol();
      }
      if (!expr->is_symbol() && node.kind() == NodeKind::kPlaceholder)
        add_reading({expr, &node, Reading::Kind::kItem, -1});
    } else if (meta->value.is_tensor()) {
      learn_tensor(meta->value.tensor_ref(), node);
    } else if (meta->value.is_sequence()) {
      const ValueList& elements = meta->value.elements();
      for (size_t i = 0; i < elements.size(); ++i)
        if (const Expr* expr = expr_in(elements[i]))
          add_reading({expr, &node, Reading::Kind::kItem, static_cast<int64_t>(i)});
    }
  }

  // The first of each expression is as good as the others, and what is made of symbols that can be read by
  // themselves tells nothing.
  void add_reading(const Reading& reading) {
    if (!seen_.insert(reading.expr).second) return;
    auto is_readable = [&](const sym::Symbol* symbol) {
      return symbol->expr != reading.expr && (seen_.contains(symbol->expr) || nodes_.has(symbol->expr));
    };
    if (!std::ranges::all_of(env_.free_symbols(reading.expr), is_readable)) fresh_.push_back(reading);
  }

  void learn_tensor(const Tensor& tensor, Node& node) {
    if (!tensor.is_symbolic()) return;
    auto add = [&](const SymInt& number, Reading::Kind kind, size_t index) {
      if (number.is_symbolic() && !number.expr()->is_constant())
        add_reading({number.expr(), &node, kind, static_cast<int64_t>(index)});
    };
    const TensorImpl& impl = *tensor.impl();
    for (size_t d = 0; d < impl.sizes().size(); ++d) add(impl.sizes()[d], Reading::Kind::kSize, d);
    for (size_t d = 0; d < impl.strides().size(); ++d) add(impl.strides()[d], Reading::Kind::kStride, d);
    add(impl.storage_offset(), Reading::Kind::kOffset, 0);
  }

  // --- nodes for symbols

  bool is_missing(const Expr* symbol) const { return wanted_.contains(symbol) && !nodes_.has(symbol); }

  // First what is a symbol by itself; then what follows from it, for as long as something does.
  void read_and_assert() {
    if (!fresh_.empty()) {
      readings_.insert(readings_.end(), fresh_.begin(), fresh_.end());
      read_symbols(fresh_);
      fresh_.clear();
      want_helpers();
      read_symbols(readings_);
      while (solve_one()) continue;
    }
    if (gained_ || is_first_) insert_ready();
    gained_ = is_first_ = false;
  }

  void read_symbols(const std::vector<Reading>& readings) {
    for (const Reading& reading : readings)
      if (reading.expr->is_symbol() && is_missing(reading.expr)) define(reading.expr, read(reading));
  }

  // A symbol that only an expression tells needs the others of that expression.
  void want_helpers() {
    for (const Reading& reading : readings_) {
      const std::vector<const sym::Symbol*> symbols = env_.free_symbols(reading.expr);
      if (std::ranges::any_of(symbols, [&](const sym::Symbol* symbol) { return is_missing(symbol->expr); }))
        for (const sym::Symbol* symbol : symbols) wanted_.insert(symbol->expr);
    }
  }

  bool solve_one() {
    for (const Reading& reading : readings_)
      if (const Expr* symbol = only_missing(reading.expr))
        if (solve(reading, symbol)) return true;
    return false;
  }

  // The one symbol of the expression that has no node yet, if somebody wants it.
  const Expr* only_missing(const Expr* expr) const {
    if (expr->is_symbol() || expr->type() != sym::Type::kInt) return nullptr;
    const Expr* missing = nullptr;
    for (const sym::Symbol* symbol : env_.free_symbols(expr)) {
      if (nodes_.has(symbol->expr)) continue;
      if (missing) return nullptr;
      missing = symbol->expr;
    }
    return missing && wanted_.contains(missing) ? missing : nullptr;
  }

  // value = rest + factor * symbol gives the symbol, where the factor cannot be 0.
  bool solve(const Reading& reading, const Expr* symbol) {
    sym::ExprPool& pool = env_.pool();
    const Expr* rest = without(reading.expr, symbol, env_.constant(0));
    const Expr* factor = sym::subtract(pool, without(reading.expr, symbol, env_.constant(1)), rest);
    const Expr* again = sym::add(pool, rest, sym::multiply(pool, factor, symbol));
    const bool is_linear = again == reading.expr && !uses(factor, symbol) && !uses(rest, symbol);
    const ValueRange range = env_.range(factor);
    if (!is_linear || range.contains(0)) return false;
    Value value = value_of(read(reading));
    auto node_for = [&](const Expr* expr) { return nodes_.value_for(symbolic_value(expr)); };
    if (!(rest->is_constant() && rest->value() == 0)) value = made("operator.sub", {value, node_for(rest)});
    if (!(factor->is_constant() && factor->value() == 1))
      value = made("operator.floordiv", {value, node_for(factor)});
    define(symbol, *node_in(value));
    return true;
  }

  const Expr* without(const Expr* expr, const Expr* symbol, const Expr* by) {
    return env_.substitute(expr, {{symbol, by}});
  }
  bool uses(const Expr* expr, const Expr* symbol) const {
    for (const sym::Symbol* used : env_.free_symbols(expr))
      if (used->expr == symbol) return true;
    return false;
  }

  void define(const Expr* symbol, Node& node) {
    gained_ = true;
    if (!node.meta().value.is_none() || node.kind() == NodeKind::kPlaceholder)
      return nodes_.define(symbol, node);
    node.meta().value = symbolic_value(symbol);
    nodes_.define(symbol, node);
  }

  // A node that reads it: one that is there, moved up to where it is needed, or a new one.
  Node& read(const Reading& reading) {
    if (reading.kind == Reading::Kind::kItem && reading.index < 0) return *reading.node;
    for (Node* user : reading.node->users().list()) {
      const bool reads = user->inputs().size() == 1 && expr_of(*user) == reading.expr && !user->is_impure();
      if (!reads || user->kind() == NodeKind::kOutput) continue;
      Node* here = graph_.insertion_point();
      if (here == user) advanced_.emplace(graph_, user->next());
      else if (here && graph_.is_before(*here, *user)) user->move_before(*here);
      return *user;
    }
    Node& node = new_reader(reading);
    node.meta().value = symbolic_value(reading.expr);
    return node;
  }

  Node& new_reader(const Reading& reading) {
    const Value of = value_of(*reading.node);
    auto named = [&](Node& node, std::string_view name) -> Node& {
      node.rename(name);
      helpers_.push_back(Ref<Node>(&node));
      return node;
    };
    switch (reading.kind) {
      case Reading::Kind::kSize:
        return named(graph_.call_function("aten::sym_size.int", {of, reading.index}), "sym_size_int");
      case Reading::Kind::kStride:
        return named(graph_.call_function("aten::sym_stride.int", {of, reading.index}), "sym_stride_int");
      case Reading::Kind::kOffset:
        return named(graph_.call_function("aten::sym_storage_offset", {of}), "sym_storage_offset");
      case Reading::Kind::kItem:
        return named(graph_.call_function("operator.getitem", {of, reading.index}), "getitem");
    }
    __builtin_unreachable();
  }

  Value made(std::string_view name, ValueList args) {
    Node& node = graph_.call_function(name, std::move(args));
    helpers_.push_back(Ref<Node>(&node));
    return value_of(node);
  }

  // --- assertions

  void insert_ready() {
    std::erase_if(unconstrained_, [&](const sym::Symbol* symbol) {
      if (!nodes_.has(symbol->expr)) return false;
      constrain(*symbol);
      return true;
    });
    std::erase_if(pending_, [&](const Assertion& assertion) {
      for (const sym::Symbol* symbol : env_.free_symbols(assertion.condition))
        if (!nodes_.has(symbol->expr)) return false;
      insert(assertion);
      return true;
    });
  }

  void constrain(const sym::Symbol& symbol) {
    const Value number = nodes_.value_for(symbolic_value(symbol.expr));
    if (symbol.size_like)
      keep_if_new(graph_.call_function("aten::sym_constrain_range_for_size", {number}),
                  "sym_constrain_range_for_size_default");
    Kwargs range;
    if (symbol.range.lo != ValueRange::kNegInf) range.emplace_back("min", symbol.range.lo);
    if (symbol.range.hi != ValueRange::kInf) range.emplace_back("max", symbol.range.hi);
    if (!range.empty())
      keep_if_new(graph_.call_function("aten::sym_constrain_range", {number}, std::move(range)),
                  "sym_constrain_range_default");
  }

  // Unless the program keeps the number within these bounds already, by a call of the same operator.
  void keep_if_new(Node& constraint, std::string_view name) {
    auto bounds_of = [](const Node& node) {
      ValueRange range;
      for (const auto& [key, value] : node.kwargs())
        if (value.is_int()) (key == "min" ? range.lo : range.hi) = value.to_int();
      return range;
    };
    for (const Node* other : constraint.inputs()[0]->users().list())
      if (other != &constraint && other->target() == constraint.target() &&
          bounds_of(constraint).contains(bounds_of(*other)))
        return graph_.erase(constraint);
    constraint.rename(name);
    changed_ = true;
  }

  void insert(const Assertion& assertion) {
    const Value condition = nodes_.value_for(symbolic_value(assertion.condition));
    std::string text = fmt::format("{}{} on node '{}'", kFailed, sym::canonical_text(assertion.condition),
                                   node_in(condition)->name());
    // A program that was captured before has its words already.
    if (assertion.message.find(kFailed) != std::string::npos) text = assertion.message;
    else if (!assertion.message.empty()) text = fmt::format("{} ({})", assertion.message, text);
    graph_.call_function("aten::_assert_scalar", {condition, text}).rename("_assert_scalar_default");
    changed_ = true;
  }

  // What was read for an assertion that needs more than the graph has.
  void erase_unused() {
    for (size_t i = helpers_.size(); i-- > 0;)
      if (helpers_[i]->users().empty()) graph_.erase(*helpers_[i]);
  }

  Graph& graph_;
  ShapeEnv& env_;
  std::vector<Assertion>& pending_;
  std::vector<const sym::Symbol*>& unconstrained_;  // whose bounds are no part of any graph yet
  SizeNodes nodes_;
  std::unordered_set<const Expr*> wanted_;  // symbols of the assertions
  std::vector<Reading> readings_, fresh_;   // all, and those that were just learnt
  std::unordered_set<const Expr*> seen_;    // what there is a reading of
  std::vector<Ref<Node>> helpers_;          // nodes that read symbols
  // Where the node at the insertion point is one that is read: behind it.
  std::optional<Graph::InsertScope> advanced_;
  bool gained_ = false;  // there is a node for one more symbol
  bool is_first_ = true, changed_ = false;
};

bool insert_into(GraphModule& module, ShapeEnv& env, std::vector<Assertion>& pending,
                 std::vector<const sym::Symbol*>& unconstrained) {
  bool changed = Inserter(module, env, pending, unconstrained).run();
  for (const Node& node : module.graph()) {
    if (pending.empty() && unconstrained.empty()) break;
    if (node.kind() != NodeKind::kGetAttr) continue;
    if (std::optional<GraphModule> inner = graph_module_in(module.find(node.target().to_string())))
      changed |= insert_into(*inner, env, pending, unconstrained);
  }
  return changed;
}

}  // namespace

bool insert_runtime_assertions(GraphModule& module, ShapeEnv& env, Bounds bounds) {
  std::vector<Assertion> pending = assertions_of(env, bounds);
  std::vector<const sym::Symbol*> unconstrained;
  if (bounds == Bounds::kConstraints)
    for (const sym::Symbol& symbol : env.symbols())
      if (is_unbacked_int(symbol)) unconstrained.push_back(&symbol);
  return insert_into(module, env, pending, unconstrained);
}

}  // namespace weft
