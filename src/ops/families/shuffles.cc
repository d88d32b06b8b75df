// Elements in another order, by operators over dims.
#include "ops/support/family.h"

namespace weft::ops {
namespace {

// A kernel that copies what the decomposition gives.
template <auto parts, typename Signature = decltype(+parts)>
struct Copied;
template <auto parts, typename... A>
struct Copied<parts, Tensor (*)(A...)> {
  static void into(A... args, const Tensor& out) { copy_values(out, parts(args...)); }
};

// --- channels --------------------------------------------------------------------------------------------

void check_groups(const Tensor& self, const SymInt& groups) {
  require(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
          describe_sizes(self.sizes()));
  require(!guard_or(groups <= 0, false),
          "Number of groups to divide channels in must be positive. Value of groups:{}", groups.to_string());
  require(guard_or(mod(self.size(1), groups) == 0, true),
          "Number of channels must be divisible by groups. Got {} channels and {} groups.",
          self.size(1).to_string(), groups.to_string());
}
TensorSpec channel_shuffle_meta(const Tensor& self, const SymInt& groups) {
  check_groups(self, groups);
  SymInts strides = strides_of_format(self.sizes(), suggested_format(self));
  return {self.dtype(), self.device(), SymInts(self.sizes()), std::move(strides)};
}
Tensor channel_shuffle_parts(const Tensor& self, const SymInt& groups) {
  check_groups(self, groups);
  SymInts split{self.size(0), groups, floor_div(self.size(1), groups)};
  for (int64_t d = 2; d < self.dim(); ++d) split.push_back(self.size(d));
  Tensor swapped = transpose(reshape(self, split), 1, 2);
  return contiguous(reshape(swapped, self.sizes()), suggested_format(self));
}

// --- pixels ----------------------------------------------------------------------------------------------

struct Pixels {
  SymInts outer;  // the dims in front of the channels
  SymInt channels, height, width;
};
Pixels pixels_of(const char* op, const char* factor_name, const Tensor& self, int64_t factor) {
  require(self.dim() >= 3,
          "{} expects input to have at least 3 dimensions, but got input with {} dimension(s)", op,
          self.dim());
  require(factor > 0, "{} expects a positive {}, but got {}", op, factor_name, factor);
  Pixels p;
  for (int64_t d = 0; d < self.dim() - 3; ++d) p.outer.push_back(self.size(d));
  p.channels = self.size(-3);
  p.height = self.size(-2);
  p.width = self.size(-1);
  return p;
}
SymInts joined(const SymInts& outer, std::initializer_list<SymInt> rest) {
  SymInts sizes(outer);
  for (const SymInt& size : rest) sizes.push_back(size);
  return sizes;
}
Ints order_of(size_t outer, std::initializer_list<int64_t> rest) {
  Ints order;
  for (size_t d = 0; d < outer; ++d) order.push_back(static_cast<int64_t>(d));
  for (int64_t d : rest) order.push_back(static_cast<int64_t>(outer) + d);
  return order;
}
Pixels shuffled_from(const Tensor& self, int64_t factor) {
  Pixels p = pixels_of("pixel_shuffle", "upscale_factor", self, factor);
  require(guard_or(mod(p.channels, SymInt(factor * factor)) == 0, true),
          "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
          "upscale_factor, but "
          "input.size(-3)={} is not divisible by {}",
          p.channels.to_string(), factor * factor);
  return p;
}
TensorSpec pixel_shuffle_meta(const Tensor& self, int64_t factor) {
  const Pixels p = shuffled_from(self, factor);
  SymInts sizes =
      joined(p.outer, {floor_div(p.channels, SymInt(factor * factor)), p.height * factor, p.width * factor});
  SymInts strides = strides_of_format(sizes, suggested_format(self));
  return {self.dtype(), self.device(), std::move(sizes), std::move(strides)};
}
Tensor pixel_shuffle_parts(const Tensor& self, int64_t factor) {
  const Pixels p = shuffled_from(self, factor);
  const SymInt kept = floor_div(p.channels, SymInt(factor * factor));
  Tensor split = reshape(self, joined(p.outer, {kept, factor, factor, p.height, p.width}));
  Tensor ordered = permute(split, order_of(p.outer.size(), {0, 3, 1, 4, 2}));
  return clone(reshape(ordered, joined(p.outer, {kept, p.height * factor, p.width * factor})),
               suggested_format(self));
}
Pixels unshuffled_from(const Tensor& self, int64_t factor) {
  Pixels p = pixels_of("pixel_unshuffle", "downscale_factor", self, factor);
  require(
      guard_or(mod(p.height, SymInt(factor)) == 0, true) && guard_or(mod(p.width, SymInt(factor)) == 0, true),
      "pixel_unshuffle expects height and width to be divisible by downscale_factor, but {} and {} are not "
      "divisible by {}",
      p.height.to_string(), p.width.to_string(), factor);
  return p;
}
TensorSpec pixel_unshuffle_meta(const Tensor& self, int64_t factor) {
  const Pixels p = unshuffled_from(self, factor);
  SymInts sizes = joined(p.outer, {p.channels * (factor * factor), floor_div(p.height, SymInt(factor)),
                                   floor_div(p.width, SymInt(factor))});
  SymInts strides = strides_of_format(sizes, suggested_format(self));
  return {self.dtype(), self.device(), std::move(sizes), std::move(strides)};
}
Tensor pixel_unshuffle_parts(const Tensor& self, int64_t factor) {
  const Pixels p = unshuffled_from(self, factor);
  const SymInt height = floor_div(p.height, SymInt(factor)), width = floor_div(p.width, SymInt(factor));
  Tensor split = reshape(self, joined(p.outer, {p.channels, height, factor, width, factor}));
  Tensor ordered = permute(split, order_of(p.outer.size(), {0, 2, 4, 1, 3}));
  return clone(reshape(ordered, joined(p.outer, {p.channels * (factor * factor), height, width})),
               suggested_format(self));
}
// The dims in front of the channels are free: a batch dim is one more.
Batched pixel_batch(const Batch& call) {
  return {weft::call(call.op(),
                     std::vector<Value>{batch_first(call.tensor(0), call.batch_dim(0)), call.args()[1]}),
          {0}};
}

// --- rows ------------------------------------------------------------------------------------------------

Tensor take_along_dim_composite(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  require(indices.dtype() == kInt64, "take_along_dim(): dtype of indices should be Long but got {}",
          dtype_name(indices.dtype()));
  if (!dim) return gather(flatten(self), 0, flatten(indices));
  require(self.dim() == indices.dim(),
          "take_along_dim(): input and indices should have the same number of dimensions, but got {} "
          "dimensions for "
          "input, and {} dimensions for indices",
          self.dim(), indices.dim());
  const int64_t d = normalize_dim(*dim, self.dim());
  SymInts ours(self.sizes()), theirs(indices.sizes());
  if (self.dim() > 0) {
    ours[static_cast<size_t>(d)] = indices.size(d);
    SymInts common = broadcast_sizes(ours, theirs);
    theirs = common;
    ours = std::move(common);
    ours[static_cast<size_t>(d)] = self.size(d);
  }
  return gather(expand(self, ours), d, expand(indices, theirs));
}
Tensor argsort_composite(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, false, dim, descending));
}
Tensor argsort_stable_composite(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(sort(self, stable, dim, descending));
}
Tensor msort_composite(const Tensor& self) { return std::get<0>(sort(self, false, 0, false)); }

}  // namespace

