// Writing pickles of data, in protocol 2, which every reader of tensors takes.
#include "io/pickle.h"

#include <bit>
#include <cstring>
#include <unordered_map>

#include "weft/autograd/autograd.h"
#include "weft/base/error.h"
#include "weft/core/struct.h"
#include "weft/ops/functions.h"

namespace weft::pickle {
namespace {

const char* storage_type(DType dtype) {
  switch (dtype) {
    case kBool:
      return "BoolStorage";
    case kUInt8:
      return "ByteStorage";
    case kInt8:
      return "CharStorage";
    case kInt16:
      return "ShortStorage";
    case kInt32:
      return "IntStorage";
    case kInt64:
      return "LongStorage";
    case kFloat16:
      return "HalfStorage";
    case kBFloat16:
      return "BFloat16Storage";
    case kFloat32:
      return "FloatStorage";
    case kFloat64:
      return "DoubleStorage";
    case kComplex64:
      return "ComplexFloatStorage";
    case kComplex128:
      return "ComplexDoubleStorage";
  }
  __builtin_unreachable();
}

// Recursion is as deep as Values are nested, which is bounded.
class Writer {
 public:
  Pickled run(const Value& value) {
    put("\x80\x02");
    write(value);
    put(".");
    return std::move(made_);
  }

 private:
  void put(std::string_view bytes) { made_.bytes += bytes; }
  void put_byte(unsigned value) { made_.bytes += static_cast<char>(value); }
  template <typename T>
  void put_number(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    made_.bytes.append(raw, sizeof(T));
  }

  void write(const Value& value) {
    using Kind = Value::Kind;
    if (const StructObject* record = struct_in(value)) return write_tuple(record->fields());
    switch (value.kind()) {
      case Kind::kNone:
        return put("N");
      case Kind::kBool:
        return put(value.to_bool() ? "\x88" : "\x89");
      case Kind::kInt:
        return write_int(value.to_int());
      case Kind::kDouble:
        return write_double(value.to_double());
      case Kind::kString:
        return write_string(value.to_string_view());
      case Kind::kComplex:
        return write_complex(value.to_complex());
      case Kind::kDType:
        return write_global("torch", dtype_name(value.to_dtype()));
      case Kind::kTensor:
        return write_tensor(value.tensor_ref());
      case Kind::kTuple:
        return write_tuple(value.elements());
      case Kind::kList:
        put("](");
        for (const Value& element : value.elements()) write(element);
        return put("e");
      case Kind::kDict:
        put("}(");
        for (const auto& [key, element] : value.to_dict()) {
          write(key);
          write(element);
        }
        return put("u");
      default:
        break;
    }
    fail("a pickle cannot hold {}; only tensors, numbers, strings and containers of them", value.kind_name());
  }

  void write_tuple(const ValueList& elements) {
    put("(");
    for (const Value& element : elements) write(element);
    put("t");
  }
  void write_int(int64_t value) {
    if (value >= 0 && value <= 0xff) {
      put("K");
      put_byte(static_cast<unsigned>(value));
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
      put("J");
      put_number(static_cast<int32_t>(value));
    } else {
      put("\x8a\x08");
      put_number(value);
    }
  }
  void write_double(double value) {
    put("G");
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) put_byte(static_cast<unsigned>(bits >> shift & 0xff));
  }
  void write_string(std::string_view text) {
    require(text.size() <= UINT32_MAX, "a pickle cannot hold a string of {} bytes", text.size());
    put("X");
    put_number(static_cast<uint32_t>(text.size()));
    put(text);
  }
  void write_global(std::string_view module, std::string_view name) {
    put("c");
    put(module);
    put("\n");
    put(name);
    put("\n");
  }
  void write_complex(Complex<double> value) {
    write_global("__builtin__", "complex");
    put("(");
    write_double(value.re);
    write_double(value.im);
    put("tR");
  }
  template <typename List>
  void write_ints(const List& numbers) {
    put("(");
    for (int64_t number : numbers) write_int(number);
    put("t");
  }

  void write_tensor(const Tensor& given) {
    require(given.storage()->has_memory() && !given.impl()->box && !given.impl()->is_symbolic(),
            "a pickle cannot hold {} without values", describe(given));
    Tensor tensor;
    {
      NoGrad no_grad;
      tensor = resolve_neg(resolve_conj(given.detach()));
    }
    auto [found, is_new] = keys_.try_emplace(tensor.storage().get(), made_.storages.size());
    if (is_new) made_.storages.push_back(tensor);
    const auto elements =
        static_cast<int64_t>(tensor.storage()->bytes() / static_cast<size_t>(item_size(tensor.dtype())));
    write_global("torch._utils", "_rebuild_tensor_v2");
    put("((");
    write_string("storage");
    write_global("torch", storage_type(tensor.dtype()));
    write_string(std::to_string(found->second));
    write_string("cpu");
    write_int(elements);
    put("tQ");
    write_int(tensor.storage_offset().plain());
    write_ints(tensor.plain_sizes());
    write_ints(tensor.plain_strides());
    put(given.requires_grad() ? "\x88" : "\x89");
    write_global("collections", "OrderedDict");
    put(")RtR");
  }

  Pickled made_;
  std::unordered_map<const Storage*, size_t> keys_;
};

}  // namespace

Pickled dump(const Value& value) { return Writer().run(value); }

}  // namespace weft::pickle
