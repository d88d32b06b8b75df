#include "capture/trace_recorder.h"

#include <mutex>
#include <unordered_map>

#include "autograd/function.h"
#include "capture/applied_in_graph.h"
#include "ops/outplace.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/base/warning.h"
#include "weft/ops/fake.h"
#include "weft/ops/nested.h"

namespace weft {
namespace {

thread_local TraceRecorder* active_recorder = nullptr;

}  // namespace

TraceRecorder* TraceRecorder::current() noexcept { return active_recorder; }

TraceRecorder::TraceRecorder(const TraceOptions& options, const nn::Module* root)
    : GraphWriter(root),
      options_(options),
      root_(root),
      env_(ShapeEnv::create({.duck_shape = false, .specialize_zero_one = false, .record_guards = false})) {
  if (root) paths_ = module_paths(*root->state(), std::string(kRootScope));
}

namespace {

// Traces on several threads may meet the same example tensor or parameter: its mark goes with the last of
// them.
struct Watched {
  std::mutex mutex;
  std::unordered_map<const TensorImpl*, int> traces;  // how many keep it
};
Watched& watched() {
  static Watched* all = new Watched;  // traces may end after static destructors have begun
  return *all;
}

}  // namespace

void TraceRecorder::keep(const Tensor& tensor) {
  std::lock_guard lock(watched().mutex);
  ++watched().traces[tensor.impl()];
  kept_.push_back(tensor);
}

TraceRecorder::~TraceRecorder() {
  std::lock_guard lock(watched().mutex);
  for (const Tensor& tensor : kept_) {
    auto entry = watched().traces.find(tensor.impl());
    if (--entry->second > 0) continue;
    watched().traces.erase(entry);
    tensor.impl()->clear_flags(tensor_flag::kWatched);
  }
}

TraceRecorder::Scope::Scope(TraceRecorder& recorder)
    : recorder_(recorder, Recorder::Position::kUpper), modules_(&recorder), conversions_(&recorder) {
  saved_watcher_ = std::exchange(weft::detail::tensor_watcher, &recorder);
  active_recorder = &recorder;
}
TraceRecorder::Scope::~Scope() {
  weft::detail::tensor_watcher = saved_watcher_;
  active_recorder = nullptr;
}

// --- inputs and constants --------------------------------------------------------------------------------

// TorchScript keeps the names of parameters as they are written.
void TraceRecorder::add_named_input(const std::string& name, const Value& value) {
  Node& node = graph().create(NodeKind::kPlaceholder, name, {}, {}, name);
  annotate(node, value);
  track(value, node);
  watch(value);
}

Value TraceRecorder::add_argument(const std::string& name, const Value& value) {
  // A tensor that is known already, as another argument or as a parameter, is an input of its own.
  MaskScope below(layer::below(layer::kRecorderUpper));
  Value own = map_leaves(value, [&](const Value& leaf) {
    if (!leaf.is_tensor()) return leaf;
    const Tensor& tensor = leaf.tensor_ref();
    bool is_taken = node_of(*tensor.impl()) || is_owned_by_root(tensor);
    for (const Tensor& other : kept_) is_taken |= other.is_same(tensor);
    Tensor input = is_taken ? alias(tensor) : tensor;
    keep(input);
    return Value(input);
  });
  add_named_input(name, own);
  return own;
}

void TraceRecorder::add_state(const std::string& name, const Tensor& tensor) {
  keep(tensor);
  add_named_input(name, tensor);
}

Value TraceRecorder::unknown_tensor(const Tensor& tensor) {
  if (is_owned_by_root(tensor)) {
    Node& node = attribute_node(tensor);
    keep(tensor);
    watch(tensor);
    return value_of(node);
  }
  require(!left_behind_.contains(tensor.impl()->serial()),
          "{} was made by a forked function and left it otherwise than as its result, which a trace cannot "
          "follow; return it, and wait for it",
          describe(tensor));
  require(
      !tensor.requires_grad(),
      "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or "
      "detaching the gradient\nTensor:\n{}",
      tensor.to_string());
  return value_of(attribute_node(tensor));
}

void TraceRecorder::annotate(Node& node, const Value& result) {
  NodeMeta& meta = node.meta();
  meta.value = map_leaves(result, [](const Value& leaf) {
    // The number of components is that of one run.
    return leaf.is_tensor() && is_nested(leaf.tensor_ref()) ? Value() : noted_form(leaf);
  });
  StackTrace trace = StackTrace::capture();
  Origin here{.modules = trail_.modules()};
  if (options_.record_stack_traces) here.trace = std::make_shared<const StackTrace>(trace);
  note_origin(node, std::move(here));
  traces_.try_emplace(&node, std::move(trace));
}

// --- sizes -----------------------------------------------------------------------------------------------

bool TraceRecorder::is_listening() const {
  const LayerState& state = layer_state();
  return active_recorder == this && (state.active & state.mask & layer::kRecorderUpper);
}

void TraceRecorder::watch(const Value& value) {
  map_leaves(value, [](const Value& leaf) {
    if (leaf.is_tensor()) leaf.tensor_ref().impl()->set_flags(tensor_flag::kWatched);
    return leaf;
  });
}

SymInt TraceRecorder::new_size(int64_t hint, const std::string& source) {
  return env_->create_symbol(hint, source, sym::DimPolicy::kDynamic,
                             sym::ValueRange{0, sym::ValueRange::kInf});
}

namespace {

// A nested tensor whose components differ in some size: the whole has none.
bool is_ragged(const TensorImpl& tensor) {
  for (const SymInt& size : tensor.sizes())
    if (!size.is_symbolic() && size.plain() < 0) return true;
  return false;
}

}  // namespace

SymIntSpan TraceRecorder::sizes(const TensorImpl& tensor) {
  Node* node = is_listening() ? node_of(tensor) : nullptr;
  if (!node || tensor.dim() == 0 || is_ragged(tensor)) return tensor.sizes();
  SymInts& known = sizes_of_[tensor.serial()];
  bool is_current = static_cast<int64_t>(known.size()) == tensor.dim();
  for (size_t d = 0; is_current && d < known.size(); ++d)
    is_current = known[d].hint() == tensor.sizes()[d].hint();
  if (!is_current) {
    known.clear();
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      known.push_back(new_size(tensor.sizes()[static_cast<size_t>(d)].plain(),
                               fmt::format("{}.size({})", node->name(), d)));
      GraphWriter::sizes().offer_size(known.back().expr(), *node, d);
    }
  }
  return ListSpan<SymInt>(known.data(), known.size());
}

