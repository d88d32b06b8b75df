#include "weft/io/folder.h"

#include <filesystem>
#include <fstream>

#include "io/cpp_calls.h"
#include "weft/base/error.h"
#include "weft/capture/symbolic_trace.h"
#include "weft/io/graph_file.h"

namespace weft {
namespace {

// A class with the tensors of a module as members and its graphs as functions.
// A parameter of `forward`; no text where it has no default.
struct Parameter {
  std::string type, name, default_text;
  bool is_used;
};

class ClassWriter {
 public:
  explicit ClassWriter(const std::string& class_name) : class_name_(class_name) {
    for (const char* used : {"forward", "parameter", "buffer", "child", "attribute", "state", "eval", "train",
                             "argument_names", "with_hooks", "folder", "weights"})
      members_.reserve(used);
    members_.reserve(class_name);
  }

  CppSource write(const GraphModule& module);

  // The member for a tensor of the module, of this name in the file.
  std::string weight(const std::string& name, const Tensor& tensor) {
    auto [entry, is_new] = weights_.try_emplace(name);
    if (!is_new) return entry->second;
    const std::string member = members_.take(name);
    entry->second = member;
    // As a string: a comment must not end where the file says so.
    const std::string path = member == name ? "" : fmt::format("  // {}", cpp_string(name));
    declarations_ += fmt::format("  weft::Tensor {};{}\n", member, path);
    constructor_ +=
        fmt::format("  {0} = {1}({2}, weights.at({3}));\n", member,
                    tensor.requires_grad() ? "parameter" : "buffer", cpp_string(member), cpp_string(name));
    return member;
  }
  // The member function that runs a graph inside the module, whose tensors are at `prefix` in the file.
  std::string function(const GraphModule& module, const std::string& prefix);

 private:
  std::string default_of(const Parameter& parameter);

  const std::string class_name_;
  CppNames members_;
  std::unordered_map<std::string, std::string> weights_, functions_;
  std::string declarations_, constructor_, private_declarations_, definitions_;
};

bool is_known_not_to_be_a_tensor(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  return meta && !meta->value.is_none() && !meta->value.is_tensor();
}

// The statements of one graph.
class FunctionWriter {
 public:
  FunctionWriter(ClassWriter& owner, const GraphModule& module, std::string prefix)
      : owner_(owner), module_(module), prefix_(std::move(prefix)), calls_(locals_) {}

  // As function with typed parameters and result.
  void write_typed() {
    for (const Node& node : module_.graph()) {
      if (node.kind() == NodeKind::kPlaceholder) add_parameter(node);
      else if (node.kind() == NodeKind::kOutput) write_typed_return(node);
      else write_statement(node);
    }
  }
  // As function of Values.
  void write_boxed() {
    size_t next = 0;
    for (const Node& node : module_.graph()) {
      if (node.kind() == NodeKind::kPlaceholder) {
        const NodeMeta* meta = node.meta_or_null();
        const bool is_tensor = meta && meta->value.is_tensor();
        const std::string input = fmt::format("inputs[{}]{}", next++, is_tensor ? ".to_tensor()" : "");
        if (!node.users().empty()) write(node, {input, is_tensor ? Held::kTensor : Held::kValue});
      } else if (node.kind() == NodeKind::kOutput) {
        body_ += fmt::format("  return {};\n", calls_.value(node, node.returned()));
      } else {
        write_statement(node);
      }
    }
  }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::string& result_type() const { return result_type_; }
  const std::string& body() const { return body_; }

 private:
  static constexpr const char* kTypes[] = {"", "Tensor", "std::vector<Tensor>", "auto", "Value"};

  void write(const Node& node, const Expression& expression) {
    if (expression.held == Held::kNothing || node.users().empty()) {
      body_ += fmt::format("  {};\n", expression.text);
      return;
    }
    const std::string name = names_.take(node.name());
    locals_[&node] = {name, expression.held};
    body_ +=
        fmt::format("  {} {} = {};\n", kTypes[static_cast<size_t>(expression.held)], name, expression.text);
  }

