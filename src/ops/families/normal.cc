// Normally distributed numbers whose mean and deviation are tensors, or whose sizes are given.
#include "ops/support/family.h"
#include "ops/support/random_draw.h"
#include "ops/support/reduction.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

TensorSpec normal_spec(SymIntSpan sizes, const Tensor& like) {
  require(is_floating(like.dtype()) || like.is_complex(), "\"normal_kernel_cpu\" not implemented for '{}'",
          dtype_name(like.dtype()));
  return contiguous_spec(sizes, like.dtype(), like.device());
}
void check_deviation(double std) { require(std >= 0, "normal expects std >= 0.0, but found std {}", std); }
void check_deviation_type(const Tensor& std) {
  require(!std.is_complex(), "normal expects standard deviation to be non-complex, but got {}",
          describe(std));
}
void check_deviations(const Tensor& std) {
  if (std.plain_numel() == 0) return;
  Tensor least = allocate_contiguous({}, kFloat64);
  run_reduction(cpu::kAmin, std.dtype(), std, dim_mask(IntSpan(), std.dim()), {&least});
  require(!(*least.data<double>() < 0), "normal expects all elements of std >= 0.0, but found {}",
          *least.data<double>());
}

// The numbers are drawn with a deviation of one around zero, then stretched and moved.
void stretch(const Tensor& out, const Tensor& std) {
  run_pointwise(cpu::kMul, out.dtype(), out, {&out, &std});
}
void shift(const Tensor& out, const Tensor& mean) {
  run_pointwise(cpu::kAdd, out.dtype(), out, {&out, &mean});
}

TensorSpec both_meta(const Tensor& mean, const Tensor& std, const MaybeGenerator&) {
  check_deviation_type(std);
  return normal_spec(broadcast_sizes(mean.sizes(), std.sizes()), mean);
}
void both_into(const Tensor& mean, const Tensor& std, const MaybeGenerator& generator, const Tensor& out) {
  check_deviations(std);
  draw_normal(out, 0, 1, generator);
  stretch(out, std);
  shift(out, mean);
}
TensorSpec mean_meta(const Tensor& mean, double std, const MaybeGenerator&) {
  check_deviation(std);
  return normal_spec(mean.sizes(), mean);
}
void mean_into(const Tensor& mean, double std, const MaybeGenerator& generator, const Tensor& out) {
  draw_normal(out, 0, std, generator);
  shift(out, mean);
}
TensorSpec deviation_meta(double, const Tensor& std, const MaybeGenerator&) {
  check_deviation_type(std);
  return normal_spec(std.sizes(), std);
}
void deviation_into(double mean, const Tensor& std, const MaybeGenerator& generator, const Tensor& out) {
  check_deviations(std);
  draw_normal(out, 0, 1, generator);
  stretch(out, std);
  shift(out, wrapped_number(mean));
}

TensorSpec sized_meta(double, double std, SymIntSpan size, const MaybeGenerator&, MaybeType dtype,
                      MaybeLayout, MaybeDevice device, MaybeBool pin) {
  require(!pin.value_or(false), "pin_memory: weft has no pinned memory; leave it out");
  check_deviation(std);
  return contiguous_spec(size, dtype.value_or(kFloat32), device.value_or(kCpu));
}
Tensor sized_kernel(double mean, double std, SymIntSpan size, const MaybeGenerator& generator,
                    MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  Tensor out = allocate(sized_meta(mean, std, size, generator, dtype, layout, device, pin));
  draw_normal(out, mean, std, generator);
  return out;
}
const Tensor& sized_out(double mean, double std, SymIntSpan size, const MaybeGenerator& generator,
                        const Tensor& out) {
  check_no_internal_overlap(out);
  prepare_out(contiguous_spec(size, out.dtype(), out.device()), out);
  draw_normal(out, mean, std, generator);
  return out;
}

}  // namespace

WEFT_OPERATOR(normal_tensor_tensor) = {
    .schema = "aten::normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .out =
        "aten::normal.Tensor_Tensor_out(Tensor mean, Tensor std, *, Generator? generator=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&both_meta>(),
    .kernel = structured<&both_meta, &both_into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad()), zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples =
        [] {
          return Samples{{"plain", {f64({3, 4}), positive({3, 4})}},
                         {"broadcast", {f32({3, 1}), positive({4})}}};
        },
};

WEFT_OPERATOR(normal_tensor_float) = {
    .schema = "aten::normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
    .out =
        "aten::normal.Tensor_float_out(Tensor mean, float std=1., *, Generator? generator=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&mean_meta>(),
    .kernel = structured<&mean_meta, &mean_into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples =
        [] { return Samples{{"plain", {f64({3, 4}), 0.5}}, {"transposed", {transposed(f32({3, 4}))}}}; },
};

WEFT_OPERATOR(normal_float_tensor) = {
    .schema = "aten::normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .out =
        "aten::normal.float_Tensor_out(float mean, Tensor std, *, Generator? generator=None, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&deviation_meta>(),
    .kernel = structured<&deviation_meta, &deviation_into>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = pointwise_batch,
    .samples = [] { return Samples{{"plain", {0.5, positive({3, 4})}}}; },
};

WEFT_OPERATOR(normal_float_float) = {
    .schema =
        "aten::normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, "
        "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out =
        "aten::normal.float_float_out(float mean, float std, SymInt[] size, *, Generator? generator=None, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable,
    .meta = function<&sized_meta>(),
    .kernel = {.functional = function<&sized_kernel>(), .out = function<&sized_out>()},
    .samples =
        [] {
          return Samples{{"plain", {0.5, 2.0, ints({2, 3})}},
                         {"typed", {0.0, 1.0, ints({4}), Value(), kFloat64}}};
        },
};

}  // namespace weft::ops
