// Reads the Python code that Graph::code() writes.
#include <algorithm>

#include "graph/text/value_reader.h"
#include "graph/text/value_text.h"
#include "weft/base/error.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/parse.h"

namespace weft {
namespace {

// What a statement calls, or the attribute it reads.
struct Call {
  NodeKind kind;
  Target target;
  ValueList args = {};
  Kwargs kwargs = {};
};

class CodeReader {
 public:
  CodeReader(std::string_view text, const ParseOptions& options)
      : in_(text, "parse_code"), values_(in_, ValueReader::Nodes::kNamed, options) {}

  Graph run() {
    read_heading();
    read_parameters();
    read_result_type();
    read_leaves();
    read_renamed_parameters();
    make_placeholders();
    while (next_line()) read_statement();
    return std::move(graph_);
  }
  // The parameters, where they are trees and the graph's placeholders their leaves.
  const std::optional<std::vector<std::string>>& tree_arguments() const { return tree_arguments_; }
  const std::optional<size_t>& num_positional() const { return num_positional_; }

 private:
  struct Parameter {
    std::string_view name;    // in the code below
    std::string_view target;  // with stars
    size_t offset;
    std::string type;
    std::optional<Value> default_value;
  };

  // --- the heading ---

  // `class GraphModule(torch.nn.Module):` may stand before it.
  void read_heading() {
    in_.skip_layout();
    if (in_.accept_word("class")) {
      in_.skip_line();
      in_.skip_layout();
    }
    heading_indent_ = indentation();
    if (!in_.accept_word("def")) in_.fail_expected("'def'");
    in_.skip_spaces();
    if (in_.identifier().empty()) in_.fail_expected("the name of the function");
    in_.skip_spaces();
    in_.expect("(");
  }

  void read_parameters() {
    in_.skip_layout();
    bool first = true;
    while (!in_.accept(")")) {
      if (!first || !accept_self()) read_parameter();
      first = false;
      in_.skip_layout();
      if (in_.accept(",")) in_.skip_layout();
      else if (in_.peek() != ')') in_.fail_expected("',' or ')'");
    }
  }

  bool accept_self() { return in_.accept_word("self"); }

  void read_parameter() {
    Parameter parameter;
    parameter.offset = in_.offset();
    check_order();
    while (in_.peek() == '*') in_.expect("*");
    parameter.name = in_.identifier();
    if (parameter.name.empty()) in_.fail_expected("the name of a parameter");
    parameter.target = in_.text().substr(parameter.offset, in_.offset() - parameter.offset);
    in_.skip_layout();
    if (in_.accept(":")) parameter.type = read_type(",)=\n");
    in_.skip_layout();
    if (in_.accept("=")) {
      if (parameter.target != parameter.name)
        in_.fail_at(parameter.offset, "expected no default: '{}' takes what is left", parameter.target);
      in_.skip_layout();
      parameter.default_value = values_.read();
    }
    check_default(parameter);
    if (!by_name_.emplace(parameter.name, parameters_.size()).second)
      in_.fail_at(parameter.offset, "expected a new name, but there is a parameter '{}' already",
                  parameter.name);
    parameters_.push_back(std::move(parameter));
  }

  // What Python allows where: `*args` once, `**kwargs` last.
  void check_order() {
    if (has_keyword_rest_) in_.fail_expected("')', since nothing comes after a parameter with '**'");
    if (!in_.starts_with("*")) return;
    if (in_.starts_with("***")) in_.fail_expected("one or two stars before a parameter");
    bool& has = in_.starts_with("**") ? has_keyword_rest_ : has_rest_;
    if (has) in_.fail_expected("a parameter without '*', since there is one with it already");
    has = true;
  }

  // After a default all have one, up to a `*args`: what comes then is given by name.
  void check_default(const Parameter& parameter) {
    if (parameter.default_value) has_default_ = true;
    else if (has_default_ && !has_rest_ && !has_keyword_rest_)
      in_.fail_at(parameter.offset, "expected '{}' to have a default, since a parameter before it has one",
                  parameter.name);
  }

