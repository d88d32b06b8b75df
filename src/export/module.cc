// An exported program as a module: what its graph takes as inputs becomes attributes again, and the new
// values that it gives are written where they belong.
#include <unordered_map>

#include "export/input_checks.h"
#include "export/vmap_regions.h"
#include "weft/base/error.h"
#include "weft/base/warning.h"
#include "weft/export/exported_program.h"
#include "weft/ops/operator_value.h"

namespace weft {
namespace {

void copy_notes(const Node& from, Node& to) {
  const NodeMeta* notes = from.meta_or_null();
  if (!notes) return;
  to.meta().value = notes->value;
  to.meta().source = notes->source;
  to.meta().modules = notes->modules;
}

// The module that owns the state: unused parameters too.
class Owner {
 public:
  explicit Owner(const ExportedProgram& program) {
    root_.state()->class_name = "ExportedModule";
    root_.state()->has_fixed_mode = true;
    std::unordered_map<std::string_view, const InputSpec*> specs;
    for (const InputSpec& spec : program.inputs()) specs.emplace(spec.target, &spec);
    auto spec_of = [&](std::string_view name) {
      auto found = specs.find(name);
      return found == specs.end() ? nullptr : found->second;
    };
    for (const auto& [name, tensor] : program.state_dict()) {
      const InputSpec* spec = spec_of(name);
      const bool is_parameter = spec ? spec->kind == InputSpec::Kind::kParameter : tensor.requires_grad();
      add(name, tensor, is_parameter, true);
    }
    for (const auto& [name, tensor] : program.constants()) {
      const InputSpec* spec = spec_of(name);
      if (spec && spec->kind == InputSpec::Kind::kBuffer) add(name, tensor, false, false);
      else state_at(name).attributes.emplace_back(last_part(name), tensor);
    }
  }
  const nn::Module& root() const { return root_; }

 private:
  static std::string last_part(std::string_view path) {
    return std::string(path.substr(path.rfind('.') + 1));
  }
  nn::ModuleState& state_at(std::string_view path) {
    nn::ModuleState* state = root_.state().get();
    for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.')) {
      const std::string_view name = path.substr(0, dot);
      nn::ModuleState::Child* child = nullptr;
      for (nn::ModuleState::Child& known : state->children)
        if (known.name == name) child = &known;
      if (!child) {
        auto made = std::make_shared<nn::ModuleState>();
        made->class_name = "Module";
        state->children.push_back({std::string(name), std::move(made), nullptr});
        child = &state->children.back();
      }
      state = child->state.get();
      path = path.substr(dot + 1);
    }
    return *state;
  }
  void add(std::string_view path, const Tensor& tensor, bool is_parameter, bool persistent) {
    nn::ModuleState& state = state_at(path);
    const std::string name = last_part(path);
    if (is_parameter) state.parameters.emplace_back(name, tensor);
    else state.buffers.push_back({name, tensor, persistent});
  }

  nn::Module root_;
};

class Unlift {
 public:
  explicit Unlift(const ExportedProgram& program) : program_(program), graph_(program.graph().copy()) {}

  GraphModule run() {
    const std::vector<Node*> placeholders = graph_.placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i)
      if (program_.inputs()[i].kind == InputSpec::Kind::kToken) follow_token(*placeholders[i]);
    write_results();
    // Attributes are read before everything else, in the order of the inputs.
    Node* const first = placeholders.empty() ? graph_.front() : placeholders.back()->next();
    for (size_t i = 0; i < placeholders.size(); ++i)
      read_from_module(*placeholders[i], program_.inputs()[i], *first);
    const auto bodies = fold_vmap_regions(graph_);
    return assemble(bodies);
  }

 private:
  // Effects happen in the order of the graph: a call on a token is the call of the operator that comes
  // second.
  void follow_token(Node& first) {
    Node* token = &first;
    while (token) {
      Node* next = nullptr;
      for (Node* user : token->users().list()) {
        if (user->kind() == NodeKind::kOutput) continue;
        require(
            user->args().size() >= 2 && node_in(user->args()[0]) == token && holds_operator(user->args()[1]),
            "exported program: '{}' uses the token '{}' for something else than an effect", user->name(),
            token->name());
        require(next == nullptr, "exported program: the token '{}' is used twice", token->name());
        next = without_token(*user);
      }
      token = next;
    }
  }
  // The token after the call; null where nobody takes it.
  Node* without_token(Node& call) {
    const ValueList args(call.args().begin() + 2, call.args().end());
    const auto scope = graph_.inserting_before(call);
    Node& plain = graph_.call(Target::of_operator(operator_name_in(call.args()[1])), args, call.kwargs());
    copy_notes(call, plain);
    Node* token = nullptr;
    std::vector<Node*> items = call.users().list();
    size_t results = 0;
    for (Node* item : items) results = std::max(results, static_cast<size_t>(item->args().at(1).to_int()));
    if (const NodeMeta* notes = call.meta_or_null(); notes && notes->value.is_sequence())
      results = std::max(results, notes->value.elements().size() - 1);
    plain.meta().value = {};
    for (Node* item : items) {
      const int64_t index = item->args().at(1).to_int();
      if (index == 0) token = item;
      else if (results == 1) item->replace_all_uses_with(plain);
      else item->set_args({value_of(plain), index - 1});
    }
    return token;
  }

