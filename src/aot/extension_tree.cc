#include "aot/extension_tree.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::aot {
namespace {

const Extension* extension_in(const Value& value) {
  return value.is_tensor() && value.tensor_ref().defined() ? extension_of(value.tensor_ref()) : nullptr;
}

bool same_geometry(const Tensor& a, const Tensor& b) {
  auto equal = [](SymIntSpan x, SymIntSpan y) {
    return std::ranges::equal(x, y, [](const SymInt& p, const SymInt& q) { return p.same_as(q); });
  };
  return equal(a.sizes(), b.sizes()) && equal(a.strides(), b.strides());
}

}  // namespace

ExtensionTree ExtensionTree::of(const Value& value) {
  ExtensionTree tree;
  const Extension* kind = extension_in(value);
  if (!kind) return tree;
  const Tensor& whole = value.tensor_ref();
  tree.kind_ = Ref<const Extension>(kind);
  tree.context_ = kind->context_value();
  tree.dtype_ = whole.dtype();
  tree.device_ = whole.device();
  tree.sizes_ = SymInts(whole.sizes());
  tree.strides_ = SymInts(whole.strides());
  tree.num_leaves_ = 0;
  const std::vector<Tensor> inner = kind->inner_tensors();
  for (size_t i = 0; i < inner.size(); ++i) {
    tree.is_defined_.push_back(inner[i].defined());
    if (!inner[i].defined()) continue;
    if (!tree.sized_as_ && same_geometry(inner[i], whole)) tree.sized_as_ = i;
    tree.inner_.push_back(of(inner[i]));
    tree.num_leaves_ += tree.inner_.back().num_leaves_;
  }
  return tree;
}

bool ExtensionTree::fits(const Value& value) const {
  const Extension* kind = extension_in(value);
  if (!kind || !kind_) return !kind && !kind_;
  if (kind->type_name() != kind_->type_name() || !(kind->context_value() == context_)) return false;
  const std::vector<Tensor> inner = kind->inner_tensors();
  if (inner.size() != is_defined_.size()) return false;
  size_t next = 0;
  for (size_t i = 0; i < inner.size(); ++i) {
    if (inner[i].defined() != is_defined_[i]) return false;
    if (is_defined_[i] && !inner_[next++].fits(inner[i])) return false;
  }
  return true;
}

void ExtensionTree::flatten(const Value& value, ValueList& leaves) const {
  if (is_leaf()) return leaves.push_back(value);
  size_t next = 0;
  const std::vector<Tensor> inner = extension_in(value)->inner_tensors();
  for (size_t i = 0; i < inner.size(); ++i)
    if (is_defined_[i]) inner_[next++].flatten(inner[i], leaves);
}

Value ExtensionTree::unflatten(const ValueList& leaves, size_t& next) const {
  if (is_leaf()) return leaves[next++];
  FlatExtension flat{.kind = kind_,
                     .context = context_,
                     .dtype = dtype_,
                     .device = device_,
                     .sizes = sizes_,
                     .strides = strides_,
                     .offset = 0};
  size_t child = 0;
  for (bool is_defined : is_defined_)
    flat.tensors.push_back(is_defined ? inner_[child++].unflatten(leaves, next).to_tensor() : Tensor());
  if (sized_as_) {
    flat.sizes = SymInts(flat.tensors[*sized_as_].sizes());
    flat.strides = SymInts(flat.tensors[*sized_as_].strides());
  }
  return unflatten_extension(flat);
}

std::string ExtensionTree::to_string() const {
  if (is_leaf()) return "tensor";
  std::string text = kind_->type_name() + "(";
  for (size_t i = 0; i < inner_.size(); ++i) text += (i ? ", " : "") + inner_[i].to_string();
  return text + ")";
}

std::vector<ExtensionTree> trees_of(const ValueList& values) {
  std::vector<ExtensionTree> trees;
  for (const Value& value : values) trees.push_back(ExtensionTree::of(value));
  return trees;
}

size_t count_leaves(const std::vector<ExtensionTree>& trees) {
  size_t count = 0;
  for (const ExtensionTree& tree : trees) count += tree.num_leaves();
  return count;
}

ValueList flatten(const std::vector<ExtensionTree>& trees, ValueList values) {
  if (std::ranges::all_of(trees, &ExtensionTree::is_leaf)) return values;
  ValueList leaves;
  for (size_t i = 0; i < trees.size(); ++i) trees[i].flatten(values[i], leaves);
  return leaves;
}

ValueList unflatten(const std::vector<ExtensionTree>& trees, ValueList leaves) {
  if (std::ranges::all_of(trees, &ExtensionTree::is_leaf)) return leaves;
  ValueList values;
  size_t next = 0;
  for (const ExtensionTree& tree : trees) values.push_back(tree.unflatten(leaves, next));
  return values;
}

}  // namespace weft::aot
