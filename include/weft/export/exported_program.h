#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/capture/make_graph.h"
#include "weft/graph/graph_module.h"
#include "weft/sym/shape_env.h"

namespace weft {

// What the placeholder of the same position in a program's graph stands for.
struct InputSpec {
  enum class Kind : uint8_t {
    kUserInput,      // a tensor or a symbolic number that the caller gives
    kConstantInput,  // an argument that was fixed at export: the caller must give an equal value
    kParameter,
    kBuffer,
    kTensorConstant,
    kCustomObject,
    kToken,  // orders effects; made by whoever runs the graph
  };
  Kind kind = Kind::kUserInput;
  std::string target = {};  // the name of the parameter, buffer, constant or object
  bool persistent = true;   // of a buffer: whether it is part of the state
  Value constant = {};      // of a constant input
};

// What the result of the same position is.
struct OutputSpec {
  enum class Kind : uint8_t {
    kUserOutput,
    kLossOutput,
    kBufferMutation,     // the new value of the buffer `target`
    kParameterMutation,  // of the parameter
    kUserInputMutation,  // of the input whose placeholder is called `target`
    kGradientToParameter,
    kGradientToUserInput,
    kToken,
  };
  Kind kind = Kind::kUserOutput;
  std::string target = {};
};
std::string_view kind_name(InputSpec::Kind kind);   // "PARAMETER", as PyTorch prints it
std::string_view kind_name(OutputSpec::Kind kind);  // "BUFFER_MUTATION"

// How the program was called: one tree for (positional arguments, arguments by name), one for the result.
struct ProgramCall {
  TreeSpec arguments, result;
  std::vector<std::string> names;  // one for each argument, first those by position
};

// What a symbolic size, or an expression of sizes, can be.
struct RangeConstraint {
  const sym::Expr* expr = nullptr;
  sym::ValueRange range = {};
};

// What a submodule of the program was, for putting the modules back together.
struct ModuleCallEntry {
  std::string path;
  struct Argument {
    std::string name;  // of the value in the graph; empty for a constant
    Value constant = {};
  };
  struct Signature {
    std::vector<Argument> inputs, outputs;
    ProgramCall call;
  };
  std::optional<Signature> signature = {};
};

// A whole program: a graph whose inputs are parameters, buffers, constants and what the caller gives, the
// tensors themselves, and what its inputs must be. It is a handle: copies share everything.
//
//   ExportedProgram program = load_pt2("model.pt2");
//   Tensor y = program.module()(x);
class ExportedProgram {
 public:
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

  // All there is to one; `make` checks that the parts fit each other.
  struct Parts {
    GraphModule graph_module;
    std::vector<InputSpec> inputs;
    std::vector<OutputSpec> outputs;
    // Parameters and persistent buffers; the other buffers and constants. A tensor of two names is in there
    // twice. Frozen parameters are parameters that require no gradient.
    NamedTensors state, constants;
    std::vector<std::pair<std::string, Value>> objects;  // that operators take: of registered custom classes
    ProgramCall call;
    Ref<ShapeEnv> shape_env;  // of the sizes that nodes note; null where all are numbers
    std::vector<RangeConstraint> ranges;
    std::vector<std::string> guards;  // conditions on inputs, in Python: "L['x'].size()[0] == 2"
    std::vector<ModuleCallEntry> modules;
    std::optional<Value> example_inputs;  // a pair: a tuple, and a dictionary of arguments by name
    // Whether writes are operators that write, and composites are kept; otherwise the graph is functional.
    bool is_training_dialect = true;
    Dict metadata;  // anything else that files keep, as text
  };
  static ExportedProgram make(Parts parts);

  // Placeholders for all inputs, in the order of `inputs()`; gives a list, in the order of `outputs()`.
  const GraphModule& graph_module() const { return parts_->graph_module; }
  Graph& graph() const { return parts_->graph_module.graph(); }
  const std::vector<InputSpec>& inputs() const { return parts_->inputs; }
  const std::vector<OutputSpec>& outputs() const { return parts_->outputs; }
  const NamedTensors& state_dict() const { return parts_->state; }
  const NamedTensors& constants() const { return parts_->constants; }
  const std::vector<std::pair<std::string, Value>>& objects() const { return parts_->objects; }
  const ProgramCall& call() const { return parts_->call; }
  const Ref<ShapeEnv>& shape_env() const { return parts_->shape_env; }
  const std::vector<RangeConstraint>& range_constraints() const { return parts_->ranges; }
  const std::vector<std::string>& guards() const { return parts_->guards; }
  const std::vector<ModuleCallEntry>& module_call_graph() const { return parts_->modules; }
  const std::optional<Value>& example_inputs() const { return parts_->example_inputs; }
  bool is_training_dialect() const { return parts_->is_training_dialect; }
  const Parts& parts() const { return *parts_; }

  // The tensor of a parameter, buffer or constant; an error if there is none of that name.
  const Tensor& tensor(std::string_view name) const;
  // Those that are inputs of the graph, in their order; a tensor of two names comes once.
  NamedTensors named_parameters() const { return tensors_of(InputSpec::Kind::kParameter); }
  NamedTensors named_buffers() const { return tensors_of(InputSpec::Kind::kBuffer); }

  // The parameter, or buffer, that a node of the graph stands for; nothing for any other node.
  std::optional<Tensor> parameter_of(const Node& node) const;
  std::optional<Tensor> buffer_of(const Node& node) const;

  // The program as a module to call, with the tensors of this one as its parameters and buffers. A call takes
  // the program's arguments; what they must be is checked first, in this order: the trees, types and sizes,
  // ranges, guards. What the program changed of its buffers and inputs, they have afterwards. A failed check
  // is an AssertionError that says "Expected input at *args[0].shape[0] to be <= 64, but got 65", and
  // "Guard failed: x.size()[0] <= 64".
  GraphModule module() const;

  // The same program in fewer kinds of operators, as a functional graph: composites are what they are made of,
  // and operators of the table what it says. Without a table: the Core ATen operators. State and constants are
  // shared, the signature says what the program writes.
  ExportedProgram run_decompositions() const;
  ExportedProgram run_decompositions(const Decompositions& table) const { return run_decompositions(table, {}); }
  // The composites that are named, "aten::linear", stay whole all the same. An error that says why for one that
  // cannot.
  ExportedProgram run_decompositions(const Decompositions& table, const std::vector<std::string>& preserved) const;

  // Code, signature and ranges, laid out as PyTorch prints an exported program.
  std::string to_string() const;

 private:
  explicit ExportedProgram(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  NamedTensors tensors_of(InputSpec::Kind kind) const;
  std::shared_ptr<const Parts> parts_;
};

// Writes `to_string()`.
std::ostream& operator<<(std::ostream& out, const ExportedProgram& program);

// The names of all composites that run_decompositions can leave whole.
std::vector<std::string> preservable_composites();

}  // namespace weft
