// Images resized by their nearest pixels or by mixes of them.
#include "ops/cpu/upsample.h"
#include "ops/decompositions/decompositions.h"

#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/image.h"

namespace weft::ops {
namespace {

using MaybeFloat = std::optional<double>;
using OptionalFloats = OptionalSpan<ListSpan<double>>;

// --- sizes -----------------------------------------------------------------------------------------------

void check_positive(SymIntSpan in, SymIntSpan out) {
  auto text = [](const SymInt& h, const SymInt& w) {
    return fmt::format("(H: {}, W: {})", h.to_string(), w.to_string());
  };
  bool positive = true;
  for (const SymInt* size : {&in[2], &in[3], &out[0], &out[1]}) positive &= !guard_or(*size <= 0, false);
  if (!positive)
    fail("Input and output sizes should be greater than 0, but got input {} output {}", text(in[2], in[3]),
         text(out[0], out[1]));
}
SymInts resized(SymIntSpan input_size, SymIntSpan output_size) {
  require(output_size.size() == 2, "It is expected output_size equals to 2, but got size {}",
          output_size.size());
  require(input_size.size() == 4, "It is expected input_size equals to 4, but got size {}",
          input_size.size());
  check_positive(input_size, output_size);
  return {input_size[0], input_size[1], output_size[0], output_size[1]};
}
// Only the batch may be empty.
void check_channels(const Tensor& self) {
  if (guard_or(self.sizes()[1] == 0, false))
    fail("Non-empty 4D data tensor expected but got a tensor with sizes {}", describe_sizes(self.sizes()));
}
TensorSpec image_spec(const char* op, const Tensor& like, SymInts sizes, bool takes_bytes) {
  require(is_floating(like.dtype()) || (takes_bytes && like.dtype() == kUInt8),
          "\"{}\" not implemented for '{}'", op, dtype_name(like.dtype()));
  SymInts strides = strides_of_format(sizes, suggested_format(like));
  return {like.dtype(), like.device(), std::move(sizes), std::move(strides)};
}
TensorSpec forward_spec(const char* op, const Tensor& self, SymIntSpan output_size) {
  SymInts sizes = resized(self.sizes(), output_size);
  check_channels(self);
  return image_spec(op, self, std::move(sizes), true);
}
TensorSpec backward_spec(const char* op, const Tensor& grad, SymIntSpan output_size, SymIntSpan input_size) {
  SymInts expected = resized(input_size, output_size);
  require(grad.dim() == 4, "Expected grad_output to be a tensor of dimension 4 but got: dimension {}",
          grad.dim());
  for (size_t d = 0; d < 4; ++d)
    if (!guard_or(grad.sizes()[d] == expected[d], true))
      fail(
          "Expected grad_output to have the same shape as output; output.size({}) = {} but got "
          "grad_output.size({}) = {}",
          d, expected[d].to_string(), d, grad.sizes()[d].to_string());
  return image_spec(op, grad, SymInts(input_size), false);
}
cpu::Resize resize_of(const Tensor& in, const Tensor& out, bool align_corners, MaybeFloat scales_h,
                      MaybeFloat scales_w) {
  IntSpan from = in.plain_sizes(), to = out.plain_sizes();
  return {{from[2], to[2], scales_h}, {from[3], to[3], scales_w}, align_corners};
}

// The sizes that the forms with a list of scale factors mean.
SymInts output_size_of(const Tensor& input, const OptionalSymIntSpan& output_size,
                       const OptionalFloats& scale_factors) {
  require(output_size.has_value() != scale_factors.has_value(),
          "Must specify exactly one of output_size and scale_factors");
  size_t spatial = input.dim() > 2 ? static_cast<size_t>(input.dim()) - 2 : 0;
  size_t given = output_size ? output_size->size() : scale_factors->size();
  require(given == spatial, "expected {} for each of the {} spatial dims of {}, but got {}",
          output_size ? "a size" : "a scale factor", spatial, describe(input), given);
  if (output_size) return SymInts(*output_size);
  SymInts sizes;
  for (size_t i = 0; i < spatial; ++i)
    sizes.push_back(sym_trunc(sym_float(input.sizes()[i + 2]) * (*scale_factors)[i]));
  return sizes;
}
MaybeFloat factor(const OptionalFloats& scale_factors, size_t i) {
  return scale_factors && i < scale_factors->size() ? MaybeFloat((*scale_factors)[i]) : MaybeFloat();
}

// The batch dim joins the batch of images, in the sizes of the result too.
template <int input_size>
Batched gradient_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  Tensor grad = batch_first(call.tensor(0), call.batch_dim(0));
  auto holder = boxing::Unboxed<SymIntSpan>(call.args()[input_size]);
  SymInts sizes(holder.get());
  args[0] = flatten(grad, 0, 1);
  SymInts joined = sizes;
  joined[0] = joined[0] * call.batch_size();
  args[input_size] = Value::list_of(joined);
  SymInts split{call.batch_size()};
  for (const SymInt& size : sizes) split.push_back(size);
  return {reshape(weft::call(call.op(), args).to_tensor(), split), {0}};
}

// --- nearest ---------------------------------------------------------------------------------------------

TensorSpec nearest_meta(const Tensor& self, SymIntSpan output_size, MaybeFloat, MaybeFloat) {
  return forward_spec("upsample_nearest2d", self, output_size);
}
void nearest_into(const Tensor& self, SymIntSpan, MaybeFloat scales_h, MaybeFloat scales_w,
                  const Tensor& out) {
  if (out.plain_numel() == 0) return;
  ImageArrays arrays(suggested_format(self));
  Tensor in = arrays.to_read(self), result = arrays.to_write(out);
  cpu::upsample_nearest(resize_of(self, out, false, scales_h, scales_w), arrays.array(in),
                        arrays.array(result));
  copy_back(result, out);
}
TensorSpec nearest_backward_meta(const Tensor& grad, SymIntSpan output_size, SymIntSpan input_size,
                                 MaybeFloat, MaybeFloat) {
  return backward_spec("upsample_nearest2d_backward", grad, output_size, input_size);
}
void nearest_backward_into(const Tensor& grad, SymIntSpan, SymIntSpan, MaybeFloat scales_h,
                           MaybeFloat scales_w, const Tensor& out) {
  if (grad.plain_numel() == 0) return fill_values(out, 0);
  ImageArrays arrays(MemoryFormat::kContiguous);
  Tensor g = arrays.to_read(grad), result = arrays.to_write(out);
  cpu::upsample_nearest_backward(resize_of(out, grad, false, scales_h, scales_w), arrays.array(g),
                                 arrays.array(result));
  copy_back(result, out);
}
Tensor nearest_vec(const Tensor& input, OptionalSymIntSpan output_size, OptionalFloats scale_factors) {
  SymInts sizes = output_size_of(input, output_size, scale_factors);
  return upsample_nearest2d(input, SymIntSpan(sizes), factor(scale_factors, 0), factor(scale_factors, 1));
}
const Tensor& nearest_vec_out(const Tensor& input, OptionalSymIntSpan output_size,
                              OptionalFloats scale_factors, const Tensor& out) {
  SymInts sizes = output_size_of(input, output_size, scale_factors);
  return upsample_nearest2d_out(out, input, SymIntSpan(sizes), factor(scale_factors, 0),
                                factor(scale_factors, 1));
}

// --- bilinear --------------------------------------------------------------------------------------------

TensorSpec bilinear_meta(const Tensor& self, SymIntSpan output_size, bool, MaybeFloat, MaybeFloat) {
  return forward_spec("upsample_bilinear2d", self, output_size);
}
void bilinear_into(const Tensor& self, SymIntSpan, bool align_corners, MaybeFloat scales_h,
                   MaybeFloat scales_w, const Tensor& out) {
  if (out.plain_numel() == 0) return;
  bool bytes = self.dtype() == kUInt8;
  ImageArrays arrays(bytes ? MemoryFormat::kContiguous : suggested_format(self));
  Tensor in = arrays.to_read(self), result = arrays.to_write(out);
  cpu::upsample_bilinear(resize_of(self, out, align_corners, scales_h, scales_w), arrays.array(in),
                         arrays.array(result));
  copy_back(result, out);
}
TensorSpec bilinear_backward_meta(const Tensor& grad, SymIntSpan output_size, SymIntSpan input_size, bool,
                                  MaybeFloat, MaybeFloat) {
  return backward_spec("upsample_bilinear2d_backward", grad, output_size, input_size);
}
void bilinear_backward_into(const Tensor& grad, SymIntSpan, SymIntSpan, bool align_corners,
                            MaybeFloat scales_h, MaybeFloat scales_w, const Tensor& out) {
  if (grad.plain_numel() == 0) return fill_values(out, 0);
  ImageArrays arrays(MemoryFormat::kContiguous);
  Tensor g = arrays.to_read(grad), result = arrays.to_write(out);
  cpu::upsample_bilinear_backward(resize_of(out, grad, align_corners, scales_h, scales_w), arrays.array(g),
                                  arrays.array(result));
  copy_back(result, out);
}
Tensor bilinear_vec(const Tensor& input, OptionalSymIntSpan output_size, bool align_corners,
                    OptionalFloats scale_factors) {
  SymInts sizes = output_size_of(input, output_size, scale_factors);
  return upsample_bilinear2d(input, SymIntSpan(sizes), align_corners, factor(scale_factors, 0),
                             factor(scale_factors, 1));
}
const Tensor& bilinear_vec_out(const Tensor& input, OptionalSymIntSpan output_size, bool align_corners,
                               OptionalFloats scale_factors, const Tensor& out) {
  SymInts sizes = output_size_of(input, output_size, scale_factors);
  return upsample_bilinear2d_out(out, input, SymIntSpan(sizes), align_corners, factor(scale_factors, 0),
                                 factor(scale_factors, 1));
}

Value floats(std::initializer_list<double> values) { return Value::list_of(std::vector<double>(values)); }

}  // namespace

