// Tensors made of copies of their elements, parts of matrices, and grids.
#include <cstring>
#include <limits>

#include "ops/decompositions/decompositions.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "weft/ops/fake.h"

namespace weft::ops {
namespace {

// --- repeat ----------------------------------------------------------------------------------------------

// The sizes with as many dims as there are repeats: ones in front.
SymInts padded_sizes(SymIntSpan sizes, size_t rank) {
  SymInts padded(sizes);
  while (padded.size() < rank) padded.insert(0, 1);
  return padded;
}
TensorSpec repeat_meta(const Tensor& self, SymIntSpan repeats) {
  require(static_cast<int64_t>(repeats.size()) >= self.dim(),
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  SymInts sizes = padded_sizes(self.sizes(), repeats.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    require(!guard_or(repeats[d] < 0, false), "Trying to create tensor with negative dimension {}",
            repeats[d].to_string());
    sizes[d] = sizes[d] * repeats[d];
  }
  return contiguous_spec(sizes, self.dtype(), self.device());
}
// [r0, s0, r1, s1, ...]: each dim of the result as how often, and what.
SymInts in_pairs(SymIntSpan sizes, SymIntSpan repeats) {
  SymInts pairs, padded = padded_sizes(sizes, repeats.size());
  for (size_t d = 0; d < repeats.size(); ++d) {
    pairs.push_back(repeats[d]);
    pairs.push_back(padded[d]);
  }
  return pairs;
}
void repeat_into(const Tensor& self, SymIntSpan repeats, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  const SymInts pairs = in_pairs(self.sizes(), repeats), once(repeats.size(), 1);
  write_dense(out, [&](const Tensor& dense) {
    copy_values(view(dense, pairs), expand(reshape(self, in_pairs(self.sizes(), once)), pairs));
  });
}
Grads repeat_vjp(const Vjp& v) {
  auto holder = boxing::Unboxed<SymIntSpan>(v.arg(1));
  SymIntSpan repeats = holder.get();
  if (repeats.empty()) return {v.grad()};
  Ints copies;
  for (size_t d = 0; d < repeats.size(); ++d) copies.push_back(static_cast<int64_t>(2 * d));
  Tensor total = sum(reshape(v.grad(), in_pairs(v.sizes(0), repeats)), copies);
  return {reshape(total, v.sizes(0))};
}
Batched repeat_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  SymInts repeats(holder.get());
  require(static_cast<int64_t>(repeats.size()) >= self.dim() - 1,
          "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  SymInts sizes(self.sizes());
  while (sizes.size() - 1 < repeats.size()) sizes.insert(1, 1);
  repeats.insert(0, 1);
  return {repeat(reshape(self, sizes), repeats), {0}};
}

// --- repeat_interleave -----------------------------------------------------------------------------------

void check_repeats(const Tensor& repeats) {
  require(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  require(repeats.dtype() == kInt64 || repeats.dtype() == kInt32,
          "repeats has to be Long or Int tensor, but it is {}", describe(repeats));
}
TensorSpec interleaved_meta(const Tensor& repeats, const std::optional<SymInt>& output_size) {
  check_repeats(repeats);
  const SymInt count = output_size
                           ? *output_size
                           : unbacked_size("repeat_interleave", SymInt(std::numeric_limits<int64_t>::max()));
  return contiguous_spec({count}, repeats.dtype(), repeats.device());
}
// Number i as often as repeats[i] says.
Tensor interleaved(const Tensor& repeats, const std::optional<SymInt>& output_size) {
  check_repeats(repeats);
  const Tensor counts = dense_as(repeats, kInt64);
  int64_t total = 0;
  for (int64_t i = 0; i < counts.plain_numel(); ++i) {
    require(counts.data<int64_t>()[i] >= 0, "repeats can not be negative, but repeats[{}] is {}", i,
            counts.data<int64_t>()[i]);
    total += counts.data<int64_t>()[i];
  }
  require(!output_size || guard_int(*output_size) == total,
          "allocated size does not match required size: output_size is {}, but the repeats add up to {}",
          output_size ? output_size->to_string() : "", total);
  Tensor numbers = allocate_contiguous({total}, kInt64), out = allocate_contiguous({total}, repeats.dtype());
  int64_t* at = numbers.data<int64_t>();
  for (int64_t i = 0; i < counts.plain_numel(); ++i) at = std::fill_n(at, counts.data<int64_t>()[i], i);
  copy_values(out, numbers);
  return out;
}
Tensor interleave_by_tensor(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                            const std::optional<SymInt>& output_size) {
  Tensor input = dim ? self : flatten(self);
  const int64_t d = normalize_dim(dim.value_or(0), input.dim());
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && guard_or(repeats.size(0) == 1, false))) {
    counts = expand(reshape(repeats, {1}), {input.size(d)});
  } else if (repeats.dim() == 1) {
    require(guard_or(repeats.size(0) == input.size(d), true),
            "repeats must have the same size as input along dim, but got repeats.size(0) = {} and "
            "input.size({}) = {}",
            repeats.size(0).to_string(), d, input.size(d).to_string());
  } else {
    fail("repeats must be 0-dim or 1-dim tensor, but it is {}", describe(repeats));
  }
  return index_select(input, d, repeat_interleave(counts, output_size));
}
Tensor interleave_by_number(const Tensor& self, const SymInt& repeats, std::optional<int64_t> dim,
                            const std::optional<SymInt>& output_size) {
  Tensor input = dim ? self : flatten(self);
  const int64_t d = normalize_dim(dim.value_or(0), input.dim());
  require(!guard_or(repeats < 0, false), "Repeats must be non-negative, but got {}", repeats.to_string());
  require(!output_size || guard_or(*output_size == input.size(d) * repeats, true),
          "repeat_interleave: Invalid output_size, expected {} but got {}",
          (input.size(d) * repeats).to_string(), output_size ? output_size->to_string() : "");
  input = unsqueeze(input, d + 1);
  SymInts sizes(input.sizes());
  sizes[static_cast<size_t>(d) + 1] = repeats;
  return flatten(clone(expand(input, sizes), MemoryFormat::kContiguous), d, d + 1);
}

// --- roll ------------------------------------------------------------------------------------------------

// A shift of each dim; without dims, one shift of the elements in a row.
struct Shifts {
  Ints shifts, dims;
  bool flat = false;
};
Shifts shifts_of(int64_t rank, SymIntSpan shifts, IntSpan dims) {
  Shifts all;
  require(!shifts.empty(), "`shifts` required");
  for (const SymInt& shift : shifts) all.shifts.push_back(guard_int(shift));
  all.flat = dims.empty() && shifts.size() == 1;
  require(all.flat || dims.size() == shifts.size(), "shifts and dimensions must align. shifts: {}, dims:{}",
          shifts.size(), dims.size());
  for (int64_t dim : dims) {
    require(rank > 0, "Dimension specified as {} but tensor has no dimensions", dim);
    all.dims.push_back(normalize_dim(dim, rank));
  }
  return all;
}
TensorSpec roll_meta(const Tensor& self, SymIntSpan shifts, IntSpan dims) {
  shifts_of(self.dim(), shifts, dims);
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
Tensor rolled(const Tensor& self, int64_t shift, int64_t dim) {
  const int64_t size = self.plain_sizes()[static_cast<size_t>(dim)];
  if (size == 0) return self;
  const int64_t start = ((-shift % size) + size) % size;
  if (start == 0) return self;
  return cat({slice(self, dim, start, size), slice(self, dim, 0, start)}, dim);
}
void roll_into(const Tensor& self, SymIntSpan shifts, IntSpan dims, const Tensor& out) {
  const Shifts all = shifts_of(self.dim(), shifts, dims);
  if (all.flat) return copy_values(out, view(rolled(reshape(self, {-1}), all.shifts[0], 0), self.sizes()));
  Tensor moved = self;
  for (size_t i = 0; i < all.dims.size(); ++i) moved = rolled(moved, all.shifts[i], all.dims[i]);
  copy_values(out, moved);
}
Tensor roll_parts(const Tensor& self, SymIntSpan shifts, IntSpan dims) {
  const Shifts all = shifts_of(self.dim(), shifts, dims);
  auto moved_along = [](const Tensor& tensor, int64_t shift, int64_t dim) {
    const SymInt size = tensor.size(dim);
    if (guard_or(size == 0, false)) return tensor;
    const SymInt start = mod(size - mod(SymInt(shift), size), size);
    Tensor from = arange(0, Scalar(size), 1, kInt64, std::nullopt, tensor.device());
    return index_select(tensor, dim, fmod(from + Scalar(start), Scalar(size)));
  };
  if (all.flat) return view(moved_along(flatten(self), all.shifts[0], 0), self.sizes());
  Tensor moved = self;
  for (size_t i = 0; i < all.dims.size(); ++i) moved = moved_along(moved, all.shifts[i], all.dims[i]);
  return moved.is_same(self) ? clone(self) : moved;
}
Batched roll_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  auto shifts = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  auto dims = boxing::Unboxed<IntSpan>(call.args()[2]);
  const Shifts all = shifts_of(self.dim() - 1, shifts.get(), dims.get());
  if (all.flat) {
    Tensor rows = reshape(self, {self.size(0), -1});
    return {view(roll(rows, shifts.get(), IntSpan(Ints{1})), self.sizes()), {0}};
  }
  Ints behind;
  for (int64_t dim : all.dims) behind.push_back(dim + 1);
  return {roll(self, shifts.get(), behind), {0}};
}

// --- triangles -------------------------------------------------------------------------------------------

enum class Triangle : uint8_t { kUpper, kLower };

template <Triangle triangle>
struct Tri {
  static constexpr const char* kName = triangle == Triangle::kUpper ? "triu" : "tril";
  static TensorSpec meta(const Tensor& self, const SymInt&) {
    require(self.dim() >= 2, "{}: input tensor must have at least 2 dimensions", kName);
    return contiguous_spec(self.sizes(), self.dtype(), self.device());
  }
  static void into(const Tensor& self, const SymInt& diagonal, const Tensor& out) {
    if (out.plain_numel() == 0) return;
    const int64_t k = guard_int(diagonal), rows = self.plain_sizes()[static_cast<size_t>(self.dim()) - 2],
                  columns = self.plain_sizes()[static_cast<size_t>(self.dim()) - 1];
    write_dense(out, [&](const Tensor& dense) {
      if (!dense.is_same(self)) copy_values(dense, self);
      char* data = static_cast<char*>(dense.raw_data());
      const auto width = static_cast<size_t>(item_size(dense.dtype()));
      for (int64_t row = 0; row < dense.plain_numel() / columns; ++row) {
        // The first column of the upper triangle, or the first behind the lower one.
        const double edge = static_cast<double>(row % rows) + static_cast<double>(k) +
                            (triangle == Triangle::kLower ? 1.0 : 0.0);
        const auto split = static_cast<size_t>(std::clamp(edge, 0.0, static_cast<double>(columns)));
        char* at = data + static_cast<size_t>(row * columns) * width;
        if (triangle == Triangle::kUpper) std::memset(at, 0, split * width);
        else std::memset(at + split * width, 0, (static_cast<size_t>(columns) - split) * width);
      }
    });
  }
  static Tensor of(const Tensor& self, const SymInt& diagonal) {
    return triangle == Triangle::kUpper ? triu(self, diagonal) : tril(self, diagonal);
  }
  static Tensor parts(const Tensor& self, const SymInt& diagonal) {
    meta(self, diagonal);
    auto numbers = [&](int64_t dim) {
      return arange(0, Scalar(self.size(dim)), 1, kInt64, std::nullopt, self.device());
    };
    Tensor columns = unsqueeze(numbers(-1), -2), rows = unsqueeze(numbers(-2), -1), distance = columns - rows;
    Tensor is_kept =
        triangle == Triangle::kUpper ? distance >= Scalar(diagonal) : distance <= Scalar(diagonal);
    if (self.dtype() == kBool) return contiguous(logical_and(is_kept, self));
    return contiguous(where(is_kept, self, Scalar(0)));
  }
  static Grads vjp(const Vjp& v) { return {of(v.grad(), v.arg<SymInt>(1))}; }
  static Batched batch(const Batch& call) {
    Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
    require(self.dim() >= 3, "{}: input tensor must have at least 2 dimensions", kName);
    return {of(self, call.arg<SymInt>(1)), {0}};
  }
};
using Upper = Tri<Triangle::kUpper>;
using Lower = Tri<Triangle::kLower>;
Samples triangle_samples() {
  return {{"square", {f64({3, 3})}},
          {"wide", {f64({2, 3, 4}), 1}},
          {"tall", {transposed(f64({4, 3})), -1}},
          {"outside", {i64({2, 3}), -5}}};
}

// --- windows ---------------------------------------------------------------------------------------------

Tensor unfold_kernel(const Tensor& self, int64_t dim, int64_t size, int64_t step) {
  const bool is_number = self.dim() == 0;
  const int64_t d = normalize_dim(dim, self.dim());
  const SymInt length = is_number ? SymInt(1) : self.size(d);
  require(size >= 0, "size is {} but must be >= 0", size);
  require(!guard_or(length < size, false), "maximum size for tensor at dimension {} is {} but size is {}", d,
          length.to_string(), size);
  require(step > 0, "step is {} but must be > 0", step);
  SymInts sizes(self.sizes()), strides(self.strides());
  const SymInt stride = is_number ? SymInt(1) : strides[static_cast<size_t>(d)];
  sizes.push_back(size);
  strides.push_back(stride);
  if (!is_number) {
    sizes[static_cast<size_t>(d)] = floor_div(length - size, SymInt(step)) + 1;
    strides[static_cast<size_t>(d)] = stride * step;
  }
  return alias_with(self, std::move(sizes), std::move(strides), self.storage_offset());
}
// The elements of the windows: of each window and place in it, the position in the dim.
Tensor window_positions(const SymInt& length, int64_t size, int64_t step, Device device) {
  const SymInt windows = floor_div(length - size, SymInt(step)) + 1;
  Tensor starts = arange(0, Scalar(windows), 1, kInt64, std::nullopt, device) * Scalar(step);
  return unsqueeze(starts, 1) + arange(0, Scalar(size), 1, kInt64, std::nullopt, device);
}
// Puts windows back over `base`, or adds them to it.
Tensor put_windows(const Tensor& base, const Tensor& windows, int64_t dim, int64_t size, int64_t step,
                   bool accumulate) {
  if (base.dim() == 0) return accumulate ? base + reshape(windows, SymInts{}) : reshape(windows, SymInts{});
  const int64_t d = normalize_dim(dim, base.dim());
  std::vector<Tensor> places(static_cast<size_t>(d));
  places.push_back(window_positions(base.size(d), size, step, base.device()));
  return index_put(base, places, movedim(windows, -1, d + 1), accumulate);
}
Tensor unfold_inverse(const Tensor& base, const Tensor& mutated, int64_t dim, int64_t size, int64_t step) {
  return put_windows(base, mutated, dim, size, step, false);
}
TensorSpec unfold_backward_meta(const Tensor& grad, SymIntSpan sizes, int64_t dim, int64_t size,
                                int64_t step) {
  Tensor whole = allocate(contiguous_spec(sizes, grad.dtype(), kMeta));
  const Tensor windows = unfold_kernel(whole, dim, size, step);
  require(may_be_same_sizes(windows.sizes(), grad.sizes()),
          "unfold_backward: expected grad_in of sizes {}, but got {}", describe_sizes(windows.sizes()),
          describe(grad));
  return contiguous_spec(sizes, grad.dtype(), grad.device());
}
Tensor unfold_backward_parts(const Tensor& grad, SymIntSpan sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor start = full(sizes, 0, grad.dtype(), Layout::kStrided, grad.device());
  return put_windows(start, grad, dim, size, step, true);
}
void unfold_backward_into(const Tensor& grad, SymIntSpan sizes, int64_t dim, int64_t size, int64_t step,
                          const Tensor& out) {
  copy_values(out, unfold_backward_parts(grad, sizes, dim, size, step));
}
Batched unfold_batch(const Batch& call) {
  Tensor self = batch_first(call.tensor(0), call.batch_dim(0));
  const int64_t rank = self.dim() - 1, dim = normalize_dim(call.arg<int64_t>(1), rank),
                size = call.arg<int64_t>(2), step = call.arg<int64_t>(3);
  if (rank > 0) return {unfold(self, dim + 1, size, step), {0}};
  return {squeeze(unfold(unsqueeze(self, 1), 1, size, step), 1), {0}};
}

// --- grids -----------------------------------------------------------------------------------------------

Tensor outer_composite(const Tensor& self, const Tensor& other) {
  require(self.dim() == 1, "outer: Expected 1-D argument self, but got {}-D", self.dim());
  require(other.dim() == 1, "outer: Expected 1-D argument vec2, but got {}-D", other.dim());
  return reshape(self, {self.size(0), 1}) * other;
}
// Each vector along its own dim, expanded over the others.
std::vector<Tensor> grids(TensorSpan tensors) {
  require(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  SymInts sizes;
  for (const Tensor& tensor : tensors) {
    require(tensor.dim() <= 1, "Expected 0D or 1D tensor in the tensor list but got: {}", describe(tensor));
    require(tensor.dtype() == tensors[0].dtype(),
            "meshgrid expects all tensors to have the same dtype, but got {} and {}", describe(tensors[0]),
            describe(tensor));
    sizes.push_back(tensor.numel());
  }
  std::vector<Tensor> all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    SymInts shape(sizes.size(), 1);
    shape[i] = sizes[i];
    all.push_back(expand(view(tensors[i], shape), sizes));
  }
  return all;
}
std::vector<Tensor> meshgrid_indexing(TensorSpan tensors, std::string_view indexing) {
  require(indexing == "ij" || indexing == "xy",
          "meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}", indexing);
  if (indexing == "ij" || tensors.size() < 2) return grids(tensors);
  std::vector<Tensor> swapped(tensors.begin(), tensors.end());
  std::swap(swapped[0], swapped[1]);
  std::vector<Tensor> all = grids(swapped);
  std::swap(all[0], all[1]);
  return all;
}
Tensor unflatten_composite(const Tensor& self, int64_t dim, SymIntSpan sizes) {
  const int64_t d = normalize_dim(dim, self.dim());
  require(!sizes.empty(), "unflatten: sizes must be non-empty");
  const SymInt whole = self.size(d);
  SymInt known_part = 1;
  int open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is_symbolic() || sizes[i].plain() != -1) known_part = known_part * sizes[i];
    else if (open < 0) open = static_cast<int>(i);
    else fail("only one dimension can be inferred");
  }
  const bool fits = open < 0
                        ? guard_or(known_part == whole, true)
                        : !guard_or(known_part == 0, false) && guard_or(mod(whole, known_part) == 0, true);
  require(fits,
          "unflatten: Provided sizes {} don't multiply up to the size of dim {} ({}) in the input tensor",
          describe_sizes(sizes), d, whole.to_string());
  SymInts shape;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (i != d) shape.push_back(self.size(i));
    else
      for (size_t k = 0; k < sizes.size(); ++k)
        shape.push_back(static_cast<int>(k) == open ? floor_div(whole, known_part) : sizes[k]);
  }
  return view(self, shape);
}
// A row of zeros with a one for each class. Classes that are too large are seen where the values are.
Tensor one_hot_composite(const Tensor& self, int64_t num_classes) {
  require(self.dtype() == kInt64, "one_hot is only applicable to index tensor of type LongTensor, but got {}",
          describe(self));
  require(num_classes >= -1,
          "num_classes must be positive, or -1 for the largest class and one more, but is {}", num_classes);
  if (guard_or(self.numel() == 0, false)) {
    require(num_classes > 0, "Can not infer total number of classes from empty tensor.");
    SymInts sizes(self.sizes());
    sizes.push_back(num_classes);
    return zeros(sizes, kInt64, std::nullopt, self.device());
  }
  require(num_classes != 0, "num_classes should be positive");
  const bool is_plain = self.flags() == 0 && layer_state().active == 0 && self.storage()->has_memory();
  if (is_plain) {
    require(self.min().item().to_int() >= 0, "Class values must be non-negative.");
    require(num_classes < 0 || self.max().item().to_int() < num_classes,
            "Class values must be smaller than num_classes.");
  }
  const Scalar count = num_classes < 0 ? Scalar(self.max().item().to_sym_int() + 1) : Scalar(num_classes);
  return eq(unsqueeze(self, -1), arange(count, kInt64, std::nullopt, self.device())).to(kInt64);
}