  void add_parameter(const Node& node) {
    const std::string target = node.target().to_string();
    require(target.find('*') == std::string::npos,
            "to_folder: '{}' takes any number of inputs, which the class does not; give each input a name",
            target);
    const bool is_value = is_known_not_to_be_a_tensor(node);
    const std::string name = names_.take(node.name());
    locals_[&node] = {name, is_value ? Held::kValue : Held::kTensor};
    std::string default_text;
    if (!node.args().empty()) {
      const Value& given = node.args()[0];
      default_text = given.is_none() ? "{}" : calls_.value(node, given);
      require(is_value || given.is_none(),
              "to_folder: the default of input '{}' is {}, and nothing says that it is "
              "no tensor; capture the program with that input",
              name, given.to_string());
    }
    parameters_.push_back({is_value ? "Value" : "Tensor", name, default_text, !node.users().empty()});
  }

  void write_statement(const Node& node) {
    if (node.kind() == NodeKind::kGetAttr) return write_attribute(node);
    if (node.kind() != NodeKind::kCallModule) return write(node, calls_.call(node));
    const std::string path = node.target().to_string();
    std::optional<GraphModule> inner = graph_module_in(module_.find(path));
    require(inner.has_value() && node.kwargs().empty(),
            "to_folder: node '{}' calls the C++ module '{}', which has no C++ form here; inline_modules() "
            "turns such "
            "calls into operators",
            node.name(), path);
    const std::string function = owner_.function(*inner, prefix_ + path + "/");
    write(node, {fmt::format("this->{}(ValueList{{{}}})", function, calls_.values(node, node.args())),
                 Held::kValue});
  }

  void write_attribute(const Node& node) {
    const std::string path = node.target().to_string();
    Value value = module_.find(path);
    if (value.is_tensor()) {
      write(node, {"this->" + owner_.weight(prefix_ + path, value.to_tensor()), Held::kTensor});
    } else {
      std::optional<GraphModule> inner = graph_module_in(value);
      require(inner.has_value(), "to_folder: the attribute '{}' of node '{}' is {}, which has no C++ form",
              path, node.name(), value.kind_name());
      write(node, {fmt::format("Value(Ref<ValueObject>(weft::make_closure([this](Args inputs) {{ return "
                               "this->{}(inputs); }})))",
                               owner_.function(*inner, prefix_ + path + "/")),
                   Held::kValue});
    }
  }

  bool is_tensor(const Value& value) const {
    const Node* node = node_in(value);
    return node && calls_.local(*node).held == Held::kTensor;
  }
  void write_typed_return(const Node& node) {
    const Value result = node.returned();
    std::string text;
    if (const Node* only = node_in(result); only && calls_.local(*only).held != Held::kTuple) {
      const Local& local = calls_.local(*only);
      result_type_ = kTypes[static_cast<size_t>(local.held)];
      text = local.name;
    } else if (result.is_sequence() && !result.elements().empty() &&
               std::all_of(result.elements().begin(), result.elements().end(),
                           [&](const Value& one) { return is_tensor(one); })) {
      std::string types;
      for (size_t i = 0; i < result.elements().size(); ++i) types += i ? ", Tensor" : "Tensor";
      result_type_ = result.is_list() ? "std::vector<Tensor>" : fmt::format("std::tuple<{}>", types);
      text = fmt::format("{{{}}}", calls_.values(node, result.elements()));
    } else {
      result_type_ = "Value";
      text = calls_.value(node, result);
    }
    body_ += fmt::format("  return {};\n", text);
  }

