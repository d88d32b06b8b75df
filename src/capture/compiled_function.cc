#include "weft/capture/compiled_function.h"

#include "capture/trace_check.h"
#include "weft/autograd/autograd.h"
#include "weft/base/random.h"
#include "weft/core/value_walk.h"
#include "weft/dispatch/layers.h"

namespace weft {

// --- the cache -------------------------------------------------------------------------------------------

struct CompiledFunction::Body {
  ValueFunction function;
  std::optional<nn::Module> module;
  std::string arg_names;
  std::unordered_map<std::string, GraphModule> traces = {};  // by the kind of arguments
  int64_t hits = 0;

  std::string kind_of(Args args) const {
    FlatTree flat = tree_flatten(Value::tuple(ValueList(args.begin(), args.end())));
    std::string text = flat.spec.to_string();
    for (const Value& leaf : flat.leaves)
      text += leaf.is_tensor() ? fmt::format("|{},{}", describe(leaf.tensor_ref()).str(),
                                             leaf.tensor_ref().requires_grad())
                               : "|" + leaf.to_string();
    return fmt::format("{}|{}|{}", text, is_grad_enabled(), module && module->is_training());
  }
};

CompiledFunction::CompiledFunction(ValueFunction f, std::optional<nn::Module> module, std::string arg_names)
    : body_(std::make_shared<Body>(Body{std::move(f), std::move(module), std::move(arg_names)})) {}

Value CompiledFunction::call(Args args) const {
  std::string kind = body_->kind_of(args);
  if (auto found = body_->traces.find(kind); found != body_->traces.end()) {
    ++body_->hits;
    return found->second.call(args);
  }
  TracedCode code{body_->function, "forward", body_->arg_names, body_->module ? &*body_->module : nullptr};
  Recording recording = record_trace(code, Value::tuple(ValueList(args.begin(), args.end())), {}, {});
  body_->traces.insert_or_assign(kind, recording.module);
  return recording.result;
}

void CompiledFunction::clear_cache() const { body_->traces.clear(); }
int64_t CompiledFunction::hits() const noexcept { return body_->hits; }
bool CompiledFunction::has_trace_for(Args args) const { return body_->traces.contains(body_->kind_of(args)); }
const std::optional<nn::Module>& CompiledFunction::module() const noexcept { return body_->module; }

// --- verify ----------------------------------------------------------------------------------------------

namespace {

struct Run {
  std::vector<Tensor> outputs, gradients;
};

std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

Run run_both_ways(const CompiledFunction& model, const Value& args, const ValueFunction& loss) {
  Value result = model.call(args.elements());
  Value outputs = result.is_tuple() ? result : Value::tuple({result});
  size_t count = outputs.elements().size();
  require(loss || count == 1,
          "Model returns {} outputs, but default loss function (torch.sum) can only handle a single output",
          count);
  std::vector<Tensor> inputs = tensors_in(args);
  if (model.module())
    for (const Tensor& parameter : model.module()->parameters()) inputs.push_back(parameter);
  std::erase_if(inputs, [](const Tensor& tensor) { return !tensor.requires_grad(); });
  Run run{.outputs = copies_of(tensors_in(outputs)), .gradients = {}};
  Tensor total = loss ? loss(outputs.elements()).to_tensor() : outputs.elements()[0].to_tensor().sum();
  run.gradients = copies_of(autograd::grad({total}, inputs));
  return run;
}

void require_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  // Not "more than": a NaN on one side only is a difference too.
  for (size_t i = 0; same && i < a.size(); ++i)
    if (a[i].plain_numel() > 0) same = a[i].sub(b[i]).abs().max().item().to_double() <= 1e-6;
  require(same, "JIT and real computation mismatch");
}

}  // namespace

void detail::verify_replay(const CompiledFunction& model, const Value& args, const ValueFunction& loss,
                           const std::vector<Device>& devices) {
  Value given = args.is_tuple() ? args : Value::tuple({args});
  nn::NamedTensors saved;
  if (model.module())
    for (const auto& [name, tensor] : model.module()->state_dict())
      saved.emplace_back(name, tensor.detach().clone());
  Run traced;
  {
    ForkRng restored = fork_rng(devices);
    model.clear_cache();
    traced = run_both_ways(model, given, loss);
  }
  if (model.module()) nn::Module(*model.module()).load_state_dict(saved);
  int64_t hits = model.hits();
  Run compiled = run_both_ways(model, given, loss);
  require(model.hits() > hits, "failed to use the compiled function");
  require_same(traced.outputs, compiled.outputs);
  require_same(traced.gradients, compiled.gradients);
}

}  // namespace weft
