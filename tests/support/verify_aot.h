#pragma once

#include <functional>

#include "weft/aot/compile.h"

namespace weft::testing {

// A function with types as one of Values.
template <typename F>
ValueFunction program(F f) {
  return make_callable(std::move(f));
}
// A tensor whose gradient is wanted, or not.
inline Tensor aot_leaf(const Tensor& tensor, bool requires_grad = true) {
  return tensor.set_requires_grad(requires_grad);
}

struct MadeInputs {
  ValueList leaves;  // whose gradients are compared
  ValueList inputs;  // of the function, made from them
};

struct VerifyAot {
  bool test_mutation = false;         // the inputs are leaves + 1, and every output is written to in the end
  bool keep_input_mutations = false;  // only with writes kept in the graph; otherwise with and without
  bool dynamic = false;
  // Compares what `compile` makes of it, too, which sees a captured graph.
  bool captured_first = true;
  // Whether what is captured can be kept in a compile cache: not extensions, not custom functions.
  bool strict_cache = true;
  Decompositions decompositions = {};
  aot::Partitioner partitioner = aot::default_partition;
};

// Compares a function with its compiled form on two copies of the inputs: outputs, gradients, requires_grad,
// leaf or not, what shares memory with what, what writes to outputs do, and the inputs afterwards. The last
// forward graph that was compiled.
GraphModule verify_aot_autograd(const ValueFunction& f, const ValueList& inputs,
                                const VerifyAot& options = {});
GraphModule verify_aot_autograd(const ValueFunction& f, const std::function<MadeInputs()>& maker,
                                const VerifyAot& options = {});
// The same for what calls a compiled form of the function, made by `compile`.
using CompileFunction = std::function<ValueFunction(const AotOptions&)>;
GraphModule verify_compiled(const ValueFunction& eager, const CompileFunction& compile,
                            const std::function<MadeInputs()>& maker, const VerifyAot& options);

// The tensors that two extensions, or tensors, are made of are equal.
void expect_same_parts(const Tensor& got, const Tensor& wanted);

// The code of a graph without space around it.
std::string code_of(const GraphModule& module);
// The same with the numbers of names given anew in the order of the statements, and runs of `detach` as one:
// what rows compare.
std::string canonical(const std::string& code);

// The graphs that a function and its backward are compiled to.
struct Graphs {
  GraphModule forward, backward;
};
struct GraphOptions {
  aot::Partitioner partitioner = aot::min_cut_partitioner();
  bool dynamic = false;
};
Graphs forward_and_backward(const ValueFunction& f, const ValueList& inputs,
                            const GraphOptions& options = {});
// How many inputs and outputs a graph has.
struct Counts {
  size_t inputs = 0, outputs = 0;
  bool operator==(const Counts&) const = default;
};
Counts counts_of(const GraphModule& graph);
std::vector<Node*> output_nodes(const GraphModule& graph);

// What a graph returns as expressions over its inputs: the same for graphs that differ in the order of
// independent statements, and in how often they compute one value.
std::string returned_expressions(const std::string& code);

}  // namespace weft::testing

// Compares the code of a graph with the text of a row, up to numbers of names.
#define EXPECT_GRAPH(module, text) \
  EXPECT_EQ(::weft::testing::canonical(::weft::testing::code_of(module)), ::weft::testing::canonical(text))
// The same for rows whose functionalisation replays views at other times than weft's does.
#define EXPECT_SAME_RESULTS(module, text)                                            \
  EXPECT_EQ(::weft::testing::returned_expressions(::weft::testing::code_of(module)), \
            ::weft::testing::returned_expressions(text))
