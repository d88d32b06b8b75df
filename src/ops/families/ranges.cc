// Numbers at equal distances.
#include <cmath>

#include "ops/decompositions/decompositions.h"
#include "ops/support/dense.h"
#include "ops/support/family.h"
#include "weft/base/parallel.h"

namespace weft::ops {
namespace {

using Type = std::optional<DType>;
using Pin = std::optional<bool>;

// All three integers, or what counts as one: then no rounding is involved.
bool are_integral(const Scalar& start, const Scalar& end, const Scalar& step) {
  auto integral = [](const Scalar& s) { return s.is_integral() || s.is_bool(); };
  return integral(start) && integral(end) && integral(step);
}
SymInt integer_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  SymInt a = start.to_sym_int(), b = end.to_sym_int(), by = step.to_sym_int();
  int64_t stride = guard_int(by);
  require(stride != 0, "step must be nonzero");
  SymInt distance = stride > 0 ? b - a : a - b;
  check(distance >= 0, "upper bound and lower bound inconsistent with step sign");
  if (stride == 1 || stride == -1) return distance;
  // The lowest step has no absolute value; no distance is longer than one step of the next.
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const int64_t size = stride > 0 ? stride : stride >= -kLongest ? -stride : kLongest;
  return distance.is_symbolic() ? floor_div(distance + (size - 1), size) : ceil_div(distance, size);
}
SymInt real_length(const Scalar& start, const Scalar& end, const Scalar& step) {
  double a = start.to_double(), b = end.to_double(), by = step.to_double();
  require(by != 0, "step must be nonzero");
  require(std::isfinite(a) && std::isfinite(b), "unsupported range: {} -> {}", a, b);
  require(by > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
  double length = std::ceil((b - a) / by);
  require(length >= 0 && length <= 9.2e18, "invalid size, possible overflow? {}", length);
  return static_cast<int64_t>(length);
}
// For i64, real ends and steps are truncated to integers before they are counted.
SymInt length_of(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  if (are_integral(start, end, step)) return integer_length(start, end, step);
  SymInt length = real_length(start, end, step);
  return dtype == kInt64 ? integer_length(start.to_int(), end.to_int(), step.to_int()) : length;
}
DType range_type(const Scalar& start, const Scalar& end, const Scalar& step, const Type& dtype) {
  return dtype.value_or(are_integral(start, end, step) ? kInt64 : kFloat32);
}

TensorSpec start_step_meta(const Scalar& start, const Scalar& end, const Scalar& step, Type dtype,
                           std::optional<Layout>, std::optional<Device> device, Pin pin) {
  require(!pin.value_or(false), "pin_memory: weft has no pinned memory; leave it out");
  DType type = range_type(start, end, step, dtype);
  require(!is_complex(type) && type != kBool, "\"arange\" not implemented for '{}'", dtype_name(type));
  return contiguous_spec({length_of(start, end, step, type)}, type, device.value_or(kCpu));
}
// Element i is start + i * step, in the wide type of the tensor's own kind; it does not depend on its
// neighbours.
void fill_range(const Tensor& out, const Scalar& start, const Scalar& step) {
  write_dense(out, [&](const Tensor& dense) {
    visit_dtype(dense.dtype(), [&]<typename T>() {
      if constexpr (!requires(T t) { t.re; }) {
        using Wide = std::conditional_t<std::integral<T>, int64_t, double>;
        auto first = start.to<Wide>(), by = step.to<Wide>();
        T* data = static_cast<T*>(dense.raw_data());
        parallel_for(0, dense.plain_numel(), 32768, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            Wide value = first + static_cast<Wide>(i) * by;
            if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>)
              data[i] = T(static_cast<float>(value));
            else data[i] = static_cast<T>(value);
          }
        });
      }
    });
  });
}
Tensor start_step_kernel(const Scalar& start, const Scalar& end, const Scalar& step, Type dtype,
                         std::optional<Layout> layout, std::optional<Device> device, Pin pin) {
  Tensor out = allocate(start_step_meta(start, end, step, dtype, layout, device, pin));
  if (out.storage()->has_memory()) fill_range(out, start, step);
  return out;
}
const Tensor& start_out_kernel(const Scalar& start, const Scalar& end, const Scalar& step,
                               const Tensor& out) {
  check_no_internal_overlap(out);
  TensorSpec spec = start_step_meta(start, end, step, out.dtype(), {}, out.device(), {});
  // As many elements in another shape are filled as they are.
  if (!out.numel().same_as(spec.sizes[0])) prepare_out(spec, out);
  if (out.storage()->has_memory()) fill_range(out, start, step);
  return out;
}

TensorSpec end_meta(const Scalar& end, Type dtype, std::optional<Layout> layout, std::optional<Device> device,
                    Pin pin) {
  return start_step_meta(0, end, 1, dtype, layout, device, pin);
}
Tensor end_kernel(const Scalar& end, Type dtype, std::optional<Layout> layout, std::optional<Device> device,
                  Pin pin) {
  return start_step_kernel(0, end, 1, dtype, layout, device, pin);
}
const Tensor& end_out_kernel(const Scalar& end, const Tensor& out) {
  return start_out_kernel(0, end, 1, out);
}
TensorSpec start_meta(const Scalar& start, const Scalar& end, Type dtype, std::optional<Layout> layout,
                      std::optional<Device> device, Pin pin) {
  return start_step_meta(start, end, 1, dtype, layout, device, pin);
}
Tensor start_kernel(const Scalar& start, const Scalar& end, Type dtype, std::optional<Layout> layout,
                    std::optional<Device> device, Pin pin) {
  return start_step_kernel(start, end, 1, dtype, layout, device, pin);
}

constexpr Traits kPlainFactory = Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable;

}  // namespace

WEFT_OPERATOR(arange) = {
    .schema =
        "aten::arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
        "pin_memory=None) -> Tensor",
    .out = "aten::arange.out(Scalar end, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = kPlainFactory,
    .meta = function<&end_meta>(),
    .kernel = {.functional = function<&end_kernel>(), .out = function<&end_out_kernel>()},
    .decompose = function<&arange_parts>(),
    .samples =
        [] { return Samples{{"integers", {5}}, {"real", {3.5}}, {"typed", {4, kFloat64}}, {"empty", {0}}}; },
};

WEFT_OPERATOR(arange_start) = {
    .schema =
        "aten::arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .traits = kPlainFactory,
    .meta = function<&start_meta>(),
    .kernel = {.functional = function<&start_kernel>()},
    .decompose = function<&arange_start_parts>(),
    .samples = [] { return Samples{{"integers", {2, 7}}, {"real", {-0.5, 2.0}}}; },
};

WEFT_OPERATOR(arange_start_step) = {
    .schema =
        "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::arange.start_out(Scalar start, Scalar end, Scalar step=1, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | kPlainFactory,
    .meta = function<&start_step_meta>(),
    .kernel = {.functional = function<&start_step_kernel>(), .out = function<&start_out_kernel>()},
    .samples =
        [] {
          return Samples{{"down", {5, 0, -2}}, {"real", {0.0, 1.0, 0.25}}, {"typed", {1, 8, 3, kInt32}}};
        },
};

}  // namespace weft::ops
