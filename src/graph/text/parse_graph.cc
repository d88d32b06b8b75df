// Reads the text that quoted_text() writes.
#include <charconv>

#include "graph/text/value_reader.h"
#include "weft/graph/parse.h"

namespace weft {
namespace {

class GraphReader {
 public:
  GraphReader(std::string_view text, const ParseOptions& options)
      : in_(text, "parse_graph"), values_(in_, ValueReader::Nodes::kMarked, options) {}

  Graph run() {
    in_.skip_layout();
    in_.expect("graph():");
    end_line();
    for (in_.skip_layout(); !in_.at_end(); in_.skip_layout()) {
      if (has_output_) in_.fail_expected("nothing after the output");
      if (in_.accept_word("return")) read_return();
      else read_node();
      end_line();
    }
    for (const UserCount& said : user_counts_)
      if (const size_t users = said.node->users().size(); users != said.count)
        in_.fail_at(said.offset, "expected [num_users={}]: that many nodes use '{}'", users,
                    said.node->name());
    return std::move(graph_);
  }

 private:
  struct UserCount {
    const Node* node;
    size_t count, offset;
  };

  void end_line() {
    in_.skip_spaces();
    if (!in_.at_line_end()) in_.fail_expected("the end of the line");
  }

  void read_return() {
    in_.skip_spaces();
    const size_t offset = in_.offset();
    add(NodeKind::kOutput, "output", {values_.read()}, {}, "output", offset);
  }

  Node& add(NodeKind kind, Target target, ValueList args, Kwargs kwargs, std::string_view name,
            size_t offset) {
    has_output_ = kind == NodeKind::kOutput;
    return values_.create(graph_, kind, std::move(target), std::move(args), std::move(kwargs), name, offset);
  }

  void read_node() {
    if (in_.peek() != '%') in_.fail_expected("'%' and the name of a node, or 'return'");
    in_.expect("%");
    const size_t offset = in_.offset();
    const std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("the name of a node after %");
    in_.skip_spaces();
    users_.reset();
    std::string type = in_.accept(":") ? read_type() : "";
    in_.skip_spaces();
    in_.expect("=");
    in_.skip_spaces();
    const NodeKind kind = read_kind();
    Target target = read_target(kind);
    ValueList args;
    KeywordReader kwargs;
    if (in_.accept("(")) read_arguments(kind, args, kwargs);
    Node& node = add(kind, std::move(target), std::move(args), kwargs.take(), name, offset);
    if (!type.empty()) set_type(node, type);
    if (users_) user_counts_.push_back({&node, users_->count, users_->offset});
  }

  // `TYPE [num_users=N]`, each of which may be missing.
  std::string read_type() {
    in_.skip_spaces();
    std::string type;
    if (in_.at_string()) type = in_.string_literal();
    else if (in_.peek() != '[') type = read_plain_type();
    in_.skip_spaces();
    users_ = UserCount{nullptr, 0, in_.offset()};
    if (!in_.accept("[")) {
      users_.reset();
      return type;
    }
    in_.expect("num_users=");
    const std::string_view rest = in_.text().substr(in_.offset());
    const std::from_chars_result read =
        std::from_chars(rest.data(), rest.data() + rest.size(), users_->count);
    if (read.ec != std::errc()) in_.fail_expected("the number of users");
    in_.go_to(in_.offset() + static_cast<size_t>(read.ptr - rest.data()));
    in_.expect("]");
    return type;
  }

  std::string read_plain_type() {
    const size_t begin = in_.offset();
    const std::string_view line = in_.text().substr(begin, in_.text().find('\n', begin) - begin);
    const size_t end = std::min(line.find("[num_users="), line.find('='));
    if (end == std::string_view::npos) in_.fail_expected("a type and '='");
    std::string_view type = line.substr(0, end);
    type = type.substr(0, type.find_last_not_of(" \t\r") + 1);
    in_.go_to(begin + type.size());
    return std::string(type);
  }

  NodeKind read_kind() {
    const size_t offset = in_.offset();
    const std::string_view word = in_.identifier();
    for (NodeKind kind : {NodeKind::kPlaceholder, NodeKind::kGetAttr, NodeKind::kCallFunction,
                          NodeKind::kCallMethod, NodeKind::kCallModule, NodeKind::kOutput})
      if (kind_name(kind) == word) return kind;
    in_.go_to(offset);
    in_.fail_expected("the kind of the node, like call_function");
  }

  Target read_target(NodeKind kind) {
    in_.expect("[target=");
    const size_t offset = in_.offset();
    std::string target;
    if (in_.at_string()) {
      target = in_.string_literal();
    } else {
      while (!in_.at_line_end() && in_.peek() != ']') {
        target += in_.peek();
        in_.go_to(in_.offset() + 1);
      }
    }
    in_.expect("]");
    if (kind == NodeKind::kCallFunction) return values_.function(target, offset);
    return target;
  }

  // From after the bracket: `default=1)`, or `args = (%x, 1), kwargs = {dim: 0})`.
  void read_arguments(NodeKind kind, ValueList& args, KeywordReader& kwargs) {
    in_.skip_layout();
    if (kind == NodeKind::kPlaceholder && in_.accept_word("default")) {
      read_equals();
      args.push_back(values_.read());
    } else {
      if (!in_.accept_word("args")) in_.fail_expected("'args'");
      read_equals();
      const size_t offset = in_.offset();
      const Value tuple = values_.read();
      if (!tuple.is_tuple()) in_.fail_at(offset, "expected a tuple, like (%x, 1) or (%x,)");
      args = tuple.elements();
      in_.skip_layout();
      if (in_.accept(",")) {
        in_.skip_layout();
        if (!in_.accept_word("kwargs")) in_.fail_expected("'kwargs'");
        read_equals();
        read_kwargs(kwargs);
      }
    }
    in_.skip_layout();
    in_.expect(")");
  }

  void read_equals() {
    in_.skip_layout();
    in_.expect("=");
    in_.skip_layout();
  }

  void read_kwargs(KeywordReader& kwargs) {
    in_.expect("{");
    in_.skip_layout();
    while (!in_.accept("}")) {
      const size_t offset = in_.offset();
      std::string key = in_.at_string() ? in_.string_literal() : std::string(in_.identifier());
      if (in_.offset() == offset) in_.fail_expected("the name of an argument");
      in_.skip_layout();
      in_.expect(":");
      in_.skip_layout();
      if (!kwargs.add(std::move(key), values_.read()))
        in_.fail_at(offset, "expected a new name, but there is an argument of this name already");
      in_.skip_layout();
      if (in_.accept(",")) in_.skip_layout();
      else if (in_.peek() != '}') in_.fail_expected("',' or '}'");
    }
  }

  TextReader in_;
  ValueReader values_;
  Graph graph_;
  std::optional<UserCount> users_;  // of the node that is read
  std::vector<UserCount> user_counts_;
  bool has_output_ = false;
};

}  // namespace

Graph parse_graph(std::string_view text) { return parse_graph(text, {}); }
Graph parse_graph(std::string_view text, const ParseOptions& options) {
  return GraphReader(text, options).run();
}

}  // namespace weft
