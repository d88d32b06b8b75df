// The exhaustive rows: every operator of the table and every module, forward and backward, compiled ahead of
// time for one set of data and run on two.
#include <gtest/gtest.h>

#include <set>

#include "ops/gradient_support.h"
#include "support/tensors.h"
#include "weft/aot/aot_function.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/func/control_flow.h"
#include "weft/nn/activations.h"
#include "weft/nn/functional_call.h"
#include "weft/nn/layers.h"
#include "weft/nn/normalisation.h"
#include "weft/nn/spatial.h"
#include "weft/ops/extension.h"

namespace weft::table {
namespace {

// --- one program -----------------------------------------------------------------------------------------

// Copies of tensors, with gradients where they are wanted.
ValueList leaves_like(const ValueList& inputs, const std::vector<bool>& wants_gradient, bool is_other) {
  NoGrad off;
  ValueList leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) {
      leaves.push_back(inputs[i]);
      continue;
    }
    const Tensor& given = inputs[i].tensor_ref();
    Tensor copy = given.detach().clone();
    if (is_other && given.numel() > SymInt(0)) {
      const Tensor flipped =
          given.detach().resolve_conj().resolve_neg().reshape({-1}).flip({0}).reshape(given.sizes());
      copy.copy_(is_differentiable(given.dtype()) ? flipped * 0.75 : flipped);
    }
    leaves.emplace_back(copy.set_requires_grad(wants_gradient[i]));
  }
  return leaves;
}

struct Outcome {
  Value outputs;
  ValueList inputs;  // as the call left them
  bool has_history = false;
  std::vector<Tensor> gradients;
};

// The gradients of the sum of |sum of an output|.
Outcome run(const ValueFunction& f, const ValueList& leaves) {
  Outcome outcome{.outputs = {}, .inputs = leaves, .has_history = false, .gradients = {}};
  manual_seed(3);
  outcome.outputs = f(leaves);
  Tensor loss;
  for (const Tensor& output : tensors_in(outcome.outputs)) {
    if (!output.defined() || !output.requires_grad()) continue;
    const Tensor part = output.sum().abs().to(kFloat64);
    loss = loss.defined() ? loss + part : part;
  }
  outcome.has_history = loss.defined();
  std::vector<Tensor> wanted;
  for (const Value& leaf : leaves)
    if (leaf.is_tensor() && leaf.tensor_ref().requires_grad()) wanted.push_back(leaf.to_tensor());
  if (loss.defined() && !wanted.empty())
    outcome.gradients = autograd::grad({loss}, wanted, {}, {.allow_unused = true});
  return outcome;
}

void compare(const ValueFunction& f, const AotFunction& compiled, const ValueList& inputs,
             const std::vector<bool>& wants_gradient, bool is_other, std::vector<std::string>& texts) {
  Outcome eager;
  try {
    eager = run(f, leaves_like(inputs, wants_gradient, is_other));
  } catch (const Error&) {
    if (!is_other) throw;
    return;  // data that the operator does not take
  }
  const Outcome ahead = run(compiled.function(), leaves_like(inputs, wants_gradient, is_other));
  compare_values(ahead.outputs, eager.outputs, false, texts, is_other ? "other outputs" : "outputs");
  compare_values(Value::list(ahead.inputs), Value::list(eager.inputs), false, texts, "inputs");
  if (eager.has_history != ahead.has_history) texts.push_back("one of them has no history");
  if (eager.gradients.size() != ahead.gradients.size()) return texts.push_back("other gradients");
  for (size_t i = 0; i < eager.gradients.size(); ++i) {
    if (eager.gradients[i].defined() != ahead.gradients[i].defined())
      texts.push_back(fmt::format("gradient {} is there in one of them only", i));
    else if (eager.gradients[i].defined())
      compare_values(ahead.gradients[i], eager.gradients[i], false, texts, fmt::format("gradient {}", i));
  }
  if (eager.has_history) return;
  bool refuses = false;
  try {
    for (const Tensor& output : tensors_in(ahead.outputs))
      if (output.defined() && is_differentiable(output.dtype())) output.sum().abs().backward();
  } catch (const Error& error) {
    refuses = error.text().find("does not require grad and does not have a grad_fn") != std::string::npos;
  }
  bool has_output = false;
  for (const Tensor& output : tensors_in(ahead.outputs))
    has_output |= output.defined() && is_differentiable(output.dtype());
  if (has_output && !refuses) texts.push_back("a backward of what has no history is no error");
}

