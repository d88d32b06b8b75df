#include "weft/autograd/grad_node.h"

#include <array>
#include <atomic>
#include <mutex>

#include "autograd/leaf_node.h"
#include "autograd/view_history.h"
#include "weft/dispatch/layers.h"
#include "weft/dispatch/recorder.h"

namespace weft {
namespace {
// One count for all threads: a graph may be built by several, and a node must number higher than its inputs.
std::atomic<uint64_t> next_sequence{1};
// Nodes whose count fell to zero while another one was being freed on this thread.
thread_local std::vector<GradNode*>* dying = nullptr;
}  // namespace

GradNode::GradNode() : sequence(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}
GradNode::~GradNode() = default;

void GradNode::release_last(GradNode* node) noexcept {
  if (dying) {
    dying->push_back(node);
    return;
  }
  std::vector<GradNode*> queue;
  dying = &queue;
  delete node;
  while (!queue.empty()) {
    GradNode* next = queue.back();
    queue.pop_back();
    delete next;
  }
  dying = nullptr;
}

NodeHooks& GradNode::ensure_hooks() {
  if (!hooks) hooks = std::make_unique<NodeHooks>();
  return *hooks;
}

VariableMeta::~VariableMeta() {
  if (leaf_node) static_cast<LeafNode*>(leaf_node.get())->forget_variable();
}

namespace autograd {

VariableMeta* variable_meta_or_null(const Tensor& tensor) {
  return static_cast<VariableMeta*>(tensor.impl()->autograd.get());
}

VariableMeta& variable_meta(const Tensor& tensor) {
  TensorImpl* impl = tensor.impl();
  if (!impl->autograd) impl->autograd = make_ref<VariableMeta>();
  return *static_cast<VariableMeta*>(impl->autograd.get());
}

namespace {
// Threads that use a leaf for the first time must agree on one node: each would add to `.grad` under a lock
// of its own.
std::mutex& leaf_mutex(const VariableMeta& meta) {
  static std::array<std::mutex, 16> mutexes;
  return mutexes[reinterpret_cast<uintptr_t>(&meta) / 64 % mutexes.size()];
}
}  // namespace

Edge gradient_edge(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.requires_grad()) return {};
  refresh_view_history(tensor);
  VariableMeta& meta = variable_meta(tensor);
  if (meta.grad_fn) return {meta.grad_fn, meta.result};
  std::lock_guard lock(leaf_mutex(meta));
  if (!meta.leaf_node) meta.leaf_node = Ref<GradNode>(new LeafNode(tensor));
  return {meta.leaf_node, 0};
}

Ref<GradNode> grad_fn(const Tensor& tensor) {
  refresh_view_history(tensor);
  VariableMeta* meta = variable_meta_or_null(tensor);
  return meta ? meta->grad_fn : nullptr;
}

namespace {

// The forward call has just been made.
void note_origin(GradNode& node) {
  const LayerState& state = layer_state();
  if (node.origin || !(state.active & state.mask & layer::kRecorderLower)) return;
  if (const Recorder* recorder = Recorder::current(Recorder::Position::kLower))
    node.origin = recorder->origin_of_last_call();
}

}  // namespace

void set_history(const Tensor& tensor, const Ref<GradNode>& node) {
  if (Origin::is_wanted()) [[unlikely]]
    note_origin(*node);
  VariableMeta& meta = variable_meta(tensor);
  meta.grad_fn = node;
  meta.result = static_cast<uint32_t>(node->results.size());
  meta.leaf_node.reset();
  meta.view_version = tensor.version();
  node->results.push_back({tensor.dtype(), tensor.device(), SymInts(tensor.sizes())});
  tensor.impl()->set_flags(layer::kAutograd);
}

Tensor shallow_copy(const Tensor& tensor) {
  Tensor copy = alias_with(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset());
  TensorImpl* impl = copy.impl();
  impl->set_flags(tensor.flags() & ~layer::kAutograd);
  impl->box = tensor.impl()->box;
  impl->share_serial(*tensor.impl());
  return copy;
}

}  // namespace autograd

NoGrad::NoGrad() : saved_(layer_state().grad_mode) { set_grad_mode(false); }
NoGrad::~NoGrad() { set_grad_mode(saved_); }
EnableGrad::EnableGrad() : saved_(layer_state().grad_mode) { set_grad_mode(true); }
EnableGrad::~EnableGrad() { set_grad_mode(saved_); }
bool is_grad_enabled() { return layer_state().grad_mode; }

}  // namespace weft
