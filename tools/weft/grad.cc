#include <fmt/format.h>

#include "commands.h"
#include "comparison.h"
#include "losses.h"
#include "model_file.h"
#include "program_inputs.h"
#include "text_output.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

// Of parameters by name, of inputs by key.
struct Gradients {
  NamedTensors found;
  NamedTensors unreached;  // parameters and inputs that the loss does not depend on
};
Gradients gradients(const GraphModule& module, const ProgramInputs& inputs, const ValueList& leaves,
                    const Tensor& loss) {
  std::vector<std::string> names;
  std::vector<Tensor> wanted;
  for (const auto& [name, tensor] : module.named_parameters()) {
    if (!tensor.requires_grad()) continue;
    names.push_back(name);
    wanted.push_back(tensor);
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i].is_tensor() || !leaves[i].tensor_ref().requires_grad()) continue;
    names.push_back("input." + inputs.keys[i]);
    wanted.push_back(leaves[i].to_tensor());
  }
  const std::vector<Tensor> found = autograd::grad({loss}, wanted, {}, {.allow_unused = true});
  Gradients all;
  for (size_t i = 0; i < found.size(); ++i)
    found[i].defined() ? all.found.emplace_back(names[i], found[i])
                       : all.unreached.emplace_back(names[i], wanted[i]);
  return all;
}

// Zeros may be expected where there is no gradient: PyTorch gives them for the branch that `cond` does not
// take.
int compare_with(const Gradients& gradients, const Expectation& expect) {
  const NamedTensors wanted = read_tensors(expect.file);
  double largest = 0;
  for (const auto& [key, tensor] : wanted) largest = std::max(largest, largest_magnitude(tensor));
  NamedTensors got = gradients.found;
  for (const auto& [key, tensor] : gradients.unreached)
    if (find(wanted, key)) got.emplace_back(key, zeros_like(tensor.detach()));
  return report_differences(got, expect, [&](const std::string& key, const Tensor& a, const Tensor& b) {
    const bool has_rule = b.dtype() == kFloat32 || b.dtype() == kFloat64;
    if (has_rule && !expect.rtol && !expect.atol) return compare_gradient(key, a, b, largest);
    const Tolerance usual = default_tolerance(b.dtype());
    return compare(key, a, b, {expect.rtol.value_or(usual.rtol), expect.atol.value_or(usual.atol)});
  });
}

}  // namespace

int grad(const GradCommand& command) {
  for (const std::string* file : {&command.inputs, &command.output, &command.expect.file})
    if (!file->empty()) require_tensor_file(*file);
  require_folder_of(command.output);
  const ExportedProgram program = load_model(command);
  const ProgramInputs inputs = inputs_of(program, command.inputs);
  const GraphModule module = program.module();
  const ValueList leaves = differentiable_leaves(inputs.leaves);
  const OutputLoss loss_of(command.loss, module, program, leaves);
  if (command.seed) manual_seed(*command.seed);
  const Tensor loss = loss_of.of(call_with(module, program, copies_of(leaves)));
  const Gradients all_gradients = gradients(module, inputs, leaves, loss);
  const NamedTensors& found = all_gradients.found;
  if (!command.output.empty()) write_tensors(found, command.output);
  const double value = loss.item().to_double();
  if (command.json) {
    Json::Array all;
    for (const auto& [key, tensor] : found) all.push_back(summary_json(key, tensor));
    fmt::print("{}\n", Json(Json::Object{{"loss", value}, {"gradients", std::move(all)}}).to_text());
  } else {
    fmt::print("loss: {:.9g}\n", value);
    if (command.output.empty() && command.expect.file.empty())
      for (const auto& [key, tensor] : found) fmt::print("{}\n", summary(key, tensor));
  }
  if (command.expect.file.empty()) return kFine;
  const int code = compare_with(all_gradients, command.expect);
  if (code == kFine && !command.json) fmt::print("equal to {}\n", command.expect.file);
  return code;
}

}  // namespace weft::cli
