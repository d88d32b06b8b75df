#include "io/plan_text.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ops/extension.h"
#include "weft/ops/fake.h"

namespace weft {

using namespace aot;

namespace {

// --- values ----------------------------------------------------------------------------------------------

int64_t plain(const SymInt& value) {
  if (value.is_symbolic())
    unsupported("a compile cache in a folder keeps programs of sizes that are numbers");
  return value.plain();
}

Json::Array json_of(SymIntSpan sizes) {
  Json::Array all;
  for (const SymInt& size : sizes) all.emplace_back(plain(size));
  return all;
}

// A tensor without data.
Json json_of(const Tensor& tensor) {
  if (extension_of(tensor))
    unsupported("a compile cache in a folder keeps programs over tensors, but not over {}",
                extension_of(tensor)->type_name());
  return Json::Object{{"dtype", dtype_name(tensor.dtype())},
                      {"device", tensor.device().to_string()},
                      {"sizes", json_of(tensor.sizes())},
                      {"strides", json_of(tensor.strides())},
                      {"offset", plain(tensor.storage_offset())}};
}

Json json_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNone:
      return nullptr;
    case Value::Kind::kBool:
      return value.to_bool();
    case Value::Kind::kInt:
      return value.to_int();
    case Value::Kind::kDouble:
      return Json::Object{{"double", fmt::format("{:a}", value.to_double())}};
    case Value::Kind::kString:
      return Json(value.to_string_view());
    case Value::Kind::kDType:
      return Json::Object{{"dtype_value", dtype_name(value.to_dtype())}};
    case Value::Kind::kDevice:
      return Json::Object{{"device_value", value.to_device().to_string()}};
    case Value::Kind::kMemoryFormat:
      return Json::Object{{"memory_format", static_cast<int64_t>(value.to_memory_format())}};
    case Value::Kind::kTensor:
      return value.tensor_ref().defined() ? Json::Object{{"tensor", json_of(value.tensor_ref())}}
                                          : Json::Object{{"undefined", true}};
    case Value::Kind::kSymInt:
      return plain(value.to_sym_int());
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      Json::Array all;
      for (const Value& element : value.elements()) all.push_back(json_of(element));
      return Json::Object{{value.is_list() ? "list" : "tuple", std::move(all)}};
    }
    default:
      unsupported("a compile cache in a folder cannot keep {}", value.kind_name());
  }
}

SymInts sizes_from(const Json& json) {
  SymInts all;
  for (const Json& size : json.as_array()) all.push_back(size.as_int());
  return all;
}

Tensor tensor_from(const Json& json) {
  const std::optional<DType> dtype = dtype_from_name(json.at("dtype").as_string());
  if (!dtype) throw FormatError("compile cache: unknown type '" + json.at("dtype").as_string() + "'");
  const Device device(json.at("device").as_string());
  const SymInts sizes = sizes_from(json.at("sizes")), strides = sizes_from(json.at("strides"));
  auto impl = make_ref<TensorImpl>(Storage::without_memory(0, device), *dtype, device);
  impl->set_geometry(sizes, strides, json.at("offset").as_int());
  impl->set_flags(layer::kFake);
  return Tensor(std::move(impl));
}

Value value_from(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  if (json.is_int()) return json.as_int();
  if (json.is_string()) return Value(json.as_string());
  if (const Json* number = json.find("double")) return std::strtod(number->as_string().c_str(), nullptr);
  if (const Json* name = json.find("dtype_value")) {
    const std::optional<DType> dtype = dtype_from_name(name->as_string());
    if (!dtype) throw FormatError("compile cache: unknown type '" + name->as_string() + "'");
    return *dtype;
  }
  if (const Json* name = json.find("device_value")) return Device(name->as_string());
  if (const Json* format = json.find("memory_format")) return static_cast<MemoryFormat>(format->as_int());
  if (const Json* tensor = json.find("tensor")) return tensor_from(*tensor);
  if (json.contains("undefined")) return Tensor();
  const Json* list = json.find("list");
  const Json* tuple = json.find("tuple");
  if (!list && !tuple) throw FormatError("compile cache: a value of an unknown kind");
  ValueList all;
  for (const Json& element : (list ? list : tuple)->as_array()) all.push_back(value_from(element));
  return list ? Value::list(std::move(all)) : Value::tuple(std::move(all));
}

// --- descriptions ----------------------------------------------------------------------------------------

Json json_of(const Ref<ViewStep>& last) {
  if (!last) return nullptr;
  Json::Array steps;
  for (const ViewStep* step = last.get(); step; step = step->previous.get()) {
    Json::Array args;
    for (const Value& arg : step->args) args.push_back(json_of(arg));
    steps.emplace_back(Json::Object{{"op", step->op->name()},
                                    {"args", std::move(args)},
                                    {"output", step->output},
                                    {"creation", static_cast<int64_t>(step->creation)}});
  }
  std::ranges::reverse(steps);
  return steps;
}