Samples interleave_samples() {
  return {{"vector", {f64({3}), i64_list({1, 0, 2})}}, {"columns", {f64({2, 3}), i64_list({2, 1, 0}), 1}}};
}

}  // namespace

WEFT_OPERATOR(repeat) = {
    .schema = "aten::repeat(Tensor self, SymInt[] repeats) -> Tensor",
    .out = "aten::repeat.out(Tensor self, SymInt[] repeats, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&repeat_meta>(),
    .kernel = structured_exact<&repeat_meta, &repeat_into>(),
    .vjp = {.saves = sizes(0), .rule = repeat_vjp},
    .batch = repeat_batch,
    .samples =
        [] {
          return Samples{{"matrix", {f64({2, 3}), ints({2, 2})}},
                         {"more_dims", {f64({2}), ints({3, 1})}},
                         {"none", {f64({2}), ints({0})}},
                         {"scalar", {f64({}), ints({})}}};
        },
};

WEFT_OPERATOR(repeat_interleave_tensor) = {
    .schema = "aten::repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    .out =
        "aten::repeat_interleave.Tensor_out(Tensor repeats, *, SymInt? output_size=None, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kDataDependent | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&interleaved_meta>(),
    .kernel = plain<&interleaved, OutType::kExact>(),
    .samples = [] { return Samples{{"plain", {i64_list({1, 0, 2})}}}; },
};