  // Up to one of the signs that end it, outside of brackets.
  std::string read_type(std::string_view ends) {
    in_.skip_spaces();
    if (in_.at_string()) return in_.string_literal();
    const size_t begin = in_.offset();
    int depth = 0;
    while (!in_.at_end() && (depth > 0 || ends.find(in_.peek()) == std::string_view::npos)) {
      const char c = in_.peek();
      if (c == '\n') break;
      depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
      in_.go_to(in_.offset() + 1);
    }
    std::string_view type = in_.text().substr(begin, in_.offset() - begin);
    type = type.substr(0, type.find_last_not_of(" \t\r") + 1);
    if (type.empty()) in_.fail_expected("a type");
    return std::string(type);
  }

  void read_result_type() {
    in_.skip_spaces();
    if (in_.accept("->")) result_type_ = read_type(":");
    in_.skip_spaces();
    in_.expect(":");
    end_line();
  }

  // `a_1, a_2, b_1, = fx_pytree.tree_flatten_spec([a, b], self._in_spec)`: the parameters are trees. Types of
  // the leaves, `a_1 : T; b_1 : T; `, may stand before it.
  void read_leaves() {
    if (!next_line()) return;
    const size_t begin = in_.offset();
    std::unordered_map<std::string_view, std::string> types;
    if (!read_leaf_types(types)) in_.go_to(begin);
    else if (!next_line()) in_.fail_expected("the line that takes the arguments apart");
    std::vector<Parameter> leaves;
    while (leaves.empty() || !in_.accept("=")) {
      const size_t offset = in_.offset();
      const std::string_view name = in_.identifier();
      in_.skip_spaces();
      if (name.empty() || !in_.accept(",")) {
        if (!types.empty() || !leaves.empty()) in_.fail_expected("the name of a leaf and ','");
        return in_.go_to(begin);
      }
      in_.skip_spaces();
      leaves.push_back({name, name, offset, std::move(types[name]), std::nullopt});
    }
    read_flattened();
    by_name_.clear();
    for (size_t i = 0; i < leaves.size(); ++i)
      if (!by_name_.emplace(leaves[i].name, i).second)
        in_.fail_at(leaves[i].offset, "expected a new name, but there is a leaf '{}' already",
                    leaves[i].name);
    make_trees();
    parameters_ = std::move(leaves);
    end_line();
  }

  // False where it is another line.
  bool read_leaf_types(std::unordered_map<std::string_view, std::string>& types) {
    while (!in_.at_line_end()) {
      const std::string_view name = in_.identifier();
      in_.skip_spaces();
      if (name.empty() || !in_.accept(":")) return false;
      std::string type = read_type(";=\n");
      in_.skip_spaces();
      if (!in_.accept(";")) return false;
      types[name] = std::move(type);
      in_.skip_spaces();
    }
    return true;
  }

  void read_flattened() {
    in_.skip_spaces();
    in_.expect("fx_pytree.tree_flatten_spec(");
    const bool is_pair = in_.accept("(");
    in_.expect("[");
    size_t next = 0;
    while (next < parameters_.size() && !(is_pair && in_.peek() == ']')) {
      if (next > 0) in_.expect(", ");
      read_parameter(next++);
    }
    in_.expect("]");
    if (is_pair) {
      num_positional_ = next;
      in_.expect(", {");
      for (; next < parameters_.size(); ++next) {
        if (next > *num_positional_) in_.expect(", ");
        in_.expect(fmt::format("'{}':", parameters_[next].name));
        read_parameter(next);
      }
      in_.expect("})");
    }
    in_.expect(", self._in_spec)");
  }
  void read_parameter(size_t i) {
    if (!in_.accept_word(parameters_[i].name))
      in_.fail_expected(fmt::format("the parameter '{}'", parameters_[i].name));
  }

  void make_trees() {
    tree_arguments_.emplace();
    for (const Parameter& parameter : parameters_) {
      if (parameter.target != parameter.name || parameter.default_value || !parameter.type.empty())
        in_.fail_at(parameter.offset, "expected a parameter that is a tree to have a name only");
      tree_arguments_->emplace_back(parameter.name);
    }
  }

  // Lines like `y = x` right after the heading, where x is a parameter.
  void read_renamed_parameters() {
    while (next_line()) {
      const size_t line = in_.offset();
      const std::string_view name = in_.identifier();
      in_.skip_spaces();
      const bool assigns = in_.accept("=");
      in_.skip_spaces();
      const std::string_view from = in_.identifier();
      in_.skip_spaces();
      auto found = by_name_.find(from);
      if (!assigns || !in_.at_line_end() || found == by_name_.end()) return in_.go_to(line);
      Parameter& parameter = parameters_[found->second];
      parameter.name = name;
      parameter.offset = line;
      by_name_.erase(found);
    }
  }

