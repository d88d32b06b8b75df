#include "aot/compiled_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "aot/functional_values.h"
#include "aot/layer_scopes.h"
#include "autograd/function.h"
#include "graph/node_index.h"
#include "ops/view_replay.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft::aot {

namespace {

// For each output of a backward graph, the tangents that it depends on.
std::vector<std::vector<bool>> tangents_of_outputs(const Graph& graph) {
  const NodeIndex index(graph);
  size_t count = 0;
  for (Node* input : graph.placeholders()) count += is_tangent(*input);
  // A row of bits for each node.
  const size_t words = (count + 63) / 64;
  std::vector<uint64_t> rows(graph.size() * words);
  size_t next = 0, position = 0;
  for (Node& node : graph) {
    uint64_t* row = rows.data() + position++ * words;
    if (is_tangent(node)) {
      row[next / 64] |= uint64_t{1} << (next % 64);
      ++next;
    }
    for (Node* input : node.inputs())
      for (size_t w = 0; w < words; ++w) row[w] |= rows[index.of(*input) * words + w];
  }
  std::vector<std::vector<bool>> outputs;
  for (const Value& output : graph.output_node()->returned().elements()) {
    outputs.emplace_back(count, false);
    if (Node* node = node_in(output))
      for (size_t i = 0; i < count; ++i)
        outputs.back()[i] = rows[index.of(*node) * words + i / 64] >> (i % 64) & 1;
  }
  return outputs;
}

}  // namespace

void CompiledGraphs::set_traced(TracedCall traced) {
  traced_ = std::move(traced);
  for (size_t i = 0; i < traced_.inputs.size(); ++i) {
    if (traced_.inputs[i].is_leaf()) continue;
    has_extensions_ = true;
    writes_extensions_ |= description_.inputs[i].write_back == WriteBack::kInGraph;
  }
  has_extensions_ |= !std::ranges::all_of(traced_.outputs, &ExtensionTree::is_leaf);
}

void CompiledGraphs::set_inference(TracedCall traced, const Compiler& compiler) {
  set_traced(std::move(traced));
  inference_ = traced_.module;
  forward_ = detail::compile_graph(compiler, inference_, name_ + "_inference");
}

void CompiledGraphs::set_training(TracedCall joint, const Partitioner& partitioner, const Compiler& forward,
                                  Compiler backward) {
  partition_ = partitioner(joint.module, count_leaves(joint.outputs));
  joint.module = GraphModule();
  set_traced(std::move(joint));
  backward_compiler_ = std::move(backward);
  note_dependences();
  forward_ = detail::compile_graph(forward, partition_.forward, name_ + "_forward");
}

// From the leaves of gradients and tangents to what they are part of.
void CompiledGraphs::note_dependences() {
  const std::vector<std::vector<bool>> of_leaves = tangents_of_outputs(partition_.backward.graph());
  size_t leaf = 0;
  for (const ExtensionTree& gradient : traced_.gradients) {
    std::vector<bool> on;
    size_t first = 0;
    for (const ExtensionTree& tangent : traced_.tangents) {
      bool any = false;
      for (size_t g = 0; g < gradient.num_leaves(); ++g)
        for (size_t t = 0; t < tangent.num_leaves(); ++t) any = any || of_leaves[leaf + g][first + t];
      on.push_back(any);
      first += tangent.num_leaves();
    }
    depends_.push_back(std::move(on));
    leaf += gradient.num_leaves();
  }
}

bool CompiledGraphs::depends(size_t input, const std::vector<bool>& tangents) const {
  bool is_constant = true;  // a backward may give what does not depend on the gradient that it gets
  for (size_t i = 0; i < tangents.size(); ++i) {
    if (tangents[i] && depends_[input][i]) return true;
    is_constant &= !depends_[input][i];
  }
  return is_constant;
}

ValueList CompiledGraphs::run_forward(Args inputs) const {
  const size_t own = has_extensions_ ? count_leaves(traced_.outputs) : traced_.outputs.size(),
               saved = partition_.num_saved_tensors + partition_.num_saved_symbols;
  if (!has_extensions_) return forward_.run(inputs, own + saved, "forward");
  ValueList outputs =
      forward_(flatten(traced_.inputs, ValueList(inputs.begin(), inputs.end())), own + saved, "forward");
  const auto middle = outputs.begin() + static_cast<ptrdiff_t>(own);
  ValueList all = unflatten(traced_.outputs, ValueList(outputs.begin(), middle));
  all.insert(all.end(), middle, outputs.end());
  return all;
}