WEFT_OPERATOR(channel_shuffle) = {
    .schema = "aten::channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    .out = "aten::channel_shuffle.out(Tensor self, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&channel_shuffle_meta>(),
    .kernel = structured_exact<&channel_shuffle_meta, &Copied<&channel_shuffle_parts>::into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  return Grads{channel_shuffle(v.grad(), floor_div(v.grad().size(1), v.arg<SymInt>(1)))};
                }},
    .batch = loop_batch,
    .decompose = function<&channel_shuffle_parts>(),
    .samples = [] { return Samples{{"two_groups", {f64({1, 4, 2, 2}), 2}}}; },
};

WEFT_OPERATOR(pixel_shuffle) = {
    .schema = "aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    .out = "aten::pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&pixel_shuffle_meta>(),
    .kernel = structured_exact<&pixel_shuffle_meta, &Copied<&pixel_shuffle_parts>::into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{pixel_unshuffle(v.grad(), v.arg<int64_t>(1))}; }},
    .batch = pixel_batch,
    .decompose = function<&pixel_shuffle_parts>(),
    .samples = [] { return Samples{{"twice", {f64({1, 4, 2, 3}), 2}}, {"image", {f64({9, 1, 2}), 3}}}; },
};

WEFT_OPERATOR(pixel_unshuffle) = {
    .schema = "aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    .out = "aten::pixel_unshuffle.out(Tensor self, int downscale_factor, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&pixel_unshuffle_meta>(),
    .kernel = structured_exact<&pixel_unshuffle_meta, &Copied<&pixel_unshuffle_parts>::into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{pixel_shuffle(v.grad(), v.arg<int64_t>(1))}; }},
    .batch = pixel_batch,
    .decompose = function<&pixel_unshuffle_parts>(),
    .samples = [] { return Samples{{"half", {f64({1, 1, 4, 6}), 2}}}; },
};

WEFT_OPERATOR(take_along_dim) = {
    .schema = "aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
    .out =
        "aten::take_along_dim.out(Tensor self, Tensor indices, int? dim=None, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .composite = composite_exact<&take_along_dim_composite>(),
    .samples =
        [] {
          return Samples{{"rows", {f64({3, 4}), i64({3, 2}, 0, 4), 1}},
                         {"flat", {f64({2, 3}), i64({4}, 0, 6)}}};
        },
};

WEFT_OPERATOR(argsort) = {
    .schema = "aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    .composite = {.functional = function<&argsort_composite>()},
    .samples = [] { return Samples{{"rows", {f64({3, 4})}}}; },
};

WEFT_OPERATOR(argsort_stable) = {
    .schema =
        "aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    .composite = {.functional = function<&argsort_stable_composite>()},
    .samples = [] { return Samples{{"rows", {f64({3, 4}), true}}}; },
};

WEFT_OPERATOR(msort) = {
    .schema = "aten::msort(Tensor self) -> Tensor",
    .composite = {.functional = function<&msort_composite>()},
    .samples = [] { return Samples{{"columns", {f64({3, 4})}}}; },
};

}  // namespace weft::ops