Ref<ViewStep> steps_from(const Json& json) {
  Ref<ViewStep> last;
  if (json.is_null()) return last;
  for (const Json& one : json.as_array()) {
    auto step = make_ref<ViewStep>();
    step->previous = std::move(last);
    step->op = find_operator(one.at("op").as_string());
    if (!step->op) throw FormatError("compile cache: no operator '" + one.at("op").as_string() + "'");
    for (const Json& arg : one.at("args").as_array()) step->args.push_back(value_from(arg));
    step->output = static_cast<int>(one.at("output").as_int());
    step->creation = static_cast<ViewCreation>(one.at("creation").as_int());
    last = std::move(step);
  }
  return last;
}

// Each member once, for both directions: `visit(name, member)`.
template <typename Use, typename Visit>
void visit_input(Use& use, Visit visit) {
  visit("is_tensor", use.is_tensor);
  visit("is_leaf", use.is_leaf);
  visit("requires_grad", use.requires_grad);
  visit("requires_grad_after", use.requires_grad_after);
  visit("is_written", use.is_written);
  visit("changes_metadata", use.changes_metadata);
  visit("replaces_storage", use.replaces_storage);
  visit("resizes_storage", use.resizes_storage);
  visit("storage_bytes", use.storage_bytes);
  visit("is_hidden_from_autograd", use.is_hidden_from_autograd);
  visit("is_under_no_grad", use.is_under_no_grad);
  visit("write_back", use.write_back);
  visit("steps", use.steps);
  visit("after", use.after);
}
template <typename Origin, typename Visit>
void visit_output(Origin& origin, Visit visit) {
  visit("kind", origin.kind);
  visit("source", origin.source);
  visit("steps", origin.steps);
  visit("requires_grad", origin.requires_grad);
  visit("is_leaf", origin.is_leaf);
  visit("is_silent_view", origin.is_silent_view);
  visit("like", origin.like);
}

struct Write {
  Json::Object& into;
  void operator()(const char* name, bool value) const { into[name] = value; }
  void operator()(const char* name, size_t value) const { into[name] = static_cast<int64_t>(value); }
  void operator()(const char* name, const SymInt& value) const { into[name] = plain(value); }
  void operator()(const char* name, const Value& value) const { into[name] = json_of(value); }
  void operator()(const char* name, const Ref<ViewStep>& value) const { into[name] = json_of(value); }
  void operator()(const char* name, WriteBack value) const { into[name] = static_cast<int64_t>(value); }
  void operator()(const char* name, OutputOrigin::Kind value) const {
    into[name] = static_cast<int64_t>(value);
  }
};

struct Read {
  const Json& from;
  void operator()(const char* name, bool& value) const { value = from.at(name).as_bool(); }
  void operator()(const char* name, size_t& value) const {
    value = static_cast<size_t>(from.at(name).as_int());
  }
  void operator()(const char* name, SymInt& value) const { value = from.at(name).as_int(); }
  void operator()(const char* name, Value& value) const { value = value_from(from.at(name)); }
  void operator()(const char* name, Ref<ViewStep>& value) const { value = steps_from(from.at(name)); }
  void operator()(const char* name, WriteBack& value) const { value = number<WriteBack>(name, 3); }
  void operator()(const char* name, OutputOrigin::Kind& value) const {
    value = number<OutputOrigin::Kind>(name, 8);
  }
  template <typename Enum>
  Enum number(const char* name, int64_t count) const {
    const int64_t value = from.at(name).as_int();
    if (value < 0 || value >= count) throw FormatError(std::string("compile cache: no such ") + name);
    return static_cast<Enum>(value);
  }
};

Json json_of(const CallDescription& description) {
  Json::Array inputs, outputs, bases, written_back;
  for (const InputUse& use : description.inputs) {
    Json::Object object;
    visit_input(use, Write{object});
    inputs.emplace_back(std::move(object));
  }
  for (const OutputOrigin& origin : description.outputs) {
    Json::Object object;
    visit_output(origin, Write{object});
    outputs.emplace_back(std::move(object));
  }
  for (const Value& base : description.bases) bases.push_back(json_of(base));
  for (size_t input : description.written_back) written_back.emplace_back(static_cast<int64_t>(input));
  return Json::Object{{"inputs", std::move(inputs)},
                      {"outputs", std::move(outputs)},
                      {"bases", std::move(bases)},
                      {"written_back", std::move(written_back)},
                      {"needs_backward", description.needs_backward},
                      {"result", description.result.to_json()}};
}

