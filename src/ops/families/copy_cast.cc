// Copies, casts, moves between devices, and values pulled out of tensors.
#include "ops/decompositions/decompositions.h"
#include "ops/outplace.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/preserved_copy.h"
#include "weft/ops/fake.h"

namespace weft::ops {
namespace {

using Format = std::optional<MemoryFormat>;
using MaybeType = std::optional<DType>;
using MaybeDevice = std::optional<Device>;

SymInts strides_for(const Tensor& self, const Format& format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  return wanted == MemoryFormat::kPreserve ? preserved_strides(self)
                                           : strides_of_format(self.sizes(), wanted);
}

TensorSpec clone_meta(const Tensor& self, Format format) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), strides_for(self, format)};
}
PointwiseCall clone_lower(const Tensor& self, Format) { return {cpu::kCopy, self.dtype(), {0}}; }
void clone_into(const Tensor& self, Format format, const Tensor& out) {
  run_call(clone_lower(self, format), out, self);
}

TensorSpec to_copy_meta(const Tensor& self, MaybeType dtype, std::optional<Layout>, MaybeDevice device,
                        std::optional<bool> pin, bool, Format format) {
  require(!pin.value_or(false), "pin_memory: weft has no pinned memory; leave it out");
  return {dtype.value_or(self.dtype()), device.value_or(self.device()), SymInts(self.sizes()),
          strides_for(self, format)};
}
PointwiseCall to_copy_lower(const Tensor& self, MaybeType dtype, std::optional<Layout>, MaybeDevice,
                            std::optional<bool>, bool, Format) {
  return {cpu::kCopy, dtype.value_or(self.dtype()), {0}};
}
Tensor to_copy_kernel(const Tensor& self, MaybeType dtype, std::optional<Layout> layout, MaybeDevice device,
                      std::optional<bool> pin, bool wait, Format format) {
  Tensor out = allocate(to_copy_meta(self, dtype, layout, device, pin, wait, format));
  if (!out.storage()->has_memory()) return out;
  require(self.storage()->has_memory(), "Cannot copy out of meta tensor; no data!");
  run_call(to_copy_lower(self, dtype, layout, device, pin, wait, format), out, self);
  return out;
}

// The type and the device are the target's, and one that is resized becomes contiguous.
const Tensor& to_copy_out_kernel(const Tensor& self, bool, Format, const Tensor& out) {
  check_no_internal_overlap(out);
  prepare_out(contiguous_spec(self.sizes(), out.dtype(), out.device()), out);
  check_overlap(out, self);
  run_call(to_copy_lower(self, out.dtype(), {}, {}, {}, false, {}), out, self);
  return out;
}

// copy(self, src): `self` gives sizes, type and layout, `src` the values.
TensorSpec copy_meta(const Tensor& self, const Tensor& src, bool) {
  SymInts sizes = broadcast_sizes(self.sizes(), src.sizes());
  if (!same_sizes(sizes, self.sizes()))
    fail("The expanded size of the tensor {} must match the existing size {}: copy_ cannot grow its target",
         describe_sizes(self.sizes()), describe_sizes(src.sizes()));
  return preserved_copy_spec(self);
}
PointwiseCall copy_lower(const Tensor& self, const Tensor&, bool) { return {cpu::kCopy, self.dtype(), {1}}; }
Tensor copy_kernel(const Tensor& self, const Tensor& src, bool wait) {
  const TensorSpec spec = copy_meta(self, src, wait);
  // A storage that was emptied is filled by such a copy: there is nothing to keep of it.
  const bool is_emptied = self.storage()->has_memory() && self.storage()->bytes() == 0;
  Tensor out = is_emptied ? allocate(TensorSpec(spec)) : preserved_copy(self);
  run_call(copy_lower(self, src, wait), out, self, src);
  return out;
}
const Tensor& copy_inplace(const Tensor& self, const Tensor& src, bool wait) {
  if (self.is_same(src)) return self;
  copy_meta(self, src, wait);
  if (!self.storage()->has_memory()) return self;
  require(src.storage()->has_memory(), "Cannot copy out of meta tensor; no data!");
  check_no_internal_overlap(self);
  // Source and target may share memory in another order: then the values wait in between.
  if (may_overlap(self, src)) {
    Tensor waiting = allocate({src.dtype(), src.device(), SymInts(src.sizes()), preserved_strides(src)});
    copy_values(waiting, src);
    run_call(copy_lower(self, waiting, wait), self, self, waiting);
    return self;
  }
  run_call(copy_lower(self, src, wait), self, self, src);
  return self;
}
const Tensor& copy_out_kernel(const Tensor& self, const Tensor& src, bool wait, const Tensor& out) {
  check_no_internal_overlap(out);
  copy_meta(self, src, wait);
  const TensorSpec spec = contiguous_spec(self.sizes(), self.dtype(), self.device());
  check_out_type(OutType::kExact, spec, out);
  // Memory that is read is not resized before.
  const bool is_read = out.storage() == src.storage();
  const Tensor from = is_read ? copy_kernel(self, src, wait) : src;
  prepare_out(spec, out);
  run_call(copy_lower(self, from, wait), out, self, from);
  return out;
}

