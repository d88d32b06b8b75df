// The graph of a training step. The forward is traced with its backward, as for any compiled call; a
// partitioner says what is computed twice; then come the writes to buffers, and for each parameter the
// optimizer's update, traced by itself.
#include "aot/step_graph.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "aot/describe.h"
#include "aot/fake_inputs.h"
#include "aot/input_steps.h"
#include "aot/join_partition.h"
#include "aot/layer_scopes.h"
#include "aot/node_costs.h"
#include "aot/split_joint.h"
#include "aot/trace_call.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/nn/functional_call.h"
#include "weft/ops/fake.h"

namespace weft::aot {
namespace {

using InputKind = StepInput::Kind;

std::string name_of(const StepInput& input) {
  constexpr std::string_view kKinds[] = {"parameter",     "buffer",   "optimizer state", "step count",
                                         "learning rate", "momentum", "argument"};
  static_assert(std::size(kKinds) == static_cast<size_t>(InputKind::kBatch) + 1);
  return fmt::format("{} '{}'", kKinds[static_cast<size_t>(input.kind)], input.name);
}

class StepTracer {
 public:
  StepTracer(const StepParts& parts, const TrainStepOptions& options) : parts_(parts), options_(options) {}

  StepGraph run() {
    CompileScope scope;
    GradModeScope recording(true);
    const std::unique_ptr<FakeMode> open = fake_mode(options_.dynamic);
    const FakeMode& fake = *open;
    add_model_inputs(fake);
    trace_gradients();
    for (const StepInput& input : step_.inputs) add_placeholder(input);
    std::vector<Node*> primals = placeholders_;
    add_state_inputs();
    const JoinedParts joined =
        add_partition(graph_, step_.partition, primals,
                      [this](const ValueList& outputs) -> Node& { return ones_like_loss(outputs); });
    write_inputs(joined);
    add_updates(joined);
    add_output(joined);
    step_.module = GraphModule(joint_, attributes_, std::move(graph_), "TrainStep");
    return std::move(step_);
  }

 private:
  // --- what goes in

  void add_model_inputs(const FakeMode& fake) {
    auto add = [&](InputKind kind, const nn::NamedTensors& tensors) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor& real = tensors[i].second;
        inputs_.emplace_back(
            is_fake(real) ? real : fake.fake_of(real, FakeRequest::fixed(real.dim()).without_base()));
        examples_.emplace_back(real);
        step_.inputs.push_back(
            {.kind = kind, .name = tensors[i].first, .position = i, .like = noted_form(inputs_.back())});
      }
    };
    add(InputKind::kParameter, parts_.parameters);
    add(InputKind::kBuffer, parts_.buffers);
    for (size_t i = 0; i < parts_.batch.size(); ++i) {
      inputs_.push_back(batch_input(i, fake));
      examples_.push_back(parts_.batch[i]);
      step_.inputs.push_back({.kind = InputKind::kBatch,
                              .name = parts_.batch_names[i],
                              .position = i,
                              .like = noted_form(inputs_.back())});
    }
  }

  Value batch_input(size_t i, const FakeMode& fake) const {
    const Value& leaf = parts_.batch[i];
    const std::string& name = parts_.batch_names[i];
    if (leaf.is_tensor() && leaf.tensor_ref().defined()) {
      const Tensor& tensor = leaf.tensor_ref();
      require(!tensor.requires_grad(),
              "argument '{}' of the step requires a gradient, which a training step does not give; detach it",
              name);
      return is_fake(tensor) ? tensor : fake.fake_of(tensor, FakeRequest(name).without_base());
    }
    if (leaf.kind() == Value::Kind::kInt && fake.options().shape_env)
      return fake.options().shape_env->create_value(leaf.to_int(), sym::Source(name), sym::DimPolicy::kDuck);
    return leaf;
  }

  // --- forward and backward

  // The loss as a function of all inputs; what else the program gives has no history.
  ValueFunction program() {
    return [this](Args args) {
      nn::NamedTensors state;
      size_t next = 0;
      for (const auto* tensors : {&parts_.parameters, &parts_.buffers})
        for (const auto& [name, tensor] : *tensors) state.emplace_back(name, args[next++].to_tensor());
      FlatTree result;
      {
        nn::Substitution substitution(parts_.model, state);
        result = tree_flatten(parts_.loss(tree_unflatten(args.subspan(next), parts_.batch_spec).elements()));
      }
      check_loss(result.leaves);
      Tensor loss = result.leaves[0].to_tensor();
      // A loss that is a parameter, or a view of one, has no value of its own.
      if (loss.is_leaf() || loss.impl()->view) loss = clone(loss);
      result.leaves[0] = loss;
      for (size_t i = 1; i < result.leaves.size(); ++i)
        if (result.leaves[i].is_tensor() && result.leaves[i].tensor_ref().defined() &&
            result.leaves[i].tensor_ref().requires_grad())
          result.leaves[i] = detach(result.leaves[i].tensor_ref());
      return tree_unflatten(result.leaves, result.spec);
    };
  }

