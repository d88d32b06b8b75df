// The calls of modules in the script view: opened up, or as graphs of their own with what goes in and out.
#include <algorithm>

#include "graph/script/builder.h"
#include "weft/base/error.h"

namespace weft {

using Kind = ScriptType::Kind;

ScriptCalls::ScriptCalls(ScriptProgram program, const ScriptOptions& options)
    : program_(std::move(program)), options_(options) {}

// --- opened up -------------------------------------------------------------------------------------------

ScriptGraph ScriptCalls::inlined(ScriptProgram program, const ScriptOptions& options) {
  ScriptCalls calls(std::move(program), options);
  ScriptProgram& from = calls.program_;
  ScriptGraph graph;
  graph.inputs_ = from.inputs;
  graph.outputs_ = {from.output};
  struct Open {
    std::vector<ScriptNode*> lines;
    size_t next = 0;
  };
  std::vector<Open> open = {{from.lines(*from.blocks[0])}};
  while (!open.empty()) {
    if (open.back().next == open.back().lines.size()) {
      open.pop_back();
      continue;
    }
    ScriptNode* line = open.back().lines[open.back().next++];
    auto callee = from.callees.find(line);
    if (callee == from.callees.end()) graph.nodes_.push_back(line);
    else open.push_back({from.lines(*callee->second)});
  }
  return calls.finish(std::move(graph));
}

// --- as graphs of their own ------------------------------------------------------------------------------

ScriptGraph ScriptCalls::separate(ScriptProgram program, const ScriptOptions& options) {
  ScriptCalls calls(std::move(program), options);
  std::vector<std::unique_ptr<ScriptBlock>>& blocks = calls.program_.blocks;
  for (const auto& block : blocks) {
    Interface& interface = calls.interfaces_[block.get()];
    interface.lines = calls.program_.lines(*block);
    if (block->parent) interface.inputs = {block->self};
    else interface.inputs = calls.program_.inputs;
  }
  calls.export_values();
  calls.interfaces_[blocks[0].get()].outputs = {calls.program_.output};
  // What a call needs is known once the calls inside it are: those come later among the blocks.
  for (size_t i = blocks.size(); i-- > 0;) calls.import_values(*blocks[i]);
  for (size_t i = blocks.size(); i-- > 1;) calls.close_results(*blocks[i]);
  for (size_t i = blocks.size(); i-- > 1;)
    calls.graphs_[blocks[i].get()] = std::make_shared<ScriptGraph>(calls.graph_of(*blocks[i]));
  return calls.finish(calls.graph_of(*blocks[0]));
}

namespace {

bool is_around(const ScriptBlock& outer, const ScriptBlock& block) {
  const ScriptBlock* at = &block;
  while (at->depth > outer.depth) at = at->parent;
  return at == &outer;
}

}  // namespace

// A value that is used outside of the call that made it becomes a result of the call, and of every call
// around that one up to the user. It does so once, whoever uses it.
const ScriptValue* ScriptCalls::exported(const ScriptValue* value, const ScriptBlock& user) {
  for (ScriptBlock* block = &program_.home(*value); !is_around(*block, user); block = block->parent) {
    Interface& interface = interfaces_.at(block);
    ScriptValue*& outside = interface.exports[value];
    if (!outside) {
      interface.outputs.push_back(value);
      outside = &program_.make_value(value->type, block->call, *block->parent);
    }
    value = outside;
  }
  return value;
}

// In the order in which the program uses the values: that is the order of the results of calls.
void ScriptCalls::export_values() {
  struct Open {
    const ScriptBlock* block;
    size_t next = 0;
  };
  std::vector<Open> open = {{program_.blocks[0].get()}};
  while (!open.empty()) {
    const ScriptBlock* block = open.back().block;
    const std::vector<ScriptNode*>& lines = interfaces_.at(block).lines;
    if (open.back().next == lines.size()) {
      open.pop_back();
      continue;
    }
    ScriptNode* line = lines[open.back().next++];
    for (const ScriptValue*& input : line->inputs) input = exported(input, *block);
    auto callee = program_.callees.find(line);
    if (callee != program_.callees.end()) open.push_back({callee->second});
  }
  program_.output = exported(program_.output, *program_.blocks[0]);
}

// What a block uses of the blocks around it becomes its inputs, in the order of first use.
void ScriptCalls::import_values(ScriptBlock& block) {
  Interface& interface = interfaces_.at(&block);
  std::unordered_map<const ScriptValue*, const ScriptValue*> inside;
  auto import_as = [&](const ScriptValue* value, const ScriptType& type, bool with_name) {
    invariant(block.parent != nullptr, "a value of a call was not given to its caller");
    ScriptValue& input = program_.make_value(type, nullptr, block);
    if (with_name) input.name = value->name, input.is_named = value->is_named;
    interface.inputs.push_back(&input);
    block.call->inputs.push_back(value);
    return inside[value] = &input;
  };
  auto imported = [&](const ScriptValue* value) {
    if (&program_.home(*value) == &block) return value;
    auto known = inside.find(value);
    return known == inside.end() ? import_as(value, value->type, true) : known->second;
  };
  for (const auto& [value, type] : block.borrowed) import_as(value, type, false);
  for (ScriptNode* line : interface.lines)
    for (const ScriptValue*& input : line->inputs) input = imported(input);
}

// A call gives one value: None, the one result, or a tuple of them that the caller takes apart.
void ScriptCalls::close_results(ScriptBlock& block) {
  Interface& interface = interfaces_.at(&block);
  ScriptNode& call = *block.call;
  auto end_with = [&](std::string kind, std::vector<const ScriptValue*> inputs, ScriptType type) {
    ScriptNode& node = program_.store->make_node(std::move(kind), std::move(inputs));
    node.outputs.push_back(&program_.make_value(std::move(type), &node, block));
    interface.lines.push_back(&node);
    return node.outputs[0];
  };
  if (interface.outputs.empty()) {
    call.outputs = {&program_.make_value({.kind = Kind::kNone}, &call, *block.parent)};
    interface.outputs = {end_with("prim::Constant", {}, {.kind = Kind::kNone})};
    return;
  }
  std::vector<const ScriptValue*> outside;
  std::vector<ScriptType> types;
  for (const ScriptValue* value : interface.outputs) {
    outside.push_back(interface.exports.at(value));
    types.push_back(value->type);
  }
  if (outside.size() == 1) {
    call.outputs = outside;
    return;
  }
  ScriptType type = ScriptType::tuple(std::move(types));
  call.outputs = {&program_.make_value(type.erased(), &call, *block.parent)};
  ScriptNode& unpack = program_.store->make_node("prim::TupleUnpack", {call.outputs[0]});
  for (const ScriptValue* value : interface.outputs) interface.exports.at(value)->node = &unpack;
  unpack.outputs = std::move(outside);
  unpacks_[&call] = &unpack;
  interface.outputs = {end_with("prim::TupleConstruct", interface.outputs, std::move(type))};
}

ScriptGraph ScriptCalls::graph_of(const ScriptBlock& block) {
  Interface& interface = interfaces_.at(&block);
  ScriptGraph graph;
  graph.inputs_ = interface.inputs;
  graph.outputs_ = interface.outputs;
  graph.name_ = block.method;
  graph.path_ = block.path;
  for (ScriptNode* line : interface.lines) {
    graph.nodes_.push_back(line);
    auto callee = program_.callees.find(line);
    if (callee != program_.callees.end()) {
      graph.callees_.push_back(graphs_.at(callee->second));
      line->callee = graph.callees_.back().get();
    }
    auto unpack = unpacks_.find(line);
    if (unpack != unpacks_.end()) graph.nodes_.push_back(unpack->second);
  }
  return graph;
}

// --- names -----------------------------------------------------------------------------------------------

namespace {

// Which value has which name. As in TorchScript a name goes to who asked for it last: who had it before gets
// one with a number, "x.1".
class TakenNames {
 public:
  explicit TakenNames(std::vector<std::string>& names) : names_(names) {}

