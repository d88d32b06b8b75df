#include "weft/aot/train_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "aot/layer_scopes.h"
#include "aot/node_costs.h"
#include "aot/step_graph.h"
#include "aot/symbol_checks.h"
#include "ops/view_replay.h"
#include "weft/autograd/grad_node.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {

using aot::StepInput;
using InputKind = StepInput::Kind;

// What the graph was made from besides tensors, and must still be so.
struct StepSettings {
  std::vector<std::pair<std::shared_ptr<nn::ModuleState>, bool>> training;
  struct Group {
    std::vector<std::pair<std::string, double>> options;
    std::vector<std::string> kept;
    double momentum;
  };
  std::vector<Group> groups;

  bool momentum_is_input;

  static StepSettings of(const nn::Module& model, const optim::Optimizer& optimizer, bool momentum_is_input) {
    StepSettings settings{.momentum_is_input = momentum_is_input};
    for (const nn::Module& module : model.modules())
      settings.training.emplace_back(module.state(), module.is_training());
    for (size_t g = 0; g < optimizer.group_count(); ++g)
      settings.groups.push_back({optimizer.fixed_options(g), optimizer.kept_names(g), optimizer.momentum(g)});
    return settings;
  }

  void check(const optim::Optimizer& optimizer) const {
    for (const auto& [module, was_training] : training)
      require(
          module->training == was_training,
          "the step was compiled while a {} of the model was in {} mode, but it is in {} mode now; switch it "
          "back, or make another step",
          module->class_name.empty() ? "module" : module->class_name,
          was_training ? "training" : "evaluation", module->training ? "training" : "evaluation");
    require(optimizer.group_count() == groups.size(),
            "the step was compiled for an optimizer of {} groups, but it has {} now; make another step",
            groups.size(), optimizer.group_count());
    for (size_t g = 0; g < groups.size(); ++g) check_group(optimizer, g);
  }

 private:
  void check_group(const optim::Optimizer& optimizer, size_t g) const {
    const Group& before = groups[g];
    const auto now = optimizer.fixed_options(g);
    for (size_t i = 0; i < now.size(); ++i)
      require(
          now[i].second == before.options[i].second,
          "the step was compiled for {} = {} in group {} of the optimizer, but it is {} now; of the options, "
          "only the learning rate may change from step to step: make another step",
          now[i].first, before.options[i].second, g, now[i].second);
    const double momentum = optimizer.momentum(g);
    require(momentum == before.momentum || momentum_is_input,
            "the step was compiled for a momentum of {} in group {} of the optimizer, but it is {} now; make "
            "a step "
            "with momentum_is_input = true",
            before.momentum, g, momentum);
    require((momentum == 0) == (before.momentum == 0) && optimizer.kept_names(g) == before.kept,
            "the step was compiled for a momentum of {} in group {} of the optimizer, but it is {} now, and "
            "other "
            "state is kept for it; make another step",
            before.momentum, g, momentum);
  }
};

namespace {

bool is_tensor(const Value& value) { return value.is_tensor() && value.tensor_ref().defined(); }

bool has_same_form(const Tensor& now, const Tensor& like) {
  const bool same_sizes = now.dim() == like.dim() &&
                          std::ranges::equal(like.sizes(), now.sizes(), [](const SymInt& a, const SymInt& b) {
                            return a.is_symbolic() || b.is_symbolic() || a.same_as(b);
                          });
  return same_sizes && now.dtype() == like.dtype() && now.device() == like.device();
}
bool has_same_layout(const Tensor& now, const Tensor& like) {
  return like.is_symbolic() ? like.is_contiguous() == now.is_contiguous()
                            : same_strides(like.strides(), now.strides(), like.sizes());
}

}  // namespace

struct TrainStep::Body {
  nn::Module model;
  aot::TrainProgram program;
  optim::Optimizer& optimizer;
  TrainStepOptions options;
  std::mutex mutex;

  // From the compilation on.
  struct Compiled {
    aot::StepGraph step;
    aot::CompiledGraph run;
    TreeSpec batch;
    StepSettings settings;
    aot::SymbolChecks symbols;
  };
  std::unique_ptr<const Compiled> compiled;

  const Compiled& made() const {
    require(compiled != nullptr, "the step was not compiled yet: call it, or compile_for a batch");
    return *compiled;
  }
  void compile(const FlatTree& batch);
  Value call(const FlatTree& batch);

