// The archive of torch.export.save: its entries, the program's JSON, weights and constants.
#include <algorithm>
#include <map>

#include "core/tree_json.h"
#include "io/pickled_archive.h"
#include "io/pt2_graph_reader.h"
#include "io/stored_tensor.h"
#include "io/zip.h"
#include "weft/base/warning.h"
#include "weft/core/custom_class.h"
#include "weft/core/struct.h"
#include "weft/io/pt2.h"

namespace weft {
namespace pt2 {
namespace {

constexpr std::string_view kExportAgain =
    "; export the program again with PyTorch 2.13: torch.export.save(torch.export.load(path), path)";

class ArchiveReader {
 public:
  explicit ArchiveReader(zip::Archive archive) : archive_(std::move(archive)) {
    const std::string& source = archive_.source();
    if (archive_.entries().empty()) refuse("{}: the archive is empty", source);
    const std::string& first = archive_.entries().front().name;
    if (first.find('/') == first.npos)
      refuse("{}: entry '{}' is in no folder; a .pt2 archive has one for all", source, first);
    root_ = first.substr(0, first.find('/') + 1);
    for (const zip::Entry& entry : archive_.entries())
      if (!entry.name.starts_with(root_))
        refuse("{}: entry '{}' is not in the folder '{}' of the others", source, entry.name, root_);
    check_versions();
  }

  const std::string& source() const { return archive_.source(); }
  const zip::Archive& archive() const { return archive_; }
  const zip::Entry* find(const std::string& name) const { return archive_.find(root_ + name); }
  const zip::Entry& at(const std::string& name) const { return archive_.at(root_ + name); }
  std::string text(const std::string& name) const { return archive_.read(at(name)); }
  Json json(const std::string& name) const { return Json::parse(text(name), source() + ": " + root_ + name); }

  std::vector<std::string> models() const {
    std::vector<std::string> names;
    constexpr std::string_view kEnd = ".json";
    const std::string folder = root_ + "models/";
    for (const zip::Entry& entry : archive_.entries()) {
      std::string_view name = entry.name;
      if (!name.starts_with(folder) || !name.ends_with(kEnd)) continue;
      name = name.substr(folder.size(), name.size() - folder.size() - kEnd.size());
      names.emplace_back(name);
    }
    return names;
  }

 private:
  void check_versions() const {
    // Before archives had a format, a program was three or four entries of pickles.
    if (find("serialized_exported_program.json") || find("version"))
      if (!find("archive_format"))
        refuse("{}: it has the layout of PyTorch 2.7 and older{}", source(), kExportAgain);
    if (!find("archive_format")) {
      if (find("data.pkl"))
        refuse(
            "{}: it is a TorchScript file or was written by torch.save; a .pt2 is written by "
            "torch.export.save",
            source());
      refuse("{}: it is no .pt2 archive: there is no entry '{}archive_format'", source(), root_);
    }
    if (const std::string format = text("archive_format"); format != "pt2")
      refuse("{}: its format is '{}', not 'pt2'", source(), format);
    if (const std::string version = text("archive_version"); version != "0")
      refuse("{}: version '{}' of the archive is not known, only '0'{}", source(), version, kExportAgain);
    if (const zip::Entry* order = find("byteorder"))
      if (const std::string value = archive_.read(*order); value != "little")
        refuse("{}: entry '{}': byte order '{}' is not supported, only 'little'", source(), order->name,
               value);
  }

  zip::Archive archive_;
  std::string root_;
};

// Weights or constants: names, and files with the memory of storages.
class Payloads {
 public:
  Payloads(const ArchiveReader& archive, std::string folder, const std::string& model, const char* kind)
      : archive_(archive), folder_(std::move(folder)) {
    const std::string config = fmt::format("{}{}_{}_config.json", folder_, model, kind);
    if (!archive.find(config)) {
      if (archive.find(folder_ + model + ".pt"))
        refuse("{}: its {} are a pickle, as PyTorch 2.8 wrote them{}", archive.source(), kind, kExportAgain);
      refuse("{}: there is no entry for its {} ('{}')", archive.source(), kind, config);
    }
    json_ = archive.json(config);
  }

