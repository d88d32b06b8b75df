#include "weft/core/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "weft/base/error.h"

namespace weft {

ValueObject::~ValueObject() = default;

namespace {

template <typename T>
struct Box : RefCounted {
  explicit Box(T value) : value(std::move(value)) {}
  T value;
};

template <typename T>
void* boxed(T value) {
  return Ref<Box<T>>(new Box<T>(std::move(value))).detach();
}
template <typename T>
T& unboxed(void* counted) {
  return static_cast<Box<T>*>(counted)->value;
}

uint32_t checked_nesting(uint32_t inner) {
  require(inner < kMostNesting, "containers are nested more than {} deep; keep what is deeper in a flat list",
          kMostNesting);
  return inner + 1;
}

uint32_t nesting_of(const ValueList& elements) { return nesting_around(elements); }
uint32_t nesting_of(const Dict& dict) {
  uint32_t deepest = 0;
  for (const auto& [key, value] : dict) deepest = std::max({deepest, key.nesting(), value.nesting()});
  return checked_nesting(deepest);
}

// A ValueList or a Dict.
template <typename T>
struct Container : Box<T> {
  explicit Container(T contents) : Box<T>(std::move(contents)), nesting(nesting_of(this->value)) {}
  const uint32_t nesting;
};

template <typename T>
void* contained(T contents) {
  return Ref<Container<T>>(new Container<T>(std::move(contents))).detach();
}

// Calls f with the counted object as its own type.
template <typename F>
void visit_counted(Value::Kind kind, void* counted, F f) {
  using Kind = Value::Kind;
  switch (kind) {
    case Kind::kTensor:
      return f(static_cast<TensorImpl*>(counted));
    case Kind::kSymInt:
      return f(static_cast<Box<SymInt>*>(counted));
    case Kind::kSymFloat:
      return f(static_cast<Box<SymFloat>*>(counted));
    case Kind::kSymBool:
      return f(static_cast<Box<SymBool>*>(counted));
    case Kind::kComplex:
      return f(static_cast<Box<Complex<double>>*>(counted));
    case Kind::kString:
      return f(static_cast<Box<std::string>*>(counted));
    case Kind::kGenerator:
      return f(static_cast<Box<Generator>*>(counted));
    case Kind::kList:
    case Kind::kTuple:
      return f(static_cast<Container<ValueList>*>(counted));
    case Kind::kDict:
      return f(static_cast<Container<Dict>*>(counted));
    case Kind::kObject:
      return f(static_cast<ValueObject*>(counted));
    default:
      return;
  }
}

}  // namespace

uint32_t nesting_around(Args elements) {
  uint32_t deepest = 0;
  for (const Value& element : elements) deepest = std::max(deepest, element.nesting());
  return checked_nesting(deepest);
}

uint32_t Value::nesting() const noexcept {
  switch (kind_) {
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<Container<ValueList>*>(payload_.counted)->nesting;
    case Kind::kDict:
      return static_cast<Container<Dict>*>(payload_.counted)->nesting;
    case Kind::kObject:
      return static_cast<ValueObject*>(payload_.counted)->nesting();
    default:
      return 0;
  }
}

void Value::add_ref() const noexcept {
  if (is_tensor()) [[likely]]
    return tensor_ref().impl()->add_ref();
  visit_counted(kind_, payload_.counted, [](auto* object) { object->add_ref(); });
}
void Value::drop() noexcept {
  if (is_tensor()) [[likely]] {
    Ref<TensorImpl>::adopt(tensor_ref().impl());  // gone at once
    return;
  }
  visit_counted(kind_, payload_.counted, []<typename T>(T* object) {
    if (object->drop_ref()) T::release_last(object);
  });
}

Value::Value(const SymInt& v) {
  if (auto plain = v.maybe_plain()) {
    kind_ = Kind::kInt;
    payload_.integer = *plain;
  } else {
    payload_.counted = boxed(v);
    kind_ = Kind::kSymInt;
  }
}
Value::Value(const SymFloat& v) {
  if (auto plain = v.maybe_plain()) {
    kind_ = Kind::kDouble;
    payload_.real = *plain;
  } else {
    payload_.counted = boxed(v);
    kind_ = Kind::kSymFloat;
  }
}
Value::Value(const SymBool& v) {
  if (!v.is_symbolic()) {
    kind_ = Kind::kBool;
    payload_.integer = v.plain();
  } else {
    payload_.counted = boxed(v);
    kind_ = Kind::kSymBool;
  }
}
Value::Value(Complex<double> v) : kind_(Kind::kComplex) { payload_.counted = boxed(v); }
namespace {

Value value_of(const Scalar& v) {
  switch (v.kind()) {
    case Scalar::Kind::kBool:
      return v.to_bool();
    case Scalar::Kind::kInt:
      return v.to_int();
    case Scalar::Kind::kDouble:
      return v.to_double();
    case Scalar::Kind::kComplex:
      return v.to_complex();
    case Scalar::Kind::kSymInt:
      return v.to_sym_int();
    case Scalar::Kind::kSymFloat:
      return v.to_sym_float();
    case Scalar::Kind::kSymBool:
      return v.to_sym_bool();
  }
  __builtin_unreachable();
}

}  // namespace

Value::Value(const Scalar& v) : Value(value_of(v)) {}
Value::Value(std::string_view v) : kind_(Kind::kString) { payload_.counted = boxed(std::string(v)); }
Value::Value(const Generator& v) : kind_(Kind::kGenerator) { payload_.counted = boxed(v); }
// Of no kind until it is made, since making it may fail.
Value::Value(const Dict& v) : kind_(Kind::kNone) {
  payload_.counted = contained(v);
  kind_ = Kind::kDict;
}

Value Value::list(ValueList elements) {
  Value value;
  value.payload_.counted = contained(std::move(elements));
  value.kind_ = Kind::kList;
  return value;
}
Value Value::tuple(ValueList elements) {
  Value value = list(std::move(elements));
  value.kind_ = Kind::kTuple;
  return value;
}

std::string_view Value::kind_name() const {
  switch (kind_) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInt:
      return "an integer";
    case Kind::kDouble:
      return "a real number";
    case Kind::kDType:
      return "a dtype";
    case Kind::kDevice:
      return "a device";
    case Kind::kLayout:
      return "a layout";
    case Kind::kMemoryFormat:
      return "a memory format";
    case Kind::kTensor:
      return "a tensor";
    case Kind::kSymInt:
      return "a symbolic integer";
    case Kind::kSymFloat:
      return "a symbolic real number";
    case Kind::kSymBool:
      return "a symbolic bool";
    case Kind::kComplex:
      return "a complex number";
    case Kind::kString:
      return "a string";
    case Kind::kGenerator:
      return "a generator";
    case Kind::kList:
      return "a list";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kDict:
      return "a dictionary";
    case Kind::kObject:
      return "an object";
  }
  return "nothing";
}

