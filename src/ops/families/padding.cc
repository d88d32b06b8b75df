// Padding: more elements at both ends of the last dims, or fewer.
#include "ops/decompositions/steps.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"

namespace weft::ops {
namespace {

// --- with a number ---------------------------------------------------------------------------------------

// Of each dim how many elements are added in front and behind; pads count from the last dim.
struct Ends {
  SymInt front = 0, behind = 0;
};
std::vector<Ends> ends_of(int64_t rank, SymIntSpan pad) {
  require(pad.size() % 2 == 0, "Length of pad must be even but instead it equals {}", pad.size());
  require(
      static_cast<int64_t>(pad.size()) <= 2 * rank,
      "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} "
      "while the input has {} dimensions.",
      pad.size(), rank);
  std::vector<Ends> ends(static_cast<size_t>(rank));
  for (size_t i = 0; i < pad.size() / 2; ++i) ends[ends.size() - 1 - i] = {pad[2 * i], pad[2 * i + 1]};
  return ends;
}
TensorSpec constant_meta(const Tensor& self, SymIntSpan pad, const Scalar&) {
  const std::vector<Ends> ends = ends_of(self.dim(), pad);
  SymInts sizes(self.sizes());
  for (size_t d = 0; d < sizes.size(); ++d) {
    const SymInt size = sizes[d];
    sizes[d] = size + ends[d].front + ends[d].behind;
    require(!guard_or(sizes[d] < 0, false),
            "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is "
            "invalid. Check dimension {} of your input.",
            size.to_string(), ends[d].front.to_string(), ends[d].behind.to_string(), d);
  }
  SymInts strides = strides_of_format(sizes, suggested_format(self));
  return {self.dtype(), self.device(), std::move(sizes), std::move(strides)};
}
void constant_into(const Tensor& self, SymIntSpan pad, const Scalar& value, const Tensor& out) {
  fill_number(out, value);
  const std::vector<Ends> ends = ends_of(self.dim(), pad);
  Tensor from = self, to = out;
  auto cut = [](const Tensor& tensor, int64_t dim, int64_t front, int64_t behind) {
    return slice(tensor, dim, front, tensor.size(dim) - behind);
  };
  for (int64_t d = 0; d < self.dim(); ++d) {
    const int64_t front = guard_int(ends[static_cast<size_t>(d)].front),
                  behind = guard_int(ends[static_cast<size_t>(d)].behind);
    if (out.plain_sizes()[static_cast<size_t>(d)] == 0) return;
    from = cut(from, d, std::max<int64_t>(-front, 0), std::max<int64_t>(-behind, 0));
    to = cut(to, d, std::max<int64_t>(front, 0), std::max<int64_t>(behind, 0));
  }
  copy_values(to, from);
}
SymInts negated(SymIntSpan pad) {
  SymInts opposite;
  for (const SymInt& one : pad) opposite.push_back(-one);
  return opposite;
}
Batched constant_batch(const Batch& call) {
  auto pad = boxing::Unboxed<SymIntSpan>(call.args()[1]);
  ends_of(logical_rank(call.tensor(0), call.batch_dim(0)), pad.get());
  return {constant_pad_nd(batch_first(call.tensor(0), call.batch_dim(0)), pad.get(), call.arg<Scalar>(2)),
          {0}};
}

// --- with the tensor's own elements ----------------------------------------------------------------------

enum class Source : uint8_t { kReflection, kReplication };
constexpr const char* kNames[2][3] = {{"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"},
                                      {"replication_pad1d", "replication_pad2d", "replication_pad3d"}};

template <Source source, int spatial>
struct OwnPad {
  static constexpr const char* kName = kNames[static_cast<int>(source)][spatial - 1];

