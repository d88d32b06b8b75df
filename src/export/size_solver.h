#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/sym/shape_env.h"

namespace weft {

// Whether declarations of sizes can say it: a relation that tells a size from others, a bound of one size, a
// remainder of one size. Anything else is complex.
bool is_expressible(const sym::Expr* condition);

// What conditions on sizes leave of them. It works on a copy of the symbols, with what is declared of them:
// what an environment learnt from a condition says nothing about whether it was declared.
//
// The answer is sufficient: sizes that it allows fulfil every condition. Where a condition is too complex for
// declarations, sizes are set to those of the example.
class SizeSolver {
 public:
  // The conditions that changed a size.
  struct Cause {
    size_t condition;
    bool is_forced;  // set to the example, since the condition is too complex
  };
  // s = modulus * t + remainder, for a t of its own.
  struct Congruence {
    int64_t modulus, remainder;
  };
  struct Size {
    const sym::Expr* symbol;  // of the environment that is asked about
    std::optional<int64_t> constant;
    // Of a size that follows from another: scale * other + offset.
    const sym::Expr* other = nullptr;
    int64_t scale = 1, offset = 0;
    // ... or, of another that has a remainder, from the t of that.
    bool is_of_step = false;
    // A relation of more than one other size.
    std::string relation;
    std::optional<Congruence> congruence;
    sym::ValueRange range, declared;
    std::vector<Cause> causes;
    bool is_changed() const { return !causes.empty(); }
    bool is_forced() const;
  };

  // A symbol that conditions are about, and what is declared of it. Other symbols are as good as constants.
  struct Unknown {
    const sym::Expr* symbol;
    sym::ValueRange declared;
  };
  SizeSolver(ShapeEnv& env, std::vector<Unknown> unknowns, std::vector<const sym::Expr*> conditions);
  // In the order of the symbols.
  std::vector<Size> solve();

 private:
  struct Values {
    int64_t lo, hi, step;
  };
  const sym::Expr* copied(const sym::Expr* expr);
  bool pass();
  bool settle(size_t condition, const sym::Expr* expr);
  bool settle_equality(size_t condition, const sym::Expr* expr);
  bool settle_congruence(size_t condition, const sym::Expr* expr);
  bool settle_bounds(size_t condition, const sym::Expr* expr);
  bool settle_at_hints(size_t condition, const sym::Expr* expr);
  bool introduce_steps(const sym::Expr* expr);
  sym::ValueRange range_of(const sym::Expr* symbol) const;
  bool force(size_t condition, const sym::Expr* expr);
  bool settle_single_values();
  Values values_of(const sym::Expr* symbol) const;
  bool holds_everywhere(const sym::Expr* expr) const;
  bool learn(size_t condition, const sym::Expr* expr, bool is_forced = false);
  bool holds(const sym::Expr* expr, int64_t value, const sym::Expr* symbol) const;
  int64_t example(const sym::Expr* symbol) const;
  std::vector<const sym::Expr*> symbols_in(const sym::Expr* expr) const;

  ShapeEnv& env_;
  std::vector<const sym::Expr*> symbols_;
  std::vector<sym::ValueRange> declared_;
  Ref<ShapeEnv> own_;
  std::vector<const sym::Expr*> own_symbols_;
  std::vector<const sym::Expr*> conditions_;  // copies
  std::map<const sym::Expr*, Congruence> congruences_;
  bool has_replaced_ = false;  // a size by a number, or by what it is of its t
  // The t of sizes that were written as modulus * t + remainder, with the places of these sizes.
  std::map<const sym::Expr*, size_t> steps_;
  std::map<const sym::Expr*, std::vector<Cause>> causes_;  // by own symbol
};

}  // namespace weft
