#include <functional>
#include <map>
#include <unordered_map>

#include "io/pickled_archive.h"
#include "io/pt2_graph_writer.h"
#include "io/pt2_schema.h"
#include "io/pt2_symbols.h"
#include "io/zip.h"
#include "weft/autograd/autograd.h"
#include "weft/core/custom_class.h"
#include "weft/core/struct.h"
#include "weft/core/value_walk.h"
#include "weft/io/pt2.h"
#include "weft/ops/functions.h"

namespace weft {
namespace pt2 {
namespace {

// What PyTorch's own reader calls the one folder of an archive that was not saved under a name.
constexpr const char* kRoot = "archive/";
constexpr const char* kModel = "model";

class ProgramWriter {
 public:
  explicit ProgramWriter(const ExportedProgram& program) : program_(program) {}

  Json run() const {
    Json::Object module{
        {"graph", json_of(program_.graph_module(), program_.inputs())},
        {"signature", Json::Object{{"input_specs", input_specs()}, {"output_specs", output_specs()}}},
        {"module_call_graph", module_calls()},
        {"metadata", metadata()},
        {"treespec_namedtuple_fields", struct_types()}};
    Json::Object ranges;
    for (const auto& [expr, range] : program_.range_constraints())
      ranges.insert(expr->to_string(),
                    Json::Object{{"min_val", bound(range.lo)}, {"max_val", bound(range.hi)}});
    Json::Array guards;
    for (const std::string& guard : program_.guards()) guards.emplace_back(guard);
    const Value* version = program_.parts().metadata.find("torch_version");
    return Json::Object{{"graph_module", std::move(module)},
                        {"opset_version", Json::Object{{"aten", 10}}},
                        {"range_constraints", std::move(ranges)},
                        {"schema_version", Json::Object{{"major", kMajor}, {"minor", kMinor}}},
                        {"verifiers", Json::Array{program_.is_training_dialect() ? "TRAINING" : "ATEN"}},
                        {"torch_version", version ? version->to_string_view() : "2.13.0"},
                        {"guards_code", std::move(guards)}};
  }

 private:
  static Json bound(int64_t value) {
    const bool is_infinite = value == sym::ValueRange::kNegInf || value == sym::ValueRange::kInf;
    return is_infinite ? Json() : Json(value);
  }

  Json::Array input_specs() const {
    using Kind = InputSpec::Kind;
    Json::Array specs;
    const std::vector<Node*> placeholders = program_.graph().placeholders();
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const InputSpec& spec = program_.inputs()[i];
      const std::string& name = placeholders[i]->name();
      switch (spec.kind) {
        case Kind::kUserInput:
          specs.push_back(variant("user_input", Json::Object{{"arg", value_json(*placeholders[i])}}));
          break;
        case Kind::kConstantInput:
          specs.push_back(variant("constant_input",
                                  Json::Object{{"name", name}, {"value", argument_json(spec.constant)}}));
          break;
        case Kind::kParameter:
          specs.push_back(
              variant("parameter", Json::Object{{"arg", named(name)}, {"parameter_name", spec.target}}));
          break;
        case Kind::kBuffer:
          specs.push_back(variant("buffer", Json::Object{{"arg", named(name)},
                                                         {"buffer_name", spec.target},
                                                         {"persistent", spec.persistent}}));
          break;
        case Kind::kTensorConstant:
          specs.push_back(variant("tensor_constant",
                                  Json::Object{{"arg", named(name)}, {"tensor_constant_name", spec.target}}));
          break;
        case Kind::kCustomObject:
          specs.push_back(variant(
              "custom_obj",
              Json::Object{{"arg", Json::Object{{"name", name}, {"class_fqn", class_of(spec.target)}}},
                           {"custom_obj_name", spec.target}}));
          break;
        case Kind::kToken:
          specs.push_back(variant("token", Json::Object{{"arg", named(name)}}));
          break;
      }
    }
    return specs;
  }

  std::string class_of(const std::string& object) const {
    for (const auto& [name, value] : program_.objects())
      if (name == object) return value.to_object()->type_name();
    unsupported("the program has the custom object '{}' without its value, and cannot be written", object);
  }

  static Json value_json(const Node& node) {
    const NodeMeta* meta = node.meta_or_null();
    const Value value = meta ? meta->value : Value();
    const Json by_name = Json::Object{{"as_name", node.name()}};
    if (value.is_bool()) return variant("as_sym_bool", by_name);
    if (value.is_int()) return variant("as_sym_int", by_name);
    if (value.is_double()) return variant("as_sym_float", by_name);
    return variant("as_tensor", named(node.name()));
  }