  static void check(const Tensor& self, SymIntSpan padding) {
    require(static_cast<int>(padding.size()) == 2 * spatial, "padding size is expected to be {}, but got {}",
            2 * spatial, padding.size());
    bool fits = self.dim() == spatial + 1 || self.dim() == spatial + 2;
    const int64_t first = self.dim() == spatial + 2 ? 1 : 0;
    for (int64_t d = first; fits && d < self.dim(); ++d) fits = !guard_or(self.size(d) == 0, false);
    require(
        fits,
        "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
        "for input, but got: {}",
        spatial + 1, spatial + 2, describe_sizes(self.sizes()));
    require(self.dtype() != kBool, "\"{}\" not implemented for 'Bool'", kName);
  }
  static SymInts sizes_of(const Tensor& self, SymIntSpan padding) {
    check(self, padding);
    SymInts sizes(self.sizes());
    for (int i = 0; i < spatial; ++i) {
      const auto d = sizes.size() - 1 - static_cast<size_t>(i);
      const SymInt front = padding[static_cast<size_t>(2 * i)],
                   behind = padding[static_cast<size_t>(2 * i + 1)], size = sizes[d];
      if (source == Source::kReflection)
        require(!guard_or(front >= size, false) && !guard_or(behind >= size, false),
                "Padding size should be less than the corresponding input dimension, but got: padding ({}, "
                "{}) at dimension {} of input {}",
                front.to_string(), behind.to_string(), d, describe_sizes(self.sizes()));
      sizes[d] = size + front + behind;
      require(!guard_or(sizes[d] < 1, false),
              "input (size {} of dim {}) is too small for padding ({}, {}): the output would have size {}",
              size.to_string(), d, front.to_string(), behind.to_string(), sizes[d].to_string());
    }
    return sizes;
  }
  static TensorSpec meta(const Tensor& self, SymIntSpan padding) {
    SymInts sizes = sizes_of(self, padding);
    const bool last =
        spatial == 2 && self.dim() == 4 && suggested_format(self) == MemoryFormat::kChannelsLast;
    SymInts strides =
        last ? strides_of_format(sizes, MemoryFormat::kChannelsLast) : contiguous_strides(sizes);
    return {self.dtype(), self.device(), std::move(sizes), std::move(strides)};
  }
  // Which element of a dim of `size` each of the padded dim is.
  static Tensor sources(int64_t size, int64_t front, int64_t behind) {
    const int64_t count = size + front + behind;
    Tensor index = allocate_contiguous({count}, kInt64);
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = i - front;
      if (source == Source::kReplication) at = std::clamp<int64_t>(at, 0, size - 1);
      else if (at < 0) at = -at;
      else if (at >= size) at = 2 * (size - 1) - at;
      index.data<int64_t>()[i] = at;
    }
    return index;
  }
  template <typename F>
  static void for_each_dim(const Tensor& self, SymIntSpan padding, F f) {
    for (int i = 0; i < spatial; ++i) {
      const int64_t d = self.dim() - 1 - i;
      const int64_t size = self.plain_sizes()[static_cast<size_t>(d)];
      f(d, size,
        sources(size, guard_int(padding[static_cast<size_t>(2 * i)]),
                guard_int(padding[static_cast<size_t>(2 * i + 1)])));
    }
  }
  static void into(const Tensor& self, SymIntSpan padding, const Tensor& out) {
    Tensor padded = self;
    for_each_dim(self, padding,
                 [&](int64_t d, int64_t, const Tensor& index) { padded = index_select(padded, d, index); });
    copy_values(out, padded);
  }

  static TensorSpec backward_meta(const Tensor& grad, const Tensor& self, SymIntSpan padding) {
    SymInts padded = sizes_of(self, padding);
    const std::string op = std::string(kName) + "_backward";
    check_sizes(op.c_str(), "grad_output", grad, padded);
    check_dtype(op.c_str(), "grad_output", grad, self.dtype());
    const bool last =
        spatial == 2 && self.dim() == 4 && suggested_format(self) == MemoryFormat::kChannelsLast;
    SymInts strides = last ? strides_of_format(self.sizes(), MemoryFormat::kChannelsLast)
                           : contiguous_strides(self.sizes());
    return {self.dtype(), self.device(), SymInts(self.sizes()), std::move(strides)};
  }
  static void backward_into(const Tensor& grad, const Tensor& self, SymIntSpan padding, const Tensor& out) {
    Tensor folded = grad;
    for_each_dim(self, padding, [&](int64_t d, int64_t size, const Tensor& index) {
      SymInts sizes(folded.sizes());
      sizes[static_cast<size_t>(d)] = size;
      folded = index_add(zeros(sizes, folded.dtype()), d, index, folded);
    });
    copy_values(out, folded);
  }