ValueList CompiledGraphs::run_backward(ValueList inputs) const {
  const CompiledGraph* compiled = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!backward_) {
      GraphModule graph = partition_.backward;
      backward_ = detail::compile_graph(backward_compiler_, graph, name_ + "_backward");
    }
    compiled = &backward_;
  }
  return unflatten(traced_.gradients,
                   (*compiled)(std::move(inputs), count_leaves(traced_.gradients), "backward"));
}

namespace {

// A list of Values without its tensors, which travel apart.
struct WithoutTensors {
  ValueList values;
  std::vector<bool> is_tensor;

  // Takes them out, and leaves None in their place.
  std::vector<Tensor> take(ValueList all) {
    std::vector<Tensor> tensors;
    is_tensor.assign(all.size(), false);
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].is_tensor()) continue;
      is_tensor[i] = true;
      tensors.push_back(all[i].to_tensor());
      all[i] = Value();
    }
    values = std::move(all);
    return tensors;
  }
  ValueList with(const std::vector<Tensor>& tensors) const {
    ValueList all = values;
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i)
      if (is_tensor[i]) all[i] = tensors[next++];
    return all;
  }
};

// A call of the graphs on one set of inputs, as autograd sees it.
class CompiledFunction final : public autograd::CustomFunction {
 public:
  explicit CompiledFunction(std::shared_ptr<const CompiledGraphs> graphs) : graphs_(std::move(graphs)) {}
  std::string type_name() const override { return "CompiledFunction"; }

  std::vector<Tensor> take_tensors(ValueList inputs) { return inputs_.take(std::move(inputs)); }
  ValueList outputs_with(const std::vector<Tensor>& results) const { return outputs_.with(results); }

  std::vector<Tensor> forward(autograd::FunctionContext& context,
                              const std::vector<Tensor>& tensors) override {
    ValueList outputs;
    {
      GraphScope scope;
      outputs = graphs_->run_forward(inputs_.with(tensors));
    }
    save(context, outputs);
    return results(context, std::move(outputs));
  }

  std::vector<Tensor> backward(autograd::FunctionContext& context,
                               const std::vector<Tensor>& grads) override {
    require(
        !is_grad_enabled() || !graphs_->traced().backward_writes_differentiable_input,
        "aot_autograd does not support input mutations with requires_grad in backward for create_graph=True: "
        "write under NoGrad to a clone");
    require(
        !is_grad_enabled(),
        "a compiled function cannot be differentiated twice: its backward is a graph that keeps no history "
        "(create_graph = true). Differentiate the function itself, or compile its gradient");
    ValueList inputs;
    const Value symbols = context.saved_data.at("symbols");
    for (const Value& symbol : symbols.elements()) inputs.push_back(symbol);
    for (const Tensor& saved : context.saved_tensors()) inputs.emplace_back(saved);
    const std::vector<bool> is_given = add_tangents(grads, inputs);
    ValueList gradients;
    {
      GraphScope scope;
      gradients = graphs_->run_backward(std::move(inputs));
    }
    std::vector<Tensor> of_tensors;
    for (size_t i = 0; i < gradients.size(); ++i)
      if (inputs_.is_tensor[i]) {
        const bool has_gradient = !gradients[i].is_none() && graphs_->depends(i, is_given);
        of_tensors.push_back(has_gradient ? gradients[i].to_tensor() : Tensor());
      }
    return of_tensors;
  }

 private:
  void save(autograd::FunctionContext& context, ValueList& outputs) const {
    const size_t own = graphs_->description().num_graph_outputs();
    const size_t symbols = own + graphs_->partition().num_saved_tensors;
    std::vector<Tensor> tensors;
    for (size_t i = own; i < symbols; ++i) tensors.push_back(outputs[i].to_tensor());
    context.save_for_backward(std::move(tensors));
    context.saved_data.set(
        "symbols", Value::list(ValueList(outputs.begin() + static_cast<ptrdiff_t>(symbols), outputs.end())));
    outputs.resize(own);
  }