WEFT_OPERATOR(repeat_interleave_self_tensor) = {
    .schema =
        "aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? "
        "output_size=None) -> Tensor",
    .traits = Traits::kDataDependent | Traits::kNotBatchable,
    .composite = {.functional = function<&interleave_by_tensor>()},
    .samples = interleave_samples,
};

WEFT_OPERATOR(repeat_interleave_self_int) = {
    .schema =
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? "
        "output_size=None) -> Tensor",
    .composite = {.functional = function<&interleave_by_number>()},
    .samples = [] { return Samples{{"vector", {f64({3}), 2}}, {"columns", {f64({2, 3}), 2, 1}}}; },
};

WEFT_OPERATOR(roll) = {
    .schema = "aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    .out = "aten::roll.out(Tensor self, SymInt[1] shifts, int[1] dims=[], *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&roll_meta>(),
    .kernel = structured_exact<&roll_meta, &roll_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto shifts = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  auto dims = boxing::Unboxed<IntSpan>(v.arg(2));
                  SymInts back;
                  for (const SymInt& shift : shifts.get()) back.push_back(-shift);
                  return Grads{roll(v.grad(), back, dims.get())};
                }},
    .batch = roll_batch,
    .decompose = function<&roll_parts>(),
    .samples =
        [] {
          return Samples{{"flat", {f64({2, 3}), ints({1})}},
                         {"dims", {f64({2, 3}), ints({-1, 4}), ints({0, 1})}}};
        },
};

