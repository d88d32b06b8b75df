#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "weft/sym/value_range.h"

namespace weft {
class ShapeEnv;
}

namespace weft::sym {

class ExprPool;

enum class Type : uint8_t { kInt, kBool, kFloat };

enum class Kind : uint8_t {
  kConstant,  // value() or float_value()
  kSymbol,    // value() is the index into ShapeEnv::symbols()
  // Integers. A polynomial is value() + sum of coefficients()[i] * args()[i]; each arg is a kMul or an atom.
  kAdd,
  kMul,  // the product of args()[i] ** coefficients()[i]
  kFloorDiv,
  kMod,
  kMin,
  kMax,
  kPow,  // an exponent that is not a constant
  kWhere,
  kFloorToInt,
  kCeilToInt,
  kTruncToInt,
  kRoundToInt,
  // Bools. A comparison of integers has one arg, a polynomial p, and means p == 0, p < 0, ...;
  // one of floats has two args.
  kEq,
  kNe,
  kLt,
  kLe,
  kAnd,
  kOr,
  kNot,
  kHeld,  // a condition that no fact decides: what a Guard says
  // Floats: never reassociated, so that values keep their bits.
  kToFloat,
  kIntTrueDiv,
  kFloatAdd,
  kFloatMul,
  kFloatTrueDiv,
  kFloatPow,
  kFloatMin,
  kFloatMax,
  kSqrt,
};

// A number of any of the three types.
using Number = std::variant<int64_t, bool, double>;

// An immutable expression in normal form, hash-consed by its ShapeEnv: equal expressions of one environment
// have equal addresses. They live as long as the environment.
class Expr {
 public:
  Kind kind() const { return kind_; }
  Type type() const { return type_; }
  // Null for a constant that belongs to no environment.
  ShapeEnv* env() const;
  ExprPool* pool() const { return pool_; }
  std::span<const Expr* const> args() const { return {args_, arg_count_}; }
  const Expr* arg(size_t i) const { return args_[i]; }
  std::span<const int64_t> coefficients() const { return {coefficients_, coefficients_ ? arg_count_ : 0}; }
  int64_t value() const { return value_; }
  double float_value() const { return std::bit_cast<double>(value_); }
  bool is_constant() const { return kind_ == Kind::kConstant; }
  bool is_symbol() const { return kind_ == Kind::kSymbol; }
  bool is_comparison() const { return kind_ >= Kind::kEq && kind_ <= Kind::kLe; }
  bool has_unbacked() const { return has_unbacked_; }
  // The serial number within the environment: children come before parents.
  uint32_t id() const { return id_; }
  uint64_t hash() const { return hash_; }
  // As SymPy prints it: "2*s0 + 1", "Ne(Mod(s0, 20), 0)".
  std::string to_string() const;

 private:
  friend class ExprPool;
  Expr() = default;

  Kind kind_{};
  Type type_{};
  bool has_unbacked_ = false;
  uint32_t arg_count_ = 0;
  uint32_t id_ = 0;
  uint64_t hash_ = 0;
  ExprPool* pool_ = nullptr;
  int64_t value_ = 0;
  const Expr* const* args_ = nullptr;
  const int64_t* coefficients_ = nullptr;
};

}  // namespace weft::sym
