// Operators that change which memory a tensor looks at, and how much of it there is.
#include "ops/support/family.h"
#include "ops/support/view_geometry.h"

namespace weft::ops {
namespace {

using Format = std::optional<MemoryFormat>;

void grow(const Tensor& self, SymIntSpan sizes, SymIntSpan strides) {
  if (self.is_symbolic() || !sizes.is_plain()) return;  // without memory
  size_t bytes = reached_bytes(sizes, strides, self.storage_offset(), self.dtype());
  if (bytes > self.storage()->bytes()) self.storage()->resize(bytes);
}

size_t needed_bytes(const Tensor& self) {
  return reached_bytes(self.sizes(), self.strides(), self.storage_offset(), self.dtype());
}

SymInts resized_strides(const Tensor& self, SymIntSpan size, Format format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::kContiguous);
  require(wanted != MemoryFormat::kPreserve, "resize_: unsupported memory format preserve_format");
  if (format.has_value()) return strides_of_format(size, wanted);
  return same_sizes(size, self.sizes()) ? SymInts(self.strides()) : contiguous_strides(size);
}

TensorSpec resize_meta(const Tensor& self, SymIntSpan size, Format format) {
  return {self.dtype(), self.device(), SymInts(size), resized_strides(self, size, format)};
}
const Tensor& resize_inplace(const Tensor& self, SymIntSpan size, Format format) {
  SymInts strides = resized_strides(self, size, format);
  grow(self, size, strides);
  self.impl()->set_geometry(size, strides, self.storage_offset());
  return self;
}
// A copy of the memory from the tensor's start on, and no tensor but that one looks at it.
Tensor resize_kernel(const Tensor& self, SymIntSpan size, Format format) {
  Tensor copy = allocate({self.dtype(), self.device(), SymInts(self.sizes()), SymInts(self.strides())});
  copy_values(copy, self);
  return resize_inplace(copy, size, format);
}
const Tensor& resize_out(const Tensor& self, SymIntSpan size, Format format, const Tensor& out) {
  check_no_internal_overlap(out);
  Tensor result = resize_kernel(self, size, format);
  prepare_out({result.dtype(), result.device(), SymInts(result.sizes()), SymInts(result.strides())}, out);
  copy_values(out, result);
  return out;
}

Tensor resize_as_composite(const Tensor& self, const Tensor& the_template, Format format) {
  return resize(self, the_template.sizes(), format == MemoryFormat::kPreserve ? std::nullopt : format);
}
const Tensor& resize_as_inplace(const Tensor& self, const Tensor& the_template, Format format) {
  return resize_(self, the_template.sizes(), format == MemoryFormat::kPreserve ? std::nullopt : format);
}

TensorSpec set_meta(const Tensor&, const Tensor& source) {
  return {source.dtype(), source.device(), SymInts(source.sizes()), SymInts(source.strides())};
}
Tensor set_kernel(const Tensor&, const Tensor& source) {
  Tensor copy = allocate(set_meta(source, source));
  copy_values(copy, source);
  return copy;
}
const Tensor& set_inplace(const Tensor& self, const Tensor& source) {
  require(self.dtype() == source.dtype(), "Could not set tensor of type {} to a tensor of type {}",
          dtype_name(source.dtype()), dtype_name(self.dtype()));
  require(self.device() == source.device(), "set_: the tensor is on {} and the source on {}",
          self.device().to_string(), source.device().to_string());
  self.impl()->set_storage(source.storage());
  self.impl()->set_geometry(source.sizes(), source.strides(), source.storage_offset());
  return self;
}

const Tensor& set_placed(const Tensor& self, const Tensor& source, const SymInt& offset, SymIntSpan size,
                         SymIntSpan stride) {
  SymInts strides = stride.empty() ? contiguous_strides(size) : SymInts(stride);
  require(strides.size() == size.size(), "set_: {} sizes but {} strides", size.size(), strides.size());
  if (!offset.is_symbolic() && size.is_plain() && SymIntSpan(strides).is_plain() && !source.is_symbolic()) {
    require(offset.plain() >= 0, "set_: the storage offset is negative: {}", offset.plain());
    size_t bytes = reached_bytes(size, strides, offset, self.dtype());
    if (bytes > source.storage()->bytes()) source.storage()->resize(bytes);
  }
  set_inplace(self, source);
  self.impl()->set_geometry(size, strides, offset);
  return self;
}
TensorSpec set_placed_meta(const Tensor& self, const Tensor&, const SymInt&, SymIntSpan size, SymIntSpan) {
  return contiguous_spec(size, self.dtype(), self.device());
}

// The memory of a tensor is given up and taken again, while the tensor stays what it is: no element of it may
// be read in between, and none has a defined value after.
void resize_storage_bytes(const Tensor& variable, const SymInt& new_size) {
  Storage& storage = *variable.storage();
  if (new_size.is_symbolic()) {
    require(!storage.has_memory(), "resize_storage_bytes_: the new size {} is symbolic, but {} has memory",
            new_size.to_string(), describe(variable));
    return;
  }
  const int64_t bytes = new_size.plain();
  require(bytes >= 0, "resize_storage_bytes_: the new size is negative: {}", bytes);
  const bool is_plain = !variable.is_symbolic();
  const auto wanted = static_cast<size_t>(bytes);
  require(bytes == 0 || !is_plain || wanted >= std::max(needed_bytes(variable), storage.bytes()),
          "resize_storage_bytes_: a storage is emptied or has room for all that looks at it; {} with a "
          "storage of {} bytes cannot have one of {}",
          describe(variable), storage.bytes(), bytes);
  storage.resize(wanted);
}

constexpr Traits kGeometry = Traits::kGeometry | Traits::kNotDifferentiable | Traits::kNotBatchable;

}  // namespace