  // The batch joins the images where they are a batch already.
  template <typename F>
  static Batched batch(const Batch& call, F run) {
    const int64_t rank = logical_rank(call.tensor(0), call.batch_dim(0));
    auto front = [&](int i) {
      Tensor all = with_batch_first(call.tensor(i), call.batch_dim(i), call.batch_size());
      return rank == spatial + 2 ? flatten(all, 0, 1) : all;
    };
    Tensor result = run(front);
    if (rank != spatial + 2) return {result, {0}};
    SymInts sizes(result.sizes());
    sizes[0] = floor_div(sizes[0], call.batch_size());
    sizes.insert(0, call.batch_size());
    return {reshape(result, sizes), {0}};
  }
  static Batched forward_batch(const Batch& call) {
    return batch(call, [&](auto front) {
      return weft::call(call.op(), std::vector<Value>{front(0), call.args()[1]}).to_tensor();
    });
  }
  static Batched backward_batch(const Batch& call) {
    return batch(call, [&](auto front) {
      return weft::call(call.op(), std::vector<Value>{front(0), front(1), call.args()[2]}).to_tensor();
    });
  }
  // The same numbers in operators.
  static Tensor places_along(const Tensor& self, SymIntSpan padding, int64_t dim) {
    const auto i = static_cast<size_t>(self.dim() - 1 - dim);
    const SymInt size = self.size(dim), front = padding[2 * i], behind = padding[2 * i + 1];
    Tensor at = arange(Scalar(-front), Scalar(size + behind), 1, kInt64, std::nullopt, self.device());
    const Scalar last(size - 1);
    return source == Source::kReplication ? clamp(at, Scalar(0), last) : rsub(abs(rsub(abs(at), last)), last);
  }
  static Tensor parts(const Tensor& self, SymIntSpan padding) {
    sizes_of(self, padding);
    const Steps steps(self);
    Tensor padded = steps.in(self);
    for (int64_t d = self.dim() - spatial; d < self.dim(); ++d) {
      std::vector<Tensor> places(static_cast<size_t>(d));
      places.push_back(places_along(self, padding, d));
      padded = index(padded, places);
    }
    return contiguous(steps.out(padded), suggested_format(self));
  }
  static Tensor backward_parts(const Tensor& grad, const Tensor& self, SymIntSpan padding) {
    Tensor start = full(self.sizes(), 0, self.dtype(), Layout::kStrided, self.device());
    sizes_of(self, padding);
    std::vector<Tensor> places(static_cast<size_t>(self.dim()));
    for (int64_t d = self.dim() - spatial; d < self.dim(); ++d) {
      Tensor at = places_along(self, padding, d);
      for (int64_t behind = d + 1; behind < self.dim(); ++behind) at = unsqueeze(at, -1);
      places[static_cast<size_t>(d)] = at;
    }
    return contiguous(index_put(start, places, grad, true), suggested_format(self));
  }
};

template <Source source, int spatial, Tensor (*backward)(const Tensor&, const Tensor&, SymIntSpan)>
Grads own_pad_vjp(const Vjp& v) {
  auto padding = boxing::Unboxed<SymIntSpan>(v.arg(1));
  return {backward(v.grad(), v.input(0), padding.get())};
}
template <Tensor (*forward)(const Tensor&, SymIntSpan)>
Grads own_pad_backward_vjp(const Vjp& v) {
  auto padding = boxing::Unboxed<SymIntSpan>(v.arg(2));
  return {forward(v.grad(), padding.get()), zeros_like(v.input(1))};
}
#define WEFT_PAD_CALLS(op)                                                                  \
  Tensor call_##op(const Tensor& self, SymIntSpan padding) { return op(self, padding); }    \
  Tensor call_##op##_backward(const Tensor& grad, const Tensor& self, SymIntSpan padding) { \
    return op##_backward(grad, self, padding);                                              \
  }
WEFT_PAD_CALLS(reflection_pad1d)
WEFT_PAD_CALLS(reflection_pad2d)
WEFT_PAD_CALLS(reflection_pad3d)
WEFT_PAD_CALLS(replication_pad1d)
WEFT_PAD_CALLS(replication_pad2d)
WEFT_PAD_CALLS(replication_pad3d)
#undef WEFT_PAD_CALLS

