// A graph as a Python function, as PyTorch's FX writes it.
#include "graph/text/code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "graph/text/value_text.h"
#include "weft/base/error.h"
#include "weft/graph/graph_module.h"
#include "weft/graph/text.h"

namespace weft {
namespace {

// --- statements ------------------------------------------------------------------------------------------

void append_code(std::string& out, const Value& value) { append_value(out, value, ValueStyle::kCode); }

// `self.layer1` for what can be written so; `getattr(self.layer1, "0").conv1` otherwise.
template <typename AppendObject>
void append_attribute(std::string& out, std::string_view path, const AppendObject& append_object) {
  auto next_part = [](std::string_view& rest) {
    const size_t dot = rest.find('.');
    std::string_view part = rest.substr(0, dot);
    rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    return part;
  };
  const auto parts = 1 + std::count(path.begin(), path.end(), '.');
  std::string_view rest = path;
  for (ptrdiff_t i = 0; i < parts; ++i)
    if (!is_identifier(next_part(rest))) out += "getattr(";
  append_object();
  rest = path;
  for (ptrdiff_t i = 0; i < parts; ++i) {
    std::string_view part = next_part(rest);
    if (is_identifier(part)) {
      out += '.';
      out += part;
      continue;
    }
    std::string quoted;
    append_quoted(quoted, part);
    if (part.find('"') == std::string_view::npos) quoted.front() = quoted.back() = '"';  // as PyTorch does
    out += ", " + quoted + ")";
  }
}

void append_self(std::string& out, const Node& node) {
  append_attribute(out, node.target().to_string(), [&] { out += "self"; });
}

void append_arguments(std::string& out, std::span<const Value> args, const Kwargs& kwargs) {
  bool first = true;
  auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  out += '(';
  for (const Value& value : args) {
    separate();
    append_code(out, value);
  }
  for (const auto& [key, value] : kwargs) {
    separate();
    if (is_identifier(key)) {
      out += key;
      out += " = ";
      append_code(out, value);
    } else {
      out += "**{";
      append_quoted(out, key);
      out += ": ";
      append_code(out, value);
      out += '}';
    }
  }
  out += ')';
}

// What a dot comes after. Where the dot would be read as part of it, it gets parentheses.
void append_receiver(std::string& out, const Value& value) {
  using Kind = Value::Kind;
  const Kind kind = value.kind();
  const bool needs_parentheses = value.is_number() || kind == Kind::kDType || kind == Kind::kLayout ||
                                 kind == Kind::kMemoryFormat || kind == Kind::kTensor;
  if (needs_parentheses) out += '(';
  append_code(out, value);
  if (needs_parentheses) out += ')';
}

const SignedFunction* sign_of(std::string_view function, std::span<const SignedFunction> among) {
  auto found = std::find_if(among.begin(), among.end(),
                            [&](const SignedFunction& entry) { return entry.function == function; });
  return found == among.end() ? nullptr : &*found;
}

bool append_with_sign(std::string& out, const PythonFunction& function, const ValueList& args) {
  if (args.size() == 2 && function.symbol == "[]") {
    append_code(out, args[0]);
    out += '[';
    append_code(out, args[1]);
    out += ']';
    return true;
  }
  if (args.size() == 2 && function.name == kAttributeFunction && args[1].is_string() &&
      is_identifier(args[1].to_string_view())) {
    append_receiver(out, args[0]);
    out += '.';
    out += args[1].to_string_view();
    return true;
  }
  if (args.size() == 1) {
    const SignedFunction* unary = sign_of(function.name, unary_functions());
    if (!unary) return false;
    out += unary->sign;
    append_code(out, args[0]);
    return true;
  }
  const SignedFunction* binary = args.size() == 2 ? sign_of(function.name, binary_functions()) : nullptr;
  if (!binary) return false;
  append_code(out, args[0]);
  out += ' ';
  out += binary->sign;
  out += ' ';
  append_code(out, args[1]);
  return true;
}

void append_function(std::string& out, const Node& node) {
  const PythonFunction* function = node.target().function();
  if (function && node.kwargs().empty() && append_with_sign(out, *function, node.args())) return;
  append_target(out, node.target());
  append_arguments(out, node.args(), node.kwargs());
}

void append_method(std::string& out, const Node& node) {
  const std::span<const Value> args = node.args();
  const Value receiver = args.empty() ? Value() : args[0];
  append_attribute(out, node.target().to_string(), [&] { append_receiver(out, receiver); });
  append_arguments(out, args.empty() ? args : args.subspan(1), node.kwargs());
}

void append_call(std::string& out, const Node& node) {
  switch (node.kind()) {
    case NodeKind::kGetAttr:
      return append_self(out, node);
    case NodeKind::kCallFunction:
      return append_function(out, node);
    case NodeKind::kCallMethod:
      return append_method(out, node);
    case NodeKind::kCallModule:
      append_self(out, node);
      return append_arguments(out, node.args(), node.kwargs());
    case NodeKind::kPlaceholder:
    case NodeKind::kOutput:
      return;
  }
}

// --- lifetimes -------------------------------------------------------------------------------------------

// The values that nobody needs after a node. Most have one user, who answers for itself; of the others the
// last user is looked for once, when the first of them is written.
class LastUses {
 public:
  explicit LastUses(const Graph& graph) : graph_(graph) {}

