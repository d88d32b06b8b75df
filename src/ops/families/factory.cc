// Tensors made from sizes and numbers.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"

namespace weft::ops {
namespace {

using Type = std::optional<DType>;
using Pin = std::optional<bool>;
using Format = std::optional<MemoryFormat>;

void refuse_pinned(const Pin& pin) {
  require(!pin.value_or(false), "pin_memory: weft has no pinned memory; leave it out");
}

TensorSpec spec_with_format(SymIntSpan sizes, DType dtype, Device device, const Format& format) {
  require(format != MemoryFormat::kPreserve,
          "empty: 'preserve_format' needs a tensor to preserve; use empty_like");
  return {dtype, device, SymInts(sizes),
          strides_of_format(sizes, format.value_or(MemoryFormat::kContiguous))};
}

// The layout of a `_like` result.
TensorSpec spec_like(const Tensor& self, const Type& dtype, const std::optional<Device>& device,
                     const Format& format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  SymInts strides =
      wanted == MemoryFormat::kPreserve ? preserved_strides(self) : strides_of_format(self.sizes(), wanted);
  return {dtype.value_or(self.dtype()), device.value_or(self.device()), SymInts(self.sizes()),
          std::move(strides)};
}

DType number_default_type(const Scalar& value) {
  if (value.is_bool()) return kBool;
  if (value.is_integral()) return kInt64;
  return value.is_complex() ? kComplex64 : kFloat32;
}

// --- empty -----------------------------------------------------------------------------------------------

TensorSpec empty_meta(SymIntSpan size, Type dtype, std::optional<Layout>, std::optional<Device> device,
                      Pin pin, Format format) {
  refuse_pinned(pin);
  return spec_with_format(size, dtype.value_or(kFloat32), device.value_or(kCpu), format);
}
Tensor empty_kernel(SymIntSpan size, Type dtype, std::optional<Layout> layout, std::optional<Device> device,
                    Pin pin, Format format) {
  if (!format && !pin) return allocate_contiguous(size, dtype.value_or(kFloat32), device.value_or(kCpu));
  return allocate(empty_meta(size, dtype, layout, device, pin, format));
}
TensorSpec empty_strided_meta(SymIntSpan size, SymIntSpan stride, Type dtype, std::optional<Layout>,
                              std::optional<Device> device, Pin pin) {
  refuse_pinned(pin);
  require(size.size() == stride.size(),
          "dimensionality of sizes ({}) must match dimensionality of strides ({})", size.size(),
          stride.size());
  for (const SymInt& s : stride)
    require(s.is_symbolic() || s.plain() >= 0,
            "empty_strided: negative strides are not supported, but got {}", describe_sizes(stride));
  return {dtype.value_or(kFloat32), device.value_or(kCpu), SymInts(size), SymInts(stride)};
}
Tensor empty_strided_kernel(SymIntSpan size, SymIntSpan stride, Type dtype, std::optional<Layout> layout,
                            std::optional<Device> device, Pin pin) {
  return allocate(empty_strided_meta(size, stride, dtype, layout, device, pin));
}
// Dense memory in which the dims lie in this order, the outermost first.
SymInts permuted_strides(SymIntSpan size, IntSpan order) {
  require(
      size.size() == order.size(),
      "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {} "
      "is not equal to len(physical_layout) = {}",
      size.size(), order.size());
  SymInts strides(size.size(), 0);
  std::vector<bool> seen(size.size());
  SymInt stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    require(order[i] >= 0 && order[i] < static_cast<int64_t>(size.size()),
            "Dimension out of range (expected to be between 0 and {}, but got {} at index {}). The dims of "
            "physical_layout are counted from 0.",
            static_cast<int64_t>(size.size()) - 1, order[i], i);
    const auto dim = static_cast<size_t>(order[i]);
    require(!seen[dim], "Duplicate dim not allowed: {}", dim);
    seen[dim] = true;
    strides[dim] = stride;
    stride = stride * max(size[dim], SymInt(1));
  }
  return strides;
}
TensorSpec empty_permuted_meta(SymIntSpan size, IntSpan order, Type dtype, std::optional<Layout> layout,
                               std::optional<Device> device, Pin pin) {
  return empty_strided_meta(size, permuted_strides(size, order), dtype, layout, device, pin);
}
Tensor empty_permuted_kernel(SymIntSpan size, IntSpan order, Type dtype, std::optional<Layout> layout,
                             std::optional<Device> device, Pin pin) {
  return allocate(empty_permuted_meta(size, order, dtype, layout, device, pin));
}
TensorSpec empty_like_meta(const Tensor& self, Type dtype, std::optional<Layout>,
                           std::optional<Device> device, Pin pin, Format format) {
  refuse_pinned(pin);
  return spec_like(self, dtype, device, format);
}
Tensor empty_like_kernel(const Tensor& self, Type dtype, std::optional<Layout> layout,
                         std::optional<Device> device, Pin pin, Format format) {
  return allocate(empty_like_meta(self, dtype, layout, device, pin, format));
}

// --- full, zeros, ones -----------------------------------------------------------------------------------

TensorSpec full_meta(SymIntSpan size, const Scalar& value, Type dtype, std::optional<Layout>,
                     std::optional<Device> device, Pin pin) {
  refuse_pinned(pin);
  return contiguous_spec(size, dtype.value_or(number_default_type(value)), device.value_or(kCpu));
}
PointwiseCall full_lower(SymIntSpan, const Scalar& value, Type dtype, std::optional<Layout>,
                         std::optional<Device>, Pin) {
  return {cpu::kCopy, dtype.value_or(number_default_type(value)), {1}};
}
Tensor full_kernel(SymIntSpan size, const Scalar& value, Type dtype, std::optional<Layout> layout,
                   std::optional<Device> device, Pin pin) {
  Tensor result = allocate(full_meta(size, value, dtype, layout, device, pin));
  require_fillable(result, value);
  run_fill(full_lower(size, value, dtype, layout, device, pin), result, value);
  return result;
}
template <int value>
struct Constant {
  static TensorSpec meta(SymIntSpan size, Type dtype, std::optional<Layout> layout,
                         std::optional<Device> device, Pin pin) {
    return full_meta(size, value, dtype.value_or(kFloat32), layout, device, pin);
  }
  static PointwiseCall lower(SymIntSpan, Type dtype, std::optional<Layout>, std::optional<Device>, Pin) {
    return filling_call(value, dtype.value_or(kFloat32));
  }
  static Tensor kernel(SymIntSpan size, Type dtype, std::optional<Layout> layout,
                       std::optional<Device> device, Pin pin) {
    Tensor result = allocate(meta(size, dtype, layout, device, pin));
    run_call(lower(size, dtype, layout, device, pin), result);
    return result;
  }
  static PointwiseCall like_lower(const Tensor& self, Type dtype, std::optional<Layout>,
                                  std::optional<Device>, Pin, Format) {
    return filling_call(value, dtype.value_or(self.dtype()));
  }
  static Tensor like(const Tensor& self, Type dtype, std::optional<Layout> layout,
                     std::optional<Device> device, Pin pin, Format format) {
    Tensor result = empty_like_kernel(self, dtype, layout, device, pin, format);
    run_call(like_lower(self, dtype, layout, device, pin, format), result);
    return result;
  }
};
TensorSpec full_like_meta(const Tensor& self, const Scalar&, Type dtype, std::optional<Layout> layout,
                          std::optional<Device> device, Pin pin, Format format) {
  return empty_like_meta(self, dtype, layout, device, pin, format);
}
PointwiseCall full_like_lower(const Tensor& self, const Scalar&, Type dtype, std::optional<Layout>,
                              std::optional<Device>, Pin, Format) {
  return {cpu::kCopy, dtype.value_or(self.dtype()), {1}};
}
Tensor full_like_kernel(const Tensor& self, const Scalar& value, Type dtype, std::optional<Layout> layout,
                        std::optional<Device> device, Pin pin, Format format) {
  Tensor result = empty_like_kernel(self, dtype, layout, device, pin, format);
  require_fillable(result, value);
  run_fill(full_like_lower(self, value, dtype, layout, device, pin, format), result, value);
  return result;
}
TensorSpec scalar_tensor_meta(const Scalar& s, Type dtype, std::optional<Layout>,
                              std::optional<Device> device, Pin pin) {
  refuse_pinned(pin);
  return contiguous_spec(
      {}, dtype.value_or(s.is_floating() || s.is_complex() ? number_default_type(s) : kFloat32),
      device.value_or(kCpu));
}
PointwiseCall scalar_tensor_lower(const Scalar& s, Type dtype, std::optional<Layout> layout,
                                  std::optional<Device> device, Pin pin) {
  return {cpu::kCopy, scalar_tensor_meta(s, dtype, layout, device, pin).dtype, {0}};
}
Tensor scalar_tensor_kernel(const Scalar& s, Type dtype, std::optional<Layout> layout,
                            std::optional<Device> device, Pin pin) {
  Tensor result = allocate(scalar_tensor_meta(s, dtype, layout, device, pin));
  require_fillable(result, s);
  run_fill(scalar_tensor_lower(s, dtype, layout, device, pin), result, s);
  return result;
}

// --- out= forms: the type and the device are the target's ------------------------------------------------

const Tensor& resized(const TensorSpec& spec, const Tensor& out) {
  check_no_internal_overlap(out);
  prepare_out(spec, out);
  return out;
}
// One value for all elements: they may share memory.
const Tensor& filled(const TensorSpec& spec, const Scalar& value, const Tensor& out) {
  prepare_out(spec, out);
  fill_number(out, value);
  return out;
}
const Tensor& filled_like(const TensorSpec& spec, const Scalar& value, const Tensor& out) {
  fill_number(resized(spec, out), value);
  return out;
}
TensorSpec sized_as(SymIntSpan size, const Tensor& out) {
  return contiguous_spec(size, out.dtype(), out.device());
}
// The format is that of a result in between: a target that is resized becomes contiguous.
TensorSpec like_as(const Tensor& self, const Format& format, const Tensor& out) {
  spec_like(self, out.dtype(), out.device(), format);
  return sized_as(self.sizes(), out);
}

const Tensor& empty_out_kernel(SymIntSpan size, Format format, const Tensor& out) {
  require(!format || guard_or(out.numel() == 0, false) || same_sizes(size, out.sizes()),
          "empty: 'memory_format' argument is incompatible with 'out' tensor argument, which has a layout of "
          "its own");
  prepare_out(spec_with_format(size, out.dtype(), out.device(), format), out);
  return out;
}
const Tensor& empty_strided_out_kernel(SymIntSpan size, SymIntSpan stride, const Tensor& out) {
  return resized(empty_strided_meta(size, stride, out.dtype(), {}, out.device(), {}), out);
}
const Tensor& empty_permuted_out_kernel(SymIntSpan size, IntSpan order, const Tensor& out) {
  return resized(empty_permuted_meta(size, order, out.dtype(), {}, out.device(), {}), out);
}
const Tensor& empty_like_out_kernel(const Tensor& self, Format format, const Tensor& out) {
  return resized(like_as(self, format, out), out);
}
const Tensor& full_out_kernel(SymIntSpan size, const Scalar& value, const Tensor& out) {
  return filled(sized_as(size, out), value, out);
}
const Tensor& full_like_out_kernel(const Tensor& self, const Scalar& value, Format format,
                                   const Tensor& out) {
  return filled_like(like_as(self, format, out), value, out);
}
template <int value>
struct ConstantOut {
  static const Tensor& sized(SymIntSpan size, const Tensor& out) {
    return filled(sized_as(size, out), value, out);
  }
  static const Tensor& like(const Tensor& self, Format format, const Tensor& out) {
    return filled_like(like_as(self, format, out), value, out);
  }
  static const Tensor& beside(const Tensor&, SymIntSpan size, const Tensor& out) { return sized(size, out); }
};
const Tensor& scalar_tensor_out_kernel(const Scalar& s, const Tensor& out) {
  return filled(sized_as({}, out), s, out);
}
const Tensor& new_empty_out_composite(const Tensor&, SymIntSpan size, const Tensor& out) {
  return empty_out(out, size);
}
const Tensor& new_full_out_kernel(const Tensor&, SymIntSpan size, const Scalar& value, const Tensor& out) {
  return full_out_kernel(size, value, out);
}
const Tensor& new_empty_strided_out_kernel(const Tensor&, SymIntSpan size, SymIntSpan, const Tensor& out) {
  return resized(sized_as(size, out), out);
}

// --- from another tensor's type and device ---------------------------------------------------------------

Tensor new_empty_composite(const Tensor& self, SymIntSpan size, Type dtype, std::optional<Layout> layout,
                           std::optional<Device> device, Pin pin) {
  return empty(size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin);
}
TensorSpec new_full_meta(const Tensor& self, SymIntSpan size, const Scalar& value, Type dtype,
                         std::optional<Layout> layout, std::optional<Device> device, Pin pin) {
  return full_meta(size, value, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin);
}
Tensor new_full_kernel(const Tensor& self, SymIntSpan size, const Scalar& value, Type dtype,
                       std::optional<Layout> layout, std::optional<Device> device, Pin pin) {
  return full_kernel(size, value, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin);
}
template <int value>
struct NewConstant {
  static TensorSpec meta(const Tensor& self, SymIntSpan size, Type dtype, std::optional<Layout> layout,
                         std::optional<Device> device, Pin pin) {
    return new_full_meta(self, size, value, dtype, layout, device, pin);
  }
  static Tensor kernel(const Tensor& self, SymIntSpan size, Type dtype, std::optional<Layout> layout,
                       std::optional<Device> device, Pin pin) {
    return Constant<value>::kernel(size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()),
                                   pin);
  }
};
TensorSpec new_empty_strided_meta(const Tensor& self, SymIntSpan size, SymIntSpan stride, Type dtype,
                                  std::optional<Layout> layout, std::optional<Device> device, Pin pin) {
  return empty_strided_meta(size, stride, dtype.value_or(self.dtype()), layout,
                            device.value_or(self.device()), pin);
}
Tensor new_empty_strided_kernel(const Tensor& self, SymIntSpan size, SymIntSpan stride, Type dtype,
                                std::optional<Layout> layout, std::optional<Device> device, Pin pin) {
  return allocate(new_empty_strided_meta(self, size, stride, dtype, layout, device, pin));
}