template <int spatial>
Samples own_samples() {
  const int64_t sizes[] = {2, 3, 4, 3, 4};
  auto image = [&](int rank) { return f64(SymInts(IntSpan(sizes + 5 - rank, static_cast<size_t>(rank)))); };
  Value pad = spatial == 1 ? ints({1, 2}) : spatial == 2 ? ints({1, 2, 0, 1}) : ints({1, 2, 0, 1, 1, 0});
  Value cut = spatial == 1 ? ints({-1, 1}) : spatial == 2 ? ints({-1, 1, 1, -1}) : ints({-1, 1, 1, -1, 0, 0});
  return {{"image", {image(spatial + 1), pad}},
          {"batch", {image(spatial + 2), pad}},
          {"cut", {image(spatial + 2), cut}}};
}
template <int spatial>
Samples own_backward_samples() {
  Samples samples;
  for (const Sample& one : own_samples<spatial>()) {
    const Tensor self = one.args[0].to_tensor();
    auto meta = boxing::Unboxed<SymIntSpan>(one.args[1]);
    SymInts sizes = OwnPad<Source::kReplication, spatial>::sizes_of(self, meta.get());
    samples.push_back({one.name, {f64(sizes), self, one.args[1]}});
  }
  return samples;
}

// --- by mode ---------------------------------------------------------------------------------------------

// The last elements in front, the first ones behind.
Tensor circular_composite(const Tensor& self, SymIntSpan pad) {
  const int64_t count = self.dim() - 2;
  require(static_cast<int64_t>(pad.size()) == 2 * count, "Invalid padding size, expected {} but got {}",
          2 * count, pad.size());
  Tensor padded = self;
  for (int64_t d = 0; d < count; ++d) {
    const auto at = static_cast<size_t>(2 * (count - 1 - d));
    const int64_t dim = d + 2;
    const SymInt size = self.size(dim), front = pad[at], behind = pad[at + 1];
    require(!guard_or(front > size, false) && !guard_or(behind > size, false),
            "Padding value causes wrapping around more than once.");
    require(!guard_or(size + front + behind < 0, false),
            "Negative padding value is resulting in an empty dimension");
    const bool adds_front = guard_or(front > 0, false), adds_behind = guard_or(behind > 0, false);
    Tensor kept = padded;
    if (guard_or(front < 0, false) || guard_or(behind < 0, false))
      kept = slice(padded, dim, max(-front, SymInt(0)), size + min(behind, SymInt(0)));
    // What is cut off is not wrapped around.
    const SymInt length = kept.size(dim);
    std::vector<Tensor> parts;
    if (adds_front) parts.push_back(slice(kept, dim, length - front, length));
    parts.push_back(kept);
    if (adds_behind) parts.push_back(slice(kept, dim, 0, behind));
    padded = parts.size() > 1 ? cat(parts, dim) : kept;
  }
  return contiguous(padded.is_same(self) ? clone(self) : padded);
}
Tensor pad_composite(const Tensor& self, SymIntSpan pad, std::string_view mode, std::optional<double> value) {
  require(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  require(
      static_cast<int64_t>(pad.size()) <= 2 * self.dim(),
      "Padding length should be less than or equal to two times the input dimension but got padding length "
      "{} and input of dimension {}",
      pad.size(), self.dim());
  if (mode == "constant") return constant_pad_nd(self, pad, value.value_or(0.0));
  require(!value || *value == 0, "Padding mode \"{}\" doesn't take in value argument", mode);
  require(mode == "reflect" || mode == "replicate" || mode == "circular", "Unrecognised padding mode {}",
          mode);
  const auto spatial = static_cast<int64_t>(pad.size() / 2);
  const bool fits = spatial >= 1 && spatial <= 3 && (self.dim() == spatial + 1 || self.dim() == spatial + 2);
  if (mode == "circular" && fits)
    return _pad_circular(self.dim() == spatial + 2 ? self : unsqueeze(self, 0), pad);
  if (!fits)
    unsupported(
        "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, but got {} pads of {}",
        pad.size(), describe(self));
  const bool reflects = mode == "reflect";
  if (spatial == 1) return reflects ? reflection_pad1d(self, pad) : replication_pad1d(self, pad);
  if (spatial == 2) return reflects ? reflection_pad2d(self, pad) : replication_pad2d(self, pad);
  return reflects ? reflection_pad3d(self, pad) : replication_pad3d(self, pad);
}
Tensor pad_enum_composite(const Tensor& self, SymIntSpan pad, int64_t mode, std::optional<double> value) {
  constexpr const char* modes[] = {"reflect", "replicate", "circular", "constant"};
  require(mode >= 0 && mode < 4, "Unrecognised padding mode {}", mode);
  return pad_composite(self, pad, modes[mode], value);
}

}  // namespace

