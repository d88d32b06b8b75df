#pragma once

#include "capture/graph_writer.h"
#include "func/level.h"
#include "weft/core/from_data.h"
#include "weft/dispatch/recorder.h"
#include "weft/ops/fake_converter.h"

namespace weft {

// Writes what a function of control flow calls into a graph, as the function's code calls it: above all
// transforms and layers, composites whole, writes and views as they are. What the function uses without being
// given it becomes a further input.
class FunctionRecorder final : public GraphWriter, public Recorder, public LiteralObserver {
 public:
  // `leaves` are what the function is given, tensors without data.
  explicit FunctionRecorder(const ValueList& leaves);

  // Runs the function, once. A graph gives what it gave.
  void run(const ValueFunction& function);
  const ValueList& results() const noexcept { return results_; }
  bool draws() { return random().drew(); }
  // The tensors and symbolic numbers that it uses without being given them.
  ValueList closed_over() const;
  // The graph as a function of the leaves and of `closed_over`, in which this recorder's own are.
  GraphModule finish(const ValueList& closed_over);

  // Assertions that were noted until now are none of the function's own code.
  void skip_assertions();
  // A call of the function's code.
  Value record(const Level& level, const Operator& op, Args args);
  Value handle(const Operator&, Args args, FunctionRef<Value(Args)> run) override { return run(args); }
  void grad_mode_changed(bool enabled) override;
  Tensor literal(const Tensor& tensor) override;

 private:
  struct ClosedOver {
    Value value;
    Node* node;
  };
  Value unknown_tensor(const Tensor& tensor) override;
  void annotate(Node& node, const Value& result) override;
  Node& add_closed_over(const Value& value, const Value& without_data);
  Value without_data(const Value& value) const;
  void write_assertions();

  ValueList leaves_, results_;
  std::vector<ClosedOver> closed_over_;
  FakeConverter converter_;
  std::unordered_map<uint64_t, Tensor> fakes_;  // of what it closes over, by serial number
  const Recorder* around_;                      // of the program that the function is part of
  Node* last_input_ = nullptr;                  // further ones come after it
  Ref<ShapeEnv> env_;                           // that the function's checks are noted in; may be null
  size_t seen_assertions_ = 0;
};

}  // namespace weft