  void give(const std::string& name, size_t value) {
    auto [owner, is_free] = owners_.try_emplace(name, value);
    if (!is_free) {
      const size_t before = std::exchange(owner->second, value);
      names_[before] = numbered(name);
      owners_.emplace(names_[before], before);
    }
    names_[value] = name;
  }

 private:
  std::string numbered(const std::string& name) {
    std::string base = name;
    int64_t number = 1;
    const size_t point = name.rfind('.');
    // Nine digits at most, which fit the number.
    const bool has_number = point != std::string::npos && point + 1 < name.size() &&
                            name.size() - point <= 10 &&
                            name.find_first_not_of("0123456789", point + 1) == std::string::npos;
    if (has_number) {
      base = name.substr(0, point);
      number = std::stoll(name.substr(point + 1));
    }
    auto [next, is_first] = next_.try_emplace(base, number);
    if (!is_first) number = std::max(number, next->second + 1);
    std::string free;
    do free = fmt::format("{}.{}", base, number++);
    while (owners_.contains(free));
    next->second = number;
    return free;
  }

  std::vector<std::string>& names_;
  std::unordered_map<std::string, size_t> owners_;
  std::unordered_map<std::string, int64_t> next_;  // number behind the point, by what stands before it
};

}  // namespace

void ScriptCalls::choose_names(const ScriptGraph& graph) {
  TakenNames taken(names_);
  size_t number = 0;
  auto choose = [&](const ScriptValue& value) {
    value_numbers_[value.number] = number;
    names_[value.number] = std::to_string(number++);
    if (!options_.canonical && value.is_named) taken.give(value.name, value.number);
  };
  for (const ScriptValue* input : graph.inputs()) choose(*input);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    node_numbers_[graph.nodes()[i]->number] = i;
    for (const ScriptValue* output : graph.nodes()[i]->outputs) choose(*output);
  }
}

ScriptGraph ScriptCalls::finish(ScriptGraph graph) {
  std::deque<ScriptValue>& values = program_.store->values;
  std::deque<ScriptNode>& nodes = program_.store->nodes;
  names_.resize(values.size());
  value_numbers_.resize(values.size());
  node_numbers_.resize(nodes.size());
  graph.name_ = options_.name;
  auto set_up = [&](ScriptGraph& one) {
    choose_names(one);
    one.is_method_ = !options_.self_type.empty();
    one.with_types_ = options_.types && !options_.canonical;
    one.with_sources_ = options_.sources;
    one.store_ = program_.store;
  };
  set_up(graph);
  for (auto& [block, method] : graphs_) set_up(*method);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].name = std::move(names_[i]);
    values[i].number = value_numbers_[i];
    values[i].is_named &= !options_.canonical;
    // Methods say no more of their results than that they are tensors, numbers, ...
    if (values[i].node && values[i].node->callee) values[i].type = values[i].type.erased();
  }
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].number = node_numbers_[i];
  return graph;
}

}  // namespace weft
