#pragma once

#include <unordered_map>

#include "weft/graph/script_view.h"

namespace weft {

// Until a view is finished, values and nodes are numbered by their index here.
struct ScriptStore {
  std::deque<ScriptValue> values;
  std::deque<ScriptNode> nodes;

  ScriptNode& make_node(std::string kind, std::vector<const ScriptValue*> inputs);
  ScriptValue& make_value(ScriptType type, const ScriptNode* node);
};

// What the paths of a module's children begin with.
std::string prefix_of_children(const ModuleScope& root);

// One call of a module, or the program itself, while a view is made.
struct ScriptBlock {
  ScriptBlock* parent = nullptr;
  size_t depth = 0;
  std::string path, method;
  int64_t call_number = 0;      // as `ModuleScope` has it
  std::string module;           // as the node that opened it has it: "__module.layer1"
  std::string scope;            // of its lines; made when the first one is written
  ScriptNode* call = nullptr;   // in the parent
  ScriptValue* self = nullptr;  // null in a function
  std::vector<ScriptNode*> body;
  // The reads of attributes, one chain of GetAttr for each. They stand at the beginning, the latest first.
  std::vector<std::vector<ScriptNode*>> attribute_chains;
  std::unordered_map<std::string, ScriptValue*> attributes;  // by path from the root
  // Attributes that belong to an outer block, with what is known of them.
  std::vector<std::pair<ScriptValue*, ScriptType>> borrowed;
  std::vector<ScriptNode*> pooled;                          // constants, at the beginning
  std::unordered_map<std::string, ScriptValue*> pool;       // by type and text
  std::unordered_map<const Node*, ScriptValue*> constants;  // what get_attr nodes read, where constant
};

// A program in blocks, before calls are opened up or closed.
struct ScriptProgram {
  std::shared_ptr<ScriptStore> store;
  std::vector<std::unique_ptr<ScriptBlock>> blocks;  // the program itself first; each after its parent
  std::vector<const ScriptValue*> inputs;
  const ScriptValue* output = nullptr;
  // Numbers that tensors were turned into, behind the node of each tensor, the latest first; those of inputs
  // stand at the beginning, under null.
  std::unordered_map<const ScriptNode*, std::vector<ScriptNode*>> conversions;
  std::unordered_map<const ScriptNode*, ScriptBlock*> callees;  // of the calls that the blocks are
  std::vector<ScriptBlock*> homes;                              // of the values

  ScriptValue& make_value(ScriptType type, const ScriptNode* node, ScriptBlock& block);
  ScriptBlock& home(const ScriptValue& value) const { return *homes[value.number]; }

  // The lines of a block in their order.
  std::vector<ScriptNode*> lines(const ScriptBlock& block) const;
};

// Writes the lines of the script view: the block and the insertion point of the next line, and the lines
// themselves.
class ScriptBuilder {
 public:
  using Inputs = std::vector<const ScriptValue*>;

  explicit ScriptBuilder(const ScriptOptions& options);

  ScriptProgram& program() noexcept { return program_; }
  ScriptBlock& block() noexcept { return *here_; }

  // --- where lines go ---

  // Lines that follow are for this node. `modules` around it open and close blocks.
  void begin(const Node& node);
  // Lines that follow belong to no node and no module.
  void begin_output();
  // What is known of a module's class; what is known already stays.
  void note_class(const std::string& path, const std::string& class_name);
  void note_classes(const nn::Module& root);
  // The types of modules that were traced.
  void note_types(const nn::Module& root);

  // --- lines ---

  ScriptValue* input(std::string name, ScriptType type);
  ScriptNode& line(std::string kind, Inputs inputs);
  ScriptValue* result(ScriptNode& node, ScriptType type);
  // A line of one result.
  ScriptValue* value(std::string kind, Inputs inputs, ScriptType type);
  // The same of an operator, by its name without the namespace.
  ScriptValue* aten(std::string_view name, Inputs inputs, ScriptType type) {
    return value("aten::" + std::string(name), std::move(inputs), std::move(type));
  }
  // The same without a source location: what the program did not write.
  ScriptValue* made(std::string kind, Inputs inputs, ScriptType type);
  ScriptValue* constant(const Value& value, ScriptType type);
  ScriptValue* constant(const Value& value) { return constant(value, ScriptType::of(value)); }
  // A function by its name.
  ScriptValue* function(const std::string& name);
  // What the path leads to from the root: a module, or a tensor of this type. Made once in each block.
  ScriptValue* module_attribute(const std::string& path);
  ScriptValue* tensor_attribute(const std::string& path, const ScriptType& type);
  // The tensor's number, written behind the tensor. `kind` is "Int", "Float", ...
  ScriptValue* conversion(const ScriptValue& tensor, std::string_view kind, ScriptType type);
  void name(ScriptValue* value, std::string name);

 private:
  ScriptBlock& open(ScriptBlock& parent, const std::string& path, const ModuleScope& module);
  const std::string& scope();
  ScriptValue* attribute_in(ScriptBlock& block, const std::string& path, const ScriptType& type);
  ScriptValue* chain(ScriptBlock& block, const std::string& path, const ScriptType& type);
  ScriptType class_type(const std::string& path) const;

  const ScriptOptions& options_;
  ScriptProgram program_;
  ScriptBlock* here_;
  const Node* origin_ = nullptr;
  std::string source_;
  std::unordered_map<std::string, std::string> types_;  // by the module's path
  std::unordered_map<std::string, int64_t> calls_;      // of each module so far
};

// The program's lines with the calls of modules opened up, or as graphs of their own.
class ScriptCalls {
 public:
  static ScriptGraph inlined(ScriptProgram program, const ScriptOptions& options);
  static ScriptGraph separate(ScriptProgram program, const ScriptOptions& options);

 private:
  explicit ScriptCalls(ScriptProgram program, const ScriptOptions& options);
  void export_values();
  const ScriptValue* exported(const ScriptValue* value, const ScriptBlock& user);
  void import_values(ScriptBlock& block);
  void close_results(ScriptBlock& block);
  ScriptGraph graph_of(const ScriptBlock& block);
  ScriptGraph finish(ScriptGraph graph);
  void choose_names(const ScriptGraph& graph);

  struct Interface {
    std::vector<ScriptNode*> lines;
    std::vector<const ScriptValue*> inputs, outputs;
    std::unordered_map<const ScriptValue*, ScriptValue*> exports;  // to the value in the parent
  };

  ScriptProgram program_;
  const ScriptOptions& options_;
  std::unordered_map<const ScriptBlock*, Interface> interfaces_;
  std::unordered_map<const ScriptNode*, ScriptNode*> unpacks_;  // behind calls of several results
  std::unordered_map<const ScriptBlock*, std::shared_ptr<ScriptGraph>> graphs_;
  std::vector<std::string> names_;                    // of the values
  std::vector<size_t> value_numbers_, node_numbers_;  // in their graphs
};

}  // namespace weft