void Value::wrong_kind(const char* wanted) const {
  fail("expected {} but got {} ({})", wanted, kind_name(), to_string());
}

bool Value::to_bool() const {
  if (kind_ == Kind::kBool || kind_ == Kind::kInt) return payload_.integer != 0;
  if (kind_ == Kind::kSymBool) return guard(unboxed<SymBool>(payload_.counted));
  wrong_kind("a bool");
}
int64_t Value::to_int() const {
  if (kind_ == Kind::kInt || kind_ == Kind::kBool) return payload_.integer;
  if (kind_ == Kind::kSymInt) return guard_int(unboxed<SymInt>(payload_.counted));
  wrong_kind("an integer");
}
double Value::to_double() const {
  if (kind_ == Kind::kDouble) return payload_.real;
  if (kind_ == Kind::kInt || kind_ == Kind::kBool) return static_cast<double>(payload_.integer);
  if (kind_ == Kind::kSymFloat) return unboxed<SymFloat>(payload_.counted);
  if (kind_ == Kind::kSymInt) return static_cast<double>(to_int());
  wrong_kind("a real number");
}
DType Value::to_dtype() const {
  if (kind_ != Kind::kDType) wrong_kind("a dtype");
  return static_cast<DType>(payload_.integer);
}
Device Value::to_device() const {
  if (kind_ != Kind::kDevice) wrong_kind("a device");
  return payload_.device;
}
Layout Value::to_layout() const {
  if (kind_ != Kind::kLayout) wrong_kind("a layout");
  return static_cast<Layout>(payload_.integer);
}
MemoryFormat Value::to_memory_format() const {
  if (kind_ != Kind::kMemoryFormat) wrong_kind("a memory format");
  return static_cast<MemoryFormat>(payload_.integer);
}
Tensor Value::to_tensor() const& { return as_tensor(); }
const Tensor& Value::undefined_tensor() const {
  static const Tensor undefined;
  if (kind_ != Kind::kNone) wrong_kind("a tensor");
  return undefined;
}
SymInt Value::to_sym_int() const {
  if (kind_ == Kind::kSymInt) return unboxed<SymInt>(payload_.counted);
  return to_int();
}
SymFloat Value::to_sym_float() const {
  if (kind_ == Kind::kSymFloat) return unboxed<SymFloat>(payload_.counted);
  if (kind_ == Kind::kSymInt) return sym_float(unboxed<SymInt>(payload_.counted));
  return to_double();
}
SymBool Value::to_sym_bool() const {
  if (kind_ == Kind::kSymBool) return unboxed<SymBool>(payload_.counted);
  return to_bool();
}
Complex<double> Value::to_complex() const {
  if (kind_ == Kind::kComplex) return unboxed<Complex<double>>(payload_.counted);
  return to_double();
}
Scalar Value::to_scalar() const {
  switch (kind_) {
    case Kind::kBool:
      return payload_.integer != 0;
    case Kind::kInt:
      return payload_.integer;
    case Kind::kDouble:
      return payload_.real;
    case Kind::kComplex:
      return unboxed<Complex<double>>(payload_.counted);
    case Kind::kSymInt:
      return unboxed<SymInt>(payload_.counted);
    case Kind::kSymFloat:
      return unboxed<SymFloat>(payload_.counted);
    case Kind::kSymBool:
      return unboxed<SymBool>(payload_.counted);
    default:
      wrong_kind("a number");
  }
}
std::string_view Value::to_string_view() const {
  if (kind_ != Kind::kString) wrong_kind("a string");
  return unboxed<std::string>(payload_.counted);
}
Generator Value::to_generator() const {
  if (kind_ != Kind::kGenerator) wrong_kind("a generator");
  return unboxed<Generator>(payload_.counted);
}
const ValueList& Value::elements() const {
  if (!is_sequence()) wrong_kind("a list or tuple");
  return unboxed<ValueList>(payload_.counted);
}
const Dict& Value::to_dict() const {
  if (kind_ != Kind::kDict) wrong_kind("a dictionary");
  return unboxed<Dict>(payload_.counted);
}
const Ref<ValueObject> Value::to_object() const {
  if (kind_ != Kind::kObject) wrong_kind("an object");
  return Ref<ValueObject>(static_cast<ValueObject*>(payload_.counted));
}

