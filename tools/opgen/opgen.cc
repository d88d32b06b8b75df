// Writes the typed API of weft's operators from the schemas that stand in the operator files.
//
//   weft-opgen OUTPUT_FOLDER SOURCE...
//
// A definition is found by the word WEFT_OPERATOR(name); the string literals of its .schema, .inplace and
// .out fields are the overloads. Files are only written when their text changes, so that nothing is rebuilt
// for a change inside a kernel.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/dispatch/schema.h"

namespace weft::opgen {
namespace {

enum class Form { kFunctional, kInplace, kOut };
constexpr const char* kFormNames[] = {"kFunctional", "kInplace", "kOut"};

struct Overload {
  std::string definition;  // the C++ name of its OpDef
  Form form;
  std::string text;
  Schema schema;
  size_t index = 0;     // in the table
  size_t required = 0;  // C++ parameters without a default
  bool is_inplace_view = false;
  std::set<size_t> one_number = {};  // C++ parameters that are lists, and may be given as one number
  std::optional<size_t> exact_flag =
      {};  // a C++ parameter that is a flag where another overload takes a number
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "cannot read {}", path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  if (std::filesystem::exists(path) && read_file(path.string()) == text) return;
  std::ofstream(path, std::ios::binary) << text;
}

// The adjacent string literals that start at `at`, joined.
std::string literals_at(const std::string& source, size_t at) {
  std::string joined;
  while (at < source.size()) {
    at = source.find_first_not_of(" \t\r\n", at);
    if (at == std::string::npos || source[at] != '"') break;
    size_t end = at + 1;
    while (end < source.size() && source[end] != '"') end += source[end] == '\\' ? 2 : 1;
    for (size_t i = at + 1; i < end; ++i)
      if (source[i] == '\\') joined += source[++i];
      else joined += source[i];
    at = end + 1;
  }
  return joined;
}

void find_field(const std::string& body, const char* field, Form form, const std::string& name,
                std::vector<Overload>& found) {
  const std::string word = fmt::format(".{} =", field);
  for (size_t at = body.find(word); at != std::string::npos; at = body.find(word, at)) {
    // Not inside a longer expression: a field follows a brace, a comma or white space.
    bool is_field = std::strchr("{, \n", body[at - 1]) != nullptr;
    at += word.size();
    // The kernels of the forms are fields of the same names, one level deeper.
    size_t value = body.find_first_not_of(" \t\r\n", at);
    if (!is_field || body.compare(value, 9, "function<") == 0 || body.compare(value, 10, "structured") == 0)
      continue;
    std::string text = literals_at(body, at);
    require(!text.empty(), "{}: .{} is not a string literal", name, field);
    found.push_back({name, form, text, parse_schema(text)});
    return;
  }
}

void scan(const std::string& path, std::vector<Overload>& found) {
  const std::string source = read_file(path);
  const std::string word = "\nWEFT_OPERATOR(";
  for (size_t at = source.find(word); at != std::string::npos;) {
    size_t begin = at + word.size(), close = source.find(')', begin);
    size_t next = source.find(word, begin);
    std::string name = source.substr(begin, close - begin) + "_op";
    std::string body = source.substr(close, next == std::string::npos ? next : next - close);
    While scope([&] { return fmt::format("reading operator {} in {}", name, path); });
    find_field(body, "schema", Form::kFunctional, name, found);
    find_field(body, "inplace", Form::kInplace, name, found);
    find_field(body, "out", Form::kOut, name, found);
    at = next;
  }
}

// --- types -----------------------------------------------------------------------------------------------

bool is_tensor(const Type& type) { return type.kind() == Type::Kind::kTensor; }
bool is_optional_tensor(const Type& type) { return type.is_optional() && is_tensor(type.element()); }
bool is_tensor_list(const Type& type) {
  return type.is_list() && (is_tensor(type.element()) || is_optional_tensor(type.element()));
}

std::string plain_type(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::kTensor:
      return "Tensor";
    case Type::Kind::kScalar:
      return "Scalar";
    case Type::Kind::kInt:
      return "int64_t";
    case Type::Kind::kSymInt:
      return "SymInt";
    case Type::Kind::kFloat:
      return "double";
    case Type::Kind::kBool:
      return "bool";
    case Type::Kind::kString:
      return "std::string_view";
    case Type::Kind::kScalarType:
      return "DType";
    case Type::Kind::kDevice:
      return "Device";
    case Type::Kind::kLayout:
      return "Layout";
    case Type::Kind::kMemoryFormat:
      return "MemoryFormat";
    case Type::Kind::kGenerator:
      return "Generator";
    default:
      break;
  }
  if (type.is_list()) {
    const Type& element = type.element();
    if (is_tensor(element) || is_optional_tensor(element)) return "TensorSpan";
    switch (element.kind()) {
      case Type::Kind::kInt:
        return "IntSpan";
      case Type::Kind::kSymInt:
        return "SymIntSpan";
      case Type::Kind::kFloat:
        return "ListSpan<double>";
      case Type::Kind::kScalar:
        return "ListSpan<Scalar>";
      case Type::Kind::kBool:
        return fmt::format("std::array<bool, {}>", type.list_size().value_or(1));
      default:
        break;
    }
  }
  if (type.is_optional()) {
    const Type& element = type.element();
    if (is_tensor(element)) return "Tensor";
    if (element.is_list()) return fmt::format("OptionalSpan<{}>", plain_type(element));
    return fmt::format("std::optional<{}>", plain_type(element));
  }
  fail("no C++ type for {}", type.to_string());
}

std::string parameter_type(const Type& type) {
  std::string plain = plain_type(type);
  static const std::set<std::string> by_reference = {"Tensor", "Scalar", "SymInt", "Generator"};
  bool heavy = by_reference.count(plain) || plain.starts_with("std::optional<S") ||
               plain == "std::optional<Generator>";
  return heavy ? "const " + plain + "&" : plain;
}

std::string return_type(const Schema& schema) {
  const auto& returns = schema.returns;
  if (returns.empty()) return "void";
  if (returns.size() == 1) {
    const Type& type = returns[0].type;
    bool written = returns[0].alias && returns[0].alias->is_write;
    if (is_tensor(type)) return written ? "const Tensor&" : "Tensor";
    if (is_tensor_list(type)) return "std::vector<Tensor>";
    if (type.is_list() && type.element().is(Type::Kind::kInt)) return "Ints";
    if (type.is_list() && type.element().is(Type::Kind::kSymInt)) return "SymInts";
    return plain_type(type);
  }
  std::string text = "std::tuple<";
  for (size_t i = 0; i < returns.size(); ++i)
    text += (i ? ", " : "") +
            (is_tensor_list(returns[i].type) ? "std::vector<Tensor>" : plain_type(returns[i].type));
  return text + ">";
}

// --- defaults --------------------------------------------------------------------------------------------

std::string scalar_default(const DefaultValue& value, const Type& type) {
  std::string text = value.to_string();
  if (text == "None") return "{}";
  if (text == "True") return "true";
  if (text == "False") return "false";
  if (type.is(Type::Kind::kScalarType) && text == "4") return "kInt64";  // PyTorch's number of the type
  if (type.kind() == Type::Kind::kMemoryFormat) return "MemoryFormat::kContiguous";
  if (text == "long") return "kInt64";
  if (text.size() >= 2 && (text[0] == '"' || text[0] == '\''))
    return "\"" + text.substr(1, text.size() - 2) + "\"";
  return text;
}

std::string default_text(const Argument& argument) {
  if (argument.is_reduction()) return "Reduction::kMean";
  const Type& type = argument.type;
  const Type& list = type.is_optional() && type.element().is_list() ? type.element() : type;
  std::string text = argument.default_value->to_string();
  if (!list.is_list())
    return scalar_default(*argument.default_value, type.is_optional() ? type.element() : type);
  if (text == "None") return "{}";
  if (text.starts_with("[")) {
    std::string inner = text.substr(1, text.size() - 2);
    return "{" + inner + "}";
  }
  // One number stands for a list of the fixed size.
  std::string repeated;
  for (int64_t i = 0; i < list.list_size().value_or(1); ++i) repeated += (i ? ", " : "") + text;
  return "{" + repeated + "}";
}

// --- names and parameters --------------------------------------------------------------------------------

std::string cpp_name(const std::string& name) {
  static const std::set<std::string> reserved = {"and",   "or",  "not",  "xor",   "default",
                                                 "float", "int", "bool", "double"};
  return reserved.count(name) ? name + "_" : name;
}

std::string function_name(const Overload& o) {
  return o.form == Form::kOut ? cpp_name(o.schema.name) + "_out" : cpp_name(o.schema.name);
}

// C++ parameters in order: the schema's, but the written tensors of an out= form first, so that defaults can
// follow.
std::vector<size_t> parameter_order(const Overload& o) {
  std::vector<size_t> order;
  auto is_out = [&](const Argument& a) { return o.form == Form::kOut && a.alias && a.alias->is_write; };
  for (size_t i = 0; i < o.schema.arguments.size(); ++i)
    if (is_out(o.schema.arguments[i])) order.push_back(i);
  for (size_t i = 0; i < o.schema.arguments.size(); ++i)
    if (!is_out(o.schema.arguments[i])) order.push_back(i);
  return order;
}

// A default counts only when every later parameter has one too.
size_t required_count(const Overload& o) {
  auto order = parameter_order(o);
  size_t required = order.size();
  while (required > 0 && o.schema.arguments[order[required - 1]].default_value) --required;
  return required;
}

bool takes_number(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::kScalar:
    case Type::Kind::kInt:
    case Type::Kind::kSymInt:
    case Type::Kind::kFloat:
      return true;
    default:
      return type.is_optional() && !type.element().is_list() && takes_number(type.element());
  }
}
bool is_integer_list(const Type& type) {
  const Type& list = type.is_optional() ? type.element() : type;
  return list.is_list() && (list.element().is(Type::Kind::kInt) || list.element().is(Type::Kind::kSymInt));
}

