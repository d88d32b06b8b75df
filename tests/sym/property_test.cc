// Laws that hold for random expressions at random values.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "weft/sym/shape_env.h"

namespace weft {
namespace {

using sym::Number;
using sym::ValueRange;

// A random expression beside a function that computes it with plain integers.
struct Sample {
  SymInt value;
  std::function<std::optional<int64_t>(const std::vector<int64_t>&)> plain;
};

class Expressions {
 public:
  explicit Expressions(uint32_t seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) symbols_.push_back(env->create_symbol(5 + i, "x", sym::DimPolicy::kDynamic));
    symbols_.push_back(env->create_unbacked_int());
  }

  Sample make(int depth) {
    int choice = depth == 0 ? pick(2) : pick(10);
    if (choice == 0) return constant(pick(13) - 6);
    if (choice == 1 || choice == 9) return symbol(pick(4));
    Sample a = make(depth - 1), b = make(depth - 1);
    switch (choice) {
      case 2:
        return combine(a, b, a.value + b.value, [](int64_t x, int64_t y) { return x + y; });
      case 3:
        return combine(a, b, a.value - b.value, [](int64_t x, int64_t y) { return x - y; });
      case 4:
        return combine(a, b, a.value * b.value, [](int64_t x, int64_t y) { return x * y; });
      case 5:
        return combine(a, b, min(a.value, b.value), [](int64_t x, int64_t y) { return std::min(x, y); });
      case 6:
        return combine(a, b, max(a.value, b.value), [](int64_t x, int64_t y) { return std::max(x, y); });
      default:
        return division(a, b, choice == 7);
    }
  }

  std::vector<int64_t> values() {
    std::vector<int64_t> result;
    for (int i = 0; i < 3; ++i) result.push_back(2 + pick(30));
    result.push_back(pick(41) - 20);
    return result;
  }
  sym::Bindings bindings(const std::vector<int64_t>& values) {
    sym::Bindings result;
    for (size_t i = 0; i < values.size(); ++i) result.emplace(symbols_[i].expr(), Number(values[i]));
    return result;
  }
  std::optional<int64_t> evaluate(const SymInt& value, const std::vector<int64_t>& at) {
    std::optional<Number> number = env->evaluate(env->expr_of(value), bindings(at));
    return number ? std::optional(std::get<int64_t>(*number)) : std::nullopt;
  }

  Ref<ShapeEnv> env = ShapeEnv::create();

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  Sample constant(int64_t c) {
    return {c, [c](const auto&) { return c; }};
  }
  Sample symbol(int i) {
    return {symbols_[static_cast<size_t>(i)], [i](const auto& v) { return v[static_cast<size_t>(i)]; }};
  }
  template <typename F>
  static Sample combine(const Sample& a, const Sample& b, SymInt value, F f) {
    return {std::move(value), [=](const std::vector<int64_t>& v) -> std::optional<int64_t> {
              auto x = a.plain(v), y = b.plain(v);
              if (!x || !y) return std::nullopt;
              return f(*x, *y);
            }};
  }
  static Sample division(const Sample& a, const Sample& b, bool remainder) {
    if (b.value.maybe_plain() == 0) return a;
    SymInt value = remainder ? mod(a.value, b.value) : floor_div(a.value, b.value);
    return {value, [=](const std::vector<int64_t>& v) -> std::optional<int64_t> {
              auto x = a.plain(v), y = b.plain(v);
              if (!x || !y || *y == 0) return std::nullopt;
              int64_t rest = *x % *y, quotient = *x / *y;
              if (rest != 0 && (rest < 0) != (*y < 0)) rest += *y, --quotient;
              return remainder ? rest : quotient;
            }};
  }

  std::mt19937 random_;
  std::vector<SymInt> symbols_;
};

TEST(SymProperty, NormalFormsKeepTheValue) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Expressions expressions(seed);
    Sample sample = expressions.make(4);
    for (int i = 0; i < 10; ++i) {
      std::vector<int64_t> at = expressions.values();
      std::optional<int64_t> expected = sample.plain(at);
      if (!expected) continue;
      EXPECT_EQ(expressions.evaluate(sample.value, at), expected) << sample.value << " seed " << seed;
    }
  }
}

