#pragma once

#include "capture/graph_writer.h"
#include "capture/module_trail.h"
#include "ops/unknown_rank.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/dispatch/recorder.h"

namespace weft {

// Records a program that runs on proxies: tensors and Vars that are only nodes of the graph. Calls without
// a proxy among their arguments simply run.
class SymbolicTracer final : public GraphWriter,
                             public Recorder,
                             public TensorWatcher,
                             public nn::ModuleObserver {
 public:
  SymbolicTracer(const SymbolicTraceOptions& options, const nn::Module* root);

  // The one of this thread; null when it does not trace.
  static SymbolicTracer* current() noexcept;
  class Scope;

  // A tensor that stands for what the node gives. With `meta` its type and sizes are known.
  Tensor proxy(Node& node, const Tensor& meta = {});
  // The node behind a Var's value, where it has one.
  Value record(std::string_view function, const ValueList& args);
  Value record_method(std::string_view method, const ValueList& args);
  // Whether a call with these arguments is a part of the program: one is a proxy, or a parameter or buffer
  // of the root.
  bool is_recorded(Args args) const { return has_stand_ins(args) || uses_root(args); }
  // What the call gives for the shapes of its arguments; nothing where one is not known.
  std::optional<Value> shapes_of(Args args, FunctionRef<Value(Args)> run) const;
  // What stands for a result that has these shapes: a tensor for each that is in there.
  Value stand_in(Node& node, const Value& shapes);
  // The same node, with what is known of it noted.
  Node& noted(Node& node) {
    annotate(node, Value());
    return node;
  }
  bool is_leaf(const nn::ModuleState& module, const std::string& path) const;
  ModuleTrail& trail() noexcept { return trail_; }
  bool is_proxy(const Tensor& tensor) const { return node_of(*tensor.impl()) != nullptr; }
  Node& node_behind(const Tensor& tensor) const { return *node_of(*tensor.impl()); }

  Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) override;
  Value handle(const nn::ModuleCall& call) override;
  SymIntSpan sizes(const TensorImpl& tensor) override;
  SymInt size(const TensorImpl& tensor, int64_t dim) override;
  SymInt numel(const TensorImpl& tensor) override;
  void about_to_read(const TensorImpl& tensor, const char* what) override;

 private:
  Value unknown_tensor(const Tensor& tensor) override;
  void annotate(Node& node, const Value& result) override;
  bool has_stand_ins(Args args) const;
  bool uses_root(Args args) const;
  bool is_listening() const;
  bool knows_shape(const TensorImpl& tensor) const { return shaped_.contains(tensor.serial()); }
  // A part of a node's result.
  Node& item(Node& node, const Value& key) {
    return noted(graph().call_function("operator.getitem", {value_of(node), key}));
  }
  Value stand_ins(const Operator& op, Args args, Node& node, const std::optional<Value>& shapes);
  SymInt number(Node& node, std::string_view what);
  // What C++ takes the result of a leaf module for (see ModuleCall::result_form, which is read from its
  // beginning).
  Value stand_in_of_form(Node& node, std::string_view& form, const std::string& path);

  const SymbolicTraceOptions& options_;
  Ref<ShapeEnv> env_ = ShapeEnv::create();
  ModulePaths paths_;
  ModuleTrail trail_;
  std::unordered_map<uint64_t, Tensor> shaped_;  // proxies whose sizes are known, by serial number
};

class SymbolicTracer::Scope {
 public:
  explicit Scope(SymbolicTracer& tracer);
  ~Scope();
  Scope(const Scope&) = delete;

 private:
  RecorderScope recorder_;
  nn::ModuleObserver::Scope modules_;
  TensorWatcher* saved_watcher_;
  weft::detail::RankQuestion saved_rank_question_;
  SymbolicTracer* outer_;
};

}  // namespace weft
