#include "ops/support/shapes.h"

#include "weft/base/error.h"

namespace weft {

SymInts broadcast_sizes(SymIntSpan a, SymIntSpan b) {
  size_t rank = std::max(a.size(), b.size());
  SymInts sizes(rank);
  for (size_t d = 0; d < rank; ++d) {
    size_t from_end = rank - 1 - d;
    bool in_a = from_end < a.size(), in_b = from_end < b.size();
    if (!in_a || !in_b) {
      sizes[d] = in_a ? a[a.size() - 1 - from_end] : b[b.size() - 1 - from_end];
      continue;
    }
    const SymInt& x = a[a.size() - 1 - from_end];
    const SymInt& y = b[b.size() - 1 - from_end];
    // An unbacked size is taken for the general case: not 1.
    if (guard_or(x == 1, false)) sizes[d] = y;
    else if (guard_or(y == 1, false)) sizes[d] = x;
    else {
      if (!x.is_symbolic() && !y.is_symbolic())
        require(x.plain() == y.plain(),
                "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton dimension "
                "{}; the sizes are {} and {}",
                x.plain(), y.plain(), d, describe_sizes(a), describe_sizes(b));
      else check(x == y, "broadcast sizes must agree");
      sizes[d] = x.is_symbolic() ? y : x;
    }
  }
  return sizes;
}

SymInts broadcast_sizes(std::initializer_list<const Tensor*> tensors) {
  SymInts sizes;
  bool first = true;
  for (const Tensor* tensor : tensors) {
    if (!tensor->defined()) continue;
    sizes = first ? SymInts(tensor->sizes()) : broadcast_sizes(sizes, tensor->sizes());
    first = false;
  }
  return sizes;
}

namespace {

bool are_same_sizes(SymIntSpan a, SymIntSpan b, bool where_undecided) {
  if (a.size() != b.size()) return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (!a[d].same_as(b[d]) && !guard_or(a[d] == b[d], where_undecided)) return false;
  return true;
}

}  // namespace

bool same_sizes(SymIntSpan a, SymIntSpan b) { return are_same_sizes(a, b, false); }
bool may_be_same_sizes(SymIntSpan a, SymIntSpan b) { return are_same_sizes(a, b, true); }

namespace {

bool same_strides(const Tensor& a, const Tensor& b) {
  for (size_t d = 0; d < a.strides().size(); ++d)
    if (!a.strides()[d].same_as(b.strides()[d]) && !guard_or(a.strides()[d] == b.strides()[d], false))
      return false;
  return true;
}

// The stride of `tensor` along dim d of the broadcast result; 0 where it is broadcast.
SymInt broadcast_stride(const Tensor& tensor, size_t d, SymIntSpan sizes) {
  size_t missing = sizes.size() - static_cast<size_t>(tensor.dim());
  if (d < missing) return 0;
  if (guard_or(tensor.sizes()[d - missing] == 1, false) && !guard_or(sizes[d] == 1, false)) return 0;
  return tensor.strides()[d - missing];
}

// Dims from the fastest to the slowest, by the strides of the inputs taken in order; ties keep their order.
SmallVector<size_t, 6> order_by_strides(std::span<const Tensor* const> inputs, SymIntSpan sizes) {
  SmallVector<size_t, 6> order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(d);
  // Above zero: `a` is slower than `b`. Zero: no input can tell.
  auto compare = [&](size_t a, size_t b) {
    for (const Tensor* tensor : inputs) {
      if (!tensor->defined()) continue;
      SymInt stride_a = broadcast_stride(*tensor, a, sizes), stride_b = broadcast_stride(*tensor, b, sizes);
      if (guard_or(stride_a == 0, false) || guard_or(stride_b == 0, false)) continue;
      if (guard_or(stride_a < stride_b, false)) return -1;
      if (guard_or(stride_a > stride_b, false)) return 1;
      if (guard_or(sizes[a] > sizes[b], false)) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      int c = compare(order[before], order[at]);
      if (c > 0) {
        std::swap(order[before], order[at]);
        at = before;
      } else if (c < 0) {
        break;
      }
    }
  }
  return order;
}

SymInts dense_strides(SymIntSpan sizes, const SmallVector<size_t, 6>& order) {
  SymInts strides(sizes.size());
  SymInt running = 1;
  bool row_major = true;
  for (size_t i = 0; i < order.size(); ++i) row_major &= order[i] == order.size() - 1 - i;
  if (row_major) return contiguous_strides(sizes);
  for (size_t d : order) {
    strides[d] = running;
    running = running * sizes[d];  // an empty dim makes the strides behind it 0, as in PyTorch
  }
  return strides;
}

}  // namespace

SymInts strides_beside_number(const Tensor& self) {
  // The usual case first: strides that say row-major without a doubt.
  if (!self.is_symbolic() && self.is_contiguous() && self.plain_numel() != 0) {
    SymInts plain = contiguous_strides(self.sizes());
    if (same_sizes(plain, self.strides())) return plain;
  }
  const Tensor* one[] = {&self};
  return dense_strides(self.sizes(), order_by_strides(one, self.sizes()));
}

SymInts pointwise_strides(std::initializer_list<const Tensor*> inputs, SymIntSpan sizes) {
  return pointwise_strides(std::span<const Tensor* const>(inputs.begin(), inputs.size()), sizes);
}

SymInts pointwise_strides(std::span<const Tensor* const> inputs, SymIntSpan sizes) {
  const Tensor* first = nullptr;
  bool all_same_sizes = true, all_contiguous = true, all_channels_last = true, all_dense = true,
       all_same_strides = true;
  for (const Tensor* tensor : inputs) {
    if (!tensor->defined()) continue;
    if (!same_sizes(tensor->sizes(), sizes)) {
      all_same_sizes = false;
      break;
    }
    all_contiguous = all_contiguous && tensor->is_contiguous();
    if (all_contiguous) {
      first = first ? first : tensor;
      continue;
    }
    all_channels_last = all_channels_last && tensor->is_contiguous(MemoryFormat::kChannelsLast);
    all_dense = all_dense && tensor->impl()->is_non_overlapping_and_dense();
    if (first) {
      all_channels_last = all_channels_last && first->is_contiguous(MemoryFormat::kChannelsLast);
      all_same_strides = all_same_strides && same_strides(*first, *tensor);
    }
    first = first ? first : tensor;
  }
  if (!first && all_same_sizes) return contiguous_strides(sizes);
  if (all_same_sizes) {
    if (all_contiguous) return contiguous_strides(sizes);
    if (all_channels_last) return strides_of_format(sizes, MemoryFormat::kChannelsLast);
    if (all_dense && all_same_strides) return SymInts(first->strides());
  }
  return dense_strides(sizes, order_by_strides(inputs, sizes));
}

namespace {

bool same_plain_sizes(const TensorImpl& a, const TensorImpl& b) {
  if (a.dim() != b.dim()) return false;
  for (size_t d = 0; d < a.sizes().size(); ++d)
    if (!a.sizes()[d].same_as(b.sizes()[d])) return false;
  return true;
}

// The first input, if all are contiguous and of the same plain sizes on one device: the usual case, of which
// nothing needs to be worked out. Null otherwise.
const TensorImpl* common_contiguous(std::initializer_list<const Tensor*> inputs) {
  const TensorImpl* first = nullptr;
  for (const Tensor* tensor : inputs) {
    const TensorImpl* impl = tensor->impl();
    if (!impl || impl->is_symbolic() || !impl->is_contiguous()) return nullptr;
    if (first && !(first->device() == impl->device() && same_plain_sizes(*first, *impl))) return nullptr;
    first = first ? first : impl;
  }
  return first;
}

}  // namespace

TensorSpec pointwise_spec(std::initializer_list<const Tensor*> inputs, DType dtype) {
  if (const TensorImpl* like = common_contiguous(inputs))
    return {dtype, like->device(), SymInts(like->sizes()), contiguous_strides(like->sizes())};
  TensorSpec spec{dtype, device_of(inputs), broadcast_sizes(inputs), {}};
  spec.strides = pointwise_strides(inputs, spec.sizes);
  return spec;
}

SymInts preserved_strides(const Tensor& like) {
  if (like.impl()->is_non_overlapping_and_dense()) return SymInts(like.strides());
  const Tensor* one[] = {&like};
  SymInts strides = dense_strides(like.sizes(), order_by_strides(one, like.sizes()));
  for (SymInt& stride : strides)
    if (!stride.is_symbolic() && stride.plain() == 0) return contiguous_strides(like.sizes());
  return strides;
}

MemoryFormat suggested_format(const Tensor& tensor) {
  if (tensor.dim() != 4) return MemoryFormat::kContiguous;
  SymIntSpan sizes = tensor.sizes(), strides = tensor.strides();
  if (guard_or(strides[1] == 0, false)) return MemoryFormat::kContiguous;
  SymInt least = 0;  // what the next dim's stride must reach
  for (size_t d : {1, 3, 2, 0}) {
    if (guard_or(sizes[d] == 0, false) || guard_or(strides[d] < least, false))
      return MemoryFormat::kContiguous;
    // All dims but the first have one element, and strides do not tell them apart.
    if (d == 0 && guard_or(least == strides[1], false)) return MemoryFormat::kContiguous;
    least = guard_or(sizes[d] == 1, false) ? strides[d] : strides[d] * sizes[d];
  }
  return MemoryFormat::kChannelsLast;
}

uint64_t dim_mask(IntSpan dims, int64_t rank, bool empty_means_all) {
  require(rank <= 64, "only tensors with up to 64 dims are supported");
  if (dims.empty() && empty_means_all) return rank == 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  uint64_t mask = 0;
  for (int64_t dim : dims) {
    uint64_t bit = uint64_t{1} << normalize_dim(dim, rank);
    require(!(mask & bit), "dim {} appears multiple times in the list of dims", normalize_dim(dim, rank));
    mask |= bit;
  }
  return mask;
}

SymInts reduced_sizes(SymIntSpan sizes, uint64_t mask, bool keepdim) {
  SymInts left;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!(mask >> d & 1)) left.push_back(sizes[d]);
    else if (keepdim) left.push_back(1);
  }
  return left;
}

Device device_of(std::initializer_list<const Tensor*> tensors) {
  std::optional<Device> device;
  for (const Tensor* tensor : tensors) {
    if (!tensor->defined()) continue;
    if (!device || (device->is_cpu() && !tensor->device().is_cpu())) device = tensor->device();
  }
  return device.value_or(kCpu);
}

namespace {
template <typename Result, typename Span>
Result expand_list(Span values, size_t count, const char* op, const char* name) {
  if (values.size() == count) return Result(values);
  require(values.size() == 1, "{}: expected {} to be one number or a list of {}, but got {} numbers", op,
          name, count, values.size());
  return Result(count, values[0]);
}
}  // namespace

SymInts expand_param(SymIntSpan values, size_t count, const char* op, const char* name) {
  return expand_list<SymInts>(values, count, op, name);
}
Ints expand_param(IntSpan values, size_t count, const char* op, const char* name) {
  return expand_list<Ints>(values, count, op, name);
}

}  // namespace weft