WEFT_OPERATOR(upsample_nearest2d) = {
    .schema =
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
        "scales_w=None) -> Tensor",
    .out =
        "aten::upsample_nearest2d.out(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
        "scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&nearest_meta>(),
    .kernel = structured_exact<&nearest_meta, &nearest_into>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{upsample_nearest2d_backward(v.grad(), size.get(), v.sizes(0),
                                                           v.arg<MaybeFloat>(2), v.arg<MaybeFloat>(3))};
                }},
    .batch = image_batch,
    .decompose = function<&upsample_nearest2d_parts>(),
    .samples =
        [] {
          return Samples{{"larger", {f64({1, 2, 3, 2}), ints({6, 5})}},
                         {"smaller", {f32({2, 1, 4, 4}), ints({3, 2})}},
                         {"scaled", {f64({1, 1, 4, 4}), ints({6, 6}), 1.7, 1.7}}};
        },
};

WEFT_OPERATOR(upsample_nearest2d_backward) = {
    .schema =
        "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, "
        "float? scales_h=None, float? scales_w=None) -> Tensor",
    .out =
        "aten::upsample_nearest2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
        "input_size, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&nearest_backward_meta>(),
    .kernel = structured_exact<&nearest_backward_meta, &nearest_backward_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{
                      upsample_nearest2d(v.grad(), size.get(), v.arg<MaybeFloat>(3), v.arg<MaybeFloat>(4))};
                }},
    .batch = gradient_batch<2>,
    .samples =
        [] {
          return Samples{{"larger", {f64({1, 2, 6, 5}), ints({6, 5}), ints({1, 2, 3, 2})}},
                         {"f32", {f32({2, 1, 3, 2}), ints({3, 2}), ints({2, 1, 4, 4})}}};
        },
};

