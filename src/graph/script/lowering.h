#pragma once

#include "graph/script/builder.h"

namespace weft {

// Turns nodes with inline arguments into lines whose arguments are all values.
class ScriptLowering {
 public:
  ScriptLowering(const Graph& graph, const ScriptOptions& options);
  ScriptProgram run();

 private:
  // What a node gave: a value, or several of which a use of the whole makes a tuple.
  struct Lowered {
    ScriptValue* value = nullptr;
    std::vector<Lowered> items = {};
  };
  using Inputs = ScriptBuilder::Inputs;
  using Keyed = std::pair<Value, Node*>;  // a node that takes one item, and which

  // --- calls ---

  void note_classes();
  void lower(const Node& node);
  void lower_operator(const Node& node, const Operator& op);
  void lower_size(const Node& node, const Operator& op, const ValueList& args);
  void lower_function(const Node& node);
  std::string called_function(const Node& node) const;
  void lower_getitem(const Node& node);
  // One that was captured before.
  void lower_captured(const Node& node, const std::string& name);
  void lower_fork(const Node& node);
  // A custom autograd function, or one that nothing is known of.
  void lower_custom(const Node& node, const std::string& name);
  // An operator that the table does not have.
  void lower_missing(const Node& node);
  void lower_module(const Node& node);
  void lower_method(const Node& node);
  void lower_output(const Node& node);
  // Arithmetic of Python, on tensors and on sizes, which are tensors here; false for any other function.
  bool lower_arithmetic(const Node& node);
  ScriptValue* operand(const Value& value, bool is_plain);

  // --- results ---

  void define(const Node& node, Lowered lowered);
  // Takes what a node gave apart, for the getitem nodes that use it.
  void take_apart(const Node& node, Lowered& lowered);
  void unpack(const Node& node, Lowered& lowered, const std::vector<Keyed>& takers);
  void look_up(const Node& node, const Lowered& lowered, const std::vector<Keyed>& takers);

  // --- arguments ---

  Inputs arguments(const Operator& op, const ValueList& values);
  Inputs arguments(const Node& node, size_t first);
  // One argument; a null `wanted` is whatever the value is.
  ScriptValue* argument(const Value& value, const Type* wanted);
  ScriptValue* list_argument(const Value& value, const Type& wanted);
  ScriptValue* container(const Value& value);
  ScriptValue* dictionary(const Dict& dict);
  // What a node gave as one value, in a place that wants this type.
  ScriptValue* use(const Node& node, const Type* wanted);
  ScriptValue* converted(ScriptValue* value, const Type& wanted);
  ScriptValue* as_tensor(ScriptValue* number);
  ScriptValue* whole(const Lowered& lowered);
  ScriptValue* attribute(const Node& node);
  ScriptValue* attribute_constant(const Node& node, const std::string& path);

  const Graph& graph_;
  const ScriptOptions& options_;
  ScriptBuilder builder_;
  std::unordered_map<const Node*, Lowered> lowered_;
  bool in_output_ = false;
};

// What the module has under the path; None when it has nothing there.
Value found_in(const nn::Module* root, const std::string& path);
// What a node notes of its value; None where it notes nothing.
const Value& noted_value(const Node& node);
// What else it notes, by name; null where it does not.
const Value* noted_extra(const Node& node, std::string_view name);
// Of the value that a node notes, or else the type that it declares; a tensor where it has neither.
ScriptType noted_type(const Node& node);
// Of schemas: symbolic numbers are numbers, enumerations are their numbers.
ScriptType script_type_of(const Type& type);
// Of a 0-d tensor that holds a number.
ScriptType number_tensor_type(DType dtype, std::optional<bool> requires_grad = false);

}  // namespace weft
