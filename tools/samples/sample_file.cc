#include "samples/sample_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "weft/base/error.h"

namespace weft::recorded {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot open '{}' for reading", path.string());
  std::stringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

double real_number(const Json& json) {
  if (json.is_number()) return json.as_double();
  const std::string& word = json.as_string();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  throw FormatError(fmt::format("'{}' is no number", word));
}

MemoryFormat memory_format_named(const std::string& name) {
  if (name == "contiguous_format") return MemoryFormat::kContiguous;
  if (name == "preserve_format") return MemoryFormat::kPreserve;
  if (name == "channels_last") return MemoryFormat::kChannelsLast;
  if (name == "channels_last_3d") return MemoryFormat::kChannelsLast3d;
  unsupported("memory format {}", name);
}

Ints integers(const Json& list) {
  Ints result;
  for (const Json& element : list.as_array()) result.push_back(element.as_int());
  return result;
}

DType dtype_called(const std::string& name) {
  std::optional<DType> dtype = dtype_from_name(name);
  if (!dtype) unsupported("element type {}", name);
  return *dtype;
}

// A number where the schema says Tensor: 0-dim, and weak in type promotion.
Tensor wrapped(const Value& number) {
  Scalar scalar = number.to_scalar();
  Tensor tensor = allocate_contiguous({}, scalar.dtype());
  visit_dtype(scalar.dtype(), [&]<typename T>() { *tensor.data<T>() = scalar.to<T>(); });
  tensor.impl()->set_flags(tensor_flag::kWrappedNumber);
  return tensor;
}

class Maker {
 public:
  explicit Maker(const SafeTensors& tensors) : tensors_(tensors) {}

  Value value(const Json& json, bool is_tensor) {
    if (json.is_array()) {
      ValueList elements;
      for (const Json& element : json.as_array()) elements.push_back(value(element, is_tensor));
      return Value::list(std::move(elements));
    }
    if (json.contains("storage")) return tensor(json);
    Value plain = plain_value(json);
    return is_tensor && plain.is_number() ? Value(wrapped(plain)) : plain;
  }

 private:
  Tensor tensor(const Json& json) {
    DType dtype = dtype_called(json.at("dtype").as_string());
    auto impl = make_ref<TensorImpl>(storage(json), dtype, kCpu);
    Ints sizes = integers(json.at("sizes")), strides = integers(json.at("strides"));
    impl->set_geometry(IntSpan(sizes), IntSpan(strides), json.at("offset").as_int());
    if (json.contains("conj")) impl->set_flags(tensor_flag::kConjugate | layer::kKernelDetour);
    if (json.contains("neg")) impl->set_flags(tensor_flag::kNegative | layer::kKernelDetour);
    check_bounds(*impl, json);
    return Tensor(std::move(impl));
  }

  Ref<Storage> storage(const Json& json) {
    const Json* memory = json.find("memory");
    if (memory)
      if (auto found = shared_.find(memory->as_int()); found != shared_.end()) return found->second;
    const Tensor& stored = tensors_.at(json.at("storage").as_string());
    size_t bytes = stored.storage()->bytes();
    Ref<Storage> copy = Storage::allocate(bytes, kCpu);
    if (bytes) std::memcpy(copy->data(), stored.raw_data(), bytes);
    if (memory) shared_[memory->as_int()] = copy;
    return copy;
  }

  static void check_bounds(const TensorImpl& tensor, const Json& json) {
    int64_t last = tensor.storage_offset().plain();
    for (int64_t d = 0; d < tensor.dim(); ++d) {
      int64_t size = tensor.sizes().plain()[static_cast<size_t>(d)];
      if (size == 0) return;
      last += (size - 1) * tensor.strides().plain()[static_cast<size_t>(d)];
    }
    if (last < 0 || static_cast<size_t>((last + 1) * item_size(tensor.dtype())) > tensor.storage()->bytes())
      throw FormatError(fmt::format("the view {} reaches beyond its storage", json.to_text()));
  }