bool Value::operator==(const Value& other) const {
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::kNone:
      return true;
    case Kind::kDouble:
      return payload_.real == other.payload_.real;
    case Kind::kDevice:
      return payload_.device == other.payload_.device;
    case Kind::kSymInt:
      return to_sym_int().same_as(other.to_sym_int());
    case Kind::kSymFloat:
      return to_sym_float().same_as(other.to_sym_float());
    case Kind::kSymBool:
      return to_sym_bool().same_as(other.to_sym_bool());
    case Kind::kComplex:
      return to_complex() == other.to_complex();
    case Kind::kString:
      return to_string_view() == other.to_string_view();
    case Kind::kList:
    case Kind::kTuple:
      return elements() == other.elements();
    case Kind::kDict:
      return to_dict() == other.to_dict();
    case Kind::kObject:
      return static_cast<ValueObject*>(payload_.counted)
          ->equals(*static_cast<ValueObject*>(other.payload_.counted));
    case Kind::kTensor:
    case Kind::kGenerator:
      return payload_.counted == other.payload_.counted;
    default:
      return payload_.integer == other.payload_.integer;
  }
}

namespace {

// Python's repr: the shortest text that reads back, always with a point or an exponent.
std::string real_repr(double v) {
  if (std::isnan(v)) return "nan";  // whatever its sign
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// In single quotes unless those would need escapes and double ones would not.
std::string quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos,
             has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\r') {
      result += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + quote;
}

std::string joined(const ValueList& elements) {
  std::string text;
  for (size_t i = 0; i < elements.size(); ++i) text += (i ? ", " : "") + elements[i].to_string();
  return text;
}

std::string dict_text(const Dict& dict) {
  std::string text = "{";
  for (const auto& [key, value] : dict)
    text += (text.size() > 1 ? ", " : "") + key.to_string() + ": " + value.to_string();
  return text + "}";
}

}  // namespace