// A factory that looks at one tensor gives the same for the whole batch, with the batch dim in front.
Batched like_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  return {weft::call(call.op(), args), {0}};
}

// The sizes and strides are those of one example, and the examples lie one after the other.
Batched new_strided_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  auto size = boxing::Unboxed<SymIntSpan>(args[1]), stride = boxing::Unboxed<SymIntSpan>(args[2]);
  SymInt example = 1;
  for (size_t d = 0; d < size.get().size(); ++d) example = example + (size.get()[d] - 1) * stride.get()[d];
  ValueList sizes = args[1].elements(), strides = args[2].elements();
  sizes.insert(sizes.begin(), Value(call.batch_size()));
  strides.insert(strides.begin(), Value(example));
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  args[1] = Value::list(std::move(sizes));
  args[2] = Value::list(std::move(strides));
  return {weft::call(call.op(), args), {0}};
}
// The sizes are those of one example.
Batched new_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  ValueList sizes = args[1].elements();
  sizes.insert(sizes.begin(), Value(call.batch_size()));
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  args[1] = Value::list(std::move(sizes));
  return {weft::call(call.op(), args), {0}};
}

Samples size_samples() {
  return {{"matrix", {Value::list({2, 3})}},
          {"scalar", {Value::list({})}},
          {"empty", {Value::list({0, 2})}},
          {"typed", {Value::list({3}), kInt64}}};
}
Samples like_samples() {
  return {
      {"plain", {f32({2, 3})}}, {"transposed", {transposed(f32({3, 4}))}}, {"typed", {f32({2}), kFloat64}}};
}

}  // namespace

