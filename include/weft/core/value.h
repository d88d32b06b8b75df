#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/random.h"
#include "weft/core/tensor.h"

namespace weft {

class Value;
class Dict;

// A C++ object that travels inside Values: a registered struct, a callable, a graph node, an opaque handle.
class ValueObject : public RefCounted {
 public:
  // What hot code tells apart without asking for the class.
  enum class Role : uint8_t { kOther, kNode, kCallable, kStruct };

  explicit ValueObject(Role role = Role::kOther) noexcept : role_(role) {}
  virtual ~ValueObject();
  Role role() const noexcept { return role_; }
  // What messages and printers call it.
  virtual std::string type_name() const = 0;
  // How a printed value shows it, and what two of them being equal means: by default the type's name, and
  // identity.
  virtual std::string to_string() const { return type_name(); }
  virtual bool equals(const ValueObject& other) const { return this == &other; }
  // As Value::nesting, of one that holds Values: `nesting_around` them, kept since it was made.
  virtual uint32_t nesting() const noexcept { return 0; }

 private:
  Role role_;
};

using ValueList = std::vector<Value>;
// The arguments of a call.
using Args = std::span<const Value>;

// How deep containers may be inside each other. Making a deeper one is an error, so that whatever walks over
// Values may recurse.
inline constexpr uint32_t kMostNesting = 512;
// How deep a container of these is nested; an error beyond kMostNesting.
uint32_t nesting_around(Args elements);

// Anything that an operator, a graph or a pytree can hold: 16 bytes, reference-counted. Containers do not
// change once they are made.
class Value {
 public:
  enum class Kind : uint8_t {
    kNone,
    kBool,
    kInt,
    kDouble,
    kDType,
    kDevice,
    kLayout,
    kMemoryFormat,  // held inline
    kTensor,
    kSymInt,
    kSymFloat,
    kSymBool,
    kComplex,
    kString,
    kGenerator,
    kList,
    kTuple,
    kDict,
    kObject,
  };

  Value() noexcept : kind_(Kind::kNone) { payload_.integer = 0; }
  Value(const Value& other) noexcept : kind_(other.kind_), payload_(other.payload_) {
    if (is_counted()) add_ref();
  }
  Value(Value&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kNone)), payload_(other.payload_) {}
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() {
    if (is_counted()) drop();
  }

