// Elements chosen by a mask, and where the true ones are. How many there are, only data can tell.
#include "ops/cpu/true_elements.h"
#include "ops/decompositions/decompositions.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "ops/support/masked_fill.h"
#include "ops/support/number_range.h"
#include "weft/ops/fake.h"

namespace weft::ops {
namespace {

constexpr Traits kCounts = Traits::kDataDependent | Traits::kNotBatchable;

// --- masked_fill -----------------------------------------------------------------------------------------

void check_mask(const Tensor& mask) {
  require(mask.dtype() == kBool, "masked_fill_ only supports boolean masks, but got mask with dtype {}",
          dtype_name(mask.dtype()));
}
TensorSpec masked_fill_tensor_meta(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_mask(mask);
  require(value.dim() == 0,
          "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
          value.dim());
  return contiguous_spec(broadcast_sizes(self.sizes(), mask.sizes()), self.dtype(), self.device());
}
template <typename Number>
PointwiseCall masked_fill_lower(const Tensor& self, const Tensor&, const Number&) {
  return masked_fill_call(self);
}
void masked_fill_tensor_into(const Tensor& self, const Tensor& mask, const Tensor& value, const Tensor& out) {
  require_value_fits(value, self.dtype());
  fill_chosen(self, mask, value, out);
}
TensorSpec masked_fill_meta(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_mask(mask);
  require_fits(value, self.dtype());
  return contiguous_spec(broadcast_sizes(self.sizes(), mask.sizes()), self.dtype(), self.device());
}
void masked_fill_into(const Tensor& self, const Tensor& mask, const Scalar& value, const Tensor& out) {
  fill_chosen(self, mask, wrapped_number(value), out);
}

// --- nonzero ---------------------------------------------------------------------------------------------

TensorSpec nonzero_spec(const Tensor& self, const SymInt& count) {
  // Column-major: the indices of each dim are contiguous.
  return {kInt64, self.device(), {count, self.dim()}, {1, count}};
}
TensorSpec nonzero_meta(const Tensor& self) {
  return nonzero_spec(self, unbacked_size("nonzero", self.numel()));
}
Tensor nonzero_kernel(const Tensor& self) {
  Tensor mask = dense_as(self, kBool);
  cpu::TrueElements found(mask.data<bool>(), mask.plain_numel());
  Tensor out = allocate(nonzero_spec(self, found.count()));
  int64_t* columns = out.data<int64_t>();
  int64_t count = found.count();
  IntSpan sizes = self.plain_sizes();
  found.for_each([&](int64_t number, int64_t position) {
    for (size_t d = sizes.size(); d-- > 0; position /= sizes[d])
      columns[static_cast<int64_t>(d) * count + number] = position % sizes[d];
  });
  return out;
}
// One tensor of positions for each dim; a 0-dim tensor counts as a vector of one.
std::vector<Tensor> where_composite(const Tensor& condition) {
  return unbind(nonzero(condition.dim() == 0 ? unsqueeze(condition, 0) : condition), 1);
}

// --- masked_select ---------------------------------------------------------------------------------------

void check_select(const Tensor& mask) {
  require(mask.dtype() == kBool, "masked_select: expected BoolTensor for mask, but got {}", describe(mask));
}
TensorSpec masked_select_meta(const Tensor& self, const Tensor& mask) {
  check_select(mask);
  SymInt most = 1;
  for (const SymInt& size : broadcast_sizes(self.sizes(), mask.sizes())) most = most * size;
  return contiguous_spec({unbacked_size("masked_select", most)}, self.dtype(), self.device());
}
Tensor masked_select_kernel(const Tensor& self, const Tensor& mask) {
  check_select(mask);
  SymInts sizes = broadcast_sizes(self.sizes(), mask.sizes());
  Tensor chosen = dense_as(mask, sizes, kBool), from = dense_as(self, sizes, self.dtype());
  cpu::TrueElements found(chosen.data<bool>(), chosen.plain_numel());
  Tensor out = allocate_contiguous({found.count()}, self.dtype());
  visit_dtype(self.dtype(), [&]<typename T>() {
    const T* source = static_cast<const T*>(from.raw_data());
    T* target = static_cast<T*>(out.raw_data());
    found.for_each([&](int64_t number, int64_t position) { target[number] = source[position]; });
  });
  return out;
}

// The gradient goes back to the elements that were true.
Tensor masked_select_gradient(const Tensor& grad, SymIntSpan sizes, const Tensor& mask) {
  return masked_scatter(new_zeros(grad, broadcast_sizes(sizes, mask.sizes())), mask, grad);
}
// With the sizes that the input was broadcast to: autograd sums it.
Tensor masked_select_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& mask) {
  return masked_select_gradient(grad, input.sizes(), mask);
}

// --- masked_scatter --------------------------------------------------------------------------------------

TensorSpec masked_scatter_meta(const Tensor& self, const Tensor& mask, const Tensor& source) {
  require(self.dtype() == source.dtype(),
          "masked_scatter: expected self and source to have same dtypes but got {} and {}",
          dtype_name(self.dtype()), dtype_name(source.dtype()));
  require(mask.dtype() == kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
          dtype_name(mask.dtype()));
  return contiguous_spec(broadcast_sizes(self.sizes(), mask.sizes()), self.dtype(), self.device());
}
void masked_scatter_into(const Tensor& self, const Tensor& mask, const Tensor& source, const Tensor& out) {
  Tensor chosen = dense_as(mask, out.sizes(), kBool), from = dense_as(source, source.dtype());
  cpu::TrueElements found(chosen.data<bool>(), chosen.plain_numel());
  require(found.count() <= from.plain_numel(),
          "masked_scatter: Number of elements of source < number of ones in mask ({} and {})",
          from.plain_numel(), found.count());
  write_dense(out, [&](const Tensor& dense) {
    copy_values(dense, self);
    visit_dtype(out.dtype(), [&]<typename T>() {
      const T* values = static_cast<const T*>(from.raw_data());
      T* target = static_cast<T*>(dense.raw_data());
      found.for_each([&](int64_t number, int64_t position) { target[position] = values[number]; });
    });
  });
}
// The n-th element of the source went to the n-th true element: its gradient comes from there. The prefix
// sum of the mask is the index into the source, so no size depends on data.
Tensor masked_scatter_backward_composite(const Tensor& grad, const Tensor& mask, SymIntSpan sizes) {
  SymInt total = 1;
  for (const SymInt& size : sizes) total = total * size;
  Tensor zeros = new_zeros(grad, {total});
  if (guard_or(total == 0, false) || guard_or(grad.numel() == 0, false)) return view(zeros, sizes);
  Tensor flat_mask = reshape(expand(mask, grad.sizes()), {-1}), flat = reshape(grad, {-1});
  Tensor number = clamp_min(cumsum(flat_mask, 0) - 1, 0);
  return view(scatter_add(zeros, 0, number, masked(flat, flat_mask)), sizes);
}

Value mask_of(std::initializer_list<bool> values) {
  Tensor mask = allocate_contiguous({static_cast<int64_t>(values.size())}, kBool);
  std::copy(values.begin(), values.end(), mask.data<bool>());
  return mask;
}

}  // namespace

