#pragma once

#include <unordered_map>
#include <unordered_set>

#include "capture/graph_writer.h"
#include "capture/module_trail.h"
#include "func/control_flow_rules.h"
#include "weft/capture/make_graph.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/recorder.h"

namespace weft {

// Writes every operator call that passes it into a graph: what make_graph captures with.
class GraphRecorder final : public GraphWriter,
                            public Recorder,
                            public LiteralObserver,
                            public nn::ModuleObserver {
 public:
  // The options must outlive it.
  GraphRecorder(const MakeGraphOptions& options, const nn::Module* root);
  GraphRecorder(MakeGraphOptions&& options, const nn::Module* root) = delete;

  // What the caller gave for an input. Whatever else looks at its memory depends on that input.
  void note_given(const Value& given);

  // While it lives, what this thread does is recorded.
  class Scope {
   public:
    explicit Scope(GraphRecorder& recorder)
        : recording_(recorder, recorder.position()),
          literals_(recorder),
          modules_(recorder.paths_.empty() ? nn::ModuleObserver::current() : &recorder) {}

   private:
    RecorderScope recording_;
    LiteralScope literals_;
    nn::ModuleObserver::Scope modules_;
  };

  Position position() const { return options_.pre_dispatch ? Position::kUpper : Position::kLower; }
  Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) override;
  Value handle(const nn::ModuleCall& call) override;
  void grad_mode_changed(bool enabled) override;
  bool takes_whole(const Tensor& extension) const override;
  Origin origin_here() const override;
  OriginRef origin_of_last_call() const override;
  // Values of the program are kept as they are, and each run begins with a copy of them.
  Tensor literal(const Tensor& tensor) override;

 private:
  Value unknown_tensor(const Tensor& tensor) override;
  bool is_made_of_nodes(const Tensor& extension) const;
  void annotate(Node& node, const Value& result) override;
  Origin origin_of_call(const Node& node);
  uint32_t layer_bit() const { return options_.pre_dispatch ? layer::kRecorderUpper : layer::kRecorderLower; }
  // What the decomposition of the call gave; nothing where it has none, or is part of one of the same
  // operator.
  std::optional<Value> decomposed(const Operator& op, Args args);
  Value custom_function(Args args, FunctionRef<Value(Args)> run);
  bool reads_data(const Operator& op) const;
  bool is_literal(const Tensor& tensor) const;
  bool are_constant(Args args) const;
  void check_data_read(const Operator& op, Args args) const;
  void note_constants(const Operator& op, Args args, const Value& result);
  void make_branch_graphs(const Operator& op, Args args, ValueList& nodes, flow::KnownResults& known);
  struct BranchGraph {
    GraphModule module;
    ValueList results;  // without data
  };
  BranchGraph capture_branch(Callable& function, const Branch& branch);
  Value own_results(const Value& result);
  void refuse_numbers(const Operator& op, const Value& result) const;

  const MakeGraphOptions& options_;
  ModulePaths paths_;
  ModuleTrail own_trail_;
  const ModuleTrail* trail_ = &own_trail_;  // of the whole program, also while a branch is recorded
  using CallCounts = std::unordered_map<std::string, int64_t>;  // by what is called
  CallCounts own_calls_;
  CallCounts* calls_ = &own_calls_;         // of the whole program, too
  const Operator* original_ = nullptr;      // the outermost one whose decomposition is running
  const Node* last_ = nullptr;              // that was written
  // Constants that nodes stand for, by the memory that a write would change.
  struct Literals {
    Ref<Storage> storage;
    std::unordered_set<uint64_t> tensors;  // serial numbers
  };
  std::unordered_map<const Storage*, Literals> literals_;
  std::unordered_set<const Operator*> open_;                // decompositions that are running
  std::unordered_map<const Storage*, Ref<Storage>> given_;  // of inputs
};

}  // namespace weft