  const SafeTensors& tensors_;
  std::map<int64_t, Ref<Storage>> shared_;
};

bool takes_tensors(const Type& type) {
  const Type* inner = &type;
  while (inner->is_list() || inner->is_optional()) inner = &inner->element();
  return inner->is_tensor();
}

// Defaults of enumerations are recorded as PyTorch's numbers for them.
Value enumerated(const Type& type, const Value& value) {
  const Type& inner = type.is_optional() ? type.element() : type;
  if (value.kind() != Value::Kind::kInt) return value;
  auto number = static_cast<size_t>(value.to_int());
  if (inner.is(Type::Kind::kMemoryFormat)) {
    constexpr MemoryFormat formats[] = {MemoryFormat::kContiguous, MemoryFormat::kPreserve,
                                        MemoryFormat::kChannelsLast, MemoryFormat::kChannelsLast3d};
    require(number < std::size(formats), "memory format {} is not known", number);
    return formats[number];
  }
  if (inner.is(Type::Kind::kLayout)) {
    require(number == 0, "layout {} is not known", number);
    return Layout::kStrided;
  }
  if (inner.is(Type::Kind::kScalarType)) {
    constexpr DType types[] = {kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kFloat32, kFloat64};
    constexpr size_t complex64 = 9, complex128 = 10, boolean = 11, bfloat16 = 15;
    if (number < std::size(types)) return types[number];
    if (number == complex64 || number == complex128) return number == complex64 ? kComplex64 : kComplex128;
    require(number == boolean || number == bfloat16, "element type {} is not known", number);
    return number == boolean ? kBool : kBFloat16;
  }
  return value;
}

bool is_unsupported_type(const Json& name) {
  const std::string& text = name.as_string();
  return text == "uint16" || text == "uint32" || text == "uint64";
}

bool mentions_unsupported_type(const Json& json) {
  if (json.is_array())
    return std::any_of(json.as_array().begin(), json.as_array().end(), mentions_unsupported_type);
  const Json* dtype = json.find("dtype");
  return dtype && is_unsupported_type(*dtype);
}

}  // namespace

SampleFile SampleFile::load(const fs::path& path) {
  SampleFile file;
  file.json_ = std::make_unique<const Json>(Json::parse(read_text(path), path.string()));
  const Json& json = *file.json_;
  if (json.at("format").as_int() != 1)
    throw FormatError(
        fmt::format("{}: format {} is not known; expected 1", path.string(), json.at("format").as_int()));
  file.family_ = json.at("family").as_string();
  for (const char* kind : {"samples", "errors"})
    for (const Json& row : json.at(kind).as_array()) {
      const Json& overload = row.at("overload");
      file.rows_.push_back(
          {&row, row.at("id").as_string(), overload.is_null() ? "" : overload.as_string(), kind[0] == 'e'});
    }
  file.tensors_ = load_safetensors((path.parent_path() / json.at("tensors").as_string()).string(),
                                   {.leave_out_unsupported = true});
  return file;
}

std::vector<fs::path> sample_files(const fs::path& place) {
  if (place.extension() == ".json") return {place};
  require(fs::is_directory(place), "'{}' is no folder", place.string());
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(place))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  require(!files.empty(), "the folder '{}' holds no sample files (*.json)", place.string());
  std::sort(files.begin(), files.end());
  return files;
}

const Tensor* Arguments::find(std::string_view name) const {
  for (const auto& [other, tensor] : tensors)
    if (other == name) return &tensor;
  return nullptr;
}

Arguments make_arguments(const Operator& op, const Row& row, const SafeTensors& tensors) {
  const Json::Array& stored = row.json->at("args").as_array();
  const auto& arguments = op.schema().arguments;
  require(stored.size() == arguments.size(), "the row has {} arguments, the schema {}", stored.size(),
          arguments.size());
  Maker maker(tensors);
  Arguments made;
  for (size_t i = 0; i < stored.size(); ++i) {
    const std::string& name = stored[i].at(0).as_string();
    require(name == arguments[i].name, "argument {} is '{}' in the row and '{}' in the schema", i, name,
            arguments[i].name);
    const Json& json = stored[i].at(1);
    Value value = enumerated(arguments[i].type, maker.value(json, takes_tensors(arguments[i].type)));
    if (json.is_array()) {
      for (size_t k = 0; k < json.size(); ++k)
        if (json.at(k).contains("storage"))
          made.tensors.emplace_back(fmt::format("{}[{}]", name, k), value.elements()[k].to_tensor());
    } else if (json.contains("storage")) {
      made.tensors.emplace_back(name, value.to_tensor());
    }
    made.values.push_back(std::move(value));
  }
  return made;
}

bool has_unsupported_type(const Row& row) {
  const Json *args = row.json->find("args"), *out = row.json->find("out");
  if (out && mentions_unsupported_type(*out)) return true;
  return args && std::any_of(args->as_array().begin(), args->as_array().end(),
                             [](const Json& arg) { return mentions_unsupported_type(arg.at(1)); });
}

Value plain_value(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  if (json.is_int()) return json.as_int();
  if (json.is_string()) return json.as_string();
  if (json.is_array()) {
    ValueList elements;
    for (const Json& element : json.as_array()) elements.push_back(plain_value(element));
    return Value::list(std::move(elements));
  }
  if (const Json* real = json.find("f")) return real_number(*real);
  if (const Json* parts = json.find("c"))
    return Complex<double>(real_number(parts->at(0)), real_number(parts->at(1)));
  if (const Json* dtype = json.find("dtype")) return dtype_called(dtype->as_string());
  if (const Json* device = json.find("device")) return Device(std::string_view(device->as_string()));
  if (const Json* layout = json.find("layout")) {
    if (layout->as_string() != "strided") unsupported("layout {}", layout->as_string());
    return Layout::kStrided;
  }
  if (const Json* format = json.find("memory_format")) return memory_format_named(format->as_string());
  throw FormatError(fmt::format("{} is no value", json.to_text()));
}

}  // namespace weft::recorded
