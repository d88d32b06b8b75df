#include "weft/graph/graph_module.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <unordered_set>

#include "graph/change_watch.h"
#include "graph/run/graph_inputs.h"
#include "graph/run/program.h"
#include "graph/text/code.h"
#include "graph/uncallable.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/value_walk.h"

namespace weft {

struct GraphModule::Body {
  Graph graph;
  std::optional<CallSpec> call_spec;
  Dict traced_inputs, meta;
  const nn::ModuleState* own = nullptr;  // made for this graph; modules made by `over` have another one
  // What the last call ran, with the tensors of which module, and the graph's version then. Modules made by
  // `over` share a graph.
  std::mutex mutex;
  std::shared_ptr<const Program> program;
  ChangeWatch watch;
  uint64_t program_version = 0;
};

namespace {

struct GraphModuleValue final : nn::ModuleCallable {
  explicit GraphModuleValue(GraphModule m) : module(std::move(m)) {}
  Ref<Callable> copy() const override { return make_ref<GraphModuleValue>(nn::detail::copied(module)); }
  bool is_code() const override { return false; }
  Value call(Args args) override { return module.call(args); }
  // A graph binds names by its own rules.
  Value call(Args args, const Kwargs& kwargs) override { return module.call(args, kwargs); }
  std::string type_name() const override { return module.state()->class_name; }
  GraphModule module;
};

nn::ModuleState::Child* find_child(nn::ModuleState& state, std::string_view name) {
  for (nn::ModuleState::Child& child : state.children)
    if (child.name == name) return &child;
  return nullptr;
}

struct Slot {
  nn::ModuleState* owner;
  std::string name;
};

void check_part(std::string_view name, std::string_view path) {
  require(!name.empty(), "a path is names with dots between them, but '{}' has an empty one", path);
}

bool owns_value(const nn::ModuleState& state, std::string_view name) {
  for (const auto& entry : state.parameters)
    if (entry.first == name) return true;
  for (const auto& entry : state.buffers)
    if (entry.name == name) return true;
  for (const auto& entry : state.attributes)
    if (entry.first == name) return true;
  return false;
}

// The module that owns the last part of `path`, made where it is missing.
Slot make_slot(nn::ModuleState& root, std::string_view path) {
  const std::string_view whole = path;
  nn::ModuleState* state = &root;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    std::string_view name = path.substr(0, dot);
    check_part(name, whole);
    nn::ModuleState::Child* child = find_child(*state, name);
    if (!child) {
      require(!owns_value(*state, name), "'{}' leads through '{}', which is no module", whole, name);
      auto made = std::make_shared<nn::ModuleState>();
      made->class_name = "Module";
      made->training = state->training;
      state->children.push_back({std::string(name), std::move(made), nullptr});
      child = &state->children.back();
    }
    state = child->state.get();
    path = path.substr(dot + 1);
  }
  check_part(path, whole);
  return {state, std::string(path)};
}

template <typename List, typename Name>
void erase_named(List& list, const Name& is_name) {
  list.erase(std::remove_if(list.begin(), list.end(), is_name), list.end());
}

void erase_at(const Slot& slot) {
  nn::ModuleState& state = *slot.owner;
  erase_named(state.parameters, [&](const auto& entry) { return entry.first == slot.name; });
  erase_named(state.buffers, [&](const auto& entry) { return entry.name == slot.name; });
  erase_named(state.attributes, [&](const auto& entry) { return entry.first == slot.name; });
  erase_named(state.children, [&](const auto& entry) { return entry.name == slot.name; });
}

void put_at(const Slot& slot, const Value& value) {
  nn::ModuleState& state = *slot.owner;
  if (value.is_tensor()) {
    Tensor tensor = value.to_tensor();
    if (tensor.requires_grad() && tensor.is_leaf()) state.parameters.emplace_back(slot.name, tensor);
    else state.buffers.push_back({slot.name, tensor, true});
  } else if (Callable* callable = callable_in(value)) {
    std::optional<GraphModule> module = graph_module_in(value);
    auto owned = module ? module->state() : std::make_shared<nn::ModuleState>();
    state.children.push_back({slot.name, std::move(owned), Ref<Callable>(callable)});
  } else {
    state.attributes.emplace_back(slot.name, value);
  }
}

// The entry of `root` that `path` leads to is shared with `own`.
void share(const nn::ModuleState& root, nn::ModuleState& own, std::string_view path) {
  const nn::ModuleState* from = &root;
  std::string_view rest = path;
  for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    from = find_child(const_cast<nn::ModuleState&>(*from), rest.substr(0, dot))->state.get();
    rest = rest.substr(dot + 1);
  }
  Slot slot = make_slot(own, path);
  for (const auto& entry : from->parameters)
    if (entry.first == rest) slot.owner->parameters.push_back(entry);
  for (const auto& entry : from->buffers)
    if (entry.name == rest) slot.owner->buffers.push_back(entry);
  for (const auto& entry : from->attributes)
    if (entry.first == rest) slot.owner->attributes.push_back(entry);
  for (const auto& entry : from->children)
    if (entry.name == rest) slot.owner->children.push_back(entry);
}

