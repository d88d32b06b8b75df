#pragma once

#include <unordered_map>
#include <vector>

#include "weft/core/tensor.h"
#include "weft/sym/shape_env.h"

namespace weft {

// What becomes of one size of a tensor that is converted.
struct DimRule {
  sym::DimPolicy policy = sym::DimPolicy::kDuck;
  std::optional<sym::ValueRange> range = std::nullopt;  // declared: the symbol is one of its own
  std::optional<SymInt> size = std::nullopt;            // the size itself, where somebody made it already
};

// Where a tensor comes from, and what its sizes become. Without a ShapeEnv sizes stay numbers.
struct FakeRequest {
  sym::Source source = {};         // "x['k'][0]"; its sizes are "x['k'][0].size(0)", ...
  std::vector<DimRule> dims = {};  // by dim; one that is missing is kDuck
  // Whether a view brings its base along. Otherwise it is a view of its base only where that was converted
  // before: an input of a program is not a view of what is none.
  bool brings_base = true;

  FakeRequest() = default;
  FakeRequest(sym::Source source, std::vector<DimRule> dims = {})  // NOLINT(google-explicit-constructor)
      : source(std::move(source)), dims(std::move(dims)) {}
  template <std::convertible_to<std::string_view> Text>
  FakeRequest(const Text& source) : source(source) {}  // NOLINT(google-explicit-constructor)
  // Every size is a number.
  static FakeRequest fixed(int64_t dims);
  FakeRequest without_base() const {
    FakeRequest other = *this;
    other.brings_base = false;
    return other;
  }
};

// From tensors to tensors without data. One tensor has one fake, and tensors that share memory have fakes
// that do: with base and view steps, offset, strides, lazy bits, version, requires_grad and leaf or not as
// they were. An extension is converted through its inner tensors. Sizes that are symbolic already stay.
class FakeConverter : public RefCounted {
 public:
  explicit FakeConverter(Ref<ShapeEnv> env = nullptr) : env_(std::move(env)) {}

  const Ref<ShapeEnv>& shape_env() const { return env_; }
  // `request` counts the first time that a tensor is met.
  const Tensor& convert(const Tensor& real, const FakeRequest& request = {});
  // A further fake of a tensor that may have one: a tensor of its own, over the same memory.
  Tensor convert_again(const Tensor& real, const FakeRequest& request = {});
  // For a tensor that is no input of a program but part of it: its sizes stay numbers, and it has no history.
  const Tensor& convert_constant(const Tensor& real);

 private:
  struct Geometry {
    SymInts sizes, strides;
    SymInt offset;
  };
  struct Pair {
    Tensor real, fake;  // the real one alive, so that its number stays its own
  };
  struct StoragePair {
    Ref<Storage> real, fake;
  };
  using Pairs = std::unordered_map<uint64_t, Pair>;  // by serial number

  Tensor make(const Tensor& real, const FakeRequest& request);
  Tensor plain_tensor(const Tensor& real, const Geometry& geometry);
  Tensor view_of(const Tensor& base, const Tensor& real, const Geometry& geometry);
  Tensor result_of_operator(const Tensor& real, const Geometry& geometry);
  Ref<TensorImpl> extension(const Tensor& real, const FakeRequest& request, const Geometry& geometry);
  Geometry geometry_of(const Tensor& real, const FakeRequest& request);
  const Ref<Storage>& storage_of(const TensorImpl& real);

  Ref<ShapeEnv> env_;
  Pairs inputs_, constants_;
  std::unordered_map<const Storage*, StoragePair> storages_;
};

// A fake tensor of the same type and geometry, symbols included, that shares nothing with `tensor`: a
// snapshot of its metadata.
Tensor shape_only(const Tensor& tensor);

namespace detail {
bool is_fake_extension(const Tensor& tensor);
}
// Whether it was made by a fake mode or a converter, and has no data; of an extension, whether all inside
// were.
inline bool is_fake(const Tensor& tensor) {
  return (tensor.flags() & layer::kFake) ||
         ((tensor.flags() & layer::kExtension) && detail::is_fake_extension(tensor));
}

}  // namespace weft