std::string Value::to_string() const {
  switch (kind_) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return payload_.integer ? "True" : "False";
    case Kind::kInt:
      return fmt::format("{}", payload_.integer);
    case Kind::kDouble:
      return real_repr(payload_.real);
    case Kind::kDType:
      return std::string(dtype_name(to_dtype()));
    case Kind::kDevice:
      return payload_.device.to_string();
    case Kind::kLayout:
      return "strided";
    case Kind::kMemoryFormat:
      return std::string(memory_format_name(to_memory_format()));
    case Kind::kTensor:
      return describe(tensor_ref()).str();
    case Kind::kSymInt:
      return to_sym_int().to_string();
    case Kind::kSymFloat:
      return to_sym_float().to_string();
    case Kind::kSymBool:
      return to_sym_bool().to_string();
    case Kind::kComplex:
      return to_scalar().to_string();
    case Kind::kString:
      return quoted(to_string_view());
    case Kind::kGenerator:
      return "Generator";
    case Kind::kList:
      return "[" + joined(elements()) + "]";
    case Kind::kTuple:
      return "(" + joined(elements()) + (elements().size() == 1 ? ",)" : ")");
    case Kind::kDict:
      return dict_text(to_dict());
    case Kind::kObject:
      return to_object()->to_string();
  }
  return "";
}

namespace {

constexpr size_t kFewEntries = 8;

size_t hash_of(const Value& value);

size_t hash_of(const ValueList& elements) {
  size_t hash = elements.size();
  for (const Value& element : elements) hash = hash * 31 + hash_of(element);
  return hash;
}

// Equal Values have equal hashes; kinds that are rarely keys share one.
size_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
    case Value::Kind::kInt:
      return std::hash<int64_t>()(value.to_int());
    case Value::Kind::kDouble:
      return std::hash<double>()(value.to_double() + 0.0);  // -0 equals 0
    case Value::Kind::kString:
      return std::hash<std::string_view>()(value.to_string_view());
    case Value::Kind::kTensor:
      return std::hash<const TensorImpl*>()(value.tensor_impl());
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      return hash_of(value.elements());
    default:
      return static_cast<size_t>(value.kind());
  }
}

// Integers are their own hashes: neighbours must not fill neighbouring slots of one run.
size_t first_slot(size_t hash, size_t slots) { return (hash * 0x9E3779B97F4A7C15ull >> 20) & (slots - 1); }

}  // namespace

Dict::Dict(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}
size_t Dict::place(const Value& key) const {
  if (slots_.empty()) {
    size_t i = 0;
    while (i < entries_.size() && !(entries_[i].first == key)) ++i;
    return i;
  }
  for (size_t slot = first_slot(hash_of(key), slots_.size());; slot = (slot + 1) & (slots_.size() - 1)) {
    if (slots_[slot] == 0) return entries_.size();
    if (entries_[slots_[slot] - 1].first == key) return slots_[slot] - 1;
  }
}
void Dict::index_entries(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = first_slot(hash_of(entries_[i].first), slots);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}
const Value* Dict::find(const Value& key) const {
  const size_t at = place(key);
  return at < entries_.size() ? &entries_[at].second : nullptr;
}
const Value& Dict::at(const Value& key) const {
  if (const Value* value = find(key)) return *value;
  std::string keys;
  for (const Entry& entry : entries_) keys += (keys.empty() ? "" : ", ") + entry.first.to_string();
  fail("no entry {}; the dictionary has [{}]", key.to_string(), keys);
}
void Dict::set(Value key, Value value) {
  if (const size_t at = place(key); at < entries_.size()) {
    entries_[at].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() <= kFewEntries) return;
  if (entries_.size() * 2 > slots_.size()) return index_entries(std::bit_ceil(entries_.size() * 4));
  size_t slot = first_slot(hash_of(entries_.back().first), slots_.size());
  while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
}
bool Dict::erase(const Value& key) {
  const size_t at = place(key);
  if (at == entries_.size()) return false;
  entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(at));
  // The order moves up with the entries: their indices are counted anew.
  if (!slots_.empty()) index_entries(slots_.size());
  return true;
}

}  // namespace weft
