// Decomposed to Core ATen, every operator is made of operators that PyTorch's core table leaves, and does
// what it did: values, types, layouts, gradients. `tests/data/core_aten.txt` says which operators PyTorch
// calls core and which its core table decomposes.
#include <fstream>
#include <sstream>

#include "ops/gradient_support.h"
#include "weft/aot/aot_function.h"
#include "weft/autograd/autograd.h"

namespace weft::table {
namespace {

struct CoreState {
  bool is_core = false, is_decomposed = false;
};
std::map<std::string, CoreState> read_core_states() {
  std::map<std::string, CoreState> states;
  std::ifstream file(WEFT_SOURCE_DIR "/tests/data/core_aten.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    CoreState& state = states["aten::" + name];
    while (words >> word) (word == "core" ? state.is_core : state.is_decomposed) = true;
  }
  return states;
}
CoreState core_state_of(const Operator& op) {
  static const std::map<std::string, CoreState> states = read_core_states();
  auto found = states.find(std::string(op.name()));
  return found == states.end() ? CoreState{} : found->second;
}

// The call as a function of its tensors.
ValueFunction function_of(const Case& one) {
  const Operator* op = one.op;
  const ValueList args = one.args();
  return [op, args](Args tensors) {
    size_t next = 0;
    ValueList own = map_tensors(args, [&](const Tensor&) { return tensors[next++].to_tensor(); });
    return call(*op, own);
  };
}
ValueList tensors_of(const Case& one) {
  ValueList tensors;
  for (const Tensor& tensor : tensors_in(one.args())) tensors.emplace_back(tensor);
  return tensors;
}
GraphModule decomposed(const Case& one, CaptureMode mode, const Decompositions& decompositions) {
  return GraphMaker(function_of(one),
                    {.mode = mode, .decompositions = decompositions, .allow_data_reads = true})
      .capture(tensors_of(one));
}
std::vector<const Operator*> operators_of(const GraphModule& graph) {
  std::vector<const Operator*> found;
  for (const Node& node : graph.graph())
    if (const Operator* op = node.target().op()) found.push_back(op);
  return found;
}

// Sizes are read, not computed: there is nothing to decompose.
bool gives_tensors(const Operator& op) {
  return !op.schema().returns.empty() && op.schema().returns.front().type.has_tensor();
}
bool is_captured(const Operator& op) {
  const bool gives_tensors = !op.schema().returns.empty() && op.schema().returns.front().type.has_tensor();
  return gives_tensors && !is_mutable(op) && !op.def().higher_order;
}
bool has_defined_values(const Operator& op) {
  return is_captured(op) && !op.has(Traits::kUninitialized) && !op.has(Traits::kRandom);
}

TEST(CoreDecompositions, AreThoseOfPyTorchsCoreTable) {
  Findings findings;
  for (const Operator* op : functional_operators()) {
    if (op->schema().ns != "aten" || is_mutable(*op)) continue;
    const CoreState state = core_state_of(*op);
    const bool has_one = aot::core_decompositions().contains(op);
    std::vector<std::string> wrong;
    if (state.is_decomposed && !has_one && !op->is_composite() && gives_tensors(*op))
      wrong.push_back("PyTorch's core table decomposes it");
    if (!state.is_decomposed && has_one) wrong.push_back("PyTorch's core table leaves it");
    if (op->has(Traits::kCore) != (state.is_core && !state.is_decomposed) && !op->is_composite())
      wrong.push_back(fmt::format("kCore is {}", op->has(Traits::kCore)));
    if (!wrong.empty()) findings[std::string(op->name())] = wrong;
  }
  expect_only(findings, {{"aten::native_batch_norm",
                          "no graph of PyTorch's has it: those that say what they do stand there"},
                         {"aten::_native_batch_norm_legit_functional",
                          "PyTorch's core table leaves it, as it leaves core operators"}});
}

TEST(CoreDecompositions, AreAmongTheStandardOnesAndHaveTheOthers) {
  for (const auto& [op, decomposition] : aot::core_decompositions())
    EXPECT_TRUE(standard_decompositions().contains(op)) << op->name();
  for (const auto& [op, decomposition] : aot::default_decompositions())
    EXPECT_TRUE(standard_decompositions().contains(op)) << op->name();
  EXPECT_EQ(aot::get_decompositions({"aten::silu", "aten::relu", "aten::no_such_operator"}).size(), 1u);
}

// In training it writes to the statistics without saying so: functionalize makes another operator of it,
// which a decomposition alone cannot.
const Exceptions kSilentWrites = {{"aten::native_batch_norm/train", "it writes to its arguments"},
                                  {"aten::cudnn_batch_norm/train", "it writes to its arguments"},
                                  {"aten::batch_norm/train", "it writes to its arguments"},
                                  {"aten::_batch_norm_impl_index/train", "it writes to its arguments"}};

void check_core(const Case& one, CaptureMode mode, std::vector<std::string>& texts) {
  for (const Operator* op : operators_of(decomposed(one, mode, aot::core_decompositions())))
    if (gives_tensors(*op) && (aot::core_decompositions().contains(op) || core_state_of(*op).is_decomposed))
      texts.push_back(fmt::format("{} is left", op->name()));
}
TEST(CoreDecompositions, LeaveNothingToDecompose) {
  expect_only(check_samples(is_captured,
                            [](const Case& one, std::vector<std::string>& texts) {
                              check_core(one, CaptureMode::kReal, texts);
                            }),
              kSilentWrites);
}
TEST(CoreDecompositions, TakeTensorsWithoutData) {
  expect_only(
      check_samples(
          [](const Operator& op) { return is_captured(op) && aot::core_decompositions().contains(&op); },
          [](const Case& one, std::vector<std::string>& texts) {
            check_core(one, CaptureMode::kFake, texts);
            check_core(one, CaptureMode::kSymbolic, texts);
          }),
      {kSilentWrites[0], kSilentWrites[1]});
}

TEST(CoreDecompositions, KeepValuesAndLayouts) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    GradModeScope no_grad(false);
    GraphModule graph = decomposed(one, CaptureMode::kReal, aot::core_decompositions());
    ValueList own = tensors_of(one), other = tensors_of(one);
    Value expected = function_of(one)(own), got = graph.call(other);
    auto described = [](const Value& value) {
      std::string text;
      for (const Tensor& t : tensors_in(value)) text += "\n    " + describe_fully(t, {}, plain_number);
      return text;
    };
    if (described(got) != described(expected))
      texts.push_back(
          fmt::format("\n  decomposed: {}\n  kernel:     {}", described(got), described(expected)));
    else compare_values(got, expected, false, texts, "values");
  };
  expect_only(check_samples(has_defined_values, check), {});
}