WEFT_OPERATOR(constant_pad_nd) = {
    .schema = "aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    .out =
        "aten::constant_pad_nd.out(Tensor self, SymInt[] pad, Scalar value=0, *, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kCore,
    .meta = function<&constant_meta>(),
    .kernel = structured_exact<&constant_meta, &constant_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto pad = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{constant_pad_nd(v.grad(), negated(pad.get()), 0)};
                }},
    .batch = constant_batch,
    .samples =
        [] {
          return Samples{{"last", {f64({2, 3}), ints({1, 2})}},
                         {"two", {f64({2, 3}), ints({1, 0, -1, 2}), 0.5}},
                         {"integers", {i64({4}), ints({2, -1}), 7}}};
        },
};

WEFT_OPERATOR(reflection_pad1d) = {
    .schema = "aten::reflection_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
    .out = "aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReflection, 1>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReflection, 1>::meta, &OwnPad<Source::kReflection, 1>::into>(),
    .vjp = {.saves = inputs(0), .rule = own_pad_vjp<Source::kReflection, 1, call_reflection_pad1d_backward>},
    .batch = OwnPad<Source::kReflection, 1>::forward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 1>::parts>(),
    .samples = own_samples<1>,
};

WEFT_OPERATOR(reflection_pad1d_backward) = {
    .schema = "aten::reflection_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
    .out =
        "aten::reflection_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReflection, 1>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReflection, 1>::backward_meta,
                               &OwnPad<Source::kReflection, 1>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_reflection_pad1d>},
    .batch = OwnPad<Source::kReflection, 1>::backward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 1>::backward_parts>(),
    .samples = own_backward_samples<1>,
};

WEFT_OPERATOR(reflection_pad2d) = {
    .schema = "aten::reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
    .out = "aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReflection, 2>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReflection, 2>::meta, &OwnPad<Source::kReflection, 2>::into>(),
    .vjp = {.saves = inputs(0), .rule = own_pad_vjp<Source::kReflection, 2, call_reflection_pad2d_backward>},
    .batch = OwnPad<Source::kReflection, 2>::forward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 2>::parts>(),
    .samples = own_samples<2>,
};

WEFT_OPERATOR(reflection_pad2d_backward) = {
    .schema = "aten::reflection_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
    .out =
        "aten::reflection_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReflection, 2>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReflection, 2>::backward_meta,
                               &OwnPad<Source::kReflection, 2>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_reflection_pad2d>},
    .batch = OwnPad<Source::kReflection, 2>::backward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 2>::backward_parts>(),
    .samples = own_backward_samples<2>,
};

WEFT_OPERATOR(reflection_pad3d) = {
    .schema = "aten::reflection_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
    .out = "aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReflection, 3>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReflection, 3>::meta, &OwnPad<Source::kReflection, 3>::into>(),
    .vjp = {.saves = inputs(0), .rule = own_pad_vjp<Source::kReflection, 3, call_reflection_pad3d_backward>},
    .batch = OwnPad<Source::kReflection, 3>::forward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 3>::parts>(),
    .samples = own_samples<3>,
};

WEFT_OPERATOR(reflection_pad3d_backward) = {
    .schema = "aten::reflection_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
    .out =
        "aten::reflection_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReflection, 3>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReflection, 3>::backward_meta,
                               &OwnPad<Source::kReflection, 3>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_reflection_pad3d>},
    .batch = OwnPad<Source::kReflection, 3>::backward_batch,
    .decompose = function<&OwnPad<Source::kReflection, 3>::backward_parts>(),
    .samples = own_backward_samples<3>,
};

WEFT_OPERATOR(replication_pad1d) = {
    .schema = "aten::replication_pad1d(Tensor self, SymInt[2] padding) -> Tensor",
    .out = "aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReplication, 1>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReplication, 1>::meta, &OwnPad<Source::kReplication, 1>::into>(),
    .vjp = {.saves = inputs(0),
            .rule = own_pad_vjp<Source::kReplication, 1, call_replication_pad1d_backward>},
    .batch = OwnPad<Source::kReplication, 1>::forward_batch,
    .decompose = function<&OwnPad<Source::kReplication, 1>::parts>(),
    .samples = own_samples<1>,
};