  static void check_loss(const ValueList& leaves) {
    require(!leaves.empty() && leaves[0].is_tensor() && leaves[0].tensor_ref().defined(),
            "the loss function of a training step gives the loss, a tensor of one number, first; but this "
            "one gives {}",
            leaves.empty() ? "nothing" : leaves[0].kind_name());
    const Tensor& loss = leaves[0].tensor_ref();
    bool is_scalar = true;
    for (const SymInt& size : loss.sizes()) is_scalar = is_scalar && size.same_as(1);
    require(is_scalar,
            "the loss of a training step is one number, but the loss function gives {}; reduce it with "
            "mean() or sum()",
            describe(loss));
    require(loss.requires_grad(),
            "the loss of a training step depends on no parameter that requires a gradient: was it detached, "
            "or is every parameter frozen?");
  }

  void trace_gradients() {
    const ValueFunction f = program();
    CallDescription description = describe_call(f, inputs_, {});
    step_.result = description.result;
    check_inputs(description);
    TracedCall traced = trace_joint(f, inputs_, description, {.decompositions = options_.decompositions});
    check_traced(traced);
    joint_ = std::move(traced.module);
    written_ = description.written_back;
    outputs_ = description.outputs;
    num_outputs_ = description.num_graph_outputs();
    keep_gradients_of_moved();
    const std::vector<Node*> inputs = joint_.graph().placeholders();
    for (size_t i = 0; i < step_.inputs.size(); ++i) inputs[i]->rename(placeholder_name(step_.inputs[i]));
    step_.partition = options_.partitioner(joint_, num_outputs_);
  }

  void check_inputs(const CallDescription& description) const {
    CallDescription with_updates = description;
    for (const std::vector<size_t>& group : parts_.groups)
      for (size_t parameter : group) with_updates.inputs[parameter].is_written = true;
    for (size_t i = 0; i < description.inputs.size(); ++i) {
      const InputUse& use = description.inputs[i];
      const std::string name = name_of(step_.inputs[i]);
      if (use.changes_metadata)
        unsupported(
            "the forward gives {} other sizes or strides, which a training step cannot write back; change a "
            "view of it",
            name);
      if (use.is_written && (use.requires_grad_after || step_.inputs[i].kind == InputKind::kParameter))
        unsupported("the forward writes to {}{}", name,
                    step_.inputs[i].kind == InputKind::kParameter
                        ? ", which the optimizer moves or keeps; write to it between steps"
                        : " what requires a gradient: the next step would go back into this one. Write what "
                          "is detached");
    }
    if (DropDuplicates::needed_for(examples_, with_updates) ||
        SyntheticBases::needed_for(examples_, with_updates))
      unsupported("two inputs of the step share memory that it writes to: {}", shared_inputs(with_updates));
  }
  std::string shared_inputs(const CallDescription& description) const {
    for (size_t i = 0; i < examples_.size(); ++i)
      for (size_t k = 0; k < examples_.size(); ++k)
        if (i != k && description.inputs[i].is_written && share_memory(examples_[i], examples_[k]))
          return fmt::format("{} and {}; clone one of them", name_of(step_.inputs[i]),
                             name_of(step_.inputs[k]));
    return "clone one of them";
  }
  static bool share_memory(const Value& a, const Value& b) {
    auto memory = [](const Value& v) {
      return v.is_tensor() && v.tensor_ref().defined() ? v.tensor_ref().storage().get() : nullptr;
    };
    return memory(a) && memory(a) == memory(b);
  }

  void check_traced(const TracedCall& traced) const {
    for (const auto* trees : {&traced.inputs, &traced.outputs, &traced.gradients})
      for (const ExtensionTree& tree : *trees)
        if (!tree.is_leaf())
          unsupported(
              "a training step takes and gives plain tensors, but a {} is among its inputs or outputs",
              tree.to_string());
    invariant(traced.tangents.size() == 1, "the joint graph of a training step has {} tangents",
              traced.tangents.size());
    if (traced.backward_writes_differentiable_input)
      unsupported("the backward of a training step writes to a parameter");
  }

  // Those of others are computed for nobody.
  void keep_gradients_of_moved() {
    std::unordered_set<size_t> moved;
    for (const std::vector<size_t>& group : parts_.groups) moved.insert(group.begin(), group.end());
    Node& output = *joint_.graph().output_node();
    ValueList all = output.returned().elements();
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (!moved.contains(i)) all[num_outputs_ + i] = Value();
    output.set_args({Value::list(std::move(all))});
    joint_.graph().eliminate_dead_code(/*random_is_impure=*/false);
  }