WEFT_OPERATOR(nonzero) = {
    .schema = "aten::nonzero(Tensor self) -> Tensor",
    .out = "aten::nonzero.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | kCounts | Traits::kNotDifferentiable,
    .meta = function<&nonzero_meta>(),
    .kernel = plain_apart<&nonzero_kernel, OutType::kExact>(),
    .samples =
        [] {
          return Samples{{"bool", {boolean({3, 4})}}, {"integers", {i64({5}, 0, 2)}}, {"scalar", {f64({})}}};
        },
};

WEFT_OPERATOR(where) = {
    .schema = "aten::where(Tensor condition) -> Tensor[]",
    .traits = Traits::kDataDependent,
    .composite = {.functional = function<&where_composite>()},
    .samples = [] { return Samples{{"bool", {boolean({3, 4})}}, {"scalar", {i64({}, 1, 2)}}}; },
};

WEFT_OPERATOR(nonzero_numpy) = {
    .schema = "aten::nonzero_numpy(Tensor self) -> Tensor[]",
    .traits = Traits::kDataDependent,
    .composite = {.functional = function<&where_composite>()},
    .samples = [] { return Samples{{"bool", {boolean({3, 4})}}}; },
};

WEFT_OPERATOR(masked_select) = {
    .schema = "aten::masked_select(Tensor self, Tensor mask) -> Tensor",
    .out = "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = kCounts | Traits::kLinear,
    .meta = function<&masked_select_meta>(),
    .kernel = plain_apart<&masked_select_kernel, OutType::kExact>(),
    .vjp = {.saves = inputs(1) | sizes(0),
            .rule =
                [](const Vjp& v) {
                  return Grads{masked_select_gradient(v.grad(), v.sizes(0), v.input(1)), Tensor()};
                }},
    .samples =
        [] {
          return Samples{{"same_shape", {f64({3, 4}), boolean({3, 4})}},
                         {"broadcast", {f64({3, 1}), boolean({4})}}};
        },
};

