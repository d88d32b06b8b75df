#pragma once

#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/sym/expr.h"

namespace weft::sym {

// Makes and owns expressions, each once (hash-consing). Nodes are trivially destructible and live in one
// arena, so that freeing any number of them, however deep, is freeing a few blocks.
class ExprPool {
 public:
  // What is remembered about a node. An answer is current when its epoch is the pool's; an old range is
  // looser than a current one but still holds: where facts are taken back, `revise` starts anew.
  struct State {
    const Expr* expr = nullptr;
    ValueRange range = {};
    std::optional<Number> hint = {};
    const Expr* simplified = nullptr;
    uint32_t range_epoch = 0, hint_epoch = 0, simplified_epoch = 0;
    bool is_forgotten = false;
  };

  explicit ExprPool(ShapeEnv* env) : env_(env) {}
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  ShapeEnv* env() const { return env_; }
  const Expr* constant(int64_t value) { return make(Kind::kConstant, Type::kInt, {}, {}, value); }
  const Expr* boolean(bool value) { return make(Kind::kConstant, Type::kBool, {}, {}, value); }
  const Expr* real(double value);
  const Expr* symbol(int64_t index, Type type, bool unbacked, const ValueRange& range,
                     const std::optional<Number>& hint);
  // The node with these parts, which must be in normal form already.
  const Expr* make(Kind kind, Type type, std::span<const Expr* const> args,
                   std::span<const int64_t> coefficients = {}, int64_t value = 0);

  // Expressions over this symbol are never found again, though they stay in memory.
  void forget(const Expr* symbol, std::string name);
  // After symbols were forgotten and the states of others set back: makes every other state follow from
  // theirs.
  void revise();

  State& state(const Expr* expr) { return states_[expr->id()]; }
  size_t size() const { return states_.size(); }

  // The bounds that checks gave to sums: keyed by a polynomial without constant, first coefficient positive.
  std::unordered_map<const Expr*, ValueRange> bounds;
  // Counts up when facts are added, and when hints change.
  uint32_t facts_epoch = 1, hint_epoch = 1;
  // Of symbols that are gone, for whoever prints a value over them.
  std::unordered_map<const Expr*, std::string> forgotten_names;

 private:
  struct Parts {
    Kind kind;
    Type type;
    std::span<const Expr* const> args;
    std::span<const int64_t> coefficients;
    int64_t value;
    uint64_t hash;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const Parts& parts) const { return parts.hash; }
    size_t operator()(const Expr* expr) const { return expr->hash(); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Expr* a, const Expr* b) const { return a == b; }
    bool operator()(const Parts& a, const Expr* b) const;
    bool operator()(const Expr* a, const Parts& b) const { return (*this)(b, a); }
  };
  template <typename T>
  const T* store(std::span<const T> values);
  Expr* allocate(const Parts& parts);

  ShapeEnv* env_;
  std::pmr::monotonic_buffer_resource arena_;
  std::unordered_set<const Expr*, Hash, Equal> nodes_;
  std::vector<State> states_;
};

}  // namespace weft::sym
