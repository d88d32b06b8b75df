// Several tensors joined into one.
#include "ops/decompositions/decompositions.h"
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// PyTorch's old habit: an empty vector joins anything.
bool is_skipped(const Tensor& tensor) { return tensor.dim() == 1 && guard_or(tensor.sizes()[0] == 0, false); }

struct CatPlan {
  TensorSpec spec;
  size_t dim = 0;
};

DType cat_type(TensorSpan tensors) {
  TypePromotion promotion;
  for (const Tensor& tensor : tensors) promotion.add(tensor);
  return promotion.result();
}

// The result takes channels_last when every part has it.
SymInts cat_strides(TensorSpan tensors, SymIntSpan sizes) {
  bool channels_last = sizes.size() == 4;
  for (const Tensor& tensor : tensors)
    if (!is_skipped(tensor))
      channels_last = channels_last && suggested_format(tensor) == MemoryFormat::kChannelsLast;
  return channels_last ? strides_of_format(sizes, MemoryFormat::kChannelsLast) : contiguous_strides(sizes);
}

CatPlan plan_cat(TensorSpan tensors, int64_t dim) {
  require(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  for (size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].dim() > 0, "zero-dimensional tensor (at position {}) cannot be concatenated", i);
    if (!first && !is_skipped(tensors[i])) first = &tensors[i];
  }
  CatPlan plan;
  // Nothing but empty vectors is an empty vector, along whatever dim.
  if (!first) first = &tensors[0];
  else plan.dim = static_cast<size_t>(normalize_dim(dim, first->dim()));
  SymInts sizes(first->sizes());
  SymInt total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (is_skipped(tensor)) continue;
    require(tensor.dim() == first->dim(), "Tensors must have same number of dimensions: got {} and {}",
            first->dim(), tensor.dim());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (d == plan.dim || tensor.sizes()[d].same_as(sizes[d])) continue;
      bool plain = !tensor.sizes()[d].is_symbolic() && !sizes[d].is_symbolic();
      if (plain)
        fail(
            "Sizes of tensors must match except in dimension {}. Expected size {} but got size {} for tensor "
            "number {} in the list.",
            plan.dim, sizes[d].plain(), tensor.sizes()[d].plain(), i);
      check(tensor.sizes()[d] == sizes[d], "cat: sizes must match except in the joined dimension");
    }
    total = total + tensor.sizes()[plan.dim];
  }
  sizes[plan.dim] = total;
  plan.spec = {cat_type(tensors), first->device(), sizes, cat_strides(tensors, sizes)};
  return plan;
}

TensorSpec cat_meta(TensorSpan tensors, int64_t dim) { return plan_cat(tensors, dim).spec; }
void cat_into(TensorSpan tensors, int64_t dim, const Tensor& out) {
  size_t d = plan_cat(tensors, dim).dim;
  SymInt position = 0;
  for (const Tensor& tensor : tensors) {
    if (is_skipped(tensor)) continue;
    SymInts sizes(out.sizes());
    sizes[d] = tensor.sizes()[d];
    copy_values(alias_with(out, sizes, out.strides(), out.storage_offset() + position * out.strides()[d]),
                tensor);
    position = position + tensor.sizes()[d];
  }
}

// The tensors with a dim of one element to be joined along.
std::vector<Tensor> stack_parts(TensorSpan tensors, int64_t dim) {
  require(!tensors.empty(), "stack expects a non-empty TensorList");
  std::vector<Tensor> parts;
  auto d = static_cast<size_t>(normalize_dim(dim, tensors[0].dim() + 1));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!same_sizes(tensor.sizes(), tensors[0].sizes()))
      fail("stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry {}",
           describe_sizes(tensors[0].sizes()), describe_sizes(tensor.sizes()), i);
    SymInts sizes(tensor.sizes()), strides(tensor.strides());
    SymInt stride = d < sizes.size() ? sizes[d] * strides[d] : SymInt(1);
    sizes.insert(d, 1);
    strides.insert(d, stride);
    parts.push_back(alias_with(tensor, sizes, strides, tensor.storage_offset()));
  }
  return parts;
}
TensorSpec stack_meta(TensorSpan tensors, int64_t dim) {
  const std::vector<Tensor> parts = stack_parts(tensors, dim);
  return cat_meta(parts, normalize_dim(dim, tensors[0].dim() + 1));
}
void stack_into(TensorSpan tensors, int64_t dim, const Tensor& out) {
  cat_into(stack_parts(tensors, dim), normalize_dim(dim, tensors[0].dim() + 1), out);
}
Grads stack_vjp(const Vjp& v) {
  const int64_t dim = normalize_dim(v.arg<int64_t>(1), v.grad().dim());
  std::vector<Tensor> grads;
  for (int i = 0; i < v.count(0); ++i) {
    Tensor grad = select(v.grad(), dim, i);
    if (grad.is_complex() && !is_complex(v.shape(0, i).dtype)) grad = real(grad);
    grads.push_back(grad);
  }
  return {Grad(std::move(grads))};
}