  ClassWriter& owner_;
  const GraphModule& module_;
  const std::string prefix_;
  Locals locals_;
  CallWriter calls_;
  CppNames names_;
  std::vector<Parameter> parameters_;
  std::string result_type_ = "Value", body_;
};

std::string ClassWriter::function(const GraphModule& module, const std::string& prefix) {
  auto [entry, is_new] = functions_.try_emplace(prefix);
  if (!is_new) return entry->second;
  const std::string name = members_.take(std::string_view(prefix).substr(0, prefix.size() - 1));
  entry->second = name;
  FunctionWriter function(*this, module, prefix);
  function.write_boxed();
  private_declarations_ += fmt::format("  weft::Value {}(weft::Args inputs);\n", name);
  definitions_ += fmt::format("\nValue {}::{}(Args inputs) {{\n{}}}\n", class_name_, name, function.body());
  return name;
}

// In a header there is no `using namespace`.
std::string qualified(std::string type) {
  for (const char* name : {"Tensor", "Value"})
    for (size_t at = 0; (at = type.find(name, at)) != std::string::npos;
         at += 6 + std::string_view(name).size())
      type.insert(at, "weft::");
  return type;
}

// What stands for the default in the header: its text is written for the source, where weft's names are
// known.
std::string ClassWriter::default_of(const Parameter& parameter) {
  if (parameter.default_text == "{}") return parameter.default_text;
  const std::string function = members_.take("default_" + parameter.name);
  private_declarations_ += fmt::format("  static {} {}();\n", qualified(parameter.type), function);
  definitions_ += fmt::format("\n{} {}::{}() {{ return {}; }}\n", parameter.type, class_name_, function,
                              parameter.default_text);
  return function + "()";
}

CppSource ClassWriter::write(const GraphModule& module) {
  FunctionWriter forward(*this, module, "");
  forward.write_typed();
  std::string declared, defined, names;
  for (const Parameter& parameter : forward.parameters()) {
    const char* separator = declared.empty() ? "" : ", ";
    declared += fmt::format("{}const {}& {}", separator, qualified(parameter.type), parameter.name);
    if (!parameter.default_text.empty()) declared += " = " + default_of(parameter);
    defined += parameter.is_used
                   ? fmt::format("{}const {}& {}", separator, parameter.type, parameter.name)
                   : fmt::format("{}const {}& /*{}*/", separator, parameter.type, parameter.name);
    names += separator + parameter.name;
  }
  CppSource code;
  code.header = fmt::format(
      "// Made by weft::to_folder.\n#pragma once\n\n#include <weft/weft.h>\n\n#include <string>\n\n"
      "class {0} : public weft::nn::Module {{\n public:\n"
      "  // Reads {0}.safetensors from `folder`.\n  explicit {0}(const std::string& folder);\n\n"
      "  {1} forward({2});\n  WEFT_ARGS({3})\n",
      class_name_, qualified(forward.result_type()), declared, names);
  if (!declarations_.empty()) code.header += "\n" + declarations_;
  if (!private_declarations_.empty()) code.header += "\n private:\n" + private_declarations_;
  code.header += "};\n";
  if (!module.is_training()) constructor_ += "  eval();\n";
  const std::string loads =
      weights_.empty()
          ? ""
          : fmt::format(
                "  const weft::SafeTensors weights = weft::load_safetensors(folder + \"/{}.safetensors\");\n",
                class_name_);
  code.source = fmt::format(
      "// Made by weft::to_folder.\n#include \"{0}.h\"\n\n#include <weft/extend.h>\n\n#include <array>\n"
      "#include <limits>\n#include <tuple>\n#include <vector>\n\nusing namespace weft;\n\n"
      "{0}::{0}(const std::string& {1}) {{\n{2}{3}}}\n\n{4} {0}::forward({5}) {{\n{6}}}\n{7}",
      class_name_, weights_.empty() ? "/*folder*/" : "folder", loads, constructor_, forward.result_type(),
      defined, forward.body(), definitions_);
  return code;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  require(static_cast<bool>(file), "to_folder: '{}' cannot be written", path.string());
}

std::string data_file(const std::string& folder, const std::string& class_name) {
  return (std::filesystem::path(folder) / (class_name + ".safetensors")).string();
}

}  // namespace

CppSource cpp_source(const GraphModule& module, const std::string& class_name) {
  require(is_cpp_identifier(class_name),
          "to_folder: '{}' cannot be the name of a C++ class; use letters, digits and "
          "single underscores",
          class_name);
  require(CppNames().take(class_name) == class_name,
          "to_folder: a class '{}' would hide what its own code names; choose another name", class_name);
  module.graph().lint();
  return ClassWriter(class_name).write(module);
}

void to_folder(const GraphModule& module, const std::string& folder, const std::string& class_name) {
  GraphModule inlined = inline_modules(module);
  CppSource code = cpp_source(inlined, class_name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "to_folder: the folder '{}' cannot be made: {}", folder, error.message());
  write_file(std::filesystem::path(folder) / (class_name + ".h"), code.header);
  write_file(std::filesystem::path(folder) / (class_name + ".cc"), code.source);
  save_graph_module(inlined, data_file(folder, class_name));
}

GraphModule load_folder(const std::string& folder, const std::string& class_name) {
  return load_graph_module(data_file(folder, class_name));
}

}  // namespace weft