SymInt TraceRecorder::numel(const TensorImpl& tensor) {
  Node* node = is_listening() ? node_of(tensor) : nullptr;
  if (!node || is_ragged(tensor)) return tensor.numel();
  SymInt value = new_size(tensor.numel().plain(), fmt::format("{}.numel()", node->name()));
  Node& count = graph().call_function("aten::sym_numel", {value_of(*node)});
  annotate(count, value);
  track(value, count);
  return value;
}

SymInt TraceRecorder::integer_of(const Tensor& tensor) {
  Value node = as_nodes(tensor);
  int64_t hint = 0;
  {
    MaskScope below(layer::below(layer::kRecorderUpper));
    hint = tensor.item().to_int();
  }
  SymInt value = env_->create_value(hint, sym::Source::computed("item"));
  Node& item = graph().call_function("aten::item", {node});
  annotate(item, value);
  track(value, item);
  return value;
}

// --- calls -----------------------------------------------------------------------------------------------

namespace {

bool writes_in_place(const Operator& op) {
  return op.form() == OpForm::kInplace || (op.info().is_mutable && op.form() == OpForm::kFunctional);
}

}  // namespace

Value at_hint(const Value& leaf) {
  switch (leaf.kind()) {
    case Value::Kind::kSymInt:
      return *leaf.to_sym_int().hint();
    case Value::Kind::kSymFloat:
      return *leaf.to_sym_float().hint();
    case Value::Kind::kSymBool:
      return *leaf.to_sym_bool().hint();
    default:
      return leaf;
  }
}

namespace {

const OutplaceRule* outplace_rule(const Operator& op) {
  if (op.form() != OpForm::kInplace) return nullptr;
  for (const OutplaceRule& rule : outplace_rules())
    if (rule.def == &op.def()) return &rule;
  return nullptr;
}

}  // namespace

Value TraceRecorder::handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) {
  if (op.def().higher_order && op.def().higher_order->branches) {
    // As with C++ control flow, a trace holds what ran.
    MaskScope here(layer::at_and_below(layer::kRecorderUpper));
    return op.def().higher_order->run(args);
  }
  if (options_.force_outplace && writes_in_place(op)) {
    warn_of_other_references(op, args);
    if (const OutplaceRule* rule = outplace_rule(op)) return record_outplace(*rule, args, run);
  }
  ValueList nodes, below;
  for (const Value& arg : args) {
    nodes.push_back(as_nodes(arg));
    below.push_back(map_leaves(arg, at_hint));
  }
  const std::optional<SymInt> random_offset = random().before(op, args);
  Value result = run(below);
  warn_of_conversion(op, result);
  if (op.def().higher_order) record_custom_function(args, nodes, result);
  else random().after(op, args, result, random_offset, record(op, nodes, result));
  watch(result);
  return result;
}

