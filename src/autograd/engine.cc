#include "autograd/engine.h"

#include <algorithm>
#include <queue>

#include "ops/support/shapes.h"
#include "weft/autograd/anomaly.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft::autograd {

bool may_accumulate_in_place(const Tensor& held, const Tensor& grad) {
  constexpr uint32_t kNoWatchers = layer::kKernelDetour | layer::kAutograd | layer::kAutocast;
  const uint32_t watchers = (held.flags() | grad.flags() | layer_state().active) & layer::kAll & ~kNoWatchers;
  return watchers == 0 && !held.impl()->box && !grad.impl()->box;
}

Tensor fit_gradient(Tensor fitted, const ResultShape& shape, const GradNode& node) {
  if (!fitted.defined()) return fitted;
  bool same = static_cast<size_t>(fitted.dim()) == shape.sizes.size();
  for (size_t d = 0; same && d < shape.sizes.size(); ++d)
    same = guard_or(fitted.sizes()[d] == shape.sizes[d], true);
  if (!same) {
    require(static_cast<size_t>(fitted.dim()) >= shape.sizes.size(),
            "Function {} got an invalid gradient: {} but expected shape compatible with {}", node.name(),
            describe(fitted), describe_sizes(shape.sizes));
    fitted = sum_to_size(fitted, shape.sizes);
  }
  if (fitted.dtype() == shape.dtype) return fitted;
  if (fitted.is_complex() && !is_complex(shape.dtype)) fitted = real(fitted);
  return fitted.dtype() == shape.dtype ? fitted : fitted.to(shape.dtype);
}

namespace {

// The state of one node in one run. Several threads may run over one graph, so it is not kept in the node.
struct Task {
  GradNode* node;
  uint32_t waiting = 0;  // gradients still to come from nodes that run before it
  bool needed = true;    // on a path to a wanted input
  std::vector<Tensor> grads;
};

// Node pointers to task numbers: open addressing, since a run over a million nodes is mostly this.
class TaskTable {
 public:
  TaskTable() : slots_(64, 0) {}
  // The task of `node`, and whether it is new.
  std::pair<uint32_t, bool> at(GradNode* node) {
    if (tasks.size() * 2 >= slots_.size()) grow();
    size_t slot = slot_of(node);
    if (slots_[slot]) return {slots_[slot] - 1, false};
    tasks.push_back({node});
    slots_[slot] = static_cast<uint32_t>(tasks.size());
    return {static_cast<uint32_t>(tasks.size() - 1), true};
  }
  // The task of a node that is in the table; null otherwise.
  Task* find(GradNode* node) {
    size_t slot = slot_of(node);
    return slots_[slot] ? &tasks[slots_[slot] - 1] : nullptr;
  }
  std::vector<Task> tasks;

 private:
  size_t slot_of(GradNode* node) const {
    // Nodes that follow each other on the tape are mostly in one page of memory: the slots of a page are
    // adjacent too, and pages are scattered by the hash.
    const auto address = reinterpret_cast<uintptr_t>(node);
    const size_t mask = slots_.size() - 1, page = (address >> 12) * 0x9E3779B97F4A7C15ull >> 20;
    size_t slot = (page * 32 + (address >> 7 & 31)) & mask;
    while (slots_[slot] && tasks[slots_[slot] - 1].node != node) slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    std::vector<uint32_t> old(slots_.size() * 2, 0);
    old.swap(slots_);
    for (uint32_t number : old)
      if (number) slots_[slot_of(tasks[number - 1].node)] = number;
  }
  std::vector<uint32_t> slots_;
};

class Run {
 public:
  explicit Run(const BackwardRun& run) : run_(run), captured_(run.inputs.size()) {}

