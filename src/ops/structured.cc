#include "ops/structured.h"

#include <exception>

#include "ops/support/pointwise.h"
#include "ops/support/shapes.h"
#include "ops/support/type_promotion.h"
#include "ops/support/view_geometry.h"
#include "weft/base/error.h"
#include "weft/dispatch/layers.h"
#include "weft/ops/functions.h"

namespace weft {

void check_inplace(const TensorSpec& spec, const Tensor& self) {
  if (!can_cast(spec.dtype, self.dtype())) [[unlikely]]
    fail("result type {} can't be cast to the desired output type {}; the in-place target is {}",
         dtype_name(spec.dtype), dtype_name(self.dtype()), describe(self));
  require(same_sizes(spec.sizes, self.sizes()),
          "output with shape {} doesn't match the broadcast shape {}; an in-place operator cannot grow its "
          "target",
          describe_sizes(self.sizes()), describe_sizes(spec.sizes));
}

namespace {

// Resizing keeps the elements that the storage has; strides are those of the spec.
void resize_to(const TensorSpec& spec, const Tensor& out) {
  TensorImpl* impl = out.impl();
  SymInt offset = impl->storage_offset();
  if (!offset.is_symbolic() && SymIntSpan(spec.sizes).is_plain() && SymIntSpan(spec.strides).is_plain()) {
    size_t bytes = reached_bytes(spec.sizes, spec.strides, offset, impl->dtype());
    if (bytes > impl->storage()->bytes()) impl->storage()->resize(bytes);
  }
  impl->set_geometry(spec.sizes, spec.strides, impl->storage_offset());
}

}  // namespace

namespace {

void check_out(const TensorSpec& spec, const Tensor& out) {
  require(out.defined(), "the out= tensor is undefined");
  if (spec.device != out.device())
    fail("Expected out tensor to have device {}, but got {} instead", spec.device.to_string(),
         out.device().to_string());
  if (!can_cast(spec.dtype, out.dtype())) [[unlikely]]
    fail("result type {} can't be cast to the desired output type {}", dtype_name(spec.dtype),
         dtype_name(out.dtype()));
}

}  // namespace

void prepare_out(const TensorSpec& spec, const Tensor& out) {
  check_out(spec, out);
  if (!same_sizes(spec.sizes, out.sizes())) resize_to(spec, out);
}

bool resizes_out(const TensorSpec& spec, const Tensor& out) { return !same_sizes(spec.sizes, out.sizes()); }

void refuse_resized_operand(const TensorSpec& spec, const Tensor& out) {
  fail(
      "output with shape {} doesn't match the broadcast shape {}; a target that is also an operand is not "
      "resized",
      describe_sizes(out.sizes()), describe_sizes(spec.sizes));
}

PreparedOut::PreparedOut(const TensorSpec& spec, const Tensor& out)
    : out_(out), errors_(std::uncaught_exceptions()) {
  if (out.defined() && !same_sizes(spec.sizes, out.sizes()))
    before_ = Geometry{SymInts(out.sizes()), SymInts(out.strides())};
  prepare_out(spec, out);
}
PreparedOut::~PreparedOut() {
  if (before_ && std::uncaught_exceptions() > errors_)
    out_.impl()->set_geometry(before_->sizes, before_->strides, out_.storage_offset());
}

OutMemory::OutMemory(const TensorSpec& spec, const Tensor& target, bool is_shared) : target_(target) {
  check_out(spec, target);
  if (!is_shared && spec.dtype == target.dtype()) {
    prepared_.emplace(spec, target);
    if (same_sizes(target.strides(), spec.strides)) return;
  }
  own_ = allocate(spec);
}
void OutMemory::finish() {
  if (!own_.defined()) return;
  if (!prepared_)
    prepare_out({own_.dtype(), own_.device(), SymInts(own_.sizes()), SymInts(own_.strides())}, target_);
  copy_values(target_, own_);
}

bool shares_with_another(const Tensor& target, std::span<const Tensor* const> targets) {
  int sharers = 0;
  for (const Tensor* other : targets) sharers += other->defined() && other->storage() == target.storage();
  return sharers > 1;
}

void check_out_type(OutType rule, const TensorSpec& spec, const Tensor& out) {
  require(rule == OutType::kConverted || spec.dtype == out.dtype(),
          "Expected out tensor to have dtype {}, but got {} instead", dtype_name(spec.dtype),
          dtype_name(out.dtype()));
}

namespace {

struct Extent {
  int64_t first, last;  // in bytes from the start of the storage
};
Extent extent_of(const Tensor& t) {
  int64_t size = item_size(t.dtype()), first = t.storage_offset().plain() * size, last = first + size;
  for (int64_t d = 0; d < t.dim(); ++d) {
    int64_t reach =
        (t.plain_sizes()[static_cast<size_t>(d)] - 1) * t.plain_strides()[static_cast<size_t>(d)] * size;
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.storage_offset().same_as(b.storage_offset()) && a.dtype() == b.dtype() &&
         same_sizes(a.sizes(), b.sizes()) && same_sizes(a.strides(), b.strides());
}

}  // namespace

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (a.storage() != b.storage() || a.is_symbolic() || b.is_symbolic()) return false;
  if (a.plain_numel() == 0 || b.plain_numel() == 0) return false;
  Extent x = extent_of(a), y = extent_of(b);
  return x.first < y.last && y.first < x.last;
}

namespace {

// Two strided tensors may interleave without meeting; only dense ones are known to.
void require_not_both_dense(const Tensor& written, const Tensor& read) {
  bool both_dense =
      written.impl()->is_non_overlapping_and_dense() && read.impl()->is_non_overlapping_and_dense();
  require(!both_dense,
          "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
          "single memory "
          "location. Please clone() the tensor before performing the operation.");
}

}  // namespace

void check_overlap(const Tensor& written, const Tensor& read) {
  if (written.is_same(read) || !may_overlap(written, read) || is_same_view(written, read)) return;
  require_not_both_dense(written, read);
}

void check_apart(const Tensor& written, const Tensor& read) {
  if (may_overlap(written, read)) require_not_both_dense(written, read);
}

bool repeats_elements(const Tensor& tensor) {
  if (tensor.is_symbolic() || tensor.is_contiguous()) return false;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.plain_strides()[static_cast<size_t>(d)] == 0 &&
        tensor.plain_sizes()[static_cast<size_t>(d)] > 1)
      return true;
  return false;
}