WEFT_OPERATOR(empty_memory_format) = {
    .schema =
        "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kFactory | Traits::kUninitialized | Traits::kNotDifferentiable |
              Traits::kNotBatchable,
    .meta = function<&empty_meta>(),
    .kernel = {.functional = function<&empty_kernel>(),
               .out = function<&empty_out_kernel>(),
               .out_may_repeat = true},
    .samples = size_samples,
};

WEFT_OPERATOR(empty_strided) = {
    .schema =
        "aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::empty_strided.out(SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kFactory | Traits::kUninitialized | Traits::kNotDifferentiable |
              Traits::kNotBatchable,
    .meta = function<&empty_strided_meta>(),
    .kernel = {.functional = function<&empty_strided_kernel>(), .out = function<&empty_strided_out_kernel>()},
    .samples = [] { return Samples{{"matrix", {Value::list({2, 3}), Value::list({1, 2})}}}; },
};

WEFT_OPERATOR(empty_permuted) = {
    .schema =
        "aten::empty_permuted(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::empty_permuted.out(SymInt[] size, int[] physical_layout, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kFactory | Traits::kUninitialized | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&empty_permuted_meta>(),
    .kernel = {.functional = function<&empty_permuted_kernel>(),
               .out = function<&empty_permuted_out_kernel>()},
    .samples = [] { return Samples{{"matrix", {Value::list({2, 3}), Value::list({1, 0})}}}; },
};

