#include "ops/support/view_geometry.h"

#include "weft/base/error.h"

namespace weft {

SymInts infer_size(SymIntSpan size, const SymInt& numel) {
  SymInts result(size);
  SymInt product = 1;
  std::optional<size_t> inferred;
  for (size_t d = 0; d < size.size(); ++d) {
    // A value from data that may be negative may be -1, which is another program: whoever knows says so.
    if (guard(size[d] == -1)) {
      require(!inferred, "only one dimension can be inferred, but the shape is {}", describe_sizes(size));
      inferred = d;
      continue;
    }
    if (!size[d].is_symbolic())
      require(size[d].plain() >= 0, "invalid shape dimension {} in {}", size[d].plain(),
              describe_sizes(size));
    product = product * size[d];
  }
  bool plain = !numel.is_symbolic() && !product.is_symbolic();
  if (inferred) {
    require(!(plain && product.plain() == 0 && numel.plain() == 0),
            "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can "
            "be any value and is ambiguous",
            describe_sizes(size));
    bool fits = plain ? product.plain() != 0 && numel.plain() % product.plain() == 0 : true;
    if (!fits) fail("shape '{}' is invalid for input of size {}", describe_sizes(size), numel.to_string());
    if (!plain) check(mod(numel, product) == 0, "the inferred dimension of a view must be whole");
    result[*inferred] = floor_div(numel, product);
    return result;
  }
  if (plain)
    require(product.plain() == numel.plain(), "shape '{}' is invalid for input of size {}",
            describe_sizes(size), numel.plain());
  else check(product == numel, "a view must have as many elements as its tensor");
  return result;
}

namespace {

bool is_undecided(SymIntSpan values) {
  for (const SymInt& value : values)
    if (value.is_symbolic() && !value.hint()) return true;
  return false;
}

bool is_row_major(SymIntSpan sizes, SymIntSpan strides) {
  SymInts dense = contiguous_strides(sizes);
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!guard_or(strides[d] == dense[d], false) && !guard_or(sizes[d] == 1, false)) return false;
  return true;
}

}  // namespace

namespace {

// Whether the examples differ, as a guard; that they agree is not one, or else it would fix a size.
bool differ(const SymInt& a, const SymInt& b) {
  const SymBool equal = a == b;
  return equal.hint() == false && !guard(equal);
}

// Asks what PyTorch asks of sizes with examples, dim by dim: whether the next size of the view is there, or
// which dims are merged and split for it. Memory without gaps can be seen as anything, but a program that
// PyTorch makes for one answer is not its program for the other.
void ask_merges_and_splits(SymIntSpan sizes, SymIntSpan target) {
  size_t next = 0;
  std::optional<SymInt> left;  // of a dim that was split
  for (const SymInt& length : target) {
    if (!left && next == sizes.size()) return;  // only ones are to come
    SymInt current = left ? *left : sizes[next++];
    left.reset();
    if (!differ(current, length)) continue;
    while (next < sizes.size() && differ(mod(current, length), 0)) current = current * sizes[next++];
    if (differ(current, length)) left = floor_div(current, length);
  }
}

}  // namespace

std::optional<SymInts> view_strides(SymIntSpan sizes, SymIntSpan strides, SymIntSpan target) {
  // Sizes that only data can tell do not answer the questions below; memory without gaps can be seen as
  // anything.
  if ((is_undecided(sizes) || is_undecided(target)) && is_row_major(sizes, strides))
    return contiguous_strides(target);
  // PyTorch asks nothing for these two, so that the same guards appear.
  bool flattens = target.size() == 1 && sizes.size() > 1,
       splits_once = target.size() == 2 && sizes.size() == 1;
  if ((flattens || splits_once) && !sizes.is_plain() && is_row_major(sizes, strides))
    return contiguous_strides(target);
  if (!sizes.is_plain() && !is_undecided(sizes) && !is_undecided(target) && is_row_major(sizes, strides) &&
      guard_or(sym_product(sizes) != 0, false)) {
    ask_merges_and_splits(sizes, target);
    return contiguous_strides(target);
  }
  SymInt numel = 1;
  for (const SymInt& size : sizes) numel = numel * size;
  if (guard_or(numel == 0, false)) {
    // Nothing to address: keep the strides where nothing changes, as PyTorch does.
    bool same = sizes.size() == target.size();
    for (size_t d = 0; same && d < sizes.size(); ++d) same = guard_or(sizes[d] == target[d], false);
    if (same) return SymInts(strides);
    SymInts fresh(target.size());
    SymInt running = 1;
    for (size_t d = target.size(); d-- > 0;) {
      fresh[d] = running;
      running = running * max(target[d], SymInt(1));
    }
    return fresh;
  }
  SymInts result(target.size());
  auto at = static_cast<int64_t>(target.size()) - 1;
  SymInt chunk_base = sizes.empty() ? SymInt(1) : strides[sizes.size() - 1];
  SymInt chunk = 1, viewed = 1;
  for (auto d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    auto k = static_cast<size_t>(d);
    chunk = chunk * sizes[k];
    // A chunk of memory ends where the next dim does not continue it.
    bool ends = d == 0 || (!guard_or(sizes[k - 1] == 1, false) &&
                           !guard_or(strides[k - 1] == chunk * chunk_base, false));
    if (!ends) continue;
    while (at >= 0 &&
           (guard_or(viewed < chunk, false) || guard_or(target[static_cast<size_t>(at)] == 1, false))) {
      result[static_cast<size_t>(at)] = viewed * chunk_base;
      viewed = viewed * target[static_cast<size_t>(at)];
      --at;
    }
    if (!guard_or(viewed == chunk, false)) return std::nullopt;
    if (d > 0) {
      chunk_base = strides[k - 1];
      chunk = 1;
      viewed = 1;
    }
  }
  if (sizes.empty())
    for (; at >= 0; --at) result[static_cast<size_t>(at)] = 1;
  return at == -1 ? std::optional(result) : std::nullopt;
}