WEFT_OPERATOR(masked_select_backward) = {
    .schema = "aten::masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
    .composite = {.functional = function<&masked_select_backward_composite>()},
    .samples = [] { return Samples{{"vector", {f64({2}), f64({3}), mask_of({true, false, true})}}}; },
};

WEFT_OPERATOR(masked_scatter_backward) = {
    .schema = "aten::masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor",
    .composite = {.functional = function<&masked_scatter_backward_composite>()},
    .samples = [] { return Samples{{"vector", {f64({3}), mask_of({true, false, true}), Value::list({4})}}}; },
};

WEFT_OPERATOR(masked_scatter) = {
    .schema = "aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    .inplace = "aten::masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)",
    .out =
        "aten::masked_scatter.out(Tensor self, Tensor mask, Tensor source, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&masked_scatter_meta>(),
    .kernel = structured_exact<&masked_scatter_meta, &masked_scatter_into>(),
    .vjp = {.saves = inputs(1) | sizes(2),
            .rule =
                [](const Vjp& v) {
                  Tensor mask = v.input(1);
                  Tensor to_source =
                      v.wants(2) ? masked_scatter_backward(v.grad(), mask, v.sizes(2)) : Tensor();
                  return Grads{v.wants(0) ? masked_fill(v.grad(), mask, 0) : Tensor(), Tensor(), to_source};
                }},
    .batch = loop_batch,
    .samples =
        [] {
          return Samples{{"same_shape", {f64({3, 4}), boolean({3, 4}), f64({12})}},
                         {"broadcast", {f64({2, 3}), mask_of({true, false, true}), f64({3, 2})}}};
        },
};

WEFT_OPERATOR(masked_fill_scalar) = {
    .schema = "aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    .inplace = "aten::masked_fill_.Scalar(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor(a!)",
    .out =
        "aten::masked_fill.Scalar_out(Tensor self, Tensor mask, Scalar value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&masked_fill_meta>(),
    .kernel = structured_exact<&masked_fill_meta, &masked_fill_into, true, Elements::kMayRepeat>(),
    .lower = lowering<&masked_fill_lower<Scalar>>(),
    .vjp = {.saves = inputs(1),
            .rule = [](const Vjp& v) { return Grads{masked_fill(v.grad(), v.input(1), 0), Tensor()}; }},
    .batch = aligned_batch,
    .decompose = function<&masked_fill_scalar_parts>(),
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), 2.5}},
                         {"broadcast", {f64({3, 4}), boolean({4}), 1}}};
        },
};

WEFT_OPERATOR(masked_fill_tensor) = {
    .schema = "aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    .inplace = "aten::masked_fill_.Tensor(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)",
    .out =
        "aten::masked_fill.Tensor_out(Tensor self, Tensor mask, Tensor value, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kPointwise,
    .meta = function<&masked_fill_tensor_meta>(),
    .kernel =
        structured_exact<&masked_fill_tensor_meta, &masked_fill_tensor_into, true, Elements::kMayRepeat>(),
    .lower = lowering<&masked_fill_lower<Tensor>>(),
    .vjp = {.saves = inputs(1),
            .rule =
                [](const Vjp& v) {
                  return Grads{masked_fill(v.grad(), v.input(1), 0), Tensor(),
                               sum(masked(v.grad(), v.input(1)))};
                }},
    .batch = loop_batch,
    .decompose = function<&masked_fill_tensor_parts>(),
    .samples = [] { return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), f64({})}}}; },
};

}  // namespace weft::ops
