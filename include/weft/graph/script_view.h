#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/graph/graph_module.h"

namespace weft {

class ScriptGraph;
struct ScriptNode;
struct ScriptStore;

// What TorchScript knows of a value's type.
struct ScriptType {
  enum class Kind : uint8_t {
    kTensor,
    kInt,
    kFloat,
    kBool,
    kComplex,
    kScalar,  // a number of any kind
    kString,
    kDevice,
    kGenerator,
    kNone,
    kFunction,
    kAny,
    kClass,     // name: "__torch__.Net"
    kOptional,  // elements: of what
    kList,      // elements: of what
    kTuple,     // elements
    kDict,      // elements: key and value
    kFuture,    // elements: of what
  };
  Kind kind = Kind::kTensor;
  // Of a tensor, as far as they are known. A size or stride of -1 is one that may be any.
  std::optional<DType> dtype = {};
  std::optional<std::vector<int64_t>> sizes = {}, strides = {};
  std::optional<bool> requires_grad = {};
  std::optional<Device> device = {};
  std::string name = {};
  std::vector<ScriptType> elements = {};

  static ScriptType list(ScriptType element);
  static ScriptType tuple(std::vector<ScriptType> elements);
  static ScriptType dict(ScriptType key, ScriptType value);
  // Of a tensor, a number, a string, a container of them, ... Sizes that are symbols may be any.
  static ScriptType of(const Value& value);

  bool is(Kind other) const noexcept { return kind == other; }
  // Whether type, device, and every size and stride of a tensor are known.
  bool is_complete_tensor() const;
  // The same, but of tensors only that they are tensors.
  ScriptType erased() const;
  // As graphs write it: "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "int[]", "(Tensor, int)",
  // "Dict(str, Tensor)".
  std::string to_string() const;
  // As code writes it: "Tensor", "List[int]", "Tuple[Tensor, int]", "Dict[str, Tensor]".
  std::string annotation() const;
  bool operator==(const ScriptType&) const = default;
};

// What a node of the script view gives, or an input of a graph.
struct ScriptValue {
  std::string name;  // without the %
  ScriptType type;
  const ScriptNode* node = nullptr;  // that gives it; null for an input
  bool is_named = false;             // by the program; otherwise its name is a number
  size_t number = 0;                 // its index among the values of its graph, inputs first

  bool is_complete_tensor() const { return type.is_complete_tensor(); }
};

// One line of the script view.
struct ScriptNode {
  std::string kind;              // "aten::add", "prim::Constant", "prim::PythonOp"
  const Operator* op = nullptr;  // of kinds that are operators of the table
  Ref<const Node> origin = {};   // the node that it comes from; null where there is no single one
  std::vector<const ScriptValue*> inputs, outputs;
  // "value" of a constant (a number whose type is a tensor is a 0-d tensor of the value's dtype), "name" of
  // GetAttr, CallMethod and of a constant that is a function, "inplace" of a custom function.
  std::vector<std::pair<std::string, Value>> attributes;
  std::string function = {};                     // of prim::PythonOp: "Foo"
  ValueList scalars = {};                        // of prim::PythonOp: the arguments that hold no tensors
  const ScriptGraph* callee = nullptr;           // of a prim::CallMethod that was re-formed: the method
  std::shared_ptr<const ScriptGraph> body = {};  // of prim::fork: what is forked, a function of the inputs
  std::string scope = {};                        // "__module.layer1/__module.layer1.0"
  std::string source = {};                       // where in the program the call was made
  size_t number = 0;                             // its index among the nodes of its graph

  // Null when there is none.
  const Value* attribute(std::string_view name) const;
  bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }
  // The one value that it gives; an error when it gives none or several.
  const ScriptValue& output() const;
};

struct ScriptOptions {
  // Whether the calls of child modules are inlined; otherwise each is a prim::CallMethod of a method of its
  // own, re-formed from what nodes note of the modules around them. Programs without `self_type` have none.
  bool inline_calls = true;
  // Numbers instead of names for all values, and `types` false: what two captures of one program share.
  bool canonical = false;
  // Whether types tell what is known of tensors.
  bool types = true;
  // Whether lines end with " # " and the source location.
  bool sources = false;
  // Constants that are equal are one, at the beginning; numbers stay numbers where operators take tensors,
  // and lists of constants are constants. So it is for a graph that says so itself (`pools_constants`).
  bool pool_constants = false;
  // The type of the module that was captured, "__torch__.Net". Empty for functions: what they read from
  // outside are constants.
  std::string self_type = {};
  // What `code` calls it.
  std::string name = "forward";
  // Gives the values of constants and the classes of children that nothing calls; may be null.
  const nn::Module* root = nullptr;
};

// A graph as TorchScript has it: every argument is a value, constants and containers included. It is made to
// be read, not changed: the Graph stays the truth. Copies are handles to the same lines.
class ScriptGraph {
 public:
  // The lines live as long as a handle to them: a view that is only passing has none to give.
  const std::vector<const ScriptValue*>& inputs() const& noexcept { return inputs_; }
  const std::vector<const ScriptValue*>& outputs() const& noexcept { return outputs_; }
  const std::vector<const ScriptNode*>& nodes() const& noexcept { return nodes_; }
  void inputs() && = delete;
  void outputs() && = delete;
  void nodes() && = delete;
  // "forward"; further calls of one module are "forward1", "forward2", ...
  const std::string& name() const noexcept { return name_; }
  // Of the module whose method it is, "layer1.0"; empty for the program itself.
  const std::string& path() const noexcept { return path_; }
  // The methods that it calls, in the order of the calls; they call others in turn.
  const std::vector<std::shared_ptr<const ScriptGraph>>& callees() const noexcept { return callees_; }

  // How many nodes are of this kind; methods that it calls do not count.
  size_t count(std::string_view kind) const;
  // "graph(%x : Tensor):", a line a node, "  return (%3)", then what is forked: "with prim::fork_0 =
  // graph(...".
  std::string to_string() const;
  // "def forward(self,\n    x: Tensor) -> Tensor:", statements.
  std::string code() const;

 private:
  friend class ScriptBuilder;
  friend class ScriptCalls;

  std::shared_ptr<ScriptStore> store_;  // of all graphs of one view
  std::vector<const ScriptValue*> inputs_, outputs_;
  std::vector<const ScriptNode*> nodes_;
  std::vector<std::shared_ptr<const ScriptGraph>> callees_;
  std::string name_, path_;
  bool is_method_ = false, with_types_ = true, with_sources_ = false;
};

// The graph in TorchScript's form. Types come from what nodes note of their values, scopes and calls from the
// modules that they note around them. It reads these further notes (`NodeMeta::extra`):
//   "named"     true: the value has the node's name; a string: that one; otherwise it has a number
//   "inplace"   1 for a custom function that writes to an argument
//   "constant"  true: what a get_attr reads is a constant, not an attribute of self
ScriptGraph script_view(const Graph& graph, const ScriptOptions& options = {});
// The same with the module's constants and classes; a `root` in the options goes before.
ScriptGraph script_view(const GraphModule& module, ScriptOptions options = {});

//   graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu)):
//     %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]()
//     %2 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = aten::mul(%x, %1)
//     return (%2)
std::string script_text(const Graph& graph, const ScriptOptions& options = {});
std::string script_text(const GraphModule& module, const ScriptOptions& options = {});

//   def forward(self,
//       x: Tensor) -> Tensor:
//     return torch.mul(x, CONSTANTS.c0)
std::string script_code(const Graph& graph, const ScriptOptions& options = {});
std::string script_code(const GraphModule& module, const ScriptOptions& options = {});

}  // namespace weft