  // A word that is no tangent's.
  static std::string placeholder_name(const StepInput& input) {
    std::string name = input.kind == InputKind::kParameter ? "p_"
                       : input.kind == InputKind::kBuffer  ? "b_"
                                                           : "";
    if (name.empty() && input.name.starts_with("tangents")) name = "input_";
    for (char c : input.name) name += c == '.' ? '_' : c;
    return name;
  }

  // --- the graph

  Node& add_placeholder(const StepInput& input) {
    Node& node = graph_.placeholder(placeholder_name(input));
    node.meta().value = input.like;
    placeholders_.push_back(&node);
    return node;
  }
  // An input that is known from here on only.
  Node& add_input(StepInput input) {
    const Graph::InsertScope before = graph_.inserting_after(*placeholders_.back());
    step_.inputs.push_back(std::move(input));
    return add_placeholder(step_.inputs.back());
  }

  void add_state_inputs() {
    for (size_t g = 0; g < parts_.groups.size(); ++g) {
      const Value number = noted_form(empty({}, kFloat64));
      auto name = [g](std::string what) { return g == 0 ? what : fmt::format("{}_{}", what, g); };
      rates_.push_back(
          &add_input({.kind = InputKind::kRate, .name = name("lr"), .group = g, .like = number}));
      // Without momentum nothing is kept for it.
      const bool is_input = options_.momentum_is_input && parts_.optimizer.momentum(g) != 0;
      momenta_.push_back(
          is_input ? &add_input(
                         {.kind = InputKind::kMomentum, .name = name("momentum"), .group = g, .like = number})
                   : nullptr);
    }
  }

  // The gradient of the loss itself.
  Node& ones_like_loss(const ValueList& outputs) {
    Node& loss = *node_in(outputs[written_.size()]);
    Node& ones = graph_.call_function("aten::ones_like", {value_of(loss)});
    ones.meta().value = loss.meta().value;
    return ones;
  }

  Node& copy_to(Node& target, Node& value) {
    Node& copy = graph_.call_function("aten::copy_", {value_of(target), value_of(value)});
    copy.meta().value = target.meta().value;
    return copy;
  }

  // The value by itself where it may be the memory of an input, which is to be written to.
  Node& own_value(Node& value, const Node* target = nullptr) {
    const Node& memory = memory_of(value);
    if (memory.kind() != NodeKind::kPlaceholder || &memory == target) return value;
    Node& own = graph_.call_function("aten::clone", {value_of(value)});
    own.meta().value = value.meta().value;
    return own;
  }

  void write_inputs(const JoinedParts& joined) {
    // Gradients, too, before anything is written.
    for (const Value& gradient : joined.gradients) {
      Node* node = node_in(gradient);
      gradients_.push_back(node ? &own_value(*node) : nullptr);
    }
    std::vector<Node*> values;
    for (size_t i = 0; i < written_.size(); ++i)
      values.push_back(&own_value(*node_in(joined.forward_outputs[i])));
    for (size_t i = 0; i < written_.size(); ++i) {
      copy_to(*placeholders_[written_[i]], *values[i]);
      step_.inputs[written_[i]].is_written = true;
    }
  }

  // --- updates

  void add_updates(const JoinedParts&) {
    for (size_t g = 0; g < parts_.groups.size(); ++g)
      for (size_t i = 0; i < parts_.groups[g].size(); ++i) {
        const size_t parameter = parts_.groups[g][i];
        if (!gradients_[parameter]) continue;
        add_update(g, i, parameter);
        ++step_.num_updates;
      }
    require(step_.num_updates > 0,
            "no parameter of the optimizer gets a gradient: a step would change nothing");
  }

  void add_update(size_t group, size_t index, size_t parameter) {
    const std::string& name = parts_.parameters[parameter].first;
    const Tensor like = inputs_[parameter].to_tensor();
    auto add = [&](InputKind kind, const std::string& what, size_t position, const Value& value) -> Node& {
      step_.inputs[parameter].is_written = true;
      return add_input({.kind = kind,
                        .name = fmt::format("{}.{}", name, what),
                        .group = group,
                        .index = index,
                        .parameter = parameter,
                        .position = position,
                        .like = value,
                        .is_written = true});
    };
    std::vector<Node*> inputs{placeholders_[parameter], gradients_[parameter], rates_[group]};
    if (momenta_[group]) inputs.push_back(momenta_[group]);
    std::vector<Node*> targets{placeholders_[parameter]};
    Node& count = add(InputKind::kCount, "step", 0, noted_form(empty({}, kFloat32)));
    targets.push_back(&count);
    const std::vector<std::string> names = parts_.optimizer.kept_names(group);
    NoGrad no_grad;
    for (size_t k = 0; k < names.size(); ++k)
      targets.push_back(&add(InputKind::kKept, names[k], k, noted_form(zeros_like(like))));
    inputs.insert(inputs.end(), targets.begin() + 1, targets.end());
    const ValueList values = inlined(traced_update(group, inputs), inputs);
    std::vector<Node*> own;
    for (size_t k = 0; k < targets.size(); ++k) own.push_back(&own_value(*node_in(values[k]), targets[k]));
    for (size_t k = 0; k < targets.size(); ++k) copy_to(*targets[k], *own[k]);
  }

