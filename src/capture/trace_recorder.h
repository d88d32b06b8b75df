#pragma once

#include <deque>
#include <unordered_set>

#include "capture/graph_writer.h"
#include "capture/module_trail.h"
#include "weft/base/stack_trace.h"
#include "weft/capture/trace.h"
#include "weft/core/future.h"
#include "weft/dispatch/recorder.h"
#include "weft/nn/module.h"
#include "weft/ops/conversions.h"

namespace weft {

struct OutplaceRule;

// The scope of the module that is traced; those of its children begin with it.
inline constexpr std::string_view kRootScope = "__module";

// The number that a symbol stands for; anything else as it is. Operators below a trace run on numbers: a
// trace never guards.
Value at_hint(const Value& leaf);

// Records a program while it runs on real tensors: every operator as it was called, where in which module,
// and the sizes that the program reads. While one lives, it is what `is_tracing` means.
class TraceRecorder final : public GraphWriter,
                            public Recorder,
                            public TensorWatcher,
                            public nn::ModuleObserver,
                            public ConversionObserver {
 public:
  TraceRecorder(const TraceOptions& options, const nn::Module* root);
  ~TraceRecorder() override;

  // The one of this thread; null when it does not trace.
  static TraceRecorder* current() noexcept;
  // Begins and ends recording.
  class Scope;

  // The value that the program gets for an argument.
  Value add_argument(const std::string& name, const Value& value);
  // An input that is a tensor which the program reads by itself.
  void add_state(const std::string& name, const Tensor& tensor);
  void name_value(const Tensor& tensor, std::string_view name);
  // What the program calls it; empty where it has no name, and where nothing is known of it.
  std::string name_of(const Tensor& tensor) const;
  // A number out of a tensor, as a node.
  SymInt integer_of(const Tensor& tensor);
  // Whether a module is the one that is traced, or below it.
  bool knows(const nn::ModuleState& module) const { return paths_.contains(&module); }
  // A call of what was traced before: as it is, or what it does.
  Value call_traced(const std::string& name, const GraphModule& module, Args args, const Kwargs& kwargs);
  // Runs a function whose nodes become a graph of their own, and one step.
  Ref<FutureObject> fork(FunctionRef<Value()> f);
  Value wait(const FutureObject& future);
  // Where in the program each node was recorded.
  using Traces = std::unordered_map<const Node*, StackTrace>;
  Traces take_traces() { return std::move(traces_); }
  // Attributes that are no part of the module's state.
  const GraphModule::Attributes& constants() const noexcept { return constants_; }

  Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) override;
  Value handle(const nn::ModuleCall& call) override;
  bool keeps_control_flow() const override { return false; }
  SymIntSpan sizes(const TensorImpl& tensor) override;
  SymInt numel(const TensorImpl& tensor) override;
  void about_to_read(const TensorImpl&, const char*) override {}
  void converting(const Tensor& tensor, const char* what) override;
  void iterating(const Tensor& tensor) override;

 private:
  Value unknown_tensor(const Tensor& tensor) override;
  void annotate(Node& node, const Value& result) override;
  bool is_listening() const;
  void add_named_input(const std::string& name, const Value& value);
  void watch(const Value& value);
  // Holds a tensor of the caller's, whose mark is taken off at the end.
  void keep(const Tensor& tensor);
  void record_custom_function(Args args, const ValueList& nodes, const Value& result);
  Node& record(const Operator& op, const ValueList& nodes, const Value& result);
  // Runs an in-place call, and records functional calls for it.
  Value record_outplace(const OutplaceRule& rule, Args args, FunctionRef<Value(Args)> run);
  void warn_of_conversion(const Operator& op, const Value& result);
  void warn_of_other_references(const Operator& op, Args args) const;
  SymInt new_size(int64_t hint, const std::string& source);
  // Whether calls of what was traced before are steps.
  bool keeps_calls() const;
  // Whether a child at this path is run by a graph.
  bool is_captured(const nn::ModuleState& module, const std::string& path) const;
  // Runs something as a whole, unseen; its arguments are numbers where they were symbols.
  static Value run_below(Args args, FunctionRef<Value(Args)> run);
  // Notes that the node gave this.
  void define(Node& node, const Value& result);
  // The node that reads a function that was traced before.
  Node& function_attribute(const GraphModule& module, const std::string& name);

  const TraceOptions& options_;
  const nn::Module* root_;
  Ref<ShapeEnv> env_;
  std::unordered_map<uint64_t, SymInts> sizes_of_;  // by the tensor's serial number
  ModulePaths paths_;
  ModuleTrail trail_;
  const nn::ModuleState* opened_ = nullptr;                 // whose calls are not kept as calls
  std::unordered_map<const Graph*, Node*> functions_;       // traced before and called
  std::vector<std::pair<Ref<FutureObject>, Node*>> forks_;  // null: inside of another one
  std::unordered_set<uint64_t> left_behind_;  // serial numbers of tensors that forked functions made
  std::vector<Tensor> kept_;                  // whose marks are taken off at the end
  GraphModule::Attributes constants_;
  Traces traces_;
};

class TraceRecorder::Scope {
 public:
  explicit Scope(TraceRecorder& recorder);
  ~Scope();
  Scope(const Scope&) = delete;

 private:
  RecorderScope recorder_;
  nn::ModuleObserver::Scope modules_;
  ConversionObserver::Scope conversions_;
  TensorWatcher* saved_watcher_;
};

}  // namespace weft