  std::vector<Tensor> results(autograd::FunctionContext& context, ValueList outputs) {
    const CallDescription& description = graphs_->description();
    std::vector<Tensor> constant;
    likes_.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].is_tensor()) continue;
      if (drops_view(i)) outputs[i] = autograd::shallow_copy(outputs[i].tensor_ref());
      if (description.has_tangent(i)) likes_[i] = shape_like(outputs[i].tensor_ref());
      else constant.push_back(outputs[i].to_tensor());
    }
    context.set_materialize_grads(false);
    context.mark_non_differentiable(std::move(constant));
    return outputs_.take(std::move(outputs));
  }

  // A value of its own may be a view of something that only the graph knows.
  bool drops_view(size_t graph_output) const {
    const CallDescription& description = graphs_->description();
    const size_t first = description.written_back.size();
    if (graph_output < first || graph_output >= first + description.outputs.size()) return true;
    return description.outputs[graph_output - first].kind == OutputOrigin::Kind::kFresh;
  }

  // Which of the tangents came; zeros stand for the others.
  std::vector<bool> add_tangents(const std::vector<Tensor>& grads, ValueList& inputs) const {
    const CallDescription& description = graphs_->description();
    std::vector<bool> is_given;
    size_t next = 0;
    for (size_t i = 0; i < description.num_graph_outputs(); ++i) {
      if (!outputs_.is_tensor[i]) continue;
      const Tensor& grad = grads[next++];
      if (!description.has_tangent(i)) continue;
      add_tangent(graphs_->traced().tangents[is_given.size()],
                  grad.defined() ? grad : zeros_for(likes_[i].to_tensor()), inputs);
      is_given.push_back(grad.defined());
    }
    return is_given;
  }
  static Tensor zeros_for(const Tensor& like) {
    if (extension_of(like)) return map_inner(like, zeros_for);
    return zeros(like.sizes(), like.dtype(), std::nullopt, like.device());
  }
  // The graph was traced for dense tangents that are what the outputs are.
  static void add_tangent(const ExtensionTree& tree, const Tensor& grad, ValueList& inputs) {
    require(
        tree.fits(grad),
        "The grad inputs should be same tensor subclass type as forward output: weft incorrectly attempted "
        "to "
        "compile the backward with incorrect subclass metadata. The backward graph was made for {}, but the "
        "gradient that came is {}",
        tree.to_string(), ExtensionTree::of(grad).to_string());
    const size_t first = inputs.size();
    tree.flatten(grad, inputs);
    for (size_t i = first; i < inputs.size(); ++i) inputs[i] = contiguous(inputs[i].tensor_ref());
  }

  std::shared_ptr<const CompiledGraphs> graphs_;
  WithoutTensors inputs_, outputs_;
  ValueList likes_;  // of the outputs that take a tangent
};

}  // namespace

std::string RunGraphs::text() const {
  if (!graphs_->is_training()) return fmt::format("run the inference graph {}", graphs_->name());
  return fmt::format(
      "run the forward graph {}, and its backward where gradients are asked for: {} tensors and {} sizes "
      "saved",
      graphs_->name(), graphs_->partition().num_saved_tensors, graphs_->partition().num_saved_symbols);
}

namespace {

// A graph writes to the inner tensors of an extension: that the whole was written to is said here.
void count_writes(const CallDescription& description, Args inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (description.inputs[i].write_back == WriteBack::kInGraph && extension_of(inputs[i].tensor_ref()))
      inputs[i].tensor_ref().impl()->bump_version();
}

}  // namespace

ValueList RunGraphs::run(Args inputs, const Rest&) const {
  if (graphs_->writes_extensions()) count_writes(graphs_->description(), inputs);
  if (!graphs_->is_training()) {
    GraphScope scope;
    return graphs_->run_forward(inputs);
  }
  auto function = make_ref<CompiledFunction>(graphs_);
  std::vector<Tensor> tensors = function->take_tensors(ValueList(inputs.begin(), inputs.end()));
  return function->outputs_with(autograd::apply_function(function, std::move(tensors)));
}

}  // namespace weft::aot