// A list of integers may be given as one number, unless that number could mean another overload's argument.
bool may_be_one_number(const Overload& o, size_t position, const std::vector<Overload*>& overloads) {
  for (const Overload* other : overloads) {
    const auto order = parameter_order(*other);
    if (other != &o && position < order.size() && takes_number(other->schema.arguments[order[position]].type))
      return false;
  }
  return true;
}

bool is_optional_flag(const Type& type) { return type.is_optional() && type.element().is(Type::Kind::kBool); }

// The type of a parameter as users see it.
std::string public_type(const Overload& o, size_t position) {
  const Argument& argument = o.schema.arguments[parameter_order(o)[position]];
  const Type& type = argument.type;
  if (argument.is_reduction()) return "Reduction";
  if (type.is(Type::Kind::kBool)) return "Flag";
  if (is_optional_flag(type)) return "std::optional<Flag>";
  if (o.one_number.contains(position)) return fmt::format("OneOrMore<{}>", parameter_type(type));
  return parameter_type(type);
}

std::vector<std::string> types_of(const Overload& o) {
  std::vector<std::string> types;
  for (size_t i = 0; i < o.schema.arguments.size(); ++i) types.push_back(public_type(o, i));
  return types;
}

// Two overloads that a call with n arguments cannot tell apart: the longer one loses the default that allows
// it.
void resolve_ambiguities(std::vector<Overload*>& overloads) {
  for (Overload* a : overloads)
    for (Overload* b : overloads) {
      if (a == b) continue;
      auto types_a = types_of(*a), types_b = types_of(*b);
      for (size_t n = std::min(types_a.size(), types_b.size());; --n) {
        bool callable = n >= a->required && n >= b->required;
        if (callable &&
            std::equal(types_a.begin(), types_a.begin() + static_cast<long>(n), types_b.begin())) {
          Overload* longer = types_a.size() >= types_b.size() ? a : b;
          longer->required = n + 1;
        }
        if (n == 0) break;
      }
    }
}