  // `classes`: of the objects of custom classes that the graph takes, by their names.
  ExportedProgram::NamedTensors read(const std::map<std::string, std::string>& classes = {}) {
    ExportedProgram::NamedTensors tensors;
    for (const auto& [name, payload] : json_.at("config").as_object()) {
      const std::string what = fmt::format("{}: '{}'", archive_.source(), name);
      While scope([&] { return "reading " + what; });
      const std::string& path = payload.at("path_name").as_string();
      const Json& meta = payload.at("tensor_meta");
      auto type = classes.find(name);
      if (const CustomClass* custom = type == classes.end() ? nullptr : find_custom_class(type->second)) {
        const zip::Entry& entry = archive_.at(folder_ + path);
        objects_.emplace_back(
            name, custom->load(read_pickled_archive(zip::Archive(archive_.archive().file(entry)))));
        continue;
      }
      if (payload.at("use_pickle").as_bool() || meta.is_null())
        unsupported("{} is {}; weft runs no code of classes and cannot read it", what,
                    path.starts_with("custom_obj") || path.starts_with("opaque_obj") || meta.is_null()
                        ? "a custom object"
                        : "a tensor of a class of its own, kept as a pickle");
      tensors.emplace_back(name, tensor(path, meta, payload.at("is_param").as_bool(), what));
    }
    return tensors;
  }
  const std::vector<std::pair<std::string, Value>>& objects() const { return objects_; }

 private:
  static Ints plain(const Json& list, const std::string& what) {
    Ints numbers;
    for (const Json& number : list.as_array()) numbers.push_back(plain_number(number, what));
    return numbers;
  }
  static int64_t plain_number(const Json& json, const std::string& what) {
    const Variant number = variant_of(json, what);
    if (!number.is("as_int")) refuse("{}: a size or stride of a weight is no integer", what);
    return number.value.as_int();
  }

  Tensor tensor(const std::string& path, const Json& meta, bool is_parameter, const std::string& what) {
    const int64_t type = meta.at("dtype").as_int();
    const std::optional<DType> dtype = dtype_of(type);
    if (!dtype) unsupported("{}: weft has no {}", what, dtype_text(type));
    if (meta.at("layout").as_int() != kStridedLayout)
      unsupported("{}: weft has no tensors of layout {}, strided ones only", what,
                  meta.at("layout").as_int());
    const StoredLayout layout{plain(meta.at("sizes"), what), plain(meta.at("strides"), what),
                              plain_number(meta.at("storage_offset"), what)};
    const bool requires_grad = meta.at("requires_grad").as_bool() && is_differentiable(*dtype);
    // One tensor under two names stays one tensor.
    const Key key{path,
                  *dtype,
                  {layout.sizes.begin(), layout.sizes.end()},
                  {layout.strides.begin(), layout.strides.end()},
                  layout.offset,
                  requires_grad,
                  is_parameter};
    auto [known, is_new] = tensors_.try_emplace(key);
    if (!is_new) return known->second;
    known->second = tensor_over(storage(path, *dtype, layout, what), *dtype, layout, what);
    if (requires_grad) known->second.set_requires_grad();
    return known->second;
  }

