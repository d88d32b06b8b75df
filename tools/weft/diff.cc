#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/json.h"
#include "commands.h"
#include "comparison.h"
#include "model_file.h"
#include "program_inputs.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/random.h"
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

using Pairs = std::vector<std::pair<const Recording::Step*, const Recording::Step*>>;

// Whether the two are one graph, of the same names and targets.
bool is_one_graph(const Recording& a, const Recording& b) {
  return std::ranges::equal(
      a.steps(), b.steps(), [](const Recording::Step& left, const Recording::Step& right) {
        return left.node->name() == right.node->name() && left.node->target() == right.node->target();
      });
}

Pairs matched_by_name(const Recording& a, const Recording& b) {
  Pairs pairs;
  for (size_t i = 0; i < a.steps().size(); ++i) pairs.emplace_back(&a.steps()[i], &b.steps()[i]);
  return pairs;
}

// The last node of each origin gives what all of them stand for.
std::map<std::string, const Recording::Step*> last_of_origin(const Recording& run) {
  std::map<std::string, const Recording::Step*> last;
  for (const Recording::Step& step : run.steps())
    if (const std::string origin = origin_of(*step.node); !origin.empty()) last[origin] = &step;
  return last;
}
bool are_comparable(const Recording::Step& a, const Recording::Step& b) {
  return std::ranges::equal(a.tensors, b.tensors, [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && std::ranges::equal(x.plain_sizes(), y.plain_sizes());
  });
}

// Of graphs that compute the same in other ways, one function of the source by one; names mean nothing.
Pairs matched_by_origin(const Recording& a, const Recording& b) {
  const std::map<std::string, const Recording::Step*> here = last_of_origin(a), there = last_of_origin(b);
  Pairs pairs;
  for (const Recording::Step& step : a.steps()) {
    const std::string origin = origin_of(*step.node);
    if (origin.empty()) continue;
    const auto other = there.find(origin);
    if (other == there.end() || here.at(origin) != &step) continue;
    // In-place functions give a part in one dialect and the whole in the other.
    if (are_comparable(step, *other->second)) pairs.emplace_back(&step, other->second);
  }
  pairs.emplace_back(&a.steps().back(), &b.steps().back());
  return pairs;
}

// Both runs draw the same random numbers.
Recording recorded(const ExportedProgram& program, const ProgramInputs& inputs) {
  ValueList leaves;
  for (const Value& leaf : inputs.leaves)
    leaves.push_back(leaf.is_tensor() ? Value(leaf.tensor_ref().detach().clone()) : leaf);
  manual_seed(0);
  Recording run(program.module());
  run.run(leaves);
  return run;
}

class Comparison {
 public:
  explicit Comparison(const DiffCommand& command) : command_(command) {}

  // Of the pair's first tensor that differs.
  std::optional<Difference> of(const Recording::Step& left, const Recording::Step& right) const {
    if (left.node->target().op() && left.node->target().op()->has(Traits::kUninitialized))
      return std::nullopt;
    if (left.tensors.size() != right.tensors.size())
      return Difference{.key = {},
                        .message = fmt::format("'{}' gives {} tensors, but {} were expected",
                                               left.node->name(), left.tensors.size(), right.tensors.size())};
    for (size_t i = 0; i < left.tensors.size(); ++i) {
      const Tensor &x = left.tensors[i], &y = right.tensors[i];
      const Tolerance usual = default_tolerance(y.dtype());
      Difference difference =
          compare(std::string(left.node->name()), x, y,
                  {command_.rtol.value_or(usual.rtol), command_.atol.value_or(usual.atol)});
      if (!difference.agrees()) return difference;
    }
    return std::nullopt;
  }

 private:
  const DiffCommand& command_;
};

void print(const DiffCommand& command, const Node& left, const Node& right, const Difference& difference) {
  if (command.json)
    fmt::print(
        "{}\n",
        Json(Json::Object{{"node", left.name()},
                          {"other", right.name()},
                          {"target", left.target().to_string()},
                          {"error", std::isfinite(difference.error) ? Json(difference.error) : Json(nullptr)},
                          {"place", difference.place},
                          {"message", difference.message}})
            .to_text());
  else
    fmt::print("the first node that differs is {} ({}){}: {}\n", left.name(), left.target().to_string(),
               left.name() == right.name() ? "" : fmt::format(", {} in the other", right.name()),
               difference.message);
}

}  // namespace

int diff(const DiffCommand& command) {
  const ExportedProgram first = load_model(command), second = load_model(command.other, command);
  NoGrad no_grad;
  const ProgramInputs inputs = inputs_of(first, command.inputs);
  const Recording a = recorded(first, inputs), b = recorded(second, inputs);
  const Comparison comparison(command);
  const bool is_one = is_one_graph(a, b);
  const Pairs pairs = is_one ? matched_by_name(a, b) : matched_by_origin(a, b);
  // Where the graphs are two, a node on the way may have no counterpart of its values: the results decide.
  const auto& [last, last_of_other] = pairs.back();
  if (is_one || comparison.of(*last, *last_of_other))
    for (const auto& [left, right] : pairs) {
      const std::optional<Difference> difference = comparison.of(*left, *right);
      if (!difference) continue;
      print(command, *left->node, *right->node, *difference);
      return kDiffers;
    }
  if (command.json)
    fmt::print(
        "{}\n",
        Json(Json::Object{{"compared", static_cast<int64_t>(pairs.size())}, {"differ", false}}).to_text());
  else fmt::print("{} of {} nodes were compared: none differs\n", pairs.size(), a.steps().size());
  return kFine;
}

}  // namespace weft::cli
