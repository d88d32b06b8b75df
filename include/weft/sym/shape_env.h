#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/ref.h"
#include "weft/base/stack_trace.h"
#include "weft/sym/expr.h"
#include "weft/sym/source.h"
#include "weft/sym/sym_int.h"

namespace weft {

namespace sym {

// How a dimension becomes a symbol.
enum class DimPolicy : uint8_t {
  kDuck,      // equal hints share a symbol and 0 and 1 are constants, as the environment's options say
  kDynamic,   // a symbol of its own, whatever the hint
  kStatic,    // the hint itself
  kUnbacked,  // a size that no example may decide, as one that comes from data
};

enum class Backing : uint8_t {
  kBacked,    // comes from an input; has a hint, unless no example is known
  kUnbacked,  // comes from data: `item()`, `nonzero()`
};

struct Symbol {
  std::string name = {};  // empty for `add_symbol`: the next free one
  Type type = Type::kInt;
  Backing backing = Backing::kBacked;
  std::optional<Number> hint = {};
  ValueRange declared = {};          // what its maker, or `constrain`, allows
  ValueRange range = {};             // the part of it that guards, checks and equalities leave
  bool is_size = false;              // made as a size of a tensor, not as a number
  bool size_like = false;            // comes from data and is used as a size
  std::vector<Source> sources = {};  // everything that shares the symbol; at least one
  const Expr* expr = nullptr;
};

// Where a question was asked: the line that asked, which may be weft's own, and the calls that led to it.
struct Location {
  std::string_view file;
  std::string_view function;
  uint32_t line = 0;  // 0 for an implicit conversion
  StackTrace trace;

  Location() = default;
  Location(const std::source_location& where)  // NOLINT(google-explicit-constructor)
      : file(where.file_name()), function(where.function_name()), line(where.line()) {}
  // "model.cc:41": the user's line where debug information has it, else the line that asked.
  std::string to_string() const;
};

// A condition that the captured program relies on.
struct Guard {
  const Expr* condition = nullptr;
  Location where;
  std::string message;  // the text given to `check`

  // The condition itself: undecided, though the environment has learnt that it holds.
  SymBool as_bool() const;
};

using Bindings = std::unordered_map<const Expr*, Number>;

struct Snapshot;

}  // namespace sym

// Owns symbols, expressions and what is known about them. Used by one thread at a time; values of it may be
// destroyed on any thread, and keep it alive.
//   auto env = ShapeEnv::create();
//   SymInt n = env->create_symbol(8, "x.size(0)");
//   guard(n % 4 == 0);      // true, and env->guards() has Eq(Mod(s0, 4), 0)
class ShapeEnv : public RefCounted {
 public:
  struct Options {
    bool duck_shape = true;           // equal hints share a symbol
    bool specialize_zero_one = true;  // sizes 0 and 1 are constants, and other sizes are at least 2
    bool record_guards = true;        // false: values are decided by their hints and nothing is remembered
  };
  static Ref<ShapeEnv> create() { return create(Options()); }
  static Ref<ShapeEnv> create(Options options);
  ~ShapeEnv();

  const Options& options() const { return options_; }

  // A size with an example value. `source` says where it comes from.
  SymInt create_symbol(int64_t hint, sym::Source source, sym::DimPolicy policy = sym::DimPolicy::kDuck,
                       std::optional<sym::ValueRange> range = std::nullopt);
  // An integer that is no size: it may be negative. With kDuck it shares the symbols of sizes, and 0 and 1
  // are constants, as for them.
  SymInt create_value(int64_t hint, sym::Source source, sym::DimPolicy policy = sym::DimPolicy::kDynamic,
                      std::optional<sym::ValueRange> range = std::nullopt);
  SymFloat create_float_symbol(double hint, sym::Source source);
  // Values that are only known at run time.
  SymInt create_unbacked_int(sym::Source source = {}, sym::ValueRange range = {});
  SymFloat create_unbacked_float(sym::Source source = {});
  SymBool create_unbacked_bool(sym::Source source = {});
  // The symbol as described, in its declared range: with a name that a file gives it, or a backed one without
  // a hint, of which a question that only the hint could answer is an error. No name is given twice.
  const sym::Expr* add_symbol(sym::Symbol symbol);
  // One more place that the symbol is read at.
  void add_source(const sym::Expr* symbol, sym::Source source);
  // The unbacked values that are asked for next are these, as long as their types agree: a graph that is run
  // again computes what it computed. An earlier list is forgotten.
  void reuse_unbacked(std::vector<const sym::Expr*> symbols) { reused_ = std::move(symbols); }

  // In the order of their creation. A Symbol stays where it is until it is rolled back.
  const std::deque<sym::Symbol>& symbols() const { return symbols_; }
  // The symbol with this name; null when there is none.
  const sym::Symbol* find_symbol(std::string_view name) const;
  // The symbol of a symbolic value that is nothing but a symbol; null otherwise, and after a rollback.
  const sym::Symbol* symbol_of(const sym::Expr* expr) const;
  // Gives a symbol another example value.
  void set_hint(const sym::Expr* symbol, sym::Number value);
  // Declares what the symbol can be; an error when nothing is left.
  void constrain(const sym::Expr* symbol, const sym::ValueRange& range);
  void mark_size_like(const sym::Expr* symbol);

  // Conditions on inputs, and those that only a run can answer: about data, or deferred.
  std::span<const sym::Guard> guards() const { return guards_; }
  std::span<const sym::Guard> runtime_asserts() const { return runtime_asserts_; }
  // A line for each guard, " - Eq(s1, 20)".
  std::string format_guards() const;
  // The substitutions found from equalities, in the order of their symbols.
  std::vector<std::pair<const sym::Expr*, const sym::Expr*>> replacements() const;
  // From now on a condition on inputs for which `is_deferred` is true becomes a run-time assertion, not a
  // guard.
  void defer_guards(std::function<bool(const sym::Expr* condition)> is_deferred) {
    is_deferred_ = std::move(is_deferred);
  }
  // From now on a question that would add a guard or an assertion is an error.
  void freeze() { frozen_ = true; }
  bool is_frozen() const { return frozen_; }

