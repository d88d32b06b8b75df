#pragma once

#include <optional>
#include <vector>

#include "weft/ops/extension.h"

namespace weft::aot {

// How a value is made of tensors that are no extensions. Graphs are over such tensors alone; what goes in is
// taken apart, and what comes out is put together. A value that is no extension is one leaf.
class ExtensionTree {
 public:
  ExtensionTree() = default;
  static ExtensionTree of(const Value& value);

  bool is_leaf() const { return !kind_; }
  size_t num_leaves() const { return num_leaves_; }
  // Whether `value` is made like this: the same kinds in each other, with the same contexts.
  bool fits(const Value& value) const;
  // Adds the leaves of a value that fits.
  void flatten(const Value& value, ValueList& leaves) const;
  // The value around the leaves that begin at `next`, which moves on.
  Value unflatten(const ValueList& leaves, size_t& next) const;
  // "TwoTensor(TwoTensor, tensor)"
  std::string to_string() const;

 private:
  Ref<const Extension> kind_;         // null for a leaf
  std::vector<ExtensionTree> inner_;  // one for each inner tensor that is there
  std::vector<bool> is_defined_;
  Value context_;
  // The inner tensor whose sizes are those of the whole, so that they hold for other sizes too.
  std::optional<size_t> sized_as_;
  DType dtype_ = DType::kFloat32;
  Device device_;
  SymInts sizes_, strides_;
  size_t num_leaves_ = 1;
};

std::vector<ExtensionTree> trees_of(const ValueList& values);
size_t count_leaves(const std::vector<ExtensionTree>& trees);
ValueList flatten(const std::vector<ExtensionTree>& trees, ValueList values);
ValueList unflatten(const std::vector<ExtensionTree>& trees, ValueList leaves);

// The same extension around what `f` makes of its inner tensors.
template <typename F>
Tensor map_inner(const Tensor& tensor, F f) {
  FlatExtension flat = flatten_extension(tensor);
  for (Tensor& inner : flat.tensors)
    if (inner.defined()) inner = f(inner);
  return unflatten_extension(flat);
}

}  // namespace weft::aot