WEFT_OPERATOR(replication_pad1d_backward) = {
    .schema =
        "aten::replication_pad1d_backward(Tensor grad_output, Tensor self, SymInt[2] padding) -> Tensor",
    .out =
        "aten::replication_pad1d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[2] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReplication, 1>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReplication, 1>::backward_meta,
                               &OwnPad<Source::kReplication, 1>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_replication_pad1d>},
    .batch = OwnPad<Source::kReplication, 1>::backward_batch,
    .samples = own_backward_samples<1>,
};

WEFT_OPERATOR(replication_pad2d) = {
    .schema = "aten::replication_pad2d(Tensor self, SymInt[4] padding) -> Tensor",
    .out = "aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReplication, 2>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReplication, 2>::meta, &OwnPad<Source::kReplication, 2>::into>(),
    .vjp = {.saves = inputs(0),
            .rule = own_pad_vjp<Source::kReplication, 2, call_replication_pad2d_backward>},
    .batch = OwnPad<Source::kReplication, 2>::forward_batch,
    .decompose = function<&OwnPad<Source::kReplication, 2>::parts>(),
    .samples = own_samples<2>,
};

WEFT_OPERATOR(replication_pad2d_backward) = {
    .schema =
        "aten::replication_pad2d_backward(Tensor grad_output, Tensor self, SymInt[4] padding) -> Tensor",
    .out =
        "aten::replication_pad2d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[4] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReplication, 2>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReplication, 2>::backward_meta,
                               &OwnPad<Source::kReplication, 2>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_replication_pad2d>},
    .batch = OwnPad<Source::kReplication, 2>::backward_batch,
    .samples = own_backward_samples<2>,
};

WEFT_OPERATOR(replication_pad3d) = {
    .schema = "aten::replication_pad3d(Tensor self, SymInt[6] padding) -> Tensor",
    .out = "aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&OwnPad<Source::kReplication, 3>::meta>(),
    .kernel =
        structured_exact<&OwnPad<Source::kReplication, 3>::meta, &OwnPad<Source::kReplication, 3>::into>(),
    .vjp = {.saves = inputs(0),
            .rule = own_pad_vjp<Source::kReplication, 3, call_replication_pad3d_backward>},
    .batch = OwnPad<Source::kReplication, 3>::forward_batch,
    .decompose = function<&OwnPad<Source::kReplication, 3>::parts>(),
    .samples = own_samples<3>,
};

WEFT_OPERATOR(replication_pad3d_backward) = {
    .schema =
        "aten::replication_pad3d_backward(Tensor grad_output, Tensor self, SymInt[6] padding) -> Tensor",
    .out =
        "aten::replication_pad3d_backward.grad_input(Tensor grad_output, Tensor self, SymInt[6] padding, *, "
        "Tensor(a!) grad_input) -> Tensor(a!)",
    .meta = function<&OwnPad<Source::kReplication, 3>::backward_meta>(),
    .kernel = structured_exact<&OwnPad<Source::kReplication, 3>::backward_meta,
                               &OwnPad<Source::kReplication, 3>::backward_into>(),
    .vjp = {.saves = inputs(1), .rule = own_pad_backward_vjp<call_replication_pad3d>},
    .batch = OwnPad<Source::kReplication, 3>::backward_batch,
    .samples = own_backward_samples<3>,
};

WEFT_OPERATOR(pad_circular) = {
    .schema = "aten::_pad_circular(Tensor self, SymInt[] pad) -> Tensor",
    .composite = {.functional = function<&circular_composite>()},
    .samples =
        [] {
          return Samples{{"images", {f64({1, 2, 3, 4}), ints({1, 2, 0, 1})}},
                         {"cut", {f64({1, 2, 4}), ints({-1, 2})}}};
        },
};

WEFT_OPERATOR(pad) = {
    .schema = "aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor",
    .composite = {.functional = function<&pad_composite>()},
    .samples =
        [] {
          return Samples{{"constant", {f64({2, 3}), ints({1, 2}), "constant", 1.5}},
                         {"reflect", {f64({2, 3}), ints({1, 2}), "reflect"}},
                         {"replicate", {f64({2, 3, 4}), ints({1, 2, 0, 1}), "replicate"}},
                         {"circular", {f64({1, 2, 3}), ints({1, 2}), "circular"}}};
        },
};

WEFT_OPERATOR(pad_enum) = {
    .schema = "aten::_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor",
    .composite = {.functional = function<&pad_enum_composite>()},
    .samples = [] { return Samples{{"reflect", {f64({2, 3}), ints({1, 2}), 0}}}; },
};

}  // namespace weft::ops
