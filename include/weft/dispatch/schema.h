#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// The type of an argument or a result, as ATen's schema language writes it.
class Type {
 public:
  enum class Kind : uint8_t {
    kTensor,
    kScalar,
    kInt,
    kSymInt,
    kFloat,
    kSymFloat,
    kBool,
    kSymBool,
    kComplex,
    kString,
    kScalarType,
    kDevice,
    kLayout,
    kMemoryFormat,
    kGenerator,
    kStorage,
    kStream,
    kQScheme,
    kDimname,
    kAny,
    kNone,
    kOpaque,    // a name that only TorchScript's interpreter knows: AnyEnumType, number, ...
    kTypeVar,   // t, t1, tVal
    kClass,     // __torch__.torch.classes.rnn.CellParamsBase
    kList,      // int[] or int[2]: element(), list_size()
    kOptional,  // int?: element()
    kTuple,     // (int, str): elements()
    kDict,      // Dict(str, t): elements() are key and value
    kWrapper,   // Future(t), RRef(t), Await(t): name(), element()
  };

  explicit Type(Kind kind, std::string name = "") : kind_(kind), name_(std::move(name)) {}
  static Type list(Type element, std::optional<int64_t> size = std::nullopt);
  static Type optional(Type element);
  static Type tuple(std::vector<Type> elements);
  static Type dict(Type key, Type value);
  static Type wrapper(std::string name, Type element);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_tensor() const { return is(Kind::kTensor); }
  bool is_list() const { return is(Kind::kList); }
  bool is_optional() const { return is(Kind::kOptional); }
  // Whether a tensor may be inside: Tensor, Tensor?, Tensor[], Tensor?[], ...
  bool has_tensor() const;
  // Of a list, an optional or a wrapper.
  const Type& element() const;
  const std::vector<Type>& elements() const { return elements_; }
  // The 2 of int[2].
  std::optional<int64_t> list_size() const { return list_size_; }
  // As written, of kinds that stand for several names.
  const std::string& name() const { return name_; }
  std::string to_string() const;
  bool operator==(const Type&) const = default;

 private:
  Kind kind_;
  std::string name_;
  std::vector<Type> elements_;
  std::optional<int64_t> list_size_;
};

// What a value shares memory with: (a), (a!), (a -> *), (a|b). A set holds names in the order written; "*" is
// the wildcard.
struct AliasInfo {
  std::vector<std::string> before, after;  // the same unless the annotation has an arrow
  bool is_write = false;
  // How many of the type's trailing [] and ? come after the annotation: 1 for the elements of Tensor(a)[], 0
  // for the list itself in Tensor[](a).
  int depth = 0;

  // Whether the sets before the call have a name in common; wildcards do not count.
  bool may_alias(const AliasInfo& other) const;
  bool is_wildcard() const;
  std::string to_string() const;
  bool operator==(const AliasInfo&) const = default;
};

// A default value. `text` is how the schema writes it; the other members what it means.
struct DefaultValue {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kString, kList, kWord };
  Kind kind = Kind::kNone;
  bool as_bool = false;
  int64_t as_int = 0;
  double as_float = 0;      // also of integers
  std::string as_string{};  // of strings without quotes and escapes, of words (Mean, long) as written
  std::vector<DefaultValue> elements{};  // of lists
  std::string text{};

  bool is_none() const { return kind == Kind::kNone; }
  std::string to_string() const;
  bool operator==(const DefaultValue&) const = default;
};

struct Argument {
  std::string name;
  Type type{Type::Kind::kTensor};
  std::optional<AliasInfo> alias;
  std::optional<DefaultValue> default_value;
  bool kwarg_only = false;

  bool is_written() const { return alias && alias->is_write; }
  // An integer that C++ programs give by name: Reduction::kSum.
  bool is_reduction() const { return name == "reduction" && type.is(Type::Kind::kInt) && default_value; }
  std::string to_string() const;
  bool operator==(const Argument&) const = default;
};

struct Return {
  std::optional<std::string> name;
  Type type{Type::Kind::kTensor};
  std::optional<AliasInfo> alias;

  std::string to_string() const;
  bool operator==(const Return&) const = default;
};

// One operator's signature.
//   Schema s = parse_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
struct Schema {
  std::string ns, name, overload;  // "aten", "add", "Tensor"
  std::vector<Argument> arguments;
  std::vector<Return> returns;
  bool is_vararg = false, is_varret = false;

  // "aten::add.Tensor"
  std::string qualified_name() const;
  // PyTorch's spelling: for text that PyTorch printed, the same text.
  std::string to_string() const;

  std::optional<size_t> argument_index(std::string_view name) const;
  // Null if there is no such argument.
  const Argument* find_argument(std::string_view name) const;
  // The first argument whose memory result `index` is or may be; none for a fresh result, and for a wildcard,
  // which may be anything's.
  std::optional<size_t> aliased_argument(size_t index) const;

  // An argument is written.
  bool is_mutable() const;
  // A result may alias something that existed before, without having been written.
  bool is_view() const;
  // Arguments after the star are there to be written.
  bool is_out() const;
  // The first argument is written, and the operator is no out variant.
  bool is_inplace() const;

  bool operator==(const Schema&) const = default;
};

// A FormatError with the column and what was expected if the text is no schema.
Schema parse_schema(std::string_view text);
Type parse_type(std::string_view text);

}  // namespace weft