  Ref<Storage> storage(const std::string& path, DType dtype, const StoredLayout& layout,
                       const std::string& what) {
    auto [known, is_new] = storages_.try_emplace(path);
    if (!is_new) return known->second;
    const zip::Entry& entry = archive_.at(folder_ + path);
    if (entry.size == 0 && std::find(layout.sizes.begin(), layout.sizes.end(), 0) == layout.sizes.end()) {
      // An empty file also stands for a weight that had no values when the program was saved: zeros.
      int64_t last = layout.offset;
      for (size_t i = 0; i < layout.sizes.size(); ++i) {
        int64_t step = 0;
        if (__builtin_mul_overflow(layout.sizes[i] - 1, layout.strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
          refuse("{}: it has more elements than can be addressed", what);
      }
      const auto bytes = static_cast<size_t>((last + 1) * item_size(dtype));
      known->second = Storage::allocate(bytes, kCpu);
      std::fill_n(static_cast<char*>(known->second->data()), bytes, '\0');
      return known->second;
    }
    known->second = archive_.archive().storage(entry, element_alignment(dtype));
    if (dtype == kBool) check_bools(*known->second, what);
    return known->second;
  }

  using Key = std::tuple<std::string, DType, std::vector<int64_t>, std::vector<int64_t>, int64_t, bool, bool>;
  const ArchiveReader& archive_;
  std::string folder_;
  Json json_;
  std::map<std::string, Ref<Storage>> storages_;
  std::map<Key, Tensor> tensors_;
  std::vector<std::pair<std::string, Value>> objects_;
};

class ProgramReader {
 public:
  ProgramReader(const ArchiveReader& archive, std::string model)
      : archive_(archive),
        model_(std::move(model)),
        source_(fmt::format("{}: models/{}.json", archive.source(), model_)) {}

  ExportedProgram run() {
    While scope([&] { return "reading " + source_; });
    json_ = archive_.json("models/" + model_ + ".json");
    check_version();
    const Json& module = json_.at("graph_module");
    read_struct_types(module);
    read_module_calls(module.at("module_call_graph"));
    Symbols symbols(json_.at("range_constraints"));
    Devices devices(archive_.source());
    GraphReader reader(source_, symbols, devices);
    const Json& signature = module.at("signature");
    read_input_specs(signature.at("input_specs"));
    read_output_specs(signature.at("output_specs"));
    ExportedProgram::Parts parts{.graph_module =
                                     reader.read(module.at("graph"), input_names_, input_sources_)};
    parts.inputs = std::move(inputs_);
    parts.outputs = std::move(outputs_);
    parts.call = root_call_;
    parts.modules = std::move(modules_);
    parts.state = Payloads(archive_, "data/weights/", model_, "weights").read();
    Payloads constants(archive_, "data/constants/", model_, "constants");
    parts.constants = constants.read(custom_classes(parts));
    parts.objects = constants.objects();
    parts.ranges = symbols.constraints();
    parts.shape_env = symbols.env();
    for (const Json& guard : json_.at("guards_code").as_array()) parts.guards.push_back(guard.as_string());
    parts.is_training_dialect = read_dialect();
    read_metadata(module, parts.metadata);
    parts.example_inputs = example_inputs();
    return ExportedProgram::make(std::move(parts));
  }

 private:
  static std::map<std::string, std::string> custom_classes(const ExportedProgram::Parts& parts) {
    std::map<std::string, std::string> classes;
    const std::vector<Node*> placeholders = parts.graph_module.graph().placeholders();
    for (size_t i = 0; i < placeholders.size() && i < parts.inputs.size(); ++i)
      if (const NodeMeta* noted = placeholders[i]->meta_or_null())
        if (const Value* type = noted->extra.find("pt2.class"))
          classes.emplace(parts.inputs[i].target, type->to_string_view());
    return classes;
  }

  void check_version() const {
    const Json& version = json_.at("schema_version");
    const int64_t major = version.at("major").as_int(), minor = version.at("minor").as_int();
    if (major != kMajor)
      refuse("{}: version {}.{} of the schema cannot be read, only {}.x{}", source_, major, minor, kMajor,
             kExportAgain);
    for (const auto& [name, number] : json_.at("opset_version").as_object())
      if (name == "aten" && number.as_int() != 10)
        refuse("{}: version {} of the operators of ATen is not known, only 10{}", source_, number.as_int(),
               kExportAgain);
  }

  bool read_dialect() const {
    for (const Json& verifier : json_.at("verifiers").as_array())
      if (verifier.as_string() == "TRAINING") return true;
    return false;
  }

  void read_metadata(const Json& module, Dict& metadata) const {
    metadata.set("torch_version", json_.at("torch_version").as_string());
    metadata.set("model", model_);
    if (const Json* notes = module.find("metadata"))
      for (const auto& [key, value] : notes->as_object()) metadata.set("graph." + key, value.as_string());
  }

  // Named tuples are written without the names of their fields, which are here.
  void read_struct_types(const Json& module) {
    const Json* fields = module.find("treespec_namedtuple_fields");
    if (!fields) return;
    for (const auto& [name, definition] : fields->as_object()) {
      std::vector<std::string> names;
      for (const Json& field : definition.at("field_names").as_array()) names.push_back(field.as_string());
      types_.emplace_back(new StructType(name, std::move(names), StructType::Form::kNamedTuple));
    }
  }
  TreeSpec tree(const Json& text, const char* what) const {
    return tree_of_any_types(text.as_string(), fmt::format("{}: {}", source_, what), types_);
  }

  void read_module_calls(const Json& entries) {
    bool has_root = false;
    for (const Json& entry : entries.as_array()) {
      ModuleCallEntry call{.path = entry.at("fqn").as_string()};
      if (const Json& signature = entry.at("signature"); !signature.is_null())
        call.signature = call_signature(signature);
      if (call.path.empty() && call.signature) {
        has_root = true;
        root_call_ = call.signature->call;
      }
      modules_.push_back(std::move(call));
    }
    if (!has_root) refuse("{}: module_call_graph does not say how the program is called", source_);
  }

  ModuleCallEntry::Signature call_signature(const Json& json) const {
    ModuleCallEntry::Signature signature;
    for (const Json& input : json.at("inputs").as_array()) signature.inputs.push_back(call_argument(input));
    for (const Json& output : json.at("outputs").as_array())
      signature.outputs.push_back(call_argument(output));
    signature.call.arguments = tree(json.at("in_spec"), "in_spec");
    signature.call.result = tree(json.at("out_spec"), "out_spec");
    const Json* names = json.find("forward_arg_names");
    if (names && names->is_array())
      for (const Json& name : names->as_array()) signature.call.names.push_back(name.as_string());
    complete_names(signature.call);
    return signature;
  }
  // Arguments without a name are called args_0, ...; those by name have one.
  void complete_names(ProgramCall& call) const {
    const std::span<const TreeSpec> groups = call.arguments.children();
    if (groups.size() != 2) refuse("{}: in_spec is no pair of arguments and arguments by name", source_);
    const size_t positional = groups[0].children().size(), all = positional + groups[1].children().size();
    if (call.names.size() == all) return;
    call.names.clear();
    for (size_t i = 0; i < positional; ++i) call.names.push_back(fmt::format("args_{}", i));
    for (const Value& key : groups[1].keys())
      call.names.push_back(key.is_string() ? std::string(key.to_string_view()) : key.to_string());
  }
  static ModuleCallEntry::Argument call_argument(const Json& json) {
    const Variant argument = variant_of(json, "an argument of a module");
    if (const Json* name = argument.value.find("name")) return {name->as_string(), {}};
    if (const Json* name = argument.value.find("as_name")) return {name->as_string(), {}};
    if (argument.is("as_int")) return {"", argument.value.as_int()};
    if (argument.is("as_bool")) return {"", argument.value.as_bool()};
    if (argument.is("as_string")) return {"", argument.value.as_string()};
    if (argument.is("as_float")) return {"", float_of(argument.value, "an argument of a module")};
    return {};
  }

  void read_input_specs(const Json& specs) {
    std::vector<sym::Source> leaves = leaf_sources();
    size_t leaf = 0;
    for (const Json& json : specs.as_array()) {
      const Variant spec = variant_of(json, "input spec");
      InputSpec input;
      std::string name;
      using Kind = InputSpec::Kind;
      if (spec.is("user_input") || spec.is("constant_input")) {
        if (leaf == leaves.size())
          refuse("{}: the signature has more inputs than in_spec has leaves", source_);
        input_sources_.push_back(leaves[leaf++]);
        if (spec.is("constant_input")) {
          input.kind = Kind::kConstantInput;
          name = spec.value.at("name").as_string();
          input.constant = constant(spec.value.at("value"));
        }
      } else {
        input_sources_.emplace_back();
        if (spec.is("parameter")) input = {Kind::kParameter, spec.value.at("parameter_name").as_string()};
        else if (spec.is("buffer"))
          input = {Kind::kBuffer, spec.value.at("buffer_name").as_string(),
                   spec.value.at("persistent").as_bool()};
        else if (spec.is("tensor_constant"))
          input = {Kind::kTensorConstant, spec.value.at("tensor_constant_name").as_string()};
        else if (spec.is("custom_obj"))
          input = {Kind::kCustomObject, spec.value.at("custom_obj_name").as_string()};
        else if (spec.is("token")) input = {Kind::kToken};
        else refuse("{}: an input cannot be {}", source_, spec.name);
      }
      inputs_.push_back(std::move(input));
      input_names_.push_back(std::move(name));
    }
  }
  Value constant(const Json& json) const {
    const Variant value = variant_of(json, "constant input");
    if (value.is("as_none")) return {};
    if (value.is("as_int")) return value.value.as_int();
    if (value.is("as_float")) return float_of(value.value, "constant input");
    if (value.is("as_string")) return value.value.as_string();
    if (value.is("as_bool")) return value.value.as_bool();
    refuse("{}: a constant input cannot be {}", source_, value.name);
  }
  std::vector<sym::Source> leaf_sources() const {
    std::vector<sym::Source> sources;
    size_t argument = 0;
    for (const TreeSpec& group : root_call_.arguments.children())
      for (const TreeSpec& child : group.children())
        add_sources(child, sym::Source::argument(root_call_.names[argument++]), sources);
    return sources;
  }
  static void add_sources(const TreeSpec& spec, const sym::Source& source,
                          std::vector<sym::Source>& sources) {
    if (spec.is_leaf()) sources.push_back(source);
    for (size_t i = 0; i < spec.children().size(); ++i)
      add_sources(spec.children()[i], source.step(to_string(KeyPath{spec.child_key(i)})), sources);
  }

  void read_output_specs(const Json& specs) {
    using Kind = OutputSpec::Kind;
    for (const Json& json : specs.as_array()) {
      const Variant spec = variant_of(json, "output spec");
      if (spec.is("user_output")) outputs_.push_back({Kind::kUserOutput});
      else if (spec.is("loss_output")) outputs_.push_back({Kind::kLossOutput});
      else if (spec.is("buffer_mutation"))
        outputs_.push_back({Kind::kBufferMutation, spec.value.at("buffer_name").as_string()});
      else if (spec.is("parameter_mutation"))
        outputs_.push_back({Kind::kParameterMutation, spec.value.at("parameter_name").as_string()});
      else if (spec.is("user_input_mutation"))
        outputs_.push_back({Kind::kUserInputMutation, spec.value.at("user_input_name").as_string()});
      else if (spec.is("gradient_to_parameter"))
        outputs_.push_back({Kind::kGradientToParameter, spec.value.at("parameter_name").as_string()});
      else if (spec.is("gradient_to_user_input"))
        outputs_.push_back({Kind::kGradientToUserInput, spec.value.at("user_input_name").as_string()});
      else if (spec.is("token")) outputs_.push_back({Kind::kToken});
      else refuse("{}: an output cannot be {}", source_, spec.name);
    }
  }

  // A program whose example inputs cannot be read is sound without them.
  std::optional<Value> example_inputs() const {
    const zip::Entry* entry = archive_.find("data/sample_inputs/" + model_ + ".pt");
    if (!entry || entry->size == 0) return std::nullopt;
    try {
      const Value inputs = read_pickled_archive(zip::Archive(archive_.archive().file(*entry)));
      ValueList leaves;
      if (flatten(root_call_.arguments, inputs, leaves)) return tree_unflatten(leaves, root_call_.arguments);
      warn(WarningKind::kUser,
           "{}: the example inputs are not what the program takes; it is loaded without them", source_);
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const UserError& error) {
      warn(WarningKind::kUser, "{}; the program is loaded without example inputs", error.message());
    }
    return std::nullopt;
  }
  // The pickle does not know the classes of containers: any of the right size will do.
  static bool flatten(const TreeSpec& spec, const Value& value, ValueList& leaves) {
    if (spec.is_leaf()) {
      leaves.push_back(value);
      return true;
    }
    const size_t count = spec.children().size();
    if (value.is_dict()) {
      const Dict& dict = value.to_dict();
      if (spec.kind() != TreeSpec::Kind::kDict) return flatten_fields(spec, dict, leaves);
      if (dict.size() != count) return false;
      for (size_t i = 0; i < count; ++i) {
        const Value* item = dict.find(spec.child_key(i).key);
        if (!item || !flatten(spec.children()[i], *item, leaves)) return false;
      }
      return true;
    }
    if (!value.is_sequence() || value.elements().size() != count) return false;
    for (size_t i = 0; i < count; ++i)
      if (!flatten(spec.children()[i], value.elements()[i], leaves)) return false;
    return true;
  }

  // Of a dataclass the pickle has all fields, in order; as a container it has those that are not None.
  static bool flatten_fields(const TreeSpec& spec, const Dict& fields, ValueList& leaves) {
    size_t i = 0;
    for (const auto& [name, field] : fields) {
      if (field.is_none()) continue;
      if (i == spec.children().size() || !flatten(spec.children()[i++], field, leaves)) return false;
    }
    return i == spec.children().size();
  }

  const ArchiveReader& archive_;
  std::string model_, source_;
  Json json_;
  std::vector<StructTypeRef> types_;
  ProgramCall root_call_;
  std::vector<ModuleCallEntry> modules_;
  std::vector<InputSpec> inputs_;
  std::vector<OutputSpec> outputs_;
  std::vector<std::string> input_names_;
  std::vector<sym::Source> input_sources_;
};

ExportedProgram read(Ref<FileBytes> file, const Pt2Options& options) {
  const std::string source = file->source();
  try {
    const ArchiveReader archive{zip::Archive(std::move(file))};
    const std::vector<std::string> models = archive.models();
    std::string names;
    for (const std::string& name : models) names += (names.empty() ? "" : ", ") + name;
    if (models.empty()) refuse("{}: there is no program in the archive", source);
    if (options.model.empty() && models.size() > 1)
      fail("{}: the archive holds several programs ({}); say which one with Pt2Options::model", source,
           names);
    const std::string model = options.model.empty() ? models[0] : options.model;
    if (std::find(models.begin(), models.end(), model) == models.end())
      fail("{}: there is no program '{}' in the archive, only {}", source, model, names);
    return ProgramReader(archive, model).run();
  } catch (const OutOfMemoryError&) {
    throw;
  } catch (const UserError& error) {
    // Whatever JSON, a graph, a tree or a program made of the file's parts refuses, it is the file that is
    // wrong.
    if (error.message().starts_with(source)) throw;
    throw FormatError(fmt::format("{}: {}", source, error.text()));
  }
}

}  // namespace
}  // namespace pt2

ExportedProgram load_pt2(const std::string& path, const Pt2Options& options) {
  return pt2::read(FileBytes::open(path), options);
}
ExportedProgram parse_pt2(std::string_view bytes, std::string_view source, const Pt2Options& options) {
  return pt2::read(FileBytes::copy_of(bytes, std::string(source)), options);
}
std::vector<std::string> pt2_models(const std::string& path) {
  return pt2::ArchiveReader(zip::Archive::open(path)).models();
}

}  // namespace weft