// A bool converts to a flag and to a number alike: a template for bools alone decides for the flag.
std::string exact_flag_forwarder(const Overload& o, bool is_method) {
  std::string taken, given;
  const auto order = parameter_order(o);
  for (size_t k = is_method ? 1 : 0; k < order.size(); ++k) {
    const Argument& a = o.schema.arguments[order[k]];
    const bool is_flag = k == *o.exact_flag;
    taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", is_flag ? "B" : public_type(o, k),
                         cpp_name(a.name));
    if (k > *o.exact_flag && k >= o.required) taken += " = " + default_text(a);
    given += fmt::format("{}{}", given.empty() ? "" : ", ",
                         is_flag ? fmt::format("Flag({})", cpp_name(a.name)) : cpp_name(a.name));
  }
  return fmt::format("template <std::same_as<bool> B>\n{} {}({}){} {{\n  return {}({});\n}}\n",
                     return_type(o.schema), function_name(o), taken, is_method ? " const" : "",
                     function_name(o), given);
}

std::string parameters(const Overload& o, bool with_defaults, bool without_self) {
  std::string text;
  auto order = parameter_order(o);
  for (size_t k = 0; k < order.size(); ++k) {
    const Argument& a = o.schema.arguments[order[k]];
    if (without_self && k == 0) continue;
    if (!text.empty()) text += ", ";
    text += public_type(o, k) + " " + cpp_name(a.name);
    if (with_defaults && k >= o.required) text += " = " + default_text(a);
  }
  return text;
}

