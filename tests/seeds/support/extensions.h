#pragma once

#include "weft/dispatch/layers.h"
#include "weft/dispatch/mode.h"
#include "weft/ops/extension.h"

// The extensions of PyTorch's own tests.

namespace weft::testing {

// Two tensors of one size, on which every operator works alike.
struct TwoTensor final : Extension {
  TwoTensor(Tensor first, Tensor second) : a(std::move(first)), b(std::move(second)) {}
  Tensor a, b;

  static Tensor make(const Tensor& a, const Tensor& b) {
    return make_extension(make_ref<TwoTensor>(a, b), a);
  }
  std::string type_name() const override { return "TwoTensor"; }
  std::vector<Tensor> inner_tensors() const override { return {a, b}; }
  std::vector<std::string> inner_names() const override { return {"a", "b"}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<TwoTensor>(inner[0], inner[1]);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    const Value first =
        dispatch::redispatch(op, unwrap_extensions<TwoTensor>(args, [](TwoTensor& t) { return t.a; }));
    const Value second =
        dispatch::redispatch(op, unwrap_extensions<TwoTensor>(args, [](TwoTensor& t) { return t.b; }));
    return joined(first, second);
  }

 private:
  static Value joined(const Value& x, const Value& y) {
    if (x.is_tensor()) return make(x.to_tensor(), y.to_tensor());
    if (!x.is_sequence()) return x;
    ValueList list;
    for (size_t i = 0; i < x.elements().size(); ++i) list.push_back(joined(x.elements()[i], y.elements()[i]));
    return x.is_list() ? Value::list(list) : Value::tuple(list);
  }
};
inline TwoTensor& two(const Tensor& tensor) { return *extension_of<TwoTensor>(tensor); }
inline bool is_two(const Tensor& tensor) { return tensor.defined() && extension_of<TwoTensor>(tensor); }

// One tensor and a number, which is part of what it is.
struct ConstantExtraMetadataTensor final : Extension {
  explicit ConstantExtraMetadataTensor(Tensor tensor, int64_t number = 4)
      : elem(std::move(tensor)), constant_attribute(number) {}
  Tensor elem;
  int64_t constant_attribute;

  static Tensor make(const Tensor& elem, int64_t number = 4) {
    return make_extension(make_ref<ConstantExtraMetadataTensor>(elem, number), elem);
  }
  std::string type_name() const override { return "ConstantExtraMetadataTensor"; }
  std::vector<Tensor> inner_tensors() const override { return {elem}; }
  std::vector<std::string> inner_names() const override { return {"elem"}; }
  Value context_value() const override { return constant_attribute; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<ConstantExtraMetadataTensor>(inner[0], constant_attribute);
  }
  std::optional<Value> handle(const Operator& op, Args args) override {
    const int64_t number = constant_attribute;
    return joined(dispatch::redispatch(op, unwrap_extensions<ConstantExtraMetadataTensor>(
                                               args, [](ConstantExtraMetadataTensor& t) { return t.elem; })),
                  number);
  }

 private:
  static Value joined(const Value& x, int64_t number) {
    if (x.is_tensor()) return make(x.to_tensor(), number);
    if (!x.is_sequence()) return x;
    ValueList list;
    for (const Value& element : x.elements()) list.push_back(joined(element, number));
    return x.is_list() ? Value::list(list) : Value::tuple(list);
  }
};
inline ConstantExtraMetadataTensor& constant_extra(const Tensor& tensor) {
  return *extension_of<ConstantExtraMetadataTensor>(tensor);
}
inline bool is_constant_extra(const Tensor& tensor) {
  return tensor.defined() && extension_of<ConstantExtraMetadataTensor>(tensor);
}

}  // namespace weft::testing