  // The expression with everything known applied.
  const sym::Expr* simplify(const sym::Expr* expr);
  // The expression with symbols (or other subexpressions) replaced.
  const sym::Expr* substitute(const sym::Expr* expr,
                              const std::unordered_map<const sym::Expr*, const sym::Expr*>& map);
  SymInt substitute(const SymInt& value, const std::unordered_map<const sym::Expr*, const sym::Expr*>& map);
  // The value for given values of its symbols; nothing when one is missing or the value is undefined
  // (division by zero, overflow).
  std::optional<sym::Number> evaluate(const sym::Expr* expr, const sym::Bindings& bindings) const;
  // The value at the hints.
  std::optional<sym::Number> hint(const sym::Expr* expr) const;
  // Bounds of an integer or bool, from the ranges of its symbols and what was checked.
  sym::ValueRange range(const sym::Expr* expr) const;
  // The value when ranges and facts decide it.
  std::optional<bool> decide(const sym::Expr* condition);
  std::optional<int64_t> constant_value(const sym::Expr* expr);
  // The symbols that the expression uses, in the order of their creation.
  std::vector<const sym::Symbol*> free_symbols(const sym::Expr* expr) const;
  // The constant as an expression of this environment.
  const sym::Expr* constant(int64_t value);
  // The expression of a value, plain or symbolic, in this environment.
  const sym::Expr* expr_of(const SymInt& value);

  // What the free functions `guard`, `guard_or`, `check` and `guard_int` do.
  bool guard_bool(const sym::Expr* condition, const sym::Location& where);
  bool guard_bool_or(const sym::Expr* condition, bool otherwise, const sym::Location& where);
  int64_t guard_int(const sym::Expr* expr, const sym::Location& where);
  double guard_float(const sym::Expr* expr, const sym::Location& where);
  void check(const sym::Expr* condition, std::string_view message, const sym::Location& where);

  // A state to come back to. A rollback forgets the symbols, names, guards, assertions and facts since then,
  // and ends the checkpoints taken since. Values over forgotten symbols may only be printed and destroyed.
  using Checkpoint = std::shared_ptr<const sym::Snapshot>;
  Checkpoint checkpoint();
  void rollback(const Checkpoint& to);
  // The same, but for guards and assertions that no forgotten symbol takes part in.
  void forget_symbols_since(const Checkpoint& start);

  sym::ExprPool& pool() { return *pool_; }
  // How many expressions were made.
  size_t pool_size() const;

 private:
  friend class sym::ExprPool;
  explicit ShapeEnv(Options options);

  friend struct sym::Snapshot;

  std::optional<SymInt> shared_or_constant(int64_t hint, const sym::Source& source, bool is_size);
  sym::Symbol& mutable_symbol(const sym::Expr* symbol, const char* what);
  std::string next_name(const sym::Symbol& symbol);
  const sym::Expr* unbacked(sym::Symbol symbol);
  void record(const sym::Expr* condition, std::string_view message, const sym::Location& where);
  // One step of simplification (simplify.cc).
  const sym::Expr* apply_known(const sym::Expr* expr);
  const sym::Expr* exact_products(const sym::Expr* sum);
  bool is_multiple(const sym::Expr* expr, const sym::Expr* divisor);
  // Learning from a condition that holds (facts.cc).
  void learn(const sym::Expr* condition);
  void learn_one(const sym::Expr* condition);
  void learn_equality(const sym::Expr* polynomial);
  void learn_bound(const sym::Expr* polynomial, int64_t upper);
  void narrow_symbols(const sym::Expr* polynomial, int64_t upper);
  void narrow(const sym::Expr* symbol, const sym::ValueRange& range);
  bool solve_for_symbol(const sym::Expr* polynomial);
  void set_replacement(const sym::Expr* symbol, const sym::Expr* value);
  std::optional<bool> decide_with_sizes_at_least_two(const sym::Expr* condition);

  Options options_;
  bool frozen_ = false;
  std::function<bool(const sym::Expr*)> is_deferred_;
  std::vector<const sym::Expr*> reused_;
  std::deque<sym::Symbol> symbols_;
  std::map<std::string, const sym::Expr*, std::less<>> names_;
  std::map<std::string, int64_t, std::less<>> name_counts_;
  std::unordered_map<int64_t, const sym::Expr*> duck_;
  std::vector<sym::Guard> guards_;
  std::vector<sym::Guard> runtime_asserts_;
  std::map<uint32_t, std::pair<const sym::Expr*, const sym::Expr*>> replacements_;  // by id of the key
  std::unordered_map<const sym::Expr*, bool> facts_;
  std::unique_ptr<sym::ExprPool> pool_;
  std::vector<std::weak_ptr<const sym::Snapshot>> checkpoints_;
};

namespace sym {

// While it lives, an attempt: what the environment learns is rolled back at the end, unless it is kept.
class Trial {
 public:
  explicit Trial(ShapeEnv& env) : env_(&env), start_(env.checkpoint()) {}
  ~Trial() {
    if (start_) env_->rollback(start_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  void keep() { start_ = nullptr; }
  // Ends it: conditions on what was there before are kept, new symbols are not.
  void keep_conditions() { env_->forget_symbols_since(std::exchange(start_, nullptr)); }

 private:
  Ref<ShapeEnv> env_;
  ShapeEnv::Checkpoint start_;
};

}  // namespace sym

}  // namespace weft