bool is_method(const Overload& o) {
  static const std::set<std::string> by_hand = {
      "size",    "stride", "numel",          "dim",  "storage_offset", "is_complex", "is_floating_point",
      "is_conj", "is_neg", "requires_grad_", "data", "backward",       "version"};
  if (o.form == Form::kOut || o.schema.ns != "aten" || o.schema.arguments.empty()) return false;
  if (o.schema.name.starts_with("_") || by_hand.count(o.schema.name)) return false;
  return o.schema.arguments[0].name == "self" && is_tensor(o.schema.arguments[0].type);
}

// --- writing ---------------------------------------------------------------------------------------------

std::string signature_type(const Overload& o) {
  std::string text = return_type(o.schema) + "(";
  for (size_t i = 0; i < o.schema.arguments.size(); ++i)
    text += (i ? ", " : "") + parameter_type(o.schema.arguments[i].type);
  return text + ")";
}

std::string argument_names(const Overload& o) {
  std::string text;
  for (const Argument& a : o.schema.arguments) {
    if (!text.empty()) text += ", ";
    if (a.is_reduction()) text += fmt::format("static_cast<int64_t>({})", cpp_name(a.name));
    else if (is_optional_flag(a.type)) text += fmt::format("plain({})", cpp_name(a.name));
    else text += cpp_name(a.name);
  }
  return text;
}