// Every path that the graph names, those of modules first: what is inside of one comes with it.
std::vector<std::string> named_paths(const Graph& graph) {
  std::vector<std::string> paths;
  for (NodeKind kind : {NodeKind::kCallModule, NodeKind::kGetAttr})
    for (const Node& node : graph)
      if (node.kind() == kind) paths.push_back(node.target().to_string());
  return paths;
}

}  // namespace

// --- making one ------------------------------------------------------------------------------------------

GraphModule::GraphModule(Graph graph, std::string class_name) : body_(std::make_shared<Body>()) {
  body_->graph = std::move(graph);
  body_->graph.owner_ = state();
  state()->class_name = std::move(class_name);
  body_->own = state().get();
  if (detail::graph_probe) detail::graph_probe(body_->graph);
}

GraphModule::GraphModule(const nn::Module& root, Graph graph, std::string class_name)
    : GraphModule(root, {}, std::move(graph), std::move(class_name)) {}

GraphModule::GraphModule(const nn::Module& root, const Attributes& attributes, Graph graph,
                         std::string class_name)
    : GraphModule(std::move(graph), std::move(class_name)) {
  state()->training = root.is_training();
  for (const auto& [path, value] : attributes)
    if (!root.try_find(path)) put_at(make_slot(*state(), path), value);
  for (const std::string& path : named_paths(body_->graph)) {
    if (try_find(path)) continue;
    root.find(path);  // an error that says what is there instead
    share(*root.state(), *state(), path);
  }
}

GraphModule::GraphModule(const Attributes& attributes, Graph graph, std::string class_name)
    : GraphModule(std::move(graph), std::move(class_name)) {
  for (const auto& [path, value] : attributes) put_at(make_slot(*state(), path), value);
  for (const Node& node : body_->graph) {
    if (node.kind() != NodeKind::kGetAttr && node.kind() != NodeKind::kCallModule) continue;
    const std::string path = node.target().to_string();
    require(try_find(path).has_value(),
            "the graph names '{}' (node '{}'), which is not among the attributes that it is given", path,
            node.name());
  }
}

GraphModule GraphModule::over(const nn::Module& owner, const GraphModule& code) {
  GraphModule module(code);
  module.refer_to(owner);
  // Constants that the code has beside are no part of the owner's state. One whose name the owner has for
  // another tensor, as a constant of other code over it, gets a new name.
  std::map<std::string, std::string> names;
  for (const std::string& path : named_paths(code.graph())) {
    if (names.contains(path)) continue;
    std::string& name = names[path] = path;
    Value own = code.find(path);
    auto is_free = [&](const std::string& other) { return !owner.try_find(other) && !code.try_find(other); };
    if (std::optional<Value> there = owner.try_find(path)) {
      bool is_same = own.is_tensor() ? there->is_tensor() && there->tensor_ref().is_same(own.tensor_ref())
                                     : own == *there;
      if (is_same) continue;
      for (int number = 1; !is_free(name); ++number) name = fmt::format("{}_{}", path, number);
    }
    owner.state()->attributes.emplace_back(name, own);
  }
  for (Node& node : module.graph())
    if (node.kind() == NodeKind::kGetAttr && names.at(node.target().to_string()) != node.target().to_string())
      node.set_target(Target(names.at(node.target().to_string())));
  return module;
}

Graph& GraphModule::graph() const noexcept { return body_->graph; }

void GraphModule::set_graph(Graph graph) const {
  std::lock_guard lock(body_->mutex);
  body_->program.reset();
  body_->graph = std::move(graph);
}