  Json::Array output_specs() const {
    using Kind = OutputSpec::Kind;
    Json::Array specs;
    const Value returned = program_.graph().output_node()->returned();
    for (size_t i = 0; i < program_.outputs().size(); ++i) {
      const OutputSpec& spec = program_.outputs()[i];
      const Value& value = returned.elements()[i];
      const Node* node = node_in(value);
      const Json argument = node ? value_json(*node) : argument_json(value);
      if (spec.kind == Kind::kUserOutput) {
        specs.push_back(variant("user_output", Json::Object{{"arg", argument}}));
        continue;
      }
      require(node != nullptr, "output {} of the program is a constant, but its signature says {}", i,
              kind_name(spec.kind));
      const Json arg = named(node->name());
      switch (spec.kind) {
        case Kind::kUserOutput:
          break;
        case Kind::kLossOutput:
          specs.push_back(variant("loss_output", Json::Object{{"arg", arg}}));
          break;
        case Kind::kBufferMutation:
          specs.push_back(
              variant("buffer_mutation", Json::Object{{"arg", arg}, {"buffer_name", spec.target}}));
          break;
        case Kind::kParameterMutation:
          specs.push_back(
              variant("parameter_mutation", Json::Object{{"arg", arg}, {"parameter_name", spec.target}}));
          break;
        case Kind::kUserInputMutation:
          specs.push_back(
              variant("user_input_mutation", Json::Object{{"arg", arg}, {"user_input_name", spec.target}}));
          break;
        case Kind::kGradientToParameter:
          specs.push_back(
              variant("gradient_to_parameter", Json::Object{{"arg", arg}, {"parameter_name", spec.target}}));
          break;
        case Kind::kGradientToUserInput:
          specs.push_back(variant("gradient_to_user_input",
                                  Json::Object{{"arg", arg}, {"user_input_name", spec.target}}));
          break;
        case Kind::kToken:
          specs.push_back(variant("token", Json::Object{{"arg", arg}}));
          break;
      }
    }
    return specs;
  }

  Json::Array module_calls() const {
    Json::Array entries;
    bool has_root = false;
    for (const ModuleCallEntry& entry : program_.module_call_graph()) {
      has_root = has_root || entry.path.empty();
      entries.push_back(module_call(entry));
    }
    if (!has_root)
      entries.insert(entries.begin(), module_call({"", ModuleCallEntry::Signature{{}, {}, program_.call()}}));
    return entries;
  }
  static Json module_call(const ModuleCallEntry& entry) {
    Json signature;
    if (entry.signature) {
      const ModuleCallEntry::Signature& own = *entry.signature;
      Json::Array names;
      for (const std::string& name : own.call.names) names.emplace_back(name);
      signature = Json::Object{{"inputs", arguments(own.inputs)},
                               {"outputs", arguments(own.outputs)},
                               {"in_spec", own.call.arguments.to_json()},
                               {"out_spec", own.call.result.to_json()},
                               {"forward_arg_names", std::move(names)}};
    }
    return Json::Object{{"fqn", entry.path}, {"signature", std::move(signature)}};
  }
  static Json::Array arguments(const std::vector<ModuleCallEntry::Argument>& arguments) {
    Json::Array written;
    for (const ModuleCallEntry::Argument& argument : arguments)
      written.push_back(argument.name.empty() ? argument_json(argument.constant)
                                              : variant("as_tensor", named(argument.name)));
    return written;
  }

  Json::Object metadata() const {
    Json::Object notes;
    constexpr std::string_view kPrefix = "graph.";
    for (const auto& [key, value] : program_.parts().metadata) {
      const std::string_view name = key.to_string_view();
      if (name.starts_with(kPrefix))
        notes.insert(std::string(name.substr(kPrefix.size())), value.to_string_view());
    }
    return notes;
  }

  // The fields of named tuples, which trees do not have.
  Json::Object struct_types() const {
    Json::Object types;
    std::function<void(const TreeSpec&)> add = [&](const TreeSpec& spec) {
      if (const StructTypeRef& type = spec.struct_type();
          type && type->form() == StructType::Form::kNamedTuple) {
        Json::Array fields;
        for (const std::string& field : type->fields()) fields.emplace_back(field);
        types.insert(type->name(), Json::Object{{"field_names", std::move(fields)}});
      }
      for (const TreeSpec& child : spec.children()) add(child);
    };
    add(program_.call().arguments);
    add(program_.call().result);
    for (const ModuleCallEntry& entry : program_.module_call_graph())
      if (entry.signature) {
        add(entry.signature->call.arguments);
        add(entry.signature->call.result);
      }
    return types;
  }

