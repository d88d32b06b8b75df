#include "graph/support/hand_written.h"

#include "weft/core/callable.h"
#include "weft/graph/interpreter.h"
#include "weft/ops/define.h"

namespace weft::testing {
namespace {

struct Whole final : Callable {
  std::string name;
  Value call(Args) override { return {}; }
  std::string type_name() const override { return name; }
};

const PythonFunction kCall = {"weft.call", "", [](Args) { return Value(); }, true};

// Reads one size. The operator may not be there yet under its own name.
const Operator& size_operator() {
  static const Operator& op = []() -> const Operator& {
    if (const Operator* known = find_operator("aten::sym_size.int")) return *known;
    return define_operator("aten::sym_size.int(Tensor self, int dim) -> SymInt",
                           {.kernel = [](const Tensor& self, int64_t dim) { return self.size(dim); }});
  }();
  return op;
}

}  // namespace

Value HandWritten::note(Node& node, const Value& example) {
  examples_[&node] = example;
  node.meta().value = noted_form(example);
  node.meta().modules = modules_;
  return value_of(node);
}

Value HandWritten::evaluated(const Value& value) const {
  return map_nodes(value, [&](Node& node) { return examples_.at(&node); });
}

const Value& HandWritten::example(const Value& node) const { return examples_.at(node_in(node)); }

Value HandWritten::input(const std::string& name, const Value& example) {
  return note(graph_.placeholder(name), example);
}

Value HandWritten::attribute(const std::string& path, const Tensor& tensor) {
  Node*& node = attribute_nodes_[path];
  if (!node) {
    node = &graph_.get_attr(path);
    attributes_.emplace_back(path, tensor);
    note(*node, tensor);
  }
  return value_of(*node);
}

Value HandWritten::call(std::string_view name, ValueList args, const Kwargs& kwargs) {
  Node& node = graph_.call_function(name, args, kwargs);
  Kwargs named;
  for (const auto& [key, value] : kwargs) named.emplace_back(key, evaluated(value));
  for (Value& arg : args) arg = evaluated(arg);
  return note(node, call_target(node.target(), args, named));
}

Value HandWritten::size(const Value& x, int64_t dim) {
  return note(graph_.call(size_operator(), {x, dim}), example(x).to_tensor().size(dim));
}

Value HandWritten::call_whole(const std::string& function, ValueList args, const Value& result,
                              int64_t inplace) {
  auto whole = make_ref<Whole>();
  whole->name = function;
  args.insert(args.begin(), Value(Ref<ValueObject>(whole)));
  Node& node = graph_.call(kCall, std::move(args));
  note(node, result);
  node.meta().extra.set("inplace", inplace);
  return value_of(node);
}

Value HandWritten::named(const std::string& name, const Value& node) {
  node_in(node)->meta().extra.set("named", name);
  return node;
}

void HandWritten::is_module(const std::string& class_name) {
  modules_ = {{"__module", class_name, next_call_++}};
}

HandWritten::Inside::Inside(HandWritten& program, const std::string& path, const std::string& class_name)
    : program_(program) {
  program.modules_.push_back({"__module." + path, class_name, program.next_call_++});
}

GraphModule HandWritten::returns(const Value& result) {
  graph_.output(result);
  graph_.lint();
  return GraphModule(attributes_, std::move(graph_));
}

}  // namespace weft::testing
