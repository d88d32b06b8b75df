// Nested tensors: an extension over one flat buffer, and the operators that make one and take it apart.
#include "weft/ops/nested.h"

#include <fmt/ranges.h>

#include <memory>

#include "ops/table.h"
#include "weft/base/error.h"
#include "weft/core/printable_box.h"
#include "weft/core/value_walk.h"
#include "weft/ops/functions.h"

namespace weft {
namespace ops {
extern const OpDef unbind_int_op, alias_op, detach_op, clone_op, to_copy_op, copy_op, empty_like_op,
    zeros_like_op, ones_like_op;
}  // namespace ops

namespace {

using Sizes = std::vector<int64_t>;

const Operator& from_list_operator();
const Operator& from_lengths_operator();
const Operator& unbind_operator();

// --- where the components are ----------------------------------------------------------------------------

// The components in the buffer.
struct NestedLayout {
  std::vector<Sizes> sizes, strides;
  Sizes offsets;
  int64_t dim = 0;    // of the components
  int64_t numel = 0;  // of all of them

  bool operator==(const NestedLayout&) const = default;

  // One behind the other, each by rows.
  explicit NestedLayout(std::vector<Sizes> components, int64_t dim) : sizes(std::move(components)), dim(dim) {
    for (const Sizes& own : sizes) {
      Sizes steps(own.size());
      int64_t count = 1;
      for (size_t d = own.size(); d-- > 0; count *= own[d]) steps[d] = count;
      strides.push_back(std::move(steps));
      offsets.push_back(numel);
      numel += count;
    }
  }

  // What the whole shows: how many there are, then the sizes that all have in common.
  SymInts outer_sizes() const {
    SymInts outer;
    outer.push_back(static_cast<int64_t>(sizes.size()));
    for (size_t d = 0; d < static_cast<size_t>(dim); ++d) {
      int64_t common = sizes[0][d];
      for (const Sizes& own : sizes)
        if (own[d] != common) common = -1;
      outer.push_back(common);
    }
    return outer;
  }
};

std::string text_of(const std::vector<Sizes>& sizes) {
  std::string text;
  for (const Sizes& own : sizes)
    text += fmt::format("{}[{}]", text.empty() ? "" : ", ", fmt::join(own, ", "));
  return "[" + text + "]";
}

// --- the extension ---------------------------------------------------------------------------------------

class NestedTensor final : public Extension, public PrintableBox {
 public:
  NestedTensor(Tensor buffer, std::shared_ptr<const NestedLayout> layout)
      : buffer_(std::move(buffer)), layout_(std::move(layout)) {}

  static Tensor make(const Tensor& buffer, const std::shared_ptr<const NestedLayout>& layout) {
    auto impl = make_ref<TensorImpl>(buffer.storage(), buffer.dtype(), buffer.device());
    SymInts sizes = layout->outer_sizes(), strides;
    for (size_t d = 0; d < sizes.size(); ++d) strides.push_back(0);
    impl->set_geometry(sizes, strides);
    impl->set_numel(layout->numel);
    impl->set_flags(layer::kExtension);
    impl->box = make_ref<NestedTensor>(buffer, layout);
    return Tensor(std::move(impl));
  }

  const NestedLayout& components() const { return *layout_; }
  std::string type_name() const override { return "NestedTensor"; }
  std::vector<Tensor> inner_tensors() const override { return {buffer_}; }
  Ref<Extension> with_inner(std::vector<Tensor> inner) const override {
    return make_ref<NestedTensor>(std::move(inner[0]), layout_);
  }

  std::optional<Value> handle(const Operator& op, Args args) override {
    if (&op.def() == &ops::unbind_int_op) return components(args[1].to_int());
    if (&op == &unbind_operator()) return components(0);
    require(&op != &from_list_operator(), "nested_tensor: a component is a nested tensor itself");
    if (goes_by_element(op)) return by_element(op, args);
    refuse(op);
  }

  // Most operators that are made of others ask for sizes, which the whole does not have.
  void check_decomposable(const Operator& op) const override {
    bool gives_tensors = false, takes_sizes = false;
    for (const Return& result : op.schema().returns)
      gives_tensors |= result.type.is_tensor() || result.type.is_list();
    for (const Argument& argument : op.schema().arguments) takes_sizes |= is_size(argument.type);
    bool is_conversion = op.has(Traits::kMayAlias) && !takes_sizes;
    if (gives_tensors && !is_conversion && !op.has(Traits::kPointwise | Traits::kFactory)) refuse(op);
  }