 private:
  std::vector<std::vector<size_t>> moved_parameters(const nn::NamedTensors& parameters) const;
  std::vector<std::string> names_of(const TreeSpec& batch) const;
  ValueList tensors_of(const FlatTree& batch) const;
  void add_state(ValueList& inputs) const;
  Tensor kept(const StepInput& input) const;
  void check_tensor(const StepInput& input, const Tensor& now) const;
  void check_batch(const ValueList& inputs) const;
};

// --- compilation -----------------------------------------------------------------------------------------

// Which parameters of the model each group of the optimizer has.
std::vector<std::vector<size_t>> TrainStep::Body::moved_parameters(const nn::NamedTensors& parameters) const {
  std::unordered_map<const TensorImpl*, size_t> known;
  for (size_t i = 0; i < parameters.size(); ++i) known.emplace(parameters[i].second.impl(), i);
  require(std::ranges::any_of(parameters, [](const auto& entry) { return entry.second.requires_grad(); }),
          "no parameter of the model requires a gradient: there is nothing to train");
  std::vector<std::vector<size_t>> groups;
  for (size_t g = 0; g < optimizer.group_count(); ++g) {
    groups.emplace_back();
    for (const Tensor& parameter : optimizer.parameters(g)) {
      const auto found = known.find(parameter.impl());
      require(found != known.end(),
              "parameter {} of group {} of the optimizer, {}, is none of the model's {}: a step moves "
              "parameters of "
              "its model only",
              groups.back().size(), g, describe(parameter), parameters.size());
      groups.back().push_back(found->second);
    }
  }
  return groups;
}

// A name for each leaf of a batch.
std::vector<std::string> TrainStep::Body::names_of(const TreeSpec& batch) const {
  std::vector<std::string> names;
  const std::span<const TreeSpec> arguments = batch.children();
  const std::vector<std::string> known =
      program.batch_names ? program.batch_names(arguments.size()) : std::vector<std::string>();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = i < known.size() ? known[i] : fmt::format("batch_{}", i);
    const size_t leaves = arguments[i].num_leaves();
    for (size_t k = 0; k < leaves; ++k)
      names.push_back(leaves == 1 && arguments[i].is_leaf() ? name : fmt::format("{}_{}", name, k));
  }
  return names;
}

void TrainStep::Body::compile(const FlatTree& batch) {
  const nn::NamedTensors parameters = model.named_parameters(), buffers = model.named_buffers();
  const aot::StepParts parts{.model = model,
                             .parameters = parameters,
                             .buffers = buffers,
                             .loss = program.loss,
                             .optimizer = optimizer,
                             .groups = moved_parameters(parameters),
                             .batch = batch.leaves,
                             .batch_spec = batch.spec,
                             .batch_names = names_of(batch.spec)};
  aot::StepGraph step = aot::trace_step(parts, options);
  aot::CompiledGraph run =
      aot::detail::compile_graph(options.compiler ? options.compiler : aot::nop, step.module,
                                 std::to_string(aot::detail::next_graph_number()) + "_train_step");
  ValueList likes;
  for (const StepInput& input : step.inputs)
    if (input.kind == InputKind::kBatch) likes.push_back(input.like);
  compiled = std::make_unique<const Compiled>(
      Compiled{.step = std::move(step),
               .run = std::move(run),
               .batch = batch.spec,
               .settings = StepSettings::of(model, optimizer, options.momentum_is_input),
               .symbols = aot::SymbolChecks(likes)});
}

// --- a step ----------------------------------------------------------------------------------------------

Value TrainStep::Body::call(const FlatTree& batch) {
  require(batch.spec == compiled->batch,
          "the step was called with another batch than it was compiled for: {}",
          difference(compiled->batch, batch.spec));
  compiled->settings.check(optimizer);
  ValueList given = tensors_of(batch);
  check_batch(given);
  compiled->symbols.check(batch.leaves, "of the step");
  // Nothing is made or changed before everything is checked.
  add_state(given);
  aot::GraphScope scope;
  return tree_unflatten(compiled->run(std::move(given), compiled->step.result.num_leaves(), "training step"),
                        compiled->step.result);
}

