// The script view as code. Values that are used once, right where they could be written, are written there,
// as long as the line stays short.
#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "graph/script/constants.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using Kind = ScriptType::Kind;

constexpr size_t kLongExpression = 38;  // columns, in a body that is indented by two

bool is_identifier(std::string_view text) {
  bool legal = !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0]));
  for (char c : text) legal &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  return legal;
}

// Words that no variable can have for a name.
bool is_reserved(const std::string& name) {
  static const std::unordered_set<std::string> words = {
      "False",     "None",   "True",  "and",  "as",     "assert",   "async",    "await",   "break", "class",
      "continue",  "def",    "del",   "elif", "else",   "except",   "finally",  "for",     "from",  "global",
      "if",        "import", "in",    "is",   "lambda", "nonlocal", "not",      "or",      "pass",  "raise",
      "return",    "try",    "while", "with", "yield",  "_",        "annotate", "getattr", "torch", "ops",
      "CONSTANTS", "int",    "float", "bool", "print",  "inf",      "nan"};
  return words.contains(name);
}

class VariableNames {
 public:
  // `wanted`, or `wanted` with a number behind it where that is taken.
  std::string make(const std::string& wanted) {
    std::string name = wanted;
    while (is_reserved(name) || !used_.insert(name).second) name = wanted + std::to_string(next_[wanted]++);
    return name;
  }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int64_t> next_;
};

// What the program called it, as far as that can be a variable: without the number that tells it from others.
std::string base_name(const ScriptValue& value) {
  std::string name = value.name.substr(0, value.name.find('.'));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return is_identifier(name) ? name : "_" + name;
}

// What a function shares with those inside it: names that are taken, and the numbers of tensors.
struct CodeNames {
  VariableNames variables;
  std::unordered_map<std::string, size_t> table;
};

class CodeWriter {
 public:
  CodeWriter(const ScriptGraph& graph, bool is_method, CodeNames& names)
      : graph_(graph),
        is_method_(is_method),
        names_(names.variables),
        table_(names.table),
        all_names_(names),
        inlined_(graph.nodes().size()) {
    size_t values = graph.inputs().size();
    for (const ScriptNode* node : graph.nodes()) values += node->outputs.size();
    uses_.resize(values);
    sites_.resize(values);
    expressions_.resize(values);
  }

  std::string run() {
    std::string head = header();
    return head + statements();
  }

 private:
  using Values = std::vector<const ScriptValue*>;

  std::string statements() {
    count_uses();
    choose_inlined();
    write_constants();
    for (const ScriptNode* node : graph_.nodes())
      if (!is_constant(*node)) write(*node);
    body_ += "  return " + list(graph_.outputs()) + "\n";
    return std::move(body_);
  }

  static bool is_constant(const ScriptNode& node) { return node.kind == "prim::Constant"; }

  // --- the head ---