Grads cat_vjp(const Vjp& v) {
  const int64_t dim = normalize_dim(v.arg<int64_t>(1), v.grad().dim());
  std::vector<Tensor> grads;
  SymInt position = 0;
  for (int i = 0; i < v.count(0); ++i) {
    const TensorShape& shape = v.shape(0, i);
    bool skipped = shape.sizes.size() == 1 && guard_or(shape.sizes[0] == 0, false);
    if (skipped) {
      grads.push_back(v.wants(0, i) ? new_zeros(v.grad(), shape.sizes) : Tensor());
      continue;
    }
    SymInt length =
        shape.sizes[static_cast<size_t>(normalize_dim(dim, static_cast<int64_t>(shape.sizes.size())))];
    Tensor part = slice(v.grad(), dim, position, position + length, 1);
    if (part.is_complex() && !is_complex(shape.dtype)) part = real(part);
    grads.push_back(part);
    position = position + length;
  }
  return {Grad(std::move(grads))};
}

Batched cat_batch(const Batch& call) {
  ValueList parts;
  Tensor empty;  // an example that is an empty vector is left out, as cat itself does
  const auto& dims = call.batch_dims(0);
  for (size_t i = 0; i < dims.size(); ++i) {
    Tensor tensor = call.args()[0].elements()[i].to_tensor();
    Tensor batched = with_batch_first(tensor, dims[i], call.batch_size());
    bool is_empty_vector = batched.dim() == 2 && guard_or(batched.sizes()[1] == 0, false);
    if (!is_empty_vector) parts.push_back(batched);
    else if (!empty.defined()) empty = batched;
  }
  if (parts.empty()) return {empty, {0}};
  int64_t rank = parts[0].to_tensor().dim() - 1;
  return {weft::call(call.op(),
                     std::vector<Value>{Value::list(parts), normalize_dim(call.arg<int64_t>(1), rank) + 1}),
          {0}};
}

Batched stack_batch(const Batch& call) {
  ValueList parts;
  const auto& dims = call.batch_dims(0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const Tensor part = call.args()[0].elements()[i].to_tensor();
    if (dims[i] >= 0) {
      parts.push_back(movedim(part, dims[i], 0));
      continue;
    }
    SymInts sizes{call.batch_size()};
    for (const SymInt& size : part.sizes()) sizes.push_back(size);
    parts.push_back(expand(unsqueeze(part, 0), sizes));
  }
  int64_t rank = parts[0].to_tensor().dim();
  return {weft::call(call.op(),
                     std::vector<Value>{Value::list(parts), normalize_dim(call.arg<int64_t>(1), rank) + 1}),
          {0}};
}

// --- sequences of different lengths ----------------------------------------------------------------------

Tensor pad_sequence_composite(TensorSpan sequences, bool batch_first, double padding_value,
                              std::string_view padding_side) {
  require(!sequences.empty(), "pad_sequence: received an empty list of sequences");
  require(padding_side == "left" || padding_side == "right",
          "pad_sequence: Expected padding_side to be one of left or right, but got {}.", padding_side);
  SymInt longest = 0;
  for (const Tensor& sequence : sequences) {
    require(sequence.dim() > 0, "pad_sequence: a sequence has at least one dim, but got {}",
            describe(sequence));
    longest = max(longest, sequence.size(0));
  }
  std::vector<Tensor> rows;
  for (const Tensor& sequence : sequences) {
    const Tensor typed = to(sequence, sequences[0].dtype());
    // Pads count from the last dim.
    SymInts pad(static_cast<size_t>(2 * sequence.dim()), 0);
    pad[pad.size() - (padding_side == "left" ? 2 : 1)] = longest - sequence.size(0);
    rows.push_back(constant_pad_nd(typed, pad, padding_value));
  }
  return stack(rows, batch_first ? 0 : 1);
}

}  // namespace

WEFT_OPERATOR(cat) = {
    .schema = "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    .out = "aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | Traits::kLinear,
    .meta = function<&cat_meta>(),
    .kernel = structured_apart<&cat_meta, &cat_into, OutType::kConverted>(),
    .vjp = {.saves = sizes(0), .rule = cat_vjp},
    .batch = cat_batch,
    .samples =
        [] {
          return Samples{{"rows", {Value::list({f64({2, 3}), f64({1, 3})})}},
                         {"columns", {Value::list({f64({2, 3}), f64({2, 2})}), -1}},
                         {"empty_vector", {Value::list({f64({0}), f64({2, 2})}), 1}},
                         {"mixed_types", {Value::list({f32({2}), i64({3})})}}};
        },
};

WEFT_OPERATOR(stack) = {
    .schema = "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
    .out = "aten::stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&stack_meta>(),
    .kernel = structured_apart<&stack_meta, &stack_into, OutType::kConverted>(),
    .vjp = {.saves = sizes(0), .rule = stack_vjp},
    .batch = stack_batch,
    .decompose = function<&stacked_parts>(),
    .samples =
        [] {
          return Samples{{"front", {Value::list({f64({2, 3}), f64({2, 3})})}},
                         {"last", {Value::list({f64({2}), f64({2})}), -1}}};
        },
};

WEFT_OPERATOR(pad_sequence) = {
    .schema =
        "aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0., str "
        "padding_side=\"right\") -> Tensor",
    .composite = {.functional = function<&pad_sequence_composite>()},
    .samples =
        [] {
          const Value sequences = Value::list({f64({2, 3}), f64({4, 3})});
          return Samples{{"right", {sequences}}, {"left", {sequences, true, 1.5, "left"}}};
        },
};

}  // namespace weft::ops