void check_program(const ValueFunction& f, const ValueList& inputs, const std::vector<bool>& wants_gradient,
                   AotOptions options, std::vector<std::string>& texts) {
  options.forward_compiler = options.backward_compiler = aot::nop;
  options.partitioner = aot::min_cut_partitioner();
  const AotFunction compiled(f, options);
  for (bool is_other : {false, true}) compare(f, compiled, inputs, wants_gradient, is_other, texts);
}

// --- operators -------------------------------------------------------------------------------------------

bool is_input(const Tensor& t) { return t.defined() && !(t.flags() & tensor_flag::kWrappedNumber); }

bool is_compared(const Operator& op) {
  const bool gives_tensors =
      std::ranges::any_of(op.schema().returns, [](const Return& result) { return result.type.has_tensor(); });
  const bool has_generator = std::ranges::any_of(
      op.schema().arguments, [](const Argument& argument) { return argument.name == "generator"; });
  return gives_tensors && !has_generator && !op.def().higher_order &&
         !op.has(Traits::kUninitialized | Traits::kDataDependent);
}

Findings check_operators(bool dynamic) {
  return check_samples(is_compared, [&](const Case& one, std::vector<std::string>& texts) {
    const std::vector<Value> args = one.args();
    ValueList inputs;
    std::vector<bool> wants_gradient;
    std::set<const TensorImpl*> written;
    for (size_t i = 0; i < args.size(); ++i)
      if (one.op->info().written[i])
        for (const Tensor& t : tensors_in(args[i])) written.insert(t.impl());
    for (const Tensor& t : tensors_in(args)) {
      if (!is_input(t)) continue;
      if (extension_of(t)) return;
      inputs.emplace_back(t);
      wants_gradient.push_back(!one.op->has(Traits::kNotDifferentiable) && !written.contains(t.impl()) &&
                               takes_gradient(*one.op, args, t));
    }
    if (inputs.empty()) return;
    auto program = [&](Args tensors) {
      size_t next = 0;
      return call(*one.op, map_tensors(args, [&](const Tensor& t) {
        return is_input(t) ? tensors[next++].to_tensor() : t;
      }));
    };
    check_program(program, inputs, wants_gradient, {.dynamic = dynamic}, texts);
  });
}

// Control flow, over closures.
Findings check_higher_order(bool dynamic) {
  const Tensor x = arange(6, kFloat32).reshape({2, 3}) * 0.25 + 0.5, w = full({3}, 0.5);
  struct Program {
    const char* name;
    std::function<Tensor(const Tensor&, const Tensor&)> f;
  };
  const std::vector<Program> programs = {
      {"cond",
       [](const Tensor& a, const Tensor& b) {
         auto scaled = [b](const Tensor& t) { return (t * b).sin(); };
         auto shifted = [b](const Tensor& t) { return (t + b).cos(); };
         return func::cond(a.sum() > 1.5, scaled, shifted, a);
       }},
      {"map",
       [](const Tensor& a, const Tensor& b) {
         return func::map([](const Tensor& row, const Tensor& other) { return (row * other).tanh(); }, a, b);
       }},
  };
  Findings findings;
  for (const Program& program : programs) {
    std::vector<std::string> texts;
    try {
      check_program([&](Args t) -> Value { return program.f(t[0].to_tensor(), t[1].to_tensor()); }, {x, w},
                    {true, true}, {.dynamic = dynamic}, texts);
    } catch (const Error& error) {
      texts.push_back(error.what());
    }
    if (!texts.empty()) findings[program.name] = texts;
  }
  return findings;
}

const Exceptions kKeptInGraphsOnly = {{"aten::set_.source_Tensor_storage_offset",
                                       "other memory for an input is a part of the graph "
                                       "(keep_inference_input_mutations); aot_storage_test.cc"}};

TEST(TestEagerFusionOpInfo, test_aot_autograd_exhaustive) {
  expect_only(check_operators(/*dynamic=*/false), kKeptInGraphsOnly);
  expect_only(check_higher_order(/*dynamic=*/false), {});
}
TEST(TestEagerFusionOpInfo, test_aot_autograd_symbolic_exhaustive) {
  expect_only(check_operators(/*dynamic=*/true), kKeptInGraphsOnly);
  expect_only(check_higher_order(/*dynamic=*/true), {});
}

