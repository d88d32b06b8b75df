// Derivatives against finite differences: first order, second order where formulas can be differentiated
// again.
#include "ops/gradient_support.h"

namespace weft::table {
namespace {

bool may_be_differentiated(const Operator& op) {
  return !op.has(Traits::kNotDifferentiable) && !op.has(Traits::kRandom) && !op.has(Traits::kUninitialized) &&
         !is_mutable(op);
}

bool is_wide(const Tensor& tensor) { return tensor.dtype() == kFloat64 || tensor.dtype() == kComplex128; }

// A recorded call: its results that carry gradients, and their indices among all results.
struct Recorded {
  std::vector<Tensor> leaves, outputs, weights;
  std::vector<size_t> indices;
};

Recorded record(const Operator& op, const std::vector<Value>& args) {
  Recorded recorded;
  recorded.leaves = differentiable_in(op, args);
  for (const Tensor& leaf : recorded.leaves) leaf.set_requires_grad();
  std::vector<Tensor> results = tensors_in(call(op, args));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad()) continue;
    recorded.outputs.push_back(results[i]);
    recorded.indices.push_back(i);
  }
  return recorded;
}
void stop_recording(const Recorded& recorded) {
  for (const Tensor& leaf : recorded.leaves) leaf.set_requires_grad(false);
}

// The weighted sum of the results at `indices`.
double value_of(const Operator& op, const std::vector<Value>& args, const std::vector<size_t>& indices) {
  GradModeScope no_grad(false);
  std::vector<Tensor> results = tensors_in(call(op, args));
  double sum = 0;
  for (size_t index : indices) sum += weighted_sum(results[index]);
  return sum;
}

std::vector<Tensor> gradients(const Recorded& recorded, bool create_graph) {
  std::vector<Tensor> weights;
  for (const Tensor& output : recorded.outputs) weights.push_back(weights_like(output));
  return autograd::grad(recorded.outputs, recorded.leaves, weights,
                        {.create_graph = create_graph, .allow_unused = true});
}

void check_gradients(const Operator& op, const std::vector<Value>& args, std::vector<std::string>& texts) {
  Recorded recorded = record(op, args);
  if (recorded.leaves.empty()) return;
  for (const Tensor& output : recorded.outputs)
    if (!is_wide(output)) return;  // the call asks for a narrower type
  std::vector<Tensor> got(recorded.leaves.size());
  if (!recorded.outputs.empty()) {
    got = gradients(recorded, false);
  } else {
    // A result without a gradient must not depend on the inputs.
    std::vector<Tensor> results = tensors_in(call(op, args));
    for (size_t i = 0; i < results.size(); ++i)
      if (is_wide(results[i])) recorded.indices.push_back(i);
  }
  stop_recording(recorded);
  for (size_t i = 0; i < recorded.leaves.size(); ++i) {
    std::vector<double> expected =
        differences(recorded.leaves[i], [&] { return value_of(op, args, recorded.indices); });
    compare_gradient(fmt::format("gradient {}", i), got[i], recorded.leaves[i], expected, texts);
  }
}

TEST(Gradients, AgreeWithFiniteDifferences) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    check_gradients(*one.op, in_double(one.args()), texts);
  };
  expect_only(check_samples(may_be_differentiated, check), kSavedStatistics);
}

// What PyTorch refuses to differentiate for complex numbers is refused in its words.
const Exceptions kRealOnly = {{"aten::silu", "its gradient is for real numbers only"}};

TEST(Gradients, OfComplexNumbersAgreeWithFiniteDifferences) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> args = in_complex(one.args());
    if (accepts(*one.op, args)) check_gradients(*one.op, args, texts);
  };
  expect_only(check_samples(may_be_differentiated, check), kRealOnly);
}

// First and second order have weights of their own: the product of a complex number with its conjugate is
// real, and would hide a missing conjugate.
constexpr size_t kOtherWeights = 5;

// The weighted sum of the first-order gradients.
double gradient_value(const Operator& op, const std::vector<Value>& args) {
  Recorded recorded = record(op, args);
  double sum = 0;
  for (const Tensor& gradient : gradients(recorded, false))
    if (gradient.defined()) sum += weighted_sum(gradient, kOtherWeights);
  stop_recording(recorded);
  return sum;
}

// False where the formula cannot be differentiated again.
bool check_second_gradients(const Operator& op, const std::vector<Value>& args,
                            std::vector<std::string>& texts) {
  Recorded recorded = record(op, args);
  if (recorded.leaves.empty() || recorded.outputs.empty()) return true;
  for (const Tensor& output : recorded.outputs)
    if (!is_wide(output)) return true;
  std::vector<Tensor> second(recorded.leaves.size());
  try {
    std::vector<Tensor> first, weights;
    for (const Tensor& gradient : gradients(recorded, true)) {
      if (!gradient.defined() || !gradient.requires_grad()) continue;
      first.push_back(gradient);
      weights.push_back(weights_like(gradient, kOtherWeights));
    }
    if (!first.empty()) second = autograd::grad(first, recorded.leaves, weights, {.allow_unused = true});
  } catch (const UnsupportedError&) {
    return false;
  }
  stop_recording(recorded);
  for (size_t i = 0; i < recorded.leaves.size(); ++i) {
    std::vector<double> expected = differences(recorded.leaves[i], [&] { return gradient_value(op, args); });
    compare_gradient(fmt::format("second gradient {}", i), second[i], recorded.leaves[i], expected, texts);
  }
  return true;
}

TEST(Gradients, OfGradientsAgreeWithFiniteDifferences) {
  std::vector<std::string> first_order_only;
  auto check = [&](const Case& one, std::vector<std::string>& texts) {
    if (!check_second_gradients(*one.op, in_double(one.args()), texts))
      first_order_only.push_back(one.name());
  };
  expect_only(check_samples(may_be_differentiated, check), {});
  if (!first_order_only.empty())
    std::cout << "first order only: " << ::testing::PrintToString(first_order_only) << "\n";
}

TEST(Gradients, OfGradientsOfComplexNumbersAgreeWithFiniteDifferences) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    std::vector<Value> args = in_complex(one.args());
    if (accepts(*one.op, args)) check_second_gradients(*one.op, args, texts);
  };
  expect_only(check_samples(may_be_differentiated, check), kRealOnly);
}

}  // namespace
}  // namespace weft::table
