#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/graph/graph_module.h"
#include "weft/ops/functions.h"

namespace weft::testing {

// A graph written call by call, as a tracer writes it: what is called runs on examples, and every node notes
// what it gave and the modules around it. Values that stand for nodes are given out and taken.
class HandWritten {
 public:
  Value input(const std::string& name, const Value& example);
  // What a module owns, under its path; made on first use.
  Value attribute(const std::string& path, const Tensor& tensor);
  // An operator or a function of Python, by its name.
  Value call(std::string_view name, ValueList args, const Kwargs& kwargs = {});
  Value item(const Value& container, const Value& key) { return call("operator.getitem", {container, key}); }
  // x.size(dim), as captures write it.
  Value size(const Value& x, int64_t dim);
  // A function that stays whole; "^Foo" is a custom autograd function.
  Value call_whole(const std::string& function, ValueList args, const Value& result, int64_t inplace = 0);
  // A local variable's name for what a node gave.
  Value named(const std::string& name, const Value& node);
  // What a node gave on the examples.
  const Value& example(const Value& node) const;

  // While it lives, nodes are written inside a call of the module.
  class Inside {
   public:
    Inside(HandWritten& program, const std::string& path, const std::string& class_name);
    ~Inside() { program_.modules_.pop_back(); }
    Inside(const Inside&) = delete;

   private:
    HandWritten& program_;
  };
  // The program is a module itself; otherwise it is a function.
  void is_module(const std::string& class_name);

  GraphModule returns(const Value& result);

 private:
  Value note(Node& node, const Value& example);
  Value evaluated(const Value& value) const;

  Graph graph_;
  std::unordered_map<const Node*, Value> examples_;
  std::unordered_map<std::string, Node*> attribute_nodes_;
  GraphModule::Attributes attributes_;
  std::vector<ModuleScope> modules_;
  int64_t next_call_ = 0;
};

inline Tensor square() { return ones({2, 2}); }

}  // namespace weft::testing
