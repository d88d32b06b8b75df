// The plain views of a graph that are no code: a line a node, a table.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "graph/text/value_text.h"
#include "weft/graph/graph.h"

namespace weft {

// --- a line a node ---------------------------------------------------------------------------------------

namespace {

void append_kwargs(std::string& out, const Kwargs& kwargs) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : kwargs) {
    if (!first) out += ", ";
    first = false;
    out += key;
    out += ": ";
    append_value(out, value, ValueStyle::kGraph);
  }
  out += '}';
}

void append_node_call(std::string& out, const Node& node) {
  if (node.kind() == NodeKind::kGetAttr) return;
  if (node.kind() == NodeKind::kPlaceholder) {
    if (node.args().empty()) return;
    out += "(default=";
    append_value(out, node.args()[0], ValueStyle::kGraph);
  } else {
    out += "(args = ";
    append_tuple(out, node.args(), ValueStyle::kGraph);
    out += ", kwargs = ";
    append_kwargs(out, node.kwargs());
  }
  out += ')';
}

void append_line(std::string& out, const Node& node) {
  if (node.kind() == NodeKind::kOutput) {
    out += "return ";
    append_value(out, node.returned(), ValueStyle::kCode);
    return;
  }
  out += '%';
  out += node.name();
  out += " : ";
  if (const NodeMeta* meta = node.meta_or_null(); meta && meta->type) {
    out += type_text(node);
    out += ' ';
  }
  out += "[num_users=";
  const fmt::format_int users(node.users().size());
  out.append(users.data(), users.size());
  out += "] = ";
  out += kind_name(node.kind());
  out += "[target=";
  append_target(out, node.target());
  out += ']';
  append_node_call(out, node);
}

}  // namespace

std::string Node::line() const {
  std::string text;
  append_line(text, *this);
  return text;
}

std::string Graph::to_string() const {
  constexpr size_t kUsualLine = 128;
  std::string text = "graph():";
  text.reserve(kUsualLine * (size_ + 1));
  for (const Node& node : *this) {
    text += "\n    ";
    append_line(text, node);
  }
  return text;
}

// --- a table ---------------------------------------------------------------------------------------------

namespace {

constexpr size_t kColumns = 5;

// The cells of a table, row by row in one buffer.
class Table {
 public:
  // What is written there goes to the next cell.
  std::string& text() { return text_; }
  void end_cell() {
    size_t& width = widths_[ends_.size() % kColumns];
    width = std::max(width, text_.size() - (ends_.empty() ? 0 : ends_.back()));
    ends_.push_back(text_.size());
  }
  void add_cell(std::string_view cell) {
    text_ += cell;
    end_cell();
  }

  std::string print() const {
    size_t width = 0;
    for (size_t column = 0; column < kColumns; ++column) width += padding(column) + 2;
    std::string out;
    out.reserve(width * (ends_.size() / kColumns + 1));
    size_t begin = 0;
    for (size_t i = 0; i < ends_.size(); ++i) {
      const size_t column = i % kColumns, size = ends_[i] - begin;
      if (column == 0 && i > 0) out += '\n';
      out.append(text_, begin, size);
      if (column + 1 < kColumns) out.append(padding(column) - std::min(padding(column), size) + 2, ' ');
      if (i + 1 == kColumns) print_rule(out);
      begin = ends_[i];
    }
    return out;
  }

 private:
  // Beyond this a longer cell shifts the rest of its row: one list of all nodes among its arguments must not
  // make every other row as long.
  static constexpr size_t kWidestPadding = 300;
  size_t padding(size_t column) const { return std::min(widths_[column], kWidestPadding); }

  void print_rule(std::string& out) const {
    for (size_t column = 0; column < kColumns; ++column) {
      out += column == 0 ? "\n" : "  ";
      out.append(padding(column), '-');
    }
  }

  std::string text_;
  std::vector<size_t> ends_;
  std::array<size_t, kColumns> widths_{};
};

}  // namespace

std::string Graph::tabular() const {
  Table table;
  for (const char* title : {"opcode", "name", "target", "args", "kwargs"}) table.add_cell(title);
  for (const Node& node : *this) {
    table.add_cell(kind_name(node.kind()));
    table.add_cell(node.name());
    append_target(table.text(), node.target());
    table.end_cell();
    append_tuple(table.text(), node.args(), ValueStyle::kCode);
    table.end_cell();
    table.text() += '{';
    bool first = true;
    for (const auto& [key, value] : node.kwargs()) {
      fmt::format_to(std::back_inserter(table.text()), "{}'{}': ", first ? "" : ", ", key);
      append_value(table.text(), value, ValueStyle::kCode);
      first = false;
    }
    table.add_cell("}");
  }
  return table.print();
}

std::ostream& operator<<(std::ostream& out, const Graph& graph) { return out << graph.to_string(); }

}  // namespace weft