  std::string header() {
    std::string text;
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ScriptValue& input = *graph_.inputs()[i];
      bool is_self = i == 0 && is_method_;
      std::string wanted = is_self          ? "self"
                           : input.is_named ? base_name(input)
                                            : "argument_" + std::to_string(i);
      std::string name = expressions_[input.number] = names_.make(wanted);
      text += (i ? ",\n    " : "") + name + (is_self ? "" : ": " + input.type.annotation());
    }
    std::string result = graph_.outputs().empty() ? "None" : graph_.outputs()[0]->type.annotation();
    return fmt::format("def {}({}) -> {}:\n", graph_.name(), text, result);
  }

  // --- what is written where it is used ---

  void count_uses() {
    for (const ScriptNode* node : graph_.nodes()) note_uses(node, node->inputs);
    note_uses(nullptr, graph_.outputs());
  }
  void note_uses(const ScriptNode* user, const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      ++uses_[values[i]->number];
      sites_[values[i]->number] = {user, static_cast<int64_t>(i)};
    }
  }

  // A value with a name stays a variable, unless it is all that is returned.
  bool may_be_inlined(const ScriptValue& value) const {
    return value.node->outputs.size() == 1 && uses_[value.number] == 1 && !value.node->body &&
           (!value.is_named || !sites_[value.number].first);
  }

  int64_t before(int64_t position) const {
    do --position;
    while (position >= 0 && is_constant(*graph_.nodes()[static_cast<size_t>(position)]));
    return position;
  }

  void choose_inlined() {
    const auto count = static_cast<int64_t>(graph_.nodes().size());
    choose_inlined(graph_.outputs(), before(count));
    for (int64_t i = count; i-- > 0;) {
      const ScriptNode* node = graph_.nodes()[static_cast<size_t>(i)];
      if (!inlined_[node->number] && !node->body) choose_inlined(node->inputs, before(i));
    }
  }

  // Walks back from a use. Arguments are computed from left to right, so the last one must be the line
  // before: then nothing changes its place when it is written inside the call.
  void choose_inlined(const Values& inputs, int64_t previous) {
    std::vector<std::pair<const Values*, size_t>> open = {{&inputs, inputs.size()}};
    while (!open.empty()) {
      auto& [values, left] = open.back();
      if (left == 0) {
        open.pop_back();
        continue;
      }
      const ScriptValue& value = *(*values)[--left];
      if (!value.node) continue;
      if (is_constant(*value.node)) {
        inlined_[value.node->number] = true;
      } else if (static_cast<int64_t>(value.node->number) == previous && may_be_inlined(value)) {
        inlined_[value.node->number] = true;
        previous = before(previous);
        open.emplace_back(&value.node->inputs, value.node->inputs.size());
      }
    }
  }

  // --- constants ---

  // In the order of their first use. Tensors are in a table beside the code.
  void write_constants() {
    for (const ScriptNode* node : graph_.nodes()) write_constants(node->inputs);
    write_constants(graph_.outputs());
  }
  void write_constants(const Values& values) {
    for (const ScriptValue* value : values) {
      if (!value->node || !is_constant(*value->node) || !expressions_[value->number].empty()) continue;
      std::string text = constant(*value);
      if (text.size() < kLongExpression) expressions_[value->number] = std::move(text);
      else assign(*value->node, text);
    }
  }

  std::string constant(const ScriptValue& value) {
    const ScriptNode& node = *value.node;
    if (const Value* name = node.attribute("name"))
      return fmt::format("__torch__.{}", name->to_string_view());
    const Value* held = node.attribute("value");
    if (!held) return "None";
    if (!value.type.is(Kind::kTensor)) return constant_code(*held, value.type);
    std::string key = held->is_tensor() ? std::to_string(held->tensor_ref().impl()->serial())
                                        : value.type.to_string() + held->to_string();
    return fmt::format("CONSTANTS.c{}", table_.try_emplace(std::move(key), table_.size()).first->second);
  }

  // --- statements ---

  void write(const ScriptNode& node) {
    if (node.kind == "prim::TupleUnpack" || node.kind == "prim::ListUnpack") {
      // The comma at the end tells taking apart from a second name for the same.
      body_ += "  " + variables(node) + (node.outputs.empty() ? "" : ", = ") + use(*node.inputs[0]) + "\n";
      return;
    }
    if (node.body) return assign(node, "fork(" + forked_function(node) + ")");
    std::string text = expression(node);
    if (!inlined_[node.number]) return assign(node, text);
    const bool is_long = text.size() >= kLongExpression;
    expressions_[node.outputs[0]->number] = std::move(text);
    if (is_long) break_before(*node.outputs[0]);
  }

  // A function inside this one, which sees what it is given by the names that it has here.
  std::string forked_function(const ScriptNode& node) {
    std::string name = names_.make("__forked_function");
    CodeWriter inner(*node.body, false, all_names_);
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inner.expressions_[node.body->inputs()[i]->number] = use(*node.inputs[i]);
    std::string lines = inner.statements();
    body_ += "  def " + name + "():\n";
    for (size_t at = 0; at < lines.size();) {
      size_t end = lines.find('\n', at) + 1;
      body_ += "  " + lines.substr(at, end - at);
      at = end;
    }
    return name;
  }

  // An expression that got long is a statement of its own, and so is what is computed before it and waits to
  // be written in the same line, in the calls around it too: nothing may be overtaken.
  void break_before(const ScriptValue& value) {
    Values waiting;
    auto [user, last] = sites_[value.number];
    while (true) {
      auto [seen, is_new] = broken_up_to_.try_emplace(user, -1);
      const Values& inputs = user ? user->inputs : graph_.outputs();
      for (int64_t i = last; i > seen->second; --i) {
        const ScriptValue* input = inputs[static_cast<size_t>(i)];
        if (input->node && !is_constant(*input->node) && inlined_[input->node->number])
          waiting.push_back(input);
      }
      seen->second = last;
      if (!is_new || !user || !inlined_[user->number]) break;
      std::tie(user, last) = sites_[user->outputs[0]->number];
      --last;  // the call itself is still being written
    }
    for (auto input = waiting.rbegin(); input != waiting.rend(); ++input)
      assign(*(*input)->node, std::string(use(**input)));
  }

  void assign(const ScriptNode& node, const std::string& text) {
    std::string names = variables(node);
    body_ += fmt::format("  {}{}{}\n", names, names.empty() ? "" : " = ", text);
    inlined_[node.number] = false;
  }

  std::string variables(const ScriptNode& node) {
    std::string text;
    for (const ScriptValue* value : node.outputs) {
      std::string name = names_.make(value->is_named ? base_name(*value) : "_");
      text += (text.empty() ? "" : ", ") + name;
      expressions_[value->number] = std::move(name);
    }
    return text;
  }

  // --- expressions ---

  const std::string& use(const ScriptValue& value) const {
    invariant(!expressions_[value.number].empty(), "%{} is used before it is made", value.name);
    return expressions_[value.number];
  }

  std::string list(const Values& values) const {
    std::string text;
    for (const ScriptValue* value : values) text += (text.empty() ? "" : ", ") + use(*value);
    return text;
  }

  std::string expression(const ScriptNode& node) const {
    if (!node.function.empty())
      return fmt::format("^{}({})({})", node.function, scalars_text(node.scalars), list(node.inputs));
    const size_t colon = node.kind.find(':');
    const std::string ns = node.kind.substr(0, colon), name = node.kind.substr(colon + 2);
    if (ns == "prim") return primitive(node, name);
    return ns == "aten" ? builtin(node, name) : fmt::format("ops.{}.{}({})", ns, name, arguments(node));
  }

  std::string primitive(const ScriptNode& node, const std::string& name) const {
    const Value* attribute = node.attribute("name");
    const std::string of(attribute ? attribute->to_string_view() : "");
    if (name == "GetAttr") {
      const std::string& object = use(*node.inputs[0]);
      return is_identifier(of) ? object + "." + of : fmt::format("getattr({}, {})", object, quoted_text(of));
    }
    if (name == "CallMethod") return fmt::format("({}).{}({})", use(*node.inputs[0]), of, passed(node));
    if (name == "CallFunction") return fmt::format("{}({})", use(*node.inputs[0]), passed(node));
    if (name == "TupleConstruct") return "(" + list(node.inputs) + (node.inputs.size() == 1 ? ",)" : ")");
    if (name == "ListConstruct") return list_display(node);
    if (name == "DictConstruct") return dict_display(node);
    return fmt::format("ops.prim.{}({})", name, list(node.inputs));
  }

  // Of a method or function: each with a comma behind it.
  std::string passed(const ScriptNode& node) const {
    std::string text;
    for (size_t i = 1; i < node.inputs.size(); ++i) text += use(*node.inputs[i]) + ", ";
    return text;
  }

  // The type is said where the elements do not tell it.
  std::string list_display(const ScriptNode& node) const {
    const ScriptType& type = node.outputs[0]->type;
    const ScriptType& element = type.elements[0];
    std::string text = "[" + list(node.inputs) + "]";
    bool tells = !node.inputs.empty() && !element.is(Kind::kOptional) && !element.is(Kind::kAny);
    return tells ? text : fmt::format("annotate({}, {})", type.annotation(), text);
  }

  std::string dict_display(const ScriptNode& node) const {
    std::string text;
    for (size_t i = 0; i + 1 < node.inputs.size(); i += 2)
      text +=
          fmt::format("{}{}: {}", text.empty() ? "" : ", ", use(*node.inputs[i]), use(*node.inputs[i + 1]));
    if (!text.empty()) return "{" + text + "}";
    return fmt::format("annotate({}, {{}})", node.outputs[0]->type.annotation());
  }

  std::string builtin(const ScriptNode& node, const std::string& name) const {
    static const std::unordered_map<std::string, std::string> conversions = {
        {"Int", "int({})"},
        {"Float", "float({})"},
        {"Bool", "bool({})"},
        {"ScalarImplicit", "annotate(number, {})"}};
    if (auto known = conversions.find(name); known != conversions.end())
      return fmt::format(fmt::runtime(known->second), list(node.inputs));
    if (name == "__getitem__") {
      const std::string& object = use(*node.inputs[0]);
      return fmt::format("{}[{}]", is_identifier(object) ? object : "(" + object + ")", use(*node.inputs[1]));
    }
    return fmt::format("torch.{}({})", name, arguments(node));
  }

  // Those at the end that have their defaults are left out; those after the star go by name.
  std::string arguments(const ScriptNode& node) const {
    if (!node.op || node.op->schema().arguments.size() != node.inputs.size()) return list(node.inputs);
    const std::vector<Argument>& wanted = node.op->schema().arguments;
    auto is_out = [&](size_t i) { return wanted[i].kwarg_only && wanted[i].is_written(); };
    size_t outs = wanted.size();
    while (outs > 0 && is_out(outs - 1)) --outs;
    size_t needed = outs;
    while (needed > 0 && has_default(node, needed - 1)) --needed;
    std::string text;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (i >= needed && i < outs) continue;
      text += (text.empty() ? "" : ", ") + (wanted[i].kwarg_only ? wanted[i].name + "=" : "") +
              use(*node.inputs[i]);
    }
    return text;
  }

  static bool has_default(const ScriptNode& node, size_t i) {
    const ScriptNode* made = node.inputs[i]->node;
    if (!node.op->schema().arguments[i].default_value || !made || !is_constant(*made)) return false;
    const Value* held = made->attribute("value");
    return (held ? *held : Value()) == node.op->info().defaults[i];
  }

  const ScriptGraph& graph_;
  bool is_method_;
  std::string body_;
  VariableNames& names_;
  std::unordered_map<std::string, size_t>& table_;
  CodeNames& all_names_;
  std::vector<bool> inlined_;  // by node
  std::vector<int64_t> uses_;  // by value
  // The last use of a value: by which node, null for the return, and as which input.
  std::vector<std::pair<const ScriptNode*, int64_t>> sites_;
  std::vector<std::string> expressions_;                         // of the values that have one by now
  std::unordered_map<const ScriptNode*, int64_t> broken_up_to_;  // the inputs that do not wait any more
};

}  // namespace

std::string ScriptGraph::code() const {
  CodeNames names;
  return CodeWriter(*this, is_method_, names).run();
}

}  // namespace weft