Tensor contiguous_composite(const Tensor& self, MemoryFormat format) {
  require(format != MemoryFormat::kPreserve,
          "preserve memory format is unsupported by the contiguous operator");
  return self.is_contiguous(format) ? self : clone(self, format);
}

// What `to` asks for is there already. A format is that which the strides suggest, so that a tensor whose
// dims of one element leave it open is taken for contiguous.
bool is_already(const Tensor& self, DType dtype, Device device, const Format& format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  bool has_format = wanted == MemoryFormat::kPreserve ||
                    (wanted == MemoryFormat::kChannelsLast3d ? self.is_contiguous(wanted)
                                                             : suggested_format(self) == wanted);
  return self.dtype() == dtype && self.device() == device && has_format;
}
Tensor to_full(const Tensor& self, DType dtype, Device device, bool wait, bool copy, const Format& format) {
  if (!copy && is_already(self, dtype, device, format)) return self;
  return _to_copy(self, dtype, std::nullopt, device == self.device() ? MaybeDevice() : MaybeDevice(device),
                  std::nullopt, wait, format);
}
Tensor to_dtype(const Tensor& self, DType dtype, bool wait, bool copy, Format format) {
  return to_full(self, dtype, self.device(), wait, copy, format);
}
Tensor to_device(const Tensor& self, Device device, DType dtype, bool wait, bool copy, Format format) {
  return to_full(self, dtype, device, wait, copy, format);
}
Tensor to_dtype_layout(const Tensor& self, MaybeType dtype, std::optional<Layout>, MaybeDevice device,
                       std::optional<bool>, bool wait, bool copy, Format format) {
  return to_full(self, dtype.value_or(self.dtype()), device.value_or(self.device()), wait, copy, format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool wait, bool copy, Format format) {
  return to_full(self, other.dtype(), other.device(), wait, copy, format);
}

Tensor type_as_composite(const Tensor& self, const Tensor& other) {
  if (is_already(self, other.dtype(), other.device(), std::nullopt)) return self;
  return _to_copy(self, other.dtype(), Layout::kStrided, other.device());
}

// --- fill, zero ------------------------------------------------------------------------------------------

TensorSpec like_self(const Tensor& self) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
TensorSpec fill_meta(const Tensor& self, const Scalar&) { return like_self(self); }
PointwiseCall fill_lower(const Tensor& self, const Scalar&) { return {cpu::kCopy, self.dtype(), {1}}; }
void fill_into(const Tensor& self, const Scalar& value, const Tensor& out) {
  require_fillable(out, value);
  run_fill(fill_lower(self, value), out, value);
}
TensorSpec fill_tensor_meta(const Tensor& self, const Tensor& value) {
  require(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
          value.dim());
  return like_self(self);
}
PointwiseCall fill_tensor_lower(const Tensor& self, const Tensor&) { return {cpu::kCopy, self.dtype(), {1}}; }
TensorSpec zero_meta(const Tensor& self) { return like_self(self); }
PointwiseCall zero_lower(const Tensor& self) { return filling_call(0, self.dtype()); }
void zero_into(const Tensor& self, const Tensor& out) { run_call(zero_lower(self), out); }

// --- values ----------------------------------------------------------------------------------------------

Scalar local_scalar_kernel(const Tensor& self) {
  require(self.plain_numel() == 1, "a Tensor with {} elements cannot be converted to Scalar",
          self.plain_numel());
  return visit_dtype(self.dtype(),
                     [&]<typename T>() { return Scalar(*static_cast<const T*>(self.raw_data())); });
}
Scalar local_scalar_meta(const Tensor& self) { return unbacked_item("item", self.dtype()).to_scalar(); }
Scalar item_composite(const Tensor& self) {
  if (!self.is_symbolic())
    require(self.plain_numel() == 1, "a Tensor with {} elements cannot be converted to Scalar",
            self.plain_numel());
  return _local_scalar_dense(self);
}

// The result has the sizes of `self`, so that it must have the batch where `src` has it. A write in place
// cannot.
Batched copy_batch(const Batch& call) {
  if (call.batch_dim(0) >= 0 || call.op().form() == OpForm::kInplace) return pointwise_batch(call);
  Tensor self = with_batch_first(call.tensor(0), -1, call.batch_size());
  Tensor src = batch_first(call.tensor(1), call.batch_dim(1));
  while (src.dim() < self.dim()) src = unsqueeze(src, 1);
  return {weft::call(call.op(), std::vector<Value>{self, src, call.args()[2]}), {0}};
}
Batched unary_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  return {weft::call(call.op(), args), {0}};
}