// --- modules ---------------------------------------------------------------------------------------------

// Modules in training and in evaluation, as functions of their state and their inputs.
class Modules {
 public:
  explicit Modules(bool dynamic) : dynamic_(dynamic) {}

  template <typename M>
  void check(M module, const ValueList& inputs) {
    nn::note_class(*module.state(), typeid(M));
    for (bool training : {true, false}) {
      module.train(training);
      const std::string name =
          fmt::format("{}, {}", module.state()->class_name, training ? "training" : "evaluation");
      std::vector<std::string> texts;
      try {
        check_call(module, nn::detail::erased_call(module), inputs, texts);
      } catch (const Error& error) {
        texts.push_back(error.what());
      }
      if (!texts.empty()) findings_[name] = texts;
    }
  }
  const Findings& findings() const { return findings_; }

 private:
  void check_call(const nn::Module& module, const Ref<Callable>& call, const ValueList& inputs,
                  std::vector<std::string>& texts) {
    nn::NamedTensors state = module.named_parameters();
    const size_t parameters = state.size();
    for (const auto& entry : module.named_buffers()) state.push_back(entry);
    ValueList all;
    std::vector<bool> wants_gradient;
    for (const auto& [name, tensor] : state) {
      all.emplace_back(tensor);
      wants_gradient.push_back(wants_gradient.size() < parameters);
    }
    for (const Value& input : inputs) {
      all.push_back(input);
      wants_gradient.push_back(input.is_tensor() && is_differentiable(input.tensor_ref().dtype()));
    }
    auto f = [&](Args given) {
      nn::NamedTensors own = state;
      for (size_t i = 0; i < own.size(); ++i) own[i].second = given[i].to_tensor();
      nn::Substitution substitution(module, own);
      return call->call(given.subspan(own.size()));
    };
    check_program(f, all, wants_gradient, {.dynamic = dynamic_, .num_params_buffers = state.size()}, texts);
  }

  bool dynamic_;
  Findings findings_;
};

Findings check_modules(bool dynamic) {
  manual_seed(1);
  Modules modules(dynamic);
  const Tensor rows = randn({4, 6}), image = randn({2, 4, 6, 6}), sequence = randn({2, 5, 4});
  const Tensor indices = from_data<int64_t>({1, 0, 3, 3, 2, 1}).reshape({2, 3});
  modules.check(nn::Linear(6, 3), {rows});
  modules.check(nn::Conv2d(4, 6, 3, {.stride = 2, .padding = 1}), {image});
  modules.check(nn::Embedding(5, 3), {indices});
  modules.check(nn::EmbeddingBag(5, 3), {indices.reshape({-1}), from_data<int64_t>({0, 2, 5}), Value()});
  modules.check(nn::Dropout(0.4), {rows});
  modules.check(nn::Identity(), {rows});
  modules.check(nn::Flatten(), {image});
  modules.check(nn::Sequential(nn::Linear(6, 4), nn::ReLU(), nn::Linear(4, 2)), {rows});
  modules.check(nn::ReLU(), {rows});
  modules.check(nn::Hardtanh(), {rows});
  modules.check(nn::LeakyReLU(0.1), {rows});
  modules.check(nn::Sigmoid(), {rows});
  modules.check(nn::Tanh(), {rows});
  modules.check(nn::GELU(), {rows});
  modules.check(nn::SiLU(), {rows});
  modules.check(nn::Softmax(-1), {rows});
  modules.check(nn::BatchNorm1d(6), {rows});
  modules.check(nn::BatchNorm2d(4), {image});
  modules.check(nn::LayerNorm({4}), {sequence});
  modules.check(nn::GroupNorm(2, 4), {image});
  modules.check(nn::MaxPool2d(2), {image});
  modules.check(nn::AvgPool2d(2), {image});
  modules.check(nn::AdaptiveAvgPool2d(2, 3), {image});
  modules.check(nn::Upsample({.scale_factor = {2.0}, .mode = "bilinear"}), {image});
  return modules.findings();
}

TEST(TestEagerFusionModuleInfo, test_aot_autograd_module_exhaustive) {
  expect_only(check_modules(false), {});
}
TEST(TestEagerFusionModuleInfo, test_aot_autograd_symbolic_module_exhaustive) {
  expect_only(check_modules(true), {});
}

}  // namespace
}  // namespace weft::table