std::string pending_arguments(const Overload& o) {
  std::string text;
  for (const Argument& a : o.schema.arguments) {
    std::string name = cpp_name(a.name);
    if (is_optional_tensor(a.type)) name = fmt::format("dispatch::Maybe{{{}}}", name);
    else if (!is_tensor(a.type) && !is_tensor_list(a.type)) continue;
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string boxed_view_arguments(const Overload& o) {
  std::string text = "Value()";
  for (size_t i = 1; i < o.schema.arguments.size(); ++i)
    text += fmt::format(", boxing::box({})", cpp_name(o.schema.arguments[i].name));
  return text;
}

std::string definition(const Overload& o) {
  std::string result = return_type(o.schema), names = argument_names(o);
  bool returns_argument = result == "const Tensor&";
  std::string call = fmt::format("dispatch::call_typed<{}>(op{}{})", returns_argument ? "void" : result,
                                 names.empty() ? "" : ", ", names);
  std::string written, written_name;
  for (const Argument& a : o.schema.arguments)
    if (a.alias && a.alias->is_write) {
      written_name = cpp_name(a.name);
      if (is_tensor(a.type)) written += fmt::format("  {}.impl()->bump_version();\n", written_name);
      else written += fmt::format("  for (const Tensor& t : {}) t.impl()->bump_version();\n", written_name);
    }
  std::string slow = returns_argument ? fmt::format("return {}, {};\n", call, written_name)
                                      : fmt::format("return {};\n", call);
  std::string kernel =
      fmt::format("dispatch::run_typed<{}>(op{}{})", signature_type(o), names.empty() ? "" : ", ", names);
  std::string body;
  if (o.is_inplace_view) {
    body = "  " + slow;  // the tensor's story changes too: no matter of a kernel and a count
  } else if (!written.empty()) {
    bool keep = !returns_argument && result != "void";
    // A composite is made of calls that count the write themselves.
    body =
        fmt::format("  {}{};\n  if (op.is_composite()) return{};\n{}", keep ? "auto result = " : "", kernel,
                    returns_argument ? " " + written_name
                    : keep           ? " result"
                                     : "",
                    written);
    if (returns_argument) body += fmt::format("  return {};\n", written_name);
    else if (keep) body += "  return result;\n";
  } else if (o.schema.is_view() && (result == "Tensor" || result == "std::vector<Tensor>")) {
    std::string self = cpp_name(o.schema.arguments[0].name);
    body = fmt::format(
        "  auto result = {};\n  if (!op.is_composite()) dispatch::note_typed_views(op, {}, result, "
        "{{{}}});\n  return result;\n",
        kernel, self, boxed_view_arguments(o));
  } else {
    body = fmt::format("  return {};\n", kernel);
  }
  return fmt::format(
      "{} {}({}) {{\n  const Operator& op = detail::operator_table[{}];\n  if (dispatch::pending({})) "
      "[[unlikely]]\n    {}{}}}\n\n",
      result, function_name(o), parameters(o, false, false), o.index, pending_arguments(o), slow, body);
}

std::string method_definition(const Overload& o) {
  std::string names;
  for (size_t i = 1; i < o.schema.arguments.size(); ++i) names += ", " + cpp_name(o.schema.arguments[i].name);
  return fmt::format("{} Tensor::{}({}) const {{ return weft::{}(*this{}); }}\n", return_type(o.schema),
                     function_name(o), parameters(o, false, true), function_name(o), names);
}

constexpr const char* kBanner = "// Made by weft-opgen from the schemas in src/ops; changes here are lost.\n";

void write_headers(const std::filesystem::path& folder, const std::vector<Overload>& overloads) {
  std::string methods = kBanner, functions = kBanner;
  functions += "#pragma once\n\n#include \"weft/core/tensor.h\"\n\nnamespace weft {\n\n";
  for (const Overload& o : overloads) {
    functions += fmt::format("// {}\n{} {}({});\n", o.text, return_type(o.schema), function_name(o),
                             parameters(o, true, false));
    if (o.exact_flag) functions += exact_flag_forwarder(o, false);
    if (is_method(o)) {
      methods += fmt::format("{} {}({}) const;\n", return_type(o.schema), function_name(o),
                             parameters(o, true, true));
      if (o.exact_flag) methods += exact_flag_forwarder(o, true);
    }
  }
  functions += "\n}  // namespace weft\n";
  write_if_changed(folder / "weft/core/tensor_methods.inc", methods);
  write_if_changed(folder / "weft/ops/functions.h", functions);
}

void write_table(const std::filesystem::path& folder, const std::vector<Overload>& overloads) {
  std::string table = kBanner;
  table += "#include <typeinfo>\n\n#include \"ops/table.h\"\n\nnamespace weft {\nnamespace ops {\n";
  std::set<std::string> seen;
  for (const Overload& o : overloads)
    if (seen.insert(o.definition).second) table += fmt::format("extern const OpDef {};\n", o.definition);
  table += fmt::format(
      "}}  // namespace ops\n\nconst size_t detail::operator_count = {};\nconstinit const Operator "
      "detail::operator_table[] = {{\n",
      overloads.size());
  for (const Overload& o : overloads)
    table += fmt::format("    {{&ops::{}, R\"({})\", OpForm::{}, &typeid({})}},\n", o.definition, o.text,
                         kFormNames[static_cast<int>(o.form)], signature_type(o));
  table += "};\n\n}  // namespace weft\n";
  write_if_changed(folder / "ops/table.cc", table);
}

void write_definitions(const std::filesystem::path& folder, const std::vector<Overload>& overloads,
                       size_t parts) {
  for (size_t part = 0; part < parts; ++part) {
    std::string text = kBanner;
    text +=
        "#include \"ops/table.h\"\n#include \"weft/ops/functions.h\"\n#include "
        "\"weft/dispatch/layers.h\"\n\nnamespace weft {\n\nnamespace {\n[[maybe_unused]] std::optional<bool> "
        "plain(std::optional<Flag> flag) {\n  if (!flag) return std::nullopt;\n  return "
        "static_cast<bool>(*flag);\n}\n}  // namespace\n\n";
    for (const Overload& o : overloads) {
      if (std::hash<std::string>()(o.schema.name) % parts != part) continue;
      text += definition(o);
      if (is_method(o)) text += method_definition(o);
    }
    text += "}  // namespace weft\n";
    write_if_changed(folder / fmt::format("ops/functions_{}.cc", part), text);
  }
}

int run(int argc, char** argv) {
  require(argc >= 2, "usage: weft-opgen OUTPUT_FOLDER SOURCE...");
  std::vector<Overload> overloads;
  for (int i = 2; i < argc; ++i) scan(argv[i], overloads);
  std::sort(overloads.begin(), overloads.end(), [](const Overload& a, const Overload& b) {
    return a.schema.qualified_name() < b.schema.qualified_name();
  });
  std::map<std::string, std::vector<Overload*>> by_name;
  for (size_t i = 1; i < overloads.size(); ++i)
    require(overloads[i].schema.qualified_name() != overloads[i - 1].schema.qualified_name(),
            "{} is defined twice, by {} and {}", overloads[i].schema.qualified_name(),
            overloads[i].definition, overloads[i - 1].definition);
  std::set<std::string> views;
  for (const Overload& o : overloads)
    if (o.form == Form::kFunctional && o.schema.is_view()) views.insert(o.definition);
  for (size_t i = 0; i < overloads.size(); ++i) {
    overloads[i].is_inplace_view =
        overloads[i].form == Form::kInplace && views.contains(overloads[i].definition);
    overloads[i].index = i;
    overloads[i].required = required_count(overloads[i]);
    by_name[function_name(overloads[i])].push_back(&overloads[i]);
  }
  for (auto& [name, set] : by_name) {
    for (Overload* o : set)
      for (size_t i = 0; i < o->schema.arguments.size(); ++i)
        if (const Type& type = o->schema.arguments[parameter_order(*o)[i]].type;
            is_integer_list(type) && may_be_one_number(*o, i, set))
          o->one_number.insert(i);
        else if (type.is(Type::Kind::kBool) && !may_be_one_number(*o, i, set)) o->exact_flag = i;
    resolve_ambiguities(set);
  }
  std::filesystem::path folder = argv[1];
  write_headers(folder, overloads);
  write_table(folder, overloads);
  write_definitions(folder, overloads, 4);
  return 0;
}

}  // namespace
}  // namespace weft::opgen

int main(int argc, char** argv) {
  try {
    return weft::opgen::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "weft-opgen: " << e.what() << "\n";
    return 1;
  }
}