  // NOLINTBEGIN(google-explicit-constructor)
  Value(std::nullopt_t) noexcept : Value() {}
  Value(bool v) noexcept : kind_(Kind::kBool) { payload_.integer = v; }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T v) noexcept : kind_(Kind::kInt) {
    payload_.integer = static_cast<int64_t>(v);
  }
  Value(double v) noexcept : kind_(Kind::kDouble) { payload_.real = v; }
  Value(DType v) noexcept : kind_(Kind::kDType) { payload_.integer = static_cast<int64_t>(v); }
  Value(Device v) noexcept : kind_(Kind::kDevice) { payload_.device = v; }
  Value(Layout v) noexcept : kind_(Kind::kLayout) { payload_.integer = static_cast<int64_t>(v); }
  Value(MemoryFormat v) noexcept : kind_(Kind::kMemoryFormat) { payload_.integer = static_cast<int64_t>(v); }
  // An undefined tensor is None.
  Value(Tensor v) noexcept : kind_(v.defined() ? Kind::kTensor : Kind::kNone) {
    payload_.counted = Ref<TensorImpl>(std::move(v).ref()).detach();
  }
  // A plain SymInt is an int, a constant SymBool a bool, a constant SymFloat a double.
  Value(const SymInt& v);
  Value(const SymFloat& v);
  Value(const SymBool& v);
  Value(Complex<double> v);
  Value(const Scalar& v);
  Value(std::string_view v);
  Value(const std::string& v) : Value(std::string_view(v)) {}
  Value(const char* v) : Value(std::string_view(v)) {}
  Value(const Generator& v);
  Value(const Dict& v);
  Value(Ref<ValueObject> v) noexcept : kind_(v ? Kind::kObject : Kind::kNone) {
    payload_.counted = v.detach();
  }
  template <typename T>
  Value(const std::optional<T>& v) : Value() {
    if (v) *this = Value(*v);
  }
  // NOLINTEND(google-explicit-constructor)
  static Value list(ValueList elements);
  static Value tuple(ValueList elements);
  template <typename Range>
  static Value list_of(const Range& range) {
    ValueList elements;
    elements.reserve(range.size());
    for (const auto& element : range) elements.emplace_back(element);
    return list(std::move(elements));
  }

  Kind kind() const noexcept { return kind_; }
  bool is_none() const noexcept { return kind_ == Kind::kNone; }
  bool is_tensor() const noexcept { return kind_ == Kind::kTensor; }
  bool is_bool() const noexcept { return kind_ == Kind::kBool || kind_ == Kind::kSymBool; }
  bool is_int() const noexcept { return kind_ == Kind::kInt || kind_ == Kind::kSymInt; }
  bool is_double() const noexcept { return kind_ == Kind::kDouble || kind_ == Kind::kSymFloat; }
  bool is_number() const noexcept { return is_bool() || is_int() || is_double() || kind_ == Kind::kComplex; }
  bool is_string() const noexcept { return kind_ == Kind::kString; }
  bool is_list() const noexcept { return kind_ == Kind::kList; }
  bool is_tuple() const noexcept { return kind_ == Kind::kTuple; }
  bool is_sequence() const noexcept { return is_list() || is_tuple(); }
  bool is_dict() const noexcept { return kind_ == Kind::kDict; }
  bool is_object() const noexcept { return kind_ == Kind::kObject; }

  // What it holds; an error that names both kinds when it holds something else. Numbers widen: a bool is
  // an int, an int is a double.
  bool to_bool() const;
  int64_t to_int() const;
  double to_double() const;
  DType to_dtype() const;
  Device to_device() const;
  Layout to_layout() const;
  MemoryFormat to_memory_format() const;
  Tensor to_tensor() const&;  // None is the undefined tensor
  Tensor to_tensor() && {
    if (!is_tensor()) [[unlikely]]
      return static_cast<const Value&>(*this).to_tensor();
    kind_ = Kind::kNone;
    return Tensor(Ref<TensorImpl>::adopt(static_cast<TensorImpl*>(payload_.counted)));
  }
  // The same by reference, without touching its refcount.
  const Tensor& as_tensor() const { return is_tensor() ? tensor_ref() : undefined_tensor(); }
  const TensorImpl* tensor_impl() const noexcept {
    return is_tensor() ? static_cast<TensorImpl*>(payload_.counted) : nullptr;
  }
  // The tensor without touching its refcount; only for kind kTensor.
  const Tensor& tensor_ref() const noexcept { return *reinterpret_cast<const Tensor*>(&payload_); }
  SymInt to_sym_int() const;
  SymFloat to_sym_float() const;
  SymBool to_sym_bool() const;
  Complex<double> to_complex() const;
  Scalar to_scalar() const;
  std::string_view to_string_view() const;
  Generator to_generator() const;
  const ValueList& elements() const;  // of a list or tuple
  const Dict& to_dict() const;
  // How many containers are inside each other: 1 for [1, 2], 0 for what is no container.
  uint32_t nesting() const noexcept;
  const Ref<ValueObject> to_object() const;
  // The object if it plays this role, without touching its refcount; null otherwise.
  ValueObject* object_of(ValueObject::Role role) const noexcept {
    if (!is_object()) return nullptr;
    auto* object = static_cast<ValueObject*>(payload_.counted);
    return object->role() == role ? object : nullptr;
  }
  template <typename T>
  T* object_as() const {
    return is_object() ? dynamic_cast<T*>(static_cast<ValueObject*>(payload_.counted)) : nullptr;
  }

  // Structural equality; tensors are equal when they are the same tensor, objects when `equals` says so.
  bool operator==(const Value& other) const;
  // Python's spelling for numbers, strings and containers; tensors as `f32[2, 3]`.
  std::string to_string() const;
  std::string_view kind_name() const;

 private:
  bool is_counted() const noexcept { return kind_ >= Kind::kTensor; }
  void add_ref() const noexcept;
  void drop() noexcept;
  [[noreturn]] void wrong_kind(const char* wanted) const;
  const Tensor& undefined_tensor() const;

  union Payload {
    int64_t integer;
    double real;
    Device device;
    void* counted;
    Payload() : integer(0) {}
  };

  Kind kind_;
  Payload payload_;
};

// An insertion-ordered dictionary. Keys are strings, numbers or tensors (by identity), and found in constant
// time.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;
  Dict() = default;
  Dict(std::initializer_list<Entry> entries);

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Value* find(const Value& key) const;
  bool contains(const Value& key) const { return find(key) != nullptr; }
  // The value under `key`; an error that lists the keys when there is none.
  const Value& at(const Value& key) const;
  // Replaces or appends.
  void set(Value key, Value value);
  bool erase(const Value& key);
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  bool operator==(const Dict& other) const { return entries_ == other.entries_; }

 private:
  // Where the key is in `entries_`; their size where it is not.
  size_t place(const Value& key) const;
  void index_entries(size_t slots);

  std::vector<Entry> entries_;
  // Beyond a few entries a hash table with open addressing: 1 + the index of an entry, or 0. Its size is a
  // power of two.
  std::vector<uint32_t> slots_;
};

}  // namespace weft