WEFT_OPERATOR(empty_like) = {
    .schema =
        "aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::empty_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kUninitialized | Traits::kNotDifferentiable,
    .meta = function<&empty_like_meta>(),
    .kernel = {.functional = function<&empty_like_kernel>(), .out = function<&empty_like_out_kernel>()},
    .batch = like_batch,
    .decompose = function<&empty_like_parts>(),
    .samples = like_samples,
};

WEFT_OPERATOR(full) = {
    .schema =
        "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&full_meta>(),
    .kernel = {.functional = function<&full_kernel>(),
               .out = function<&full_out_kernel>(),
               .out_may_repeat = true},
    .lower = lowering<&full_lower>(),
    .samples =
        [] {
          return Samples{{"real", {Value::list({2, 3}), 1.5}},
                         {"integer", {Value::list({2}), 3}},
                         {"bool", {Value::list({}), true}}};
        },
};

WEFT_OPERATOR(zeros) = {
    .schema =
        "aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .out = "aten::zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&Constant<0>::meta>(),
    .kernel = {.functional = function<&Constant<0>::kernel>(),
               .out = function<&ConstantOut<0>::sized>(),
               .out_may_repeat = true},
    .lower = lowering<&Constant<0>::lower>(),
    .decompose = function<&zeros_parts>(),
    .samples = size_samples,
};