Samples self_samples() {
  return {{"plain", {f64({2, 3})}},
          {"transposed", {transposed(f64({3, 4}))}},
          {"scalar", {f64({})}},
          {"empty", {f64({0, 2})}}};
}

}  // namespace

WEFT_OPERATOR(clone) = {
    .schema = "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    .out = "aten::clone.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kLinear,
    .meta = function<&clone_meta>(),
    .kernel = structured_exact<&clone_meta, &clone_into>(),
    .lower = lowering<&clone_lower>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{v.grad()}; }},
    .batch = unary_batch,
    .samples = self_samples,
};

WEFT_OPERATOR(to_copy) = {
    .schema =
        "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kLinear | Traits::kCrossesDevices,
    .meta = function<&to_copy_meta>(),
    .kernel = {.functional = function<&to_copy_kernel>(), .out = function<&to_copy_out_kernel>()},
    .lower = lowering<&to_copy_lower>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  const TensorShape& shape = v.shape(0);
                  if (v.grad().dtype() == shape.dtype && v.grad().device() == shape.device)
                    return Grads{v.grad()};
                  return Grads{_to_copy(v.grad(), shape.dtype, Layout::kStrided, shape.device)};
                }},
    .batch = unary_batch,
    .samples =
        [] {
          return Samples{
              {"widen", {f32({2, 3}), kFloat64}}, {"same", {f64({2, 3})}}, {"truncate", {f64({3}), kInt32}}};
        },
};

WEFT_OPERATOR(copy) = {
    .schema = "aten::copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    .inplace = "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    .out =
        "aten::copy.out(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kPointwise | Traits::kCrossesDevices,
    .meta = function<&copy_meta>(),
    .kernel = {.functional = function<&copy_kernel>(),
               .inplace = function<&copy_inplace>(),
               .out = function<&copy_out_kernel>(),
               .out_type_is_exact = true},
    .lower = lowering<&copy_lower>(),
    .vjp = {.saves = sizes(0, 1),
            .rule =
                [](const Vjp& v) {
                  Tensor self = v.wants(0) ? zeros_like(v.grad(), std::nullopt, std::nullopt, std::nullopt,
                                                        std::nullopt, MemoryFormat::kContiguous)
                                           : Tensor();
                  Tensor src =
                      v.wants(1) ? to(v.grad(), v.shape(1).dtype, std::nullopt, v.shape(1).device) : Tensor();
                  return Grads{self, src};
                }},
    .batch = copy_batch,
    .samples =
        [] {
          return Samples{{"same", {f64({2, 3}), f64({2, 3})}},
                         {"broadcast", {f64({2, 3}), f64({3})}},
                         {"cast", {f64({3}), i64({3})}}};
        },
};

WEFT_OPERATOR(contiguous) = {
    .schema = "aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&contiguous_composite>()},
    .samples = self_samples,
};

WEFT_OPERATOR(to_dtype) = {
    .schema =
        "aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&to_dtype>()},
    .samples = [] { return Samples{{"same", {f64({2}), kFloat64}}, {"cast", {f64({2}), kFloat32}}}; },
};