Value TraceRecorder::record_outplace(const OutplaceRule& rule, Args args, FunctionRef<Value(Args)> run) {
  Value instead;
  {
    MaskScope here(layer::at_and_below(layer::kRecorderUpper));
    instead = rule.calls.boxed(args);
  }
  ValueList below;
  for (const Value& arg : args) below.push_back(map_leaves(arg, at_hint));
  Value result = run(below);
  track(result, *node_of(*instead.tensor_ref().impl()));
  return result;
}

Node& TraceRecorder::record(const Operator& op, const ValueList& nodes, const Value& result) {
  const bool is_inplace = op.form() == OpForm::kInplace, is_geometry = is_inplace && op.has(Traits::kView);
  // Sizes that were read before are those of another value, even where they are the same numbers.
  if (is_geometry && result.is_tensor()) sizes_of_.erase(result.tensor_ref().impl()->serial());
  // detach_ changes nothing that a graph would see: it is recorded as the value that it gives.
  const bool is_detach = is_geometry && op.has(Traits::kNotDifferentiable);
  return add_call(is_detach || (options_.force_outplace && is_inplace) ? op.functional() : op, nodes, result);
}

void TraceRecorder::record_custom_function(Args args, const ValueList& nodes, const Value& result) {
  autograd::AppliedFunction& applied = autograd::applied_function(args);
  bool writes = !applied.context.dirty_.empty();
  ValueList call = {Value(Ref<ValueObject>(applied_in_graph(applied.function, /*refuses_writes=*/writes)))};
  for (const Value& tensor : nodes[1].elements()) call.push_back(tensor);
  Node& node = graph().call_function("weft.call", std::move(call));
  node.meta().extra.set("inplace", writes ? 1 : 0);
  Value given = one_or_tuple(result.elements());
  annotate(node, given);
  track(given, node);
}

void TraceRecorder::converting(const Tensor&, const char* what) {
  if (!is_listening()) return;
  warn(WarningKind::kTracer,
       "Converting a tensor to {} might cause the trace to be incorrect. We can't record the data flow of "
       "C++ values, so this value will be treated as a constant in the future. This means that the trace "
       "might not generalize to other inputs!",
       what);
}

void TraceRecorder::iterating(const Tensor&) {
  if (!is_listening()) return;
  warn(WarningKind::kTracer,
       "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different shape "
       "won't change the number of iterations executed (and might lead to errors or silently give incorrect "
       "results).");
}

void TraceRecorder::warn_of_conversion(const Operator& op, const Value& result) {
  if (!op.has(Traits::kDataDependent) || !result.is_number()) return;
  converting({}, result.is_bool() ? "a C++ boolean" : result.is_int() ? "a C++ integer" : "a C++ float");
}

void TraceRecorder::warn_of_other_references(const Operator& op, Args args) const {
  const std::vector<uint8_t>& written = op.info().written;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!written[i] || !args[i].is_tensor()) continue;
    const Tensor& target = args[i].tensor_ref();
    uint32_t references = target.storage()->use_count();
    if (references > 1)
      warn(
          WarningKind::kTracer,
          "There are {} live references to the data region being modified when tracing in-place operator {} "
          "(possibly due to an assignment). This might cause the trace to be incorrect, because all other "
          "views that also reference this data will not reflect this change in the trace! On the other hand, "
          "if all other views use the same memory chunk, but are disjoint (e.g. are outputs of torch.split), "
          "this might still be safe.",
          references, op.schema().name);
  }
}

void TraceRecorder::name_value(const Tensor& tensor, std::string_view name) {
  Node* node = node_of(*tensor.impl());
  if (!node || name == "self") return;
  node->rename(name);
  node->meta().extra.set("named", name);
}

std::string TraceRecorder::name_of(const Tensor& tensor) const {
  const Node* node = node_of(*tensor.impl());
  if (!node) return {};
  const NodeMeta* meta = node->meta_or_null();
  if (const Value* name = meta ? meta->extra.find("named") : nullptr; name && name->is_string())
    return std::string(name->to_string_view());
  return node->kind() == NodeKind::kPlaceholder ? node->target().to_string() : std::string();
}

}  // namespace weft
