#include "weft/autograd/autograd.h"

#include "autograd/engine.h"
#include "autograd/leaf_node.h"
#include "autograd/view_history.h"
#include "core/history_text.h"
#include "ops/support/shapes.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace autograd {
namespace {

Tensor initial_gradient(const Tensor& tensor, const Tensor& given) {
  if (!given.defined()) {
    require(guard_or(tensor.numel() == 1, false),
            "grad can be implicitly created only for scalar outputs, but the output is {}; pass a gradient",
            describe(tensor));
    require(!tensor.is_complex(), "grad can be implicitly created only for real scalar outputs but got {}",
            dtype_name(tensor.dtype()));
    NoGrad no_grad;
    return ones_like(tensor, std::nullopt, std::nullopt, std::nullopt, std::nullopt, MemoryFormat::kPreserve);
  }
  bool same = given.dim() == tensor.dim();
  for (int64_t d = 0; same && d < tensor.dim(); ++d) same = guard_or(given.size(d) == tensor.size(d), true);
  require(same, "Mismatch in shape: grad_output has a shape of {} and output has a shape of {}",
          describe_sizes(given.sizes()), describe_sizes(tensor.sizes()));
  return given;
}

void add_roots(BackwardRun& run, TensorSpan tensors, TensorSpan gradients) {
  require(gradients.empty() || gradients.size() == tensors.size(), "got {} tensors and {} gradients",
          tensors.size(), gradients.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].defined(), "backward: tensor {} is undefined", i);
    require(tensors[i].requires_grad(),
            "element {} of tensors does not require grad and does not have a grad_fn; it is {}", i,
            describe(tensors[i]));
    run.roots.push_back(gradient_edge(tensors[i]));
    run.gradients.push_back(initial_gradient(tensors[i], gradients.empty() ? Tensor() : gradients[i]));
  }
}

}  // namespace

void backward(TensorSpan tensors, TensorSpan gradients, const BackwardOptions& options) {
  BackwardRun run;
  run.create_graph = options.create_graph;
  run.retain_graph = options.retain_graph.value_or(options.create_graph);
  add_roots(run, tensors, gradients);
  run_backward(run);
}

std::vector<Tensor> grad(TensorSpan outputs, TensorSpan inputs, TensorSpan gradients,
                         const GradOptions& options) {
  BackwardRun run;
  run.create_graph = options.create_graph;
  run.retain_graph = options.retain_graph.value_or(options.create_graph);
  add_roots(run, outputs, gradients);
  for (size_t i = 0; i < inputs.size(); ++i) {
    require(inputs[i].defined() && inputs[i].requires_grad(),
            "One of the differentiated Tensors does not require grad: input {} is {}", i,
            describe(inputs[i]));
    run.inputs.push_back(gradient_edge(inputs[i]));
  }
  std::vector<Tensor> grads = inputs.empty() ? std::vector<Tensor>{} : run_backward(run);
  bool may_be_unused = options.allow_unused || options.materialize_grads;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) continue;
    require(may_be_unused,
            "One of the differentiated Tensors appears to not have been used in the graph: input {}. Set "
            "allow_unused=true if "
            "this is the desired behavior.",
            i);
    if (options.materialize_grads) grads[i] = zeros_like(inputs[i]);
  }
  return grads;
}

HookHandle register_hook(const Tensor& tensor, TensorHook hook) {
  require(tensor.defined() && tensor.requires_grad(),
          "cannot register a hook on a tensor that doesn't require gradient: {}", describe(tensor));
  Edge edge = gradient_edge(tensor);
  NodeHooks& hooks = edge.node->ensure_hooks();
  hooks.pre.push_back({hooks.next_id, edge.result, std::move(hook)});
  return {edge.node, hooks.next_id++};
}

void HookHandle::remove() {
  if (!node_ || !node_->hooks) return;
  std::erase_if(node_->hooks->pre, [&](const auto& entry) { return entry.id == id_; });
  std::erase_if(node_->hooks->post, [&](const auto& entry) { return entry.first == id_; });
}

void retain_grad(const Tensor& tensor) {
  require(tensor.requires_grad(), "can't retain_grad on a tensor that has requires_grad=false: {}",
          describe(tensor));
  if (tensor.is_leaf()) return;
  Edge edge = gradient_edge(tensor);
  VariableMeta& meta = variable_meta(tensor);
  meta.grad();
  edge.node->ensure_hooks().retained.emplace_back(edge.result, meta.slot);
}

}  // namespace autograd

const Tensor& Tensor::set_requires_grad(bool requires_grad) const {
  require(defined(), "set_requires_grad: the tensor is undefined");
  require(!requires_grad || is_differentiable(dtype()),
          "only Tensors of floating point and complex dtype can require gradients, but this is {}",
          describe(*this));
  if (requires_grad && this->requires_grad()) return *this;
  require(is_leaf(),
          "you can only change requires_grad flags of leaf variables; {} is a result of {}. Use detach() to "
          "get a "
          "tensor without history",
          describe(*this), autograd::grad_fn(*this) ? autograd::grad_fn(*this)->name() : "an operator");
  require(!(requires_grad && is_inference() && !layer_state().inference_mode),
          "Setting requires_grad=true on inference tensor outside InferenceMode is not allowed; clone it "
          "first: {}",
          describe(*this));
  if (requires_grad) {
    autograd::variable_meta(*this);
    impl()->set_flags(layer::kAutograd);
    autograd::mark_views(*this);
  } else {
    impl()->clear_flags(layer::kAutograd);
  }
  return *this;
}

namespace {

const bool is_history_printed = [] {
  detail::history_text = [](const Tensor& tensor) {
    const Ref<GradNode> node = autograd::grad_fn(tensor);
    return node ? fmt::format("grad_fn=<{}>", node->name()) : std::string("requires_grad=True");
  };
  return true;
}();

}  // namespace

autograd::HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  return autograd::register_hook(*this, std::move(hook));
}

bool Tensor::is_leaf() const { return !requires_grad() || !autograd::grad_fn(*this); }

Tensor Tensor::grad() const {
  require(defined(), "grad: the tensor is undefined");
  VariableMeta* meta = autograd::variable_meta_or_null(*this);
  return meta && meta->slot ? meta->slot->grad : Tensor();
}

void Tensor::set_grad(const Tensor& grad) const {
  if (grad.defined()) {
    require(!grad.is_same(*this), "can't assign Variable as its own grad");
    require(grad.device() == device(), "assigned grad is on {} but the tensor is on {}",
            grad.device().to_string(), device().to_string());
    require(may_be_same_sizes(grad.sizes(), sizes()) && grad.dtype() == dtype(),
            "assigned grad has data of {} but the tensor is {}", describe(grad), describe(*this));
  }
  autograd::variable_meta(*this).grad() = grad;
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  autograd::BackwardOptions options{.retain_graph = retain_graph || create_graph,
                                    .create_graph = create_graph};
  autograd::backward({*this}, {gradient}, options);
}

}  // namespace weft
