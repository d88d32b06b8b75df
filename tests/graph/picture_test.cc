// Pictures of graphs: Graphviz text, SVG that is sound XML, and a layout in which nothing overlaps.
#include "weft/graph/picture.h"
#include "weft/graph/annotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/support/nodes.h"
#include "graph/text/layout.h"
#include "support/random_graph.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using testing::op;
using testing::v;

// What is wrong with a text as XML, or nothing. Knows elements, attributes in double quotes and the five
// entities, which is what svg() writes.
std::string xml_mistake(std::string_view text) {
  std::vector<std::string> open;
  bool has_root = false;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 && c != '\n') return "a control character";
    if (c == '&') {
      const size_t end = text.find(';', i);
      const std::string_view name = text.substr(i, end - i + 1);
      if (name != "&amp;" && name != "&lt;" && name != "&gt;" && name != "&quot;") return "an entity";
      i = end + 1;
    } else if (c == '<') {
      const bool closes = text.substr(i + 1, 1) == "/";
      size_t at = i + (closes ? 2 : 1);
      std::string name;
      while (at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]))) name += text[at++];
      if (name.empty()) return "an element without a name";
      bool is_empty = false;
      for (; at < text.size() && text[at] != '>'; ++at) {
        is_empty = text[at] == '/';
        if (text[at] == '<') return "a < inside an element";
        if (text[at] != '"') continue;
        const size_t end = text.find('"', at + 1);
        if (end == std::string_view::npos) return "an open attribute";
        if (text.substr(at, end - at).find_first_of("<>") != std::string_view::npos) return "an attribute";
        at = end;
      }
      if (open.empty() && has_root) return "a second root";
      has_root = true;
      if (closes) {
        if (open.empty() || open.back() != name) return "an element that ends another one: " + name;
        open.pop_back();
      } else if (!is_empty) {
        open.push_back(name);
      }
      i = at + 1;
    } else {
      if (open.empty() && c != '\n') return "text outside of elements";
      ++i;
    }
  }
  return open.empty() ? "" : "an element that does not end: " + open.back();
}

Graph small_graph() {
  Graph graph;
  Node& x = graph.placeholder("x");
  {
    FakeMode mode;
    x.meta().value = empty(std::vector<int64_t>{2, 3}, kFloat32);
  }
  Node& weight = graph.get_attr("layer.0.weight");
  Node& add = graph.call(op("aten::add.Tensor"), {v(x), v(weight)});
  add.meta().type = parse_annotation("torch.Tensor");
  add.meta().source = "net.cc:12";
  graph.output(v(add));
  return graph;
}

// --- Graphviz --------------------------------------------------------------------------------------------

TEST(Dot, SmallGraph) {
  EXPECT_EQ(dot(small_graph()), R"(digraph {
  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];
  edge [color="#7f8792"];
  n0 [label="x\nf32[2, 3]", tooltip="%x : [num_users=1] = placeholder[target=x]", fillcolor="#dcf1e1", color="#3f8f5b"];
  n1 [label="layer_0_weight\nlayer.0.weight", tooltip="%layer_0_weight : [num_users=1] = get_attr[target=layer.0.weight]", fillcolor="#fbf0cf", color="#a5832a"];
  n2 [label="add\naten.add.Tensor\ntorch.Tensor", tooltip="%add : torch.Tensor [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %layer_0_weight), kwargs = {}) at net.cc:12", fillcolor="#dde9f8", color="#3d6fa8"];
  n0 -> n2;
  n1 -> n2;
  n3 [label="output", tooltip="return add", fillcolor="#f7dcdc", color="#a84a4a"];
  n2 -> n3;
}
)");
}