WEFT_OPERATOR(upsample_nearest2d_vec) = {
    .schema =
        "aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
    .out =
        "aten::upsample_nearest2d.vec_out(Tensor input, SymInt[]? output_size, float[]? scale_factors, *, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .composite = {.functional = function<&nearest_vec>(), .out = function<&nearest_vec_out>()},
    .samples =
        [] {
          return Samples{{"size", {f64({1, 2, 3, 2}), ints({6, 5}), Value()}},
                         {"factors", {f64({1, 1, 4, 3}), Value(), floats({1.7, 2.0})}}};
        },
};

WEFT_OPERATOR(upsample_bilinear2d) = {
    .schema =
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
        "scales_h=None, float? scales_w=None) -> Tensor",
    .out =
        "aten::upsample_bilinear2d.out(Tensor self, SymInt[2] output_size, bool align_corners, float? "
        "scales_h=None, float? scales_w=None, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&bilinear_meta>(),
    .kernel = structured_exact<&bilinear_meta, &bilinear_into>(),
    .vjp = {.saves = sizes(0),
            .rule =
                [](const Vjp& v) {
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{upsample_bilinear2d_backward(v.grad(), size.get(), v.sizes(0), v.arg<bool>(2),
                                                            v.arg<MaybeFloat>(3), v.arg<MaybeFloat>(4))};
                }},
    .batch = image_batch,
    .samples =
        [] {
          return Samples{{"larger", {f64({1, 2, 3, 2}), ints({6, 5}), false}},
                         {"aligned", {f64({1, 2, 3, 2}), ints({6, 5}), true}},
                         {"smaller", {f32({2, 1, 4, 4}), ints({3, 1}), true}},
                         {"scaled", {f64({1, 1, 4, 4}), ints({6, 6}), false, 1.7, 1.7}}};
        },
};

WEFT_OPERATOR(upsample_bilinear2d_backward) = {
    .schema =
        "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, "
        "bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
    .out =
        "aten::upsample_bilinear2d_backward.grad_input(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
        "input_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) "
        "grad_input) -> Tensor(a!)",
    .traits = Traits::kLinear,
    .meta = function<&bilinear_backward_meta>(),
    .kernel = structured_exact<&bilinear_backward_meta, &bilinear_backward_into>(),
    .vjp = {.rule =
                [](const Vjp& v) {
                  auto size = boxing::Unboxed<SymIntSpan>(v.arg(1));
                  return Grads{upsample_bilinear2d(v.grad(), size.get(), v.arg<bool>(3), v.arg<MaybeFloat>(4),
                                                   v.arg<MaybeFloat>(5))};
                }},
    .batch = gradient_batch<2>,
    .samples =
        [] {
          return Samples{{"larger", {f64({1, 2, 6, 5}), ints({6, 5}), ints({1, 2, 3, 2}), false}},
                         {"aligned", {f32({2, 1, 3, 2}), ints({3, 2}), ints({2, 1, 4, 4}), true}}};
        },
};

WEFT_OPERATOR(upsample_bilinear2d_vec) = {
    .schema =
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor",
    .out =
        "aten::upsample_bilinear2d.vec_out(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore,
    .composite = {.functional = function<&bilinear_vec>(), .out = function<&bilinear_vec_out>()},
    .samples =
        [] {
          return Samples{{"size", {f64({1, 2, 3, 2}), ints({6, 5}), true, Value()}},
                         {"factors", {f64({1, 1, 4, 3}), Value(), false, floats({1.7, 2.0})}}};
        },
};

}  // namespace weft::ops
