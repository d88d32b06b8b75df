#pragma once

#include "weft/core/typed_value.h"
#include "weft/ops/operators.h"

namespace weft {

// A handle to a value of any kind, for code whose types are only known when it runs: numbers, tensors,
// dictionaries. Its operators compute, or under symbolic_trace record.
//
//   Var f(Var a, Var b) {
//     assert_that(a == b, "must be equal");
//     return a + b["x"];
//   }
class Var {
 public:
  Var() = default;
  template <typename T>
    requires(!std::is_array_v<T> && !std::same_as<std::decay_t<T>, Var> && detail::ConvertsToValue<T>)
  Var(const T& value) : value_(wrap(to_value(value))) {}  // NOLINT(google-explicit-constructor)
  Var(const char* text) : value_(text) {}                 // NOLINT(google-explicit-constructor)
  // A Value as it is; a node of the graph that is being traced stands for what it will give.
  static Var of(Value value) {
    Var var;
    var.value_ = std::move(value);
    return var;
  }

  const Value& value() const noexcept { return value_; }
  // Whether it is a value that only a run of the graph will have.
  bool is_symbolic() const;
  // As a tensor; a symbolic one as a tensor that records.
  Tensor tensor() const;
  template <typename T>
  T as() const {
    require_known("as()");
    return from_value<T>(value_);
  }
  // An error for a symbolic value: C++ cannot branch on what is not known.
  explicit operator bool() const;

  // An item of a sequence, or of a dictionary by its key.
  Var operator[](const Var& key) const;
  // The method of that name on a tensor: x.method("sum", {0}).
  Var method(std::string_view name, std::initializer_list<Var> args = {}) const;

  Var operator-() const { return apply("operator.neg", {*this}); }
  Var& operator+=(const Var& other) { return *this = apply("operator.add", {*this, other}); }
  Var& operator-=(const Var& other) { return *this = apply("operator.sub", {*this, other}); }
  Var& operator*=(const Var& other) { return *this = apply("operator.mul", {*this, other}); }

  // Friends, so that only a Var among the operands brings them in.
#define WEFT_VAR_OPERATOR(symbol, name) \
  friend Var operator symbol(const Var& a, const Var& b) { return apply("operator." name, {a, b}); }
  WEFT_VAR_OPERATOR(+, "add")
  WEFT_VAR_OPERATOR(-, "sub")
  WEFT_VAR_OPERATOR(*, "mul")
  WEFT_VAR_OPERATOR(/, "truediv")
  WEFT_VAR_OPERATOR(%, "mod")
  WEFT_VAR_OPERATOR(==, "eq")
  WEFT_VAR_OPERATOR(!=, "ne")
  WEFT_VAR_OPERATOR(<, "lt")
  WEFT_VAR_OPERATOR(<=, "le")
  WEFT_VAR_OPERATOR(>, "gt")
  WEFT_VAR_OPERATOR(>=, "ge")
#undef WEFT_VAR_OPERATOR

  // The function of that name in graphs: "operator.add".
  static Var apply(std::string_view function, std::initializer_list<Var> args);

 private:
  static Value wrap(Value value);
  void require_known(std::string_view what) const;
  Value value_;
};

// A check that captures keep: recorded when the condition is symbolic, otherwise an error with this message
// when it does not hold.
void assert_that(const Var& condition, std::string_view message = "");

namespace detail {
template <>
struct Converter<Var> {
  static Value put(const Var& var) { return var.value(); }
  static Var get(const Value& value, const Place*) { return Var::of(value); }
};
}  // namespace detail

}  // namespace weft