  void make_placeholders() {
    for (Parameter& parameter : parameters_) {
      ValueList args;
      if (parameter.default_value) args.push_back(std::move(*parameter.default_value));
      Node& node = values_.create(graph_, NodeKind::kPlaceholder, std::string(parameter.target),
                                  std::move(args), {}, parameter.name, parameter.offset);
      if (!parameter.type.empty()) set_type(node, parameter.type);
    }
  }

  // --- statements ---

  // Whether there is one more; then the cursor is at its beginning.
  bool next_line() {
    in_.skip_layout();
    if (in_.at_end()) return false;
    const std::string_view indent = indentation();
    if (indent.size() <= heading_indent_.size() || !indent.starts_with(heading_indent_))
      in_.fail_expected("a statement that is indented");
    if (!body_indent_) body_indent_ = indent;
    if (indent != *body_indent_)
      in_.fail_expected(
          fmt::format("a statement that is indented like the first one, by {}", body_indent_->size()));
    if (has_returned_) in_.fail_expected("nothing after the return");
    return true;
  }

  // What stands before the cursor on its line.
  std::string_view indentation() const {
    const size_t begin = in_.text().substr(0, in_.offset()).rfind('\n') + 1;  // 0 in the first line
    return in_.text().substr(begin, in_.offset() - begin);
  }

  void end_line() {
    in_.skip_spaces();
    if (!in_.at_line_end()) in_.fail_expected("the end of the statement");
  }

  void read_statement() {
    if (in_.accept_word("pass")) return end_line();
    if (in_.accept_word("return")) return read_return();
    const size_t offset = in_.offset();
    const std::string_view name = in_.identifier();
    if (name.empty()) in_.fail_expected("a statement");
    in_.skip_spaces();
    std::string type;
    if (in_.accept(":")) type = read_type("=\n");
    in_.skip_spaces();
    in_.expect("=");
    in_.skip_spaces();
    Call call = read_call();
    Node& node = values_.create(graph_, call.kind, std::move(call.target), std::move(call.args),
                                std::move(call.kwargs), name, offset);
    if (!type.empty()) set_type(node, type);
    read_ended_values();
    end_line();
  }

  void read_return() {
    in_.skip_spaces();
    constexpr std::string_view kUnflatten = "pytree.tree_unflatten(";
    const bool gives_tree = in_.accept(kUnflatten);
    if (tree_arguments_ && !gives_tree) in_.fail_expected(fmt::format("'{}'", kUnflatten));
    const size_t offset = in_.offset();
    Value result = values_.read();
    if (gives_tree) {
      if (!result.is_list()) in_.fail_at(offset, "expected a list of the result's leaves");
      in_.expect(", self._out_spec)");
      if (!tree_arguments_) take_trees_without_leaves();
    }
    Node& node = graph_.output(std::move(result));
    if (!result_type_.empty()) set_type(node, result_type_);
    has_returned_ = true;
    end_line();
  }

  // The arguments of a function that takes trees are no placeholders, even if there is no leaf.
  void take_trees_without_leaves() {
    make_trees();
    for (const Parameter& parameter : parameters_) {
      Node& node = *values_.find(parameter.name);
      if (!node.users().empty())
        in_.fail_at(parameter.offset, "expected '{}' to be taken apart by fx_pytree.tree_flatten_spec",
                    parameter.name);
      graph_.erase(node);
    }
  }

  // `;  x = y = None`
  void read_ended_values() {
    in_.skip_spaces();
    if (!in_.accept(";")) return;
    in_.skip_spaces();
    while (!in_.accept_word("None")) {
      if (in_.identifier().empty()) in_.fail_expected("'None'");
      in_.skip_spaces();
      in_.expect("=");
      in_.skip_spaces();
    }
  }

  // --- calls ---

