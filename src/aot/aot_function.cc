#include "weft/aot/aot_function.h"

#include <algorithm>
#include <mutex>

#include "aot/compile_call.h"
#include "weft/base/error.h"
#include "weft/nn/functional_call.h"

namespace weft {

// What it was compiled for, and what came of that.
struct AotFunction::Body {
  ValueFunction f;
  std::optional<GraphModule> program = {};
  AotOptions options;
  std::mutex mutex;
  std::unique_ptr<const aot::CompiledCall> call;
  TreeSpec arguments;
  bool is_flat = false;  // the arguments are leaves themselves

  void compile(const FlatTree& examples) {
    const TreeSpec spec = examples.spec;
    auto flat = [this, spec](Args leaves) { return f(tree_unflatten(leaves, spec).elements()); };
    call = std::make_unique<const aot::CompiledCall>(flat, examples.leaves, options,
                                                     program ? &*program : nullptr);
    arguments = spec;
    is_flat = std::ranges::all_of(spec.children(), &TreeSpec::is_leaf);
  }
  // Whether these are arguments of that structure, and their own leaves.
  bool are_leaves(Args args) const {
    return is_flat && args.size() == arguments.children().size() &&
           std::ranges::all_of(args, &Value::is_tensor);
  }
  const aot::CompiledCall& compiled() const {
    require(call != nullptr, "the function was not compiled yet: call it, or compile_for its arguments");
    return *call;
  }
};

namespace {
FlatTree flat_arguments(Args args) { return tree_flatten(Value::tuple({args.begin(), args.end()})); }
}  // namespace

AotFunction::AotFunction(ValueFunction f, AotOptions options) : body_(std::make_shared<Body>()) {
  body_->f = std::move(f);
  body_->options = std::move(options);
}

AotFunction::AotFunction(ValueFunction f, const GraphModule& program, AotOptions options)
    : AotFunction(std::move(f), std::move(options)) {
  body_->program.emplace(program);
}

void AotFunction::compile_for(Args examples) const {
  std::lock_guard lock(body_->mutex);
  require(!body_->call, "a function is compiled once; make another one for other arguments");
  body_->compile(flat_arguments(examples));
}

Value AotFunction::call(Args args) const {
  {
    std::lock_guard lock(body_->mutex);
    if (!body_->call) body_->compile(flat_arguments(args));
  }
  if (body_->are_leaves(args)) return body_->call->run(args);
  FlatTree flat = flat_arguments(args);
  require(flat.spec == body_->arguments,
          "a compiled function was called with other arguments than it was compiled for: {}",
          difference(body_->arguments, flat.spec));
  return body_->call->run(flat.leaves);
}

ValueFunction AotFunction::function() const {
  return [self = *this](Args args) { return self.call(args); };
}

const aot::CallDescription& AotFunction::description() const { return body_->compiled().description(); }

std::string AotFunction::explain() const { return description().to_string() + body_->compiled().text(); }

// --- modules ---------------------------------------------------------------------------------------------

namespace {

nn::NamedTensors state_of(const nn::Module& module) {
  nn::NamedTensors state = module.named_parameters(/*remove_duplicates=*/false);
  for (const auto& entry : module.named_buffers(/*remove_duplicates=*/false)) state.push_back(entry);
  return state;
}

// The module as a function of its parameters, its buffers and its arguments.
ValueFunction function_of(const nn::Module& module, ValueFunction forward) {
  return [module, forward = std::move(forward)](Args args) {
    nn::NamedTensors state = state_of(module);
    for (size_t i = 0; i < state.size(); ++i) state[i].second = args[i].to_tensor();
    nn::Substitution substitution(module, state);
    return forward(args.subspan(state.size()));
  };
}

}  // namespace

namespace {

// The sizes of parameters and buffers do not change.
AotOptions with_fixed_state(AotOptions options, const nn::Module& module) {
  options.num_params_buffers = state_of(module).size();
  return options;
}

}  // namespace

AotModule::AotModule(const nn::Module& module, ValueFunction forward, AotOptions options)
    : nn::Module(module),
      function_(function_of(module, std::move(forward)), with_fixed_state(std::move(options), module)) {}

AotModule::AotModule(const GraphModule& module, AotOptions options)
    : nn::Module(module),
      function_(function_of(module, module.function()), module,
                with_fixed_state(std::move(options), module)) {}

ValueList AotModule::with_state(Args args) const {
  ValueList all;
  for (const auto& [name, tensor] : state_of(*this)) all.emplace_back(tensor);
  all.insert(all.end(), args.begin(), args.end());
  return all;
}

Value AotModule::call(Args args) const { return function_.call(with_state(args)); }
void AotModule::compile_for(Args examples) const { function_.compile_for(with_state(examples)); }

}  // namespace weft