  // A function of the parameter, its gradient, the learning rate, the momentum where there is one, the count
  // and what is kept.
  GraphModule traced_update(size_t group, const std::vector<Node*>& inputs) const {
    ValueList examples;
    for (Node* node : inputs) examples.emplace_back(shape_only(node->meta().value.to_tensor()));
    auto update = [&](Args args) -> Value {
      size_t next = 0;
      auto take = [&] { return args[next++].to_tensor(); };
      const Tensor parameter = take(), gradient = take(), rate = take();
      const Tensor momentum = momenta_[group] ? take() : Tensor(), count = take() + 1;
      std::vector<Tensor> kept;
      while (next < args.size()) kept.push_back(take());
      optim::Updated moved = parts_.optimizer.update(group, parameter, gradient, kept, rate, count, momentum);
      require(moved.state.size() == kept.size(),
              "an optimizer's update gave {} tensors of state, but keeps {}", moved.state.size(),
              kept.size());
      ValueList results{moved.parameter, count};
      for (Tensor& tensor : moved.state) results.emplace_back(std::move(tensor));
      return Value::list(std::move(results));
    };
    layer_state().active &= ~layer::kAutocast;
    const CallDescription description = describe_call(update, examples, {});
    if (!description.written_back.empty())
      unsupported("an optimizer's update that writes to its arguments; return the new values");
    return trace_inference(update, examples, description, {.decompositions = options_.decompositions}).module;
  }

  // The nodes of an update at the end of the graph; what they give.
  ValueList inlined(const GraphModule& update, const std::vector<Node*>& inputs) {
    std::unordered_map<const Node*, Node*> copies;
    size_t next = 0;
    auto copy_of = [&](Node& node) { return value_of(*copies.at(&node)); };
    for (Node& node : update.graph()) {
      if (node.kind() == NodeKind::kOutput) break;
      Node* copy = nullptr;
      if (node.kind() == NodeKind::kPlaceholder) copy = inputs.at(next++);
      else if (node.kind() == NodeKind::kGetAttr) copy = &attribute(update, node);
      else copy = &graph_.node_copy(node, copy_of);
      copies.emplace(&node, copy);
    }
    return map_nodes(update.graph().output_node()->returned(), copy_of).elements();
  }
  // Each update has constants of its own.
  Node& attribute(const GraphModule& update, const Node& node) {
    const std::string path = fmt::format("_update_constant{}", attributes_.size());
    attributes_.emplace_back(path, update.find(node.target().to_string()));
    Node& copy = graph_.get_attr(path);
    if (const NodeMeta* meta = node.meta_or_null()) copy.meta().value = meta->value;
    return copy;
  }

  // --- what comes out

  void add_output(const JoinedParts& joined) {
    ValueList results;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const bool is_input = outputs_[i].kind == OutputOrigin::Kind::kInput;
      results.push_back(is_input ? value_of(*placeholders_[outputs_[i].source])
                                 : joined.forward_outputs[written_.size() + i]);
    }
    graph_.output(Value::list(std::move(results)));
  }

  const StepParts& parts_;
  const TrainStepOptions& options_;
  StepGraph step_;
  ValueList inputs_, examples_;  // of the forward: without data, and as they were given
  GraphModule joint_;
  std::vector<size_t> written_;  // inputs that the forward writes to
  std::vector<OutputOrigin> outputs_;
  size_t num_outputs_ = 0;  // of the forward
  Graph graph_;
  std::vector<Node*> placeholders_;  // those of the forward first
  std::vector<Node*> rates_;         // by group
  std::vector<Node*> momenta_;       // by group; null where there is none
  std::vector<Node*> gradients_;     // by input of the forward; null where it has none
  GraphModule::Attributes attributes_;
};

}  // namespace

StepGraph trace_step(const StepParts& parts, const TrainStepOptions& options) {
  return StepTracer(parts, options).run();
}

}  // namespace weft::aot