WEFT_OPERATOR(triu) = {
    .schema = "aten::triu(Tensor self, SymInt diagonal=0) -> Tensor",
    .inplace = "aten::triu_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
    .out = "aten::triu.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&Upper::meta>(),
    .kernel = structured_exact<&Upper::meta, &Upper::into, true>(),
    .vjp = {.rule = Upper::vjp},
    .batch = Upper::batch,
    .decompose = function<&Upper::parts>(),
    .samples = triangle_samples,
};

WEFT_OPERATOR(tril) = {
    .schema = "aten::tril(Tensor self, SymInt diagonal=0) -> Tensor",
    .inplace = "aten::tril_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)",
    .out = "aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&Lower::meta>(),
    .kernel = structured_exact<&Lower::meta, &Lower::into, true>(),
    .vjp = {.rule = Lower::vjp},
    .batch = Lower::batch,
    .decompose = function<&Lower::parts>(),
    .samples = triangle_samples,
};

WEFT_OPERATOR(unfold) = {
    .schema = "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    .traits = Traits::kView | Traits::kLinear | Traits::kReadsConjNeg,
    .meta = function<&unfold_kernel>(),
    .kernel = view_kernels<&unfold_kernel>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{unfold_backward(v.grad(), v.sizes(0), v.arg<int64_t>(1), v.arg<int64_t>(2),
                                               v.arg<int64_t>(3))};
                }},
    .batch = unfold_batch,
    .inverse = function<&unfold_inverse>(),
    .samples =
        [] { return Samples{{"overlapping", {f64({6}), 0, 3, 2}}, {"columns", {f64({2, 5}), 1, 2, 3}}}; },
};

