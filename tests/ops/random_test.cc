// Random operators draw from their generator by (seed, offset): the same numbers from the same state, and a
// step that depends on sizes only.
#include "weft/base/random.h"
#include "ops/table_support.h"
#include "support/expect_error.h"
#include "support/tensors.h"
#include "weft/ops/fake.h"

namespace weft::table {
namespace {

bool is_random(const Operator& op) { return op.has(Traits::kRandom); }

constexpr uint64_t kSeed = 17;

// The results of a call from a fresh seed, and how far it moved the generator.
std::pair<Value, uint64_t> draw(const Case& one, std::vector<Value> args) {
  GradModeScope no_grad(false);
  auto scope = fork_rng();
  manual_seed(kSeed);
  Value result = call(*one.op, args);
  return {is_mutable(*one.op) ? Value::list(args) : result, default_generator().offset()};
}

TEST(Random, GivesTheSameFromTheSameState) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    auto [first, step] = draw(one, one.args());
    auto [second, again] = draw(one, one.args());
    if (!one.op->has(Traits::kUninitialized)) compare_values(second, first, true, texts, "second call");
    if (again != step) texts.push_back(fmt::format("moves the generator by {}, then by {}", step, again));
  };
  expect_only(check_samples(is_random, check), {});
}

TEST(Random, StepsDependOnSizesOnly) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    auto [result, step] = draw(one, one.args());
    GradModeScope no_grad(false);
    std::vector<Value> others = map_tensors(one.args(), [](const Tensor& t) -> Tensor {
      Tensor copy = laid_out(t, true, 2, 1);
      if (is_differentiable(t.dtype())) mul_(copy, 0.5);
      return copy;
    });
    auto [varied, other_step] = draw(one, others);
    if (step != other_step)
      texts.push_back(fmt::format("moves by {} or by {}, by values or layout", step, other_step));
  };
  expect_only(check_samples(is_random, check), {});
}

TEST(Random, TheTableTellsHowManyNumbersAreDrawn) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> args = one.args();
    auto [result, step] = draw(one, args);
    const bool has_own = std::any_of(args.begin(), args.end(),
                                     [](const Value& arg) { return arg.kind() == Value::Kind::kGenerator; });
    const Value& first = result.is_sequence() ? result.elements().front() : result;
    SymInt told = one.op->def().draws ? one.op->def().draws(args) : first.to_tensor().numel();
    if (has_own) told = 0;
    if (static_cast<int64_t>(step) != told.plain())
      texts.push_back(fmt::format("moves by {}, the table says {}", step, told.plain()));
  };
  auto is_functional = [](const Operator& op) { return is_random(op) && !is_mutable(op); };
  expect_only(check_samples(is_functional, check), {});
}

TEST(Random, FakeExecutionDrawsNothing) {
  auto is_random = [](const Operator& op) {
    return op.has(Traits::kRandom) && !op.has(Traits::kDataDependent);
  };
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> real = one.args();
    FakeMode mode;
    auto [result, step] = draw(one, map_tensors(real, [&](const Tensor& t) { return mode.fake_of(t); }));
    if (step != 0) texts.push_back(fmt::format("moves the generator by {}", step));
  };
  expect_only(check_samples(is_random, check), {});
}

TEST(Random, ProbabilitiesMustFit) {
  const Tensor x = zeros({2, 3});
  EXPECT_USER_ERROR(bernoulli(x, full({4}, 0.5)), "expected 'p' to broadcast to sizes [2, 3]");
  EXPECT_USER_ERROR(x.bernoulli_(full({3, 3}, 0.5)), "expected 'p' to broadcast to sizes [2, 3]");
  EXPECT_EQ(testing::values(bernoulli(x, ones({3}))), std::vector<double>(6, 1));
  EXPECT_EQ(testing::values(bernoulli(x, ones({2, 1}))), std::vector<double>(6, 1));
}

}  // namespace
}  // namespace weft::table
