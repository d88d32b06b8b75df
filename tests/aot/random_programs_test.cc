// Random programs of views, writes and arithmetic do compiled what they do in eager mode, to the last alias.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "aot/min_cut.h"
#include "seeds/support/extensions.h"
#include "support/tensors.h"
#include "support/verify_aot.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/view_step.h"
#include "weft/ops/functions.h"
#include "weft/passes/merge_nodes.h"

namespace weft {
namespace {

using testing::aot_leaf;
using testing::MadeInputs;

// A list of steps over a growing list of tensors of 4 x 4 elements or parts of them.
struct Step {
  int kind = 0;
  size_t first = 0, second = 0;
};

class Program {
 public:
  explicit Program(uint32_t seed) {
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    inputs_ = 1 + below(3);
    shares_memory_ = below(3) == 0;
    for (size_t i = 0; i < inputs_; ++i) requires_grad_.push_back(below(2) == 0);
    size_t tensors = inputs_;
    for (size_t n = 2 + below(6); n > 0; --n) {
      Step step{static_cast<int>(below(14)), below(tensors), below(tensors)};
      steps_.push_back(step);
      ++tensors;
    }
    for (size_t n = 1 + below(3); n > 0; --n) results_.push_back(below(tensors));
    dynamic_ = below(4) == 0;
    of_two_ = !shares_memory_ && !dynamic_ && below(4) == 0;
  }

  bool is_dynamic() const { return dynamic_; }
  bool is_of_two() const { return of_two_; }
  std::string to_string() const {
    std::string text = fmt::format("{} inputs{}{}:", inputs_, shares_memory_ ? " of one memory" : "",
                                   of_two_ ? ", each two tensors" : "");
    for (const Step& step : steps_) text += fmt::format(" {}({}, {})", step.kind, step.first, step.second);
    text += " ->";
    for (size_t result : results_) text += fmt::format(" {}", result);
    for (bool wanted : requires_grad_) text += wanted ? " g" : " -";
    return text;
  }

  MadeInputs inputs() const {
    MadeInputs made;
    Tensor shared = aot_leaf(arange(16, DType::kFloat32).reshape({4, 4}).mul(0.1).clone(), requires_grad_[0]);
    Tensor base = shared_base(shared);
    if (shares_memory_) made.leaves.emplace_back(shared);
    for (size_t i = 0; i < inputs_; ++i) {
      if (shares_memory_) {
        made.inputs.emplace_back(i == 0 ? base.view({4, 4}) : base.t());
        continue;
      }
      auto values = [i](double scale) {
        return arange(16, DType::kFloat32).reshape({4, 4}).mul(scale + 0.1 * static_cast<double>(i)).clone();
      };
      Tensor leaf = aot_leaf(of_two_ ? testing::TwoTensor::make(values(0.1), values(0.3)) : values(0.1),
                             requires_grad_[i]);
      made.leaves.emplace_back(leaf);
      // Every third input begins within its memory, and is not square.
      made.inputs.emplace_back(i % 3 == 1 ? leaf.add(0.5).slice(0, 1, 3) : leaf.add(0.5));
    }
    return made;
  }

  Value run(Args args) const {
    std::vector<Tensor> tensors;
    for (const Value& arg : args) tensors.push_back(arg.to_tensor());
    for (const Step& step : steps_) tensors.push_back(apply(step, tensors));
    ValueList results;
    for (size_t i : results_) results.emplace_back(tensors[i]);
    return Value::tuple(results);
  }

 private:
  static Tensor shared_base(const Tensor& leaf) { return leaf.add(0.5); }

  static Tensor apply(const Step& step, const std::vector<Tensor>& tensors) {
    const Tensor &a = tensors[step.first], &b = tensors[step.second];
    switch (step.kind) {
      case 0:
        return a.sin();
      case 1:
        return a * 0.5;
      case 2:
        return a.sum() + b;
      case 3:
        return a.numel() == b.numel() ? a.reshape(b.sizes()) + b : a + 1;
      case 4:
        return a.dim() > 1 ? a.t() : a.unsqueeze(0);
      case 5:
        return a.is_contiguous() ? a.view(-1) : a.unsqueeze(-1);
      case 6:
        return a.dim() > 0 && a.size(0) > SymInt(1) ? a.select(0, 1) : a.unsqueeze(0);
      case 7:
        return a.dim() > 0 && a.size(0) > SymInt(2) ? a.slice(0, 1, 3) : a.tanh();
      case 8:
        return a.mul_(1.5);
      case 9:
        return a.add_(b.detach().mean());
      case 10:
        return a.detach();
      case 11: {
        NoGrad no_grad;
        return a.view(a.sizes());
      }
      case 12:
        return a.dim() == 2 ? a.t_() : a.cos();
      default:
        return a.clone();
    }
  }