namespace {

// A tensor in the slot of another one, which keeps its position; false where there is none.
bool replace_tensor(const Slot& slot, const Tensor& tensor) {
  for (auto& [name, own] : slot.owner->parameters)
    if (name == slot.name) {
      own = tensor;
      return true;
    }
  for (nn::ModuleState::Buffer& buffer : slot.owner->buffers)
    if (buffer.name == slot.name) {
      buffer.tensor = tensor;
      return true;
    }
  return false;
}

}  // namespace

void GraphModule::set_attribute(std::string_view path, Value value) const {
  Slot slot = make_slot(*state(), path);
  if (!value.is_tensor() || !replace_tensor(slot, value.tensor_ref())) {
    erase_at(slot);
    put_at(slot, value);
  }
  slot.owner->note_change();
}

namespace {

using Paths = std::unordered_set<std::string>;

// Every path, and every path on the way to one.
Paths with_prefixes(const std::vector<std::string>& paths) {
  Paths all;
  for (const std::string& path : paths)
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      all.insert(path.substr(0, dot + 1));
  all.insert(paths.begin(), paths.end());
  return all;
}

void drop_unused(nn::ModuleState& state, const std::string& prefix, const Paths& used) {
  auto is_used = [&](const std::string& name) { return used.contains(prefix + name); };
  erase_named(state.parameters, [&](const auto& entry) { return !is_used(entry.first); });
  erase_named(state.buffers, [&](const auto& entry) { return !is_used(entry.name); });
  erase_named(state.attributes, [&](const auto& entry) { return !is_used(entry.first); });
  erase_named(state.children, [&](const nn::ModuleState::Child& child) {
    if (is_used(child.name)) return false;
    std::string inside = prefix + child.name + ".";
    bool leads_on = used.contains(inside);
    // A module with code may be somebody else's too, and needs all that it has.
    const bool has_code = child.callable && !is_uncallable(*child.callable);
    if (leads_on && !has_code) drop_unused(*child.state, inside, used);
    return !leads_on;
  });
}

}  // namespace

void GraphModule::delete_unused_attributes() const {
  drop_unused(*state(), "", with_prefixes(named_paths(body_->graph)));
  state()->note_change();
}

bool GraphModule::owns_attributes() const noexcept { return body_->own == state().get(); }

const std::optional<CallSpec>& GraphModule::call_spec() const noexcept { return body_->call_spec; }
void GraphModule::set_call_spec(CallSpec spec) const { body_->call_spec = std::move(spec); }
Dict& GraphModule::meta() const noexcept { return body_->meta; }
const Dict& GraphModule::traced_inputs() const noexcept { return body_->traced_inputs; }
void GraphModule::set_traced_inputs(Dict inputs) const { body_->traced_inputs = std::move(inputs); }

// --- running it ------------------------------------------------------------------------------------------

std::shared_ptr<const Program> GraphModule::program() const {
  std::lock_guard lock(body_->mutex);
  const uint64_t version = body_->graph.version();
  const bool is_unchanged = body_->watch.is_unchanged(*this) && body_->program_version == version;
  if (!body_->program || !is_unchanged) {
    body_->program.reset();  // nothing out of date is left should this fail
    body_->graph.lint();
    body_->program = std::make_shared<const Program>(body_->graph, *this);
    body_->program_version = version;
  }
  return body_->program;
}

Value GraphModule::call(Args args, const Kwargs& kwargs) const { return call(args, kwargs, nullptr); }

Value GraphModule::call(Args args, const Kwargs& kwargs, RunNumbers* numbers) const {
  return body_->call_spec ? call_with_trees(*body_->call_spec, args, kwargs, numbers)
                          : call_with_inputs(args, kwargs, numbers);
}

RunResult GraphModule::run(Args args, const RunOptions& options, const Kwargs& kwargs) const {
  RunNumbers numbers{.are_given = options.random.has_value()};
  if (!options.random) {
    Value value = call(args, kwargs, &numbers);
    return {std::move(value), numbers.begin};
  }
  uint64_t drawn = 0;
  Value value;
  {
    RandomScope scope(*options.random);
    value = call(args, kwargs, &numbers);
    drawn = next_random().offset - options.random->offset;
  }
  if (options.advances_generator) reserve_random(drawn);
  return {std::move(value), numbers.begin};
}