  // Calls f for each of the node's inputs that it is the last to use, in the order of its arguments.
  template <typename F>
  void of(const Node& node, const F& f) {
    for (const Node* input : node.inputs())
      if (input->users().size() == 1 || last_user(*input) == &node) f(*input);
  }

 private:
  const Node* last_user(const Node& value) {
    const Node*& last = last_user_[&value];
    if (!last)
      value.users().for_each([&](const Node& user) {
        if (!last || graph_.is_before(*last, user)) last = &user;
      });
    return last;
  }

  const Graph& graph_;
  std::unordered_map<const Node*, const Node*> last_user_;
};

// --- where calls were made -------------------------------------------------------------------------------

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

// `m.py:7 in forward` for a line `File "m.py", line 7, in forward` of a Python stack trace; else empty.
std::string frame_summary(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  const size_t number = line.rfind(kLine), in = line.find(kIn, number == std::string_view::npos ? 0 : number);
  if (!line.starts_with(kFile) || number == std::string_view::npos || in == std::string_view::npos) return "";
  const std::string_view digits = line.substr(number + kLine.size(), in - number - kLine.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return "";
  return fmt::format("{}:{} in {}", line.substr(kFile.size(), number - kFile.size()), digits,
                     line.substr(in + kIn.size()));
}

// A line about it: the innermost call of a Python stack trace, or the one line that it is.
std::string source_summary(std::string_view source) {
  source = trimmed(source);
  const bool is_one_line = source.find('\n') == std::string_view::npos;
  if (is_one_line && !source.empty()) return fmt::format("File: {}", source);
  std::string summary = "No stacktrace found for following nodes";
  while (!source.empty()) {
    const size_t end = source.find('\n');
    std::string_view rest = end == std::string_view::npos ? std::string_view() : source.substr(end + 1);
    const std::string frame = frame_summary(trimmed(source.substr(0, end)));
    if (!frame.empty() && !rest.empty())
      summary = fmt::format("File: {}, code: {}", frame, trimmed(rest.substr(0, rest.find('\n'))));
    source = rest;
  }
  return summary;
}

// --- the function ----------------------------------------------------------------------------------------

class CodeWriter {
 public:
  CodeWriter(const Graph& graph, const CodeStyle& style)
      : graph_(graph), style_(style), last_uses_(graph), body_indent_(std::string(style.indent) + "    ") {}

  std::string run() {
    body_.reserve(kUsualLine * graph_.size());
    for (const Node& node : graph_) {
      if (style_.verbose) write_source(node);
      if (node.kind() == NodeKind::kPlaceholder) write_parameter(node);
      else if (node.kind() == NodeKind::kOutput) write_return(node);
      else write_statement(node);
    }
    if (body_.empty()) body_ = body_indent_ + "pass\n";
    if (style_.call_spec) write_trees();
    body_.insert(0, fmt::format("{}{}def forward(self{}){}:\n", style_.heading, style_.indent, parameters_,
                                result_type_));
    return std::move(body_);
  }

 private:
  static constexpr size_t kUsualLine = 96;

  void write_parameter(const Node& node) {
    const std::string target = node.target().to_string();
    if (style_.call_spec) {
      leaves_.push_back(target);
      append_annotation(leaves_.back(), node);
    } else {
      parameters_ += ", " + target;
      append_annotation(parameters_, node);
    }
    if (!node.args().empty() && !style_.call_spec) {
      parameters_ += " = ";
      append_code(parameters_, node.args()[0]);
    }
    std::string raw = target;
    std::erase(raw, '*');
    if (raw != node.name()) body_ += fmt::format("{}{} = {}\n", body_indent_, node.name(), raw);
  }

  // Annotations of leaves stand in a line of their own: Python has none for names that are assigned together.
  void write_trees() {
    const std::vector<std::string>& names = style_.call_spec->argument_names;
    for (const std::string& name : names) parameters_ += ", " + name;
    if (leaves_.empty()) return;
    std::string annotated, bare;
    for (const std::string& leaf : leaves_) {
      const size_t colon = leaf.find(':');
      if (colon != std::string::npos) annotated += leaf + "; ";
      bare += leaf.substr(0, colon) + ", ";
    }
    if (!annotated.empty()) annotated = fmt::format("{}{}\n\n", body_indent_, annotated);
    body_.insert(0, fmt::format("{}{}{}= fx_pytree.tree_flatten_spec({}, self._in_spec)\n", annotated,
                                body_indent_, bare, trees_text()));
  }

  // "[x, y]", or as a pair "([x], {'y':y})".
  std::string trees_text() const {
    const std::vector<std::string>& names = style_.call_spec->argument_names;
    const std::optional<size_t>& positional = style_.call_spec->num_positional;
    if (!positional) return fmt::format("[{}]", fmt::join(names, ", "));
    const auto split = names.begin() + static_cast<ptrdiff_t>(*positional);
    std::string by_name;
    for (auto name = split; name != names.end(); ++name)
      by_name += fmt::format("{}'{}':{}", by_name.empty() ? "" : ", ", *name, *name);
    return fmt::format("([{}], {{{}}})", fmt::join(names.begin(), split, ", "), by_name);
  }

  void write_return(const Node& node) {
    if (const NodeMeta* meta = node.meta_or_null(); meta && meta->type) {
      result_type_ = " -> ";
      append_type(result_type_, type_text(node));
    }
    body_ += body_indent_;
    body_ += style_.call_spec ? "return pytree.tree_unflatten(" : "return ";
    append_code(body_, node.returned());
    body_ += style_.call_spec ? ", self._out_spec)\n" : "\n";
  }

  void write_statement(const Node& node) {
    body_ += body_indent_;
    body_ += node.name();
    append_annotation(body_, node);
    body_ += " = ";
    append_call(body_, node);
    bool any = false;
    auto release = [&](const Node& value) {
      body_ += any ? " = " : ";  ";
      body_ += value.name();
      any = true;
    };
    last_uses_.of(node, release);
    if (node.users().empty()) release(node);
    body_ += any ? " = None\n" : "\n";
  }

  void append_annotation(std::string& out, const Node& node) const {
    const NodeMeta* meta = node.meta_or_null();
    if (!meta) return;
    if (style_.verbose) {
      const std::string text = value_annotation(
          meta->value,
          {.strides = style_.strides, .devices = style_.devices, .requires_grad = style_.requires_grad});
      if (!text.empty()) {
        out += ": \"" + text + "\"";
        return;
      }
    }
    if (!meta->type) return;
    out += " : ";
    append_type(out, type_text(node));
  }

  // A comment where the calls below have another source location than those above.
  void write_source(const Node& node) {
    if (node.kind() == NodeKind::kPlaceholder || node.kind() == NodeKind::kOutput) return;
    std::string source = node.source();
    if (source_ && *source_ == source) return;
    std::string comment = source_summary(source);
    source_ = std::move(source);
    if (comment == comment_) return;
    if (!body_.empty()) body_ += '\n';
    body_ += body_indent_ + "# " + comment + "\n";
    comment_ = std::move(comment);
  }

  const Graph& graph_;
  const CodeStyle& style_;
  LastUses last_uses_;
  const std::string body_indent_;
  std::string parameters_, body_, result_type_;
  std::vector<std::string> leaves_;    // of parameters that are trees, with their annotations
  std::optional<std::string> source_;  // of the last call
  std::string comment_;
};

}  // namespace

std::string function_code(const Graph& graph, const CodeStyle& style) {
  return CodeWriter(graph, style).run();
}

std::string Graph::code() const {
  std::string text = function_code(*this, {.heading = "\n\n\n"});
  text += "    ";
  return text;
}

std::string value_annotation(const Value& value, const ReadableOptions& options) {
  auto in_brackets = [](SymIntSpan sizes) { return describe_sizes(sizes).str(); };
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor_ref();
    return fmt::format("{}{}{}{}{}", short_name(tensor.dtype()), in_brackets(tensor.sizes()),
                       options.strides ? in_brackets(tensor.strides()) : "",
                       options.devices ? tensor.device().to_string() : "",
                       options.requires_grad && tensor.requires_grad() ? " requires_grad" : "");
  }
  using Kind = Value::Kind;
  const bool symbolic =
      value.kind() == Kind::kSymInt || value.kind() == Kind::kSymFloat || value.kind() == Kind::kSymBool;
  return symbolic ? "Sym(" + value.to_string() + ")" : "";
}

std::string shown_type(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return "";
  std::string text = value_annotation(meta->value);
  if (meta->value.is_sequence())
    for (const Value& element : meta->value.elements()) {
      const std::string part = value_annotation(element);
      if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
    }
  return text.empty() ? type_text(node) : text;
}

std::string readable_code(const Graph& graph, std::string_view class_name, const ReadableOptions& options,
                          const CallSpec* call_spec) {
  const std::string heading = fmt::format("class {}(torch.nn.Module):\n", class_name);
  return function_code(graph, {.heading = heading,
                               .indent = "    ",
                               .verbose = true,
                               .strides = options.strides,
                               .devices = options.devices,
                               .requires_grad = options.requires_grad,
                               .call_spec = call_spec});
}

std::string readable(const Graph& graph, std::string_view class_name, const ReadableOptions& options) {
  return readable_code(graph, class_name, options, nullptr);
}

}  // namespace weft
