#pragma once

#include <memory>
#include <mutex>

#include "graph/run/graph_inputs.h"
#include "graph/run/random_plan.h"
#include "weft/graph/graph.h"
#include "weft/nn/module.h"

namespace weft {

namespace detail {
// For tests: is told of every graph that a graph module is made of, and of every one that is made ready to
// run.
using GraphProbe = void (*)(const Graph&);
extern GraphProbe graph_probe;
}  // namespace detail

// A graph made ready to run: every argument in its slot, every attribute looked up, and for each step the
// values that nobody needs after it. A run costs the calls themselves and a few moves of Values.
class Program {
 public:
  // `graph` and what `root` owns are read here; the graph must not change while this is used.
  Program(const Graph& graph, const nn::Module& root);
  ~Program();

  // The inputs by position: those with a default may be missing at the end, `*args` takes what is left over.
  Value run(Args inputs, RunNumbers* numbers = nullptr) const {
    return names_.has_rest() ? run_bound(names_.bind(inputs, {}), numbers) : run_bound(inputs, numbers);
  }
  // The same with `*args` as one tuple and `**kwargs` as one dictionary.
  Value run_bound(Args inputs, RunNumbers* numbers = nullptr) const;
  size_t input_count() const noexcept { return inputs_.size(); }

 private:
  // Where an argument of a step comes from at run time.
  struct Fill {
    uint32_t argument;  // its index among all arguments of all steps
    uint32_t value;     // the node's number; for a nested one, which of `nested_`
    bool is_nested, is_last_use, wants_tensor;
  };
  struct Step {
    const Node* node;
    const Operator* op;
    const PythonFunction* function;
    Callable* callable;
    uint32_t first_argument, argument_count, first_fill, fill_count, first_dead, dead_count, result;
    uint32_t draw;  // which of the run's draws it makes, or RandomPlan::kNone
    bool is_used;
    bool is_asserted;  // and nothing else becomes of it
  };
  struct Input {
    uint32_t value;
    std::optional<Value> default_value;
    bool is_used;
  };
  // The values of one run. Constants stay in their slots between runs.
  struct Frame {
    std::vector<Value> values, arguments;
    std::optional<RandomPlan::Draws> draws;
  };

  template <bool is_noted>
  struct StepOrigin;

  void add_input(const Node& node);
  void add_step(const Node& node, const nn::Module& root);
  void add_arguments(Step& step, Args args, const Operator* op);
  void find_last_uses();
  // With `notes_origin`, each step says where its calls come from.
  template <bool notes_origin>
  void run_steps(Frame& frame, const Node*& current) const;
  Value call(const Step& step, Args args) const;
  Value call_on_number(const Step& step, Args args) const;
  Value on_stream(const Step& step, const Frame& frame, FunctionRef<Value()> run) const;
  Value resolve(const Frame& frame, const Value& nested) const;
  std::unique_ptr<Frame> take_frame() const;

  const GraphInputs names_;
  std::vector<Input> inputs_;
  std::vector<Step> steps_;
  std::vector<Fill> fills_;
  std::vector<uint32_t> dead_;
  std::vector<Value> nested_;     // arguments with nodes somewhere inside
  std::vector<Value> arguments_;  // of all steps: constants where they are, None where a run fills in
  std::vector<std::pair<uint32_t, Value>> constants_;
  std::vector<Ref<Callable>> callables_;
  const RandomPlan random_;
  const Node* output_ = nullptr;
  size_t value_count_ = 0;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Frame> idle_;
};

}  // namespace weft
