// The safetensors format: eight bytes with the length of a JSON header, the header, and one buffer in which
// the tensors are packed. The format asks that they cover the buffer exactly: no gaps, no overlaps.
#include "weft/io/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "base/json.h"
#include "io/file_bytes.h"
#include "io/stored_tensor.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so is this reader");

constexpr uint64_t kPrefix = 8, kMostHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  const char* name;
  DType dtype;
};
// What weft has.
constexpr TypeName kTypeNames[] = {{"F64", kFloat64},   {"F32", kFloat32},  {"F16", kFloat16},
                                   {"BF16", kBFloat16}, {"I64", kInt64},    {"I32", kInt32},
                                   {"I16", kInt16},     {"I8", kInt8},      {"U8", kUInt8},
                                   {"BOOL", kBool},     {"C64", kComplex64}};

// What the format has beyond that, with the bytes of an element.
constexpr std::pair<const char*, int> kOtherTypes[] = {{"U64", 8},     {"U32", 4},     {"U16", 2},
                                                       {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}};

std::optional<DType> dtype_named(std::string_view name) {
  for (const TypeName& type : kTypeNames)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

const char* type_name(DType dtype) {
  for (const TypeName& type : kTypeNames)
    if (type.dtype == dtype) return type.name;
  return nullptr;
}

template <typename... A>
void check_format(bool ok, std::string_view source, fmt::format_string<const A&...> text, const A&... args) {
  if (!ok) throw FormatError(fmt::format("{}: {}", source, fmt::format(text, args...)));
}

struct Placement {
  std::string name;
  std::optional<DType> dtype;  // nothing for a type that weft does not have
  Ints sizes;
  uint64_t begin, end;
};

class Reader {
 public:
  Reader(Ref<FileBytes> file, const SafeTensorsOptions& options)
      : file_(std::move(file)), size_(file_->size()), source_(file_->source()), options_(options) {}

  SafeTensors run() {
    const std::string_view header = read_header();
    check_format(header[0] == '{', source_, "the header does not begin with '{{'");
    Json json = Json::parse(header, fmt::format("{}: header", source_), {.max_depth = 8});
    SafeTensors file;
    std::vector<Placement> layouts;
    for (const auto& [name, entry] : json.as_object()) {
      if (name == kMetadata) file.metadata = metadata_of(entry);
      else layouts.push_back(layout_of(name, entry));
    }
    check_coverage(layouts);
    for (Placement& layout : layouts) {
      if (!layout.dtype) {
        file.left_out.push_back(std::move(layout.name));
        continue;
      }
      Tensor tensor = read_tensor(layout);
      file.add(std::move(layout.name), std::move(tensor));
    }
    return file;
  }

 private:
  std::string_view read_header() {
    check_format(size_ >= kPrefix, source_, "{} bytes are no safetensors file; the shortest has 10", size_);
    uint64_t length = 0;
    std::memcpy(&length, file_->view(0, kPrefix).data(), kPrefix);
    check_format(length <= kMostHeader, source_, "the header claims {} bytes; at most {} are read", length,
                 kMostHeader);
    check_format(length >= 2 && length <= size_ - kPrefix, source_,
                 "the header claims {} bytes, but {} follow", length, size_ - kPrefix);
    data_ = kPrefix + length;
    return file_->view(kPrefix, length);
  }

  std::vector<std::pair<std::string, std::string>> metadata_of(const Json& entry) const {
    check_format(entry.is_object(), source_, "'{}' is no object", kMetadata);
    std::vector<std::pair<std::string, std::string>> notes;
    for (const auto& [key, value] : entry.as_object()) {
      check_format(value.is_string(), source_, "'{}': the note '{}' is no string", kMetadata, key);
      notes.emplace_back(key, value.as_string());
    }
    return notes;
  }

  Placement layout_of(const std::string& name, const Json& entry) const {
    check_format(entry.is_object(), source_, "entry '{}' is no object", name);
    for (const auto& [key, value] : entry.as_object())
      check_format(key == "dtype" || key == "shape" || key == "data_offsets", source_,
                   "entry '{}': unknown member '{}'", name, key);
    const Json& type = member(name, entry, "dtype");
    check_format(type.is_string(), source_, "entry '{}': dtype is no string", name);
    Placement layout{name, dtype_named(type.as_string()), {}, 0, 0};
    uint64_t bytes =
        read_shape(member(name, entry, "shape"), bytes_of_element(name, type.as_string()), layout);
    const Json& offsets = member(name, entry, "data_offsets");
    check_format(offsets.is_array() && offsets.size() == 2, source_,
                 "entry '{}': data_offsets are not two numbers", name);
    layout.begin = natural(name, offsets.at(0), "data_offsets");
    layout.end = natural(name, offsets.at(1), "data_offsets");
    check_format(layout.begin <= layout.end && layout.end <= size_ - data_, source_,
                 "entry '{}': bytes {} to {} are not inside the {} bytes of data", name, layout.begin,
                 layout.end, size_ - data_);
    check_format(layout.end - layout.begin == bytes, source_,
                 "entry '{}': {}{} has {} bytes, but its offsets span {}", name,
                 entry.at("dtype").as_string(), describe_sizes(IntSpan(layout.sizes)).str(), bytes,
                 layout.end - layout.begin);
    return layout;
  }

  uint64_t bytes_of_element(const std::string& name, const std::string& type) const {
    if (std::optional<DType> dtype = dtype_named(type)) return static_cast<uint64_t>(item_size(*dtype));
    for (const auto& [other, bytes] : kOtherTypes)
      if (options_.leave_out_unsupported && type == other) return static_cast<uint64_t>(bytes);
    throw FormatError(
        fmt::format("{}: entry '{}': element type '{}' is not supported (F64, F32, F16, BF16, I64, I32, I16, "
                    "I8, U8, BOOL, C64 are)",
                    source_, name, type));
  }

  // The number of bytes that the shape asks for.
  uint64_t read_shape(const Json& shape, uint64_t bytes, Placement& layout) const {
    check_format(shape.is_array(), source_, "entry '{}': shape is no list", layout.name);
    bool empty = false, overflow = false;
    for (const Json& element : shape.as_array()) {
      uint64_t size = natural(layout.name, element, "shape");
      layout.sizes.push_back(static_cast<int64_t>(size));
      empty |= size == 0;
      overflow |= __builtin_mul_overflow(bytes, size, &bytes);
    }
    check_format(empty || (!overflow && bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())),
                 source_, "entry '{}': shape {} has more bytes than can be addressed", layout.name,
                 describe_sizes(IntSpan(layout.sizes)).str());
    return empty ? 0 : bytes;
  }

  const Json& member(const std::string& name, const Json& entry, const char* key) const {
    const Json* found = entry.find(key);
    check_format(found != nullptr, source_, "entry '{}' has no {}", name, key);
    return *found;
  }

  uint64_t natural(const std::string& name, const Json& number, const char* what) const {
    check_format(number.is_int() && number.as_int() >= 0, source_,
                 "entry '{}': {} holds {}; expected an integer of at least 0", name, what, number.to_text());
    return static_cast<uint64_t>(number.as_int());
  }

  void check_coverage(const std::vector<Placement>& layouts) const {
    std::vector<const Placement*> sorted;
    for (const Placement& layout : layouts) sorted.push_back(&layout);
    std::sort(sorted.begin(), sorted.end(), [](const Placement* a, const Placement* b) {
      return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
    });
    uint64_t covered = 0;
    for (const Placement* layout : sorted) {
      check_format(layout->begin >= covered, source_,
                   "entry '{}' begins at byte {}, inside another entry that ends at {}", layout->name,
                   layout->begin, covered);
      check_format(layout->begin == covered, source_,
                   "entry '{}' begins at byte {}; bytes {} to {} belong to no entry", layout->name,
                   layout->begin, covered, layout->begin);
      covered = layout->end;
    }
    check_format(covered == size_ - data_, source_, "the last {} bytes belong to no entry",
                 size_ - data_ - covered);
  }

  Tensor read_tensor(const Placement& layout) {
    const std::string what = fmt::format("{}: entry '{}'", source_, layout.name);
    Ref<Storage> storage =
        file_->storage(data_ + layout.begin, layout.end - layout.begin, element_alignment(*layout.dtype));
    if (layout.dtype == kBool) check_bools(*storage, what);
    return tensor_over(std::move(storage), *layout.dtype, row_major(layout.sizes), what);
  }

  Ref<FileBytes> file_;
  uint64_t size_, data_ = 0;
  std::string_view source_;
  SafeTensorsOptions options_;
};

