#pragma once

#include "weft/dispatch/layers.h"

namespace weft {

// A call of an operator, before it is made.
struct ExtensionCall {
  const Operator& op;
  ValueList args;
};

// A user-defined tensor that holds other tensors and answers for operators itself. Autograd works above it: a
// backward pass runs on extensions too.
//
//   struct TwoTensor : Extension { Tensor a, b; ... };
//   Tensor x = make_extension(make_ref<TwoTensor>(a, b), a);
class Extension : public TensorBox {
 public:
  // Runs `op` by operators on inner tensors. Nothing: this kind leaves the call to another extension among
  // the arguments. Calls made inside start at the extension layer again, so that extensions nest.
  virtual std::optional<Value> handle(const Operator& op, Args args) = 0;
  // An error where an operator that is made of others would not mean the same for this kind.
  virtual void check_decomposable(const Operator&) const {}
  // What autograd should record instead of a call, where the operator's own gradient is not that of this
  // kind. Nothing: the call itself.
  virtual std::optional<ExtensionCall> recorded_as(const Operator&, Args) const { return std::nullopt; }
  virtual std::string type_name() const = 0;
  // The tensors inside and their names, and an extension of the same kind and context around others: how it
  // is taken apart.
  virtual std::vector<Tensor> inner_tensors() const = 0;
  virtual std::vector<std::string> inner_names() const;  // "inner0", "inner1", ... unless it says otherwise
  virtual Ref<Extension> with_inner(std::vector<Tensor> inner) const = 0;
  // What it is beside its tensors. Two of one kind whose contexts are equal differ in tensors only.
  virtual Value context_value() const { return {}; }
  // The inner tensor of this name; an error that lists the names where there is none.
  Tensor inner(std::string_view name) const;
  template <typename T>
  T context() const {
    return from_value<T>(context_value());
  }
  // Its layout. Any word but "strided" makes it opaque: only the kind itself reads
  // its elements.
  virtual std::string_view layout() const { return "strided"; }
  // Its elements as an ordinary tensor: dequantised, unpacked. Nothing where the kind has no such form.
  virtual std::optional<Tensor> to_dense() const { return std::nullopt; }
};

// A tensor that stands for `extension`, with the sizes, type and device of `like`.
Tensor make_extension(Ref<Extension> extension, const Tensor& like);
// The extension of a tensor if it is of kind T; null otherwise.
template <typename T = Extension>
T* extension_of(const Tensor& tensor) {
  bool is_extension = tensor.defined() && (tensor.impl()->flags() & layer::kExtension);
  return is_extension ? dynamic_cast<T*>(tensor.impl()->box.get()) : nullptr;
}

// An extension taken apart: what is left of a tensor, layer by layer, when its inner tensors are inputs of
// their own.
struct FlatExtension {
  Ref<const Extension> kind;
  std::vector<std::string> names;
  std::vector<Tensor> tensors;  // by name; extensions again, perhaps
  Value context;
  DType dtype;
  Device device;
  SymInts sizes, strides;  // of the whole
  SymInt offset;

  // Whether they differ in their tensors only, the sizes of the whole included.
  bool same_metadata(const FlatExtension& other) const;
  // "TwoTensor(a, b; context)"
  std::string to_string() const;
};
FlatExtension flatten_extension(const Tensor& tensor);
// The same around `tensors`.
Tensor unflatten_extension(const FlatExtension& flat);

// "strided", or what the extension says.
std::string_view layout_of(const Tensor& tensor);
// The dense form, of an extension inside of another one too; the tensor itself where there is none.
Tensor dense_form(const Tensor& tensor);

// Calls `op` with every argument of extension kind T replaced by `inner(extension)`, lists included.
template <typename T, typename Inner>
std::vector<Value> unwrap_extensions(Args args, Inner inner) {
  std::vector<Value> unwrapped;
  unwrapped.reserve(args.size());
  for (const Value& value : args) {
    if (value.is_sequence()) {
      unwrapped.push_back(Value::list(unwrap_extensions<T>(Args(value.elements()), inner)));
      continue;
    }
    T* extension = value.is_tensor() ? extension_of<T>(value.tensor_ref()) : nullptr;
    unwrapped.push_back(extension ? Value(inner(*extension)) : value);
  }
  return unwrapped;
}

}  // namespace weft