namespace {

// Whether it holds: at the hints, with a guard; where data decides, only if it holds for all of it.
// (`guard_or` would take a size for at least 2.)
bool holds(const SymBool& condition) { return condition.hint() ? guard(condition) : known(condition); }

}  // namespace

SymInt wrapped_position(const SymInt& position, const SymInt& size) {
  if (!position.is_symbolic() && !size.is_symbolic())
    return position.plain() < 0 ? position.plain() + size.plain() : position.plain();
  if (holds(position >= 0)) return position;
  return holds(position < 0) ? position + size : sym_ite(position < 0, position + size, position);
}

namespace {

// A negative position counts from the end; then it is brought into [0, size]. One case is guarded, in
// PyTorch's order; where data leaves them all open, the result is a formula that holds in each.
SymInt clamp_position(const SymInt& position, const SymInt& size) {
  if (!position.is_symbolic() && !size.is_symbolic()) {
    int64_t p = position.plain(), n = size.plain();
    if (p < 0) p += n;
    return p < 0 ? 0 : p > n ? n : p;
  }
  if (position.same_as(size) || holds((position >= 0) & (position <= size))) return position;
  if (holds((position < 0) & (position >= -size))) return position + size;
  if (holds(position < -size)) return 0;
  if (holds(position > size)) return size;
  return max(min(wrapped_position(position, size), size), SymInt(0));
}

// end - start, at least 0
SymInt distance(const SymInt& start, const SymInt& end) {
  SymInt length = end - start;
  return holds(length >= 0) ? length : holds(length <= 0) ? SymInt(0) : max(length, SymInt(0));
}

}  // namespace

SliceRange slice_range(const SymInt& size, const std::optional<SymInt>& start,
                       const std::optional<SymInt>& end, const SymInt& step) {
  if (!step.is_symbolic()) require(step.plain() > 0, "slice step must be positive, but got {}", step.plain());
  else check(step > 0, "slice step must be positive");
  SymInt first = clamp_position(start.value_or(0), size);
  bool open = !end || (!end->is_symbolic() && end->plain() == INT64_MAX);
  SymInt last = open ? size : clamp_position(*end, size);
  return {first, floor_div(distance(first, last) + step - 1, step)};
}

size_t reached_bytes(SymIntSpan sizes, SymIntSpan strides, const SymInt& offset, DType dtype) {
  require(offset.plain() >= 0, "Tensor: invalid storage offset {}", offset.plain());
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    require(sizes[d].plain() >= 0, "Trying to create tensor with negative dimension {}: {}", sizes[d].plain(),
            describe_sizes(sizes));
    require(strides[d].plain() >= 0,
            "as_strided: Negative strides are not supported at the moment, got strides: {}",
            describe_sizes(strides));
    empty |= sizes[d].plain() == 0;
  }
  if (empty) return 0;
  int64_t end = 0, bytes = 0;
  bool overflows = __builtin_add_overflow(offset.plain(), int64_t{1}, &end);
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t reach = 0;
    overflows |= __builtin_mul_overflow(sizes[d].plain() - 1, strides[d].plain(), &reach);
    overflows |= __builtin_add_overflow(end, reach, &end);
  }
  overflows |= __builtin_mul_overflow(end, int64_t{item_size(dtype)}, &bytes);
  require(!overflows, "Storage size calculation overflowed with sizes={} and strides={}",
          describe_sizes(sizes), describe_sizes(strides));
  return static_cast<size_t>(bytes);
}

}  // namespace weft