  size_t inputs_ = 0;
  bool shares_memory_ = false, dynamic_ = false, of_two_ = false;
  std::vector<bool> requires_grad_;
  std::vector<Step> steps_;
  std::vector<size_t> results_;
};

bool runs_eagerly(const Program& program) {
  try {
    const MadeInputs made = program.inputs();
    for (const Value& output : tree_leaves(program.run(made.inputs))) {
      const Tensor& tensor = output.tensor_ref();
      // A view, with a history, of one that was made without: its gradient goes nowhere. Compiled, it has
      // none.
      if (tensor.is_view() && tensor.impl()->view->creation == ViewCreation::kNoGrad && !tensor.is_leaf())
        return false;
      if (tensor.requires_grad()) tensor.sum().backward({}, /*retain_graph=*/true);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

uint32_t program_count() {
  const char* given = std::getenv("WEFT_RANDOM_PROGRAMS");
  return given ? static_cast<uint32_t>(std::atoi(given)) : 500;
}

// Other values for the placeholders of a graph.
ValueList values_for(const GraphModule& graph) {
  ValueList values;
  for (Node* input : graph.graph().placeholders()) {
    const Tensor& like = input->meta_or_null()->value.tensor_ref();
    SymInts sizes;
    for (const SymInt& size : like.sizes()) sizes.emplace_back(*size.hint());
    values.emplace_back(randn(sizes));
  }
  return values;
}

// What the halves compute one after the other.
ValueList run_halves(const aot::Partition& partition, const ValueList& inputs, size_t own, size_t tangents) {
  const auto primals = inputs.end() - static_cast<ptrdiff_t>(tangents);
  ValueList all = partition.forward.call(ValueList(inputs.begin(), primals)).elements();
  const auto tensors = all.begin() + static_cast<ptrdiff_t>(own),
             symbols = tensors + static_cast<ptrdiff_t>(partition.num_saved_tensors);
  ValueList given(symbols, all.end());
  given.insert(given.end(), tensors, symbols);
  given.insert(given.end(), primals, inputs.end());
  all.resize(own);
  const Value gradients = partition.backward.call(given);
  for (const Value& gradient : gradients.elements()) all.push_back(gradient);
  return all;
}

void expect_equal_to_joint(const GraphModule& joint, const aot::Partition& partition, size_t own) {
  const ValueList inputs = values_for(joint), expected = joint.call(inputs).elements();
  const std::vector<Node*> placeholders = joint.graph().placeholders();
  const auto tangents =
      std::ranges::count_if(placeholders, [](Node* node) { return aot::is_tangent(*node); });
  const ValueList got = run_halves(partition, inputs, own, static_cast<size_t>(tangents));
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].is_tensor(), expected[i].is_tensor()) << i;
    if (got[i].is_tensor()) {
      EXPECT_TRUE(testing::close(got[i].tensor_ref(), expected[i].tensor_ref(), 1e-5, 1e-5)) << i;
    }
  }
}

// A joint graph and both ways to cut it.
struct Cuts {
  GraphModule joint;
  size_t own = 0;
  aot::Partition whole, least;
};

TEST(RandomAotPrograms, ArePartitionedIntoHalvesThatAreTheWhole) {
  uint32_t partitioned = 0, cheaper = 0;
  for (uint32_t seed = 0; seed < program_count(); ++seed) {
    const Program program(seed);
    if (!runs_eagerly(program)) continue;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.to_string()));
    std::optional<Cuts> cuts;
    auto keep = [&](const GraphModule& given, size_t own) {
      GraphModule joint(given, given.graph().copy());
      merge_common_subexpressions(joint, [](const Node&) { return false; });
      cuts = Cuts{joint, own, aot::default_partition(joint, own),
                  aot::min_cut_rematerialization_partition(joint, own)};
      return cuts->least;
    };
    try {
      aot_function(ValueFunction([&](Args args) { return program.run(args); }),
                   {.partitioner = keep, .dynamic = program.is_dynamic()})
          .call(program.inputs().inputs);
    } catch (const UnsupportedError&) {
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    if (!cuts) continue;
    expect_equal_to_joint(cuts->joint, cuts->whole, cuts->own);
    expect_equal_to_joint(cuts->joint, cuts->least, cuts->own);
    const int64_t least = aot::saved_weight(cuts->joint, cuts->own, cuts->least),
                  weight = aot::saved_weight(cuts->joint, cuts->own, cuts->whole);
    EXPECT_LE(least, weight);
    ++partitioned;
    cheaper += least < weight;
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(partitioned, program_count() / 4);
  EXPECT_GT(cheaper, partitioned / 50);
}

TEST(RandomAotPrograms, DoWhatTheyDoInEagerMode) {
  const uint32_t count = program_count();
  uint32_t compared = 0, of_two = 0;
  for (uint32_t seed = 0; seed < count; ++seed) {
    const Program program(seed);
    if (!runs_eagerly(program)) continue;
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, program.to_string()));
    ++compared;
    try {
      testing::verify_aot_autograd([&](Args args) { return program.run(args); },
                                   [&] { return program.inputs(); },
                                   {.dynamic = program.is_dynamic(), .strict_cache = !program.is_of_two()});
      of_two += program.is_of_two();
    } catch (const UnsupportedError&) {
      --compared;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(compared, count / 2);
  EXPECT_GT(of_two, count / 20);
}

}  // namespace
}  // namespace weft
