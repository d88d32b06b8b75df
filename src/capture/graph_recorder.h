#pragma once

#include <unordered_map>
#include <unordered_set>

#include "capture/size_nodes.h"
#include "weft/capture/make_graph.h"
#include "weft/graph/graph_module.h"
#include "weft/ops/fake.h"
#include "weft/ops/recorder.h"

namespace weft {

// Writes every operator call that passes it into a graph. Tensors are known by their serial number; a tensor
// that was not seen before is a constant of the program, and becomes an attribute.
class GraphRecorder final : public Recorder {
 public:
  // `root` gives attributes their names, where it owns them; may be null.
  GraphRecorder(const MakeGraphOptions& options, const nn::Module* root);

  // A placeholder for a leaf of the arguments.
  Node& add_input(const std::string& name, const Value& value);
  // The same Value with nodes for tensors and symbolic numbers.
  Value as_nodes(const Value& value);
  Value handle(const Operator& op, Args args, FunctionRef<Value(Args)> run) override;
  void grad_mode_changed(bool enabled) override;

  Graph& graph() noexcept { return graph_; }
  // The graph with what it names.
  GraphModule finish();

 private:
  Value node_for(const Tensor& tensor);
  Node& constant_node(const Tensor& tensor);
  std::string constant_name(const Tensor& tensor);
  // What the layers below get for an argument: a constant as a fake tensor where they are fake.
  Value for_below(const Value& value);
  Value record_operator_over_functions(const Operator& op, Args args, FunctionRef<Value(Args)> run);
  GraphModule capture_branch(Callable& function, Args inputs);
  Value instead_of_twins(const Operator& op, Args args, Args below, const Value& result);
  void annotate(Node& node, const Value& result);
  void track(const Value& result, Node& node);

  const MakeGraphOptions& options_;
  const nn::Module* root_;
  Graph graph_;
  SizeNodes sizes_{graph_};
  std::unordered_map<uint64_t, Node*> nodes_;             // by the tensor's serial number
  std::unordered_map<uint64_t, std::string> root_names_;  // of what the root owns
  std::unordered_map<uint64_t, Tensor> twins_;            // fake tensors for constants
  std::unordered_map<std::string, int64_t> next_number_;  // of "_tensor_constant", "true_graph", ...
  std::unordered_set<const Operator*> open_;              // decompositions that are running
  GraphModule::Attributes attributes_;
};

}  // namespace weft