Value GraphModule::call_with_trees(const CallSpec& spec, Args args, const Kwargs& kwargs,
                                   RunNumbers* numbers) const {
  const std::vector<std::string>& names = spec.argument_names;
  const bool lacks_names = args.size() < names.size() && names.back().starts_with("**");
  if (!kwargs.empty() || lacks_names)
    return call_with_trees(spec, GraphInputs(names).bind(args, kwargs), {}, numbers);
  auto run = [&](Args given) {
    ValueList leaves = flatten_up_to(spec.arguments, Value::tuple({given.begin(), given.end()}));
    Value result = program()->run_bound(leaves, numbers);
    return tree_unflatten(result.elements(), spec.result);
  };
  if (is_watched()) [[unlikely]]
    return watched_call("", {args.begin(), args.end()}, run);
  return run(args);
}

Value GraphModule::call_with_inputs(Args args, const Kwargs& kwargs, RunNumbers* numbers) const {
  if (!kwargs.empty()) {
    const GraphInputs names(body_->graph);
    const ValueList bound = names.bind(args, kwargs);
    if (!names.has_rest()) return call_with_inputs(bound, {}, numbers);
    auto run = [&](Args given) { return program()->run_bound(given, numbers); };
    return is_watched() ? watched_call("", bound, run) : run(bound);
  }
  auto run = [&](Args given) { return program()->run(given, numbers); };
  if (is_watched()) [[unlikely]]
    return watched_call("", {args.begin(), args.end()}, run);
  return run(args);
}

Ref<Callable> GraphModule::callable() const { return make_ref<GraphModuleValue>(*this); }
ValueFunction GraphModule::function() const {
  return [module = *this](Args args) { return module.call(args); };
}

std::optional<GraphModule> graph_module_in(const Value& value) {
  auto* held = dynamic_cast<GraphModuleValue*>(callable_in(value));
  if (!held) return std::nullopt;
  return held->module;
}

std::string GraphModule::code() const {
  if (!body_->call_spec) return body_->graph.code();
  return function_code(body_->graph, {.heading = "\n\n\n", .call_spec = &*body_->call_spec}) + "    ";
}

// --- copies ----------------------------------------------------------------------------------------------

namespace {

// Tensors among the arguments of nodes belong to the graph.
void copy_arguments(Graph& graph, nn::DeepCopy& copy) {
  bool has_tensors = false;
  auto copied = [&](const Value& value) {
    return map_leaves(value, [&](const Value& leaf) {
      if (!leaf.is_tensor()) return leaf;
      has_tensors = true;
      return Value(copy.tensor(leaf.tensor_ref()));
    });
  };
  for (Node& node : graph) {
    has_tensors = false;
    ValueList args;
    for (const Value& arg : node.args()) args.push_back(copied(arg));
    Kwargs kwargs;
    for (const auto& [name, arg] : node.kwargs()) kwargs.emplace_back(name, copied(arg));
    if (!has_tensors) continue;
    node.set_args(std::move(args));
    node.set_kwargs(std::move(kwargs));
  }
}

}  // namespace

GraphModule& GraphModule::operator=(const GraphModule& other) {
  refer_to(other);
  body_ = other.body_;
  return *this;
}

GraphModule::GraphModule(const GraphModule& other) : nn::Module(other) {
  nn::DeepCopy* copy = nn::DeepCopy::current();
  if (!copy) {
    body_ = other.body_;
    return;
  }
  auto make = [&]() -> std::shared_ptr<void> {
    auto made = std::make_shared<Body>();
    made->graph = other.body_->graph.copy();
    copy_arguments(made->graph, *copy);
    made->graph.owner_ = state();
    made->call_spec = other.body_->call_spec;
    made->traced_inputs = other.body_->traced_inputs;
    made->meta = other.body_->meta;
    made->own = copy->find_state(other.body_->own).get();
    if (detail::graph_probe) detail::graph_probe(made->graph);
    return made;
  };
  body_ = std::static_pointer_cast<Body>(copy->shared(other.body_, make));
}

void GraphModule::copy_attributes(const nn::Module& from) const {
  nn::Module missing;
  std::vector<std::string> paths;
  for (const std::string& path : named_paths(body_->graph)) {
    if (try_find(path) || missing.try_find(path)) continue;
    from.find(path);  // an error that says what is there instead
    share(*from.state(), *missing.state(), path);
    paths.push_back(path);
  }
  nn::DeepCopy copy(missing.state(), {.share_code = true});
  const std::shared_ptr<nn::ModuleState> copies = copy.state(missing.state());
  for (const std::string& path : paths) share(*copies, *state(), path);
  if (!paths.empty()) state()->note_change();
}

std::ostream& operator<<(std::ostream& out, const GraphModule& module) { return out << module.code(); }

}  // namespace weft