TEST(Dot, EscapesLabels) {
  Graph graph;
  graph.get_attr("a\"b\\c\nd\xff");
  const std::string text = dot(graph);
  EXPECT_THAT(text, HasSubstr("label=\"a_b_c_d_\\na\\\"b\\\\c d?\""));
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

// --- SVG -------------------------------------------------------------------------------------------------

TEST(Svg, ShowsNamesTargetsTypesAndTooltips) {
  const std::string image = svg(small_graph());
  EXPECT_EQ(xml_mistake(image), "");
  EXPECT_THAT(image, HasSubstr("<title>A graph of 4 nodes</title>"));
  EXPECT_THAT(
      image, HasSubstr("<g class=\"placeholder\"><title>%x : [num_users=1] = placeholder[target=x]</title>"));
  EXPECT_THAT(image, HasSubstr(">aten.add.Tensor</text>"));
  EXPECT_THAT(image, HasSubstr("class=\"type\""));
  EXPECT_THAT(image, HasSubstr(">f32[2, 3]</text>"));
  EXPECT_THAT(image, HasSubstr("kwargs = {}) at net.cc:12</title>"));
}

TEST(Svg, IsSoundWhateverIsInIt) {
  Graph graph;
  Node& node = graph.call_module("<a href=\"x\">&'\x01\n\xff\xef\xbf\xbf", {"]]>", "&lt;"});
  node.meta().type = parse_annotation("</svg>");
  node.meta().source = "<script>";
  graph.output(Value());
  const std::string image = svg(graph);
  EXPECT_EQ(xml_mistake(image), "");
  EXPECT_THAT(image, HasSubstr("&lt;a href=&quot;x&quot;&gt;&amp;'  ??"));
  EXPECT_EQ(image.find("<script"), std::string::npos);
  for (uint64_t seed = 0; seed < 50; ++seed)
    ASSERT_EQ(xml_mistake(svg(testing::RandomGraph(seed).make(30))), "") << "seed " << seed;
}

TEST(Svg, ShortensLongTexts) {
  Graph graph;
  graph.get_attr("p" + std::string(100, 'q'));
  EXPECT_THAT(svg(graph), HasSubstr("p" + std::string(38, 'q') + "\u2026</text>"));
}

TEST(Svg, EmptyGraph) { EXPECT_EQ(xml_mistake(svg(Graph())), ""); }

// --- the layout ------------------------------------------------------------------------------------------

using Edges = std::vector<std::vector<uint32_t>>;

void expect_sound(const std::vector<BoxSize>& boxes, const Edges& inputs) {
  const Layout2d layout = lay_out(boxes, inputs);
  ASSERT_EQ(layout.centers.size(), boxes.size());
  auto top = [&](size_t i) { return layout.centers[i].y - boxes[i].height / 2; };
  auto bottom = [&](size_t i) { return layout.centers[i].y + boxes[i].height / 2; };
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(layout.centers[i].x - boxes[i].width / 2, -1e-6);
    EXPECT_LE(layout.centers[i].x + boxes[i].width / 2, layout.width + 1e-6);
    EXPECT_GE(top(i), -1e-6);
    EXPECT_LE(bottom(i), layout.height + 1e-6);
    for (uint32_t input : inputs[i]) EXPECT_LT(bottom(input), top(i)) << "box " << input << " for " << i;
    for (size_t k = 0; k < i; ++k) {
      const bool apart =
          bottom(k) < top(i) || bottom(i) < top(k) ||
          std::abs(layout.centers[i].x - layout.centers[k].x) >= (boxes[i].width + boxes[k].width) / 2 - 1e-6;
      EXPECT_TRUE(apart) << "boxes " << k << " and " << i << " overlap";
    }
  }
  size_t heads = 0, edges = 0;
  for (const Layout2d::Line& line : layout.lines) heads += line.has_head;
  for (const auto& list : inputs) edges += list.size();
  EXPECT_EQ(heads, edges);
}

TEST(Layout, NothingOverlapsAndInputsAreAbove) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    testing::RandomGraph random(seed);
    const size_t count = random.below(60);
    std::vector<BoxSize> boxes;
    Edges inputs(count);
    for (size_t i = 0; i < count; ++i) {
      boxes.push_back(
          {20.0 + static_cast<double>(random.below(200)), 20.0 + static_cast<double>(random.below(30))});
      for (size_t k = i > 0 ? random.below(4) : 0; k > 0; --k) {
        const auto from = static_cast<uint32_t>(random.below(i));
        if (std::find(inputs[i].begin(), inputs[i].end(), from) == inputs[i].end()) inputs[i].push_back(from);
      }
    }
    expect_sound(boxes, inputs);
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Layout, AChainIsStraightAndConstantsStandAtTheirUse) {
  // 0 -> 2 -> 3 -> 4 <- 1
  const std::vector<BoxSize> boxes(5, BoxSize{100, 30});
  const Layout2d layout = lay_out(boxes, Edges{{}, {}, {0}, {2}, {3, 1}});
  EXPECT_EQ(layout.centers[0].x, layout.centers[2].x);
  EXPECT_EQ(layout.centers[1].y, layout.centers[3].y);
  EXPECT_LT(layout.centers[0].y, layout.centers[1].y);
}

TEST(Layout, EdgesThatPointBackAreDrawn) {
  const std::vector<BoxSize> boxes(2, BoxSize{100, 30});
  const Layout2d layout = lay_out(boxes, Edges{{1}, {0}});
  ASSERT_EQ(layout.lines.size(), 2u);
  EXPECT_TRUE(layout.lines[1].is_far);
}

// A value used by all after it, and pairs of values that are used far away in the opposite order, as in a
// graph with its gradient: neither makes more lines than a few for each box.
TEST(Layout, LongEdgesCostNoMoreThanTheyMay) {
  constexpr uint32_t kCount = 10000;
  const std::vector<BoxSize> boxes(kCount, BoxSize{100, 30});
  Edges fan(kCount), mirror(kCount);
  for (uint32_t i = 1; i < kCount; ++i) {
    fan[i] = {i - 1};
    mirror[i] = {i - 1};
    if (i > 1) fan[i].push_back(0);
    if (i > kCount / 2 + 1) mirror[i].push_back(kCount - i);
  }
  for (const Edges& edges : {fan, mirror}) EXPECT_LT(lay_out(boxes, edges).lines.size(), 15u * kCount);
}

}  // namespace
}  // namespace weft