WEFT_OPERATOR(resize) = {
    .schema = "aten::resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor",
    .inplace =
        "aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
    .out =
        "aten::resize.out(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = kGeometry,
    .meta = function<&resize_meta>(),
    .kernel = {.functional = function<&resize_kernel>(),
               .inplace = function<&resize_inplace>(),
               .out = function<&resize_out>(),
               .out_copies = true},
    .samples =
        [] { return Samples{{"same", {f64({2, 3}), ints({2, 3})}}, {"smaller", {f64({2, 3}), ints({4})}}}; },
};

WEFT_OPERATOR(resize_as) = {
    .schema =
        "aten::resize_as(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor",
    .inplace =
        "aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
        "Tensor(a!)",
    .traits = kGeometry,
    .composite = {.functional = function<&resize_as_composite>(), .inplace = function<&resize_as_inplace>()},
    .samples = [] { return Samples{{"smaller", {f64({2, 3}), f64({2, 2})}}}; },
};

WEFT_OPERATOR(set_source_tensor) = {
    .schema = "aten::set.source_Tensor(Tensor self, Tensor source) -> Tensor",
    .inplace = "aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
    .traits = kGeometry,
    .meta = function<&set_meta>(),
    .kernel = {.functional = function<&set_kernel>(), .inplace = function<&set_inplace>()},
    .samples = [] { return Samples{{"other_size", {f64({2}), f64({3})}}}; },
};

WEFT_OPERATOR(set_source_tensor_storage_offset) = {
    .schema =
        "aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, SymInt storage_offset, "
        "SymInt[] size, SymInt[] stride=[]) -> Tensor(a!)",
    .traits = kGeometry,
    .meta = function<&set_placed_meta>(),
    .kernel = {.functional = function<&set_placed>()},
    .samples = [] { return Samples{{"part", {f64({2}), f64({6}), 1, ints({2, 2}), ints({2, 1})}}}; },
};

// As in PyTorch the schema names no write: no element changes, and the version stays what it is.
WEFT_OPERATOR(resize_storage_bytes) = {
    .schema = "inductor::resize_storage_bytes_(Tensor variable, SymInt new_size) -> ()",
    .traits = kGeometry | Traits::kEffectful,
    .meta = function<&resize_storage_bytes>(),
    .kernel = {.functional = function<&resize_storage_bytes>()},
    .samples = [] { return Samples{{"larger", {f64({2, 3}), 1024}}, {"of_nothing", {f64({0}), 64}}}; },
};

}  // namespace weft::ops