void check_no_internal_overlap(const Tensor& written) {
  require(!repeats_elements(written),
          "unsupported operation: more than one element of the written-to tensor refers to a single memory "
          "location. "
          "Please clone() the tensor before performing the operation.");
}

Tensor kept_target(const Tensor& self, bool is_recorded) {
  return is_recorded && layer_state().grad_mode ? clone(self) : self;
}

const Tensor& copy_composed_inplace(const Tensor& self, const Tensor& result) {
  check_no_internal_overlap(self);
  check_inplace({result.dtype(), result.device(), SymInts(result.sizes()), {}}, self);
  return copy_(self, result);
}

const Tensor& copy_composed_out(OutType rule, const Tensor& out, const Tensor& result) {
  const TensorSpec spec{result.dtype(), result.device(), SymInts(result.sizes()), {}};
  require(out.defined(), "the out= tensor is undefined");
  check_no_internal_overlap(out);
  check_out_type(rule, spec, out);
  check_out(spec, out);
  if (!same_sizes(spec.sizes, out.sizes())) resize_(out, result.sizes());
  return copy_(out, result);
}

void copy_values(const Tensor& target, const Tensor& source) {
  // Nothing to copy may have no memory to point into.
  if (target.plain_numel() == 0) return;
  Ints target_strides(target.plain_strides()), source_strides;
  auto rank = static_cast<size_t>(target.dim()), missing = rank - static_cast<size_t>(source.dim());
  for (size_t d = 0; d < rank; ++d) {
    bool broadcast = d < missing || (source.plain_sizes()[d - missing] == 1 && target.plain_sizes()[d] != 1);
    source_strides.push_back(broadcast ? 0 : source.plain_strides()[d - missing]);
  }
  IntSpan sizes = target.plain_sizes();
  cpu::copy_strided({static_cast<char*>(target.raw_data()), target.dtype(), target_strides.data()},
                    {static_cast<char*>(source.raw_data()), source.dtype(), source_strides.data()},
                    {sizes.data(), sizes.size()});
}

namespace structured_detail {

bool TargetWrite::shares_with_operands() const {
  for (const Tensor* operand : operands_)
    if (operand->storage() == target_.storage()) return true;
  return false;
}

void TargetWrite::check_overlaps() const {
  for (const Tensor* operand : operands_) check_overlap(target_, *operand);
}

// Through a temporary where the target has another type or memory that the kernel still reads.
void TargetWrite::write(FunctionRef<void(const Tensor&)> kernel) const {
  const bool is_direct = spec_.dtype == target_.dtype() && (aliasing_is_safe_ || !shares_with_operands());
  if (is_direct) return kernel(target_);
  Tensor result = allocate(spec_);
  kernel(result);
  copy_values(target_, result);
}

void TargetWrite::inplace(Elements elements, FunctionRef<void(const Tensor&)> kernel) const {
  check_inplace(spec_, target_);
  if (elements == Elements::kDistinct) check_no_internal_overlap(target_);
  check_overlaps();
  write(kernel);
}

void TargetWrite::out(OutType type, FunctionRef<void(const Tensor&)> kernel) const {
  check_no_internal_overlap(target_);
  check_out_type(type, spec_, target_);
  if (shares_with_operands() && resizes_out(spec_, target_)) [[unlikely]]
    return write_resized(kernel);
  PreparedOut prepared(spec_, target_);
  check_overlaps();
  write(kernel);
}

// A target that must be resized is read to the end before.
void TargetWrite::write_resized(FunctionRef<void(const Tensor&)> kernel) const {
  for (const Tensor* operand : operands_)
    if (aliasing_is_safe_ && operand->is_same(target_)) refuse_resized_operand(spec_, target_);
  Tensor result = allocate(spec_);
  kernel(result);
  PreparedOut prepared(spec_, target_);
  copy_values(target_, result);
}

}  // namespace structured_detail
}  // namespace weft
