// Graphs as pictures: Graphviz's language, and SVG.
#include "weft/graph/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/node_index.h"
#include "graph/text/code.h"
#include "graph/text/layout.h"
#include "graph/text/value_text.h"
#include "weft/base/error.h"

namespace weft {
namespace {

// --- what a box says -------------------------------------------------------------------------------------

// The colours of kinds, in the order of NodeKind.
const std::vector<PictureGroup>& kinds() {
  static const auto* all = [] {
    auto* groups = new std::vector<PictureGroup>;
    auto add = [&](NodeKind kind, const char* fill, const char* border) {
      groups->push_back({std::string(kind_name(kind)), fill, border});
    };
    add(NodeKind::kPlaceholder, "#dcf1e1", "#3f8f5b");
    add(NodeKind::kGetAttr, "#fbf0cf", "#a5832a");
    add(NodeKind::kCallFunction, "#dde9f8", "#3d6fa8");
    add(NodeKind::kCallMethod, "#e8e2f4", "#7058a3");
    add(NodeKind::kCallModule, "#fbe4d3", "#b0652f");
    add(NodeKind::kOutput, "#f7dcdc", "#a84a4a");
    return groups;
  }();
  return *all;
}

// The groups of a picture, and what it says of a node beyond the node itself.
class Style {
 public:
  explicit Style(const PictureOptions& options) : options_(options) {
    require(options.groups.empty() == !options.group_of,
            "a picture whose nodes are in groups needs both the groups and group_of");
  }
  const std::vector<PictureGroup>& groups() const {
    return options_.groups.empty() ? kinds() : options_.groups;
  }
  const PictureGroup& of(const Node& node) const {
    if (options_.groups.empty()) return kinds()[static_cast<size_t>(node.kind())];
    const size_t group = options_.group_of(node);
    require(group < options_.groups.size(), "%{} is in group {} of a picture that has {}", node.name(), group,
            options_.groups.size());
    return options_.groups[group];
  }
  std::string note(const Node& node) const { return options_.note_of ? options_.note_of(node) : ""; }

 private:
  const PictureOptions& options_;
};

// What both languages can show: control characters become spaces, and what is no character a question mark.
std::string showable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    const bool is_control = length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f);
    const bool is_none = length == 0 || character == "\xef\xbf\xbe" || character == "\xef\xbf\xbf";
    if (is_none) shown += '?';
    else if (is_control) shown += ' ';
    else shown += character;
    text.remove_prefix(character.size());
  }
  return shown;
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

// At most so many characters, the last of which is then an ellipsis.
std::string shortened(const std::string& text, size_t most) {
  if (character_count(text) <= most) return text;
  size_t end = 0;
  for (size_t characters = 0; characters + 1 < most; ++characters) end += utf8_length(text.substr(end, 4));
  return text.substr(0, end) + "\u2026";
}

std::string called(const Node& node) {
  constexpr std::string_view kOperators = "torch.ops.";
  std::string target = node.target().to_string();
  switch (node.kind()) {
    case NodeKind::kCallFunction:
      return target.starts_with(kOperators) ? target.substr(kOperators.size()) : target;
    case NodeKind::kCallMethod:
      return "." + target;
    default:
      return target;
  }
}

struct BoxLine {
  std::string text;
  const char* role;
};

// The name, what is called where that says more, the type, the note.
std::vector<BoxLine> lines_of(const Node& node, const Style& style) {
  constexpr size_t kLongest = 40;
  std::vector<BoxLine> lines;
  auto add = [&](const std::string& text, const char* role) {
    if (!text.empty()) lines.push_back({shortened(showable(text), kLongest), role});
  };
  add(node.name(), "name");
  if (std::string target = called(node); target != node.name()) add(target, "target");
  add(shown_type(node), "type");
  add(style.note(node), "note");
  return lines;
}

std::string tooltip_of(const Node& node) {
  constexpr size_t kLongest = 1000;
  std::string text = node.line();
  if (std::string source = node.source(); !source.empty()) text += " at " + source;
  return shortened(showable(text), kLongest);
}

}  // namespace

// --- Graphviz --------------------------------------------------------------------------------------------

namespace {

void append_dot_text(std::string& out, std::string_view text) {
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
}

}  // namespace

std::string dot(const Graph& graph, const PictureOptions& options) {
  const Style style(options);
  const NodeIndex index(graph);
  std::string text =
      "digraph {\n"
      "  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\", fontsize=10];\n"
      "  edge [color=\"#7f8792\"];\n";
  for (const Node& node : graph) {
    fmt::format_to(std::back_inserter(text), "  n{} [label=\"", index.of(node));
    bool first = true;
    for (const BoxLine& line : lines_of(node, style)) {
      if (!first) text += "\\n";
      first = false;
      append_dot_text(text, line.text);
    }
    text += "\", tooltip=\"";
    append_dot_text(text, tooltip_of(node));
    fmt::format_to(std::back_inserter(text), "\", fillcolor=\"{}\", color=\"{}\"];\n", style.of(node).fill,
                   style.of(node).border);
    for (const Node* input : node.inputs())
      fmt::format_to(std::back_inserter(text), "  n{} -> n{};\n", index.of(*input), index.of(node));
  }
  return text + "}\n";
}

// --- SVG -------------------------------------------------------------------------------------------------