  Call read_call() {
    for (const SignedFunction& unary : unary_functions())
      if (in_.starts_with(unary.sign)) return read_unary(unary);
    size_t getattrs = 0;
    while (in_.accept("getattr(")) {
      ++getattrs;
      in_.skip_layout();
    }
    if (in_.accept_word("self")) return read_self(getattrs);
    if (getattrs == 0)
      if (std::string_view name = function_name(); !name.empty()) return read_function(name);
    const size_t offset = in_.offset();
    return read_after_value(values_.read(), getattrs, offset);
  }

  // A number with its sign may begin `-3 + x`; by itself `-3` is a call.
  Call read_unary(const SignedFunction& unary) {
    const size_t offset = in_.offset();
    if (values_.at_number()) {
      Value number = values_.read();
      in_.skip_spaces();
      if (!in_.at_line_end() && in_.peek() != ';') return read_after_value(std::move(number), 0, offset);
      in_.go_to(offset);
    }
    in_.expect(unary.sign);
    return {NodeKind::kCallFunction, values_.function(unary.function, offset), {values_.read()}};
  }

  // `.layer1.conv1`, and `, "0")` for each getattr that was opened.
  std::string read_path(size_t getattrs) {
    std::string path;
    bool first = true;
    while (true) {
      const bool has_dot = in_.accept(".");
      if (!has_dot && getattrs == 0) break;
      if (!first) path += '.';
      first = false;
      if (has_dot) {
        const std::string_view part = in_.identifier();
        if (part.empty()) in_.fail_expected("the name of an attribute after '.'");
        path += part;
      } else {
        path += read_getattr_name();
        --getattrs;
      }
    }
    if (first) in_.fail_expected("'.' and the name of an attribute");
    return path;
  }

  std::string read_getattr_name() {
    in_.skip_layout();
    in_.expect(",");
    in_.skip_layout();
    const size_t offset = in_.offset();
    std::string name = in_.string_literal();
    if (name.find('.') != std::string::npos)
      in_.fail_at(offset, "expected the name of one attribute, but it has a dot");
    in_.skip_layout();
    in_.expect(")");
    return name;
  }

  Call read_self(size_t getattrs) {
    std::string path = read_path(getattrs);
    if (in_.peek() != '(') return {NodeKind::kGetAttr, std::move(path)};
    Call call{NodeKind::kCallModule, std::move(path)};
    read_arguments(call);
    return call;
  }

  // A name with a bracket after it that is neither a value nor a method of one; else empty.
  std::string_view function_name() {
    const size_t begin = in_.offset();
    const std::string_view first = in_.identifier();
    static constexpr std::string_view words[] = {"",    "None",   "True",    "False", "inf",
                                                 "nan", "device", "complex", "float"};
    const bool is_value =
        values_.find(first) || std::find(std::begin(words), std::end(words), first) != std::end(words);
    if (!is_value)
      while (in_.peek() == '.') {
        in_.expect(".");
        if (in_.identifier().empty()) in_.fail_expected("a name after '.'");
      }
    const std::string_view name = in_.text().substr(begin, in_.offset() - begin);
    if (!is_value && in_.peek() == '(') return name;
    in_.go_to(begin);
    return {};
  }

  Call read_function(std::string_view name) {
    Call call{NodeKind::kCallFunction, values_.function(name, in_.offset() - name.size())};
    read_arguments(call);
    return call;
  }

  Call read_after_value(Value value, size_t getattrs, size_t offset) {
    if (getattrs > 0 || in_.peek() == '.') {
      std::string path = read_path(getattrs);
      if (in_.peek() != '(') return attribute_of(std::move(value), std::move(path), offset);
      Call call{NodeKind::kCallMethod, std::move(path), {std::move(value)}};
      read_arguments(call);
      return call;
    }
    if (in_.accept("[")) {
      in_.skip_layout();
      Value key = values_.read();
      in_.skip_layout();
      in_.expect("]");
      return {NodeKind::kCallFunction,
              values_.function("operator.getitem", offset),
              {std::move(value), std::move(key)}};
    }
    in_.skip_spaces();
    for (const SignedFunction& binary : binary_functions()) {
      const size_t sign_offset = in_.offset();
      if (!in_.accept(binary.sign)) continue;
      in_.skip_spaces();
      return {NodeKind::kCallFunction,
              values_.function(binary.function, sign_offset),
              {std::move(value), values_.read()}};
    }
    if (in_.at_line_end() || in_.peek() == ';')
      in_.fail_at(offset, "expected a call: only a parameter may get another name, right after the 'def'");
    in_.fail_expected("a sign like '+', '.', '[' or '('");
  }

