#pragma once

#include <unordered_map>

#include "io/cpp_text.h"
#include "weft/graph/node.h"

// Calls of operators and functions of a graph as C++ expressions.

namespace weft {

// What the variable of a node is.
enum class Held : uint8_t { kNothing, kTensor, kTensors, kTuple, kValue };

struct Local {
  std::string name;
  Held held = Held::kValue;
};
using Locals = std::unordered_map<const Node*, Local>;

struct Expression {
  std::string text;
  Held held = Held::kValue;
};

// Writes the expressions of one function, whose variables are `locals`.
class CallWriter {
 public:
  explicit CallWriter(const Locals& locals) : locals_(locals) {}

  // The result of a call_function or call_method node. An error that names the node where an argument has no
  // C++ form.
  Expression call(const Node& node) const;
  // Any argument as something that converts to a Value.
  std::string value(const Node& node, const Value& value) const;
  std::string values(const Node& node, Args values) const;  // "a, b"
  // An error for a node that gives nothing that a variable could hold.
  const Local& local(const Node& node) const;

 private:
  Expression operator_call(const Node& node, const Operator& op, const ValueList& args) const;
  std::optional<std::string> typed_call(const Operator& op, const ValueList& args) const;
  std::optional<std::string> argument(const Type& type, const Value& value, bool exact) const;
  std::optional<std::string> plain_argument(const Type& type, const Value& value, bool exact) const;
  std::optional<std::string> list_argument(const Type& type, const Value& value, bool exact) const;
  std::optional<std::string> from_local(const Type& type, const Node& node) const;
  Expression function_call(const Node& node, const PythonFunction& function) const;
  std::optional<Expression> item(const Node& node) const;
  Expression method_call(const Node& node) const;
  bool holds_tensor(const Value& value) const;

  const Locals& locals_;
};

}  // namespace weft
