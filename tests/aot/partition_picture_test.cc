#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "support/expect_error.h"
#include "weft/aot/aot_function.h"
#include "weft/graph/picture.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

// Of cos(cos(x) @ y): the matmul's operands are saved, and the inner cos is computed again.
aot::Partition partition_of_cosines() {
  aot::Partition partition;
  auto cut = [&](const GraphModule& joint, size_t outputs) {
    partition = aot::min_cut_rematerialization_partition(joint, outputs);
    return partition;
  };
  AotFunction f =
      aot_function([](const Tensor& x) { return x.cos().cos().mm(x).cos(); }, {.partitioner = cut});
  f(ones({3, 3}).set_requires_grad());
  return partition;
}

// The class of the box with this name in a picture; a name can be that of several boxes.
std::vector<std::string> classes_of(const std::string& svg, const std::string& name) {
  static const std::regex box(
      R"re(<g class="(\w+)"><title>[^<]*</title><rect[^>]*/><text class="name"[^>]*>(\w+)</text>)re");
  std::vector<std::string> classes;
  for (std::sregex_iterator found(svg.begin(), svg.end(), box), end; found != end; ++found)
    if ((*found)[2] == name) classes.push_back((*found)[1]);
  return classes;
}

TEST(PartitionPicture, ColoursWhatIsSavedAndRecomputed) {
  const aot::Partition partition = partition_of_cosines();
  const aot::SavedReport report = aot::report(partition);
  const std::string picture = svg(partition);
  ASSERT_FALSE(report.saved.empty());
  for (const aot::SavedReport::Entry& entry : report.saved) {
    EXPECT_THAT(classes_of(picture, entry.name), ::testing::ElementsAre("saved")) << entry.name;
    EXPECT_THAT(picture, HasSubstr("saved: " + std::to_string(entry.bytes) + " bytes"));
  }
  EXPECT_THAT(report.recomputed, ::testing::ElementsAre("cos"));
  EXPECT_THAT(classes_of(picture, "cos"), ::testing::ElementsAre("forward"));
  EXPECT_THAT(classes_of(picture, "cos_3"), ::testing::ElementsAre("recomputed"));
  EXPECT_THAT(classes_of(picture, "tangents_1"), ::testing::ElementsAre("input"));
  EXPECT_THAT(classes_of(picture, "sin"), ::testing::ElementsAre("backward"));
  EXPECT_THAT(classes_of(picture, "output"), ::testing::ElementsAre("output"));
}

TEST(PartitionPicture, HasALegendAndItsColours) {
  const std::string picture = svg(partition_of_cosines());
  for (const char* group : {"input", "forward", "saved", "backward", "recomputed", "output"}) {
    EXPECT_THAT(picture, ::testing::ContainsRegex("<g class=\"" + std::string(group) +
                                                  "\"><rect[^>]*><text[^>]*>" + group + "</text>"));
    EXPECT_THAT(picture, HasSubstr("  ." + std::string(group) + " rect { fill: #"));
  }
  EXPECT_THAT(picture, HasSubstr(".saved rect { fill: #ffd98a; stroke: #b07a10; }"));
  const std::string text = dot(partition_of_cosines());
  EXPECT_THAT(
      text, ::testing::ContainsRegex("label=\"primals_1[^\n]*saved: 36 bytes\"[^\n]*fillcolor=\"#ffd98a\""));
}

TEST(Picture, NodesCanBeInGroups) {
  Graph graph;
  Node& x = graph.placeholder("x");
  graph.output(value_of(graph.call_function("aten::relu", {value_of(x)})));
  const std::string text =
      dot(graph, {.groups = {{"a", "#000001", "#000002"}, {"b", "#000003", "#000004"}},
                  .group_of = [](const Node& node) { return node.kind() == NodeKind::kCallFunction; },
                  .note_of = [](const Node& node) { return node.name() == "x" ? "here" : ""; }});
  EXPECT_THAT(text, HasSubstr("n0 [label=\"x\\nhere\""));
  EXPECT_THAT(text, ::testing::ContainsRegex("n1 [^\n]*fillcolor=\"#000003\", color=\"#000004\""));
  EXPECT_ERROR(dot(graph, {.groups = {{"a", "", ""}}, .group_of = [](const Node&) -> size_t { return 3; }}),
               "%x is in group 3 of a picture that has 1");
  EXPECT_ERROR(dot(graph, {.groups = {{"a", "", ""}}}), "needs both the groups and group_of");
}

}  // namespace
}  // namespace weft