  std::vector<Tensor> operator()() {
    discover();
    if (!run_.inputs.empty()) mark_needed();
    for (size_t i = 0; i < run_.roots.size(); ++i) {
      const Edge& root = run_.roots[i];
      deliver(table_.at(root.node.get()).first, root.result, run_.gradients[i]);
    }
    for (const Edge& root : run_.roots) make_ready(table_.at(root.node.get()).first);
    while (!ready_.empty()) {
      uint32_t task = ready_.top().second;
      ready_.pop();
      execute(task);
    }
    return std::move(captured_);
  }

 private:
  // Counts, for every node within reach, how many gradients it waits for.
  void discover() {
    std::vector<uint32_t> stack;
    for (const Edge& root : run_.roots)
      if (auto [task, is_new] = table_.at(root.node.get()); is_new) stack.push_back(task);
    while (!stack.empty()) {
      GradNode* node = table_.tasks[stack.back()].node;
      stack.pop_back();
      for (const Edge& edge : node->next) {
        if (!edge) continue;
        auto [task, is_new] = table_.at(edge.node.get());
        ++table_.tasks[task].waiting;
        if (is_new) stack.push_back(task);
      }
    }
  }

  // Only nodes from which a wanted input can be reached are run: looked at from the inputs up, each node
  // after all that its gradients go to. The numbers of calls do not tell that order: the history of a view
  // may be made anew in the middle of a later call.
  void mark_needed() {
    std::vector<uint32_t> waiting(table_.tasks.size()), order;
    order.reserve(waiting.size());
    for (uint32_t i = 0; i < waiting.size(); ++i) {
      table_.tasks[i].needed = false;
      waiting[i] = table_.tasks[i].waiting;
      if (waiting[i] == 0) order.push_back(i);
    }
    for (size_t done = 0; done < order.size(); ++done)
      for (const Edge& edge : table_.tasks[order[done]].node->next)
        if (uint32_t task = edge ? table_.at(edge.node.get()).first : 0; edge && --waiting[task] == 0)
          order.push_back(task);
    for (const Edge& input : run_.inputs)
      if (Task* task = input ? table_.find(input.node.get()) : nullptr) task->needed = true;
    for (size_t i = order.size(); i-- > 0;) {
      Task& task = table_.tasks[order[i]];
      for (const Edge& edge : task.node->next)
        if (edge && table_.find(edge.node.get())->needed) task.needed = true;
    }
  }

  void deliver(uint32_t task, uint32_t result, Tensor grad) {
    Task& t = table_.tasks[task];
    if (t.grads.size() < t.node->results.size()) t.grads.resize(std::max<size_t>(t.node->results.size(), 1));
    Tensor& held = t.grads[result];
    if (!grad.defined()) return;
    // Before they are added: gradients that still have broadcast sizes would multiply the others.
    Tensor fitted = fit_gradient(std::move(grad), t.node->results[result], *t.node);
    if (!held.defined()) held = std::move(fitted);
    else held = sum_of(held, fitted);
  }

  // Accumulates in place when this run is the only owner of the sum so far and nobody watches.
  Tensor sum_of(const Tensor& held, const Tensor& grad) {
    bool sole = held.impl()->use_count() == 1 && held.storage()->use_count() == 1;
    if (sole && layer_state().active == 0 && !run_.create_graph && !run_.inherit_state && !(held.flags() & ~layer::kKernelDetour) &&
        held.is_contiguous() && may_accumulate_in_place(held, grad))
      return held.add_(grad);
    return held.add(grad);
  }

  void make_ready(uint32_t task) {
    Task& t = table_.tasks[task];
    if (t.waiting == 0 && t.needed && !t.grads.empty()) {
      ready_.emplace(t.node->sequence, task);
      t.waiting = UINT32_MAX;  // once only: a root may be listed twice
    }
  }