WEFT_OPERATOR(to_device) = {
    .schema =
        "aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool "
        "copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&to_device>()},
    .samples = [] { return Samples{{"cast", {f64({2}), kCpu, kFloat32}}}; },
};

WEFT_OPERATOR(to_dtype_layout) = {
    .schema =
        "aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
        "memory_format=None) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&to_dtype_layout>()},
    .samples = [] { return Samples{{"cast", {f64({2}), kFloat32}}}; },
};

WEFT_OPERATOR(to_other) = {
    .schema =
        "aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&to_other>()},
    .samples = [] { return Samples{{"cast", {f64({2}), f32({1})}}}; },
};

WEFT_OPERATOR(type_as) = {
    .schema = "aten::type_as(Tensor self, Tensor other) -> Tensor",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&type_as_composite>()},
    .samples = [] { return Samples{{"cast", {f64({2}), f32({1})}}, {"same", {f64({2}), f64({3})}}}; },
};

WEFT_OPERATOR(fill_scalar) = {
    .schema = "aten::fill.Scalar(Tensor self, Scalar value) -> Tensor",
    .inplace = "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    .out = "aten::fill.Scalar_out(Tensor self, Scalar value, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&fill_meta>(),
    .kernel = structured_exact<&fill_meta, &fill_into, true, Elements::kMayRepeat>(),
    .lower = lowering<&fill_lower>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = unary_batch,
    .decompose = function<&fill_scalar_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3}), 2.5}}, {"integer", {i64({3}), 4}}}; },
};

WEFT_OPERATOR(fill_tensor) = {
    .schema = "aten::fill.Tensor(Tensor self, Tensor value) -> Tensor",
    .inplace = "aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    .out = "aten::fill.Tensor_out(Tensor self, Tensor value, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&fill_tensor_meta>(),
    .kernel = lowered_exact<&fill_tensor_meta, &fill_tensor_lower>(),
    .lower = lowering<&fill_tensor_lower>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  Tensor self = v.wants(0) ? zeros_like(v.grad()) : Tensor();
                  return Grads{self, v.wants(1) ? sum(v.grad()) : Tensor()};
                }},
    .batch = loop_batch,
    .decompose = function<&fill_tensor_parts>(),
    .samples = [] { return Samples{{"plain", {f64({2, 3}), f64({})}}}; },
};

WEFT_OPERATOR(zero) = {
    .schema = "aten::zero(Tensor self) -> Tensor",
    .inplace = "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
    .out = "aten::zero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&zero_meta>(),
    .kernel = structured_exact<&zero_meta, &zero_into, true, Elements::kMayRepeat>(),
    .lower = lowering<&zero_lower>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = unary_batch,
    .decompose = function<&zero_parts>(),
    .samples = self_samples,
};

}  // namespace weft::ops

namespace weft {
namespace {

Tensor copied_outplace(const Tensor& self, const Tensor& src, bool) {
  bool is_alike = self.dtype() == src.dtype() && self.device() == src.device();
  return expand_as(is_alike ? src : to(src, self.device(), self.dtype()), self);
}
Tensor filled_outplace(const Tensor& self, const Scalar& value) { return full_like(self, value); }
Tensor zeroed_outplace(const Tensor& self) { return zeros_like(self); }

}  // namespace

std::span<const OutplaceRule> outplace_rules() {
  static constexpr OutplaceRule kRules[] = {{&ops::copy_op, function<&copied_outplace>()},
                                            {&ops::fill_scalar_op, function<&filled_outplace>()},
                                            {&ops::zero_op, function<&zeroed_outplace>()}};
  return kRules;
}

}  // namespace weft

namespace weft::ops {

WEFT_OPERATOR(local_scalar_dense) = {
    .schema = "aten::_local_scalar_dense(Tensor self) -> Scalar",
    .traits = Traits::kCore | Traits::kDataDependent | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&local_scalar_meta>(),
    .kernel = {.functional = function<&local_scalar_kernel>()},
    .samples = [] { return Samples{{"real", {f64({})}}, {"integer", {i64({1})}}}; },
};

WEFT_OPERATOR(item) = {
    .schema = "aten::item(Tensor self) -> Scalar",
    .traits = Traits::kDataDependent | Traits::kNotDifferentiable,
    .composite = {.functional = function<&item_composite>()},
    .samples = [] { return Samples{{"real", {f64({1, 1})}}}; },
};

}  // namespace weft::ops