// Forward and backward together, of all tensors that can have a gradient.
TEST(CoreDecompositions, KeepGradients) {
  auto check = [](const Case& one, std::vector<std::string>& texts) {
    const ValueList example = one.args();
    std::vector<bool> takes;
    for (const Tensor& tensor : tensors_in(example))
      takes.push_back(takes_gradient(*one.op, example, tensor));
    auto gradients = [&](Args tensors) {
      std::vector<Tensor> leaves;
      ValueList inputs;
      for (size_t i = 0; i < tensors.size(); ++i) {
        Tensor input = tensors[i].to_tensor();
        if (takes[i]) leaves.push_back(input = input.detach().set_requires_grad());
        inputs.emplace_back(input);
      }
      std::vector<Tensor> outputs, seeds;
      for (const Tensor& result : tensors_in(function_of(one)(inputs)))
        if (result.requires_grad()) outputs.push_back(result), seeds.push_back(full_like(result, 0.5));
      ValueList all;
      if (!outputs.empty())
        for (const Tensor& grad : autograd::grad(outputs, leaves, seeds, {.allow_unused = true}))
          if (grad.defined()) all.emplace_back(grad);
      return Value::tuple(all);
    };
    ValueList own = tensors_of(one), other = tensors_of(one);
    const Value expected = gradients(own);
    GraphModule graph =
        GraphMaker(gradients, {.decompositions = aot::core_decompositions(), .allow_data_reads = true})
            .capture(tensors_of(one));
    for (const Operator* op : operators_of(graph))
      if (aot::core_decompositions().contains(op)) texts.push_back(fmt::format("{} is left", op->name()));
    compare_values(graph.call(other), expected, false, texts, "gradients");
  };
  auto wanted = [](const Operator& op) {
    return has_defined_values(op) && !op.has(Traits::kNotDifferentiable) && !op.has(Traits::kFactory);
  };
  expect_only(check_samples(wanted, check), kSilentWrites);
}

}  // namespace
}  // namespace weft::table