TEST(SymProperty, RangesHoldEveryValue) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Expressions expressions(seed);
    Sample sample = expressions.make(4);
    ValueRange range = expressions.env->range(expressions.env->expr_of(sample.value));
    for (int i = 0; i < 10; ++i) {
      std::optional<int64_t> value = sample.plain(expressions.values());
      if (!value) continue;
      EXPECT_TRUE(range.contains(*value)) << sample.value << " " << range.to_string() << " " << *value;
    }
  }
}

TEST(SymProperty, SumsAndProductsAreOneNode) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Expressions expressions(seed);
    SymInt a = expressions.make(3).value, b = expressions.make(3).value, c = expressions.make(2).value;
    EXPECT_TRUE((a + b).same_as(b + a));
    EXPECT_TRUE((a * b).same_as(b * a));
    EXPECT_TRUE(((a - b) + b).same_as(a));
    EXPECT_TRUE(((a + b) + c).same_as(a + (b + c)));
    EXPECT_TRUE(((a + b) * c).same_as(a * c + b * c));
    EXPECT_TRUE((a < b).same_as(b > a));
    EXPECT_TRUE((!(a == b)).same_as(b != a));
    EXPECT_TRUE(min(a, b).same_as(min(b, a)));
  }
}

TEST(SymProperty, ComparisonsAgreeWithTheValues) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Expressions expressions(seed);
    Sample a = expressions.make(3), b = expressions.make(3);
    SymBool less = a.value < b.value, equal = a.value == b.value, at_most = a.value <= b.value;
    auto truth = [&](const SymBool& value, const std::vector<int64_t>& at) {
      if (!value.is_symbolic()) return value.plain();
      return std::get<bool>(*expressions.env->evaluate(value.expr(), expressions.bindings(at)));
    };
    for (int i = 0; i < 5; ++i) {
      std::vector<int64_t> at = expressions.values();
      auto x = a.plain(at), y = b.plain(at);
      if (!x || !y) continue;
      EXPECT_EQ(truth(less, at), *x < *y) << less;
      EXPECT_EQ(truth(equal, at), *x == *y) << equal;
      EXPECT_EQ(truth(at_most, at), *x <= *y) << at_most;
    }
  }
}

TEST(SymProperty, SimplificationKeepsTheValueWhereTheFactsHold) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    Expressions expressions(seed);
    Sample sample = expressions.make(4), fact_a = expressions.make(2), fact_b = expressions.make(1);
    SymBool fact = seed % 3 == 0   ? fact_a.value == fact_b.value
                   : seed % 3 == 1 ? fact_a.value <= fact_b.value
                                   : mod(fact_a.value, 4) == 0;
    if (!fact.is_symbolic()) continue;
    const sym::Expr* before = expressions.env->expr_of(sample.value);
    const sym::Expr* condition = fact.expr();
    try {
      check(fact);
    } catch (const UserError&) {
      continue;  // the example sizes contradict it
    }
    const sym::Expr* after = expressions.env->simplify(before);
    ValueRange range = expressions.env->range(after);
    for (int i = 0; i < 200; ++i) {
      std::vector<int64_t> at = expressions.values();
      auto bindings = expressions.bindings(at);
      if (expressions.env->evaluate(condition, bindings) != Number(true)) continue;
      auto expected = expressions.env->evaluate(before, bindings);
      if (!expected) continue;
      EXPECT_EQ(expressions.env->evaluate(after, bindings), expected)
          << before->to_string() << " given " << condition->to_string() << " became " << after->to_string();
      EXPECT_TRUE(range.contains(std::get<int64_t>(*expected))) << condition->to_string();
    }
  }
}

TEST(SymProperty, DecisionsAgreeWithTheValues) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    Expressions expressions(seed);
    SymBool a = expressions.make(2).value < expressions.make(2).value;
    SymBool b = expressions.make(2).value == expressions.make(1).value;
    SymBool c = (a & !b) | (b & !a) | !(a | b);
    std::optional<bool> decided = c.maybe_plain();
    if (!decided || !c.is_symbolic()) continue;
    for (int i = 0; i < 20; ++i) {
      auto value = expressions.env->evaluate(c.expr(), expressions.bindings(expressions.values()));
      if (!value) continue;
      EXPECT_EQ(std::get<bool>(*value), *decided) << c;
    }
  }
}

}  // namespace
}  // namespace weft