WEFT_OPERATOR(ones) = {
    .schema =
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .out = "aten::ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&Constant<1>::meta>(),
    .kernel = {.functional = function<&Constant<1>::kernel>(),
               .out = function<&ConstantOut<1>::sized>(),
               .out_may_repeat = true},
    .lower = lowering<&Constant<1>::lower>(),
    .decompose = function<&ones_parts>(),
    .samples = size_samples,
};

WEFT_OPERATOR(zeros_like) = {
    .schema =
        "aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::zeros_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&empty_like_meta>(),
    .kernel = {.functional = function<&Constant<0>::like>(), .out = function<&ConstantOut<0>::like>()},
    .lower = lowering<&Constant<0>::like_lower>(),
    .batch = like_batch,
    .decompose = function<&zeros_like_parts>(),
    .samples = like_samples,
};

WEFT_OPERATOR(ones_like) = {
    .schema =
        "aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::ones_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&empty_like_meta>(),
    .kernel = {.functional = function<&Constant<1>::like>(), .out = function<&ConstantOut<1>::like>()},
    .lower = lowering<&Constant<1>::like_lower>(),
    .batch = like_batch,
    .decompose = function<&ones_like_parts>(),
    .samples = like_samples,
};

WEFT_OPERATOR(full_like) = {
    .schema =
        "aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kNotDifferentiable,
    .meta = function<&full_like_meta>(),
    .kernel = {.functional = function<&full_like_kernel>(), .out = function<&full_like_out_kernel>()},
    .lower = lowering<&full_like_lower>(),
    .batch = like_batch,
    .samples =
        [] { return Samples{{"plain", {f32({2, 3}), 2}}, {"transposed", {transposed(f32({3, 4})), 1.5}}}; },
};