// What the model and the caller give, in its place among the inputs.
ValueList TrainStep::Body::tensors_of(const FlatTree& batch) const {
  const nn::NamedTensors parameters = model.named_parameters(), buffers = model.named_buffers();
  size_t num_parameters = 0, num_buffers = 0;
  for (const StepInput& input : compiled->step.inputs) {
    num_parameters += input.kind == InputKind::kParameter;
    num_buffers += input.kind == InputKind::kBuffer;
  }
  require(parameters.size() == num_parameters && buffers.size() == num_buffers,
          "the step was compiled for a model of {} parameters and {} buffers, but it has {} and {} now; make "
          "another step",
          num_parameters, num_buffers, parameters.size(), buffers.size());
  ValueList all(compiled->step.inputs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const StepInput& input = compiled->step.inputs[i];
    if (input.kind == InputKind::kParameter || input.kind == InputKind::kBuffer) {
      const auto& [name, tensor] =
          (input.kind == InputKind::kParameter ? parameters : buffers)[input.position];
      require(name == input.name,
              "the step was compiled for '{}' where the model has '{}' now; make another step", input.name,
              name);
      check_tensor(input, tensor);
      all[i] = tensor;
    } else if (input.kind == InputKind::kBatch) {
      all[i] = batch.leaves[input.position];
    } else if (input.kind == InputKind::kCount) {
      const std::vector<Tensor>& group = optimizer.parameters(input.group);
      require(input.index < group.size() && group[input.index].is_same(all[input.parameter].tensor_ref()),
              "the optimizer has another parameter than the model where '{}' was; make another step",
              compiled->step.inputs[input.parameter].name);
    }
  }
  return all;
}

// What the optimizer gives.
void TrainStep::Body::add_state(ValueList& inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const StepInput& input = compiled->step.inputs[i];
    if (input.kind == InputKind::kRate) inputs[i] = full({}, optimizer.lr(input.group), kFloat64);
    if (input.kind == InputKind::kMomentum) inputs[i] = full({}, optimizer.momentum(input.group), kFloat64);
    if (input.kind == InputKind::kCount || input.kind == InputKind::kKept) inputs[i] = kept(input);
  }
}

// State that somebody else has a handle to stays as it is for them: eager steps do not write to it.
Tensor TrainStep::Body::kept(const StepInput& input) const {
  NoGrad no_grad;
  optim::Optimizer::Kept& kept = optimizer.kept(input.group, input.index);
  Tensor& tensor = input.kind == InputKind::kCount ? kept.step : kept.tensors.at(input.position);
  const Tensor& like = input.like.tensor_ref();
  if (!has_same_form(tensor, like)) tensor = tensor.to(like.dtype());
  if (!has_same_layout(tensor, like)) {
    Tensor dense = empty_strided(like.sizes(), like.strides(), like.dtype());
    tensor = copy_(dense, tensor);
  } else if (tensor.impl()->use_count() > 1 || tensor.storage()->use_count() > 1) {
    tensor = clone(tensor);
  }
  return tensor;
}

void TrainStep::Body::check_tensor(const StepInput& input, const Tensor& now) const {
  const Tensor& like = input.like.tensor_ref();
  const std::string_view kind = input.kind == InputKind::kParameter ? "parameter" : "buffer";
  require(has_same_form(now, like) && has_same_layout(now, like),
          "the step was compiled for {} '{}' as {} with strides {}, but it is {} with strides {} now; make "
          "another step",
          kind, input.name, describe(like), describe_sizes(like.strides()), describe(now),
          describe_sizes(now.strides()));
  require(now.requires_grad() == like.requires_grad(),
          "the step was compiled while {} '{}' {} a gradient, but now it {}; make another step", kind,
          input.name, like.requires_grad() ? "required" : "did not require",
          now.requires_grad() ? "does" : "does not");
}

void TrainStep::Body::check_batch(const ValueList& inputs) const {
  const std::vector<StepInput>& known = compiled->step.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (known[i].kind != InputKind::kBatch) continue;
    const Value &now = inputs[i], &like = known[i].like;
    require(is_tensor(now) == is_tensor(like), "the step was compiled for {} as '{}', but got {}",
            like.kind_name(), known[i].name, now.kind_name());
    if (!is_tensor(now)) {
      require(like.kind() == Value::Kind::kSymInt || now == like,
              "the step was compiled for {} as '{}', but got {}; make another step, or pass it as a tensor",
              like.to_string(), known[i].name, now.to_string());
      continue;
    }
    const Tensor &tensor = now.tensor_ref(), &example = like.tensor_ref();
    require(has_same_form(tensor, example),
            "the step was compiled for {} as '{}', but got {}; make another step for it, or one with dynamic "
            "= true",
            describe(example), known[i].name, describe(tensor));
    require(
        has_same_layout(tensor, example),
        "the step was compiled for strides {} of '{}', but got {}; make it contiguous, or make another step",
        describe_sizes(example.strides()), known[i].name, describe_sizes(tensor.strides()));
    require(!tensor.requires_grad(),
            "argument '{}' of the step requires a gradient, which a training step does not give; detach it",
            known[i].name);
    for (size_t k = 0; k < inputs.size(); ++k)
      require(k == i || !is_tensor(inputs[k]) || !(known[k].is_written || known[i].is_written) ||
                  inputs[k].tensor_ref().storage() != tensor.storage(),
              "'{}' shares memory with '{}', and the step writes to it; clone one of them", known[i].name,
              known[k].name);
  }
}