  // `x.shape`
  Call attribute_of(Value value, std::string path, size_t offset) {
    if (!is_identifier(path)) in_.fail_expected("'(' and the arguments of the method");
    return {NodeKind::kCallFunction, values_.function(kAttributeFunction, offset), {std::move(value), path}};
  }

  void read_arguments(Call& call) {
    in_.expect("(");
    in_.skip_layout();
    KeywordReader kwargs;
    while (!in_.accept(")")) {
      const size_t offset = in_.offset();
      if (in_.accept("**")) {
        read_keyword_dict(kwargs);
      } else if (std::string_view key = keyword(); !key.empty()) {
        add_keyword(kwargs, std::string(key), values_.read(), offset);
      } else {
        if (!kwargs.empty())
          in_.fail_at(offset, "expected an argument with a name, since there is one before it");
        call.args.push_back(values_.read());
      }
      in_.skip_layout();
      if (in_.accept(",")) in_.skip_layout();
      else if (in_.peek() != ')') in_.fail_expected("',' or ')'");
    }
    call.kwargs = kwargs.take();
  }

  // The name in `name = value`, with the cursor at the value; empty when that is not what comes.
  std::string_view keyword() {
    const size_t begin = in_.offset();
    const std::string_view key = in_.identifier();
    in_.skip_layout();
    if (!key.empty() && in_.peek() == '=' && in_.peek(1) != '=') {
      in_.expect("=");
      in_.skip_layout();
      return key;
    }
    in_.go_to(begin);
    return {};
  }

  void add_keyword(KeywordReader& kwargs, std::string key, Value value, size_t offset) {
    if (!kwargs.add(std::move(key), std::move(value)))
      in_.fail_at(offset, "expected a new name, but there is an argument of this name already");
  }

  // `**{'a-b': 1}`: names that Python has no other way to write
  void read_keyword_dict(KeywordReader& kwargs) {
    const size_t offset = in_.offset();
    if (in_.peek() != '{') in_.fail_expected("'{'");
    const Value dict = values_.read();
    for (const auto& [key, value] : dict.to_dict()) {
      if (!key.is_string()) in_.fail_at(offset, "expected the names of arguments to be strings");
      add_keyword(kwargs, std::string(key.to_string_view()), value, offset);
    }
  }

  TextReader in_;
  ValueReader values_;
  Graph graph_;
  std::vector<Parameter> parameters_;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::string result_type_;
  std::string_view heading_indent_;
  std::optional<std::string_view> body_indent_;
  std::optional<std::vector<std::string>> tree_arguments_;
  std::optional<size_t> num_positional_;
  bool has_returned_ = false;
  bool has_rest_ = false, has_keyword_rest_ = false, has_default_ = false;  // of the parameters so far
};

}  // namespace

Graph parse_code(std::string_view text) { return parse_code(text, {}); }
Graph parse_code(std::string_view text, const ParseOptions& options) {
  return CodeReader(text, options).run();
}

GraphModule parse_module(std::string_view text, TreeSpec arguments, TreeSpec result,
                         const ParseOptions& options) {
  CodeReader reader(text, options);
  Graph graph = reader.run();
  require(reader.tree_arguments().has_value(),
          "parse_module: the arguments in this code are no trees (there is no pytree.tree_unflatten); use "
          "parse_code");
  const std::vector<std::string>& names = *reader.tree_arguments();
  const size_t leaves = graph.placeholders().size();
  require(arguments.children().size() == names.size() && arguments.num_leaves() == leaves,
          "parse_module: the code takes {} arguments of {} leaves, but the trees given for them are {} of {}",
          names.size(), leaves, arguments.children().size(), arguments.num_leaves());
  require(graph.output_node() != nullptr, "parse_module: the code returns nothing");
  const size_t results = graph.output_node()->returned().elements().size();
  require(result.num_leaves() == results,
          "parse_module: the code gives {} leaves, but the tree given for its result has {}", results,
          result.num_leaves());
  GraphModule module(std::move(graph));
  module.set_call_spec({names, std::move(arguments), std::move(result), reader.num_positional()});
  return module;
}

}  // namespace weft