  std::optional<ExtensionCall> recorded_as(const Operator& op, Args args) const override {
    if (&op.def() != &ops::unbind_int_op || args[1].to_int() != 0) return std::nullopt;
    ValueList sizes;
    for (const Sizes& own : layout_->sizes)
      for (int64_t size : own) sizes.emplace_back(size);
    return ExtensionCall{unbind_operator(), {args[0], Value::list(std::move(sizes)), layout_->dim}};
  }

  std::string text_of(const Tensor& tensor) const override {
    std::string text = "nested_tensor([\n";
    LayerStateScope saved;
    layer_state().active = 0;
    layer_state().grad_mode = false;
    const Value parts = components(0);
    for (size_t i = 0; i < parts.elements().size(); ++i) {
      text += i ? ",\n  " : "  ";
      for (char c : parts.elements()[i].to_tensor().to_string())
        text += c == '\n' ? "\n  " : std::string(1, c);
    }
    return text + (tensor.requires_grad() ? "\n], requires_grad=True)" : "\n])");
  }

 private:
  [[noreturn]] static void refuse(const Operator& op) {
    unsupported(
        "{}: nested tensors do not support it; take them apart with unbind, and put them together again with "
        "nested_tensor",
        op.name());
  }

  static bool is_size(const Type& type) {
    if (type.is_optional() || type.is_list()) return is_size(type.element());
    return type.is(Type::Kind::kInt) || type.is(Type::Kind::kSymInt);
  }

  // An element of the result for each element of the arguments.
  static bool goes_by_element(const Operator& op) {
    if (op.form() == OpForm::kOut) return false;
    if (op.has(Traits::kPointwise)) return true;
    for (const OpDef* def : {&ops::alias_op, &ops::detach_op, &ops::clone_op, &ops::to_copy_op, &ops::copy_op,
                             &ops::empty_like_op, &ops::zeros_like_op, &ops::ones_like_op})
      if (&op.def() == def) return true;
    return false;
  }

  Value components(int64_t dim) const {
    require(dim == 0, "NestedTensor can only be unbound along dimension 0 got dimension {} instead.", dim);
    ValueList parts;
    const int64_t start = buffer_.storage_offset().plain();
    for (size_t i = 0; i < layout_->sizes.size(); ++i) {
      SymInts sizes, strides;
      for (int64_t size : layout_->sizes[i]) sizes.push_back(size);
      for (int64_t stride : layout_->strides[i]) strides.push_back(stride);
      parts.emplace_back(as_strided(buffer_, sizes, strides, start + layout_->offsets[i]));
    }
    return Value::list(std::move(parts));
  }

  Value by_element(const Operator& op, Args args) const {
    for (const Value& arg : args) {
      if (!arg.is_tensor()) continue;
      const Tensor& tensor = arg.tensor_ref();
      const auto* other = extension_of<NestedTensor>(tensor);
      require(other || tensor.dim() == 0,
              "{}: expected nested tensors, numbers and 0-d tensors, but got {} beside a nested tensor of {}",
              op.name(), describe(tensor), weft::text_of(layout_->sizes));
      require(
          !other || other->components() == components(),
          "{}: nested tensors are not broadcast: expected components of the same sizes, but got {} and {}",
          op.name(), weft::text_of(layout_->sizes), other ? weft::text_of(other->layout_->sizes) : "");
    }
    Value result = dispatch::redispatch(
        op, unwrap_extensions<NestedTensor>(args, [](NestedTensor& own) { return own.buffer_; }));
    return map_tensors(result, [&](const Tensor& buffer) { return make(buffer, layout_); });
  }