// --- what users call -------------------------------------------------------------------------------------

namespace {
FlatTree flat_batch(Args batch) { return tree_flatten(Value::tuple({batch.begin(), batch.end()})); }
}  // namespace

TrainStep::TrainStep(const nn::Module& model, aot::TrainProgram program, optim::Optimizer& optimizer,
                     TrainStepOptions options)
    : body_(new Body{.model = model,
                     .program = std::move(program),
                     .optimizer = optimizer,
                     .options = std::move(options)}) {}

void TrainStep::compile_for(Args examples) const {
  std::lock_guard lock(body_->mutex);
  require(!body_->compiled, "a step is compiled once; make another one for other batches");
  body_->compile(flat_batch(examples));
}

Value TrainStep::call(Args batch) const {
  FlatTree flat = flat_batch(batch);
  std::lock_guard lock(body_->mutex);
  if (!body_->compiled) body_->compile(flat);
  return body_->call(flat);
}

Tensor TrainStep::loss_in(const Value& result) { return tree_leaves(result).at(0).to_tensor(); }

const GraphModule& TrainStep::graph() const { return body_->made().step.module; }
const aot::Partition& TrainStep::partition() const { return body_->made().step.partition; }

aot::SavedReport TrainStep::saved() const {
  std::unordered_set<std::string_view> inputs;
  for (Node& node : partition().forward.graph())
    if (aot::memory_of(node).kind() == NodeKind::kPlaceholder) inputs.insert(node.name());
  return aot::report(partition()).without([&](const std::string& name) { return inputs.contains(name); });
}

std::string TrainStep::explain() const {
  const aot::StepGraph& step = body_->made().step;
  size_t counts[static_cast<size_t>(InputKind::kBatch) + 1] = {}, written = 0;
  for (const StepInput& input : step.inputs) {
    ++counts[static_cast<size_t>(input.kind)];
    written += input.kind == InputKind::kBuffer && input.is_written;
  }
  auto count = [&](InputKind kind) { return counts[static_cast<size_t>(kind)]; };
  return fmt::format(
             "a training step of {} nodes: {} of forward and backward\n"
             "moves {} of {} parameters, with {} tensors of state; writes {} of {} buffers\n",
             step.module.graph().size(),
             fmt::format("{} and {}", step.partition.forward.graph().size(),
                         step.partition.backward.graph().size()),
             step.num_updates, count(InputKind::kParameter),
             count(InputKind::kKept) + count(InputKind::kCount), written, count(InputKind::kBuffer)) +
         saved().to_string();
}

aot::TrainProgram aot::detail::program_of(Ref<Callable> model, ValueFunction loss, size_t targets) {
  TrainProgram program;
  std::vector<std::string> names;
  if (const ArgumentNames* known = model->argument_names())
    for (const ArgumentNames::Entry& entry : known->entries()) names.push_back(entry.name);
  program.batch_names = [names, targets](size_t count) {
    std::vector<std::string> all;
    for (size_t i = 0; i < count; ++i) {
      if (i + targets < count) all.push_back(i < names.size() ? names[i] : fmt::format("input_{}", i));
      else all.push_back(targets == 1 ? "target" : fmt::format("target_{}", i + targets - count));
    }
    return all;
  };
  program.loss = [model = std::move(model), loss = std::move(loss), targets](Args batch) {
    require(batch.size() >= targets,
            "the loss function takes {} targets behind the model's result, but the batch has {} values",
            targets, batch.size());
    const size_t inputs = batch.size() - targets;
    ValueList arguments{model->call(batch.first(inputs))};
    arguments.insert(arguments.end(), batch.begin() + static_cast<ptrdiff_t>(inputs), batch.end());
    return loss(arguments);
  };
  return program;
}

}  // namespace weft
