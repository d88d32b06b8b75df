#pragma once

#include "weft/base/random.h"
#include "weft/core/pytree.h"
#include "weft/graph/graph.h"
#include "weft/nn/module.h"

namespace weft {

class Program;
struct RunNumbers;

// How the arguments and the result of a program map to the placeholders and the output of its graph, where
// they are trees: placeholders are the leaves of the arguments, and the output is a list of leaves.
struct CallSpec {
  std::vector<std::string> argument_names;
  TreeSpec arguments;  // a tuple
  TreeSpec result;
  // How many of the arguments come by position, the others by name, where code writes them as such a pair:
  // ([x], {'y':y}).
  std::optional<size_t> num_positional = std::nullopt;
};

// Where a run of a graph takes its random numbers from.
struct RunOptions {
  // Where they begin: nodes draw at their offsets from here (NodeMeta::random_offset), and what has none
  // draws on behind them. The default generator stays where it is. None: from the default generator.
  std::optional<RandomStream> random = std::nullopt;
  // Whether it goes on all the same, by as many numbers as the run took from `random`.
  bool advances_generator = false;
};
struct RunResult {
  Value value;
  // Where the numbers of the run begin: another run that is given this draws the same. Nothing where the run
  // could not follow the offsets of its nodes: for inputs of other sizes than the capture's, fake ones, and
  // under vmap.
  std::optional<RandomStream> random;
};

// A graph that can be called, with the tensors and modules that it names. It is a module like any other:
// parameters train, `to` and `state_dict` work, it can be a child, be captured again, and run under every
// layer. Copies are handles to the same graph and tensors; `deep_copy` is not.
class GraphModule : public nn::Module {
 public:
  using Attributes = std::vector<std::pair<std::string, Value>>;

  explicit GraphModule(Graph graph = {}, std::string class_name = "GraphModule");
  // A handle to the same graph and tensors; while a deep copy is made, to the copies.
  GraphModule(const GraphModule& other);
  GraphModule(GraphModule&&) = default;
  // An error for one that is registered in another module.
  GraphModule& operator=(const GraphModule& other);
  // Takes from `root` what the graph names, under the same paths, and nothing else. An error for a path that
  // leads nowhere.
  GraphModule(const nn::Module& root, Graph graph, std::string class_name = "GraphModule");
  // The same, with attributes that `root` does not have.
  GraphModule(const nn::Module& root, const Attributes& attributes, Graph graph,
              std::string class_name = "GraphModule");
  // The same from a list of paths: tensors that require a gradient become parameters, other tensors buffers,
  // functions children.
  GraphModule(const Attributes& attributes, Graph graph, std::string class_name = "GraphModule");

  // A graph over what `owner` owns, itself and not a copy; the graph and call spec are those of `code`.
  static GraphModule over(const nn::Module& owner, const GraphModule& code);

  // May be changed at any time; the next call runs what it has become.
  Graph& graph() const noexcept;
  void set_graph(Graph graph) const;
  // Adds or replaces what a path leads to.
  void set_attribute(std::string_view path, Value value) const;
  // Drops what the graph does not name.
  void delete_unused_attributes() const;
  // Copies from `from` what the graph names and is not here, under the same paths. Modules of C++ and graphs
  // that call them are shared. An error for a path that leads nowhere.
  void copy_attributes(const nn::Module& from) const;
  // False for a module made by `over`, whose tensors and modules are somebody else's.
  bool owns_attributes() const noexcept;
  const std::optional<CallSpec>& call_spec() const noexcept;
  void set_call_spec(CallSpec spec) const;
  // What it was traced with, by the name of the method: a tuple, or a dictionary of arguments by name. Files
  // keep types and sizes of it; tensors that come from one have no data.
  const Dict& traced_inputs() const noexcept;
  void set_traced_inputs(Dict inputs) const;
  // Whatever else is known of it, by name.
  Dict& meta() const noexcept;

  // Runs the graph: one value for each placeholder, or for each argument where there is a CallSpec. As in
  // Python, a placeholder `*args` takes the values that are left over, and `**kwargs` the names.
  Value call(Args args, const Kwargs& kwargs = {}) const;
  Value call(std::initializer_list<Value> args, const Kwargs& kwargs = {}) const {
    return call(Args(args.begin(), args.size()), kwargs);
  }
  // The same, on random numbers that are given, or are to be given to another run: a backward graph draws the
  // masks of the forward again. Numbers that follow a branch or a loop that draws are found again if they
  // were given, or if no other thread drew meanwhile.
  //   RunResult forward = graph.run({x});
  //   Value gradient = backward.run({dy}, {.random = forward.random}).value;
  RunResult run(Args args, const RunOptions& options = {}, const Kwargs& kwargs = {}) const;
  RunResult run(std::initializer_list<Value> args, const RunOptions& options = {},
                const Kwargs& kwargs = {}) const {
    return run(Args(args.begin(), args.size()), options, kwargs);
  }
  // The one tensor that the graph gives.
  template <typename... A>
  Tensor operator()(const A&... args) const {
    return from_value<Tensor>(call({to_value(args)...}));
  }
  // Itself as a Value that can be called.
  Ref<Callable> callable() const;
  ValueFunction function() const;

  // Python code, as PyTorch's FX writes it. Where there is a CallSpec it takes the arguments apart into
  // leaves and puts the result together.
  std::string code() const;
  // The same with a graph, tensors and modules of its own, those of C++ included: nn::deep_copy.
  GraphModule deep_copy() const { return nn::deep_copy(*this); }

 private:
  struct Body;
  std::shared_ptr<const Program> program() const;
  Value call(Args args, const Kwargs& kwargs, RunNumbers* numbers) const;
  Value call_with_trees(const CallSpec& spec, Args args, const Kwargs& kwargs, RunNumbers* numbers) const;
  Value call_with_inputs(Args args, const Kwargs& kwargs, RunNumbers* numbers) const;
  std::shared_ptr<Body> body_;
};

// The graph module that a Value holds; nothing when it holds something else.
std::optional<GraphModule> graph_module_in(const Value& value);

// Writes `code()`.
std::ostream& operator<<(std::ostream& out, const GraphModule& module);

}  // namespace weft