WEFT_OPERATOR(unfold_backward) = {
    .schema =
        "aten::unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    .out =
        "aten::unfold_backward.out(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&unfold_backward_meta>(),
    .kernel = structured_exact<&unfold_backward_meta, &unfold_backward_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{unfold(v.grad(), v.arg<int64_t>(2), v.arg<int64_t>(3), v.arg<int64_t>(4))};
                }},
    .batch = loop_batch,
    .decompose = function<&unfold_backward_parts>(),
    .samples = [] { return Samples{{"overlapping", {f64({2, 3}), ints({6}), 0, 3, 2}}}; },
};

WEFT_OPERATOR(outer) = {
    .schema = "aten::outer(Tensor self, Tensor vec2) -> Tensor",
    .out = "aten::outer.out(Tensor self, Tensor vec2, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite<&outer_composite>(),
    .samples = [] { return Samples{{"plain", {f64({2}), f64({3})}}}; },
};

WEFT_OPERATOR(meshgrid) = {
    .schema = "aten::meshgrid(Tensor[] tensors) -> Tensor[]",
    .composite = {.functional = function<&grids>()},
    .samples = [] { return Samples{{"two", {Value::list({f64({2}), f64({3})})}}}; },
};

WEFT_OPERATOR(meshgrid_indexing) = {
    .schema = "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
    .composite = {.functional = function<&meshgrid_indexing>()},
    .samples =
        [] {
          return Samples{{"ij", {Value::list({f64({2}), f64({3})}), "ij"}},
                         {"xy", {Value::list({f64({2}), f64({3})}), "xy"}}};
        },
};

WEFT_OPERATOR(unflatten_int) = {
    .schema = "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
    .traits = Traits::kMayAlias,
    .composite = {.functional = function<&unflatten_composite>()},
    .samples = [] { return Samples{{"infer", {f64({2, 6}), 1, ints({-1, 3})}}}; },
};

WEFT_OPERATOR(one_hot) = {
    .schema = "aten::one_hot(Tensor self, int num_classes=-1) -> Tensor",
    .composite = {.functional = function<&one_hot_composite>()},
    .samples = [] { return Samples{{"plain", {i64({3}, 0, 4), 4}}}; },
};

}  // namespace weft::ops