  Tensor buffer_;  // of one dim
  std::shared_ptr<const NestedLayout> layout_;
};

const NestedTensor& nested_in(const Tensor& tensor, const char* what) {
  const auto* nested = extension_of<NestedTensor>(tensor);
  require(nested != nullptr, "{}: expected a nested tensor, but got {}", what, describe(tensor));
  return *nested;
}

// --- the operators ---------------------------------------------------------------------------------------

Tensor from_list(TensorSpan list, std::optional<DType> dtype, std::optional<Layout> layout,
                 std::optional<Device> device, std::optional<bool> pin_memory) {
  require(layout.value_or(Layout::kStrided) == Layout::kStrided && !pin_memory.value_or(false),
          "nested_tensor: only strided memory that is not pinned is supported");
  std::vector<Sizes> sizes;
  std::vector<Tensor> flat;
  for (const Tensor& component : list) {
    require(
        component.dim() == list[0].dim(),
        "All Tensors given to nested_tensor must have the same dimension. Found dimension {} for Tensor at "
        "index {} and dimension {} for Tensor at index 0.",
        component.dim(), sizes.size(), list[0].dim());
    Sizes own;
    for (const SymInt& size : component.sizes()) own.push_back(guard_int(size));
    sizes.push_back(std::move(own));
    flat.push_back(
        component.to(device.value_or(list[0].device()), dtype.value_or(list[0].dtype())).reshape({-1}));
  }
  Tensor buffer = flat.empty() ? empty({0}, dtype, std::nullopt, device) : cat(flat);
  int64_t dim = list.size() ? list[0].dim() : 0;
  return NestedTensor::make(buffer, std::make_shared<const NestedLayout>(std::move(sizes), dim));
}

Grads from_list_vjp(const Vjp& v) { return {Grad(unbind(v.grad(), 0))}; }

std::vector<Tensor> unbind_dense(const Tensor& self, IntSpan, int64_t) {
  fail("_nested_unbind: expected a nested tensor, but got {}", describe(self));
}

Grads unbind_vjp(const Vjp& v) {
  Sizes sizes;
  for (const Value& size : v.arg(1).elements()) sizes.push_back(size.to_int());
  const auto dim = static_cast<size_t>(v.arg<int64_t>(2));
  Tensor given;
  const size_t count = dim ? sizes.size() / dim : static_cast<size_t>(guard_int(v.sizes(0)[0]));
  for (size_t i = 0; i < count; ++i)
    if (v.grad(static_cast<int>(i)).defined()) given = v.grad(static_cast<int>(i));
  std::vector<Tensor> parts;
  for (size_t i = 0; i < count; ++i) {
    SymInts own;
    for (size_t d = 0; d < dim; ++d) own.push_back(sizes[i * dim + d]);
    const Tensor& grad = v.grad(static_cast<int>(i));
    parts.push_back(grad.defined() ? grad : new_zeros(given, own));
  }
  return {nested_tensor(parts)};
}

Tensor from_lengths(const Tensor& values, const Tensor& lengths) {
  require(lengths.dim() == 1 && !is_floating(lengths.dtype()) && !is_complex(lengths.dtype()),
          "nested_from_lengths: the lengths must be a list of integers, but are {}", describe(lengths));
  require(values.dim() > 0, "nested_from_lengths: the values must have rows, but are {}", describe(values));
  Tensor plain = lengths.to(kCpu, kInt64).contiguous();
  SymInts sizes;
  for (int64_t i = 0; i < plain.plain_numel(); ++i) sizes.push_back(plain.data<int64_t>()[i]);
  return nested_tensor(split_with_sizes(values, sizes, 0));
}

constinit const OpDef kFromList = {.schema =
                                       "aten::_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? "
                                       "dtype=None, Layout? layout=None, Device? "
                                       "device=None, bool? pin_memory=None) -> Tensor",
                                   .kernel = {.functional = function<&from_list>()},
                                   .vjp = {.saves = {}, .rule = from_list_vjp}};
constinit const OpDef kFromLengths = {
    .schema = "weft::nested_from_lengths(Tensor values, Tensor lengths) -> Tensor",
    .traits = Traits::kDataDependent,
    .composite = {.functional = function<&from_lengths>()}};
// What autograd records for unbind of a nested tensor: its gradient must know the sizes of all components.
constinit const OpDef kUnbind = {
    .schema = "weft::_nested_unbind(Tensor(a -> *) self, int[] sizes, int dim) -> Tensor(a)[]",
    .traits = Traits::kView | Traits::kLinear,
    .kernel = {.functional = function<&unbind_dense>()},
    .vjp = {.saves = sizes(0), .rule = unbind_vjp}};

std::span<const Operator> operators() {
  static const Operator all[] = {{&kFromList, kFromList.schema, OpForm::kFunctional, nullptr},
                                 {&kFromLengths, kFromLengths.schema, OpForm::kFunctional, nullptr},
                                 {&kUnbind, kUnbind.schema, OpForm::kFunctional, nullptr}};
  return all;
}
const Operator& from_list_operator() { return operators()[0]; }
const Operator& from_lengths_operator() { return operators()[1]; }
const Operator& unbind_operator() { return operators()[2]; }

}  // namespace

std::span<const Operator> detail::nested_operators() { return operators(); }

Tensor nested_tensor(const std::vector<Tensor>& components) {
  return call(from_list_operator(), {Value::list_of(components)}).to_tensor();
}
Tensor nested_from_lengths(const Tensor& values, const Tensor& lengths) {
  return call(from_lengths_operator(), {values, lengths}).to_tensor();
}
bool is_nested(const Tensor& tensor) { return extension_of<NestedTensor>(tensor) != nullptr; }
std::vector<Sizes> nested_sizes(const Tensor& tensor) {
  return nested_in(tensor, "nested_sizes").components().sizes;
}

}  // namespace weft
