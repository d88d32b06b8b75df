#include "export/vmap_regions.h"

#include <gmock/gmock.h>

#include "support/expect_error.h"
#include "weft/core/from_data.h"
#include "weft/export/export_program.h"
#include "weft/nn/module.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

constexpr const char* kPrefix = "torch._functorch.predispatch.";

Node& predispatch(Graph& graph, const char* name, ValueList args) {
  return graph.call_function(std::string(kPrefix) + name, std::move(args));
}

GraphModule folded(Graph graph) {
  GraphModule::Attributes bodies;
  for (const auto& [path, body] : fold_vmap_regions(graph))
    bodies.emplace_back(path, Value(Ref<ValueObject>(body.callable())));
  return GraphModule(bodies, std::move(graph));
}

// For each row of x: the row times y, and its sum; the products' batch becomes dim 1.
Graph rows_times(const std::function<Node&(Graph&, Node&, Node&)>& product) {
  Graph graph;
  Node &x = graph.placeholder("x"), &y = graph.placeholder("y");
  predispatch(graph, "lazy_load_decompositions", {});
  predispatch(graph, "_vmap_increment_nesting", {3, "error"});
  Node& row = predispatch(graph, "_add_batch_dim", {value_of(x), 0, 1});
  Node& made = product(graph, row, y);
  Node& sum = graph.call_function("aten::sum", {value_of(made)});
  Node& products = predispatch(graph, "_remove_batch_dim", {value_of(made), 1, 3, 1});
  Node& sums = predispatch(graph, "_remove_batch_dim", {value_of(sum), 1, 3, 0});
  predispatch(graph, "_vmap_decrement_nesting", {});
  graph.output(Value::tuple({value_of(products), value_of(sums)}));
  return graph;
}

Node& times(Graph& graph, Node& row, Node& y) {
  return graph.call_function("aten::mul.Tensor", {value_of(row), value_of(y)});
}

TEST(VmapRegions, BecomeCallsOfVmap) {
  const GraphModule module = folded(rows_times(times));
  const Tensor x = from_data<float>({1, 2, 3, 4, 5, 6}, {3, 2}), y = from_data<float>({10, 100});
  const ValueList results = module.call({x, y}).elements();
  EXPECT_TRUE(equal(results[0].to_tensor(), x.mul(y).t()));
  EXPECT_TRUE(equal(results[1].to_tensor(), x.mul(y).sum({1})));
  EXPECT_EQ(module.graph().code().find("predispatch"), std::string::npos);
}

// With the arguments and results of the region.
struct RowsTimes : nn::Module {
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) {
    return {(x * y).t(), (x * y).sum({1})};
  }
  WEFT_ARGS(x, y)
};

TEST(VmapRegions, AreDecomposed) {
  const ExportedProgram plain = export_program(RowsTimes(), {ones({3, 2}), ones({2})});
  Graph graph = rows_times(times);
  for (size_t i = 0; i < 2; ++i)
    graph.placeholders()[i]->meta().value = plain.graph().placeholders()[i]->meta().value;
  ExportedProgram::Parts parts = plain.parts();
  parts.graph_module = GraphModule(std::move(graph));
  const ExportedProgram core = ExportedProgram::make(std::move(parts)).run_decompositions();
  EXPECT_EQ(core.graph().code().find("vmap"), std::string::npos) << core.graph().code();
  const Tensor x = from_data<float>({1, 2, 3, 4, 5, 6}, {3, 2}), y = from_data<float>({10, 100});
  const Value results = core.module().call({x, y});
  EXPECT_TRUE(equal(results.elements()[0].to_tensor(), x.mul(y).t()));
  EXPECT_TRUE(equal(results.elements()[1].to_tensor(), x.mul(y).sum({1})));
}

TEST(VmapRegions, ALevelEndsWhereTheRegionFails) {
  const GraphModule module = folded(rows_times(times));
  EXPECT_ERROR(module.call({ones({3, 2}), ones({5})}), "while calling");
  EXPECT_TRUE(equal(module.call({ones({3, 2}), ones({2})}).elements()[1].to_tensor(), full({3}, 2.0)));
}

TEST(VmapRegions, MayBeInsideEachOther) {
  // The product of a row and y, element by element.
  const GraphModule module = folded(rows_times([](Graph& graph, Node& row, Node& y) -> Node& {
    predispatch(graph, "_vmap_increment_nesting", {2, "error"});
    Node &a = predispatch(graph, "_add_batch_dim", {value_of(row), 0, 2}),
         &b = predispatch(graph, "_add_batch_dim", {value_of(y), 0, 2});
    Node& product = graph.call_function("aten::mul.Tensor", {value_of(a), value_of(b)});
    Node& out = predispatch(graph, "_remove_batch_dim", {value_of(product), 2, 2, 0});
    predispatch(graph, "_vmap_decrement_nesting", {});
    return out;
  }));
  const Tensor x = from_data<float>({1, 2, 3, 4, 5, 6}, {3, 2}), y = from_data<float>({10, 100});
  EXPECT_TRUE(equal(module.call({x, y}).elements()[0].to_tensor(), x.mul(y).t()));
}

TEST(VmapRegions, LevelsMustBeginAndEnd) {
  Graph open;
  predispatch(open, "_vmap_increment_nesting", {3, "error"});
  EXPECT_ERROR(fold_vmap_regions(open), "a level that '_vmap_increment_nesting' begins has no end");
  Graph closed;
  predispatch(closed, "_vmap_decrement_nesting", {});
  EXPECT_ERROR(fold_vmap_regions(closed), "'_vmap_decrement_nesting' ends a level that was not begun");
  Graph alone;
  Node& x = alone.placeholder("x");
  alone.output(value_of(predispatch(alone, "_add_batch_dim", {value_of(x), 0, 1})));
  EXPECT_ERROR(GraphModule(std::move(alone)).call({ones({2})}), "runs as part of its region only");
}

}  // namespace
}  // namespace weft