CallDescription description_from(const Json& json) {
  CallDescription description;
  for (const Json& one : json.at("inputs").as_array()) {
    InputUse use;
    visit_input(use, Read{one});
    description.inputs.push_back(std::move(use));
  }
  for (const Json& one : json.at("outputs").as_array()) {
    OutputOrigin origin;
    visit_output(origin, Read{one});
    description.outputs.push_back(std::move(origin));
  }
  for (const Json& base : json.at("bases").as_array()) description.bases.push_back(value_from(base));
  for (const Json& input : json.at("written_back").as_array())
    description.written_back.push_back(static_cast<size_t>(input.as_int()));
  description.needs_backward = json.at("needs_backward").as_bool();
  description.result = TreeSpec::from_json(json.at("result").as_string(), "compile cache");
  return description;
}

// --- graphs ----------------------------------------------------------------------------------------------

int64_t count_of(const std::vector<ExtensionTree>& trees) {
  if (!std::ranges::all_of(trees, &ExtensionTree::is_leaf))
    unsupported("a compile cache in a folder keeps programs over tensors, but not over extensions");
  return static_cast<int64_t>(trees.size());
}
std::vector<ExtensionTree> leaves(const Json& count) {
  const int64_t number = count.as_int();
  if (number < 0 || number > (int64_t{1} << 24))
    throw FormatError("compile cache: an impossible number of values");
  return std::vector<ExtensionTree>(static_cast<size_t>(number));
}

Json json_of(const Node& node) {
  const NodeMeta* meta = node.meta_or_null();
  if (!meta) return nullptr;
  Json::Object object{{"value", json_of(meta->value)}};
  if (meta->random_offset) object["random_offset"] = plain(*meta->random_offset);
  if (!meta->extra.empty()) {
    Json::Array extra;
    for (const auto& [key, value] : meta->extra)
      extra.emplace_back(Json::Array{json_of(key), json_of(value)});
    object["extra"] = std::move(extra);
  }
  return object;
}

void note(Node& node, const Json& json) {
  if (json.is_null()) return;
  NodeMeta& meta = node.meta();
  meta.value = value_from(json.at("value"));
  if (const Json* offset = json.find("random_offset")) meta.random_offset = SymInt(offset->as_int());
  if (const Json* extra = json.find("extra"))
    for (const Json& entry : extra->as_array())
      meta.extra.set(value_from(entry.at(0)), value_from(entry.at(1)));
}

}  // namespace

Json plan_to_json(const CompilePlan& plan) {
  Json::Array stages, nodes, constants;
  for (const CompilePlan::Stage& stage : plan.stages) stages.push_back(json_of(stage.description));
  for (const Node& node : plan.traced.module.graph()) nodes.push_back(json_of(node));
  for (const auto& [path, name] : plan.constants) constants.emplace_back(Json::Array{path, name});
  const TracedCall& traced = plan.traced;
  return Json::Object{{"version", 1},
                      {"stages", std::move(stages)},
                      {"nodes", std::move(nodes)},
                      {"constants", std::move(constants)},
                      {"inputs", count_of(traced.inputs)},
                      {"outputs", count_of(traced.outputs)},
                      {"tangents", count_of(traced.tangents)},
                      {"gradients", count_of(traced.gradients)},
                      {"backward_writes", traced.backward_writes_differentiable_input}};
}

CompilePlan plan_from_json(const Json& text, GraphModule graph) {
  if (text.at("version").as_int() != 1)
    throw FormatError("compile cache: written by another version of weft");
  CompilePlan plan;
  for (const Json& stage : text.at("stages").as_array()) plan.stages.push_back({{}, description_from(stage)});
  if (plan.stages.empty()) throw FormatError("compile cache: no description");
  const Json::Array& nodes = text.at("nodes").as_array();
  size_t next = 0;
  for (Node& node : graph.graph()) {
    if (next == nodes.size()) throw FormatError("compile cache: the notes are of another graph");
    note(node, nodes[next++]);
  }
  if (next != nodes.size()) throw FormatError("compile cache: the notes are of another graph");
  for (const Json& one : text.at("constants").as_array())
    plan.constants.emplace_back(one.at(0).as_string(), one.at(1).as_string());
  plan.traced.module = std::move(graph);
  plan.traced.inputs = leaves(text.at("inputs"));
  plan.traced.outputs = leaves(text.at("outputs"));
  plan.traced.tangents = leaves(text.at("tangents"));
  plan.traced.gradients = leaves(text.at("gradients"));
  plan.traced.backward_writes_differentiable_input = text.at("backward_writes").as_bool();
  return plan;
}

}  // namespace weft
