#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "commands.h"
#include "comparison.h"
#include "model_file.h"
#include "program_inputs.h"
#include "weft/autograd/grad_node.h"
#include "weft/core/value_walk.h"
#include "weft/graph/interpreter.h"

namespace weft::cli {
namespace {

// Runs a graph and keeps what each node gave.
class Recording : public Interpreter {
 public:
  using Interpreter::Interpreter;
  struct Step {
    const Node* node;
    std::vector<Tensor> tensors;
  };

  Value run_node(Node& node) override {
    Value result = Interpreter::run_node(node);
    if (node.kind() == NodeKind::kCallFunction || node.kind() == NodeKind::kOutput) {
      Step step{&node, {}};
      // A later call may write to it.
      for (const Tensor& tensor : tensors_in(result))
        if (tensor.defined()) step.tensors.push_back(tensor.detach().clone());
      steps_.push_back(std::move(step));
    }
    return result;
  }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  std::vector<Step> steps_;
};

// What a node of another dialect, or of a model that was exported again, may have in common with this one.
std::string origin_of(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return {};
  std::string text = meta->modules.empty() ? std::string() : meta->modules.back().path;
  if (const Value* call = meta->extra.find(Value("torch_fn"))) text += "|" + call->to_string();
  return text.find('|') == std::string::npos ? std::string() : text;
}

// For each step of one run its counterpart in the other: by name, then by origin, the n-th there for the n-th
// here.
std::vector<std::pair<const Recording::Step*, const Recording::Step*>> matched(const Recording& a,
                                                                               const Recording& b) {
  std::map<std::string, const Recording::Step*> by_name, by_origin;
  auto numbered = [](std::map<std::string, int>& seen, const std::string& origin) {
    return fmt::format("{}#{}", origin, seen[origin]++);
  };
  std::map<std::string, int> seen_b, seen_a;
  for (const Recording::Step& step : b.steps()) {
    by_name.emplace(step.node->name(), &step);
    if (const std::string origin = origin_of(*step.node); !origin.empty())
      by_origin.emplace(numbered(seen_b, origin), &step);
  }
  std::vector<std::pair<const Recording::Step*, const Recording::Step*>> pairs;
  for (const Recording::Step& step : a.steps()) {
    const std::string origin = origin_of(*step.node);
    const std::string key = origin.empty() ? origin : numbered(seen_a, origin);
    auto other = by_name.find(std::string(step.node->name()));
    const bool same_target = other != by_name.end() && other->second->node->target() == step.node->target();
    if (same_target) pairs.emplace_back(&step, other->second);
    else if (const auto found = by_origin.find(key); found != by_origin.end())
      pairs.emplace_back(&step, found->second);
  }
  return pairs;
}

Recording recorded(const ExportedProgram& program, const ProgramInputs& inputs) {
  ValueList leaves;
  for (const Value& leaf : inputs.leaves)
    leaves.push_back(leaf.is_tensor() ? Value(leaf.tensor_ref().detach().clone()) : leaf);
  Recording run(program.module());
  run.run(leaves);
  return run;
}

}  // namespace

int diff(const DiffCommand& command) {
  const ExportedProgram first = load_model(command), second = load_model(command.other, command);
  NoGrad no_grad;
  const ProgramInputs inputs = inputs_of(first, command.inputs);
  const Recording a = recorded(first, inputs), b = recorded(second, inputs);
  const auto pairs = matched(a, b);
  for (const auto& [left, right] : pairs) {
    if (left->tensors.size() != right->tensors.size()) continue;  // an operator that another one stands for
    for (size_t i = 0; i < left->tensors.size(); ++i) {
      const Tensor &x = left->tensors[i], &y = right->tensors[i];
      const Tolerance usual = default_tolerance(y.dtype());
      const Difference difference =
          compare(std::string(left->node->name()), x, y,
                  {command.rtol.value_or(usual.rtol), command.atol.value_or(usual.atol)});
      if (difference.agrees()) continue;
      if (command.json)
        fmt::print("{}\n",
                   Json(Json::Object{{"node", left->node->name()},
                                     {"other", right->node->name()},
                                     {"target", left->node->target().to_string()},
                                     {"error", std::isfinite(difference.error) ? Json(difference.error)
                                                                               : Json(nullptr)},
                                     {"place", difference.place},
                                     {"message", difference.message}})
                       .to_text());
      else
        fmt::print("the first node that differs is {} ({}){}: {}\n", left->node->name(),
                   left->node->target().to_string(),
                   left->node->name() == right->node->name()
                       ? ""
                       : fmt::format(", {} in the other", right->node->name()),
                   difference.message);
      return kDiffers;
    }
  }
  if (command.json)
    fmt::print(
        "{}\n",
        Json(Json::Object{{"compared", static_cast<int64_t>(pairs.size())}, {"differ", false}}).to_text());
  else fmt::print("{} of {} nodes were compared: none differs\n", pairs.size(), a.steps().size());
  return kFine;
}

}  // namespace weft::cli
