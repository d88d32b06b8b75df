// The NPY format: a magic text, a version, the length of a header, the header, which is a dictionary in
// Python's syntax, and the elements.
#include "weft/io/numpy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "io/stored_tensor.h"
#include "io/zip.h"
#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/ops/functions.h"

namespace weft {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64, kMostArrayHeader = 1 << 20;

struct TypeCode {
  const char* code;  // without the byte order
  DType dtype;
};
constexpr TypeCode kTypes[] = {{"b1", kBool},    {"u1", kUInt8},     {"i1", kInt8},       {"i2", kInt16},
                               {"i4", kInt32},   {"i8", kInt64},     {"f2", kFloat16},    {"f4", kFloat32},
                               {"f8", kFloat64}, {"c8", kComplex64}, {"c16", kComplex128}};

std::string listed_types() {
  std::string names;
  for (const TypeCode& type : kTypes) names += (names.empty() ? "" : ", ") + std::string(type.code);
  return names;
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  struct Header {
    std::string descr;
    bool fortran_order = false;
    Ints shape;
  };

  Header run() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(has_descr, true)) header.descr = quoted();
      else if (key == "fortran_order" && !std::exchange(has_order, true)) header.fortran_order = boolean();
      else if (key == "shape" && !std::exchange(has_shape, true)) header.shape = tuple();
      else refuse(fmt::format("the header has an unexpected key '{}'", key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("the header goes on after its end");
    if (!has_descr || !has_order || !has_shape)
      refuse("the header lacks 'descr', 'fortran_order' or 'shape'");
    return header;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw FormatError(fmt::format("{}: {}", source_, what));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("expected '{}' at offset {} of the header", c, at_));
  }
  std::string quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    // Records of several fields are lists of names and types.
    if (quote == '[') refuse("arrays of records are not supported; save each field");
    if (quote != '\'' && quote != '"')
      refuse(fmt::format("expected a string at offset {} of the header", at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) refuse("a string of the header has no end");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_space();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    refuse("'fortran_order' is neither True nor False");
  }
  Ints tuple() {
    Ints numbers;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t number = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
      if (error != std::errc() || number < 0) refuse("'shape' is no tuple of sizes");
      at_ = static_cast<size_t>(end - text_.data());
      numbers.push_back(number);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return numbers;
  }

  std::string_view text_, source_;
  size_t at_ = 0;
};

void swap_bytes(char* data, size_t count, size_t width) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

Tensor read_npy(const Ref<FileBytes>& file) {
  const std::string& source = file->source();
  auto refuse = [&](std::string_view what) { throw FormatError(fmt::format("{}: {}", source, what)); };
  if (file->size() < kMagic.size() + 4 || file->view(0, kMagic.size()) != kMagic)
    refuse("it is no .npy file: the first bytes are others");
  const std::string_view start = file->all();
  const int major = start[6];
  if (major < 1 || major > 3) refuse(fmt::format("version {} of the format is not known", major));
  const size_t prefix = major == 1 ? 10 : 12;
  if (start.size() < prefix) refuse("the header is truncated");
  uint32_t length = 0;
  std::memcpy(&length, start.data() + 8, major == 1 ? 2 : 4);
  if (length > kMostArrayHeader || length > start.size() - prefix)
    refuse(fmt::format("the header claims {} bytes, but {} follow", length, start.size() - prefix));
  const auto header = HeaderReader(start.substr(prefix, length), source).run();

  const char order = header.descr.empty() ? ' ' : header.descr[0];
  std::optional<DType> dtype;
  if (order == '<' || order == '>' || order == '|' || order == '=')
    for (const TypeCode& type : kTypes)
      if (std::string_view(header.descr).substr(1) == type.code) dtype = type.dtype;
  if (!dtype)
    refuse(fmt::format("elements of type '{}' are not supported ({} are)", header.descr, listed_types()));
  StoredLayout layout = row_major(header.shape);
  if (header.fortran_order) {
    std::reverse(layout.sizes.begin(), layout.sizes.end());
    layout = row_major(layout.sizes);
    std::reverse(layout.sizes.begin(), layout.sizes.end());
    std::reverse(layout.strides.begin(), layout.strides.end());
  }
  const uint64_t data = prefix + length, bytes = file->size() - data;
  Ref<Storage> storage = file->storage(data, bytes, element_alignment(*dtype));
  if (order == '>' && item_size(*dtype) > 1) {
    Ref<Storage> swapped = Storage::allocate(bytes, kCpu);
    if (bytes) std::memcpy(swapped->data(), storage->data(), bytes);
    const size_t width = element_alignment(*dtype);
    swap_bytes(static_cast<char*>(swapped->data()), bytes / width, width);
    storage = std::move(swapped);
  }
  if (dtype == kBool) check_bools(*storage, source);
  Tensor tensor = tensor_over(std::move(storage), *dtype, layout, source);
  if (static_cast<uint64_t>(tensor.plain_numel()) * static_cast<uint64_t>(item_size(*dtype)) != bytes)
    refuse(fmt::format("{} has {} bytes, but {} follow the header", describe(tensor).str(),
                       tensor.plain_numel() * item_size(*dtype), bytes));
  return tensor;
}

constexpr std::string_view kExtension = ".npy";

}  // namespace

Tensor load_npy(const std::string& path) { return read_npy(FileBytes::open(path)); }
Tensor parse_npy(std::string_view bytes, std::string_view source) {
  return read_npy(FileBytes::copy_of(bytes, std::string(source)));
}

NamedArrays load_npz(const std::string& path) {
  const zip::Archive archive = zip::Archive::open(path);
  NamedArrays arrays;
  for (const zip::Entry& entry : archive.entries()) {
    std::string name = entry.name;
    if (name.ends_with(kExtension)) name.resize(name.size() - kExtension.size());
    Tensor tensor = read_npy(archive.file(entry));
    arrays.emplace_back(std::move(name), std::move(tensor));
  }
  return arrays;
}

std::string npy_bytes(const Tensor& tensor) {
  require(tensor.defined() && tensor.storage()->has_memory() && !tensor.impl()->box,
          "npy: only tensors with values can be saved");
  const TypeCode* type = nullptr;
  for (const TypeCode& known : kTypes)
    if (known.dtype == tensor.dtype()) type = &known;
  require(type != nullptr, "npy: NumPy has no {}; save tensor.to(kFloat32), which has all of its values",
          dtype_name(tensor.dtype()));
  NoGrad no_grad;
  const Tensor values = resolve_neg(resolve_conj(tensor.detach())).contiguous();
  std::string shape;
  for (int64_t size : values.plain_sizes()) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", size);
  if (values.dim() == 1) shape += ",";
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   item_size(tensor.dtype()) == 1 ? "|" : "<", type->code, shape);
  const size_t unpadded = 10 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string bytes(kMagic);
  bytes += std::string("\x01\x00", 2);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes += header;
  const auto count = static_cast<size_t>(values.plain_numel() * item_size(values.dtype()));
  if (count) bytes.append(static_cast<const char*>(values.raw_data()), count);
  return bytes;
}

void save_npy(const Tensor& tensor, const std::string& path) {
  FileWriter file(path);
  file.write(npy_bytes(tensor));
  file.finish();
}

void save_npz(const NamedArrays& arrays, const std::string& path) {
  FileWriter file(path);
  zip::Writer writer([&](std::string_view bytes) { file.write(bytes); });
  for (const auto& [name, tensor] : arrays) writer.add(name + std::string(kExtension), npy_bytes(tensor));
  writer.finish();
  file.finish();
}

}  // namespace weft