  const ExportedProgram& program_;
};

// Tensors as views of the memory of storages, each written once.
class PayloadWriter {
 public:
  PayloadWriter(const ExportedProgram& program, zip::Writer& zip) : zip_(zip) {
    for (const InputSpec& spec : program.inputs())
      if (spec.kind == InputSpec::Kind::kParameter || spec.kind == InputSpec::Kind::kBuffer)
        is_parameter_.emplace(spec.target, spec.kind == InputSpec::Kind::kParameter);
  }

  void write(const ExportedProgram::NamedTensors& tensors, const std::string& folder, const char* kind,
             const char* prefix, Json::Object config = {}) {
    std::map<const Storage*, std::string> paths;
    std::vector<Tensor> storages;
    for (const auto& [name, given] : tensors) {
      // One without values is an empty file, as PyTorch writes it.
      require(given.defined() && !given.impl()->box && !given.impl()->is_symbolic(),
              "'{}' is {}, which cannot be saved; only strided tensors of plain sizes can", name,
              describe(given));
      NoGrad no_grad;
      Tensor tensor = given.detach();
      if (tensor.is_conj() || tensor.is_neg()) tensor = resolve_neg(resolve_conj(tensor));
      auto [path, is_new] =
          paths.try_emplace(tensor.storage().get(), fmt::format("{}{}", prefix, paths.size()));
      if (is_new) storages.push_back(tensor);
      Json meta = json_of(tensor);
      meta["requires_grad"] = given.requires_grad();
      auto known = is_parameter_.find(name);
      config.insert(name, Json::Object{{"path_name", path->second},
                                       {"is_param",
                                        known == is_parameter_.end() ? given.requires_grad() : known->second},
                                       {"use_pickle", false},
                                       {"tensor_meta", std::move(meta)}});
    }
    for (const Tensor& tensor : storages) {
      const Storage& storage = *tensor.storage();
      const char* data = static_cast<const char*>(storage.data());
      zip_.add(kRoot + folder + paths.at(&storage), {data, data ? storage.bytes() : 0});
    }
    zip_.add(fmt::format("{}{}{}_{}_config.json", kRoot, folder, kModel, kind),
             Json(Json::Object{{"config", std::move(config)}}).to_text());
  }

  // What the custom classes keep of the objects, as entries of the same folder; where they are.
  Json::Object write_objects(const std::vector<std::pair<std::string, Value>>& objects, const std::string& folder) {
    Json::Object config;
    for (const auto& [name, object] : objects) {
      const std::string type = object.to_object()->type_name();
      const CustomClass* custom = find_custom_class(type);
      require(custom != nullptr,
              "'{}' is an object of class '{}', which is not registered; register_custom_class says how to save it",
              name, type);
      const std::string path = fmt::format("custom_obj_{}", config.size());
      zip_.add(kRoot + folder + path, pickled_archive(custom->save(*object.to_object())));
      config.insert(name, Json::Object{
                              {"path_name", path}, {"is_param", false}, {"use_pickle", true}, {"tensor_meta", nullptr}});
    }
    return config;
  }

 private:
  zip::Writer& zip_;
  std::unordered_map<std::string, bool> is_parameter_;
};

// Example inputs are kept where all of them have values.
bool have_values(const std::optional<Value>& inputs) {
  bool all = inputs.has_value();
  if (all) for_each_tensor(*inputs, [&](const Tensor& tensor) { all &= tensor.storage()->has_memory(); });
  return all;
}

void write(const ExportedProgram& program, zip::Writer::Put put) {
  zip::Writer zip(std::move(put));
  const std::string root = kRoot;
  zip.add(root + "archive_format", "pt2");
  zip.add(root + "archive_version", "0");
  zip.add(root + "byteorder", "little");
  zip.add(root + ".data/version", "6\n");
  zip.add(fmt::format("{}models/{}.json", root, kModel), ProgramWriter(program).run().to_text());
  PayloadWriter payloads(program, zip);
  payloads.write(program.state_dict(), "data/weights/", "weights", "weight_");
  payloads.write(program.constants(), "data/constants/", "constants", "tensor_",
                 payloads.write_objects(program.objects(), "data/constants/"));
  zip.add(fmt::format("{}data/sample_inputs/{}.pt", root, kModel),
          have_values(program.example_inputs()) ? pickled_archive(*program.example_inputs()) : "");
  zip.finish();
}

}  // namespace
}  // namespace pt2

std::string pt2_bytes(const ExportedProgram& program) {
  std::string bytes;
  pt2::write(program, [&](std::string_view part) { bytes += part; });
  return bytes;
}

void save_pt2(const ExportedProgram& program, const std::string& path) {
  FileWriter file(path);
  pt2::write(program, [&](std::string_view part) { file.write(part); });
  file.finish();
}

}  // namespace weft
