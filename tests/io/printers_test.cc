// Every printer on graphs whose arguments are anything at all: a text or an error that says why there is
// none.
#include <gtest/gtest.h>

#include "support/random_graph.h"
#include "support/tensors.h"
#include "weft/capture/make_graph.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/func/control_flow.h"
#include "weft/graph/parse.h"
#include "weft/graph/picture.h"
#include "weft/graph/script_view.h"
#include "weft/graph/text.h"
#include "weft/io/folder.h"
#include "weft/io/graph_file.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

// Whether it has a text, and not: an error of another kind than weft's, which the test program reports.
template <typename F>
bool has_text(const F& print) {
  try {
    return !print().empty();
  } catch (const UserError&) {
    return false;
  } catch (const UnsupportedError&) {
    return false;
  }
}

int print_all(const GraphModule& module) {
  const Graph& graph = module.graph();
  int texts = 0;
  texts += has_text([&] { return graph.code(); });
  texts += has_text([&] { return graph.to_string(); });
  texts += has_text([&] { return graph.tabular(); });
  texts += has_text([&] { return readable(module); });
  texts += has_text([&] { return quoted_text(graph); });
  texts += has_text([&] { return svg(graph); });
  texts += has_text([&] { return dot(graph); });
  texts += has_text([&] { return script_text(module); });
  texts += has_text([&] { return script_code(module); });
  texts += has_text([&] { return script_text(module, {.inline_calls = false, .self_type = "__torch__.M"}); });
  texts +=
      has_text([&] { return script_code(module, {.pool_constants = true, .self_type = "__torch__.M"}); });
  texts += has_text([&] { return cpp_source(module, "Printed").source; });
  texts += has_text([&] { return graph_module_bytes(module); });
  return texts;
}

std::vector<GraphModule> valid_graphs() {
  std::vector<GraphModule> graphs;
  const Tensor x = randn({4, 3}), i = from_data<int64_t>({0, 2});
  auto several = [](const Tensor& a, const Tensor& b) {
    auto [values, indices] = a.max(1, true);
    std::vector<Tensor> parts = a.split(2, 0);
    Tensor q = cat({a.index({b}), parts[1]}, 0).clone();
    q.select(0, 1).mul_(2);
    return std::tuple(values, indices, q, a.sum({0, 1}), std::string("it's"));
  };
  graphs.push_back(make_graph(several)(x, i));
  graphs.push_back(make_graph(
      [](const Tensor& a) { return std::tuple(a.view({a.size(0) * 2, -1}), zeros({a.size(1)}) + a.size(0)); },
      {.mode = CaptureMode::kSymbolic})(randn({4, 6})));
  graphs.push_back(make_graph([](const Tensor& a) {
    return func::cond(
        a.sum() > 0, [](const Tensor& t) { return t.cos(); }, [](const Tensor& t) { return t.sin(); }, a);
  })(x));
  graphs.push_back(symbolic_trace([](Var a, Var b) {
    assert_that(a == b["n"], "must be equal");
    return a + b["x"];
  }));
  graphs.push_back(symbolic_trace([](const Tensor& a) { return a.relu().add_(1) + a.size(0); }));
  return graphs;
}

// One change of what a node is given, which no check sees.
void change_arguments(Graph& graph, testing::RandomGraph& random) {
  std::vector<Node*> nodes;
  for (Node& node : graph) nodes.push_back(&node);
  Node& node = *nodes[random.below(nodes.size())];
  ValueList args = node.args();
  auto other = [&]() -> Value {
    Node& input = *nodes[random.below(nodes.size())];
    const bool is_before = graph.is_before(input, node);
    return is_before && random.below(2) ? value_of(input) : random.constant(2);
  };
  switch (random.below(6)) {
    case 0:
      args.clear();
      break;
    case 1:
      if (!args.empty()) args.pop_back();
      break;
    case 2:
      args.push_back(other());
      break;
    case 3:
      if (!args.empty()) args[random.below(args.size())] = other();
      break;
    case 4:
      if (!args.empty()) args.erase(args.begin());
      break;
    default:
      node.set_kwargs({{random.below(2) ? "dim" : "other", other()}});
      return;
  }
  node.set_args(std::move(args));
}

TEST(Printers, GiveATextOrAnErrorWhateverTheArgumentsAre) {
  const std::vector<GraphModule> valid = valid_graphs();
  for (const GraphModule& module : valid) EXPECT_GE(print_all(module), 9);
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomGraph random(seed);
    GraphModule changed = valid[seed % valid.size()].deep_copy();
    for (size_t k = 1 + random.below(4); k > 0; --k) change_arguments(changed.graph(), random);
    EXPECT_GE(print_all(changed), 4) << changed.graph().to_string();
  }
}

TEST(Printers, GiveATextOrAnErrorForAnyGraph) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(seed);
    GraphModule module;
    module.set_graph(testing::RandomGraph(seed).make(1 + seed % 12));
    EXPECT_GE(print_all(module), 3) << module.graph().to_string();
  }
}

TEST(Printers, AnItemThatIsFarOutMakesNoListOfThatLength) {
  Graph graph = parse_code(
      "def forward(self, x):\n    unbind = torch.ops.aten.unbind.int(x)\n    a = unbind[1000000000000]\n"
      "    return a\n");
  EXPECT_NE(script_text(graph).find("aten::__getitem__"), std::string::npos);
}

}  // namespace
}  // namespace weft
