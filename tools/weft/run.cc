#include <fmt/format.h>

#include <cstring>

#include "base/json.h"
#include "commands.h"
#include "comparison.h"
#include "model_file.h"
#include "program_inputs.h"
#include "text_output.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/random.h"
#include "weft/ops/functions.h"

namespace weft::cli {
namespace {

// What a call may change, as it was before.
struct Watched {
  std::string key;
  Tensor tensor, before;

  bool is_changed() const {
    const Tensor now = contiguous(tensor.detach()), then = contiguous(before);
    const auto bytes = static_cast<size_t>(then.plain_numel() * item_size(then.dtype()));
    return !std::ranges::equal(tensor.plain_sizes(), before.plain_sizes()) ||
           std::memcmp(now.raw_data(), then.raw_data(), bytes) != 0;
  }
};

std::vector<Watched> watched(const GraphModule& module, const ProgramInputs& inputs) {
  std::vector<Watched> all;
  auto add = [&](std::string key, const Tensor& tensor) {
    all.push_back({std::move(key), tensor, tensor.detach().clone()});
  };
  for (const auto& [name, tensor] : module.named_buffers()) add("buffer." + name, tensor);
  for (size_t i = 0; i < inputs.leaves.size(); ++i)
    if (inputs.leaves[i].is_tensor()) add("input." + inputs.keys[i], inputs.leaves[i].tensor_ref());
  return all;
}

NamedTensors changed(const std::vector<Watched>& all) {
  NamedTensors tensors;
  for (const Watched& one : all)
    if (one.is_changed()) tensors.emplace_back(one.key, one.tensor.detach());
  return tensors;
}

void print_leaves(const Value& result, bool json) {
  const NamedTensors leaves = numbered_leaves(result);
  if (!json) {
    size_t next = 0;
    for (const Value& leaf : tree_leaves(result))
      fmt::print("{}\n",
                 leaf.is_tensor() ? summary(std::to_string(next++), leaf.tensor_ref()) : leaf.to_string());
    return;
  }
  Json::Array outputs;
  for (const auto& [key, tensor] : leaves) outputs.push_back(summary_json(key, tensor));
  fmt::print("{}\n", Json(Json::Object{{"outputs", std::move(outputs)}}).to_text());
}

}  // namespace

int run(const RunCommand& command) {
  require_engine(command.engine);
  for (const std::string* file : {&command.inputs, &command.output, &command.after, &command.expect.file})
    if (!file->empty()) require_tensor_file(*file);
  for (const std::string* file : {&command.output, &command.after}) require_folder_of(*file);
  const ExportedProgram program = load_model(command);
  const ProgramInputs inputs = inputs_of(program, command.inputs);
  if (command.seed) manual_seed(*command.seed);
  NoGrad no_grad;
  const GraphModule module = program.module();
  const std::vector<Watched> state = command.after.empty() ? std::vector<Watched>() : watched(module, inputs);
  const Value result = call_with(module, program, inputs.leaves);
  if (!command.after.empty()) write_tensors(changed(state), command.after);
  if (!command.output.empty()) write_tensors(numbered_leaves(result), command.output);
  else if (command.expect.file.empty() || command.json) print_leaves(result, command.json);
  if (command.expect.file.empty()) return kFine;
  const int code = report_differences(numbered_leaves(result), command.expect);
  if (code == kFine && !command.json) fmt::print("equal to {}\n", command.expect.file);
  return code;
}

}  // namespace weft::cli
