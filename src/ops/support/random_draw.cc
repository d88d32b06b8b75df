#include "ops/support/random_draw.h"

#include "ops/structured.h"
#include "ops/support/number_range.h"
#include "weft/base/error.h"
#include "weft/base/parallel.h"
#include "weft/base/random.h"

namespace weft {
namespace {

// Sets element i, in row-major order, to value(stream, i).
template <typename T, typename F>
void draw(const Tensor& out, MaybeGenerator generator, F value) {
  const int64_t n = out.plain_numel();
  const auto blocks = static_cast<uint64_t>(n);
  const RandomStream stream = generator ? generator->reserve(blocks) : reserve_random(blocks);
  if (!out.storage()->has_memory() || n == 0) return;
  Tensor dense = out.is_contiguous() ? out : allocate_contiguous(out.sizes(), out.dtype());
  T* data = static_cast<T*>(dense.raw_data());
  parallel_for(0, n, 8192, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) data[i] = value(stream, static_cast<uint64_t>(i));
  });
  if (!dense.is_same(out)) copy_values(out, dense);
}

template <typename F>
void draw_real(const Tensor& out, const char* op, F f) {
  visit_dtype(out.dtype(), [&]<typename T>() {
    if constexpr (std::same_as<T, bool> || std::integral<T>)
      fail("\"{}\" not implemented for '{}'", op, dtype_name(out.dtype()));
    else f.template operator()<T>();
  });
}

}  // namespace

void draw_uniform(const Tensor& out, double from, double to, const MaybeGenerator& generator) {
  require(from <= to, "uniform_ expects to return a [from, to) range, but found from={} > to={}", from, to);
  double span = to - from;
  draw_real(out, "uniform", [&]<typename T>() {
    if constexpr (std::same_as<T, double>)
      draw<T>(out, generator,
              [=](const RandomStream& s, uint64_t i) { return from + span * s.uniform_double(i); });
    else if constexpr (requires(T t) { t.re; })
      draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
        uint64_t w = s.word64(i);
        double re = from + span * uniform24(static_cast<uint32_t>(w)),
               im = from + span * uniform24(static_cast<uint32_t>(w >> 32));
        return T(Complex<double>(re, im));
      });
    else
      draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
        // Fewer bits for narrow types, so that rounding never reaches the open end.
        constexpr int bits = std::same_as<T, Half> ? 11 : std::same_as<T, BFloat16> ? 8 : 24;
        float unit = static_cast<float>(s.word32(i) >> (32 - bits)) * (1.0f / static_cast<float>(1 << bits));
        return static_cast<T>(static_cast<float>(from) + static_cast<float>(span) * unit);
      });
  });
}

void draw_normal(const Tensor& out, double mean, double std, const MaybeGenerator& generator) {
  require(std >= 0, "normal expects std >= 0.0, but found std {}", std);
  draw_real(out, "normal", [&]<typename T>() {
    if constexpr (std::same_as<T, double>)
      draw<T>(out, generator,
              [=](const RandomStream& s, uint64_t i) { return mean + std * s.normal_double(i); });
    else if constexpr (requires(T t) { t.re; })
      draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
        PhiloxBlock words = s.block(i);
        auto pair = normal_pair(words[0], words[1]);
        double scale = std * 0.7071067811865476;  // half of the variance in each part
        return T(Complex<double>(mean + scale * static_cast<double>(pair.first),
                                 scale * static_cast<double>(pair.second)));
      });
    else
      draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
        return static_cast<T>(static_cast<float>(mean) + static_cast<float>(std) * s.normal_float(i));
      });
  });
}

namespace {

void check_bound(const char* name, int64_t bound, DType dtype) {
  const bool inside = dtype == kBool    ? bound == 0 || bound == 1
                      : dtype == kUInt8 ? bound >= 0 && bound <= 255
                                        : fits(Scalar(bound), dtype);
  require(inside, "{} is out of bounds for {}: got {}", name, dtype_name(dtype), bound);
}

}  // namespace

void draw_integers(const Tensor& out, int64_t low, int64_t high, const MaybeGenerator& generator) {
  require(low < high, "random_ expects 'from' to be less than 'to', but got from={} >= to={}", low, high);
  require(!is_complex(out.dtype()),
          "check_random_bounds handles only integral, floating-point and boolean types, but got {}",
          dtype_name(out.dtype()));
  check_bound("from", low, out.dtype());
  check_bound("to - 1", high - 1, out.dtype());
  auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  visit_dtype(out.dtype(), [&]<typename T>() {
    if constexpr (!requires(T t) { t.re; })
      draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
        auto value = static_cast<int64_t>(static_cast<uint64_t>(low) + s.integer_below(i, range));
        if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(static_cast<float>(value));
        else return static_cast<T>(value);
      });
  });
}

void check_probability(double p, const char* op) {
  require(p >= 0 && p <= 1, "{} expects p to be in [0, 1], but got p={}", op, p);
}

void draw_bernoulli(const Tensor& out, double p, const MaybeGenerator& generator) {
  check_probability(p, "bernoulli_");
  require(!is_complex(out.dtype()), "\"bernoulli_scalar_cpu_\" not implemented for '{}'",
          dtype_name(out.dtype()));
  visit_dtype(out.dtype(), [&]<typename T>() {
    draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
      bool hit = s.uniform_double(i) < p;
      if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(hit ? 1.0f : 0.0f);
      else if constexpr (requires(T t) { t.re; }) return T(hit ? 1 : 0);
      else return static_cast<T>(hit);
    });
  });
}
void draw_bernoulli(const Tensor& out, const Tensor& p, const MaybeGenerator& generator) {
  require(is_floating(p.dtype()) || out.plain_numel() == 0,
          "bernoulli: expected probabilities of a floating type, but got {}", describe(p));
  require(!is_complex(out.dtype()), "\"bernoulli_tensor_cpu_self_\" not implemented for '{}'",
          dtype_name(out.dtype()));
  Tensor wide = allocate_contiguous(out.sizes(), kFloat64);
  copy_values(wide, p);
  const double* probability = wide.data<double>();
  for (int64_t i = 0; i < wide.plain_numel(); ++i) check_probability(probability[i], "bernoulli");
  visit_dtype(out.dtype(), [&]<typename T>() {
    draw<T>(out, generator, [=](const RandomStream& s, uint64_t i) {
      bool hit = s.uniform_double(i) < probability[i];
      if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(hit ? 1.0f : 0.0f);
      else if constexpr (requires(T t) { t.re; }) return T(hit ? 1 : 0);
      else return static_cast<T>(hit);
    });
  });
}

}  // namespace weft