  void run_pre_hooks(GradNode& node, std::vector<Tensor>& grads) {
    if (!node.hooks) return;
    // A copy: a hook may remove itself, or add others.
    const auto hooks = node.hooks->pre;
    for (const auto& entry : hooks) {
      if (!grads[entry.result].defined()) continue;
      Tensor& grad = grads[entry.result];
      Tensor replaced = entry.hook(grad);
      if (!replaced.defined()) continue;
      require(may_be_same_sizes(replaced.sizes(), grad.sizes()),
              "a hook on the gradient of a result of {} has changed the size of value: it was given {} and "
              "gave {}",
              node.name(), describe(grad), describe(replaced));
      grad = replaced;
    }
    for (auto& [result, slot] : node.hooks->retained)
      if (grads[result].defined())
        slot->grad = slot->grad.defined() ? slot->grad.add(grads[result]) : grads[result];
  }

  void capture(const GradNode& node, const std::vector<Tensor>& grads) {
    for (size_t i = 0; i < run_.inputs.size(); ++i)
      if (run_.inputs[i].node.get() == &node) captured_[i] = grads[run_.inputs[i].result];
  }

  bool is_wanted_leaf_only(const GradNode& node) const { return node.next.empty() && !run_.inputs.empty(); }

  static std::string forward_location(const GradNode& node) {
    if (!node.forward_trace) return "outside of anomaly mode";
    const std::string frames = node.forward_trace->to_string();
    return frames.empty() ? "at an unknown place" : "\n" + frames;
  }

  void check_nan(const GradNode& node, const std::vector<Tensor>& grads) {
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].defined() && is_differentiable(grads[i].dtype()))
        require(!grads[i].ne(grads[i]).any().item().to_bool(),
                "Function '{}' returned nan values in its {}th output. The forward call was made {}",
                node.name(), i, forward_location(node));
  }

  void execute(uint32_t number) {
    Ref<GradNode> node(table_.tasks[number].node);
    const OriginScope origin(Origin::is_wanted() ? node->origin.get() : nullptr);
    std::vector<Tensor> grads = std::move(table_.tasks[number].grads);
    run_pre_hooks(*node, grads);
    if (!run_.inputs.empty()) capture(*node, grads);
    if (is_wanted_leaf_only(*node)) return;
    std::vector<Tensor> result_grads;
    bool has_post = node->hooks && !node->hooks->post.empty();
    if (has_post) result_grads = grads;
    std::vector<Tensor> out = [&] {
      if (!node->forward_trace) return node->apply(std::move(grads));
      auto describe_call = [&] {
        return fmt::format("running the backward of {}, called {}", node->name(), forward_location(*node));
      };
      While scope(describe_call);
      return node->apply(std::move(grads));
    }();
    if (has_post) {
      const auto hooks = node->hooks->post;
      for (const auto& [id, hook] : hooks) hook(out, result_grads);
    }
    if (!run_.retain_graph && !node->is_part) node->release_saved();
    if (anomaly_checks_nan()) check_nan(*node, out);
    pass_on(*node, out);
  }

  void pass_on(GradNode& node, std::vector<Tensor>& out) {
    for (size_t i = 0; i < node.next.size(); ++i) {
      const Edge& edge = node.next[i];
      if (!edge) continue;
      uint32_t task = table_.at(edge.node.get()).first;
      --table_.tasks[task].waiting;
      Tensor grad = i < out.size() ? std::move(out[i]) : Tensor();
      if (table_.tasks[task].needed) deliver(task, edge.result, std::move(grad));
      make_ready(task);
    }
  }

  const BackwardRun& run_;
  TaskTable table_;
  std::vector<Tensor> captured_;
  std::priority_queue<std::pair<uint64_t, uint32_t>> ready_;
};

}  // namespace

std::vector<Tensor> run_backward(const BackwardRun& run) {
  LayerStateScope saved;
  if (run.inherit_state) layer_state().mask |= layer::kLevels;
  else layer_state().mask = layer::kAll | layer::kNotLayers;
  GradModeScope grad_mode(run.inherit_state ? layer_state().grad_mode : run.create_graph);
  return Run(run)();
}

}  // namespace weft::autograd
