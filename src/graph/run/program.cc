#include "graph/run/program.h"

#include "dispatch/rule_calls.h"
#include "graph/operator_call.h"
#include "graph/run/asserted_values.h"
#include "sym/open_conditions.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/missing_operators.h"
#include "weft/ops/overloads.h"

namespace weft {

namespace detail {
GraphProbe graph_probe = nullptr;
}

namespace {

bool has_nodes(const Value& value) {
  bool found = false;
  for_each_node(value, [&](Node&) { found = true; });
  return found;
}

// A graph may switch the recording of gradients; should it fail half-way, its caller must not notice.
struct GradModeKeeper {
  bool saved = layer_state().grad_mode;
  ~GradModeKeeper() { layer_state().grad_mode = saved; }
};

}  // namespace

// --- making it -------------------------------------------------------------------------------------------

Program::Program(const Graph& graph, const nn::Module& root) : names_(graph), random_(graph) {
  if (detail::graph_probe) detail::graph_probe(graph);
  require_operators(graph, root);
  graph.number_nodes();
  // Numbers ascend, but those of nodes that were erased are missing.
  if (graph.back()) value_count_ = graph.back()->position_ + 1;
  const std::unordered_set<const Node*> asserted = find_asserted_values(graph);
  for (const Node& node : graph) {
    While scope([&] { return fmt::format("preparing {}", node.line()); });
    switch (node.kind()) {
      case NodeKind::kPlaceholder:
        add_input(node);
        break;
      case NodeKind::kGetAttr:
        constants_.emplace_back(node.position_, root.find(node.target().to_string()));
        break;
      case NodeKind::kOutput:
        output_ = &node;
        break;
      default:
        add_step(node, root);
        steps_.back().is_asserted = asserted.contains(&node);
    }
  }
  find_last_uses();
}

Program::~Program() = default;

void Program::add_input(const Node& node) {
  Input input{static_cast<uint32_t>(node.position_), std::nullopt, !node.users().empty()};
  if (!node.args().empty()) input.default_value = node.args()[0];
  inputs_.push_back(std::move(input));
}

void Program::add_step(const Node& node, const nn::Module& root) {
  Step step{};
  step.node = &node;
  step.result = static_cast<uint32_t>(node.position_);
  step.is_used = !node.users().empty();
  step.draw = random_.of(node);
  step.function = node.target().function();
  if (node.kind() == NodeKind::kCallModule) {
    Value module = root.find(node.target().to_string());
    step.callable = callable_in(module);
    require(step.callable != nullptr, "'{}' is {}, not a module", node.target().to_string(),
            module.kind_name());
    callables_.emplace_back(step.callable);
  }
  ValueList args = node.args();
  if (const Operator* op = node.target().op()) {
    CompleteCall complete = complete_call(*op, node.args(), node.kwargs());
    step.op = complete.op;
    args = std::move(complete.args);
  } else {
    // Arguments by name follow the others; their names are the node's.
    for (const auto& [name, value] : node.kwargs()) args.push_back(value);
    require(node.kwargs().empty() || !step.function, "{} takes no arguments by name",
            node.target().to_string());
  }
  add_arguments(step, args, step.op);
  steps_.push_back(step);
}

void Program::add_arguments(Step& step, Args args, const Operator* op) {
  step.first_argument = static_cast<uint32_t>(arguments_.size());
  step.argument_count = static_cast<uint32_t>(args.size());
  step.first_fill = static_cast<uint32_t>(fills_.size());
  for (size_t i = 0; i < args.size(); ++i) {
    auto index = static_cast<uint32_t>(arguments_.size());
    bool wants_tensor = op && op->info().is_tensor[i] == 1;
    if (const Node* node = node_in(args[i])) {
      fills_.push_back({index, static_cast<uint32_t>(node->position_), false, false, wants_tensor});
    } else if (has_nodes(args[i])) {
      fills_.push_back({index, static_cast<uint32_t>(nested_.size()), true, false, false});
      nested_.push_back(args[i]);
    } else {
      arguments_.push_back(args[i]);
      continue;
    }
    arguments_.emplace_back();
  }
  step.fill_count = static_cast<uint32_t>(fills_.size()) - step.first_fill;
}

void Program::find_last_uses() {
  std::vector<uint8_t> is_needed(value_count_);
  for (const auto& [index, constant] : constants_) is_needed[index] = 1;  // stays for the next run
  if (output_)
    for (const Node* input : output_->inputs()) is_needed[input->position_] = 1;
  for (size_t s = steps_.size(); s-- > 0;) {
    Step& step = steps_[s];
    step.first_dead = static_cast<uint32_t>(dead_.size());
    // From the last argument on: of several uses in one step the last may take the value away.
    for (uint32_t f = step.first_fill + step.fill_count; f-- > step.first_fill;) {
      Fill& fill = fills_[f];
      auto dies = [&](const Node& node) { return !std::exchange(is_needed[node.position_], 1); };
      if (fill.is_nested)
        for_each_node(nested_[fill.value], [&](Node& node) {
          if (dies(node)) dead_.push_back(static_cast<uint32_t>(node.position_));
        });
      else if (!std::exchange(is_needed[fill.value], 1)) fill.is_last_use = true;
    }
    step.dead_count = static_cast<uint32_t>(dead_.size()) - step.first_dead;
  }
}

// --- running it ------------------------------------------------------------------------------------------

std::unique_ptr<Program::Frame> Program::take_frame() const {
  {
    std::lock_guard lock(mutex_);
    if (idle_) return std::move(idle_);
  }
  auto frame = std::make_unique<Frame>();
  frame->values.resize(value_count_);
  frame->arguments = arguments_;
  for (const auto& [index, constant] : constants_) frame->values[index] = constant;
  return frame;
}

Value Program::resolve(const Frame& frame, const Value& nested) const {
  return map_nodes(nested, [&](Node& node) { return frame.values[node.position_]; });
}

Value Program::call(const Step& step, Args args) const {
  if (step.op) [[likely]]
    return dispatch::redispatch(*step.op, args);
  if (step.is_asserted) {
    const sym::OpenConditions open;
    return step.function->run(args);
  }
  if (step.function) return step.function->run(args);
  const Node& node = *step.node;
  size_t positional = node.args().size();
  Kwargs kwargs;
  for (size_t i = 0; i < node.kwargs().size(); ++i)
    kwargs.emplace_back(node.kwargs()[i].first, args[positional + i]);
  if (step.callable) return step.callable->call(args.first(positional), kwargs);
  BoundCall bound = resolve_overload("aten::" + node.target().to_string(), args.first(positional), kwargs);
  return call_bound(bound);
}

// A size where the operator takes a tensor: the overload for numbers, which keeps a symbol what it is.
Value Program::call_on_number(const Step& step, Args args) const {
  CompleteCall complete = with_numbers_placed(*step.op, {args.begin(), args.end()});
  const dispatch::RuleCalls of_program(false);
  return dispatch::redispatch(*complete.op, complete.args);
}

Value Program::on_stream(const Step& step, const Frame& frame, FunctionRef<Value()> run) const {
  return frame.draws ? RandomPlan::run((*frame.draws)[step.draw], run) : run();
}

template <bool is_noted>
struct Program::StepOrigin {
  explicit StepOrigin(const Step&) {}
};
template <>
struct Program::StepOrigin<true> {
  explicit StepOrigin(const Step& step)
      : origin(step.node->origin()),
        scope(&origin),
        // Unless a number stands where the operator takes a tensor, as a program writes it.
        as_written(step.op && step.op == step.node->target().op()) {}
  const Origin origin;
  const OriginScope scope;
  const dispatch::RuleCalls as_written;
};

template <bool notes_origin>
void Program::run_steps(Frame& frame, const Node*& current) const {
  for (const Step& step : steps_) {
    current = step.node;
    [[maybe_unused]] const StepOrigin<notes_origin> origin(step);
    bool has_number = false;  // where the operator takes a tensor
    for (uint32_t f = step.first_fill; f < step.first_fill + step.fill_count; ++f) {
      const Fill& fill = fills_[f];
      Value& argument = frame.arguments[fill.argument];
      if (fill.is_nested) argument = resolve(frame, nested_[fill.value]);
      else if (fill.is_last_use) argument = std::move(frame.values[fill.value]);
      else argument = frame.values[fill.value];
      has_number |= fill.wants_tensor && argument.is_number();
    }
    const Args args = Args(frame.arguments).subspan(step.first_argument, step.argument_count);
    auto run = [&] { return has_number ? call_on_number(step, args) : call(step, args); };
    Value result = step.draw == RandomPlan::kNone ? run() : on_stream(step, frame, run);
    for (uint32_t f = step.first_fill; f < step.first_fill + step.fill_count; ++f)
      frame.arguments[fills_[f].argument] = Value();
    for (uint32_t d = step.first_dead; d < step.first_dead + step.dead_count; ++d)
      frame.values[dead_[d]] = Value();
    if (step.is_used) frame.values[step.result] = std::move(result);
  }
}

Value Program::run_bound(Args inputs, RunNumbers* numbers) const {
  require(inputs.size() <= inputs_.size(), "the graph takes {} inputs but {} were given", inputs_.size(),
          inputs.size());
  std::unique_ptr<Frame> frame = take_frame();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    require(i < inputs.size() || input.default_value, "the graph takes {} inputs but {} were given",
            inputs_.size(), inputs.size());
    if (input.is_used) frame->values[input.value] = i < inputs.size() ? inputs[i] : *input.default_value;
  }
  frame->draws = random_.begin(inputs, numbers);
  const Node* current = nullptr;
  {
    GradModeKeeper keeper;
    auto describe = [&] {
      return current ? fmt::format("running {}", current->line()) : std::string("running a graph");
    };
    While scope(describe);
    if (Origin::is_wanted()) [[unlikely]]
      run_steps<true>(*frame, current);
    else run_steps<false>(*frame, current);
  }
  Value result = output_ ? resolve(*frame, output_->returned()) : Value();
  for (const Input& input : inputs_) frame->values[input.value] = Value();
  if (output_)
    for (const Node* used : output_->inputs())
      if (used->kind() != NodeKind::kGetAttr) frame->values[used->position_] = Value();
  std::lock_guard lock(mutex_);
  idle_ = std::move(frame);
  return result;
}

}  // namespace weft