struct Writable {
  std::string_view name;
  Tensor values;  // row-major, without lazy bits
};

Writable writable(const std::string& name, const Tensor& tensor) {
  require(tensor.defined(), "safetensors: '{}' is an undefined tensor", name);
  require(tensor.storage()->has_memory() && !tensor.impl()->box,
          "safetensors: '{}' is {} without memory; only tensors with values can be saved", name,
          describe(tensor));
  require(type_name(tensor.dtype()) != nullptr,
          "safetensors: '{}' is {}, which the format does not have; save view_as_real of it", name,
          describe(tensor));
  require(name != kMetadata, "safetensors: a tensor cannot be called '{}'", name);
  GradModeScope no_grad(false);
  return {name, resolve_neg(resolve_conj(tensor.detach())).contiguous()};
}

size_t byte_count(const Tensor& tensor) {
  return static_cast<size_t>(tensor.plain_numel()) * static_cast<size_t>(item_size(tensor.dtype()));
}

// Wide elements first, so that every tensor is aligned to its elements; then by name, as other writers do.
std::vector<Writable> in_file_order(const SafeTensors& tensors) {
  std::vector<Writable> sorted;
  for (const auto& [name, tensor] : tensors) sorted.push_back(writable(name, tensor));
  std::sort(sorted.begin(), sorted.end(), [](const Writable& a, const Writable& b) {
    int64_t wide_a = item_size(a.values.dtype()), wide_b = item_size(b.values.dtype());
    return wide_a != wide_b ? wide_a > wide_b : a.name < b.name;
  });
  return sorted;
}