WEFT_OPERATOR(scalar_tensor) = {
    .schema =
        "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .out = "aten::scalar_tensor.out(Scalar s, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&scalar_tensor_meta>(),
    .kernel = {.functional = function<&scalar_tensor_kernel>(),
               .out = function<&scalar_tensor_out_kernel>(),
               .out_may_repeat = true},
    .lower = lowering<&scalar_tensor_lower>(),
    .samples = [] { return Samples{{"real", {2.5}}, {"typed", {3, kInt64}}}; },
};

WEFT_OPERATOR(new_empty) = {
    .schema =
        "aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::new_empty.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kUninitialized,
    .composite = {.functional = function<&new_empty_composite>(),
                  .out = function<&new_empty_out_composite>()},
    .samples = [] { return Samples{{"plain", {f32({2}), Value::list({3, 2})}}}; },
};

WEFT_OPERATOR(new_zeros) = {
    .schema =
        "aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::new_zeros.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&NewConstant<0>::meta>(),
    .kernel = {.functional = function<&NewConstant<0>::kernel>(),
               .out = function<&ConstantOut<0>::beside>(),
               .out_may_repeat = true},
    .batch = new_batch,
    .decompose = function<&new_zeros_parts>(),
    .samples = [] { return Samples{{"plain", {f32({2}), Value::list({3, 2})}}}; },
};

WEFT_OPERATOR(new_ones) = {
    .schema =
        "aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::new_ones.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&NewConstant<1>::meta>(),
    .kernel = {.functional = function<&NewConstant<1>::kernel>(),
               .out = function<&ConstantOut<1>::beside>(),
               .out_may_repeat = true},
    .batch = new_batch,
    .decompose = function<&new_ones_parts>(),
    .samples = [] { return Samples{{"plain", {f32({2}), Value::list({3, 2})}}}; },
};

WEFT_OPERATOR(new_full) = {
    .schema =
        "aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out =
        "aten::new_full.out(Tensor self, SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kNotDifferentiable,
    .meta = function<&new_full_meta>(),
    .kernel = {.functional = function<&new_full_kernel>(),
               .out = function<&new_full_out_kernel>(),
               .out_may_repeat = true},
    .batch = new_batch,
    .decompose = function<&new_full_parts>(),
    .samples = [] { return Samples{{"plain", {f32({2}), Value::list({3, 2}), 7}}}; },
};

WEFT_OPERATOR(new_empty_strided) = {
    .schema =
        "aten::new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out =
        "aten::new_empty_strided.out(Tensor self, SymInt[] size, SymInt[] stride, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore | Traits::kUninitialized | Traits::kNotDifferentiable,
    .meta = function<&new_empty_strided_meta>(),
    .kernel = {.functional = function<&new_empty_strided_kernel>(),
               .out = function<&new_empty_strided_out_kernel>()},
    .batch = new_strided_batch,
    .samples = [] { return Samples{{"plain", {f32({2}), Value::list({3, 2}), Value::list({1, 3})}}}; },
};

}  // namespace weft::ops