  // New values of buffers and inputs are copied there after everything was computed; a result that is such a
  // value is the buffer or input itself.
  void write_results() {
    Node& output = *graph_.output_node();
    const ValueList results = output.returned().elements();
    const std::vector<Node*> placeholders = graph_.placeholders();
    std::unordered_map<const Node*, Node*> written;
    ValueList kept;
    const auto scope = graph_.inserting_before(output);
    for (size_t i = 0; i < results.size(); ++i) {
      const OutputSpec& spec = program_.outputs()[i];
      Node* target = target_of(spec, placeholders);
      if (target) {
        Node* value = node_in(results[i]);
        require(value != nullptr, "exported program: the new value of '{}' is a constant", spec.target);
        Node& copy = graph_.call_function("aten::copy_", {value_of(*target), results[i]});
        copy.rename("copy__default");
        copy_notes(*value, copy);
        written.emplace(value, &copy);
      } else if (spec.kind != OutputSpec::Kind::kToken) {
        kept.push_back(results[i]);
      }
    }
    for (Value& result : kept)
      if (const Node* node = node_in(result); node && written.contains(node))
        result = value_of(*written.at(node));
    output.set_args({Value::tuple(std::move(kept))});
  }
  Node* target_of(const OutputSpec& spec, const std::vector<Node*>& placeholders) const {
    using Kind = OutputSpec::Kind;
    if (spec.kind != Kind::kBufferMutation && spec.kind != Kind::kParameterMutation &&
        spec.kind != Kind::kUserInputMutation)
      return nullptr;
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const InputSpec& input = program_.inputs()[i];
      const bool is_input = spec.kind == Kind::kUserInputMutation;
      if (is_input ? placeholders[i]->name() == spec.target : input.target == spec.target)
        return placeholders[i];
    }
    fail("exported program: output '{}' is to be written to what is no input", spec.target);
  }

  void read_from_module(Node& placeholder, const InputSpec& spec, Node& first) {
    switch (spec.kind) {
      case InputSpec::Kind::kUserInput:
      case InputSpec::Kind::kConstantInput:
        return;
      case InputSpec::Kind::kToken:
        break;
      case InputSpec::Kind::kCustomObject:
        if (!object_of(spec.target))
          unsupported(
              "the program needs the custom object '{}', of a class that is not registered; "
              "register_custom_class makes it known",
              spec.target);
        [[fallthrough]];
      default:
        if (placeholder.users().empty()) break;
        const auto scope = graph_.inserting_before(first);
        Node& attribute = graph_.get_attr(spec.target);
        copy_notes(placeholder, attribute);
        placeholder.replace_all_uses_with(attribute);
    }
    erase_with_users(placeholder);
  }
  const Value* object_of(std::string_view name) const {
    for (const auto& [known, object] : program_.objects())
      if (known == name) return &object;
    return nullptr;
  }
  // What is left of a token is used by calls without their token only.
  void erase_with_users(Node& node) {
    std::vector<Node*> chain = {&node};
    for (size_t i = 0; i < chain.size(); ++i)
      for (Node* user : chain[i]->users().list()) chain.push_back(user);
    for (size_t i = chain.size(); i-- > 0;)
      if (chain[i]->graph()) graph_.erase(*chain[i]);
  }

  GraphModule assemble(const std::vector<std::pair<std::string, GraphModule>>& bodies) {
    Owner owner(program_);
    // Branches and bodies of control flow are attributes of the program's graph.
    GraphModule::Attributes functions;
    for (const auto& [path, body] : bodies)
      functions.emplace_back(path, Value(Ref<ValueObject>(body.callable())));
    for (const Node& node : graph_)
      if (node.kind() == NodeKind::kGetAttr) {
        if (std::optional<Value> value = program_.graph_module().try_find(node.target().to_string()))
          functions.emplace_back(node.target().to_string(), *value);
        else if (const Value* object = object_of(node.target().to_string()))
          functions.emplace_back(node.target().to_string(), *object);
      }
    GraphModule code(owner.root(), functions, std::move(graph_), "ExportedModule");
    const ProgramCall& call = program_.call();
    CallSpec spec{call.names, {}, call.result, call.arguments.children()[0].children().size()};
    std::vector<TreeSpec> arguments;
    for (const TreeSpec& group : call.arguments.children())
      arguments.insert(arguments.end(), group.children().begin(), group.children().end());
    spec.arguments = TreeSpec::tuple(std::move(arguments));
    code.set_call_spec(spec);
    code.meta() = program_.graph_module().meta();
    GraphModule module = GraphModule::over(owner.root(), code);
    auto checks = std::make_shared<const InputChecks>(program_);
    for (const std::string& guard : checks->unreadable())
      warn(WarningKind::kUser, "a guard of the program cannot be read, and is not checked: {}", guard);
    module.register_forward_pre_hook(nn::ModuleState::PreHook(
        [checks, arguments = spec.arguments](ValueList& inputs) { check_call(*checks, arguments, inputs); }));
    return module;
  }

  static void check_call(const InputChecks& checks, const TreeSpec& arguments, const ValueList& inputs) {
    ValueList leaves;
    try {
      leaves = flatten_up_to(arguments, Value::tuple(inputs));
    } catch (const UserError& error) {
      const TreeSpec got = tree_structure(Value::tuple(inputs));
      throw AssertionError(
          fmt::format("Trying to flatten user inputs with exported input tree spec:\n{}\nbut actually got "
                      "inputs with tree spec "
                      "of:\n{}\n{}",
                      arguments.to_string(), got.to_string(), error.message()));
    }
    checks.check(leaves);
  }

  const ExportedProgram& program_;
  Graph graph_;
};

}  // namespace

GraphModule ExportedProgram::module() const { return Unlift(*this).run(); }

}  // namespace weft