std::string header_of(const std::vector<Writable>& sorted, const SafeTensors& tensors) {
  JsonObject header;
  if (!tensors.metadata.empty()) {
    JsonObject notes;
    for (const auto& [key, value] : tensors.metadata)
      require(notes.insert(key, value), "safetensors: two notes are called '{}'", key);
    header.insert(std::string(kMetadata), std::move(notes));
  }
  int64_t offset = 0;
  for (const Writable& entry : sorted) {
    Json::Array shape;
    for (int64_t size : entry.values.plain_sizes()) shape.emplace_back(size);
    int64_t end = offset + static_cast<int64_t>(byte_count(entry.values));
    header.insert(std::string(entry.name), JsonObject{{"dtype", type_name(entry.values.dtype())},
                                                      {"shape", std::move(shape)},
                                                      {"data_offsets", Json::Array{offset, end}}});
    offset = end;
  }
  std::string text = Json(std::move(header)).to_text();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

void write(const SafeTensors& tensors, FunctionRef<void(const void*, size_t)> put) {
  std::vector<Writable> sorted = in_file_order(tensors);
  std::string header = header_of(sorted, tensors);
  uint64_t length = header.size();
  require(length <= kMostHeader, "safetensors: a header of {} bytes is longer than readers accept ({})",
          length, kMostHeader);
  put(&length, sizeof(length));
  put(header.data(), header.size());
  for (const Writable& entry : sorted)
    if (size_t count = byte_count(entry.values)) put(entry.values.raw_data(), count);
}

}  // namespace

SafeTensors::SafeTensors(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    const std::string name = entry.first;
    require(add(std::move(entry.first), std::move(entry.second)), "safetensors: two tensors are called '{}'",
            name);
  }
}

const Tensor* SafeTensors::find(std::string_view name) const {
  auto found = places_.find(std::string(name));
  return found == places_.end() ? nullptr : &entries_[found->second].second;
}

const Tensor& SafeTensors::at(std::string_view name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  std::string names;
  for (size_t i = 0; i < entries_.size() && i < 8; ++i) names += (i ? ", " : "") + entries_[i].first;
  fail("there is no tensor '{}' among the {} here: {}{}", name, entries_.size(), names,
       entries_.size() > 8 ? ", ..." : "");
}

bool SafeTensors::add(std::string name, Tensor tensor) {
  if (!places_.emplace(name, entries_.size()).second) return false;
  entries_.emplace_back(std::move(name), std::move(tensor));
  return true;
}

SafeTensors parse_safetensors(std::string_view bytes, std::string_view source,
                              const SafeTensorsOptions& options) {
  return Reader(FileBytes::copy_of(bytes, std::string(source)), options).run();
}

SafeTensors load_safetensors(const std::string& path, const SafeTensorsOptions& options) {
  return Reader(FileBytes::open(path), options).run();
}

std::string safetensors_bytes(const SafeTensors& tensors) {
  std::string bytes;
  write(tensors,
        [&](const void* data, size_t count) { bytes.append(static_cast<const char*>(data), count); });
  return bytes;
}

void save_safetensors(const SafeTensors& tensors, const std::string& path) {
  FileWriter file(path);
  write(tensors, [&](const void* data, size_t count) { file.write(data, count); });
  file.finish();
}

}  // namespace weft