namespace {

constexpr double kCharacterWidth = 6.7, kLineHeight = 14, kPadding = 8, kMargin = 20, kLegendHeight = 34;

void append_xml_text(std::string& out, std::string_view text) {
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
}

class SvgWriter {
 public:
  SvgWriter(const Graph& graph, const PictureOptions& options) : graph_(graph), style_(options) {}

  std::string run() {
    const NodeIndex index(graph_);
    std::vector<BoxSize> boxes;
    std::vector<std::vector<uint32_t>> inputs;
    for (const Node& node : graph_) {
      nodes_.push_back(&node);
      lines_.push_back(lines_of(node, style_));
      boxes.push_back(box_of(lines_.back()));
      inputs.emplace_back();
      for (const Node* input : node.inputs()) inputs.back().push_back(index.of(*input));
    }
    const Layout2d layout = lay_out(boxes, inputs);
    write_start(layout);
    write_legend();
    format("<g transform=\"translate({:.1f} {:.1f})\">\n", kMargin, kMargin + kLegendHeight);
    for (const Layout2d::Line& line : layout.lines) write_line(line);
    for (size_t i = 0; i < nodes_.size(); ++i) write_node(i, boxes[i], layout.centers[i]);
    out_ += "</g>\n</svg>\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void format(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  static BoxSize box_of(const std::vector<BoxLine>& lines) {
    size_t widest = 0;
    for (const BoxLine& line : lines) widest = std::max(widest, character_count(line.text));
    return {static_cast<double>(widest) * kCharacterWidth + 2 * kPadding,
            static_cast<double>(lines.size()) * kLineHeight + kPadding};
  }

  void write_start(const Layout2d& layout) {
    const double width = std::max(layout.width, legend_width()) + 2 * kMargin,
                 height = layout.height + kLegendHeight + 2 * kMargin;
    format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
        "{0:.0f} "
        "{1:.0f}\" font-family=\"monospace\" font-size=\"11\">\n<title>A graph of {2} "
        "nodes</title>\n<style>\n",
        std::ceil(width), std::ceil(height), nodes_.size());
    out_ +=
        "  text { fill: #1f2430; text-anchor: middle; }\n"
        "  .name { font-weight: bold; }\n"
        "  .type { fill: #596070; }\n"
        "  .note { font-style: italic; }\n"
        "  path { fill: none; stroke: #7f8792; stroke-width: 1.2; }\n"
        "  path.far { stroke-dasharray: 4 4; stroke-opacity: 0.5; }\n"
        "  path:hover { stroke: #c0392b; stroke-width: 2; }\n";
    for (const PictureGroup& group : style_.groups())
      format("  .{} rect {{ fill: {}; stroke: {}; }}\n", group.name, group.fill, group.border);
    out_ +=
        "</style>\n<defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><polygon points=\"0,1 8,4 0,7\" "
        "fill=\"#7f8792\"/></marker></defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  }

  static double legend_entry_width(const PictureGroup& group) {
    return static_cast<double>(group.name.size()) * kCharacterWidth + 2 * kPadding;
  }
  double legend_width() const {
    double width = 0;
    for (const PictureGroup& group : style_.groups()) width += legend_entry_width(group) + kPadding;
    return width - kPadding;
  }

  void write_legend() {
    double x = kMargin;
    for (const PictureGroup& group : style_.groups()) {
      const double width = legend_entry_width(group);
      format(
          "<g class=\"{0}\"><rect x=\"{1:.1f}\" y=\"{2:.1f}\" width=\"{3:.1f}\" height=\"18\" rx=\"4\"/>"
          "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{0}</text></g>\n",
          group.name, x, kMargin - 6, width, x + width / 2, kMargin + 7);
      x += width + kPadding;
    }
  }

  // From above to below with vertical ends, so that pieces of one edge join smoothly.
  void write_line(const Layout2d::Line& line) {
    const double middle = (line.from.y + line.to.y) / 2;
    format("<path{}{} d=\"M{:.1f} {:.1f}", line.is_far ? " class=\"far\"" : "",
           line.has_head ? " marker-end=\"url(#head)\"" : "", line.from.x, line.from.y);
    if (line.from.x == line.to.x) format("V{:.1f}", line.to.y);
    else
      format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", line.from.x, middle, line.to.x, middle, line.to.x,
             line.to.y);
    format("\"><title>{}</title></path>\n", nodes_[line.source]->name());
  }

  void write_node(size_t i, const BoxSize& box, const Layout2d::Point& center) {
    const double left = center.x - box.width / 2, top = center.y - box.height / 2;
    format("<g class=\"{}\"><title>", style_.of(*nodes_[i]).name);
    append_xml_text(out_, tooltip_of(*nodes_[i]));
    format("</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>", left, top,
           box.width, box.height);
    for (size_t k = 0; k < lines_[i].size(); ++k) {
      format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">", lines_[i][k].role, center.x,
             top + kPadding / 2 + (static_cast<double>(k) + 0.75) * kLineHeight);
      append_xml_text(out_, lines_[i][k].text);
      out_ += "</text>";
    }
    out_ += "</g>\n";
  }

  const Graph& graph_;
  const Style style_;
  std::vector<const Node*> nodes_;
  std::vector<std::vector<BoxLine>> lines_;
  std::string out_;
};

}  // namespace

std::string svg(const Graph& graph, const PictureOptions& options) { return SvgWriter(graph, options).run(); }

}  // namespace weft
