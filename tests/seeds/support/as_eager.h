// Exported programs beside the modules that they come from.
#pragma once

#include <gtest/gtest.h>

#include "seeds/support/export_variants.h"
#include "support/tensors.h"

namespace weft::testing {

// The same tree with tensors of its own.
inline Value own_tensors(const Value& tree) {
  return tree_map_only(
      Value::Kind::kTensor, [](const Value& leaf) { return Value(leaf.to_tensor().detach().clone()); }, tree);
}
inline ValueList own_tensors(const ValueList& values) { return own_tensors(Value::list(values)).elements(); }
inline Kwargs own_tensors(Kwargs kwargs) {
  for (auto& [name, value] : kwargs) value = own_tensors(value);
  return kwargs;
}

// The same structure, close tensors, equal other leaves.
inline void expect_close_trees(const Value& got, const Value& wanted) {
  const FlatTree a = tree_flatten(got), b = tree_flatten(wanted);
  ASSERT_EQ(a.spec.to_string(), b.spec.to_string());
  for (size_t i = 0; i < a.leaves.size(); ++i) {
    if (a.leaves[i].is_tensor() && b.leaves[i].is_tensor())
      EXPECT_TRUE(close(a.leaves[i].to_tensor(), b.leaves[i].to_tensor(), 1e-5, 1e-5)) << "leaf " << i;
    else EXPECT_EQ(a.leaves[i].to_string(), b.leaves[i].to_string()) << "leaf " << i;
  }
}

template <typename M>
Value eager_result(const M& module, const ValueList& args, const Kwargs& kwargs = {}) {
  return nn::detail::erased_call(module)->call(args, kwargs);
}

// The program's module gives what the C++ module gives, and does to its arguments what that does.
template <typename M>
void expect_as_eager(const ExportedProgram& program, const M& module, const ValueList& args,
                     const Kwargs& kwargs = {}) {
  const ValueList for_eager = own_tensors(args), for_program = own_tensors(args);
  const Kwargs names_for_eager = own_tensors(kwargs), names_for_program = own_tensors(kwargs);
  const Value wanted = eager_result(module, for_eager, names_for_eager);
  expect_close_trees(program.module().call(for_program, names_for_program), wanted);
  expect_close_trees(Value::list(for_program), Value::list(for_eager));
  for (size_t i = 0; i < kwargs.size(); ++i)
    expect_close_trees(names_for_program[i].second, names_for_eager[i].second);
}

// Exports a module with its arguments, and compares.
template <typename M>
void expect_exports_as_eager(const Exporter& exports, const M& module, const ValueList& args,
                             const Kwargs& kwargs = {}) {
  expect_as_eager(exports(module, args, {.kwargs = kwargs}), module, args, kwargs);
}

// Code without the empty lines around it.
inline std::string stripped_code(const GraphModule& module) {
  const std::string code = module.code();
  const size_t first = code.find_first_not_of(" \n"), last = code.find_last_not_of(" \n");
  return code.substr(first, last - first + 1);
}

// How many calls of the operator a graph has.
inline size_t count_calls(const GraphModule& module, std::string_view operator_name) {
  size_t count = 0;
  for (const Node& node : module.graph())
    count += node.target().op() && node.target().op()->name() == operator_name;
  return count;
}

}  // namespace weft::testing
