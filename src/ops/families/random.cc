// Random numbers. Element i of a result depends on (seed, offset, i) alone.
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "weft/base/parallel.h"
#include "weft/base/random.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;
using MaybeGenerator = std::optional<Generator>;

Generator generator_or_default(const MaybeGenerator& generator) { return generator ? *generator : default_generator(); }

// Sets element i, in row-major order, to value(stream, i). `words`: 32-bit words that an element uses.
template <typename T, typename F>
void draw(const Tensor& out, const MaybeGenerator& generator, int words, F value) {
  Generator source = generator_or_default(generator);
  int64_t n = out.plain_numel();
  RandomStream stream = source.reserve(blocks_for(static_cast<uint64_t>(n), static_cast<uint64_t>(words)));
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
    if constexpr (std::same_as<T, bool> || std::integral<T>) fail("\"{}\" not implemented for '{}'", op, dtype_name(out.dtype()));
    else f.template operator()<T>();
  });
}

void draw_uniform(const Tensor& out, double from, double to, const MaybeGenerator& generator) {
  require(from <= to, "uniform_ expects to return a [from, to) range, but found from={} > to={}", from, to);
  double span = to - from;
  draw_real(out, "uniform", [&]<typename T>() {
    if constexpr (std::same_as<T, double>)
      draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) { return from + span * s.uniform_double(i); });
    else if constexpr (requires(T t) { t.re; })
      draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) {
        uint64_t w = s.word64(i);
        double re = from + span * uniform24(static_cast<uint32_t>(w)), im = from + span * uniform24(static_cast<uint32_t>(w >> 32));
        return T(Complex<double>(re, im));
      });
    else
      draw<T>(out, generator, 1, [=](const RandomStream& s, uint64_t i) {
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
      draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) { return mean + std * s.normal_double(i); });
    else if constexpr (requires(T t) { t.re; })
      draw<T>(out, generator, 4, [=](const RandomStream& s, uint64_t i) {
        PhiloxBlock words = s.block(i);
        auto pair = normal_pair(words[0], words[1]);
        double scale = std * 0.7071067811865476;  // half of the variance in each part
        return T(Complex<double>(mean + scale * static_cast<double>(pair.first), scale * static_cast<double>(pair.second)));
      });
    else
      draw<T>(out, generator, 1, [=](const RandomStream& s, uint64_t i) {
        return static_cast<T>(static_cast<float>(mean) + static_cast<float>(std) * s.normal_float(i));
      });
  });
}

void draw_integers(const Tensor& out, int64_t low, int64_t high, const MaybeGenerator& generator) {
  require(low < high, "random_ expects 'from' to be less than 'to', but got from={} >= to={}", low, high);
  auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  visit_dtype(out.dtype(), [&]<typename T>() {
    if constexpr (requires(T t) { t.re; }) fail("\"random_\" not implemented for '{}'", dtype_name(out.dtype()));
    else
      draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) {
        auto value = static_cast<int64_t>(static_cast<uint64_t>(low) + s.integer_below(i, range));
        if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(static_cast<float>(value));
        else return static_cast<T>(value);
      });
  });
}

void check_probability(double p, const char* op) { require(p >= 0 && p <= 1, "{} expects p to be in [0, 1], but got p={}", op, p); }

void draw_bernoulli(const Tensor& out, double p, const MaybeGenerator& generator) {
  check_probability(p, "bernoulli_");
  require(!is_complex(out.dtype()), "\"bernoulli_scalar_cpu_\" not implemented for '{}'", dtype_name(out.dtype()));
  visit_dtype(out.dtype(), [&]<typename T>() {
    draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) {
      bool hit = s.uniform_double(i) < p;
      if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(hit ? 1.0f : 0.0f);
      else if constexpr (requires(T t) { t.re; }) return T(hit ? 1 : 0);
      else return static_cast<T>(hit);
    });
  });
}
void draw_bernoulli(const Tensor& out, const Tensor& p, const MaybeGenerator& generator) {
  require(is_floating(p.dtype()), "bernoulli: expected probabilities of a floating type, but got {}", describe(p));
  Tensor wide = allocate_contiguous(out.sizes(), kFloat64);
  copy_values(wide, p);
  const double* probability = wide.data<double>();
  for (int64_t i = 0; i < wide.plain_numel(); ++i) check_probability(probability[i], "bernoulli");
  visit_dtype(out.dtype(), [&]<typename T>() {
    draw<T>(out, generator, 2, [=](const RandomStream& s, uint64_t i) {
      bool hit = s.uniform_double(i) < probability[i];
      if constexpr (std::same_as<T, Half> || std::same_as<T, BFloat16>) return T(hit ? 1.0f : 0.0f);
      else if constexpr (requires(T t) { t.re; }) return T(hit ? 1 : 0);
      else return static_cast<T>(hit);
    });
  });
}

// --- factories ----------------------------------------------------------------------------------------------------------

TensorSpec sized(SymIntSpan size, MaybeType dtype, MaybeLayout, MaybeDevice device, MaybeBool) {
  return contiguous_spec(size, dtype.value_or(kFloat32), device.value_or(kCpu));
}
Tensor rand_kernel(SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  Tensor out = allocate(sized(size, dtype, layout, device, pin));
  draw_uniform(out, 0, 1, {});
  return out;
}
Tensor randn_kernel(SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  Tensor out = allocate(sized(size, dtype, layout, device, pin));
  draw_normal(out, 0, 1, {});
  return out;
}
Tensor randint_low_kernel(const SymInt& low, const SymInt& high, SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  Tensor out = allocate(sized(size, dtype.value_or(kInt64), layout, device, pin));
  draw_integers(out, low.plain(), high.plain(), {});
  return out;
}
TensorSpec randint_low_meta(const SymInt&, const SymInt&, SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  return sized(size, dtype.value_or(kInt64), layout, device, pin);
}
Tensor randint_composite(const SymInt& high, SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
  return randint(SymInt(0), high, size, dtype, layout, device, pin);
}
TensorSpec like(const Tensor& self, MaybeType dtype, MaybeLayout, MaybeDevice device, MaybeBool, MaybeFormat format) {
  MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  return {dtype.value_or(self.dtype()), device.value_or(self.device()), SymInts(self.sizes()),
          wanted == MemoryFormat::kPreserve ? preserved_strides(self) : strides_of_format(self.sizes(), wanted)};
}
Tensor rand_like_kernel(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
  Tensor out = allocate(like(self, dtype, layout, device, pin, format));
  draw_uniform(out, 0, 1, {});
  return out;
}
Tensor randn_like_kernel(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
  Tensor out = allocate(like(self, dtype, layout, device, pin, format));
  draw_normal(out, 0, 1, {});
  return out;
}
TensorSpec randint_like_meta(const Tensor& self, const SymInt&, const SymInt&, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
  return like(self, dtype, layout, device, pin, format);
}
Tensor randint_like_kernel(const Tensor& self, const SymInt& low, const SymInt& high, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin,
                           MaybeFormat format) {
  Tensor out = allocate(like(self, dtype, layout, device, pin, format));
  draw_integers(out, low.plain(), high.plain(), {});
  return out;
}
Tensor randint_like_composite(const Tensor& self, const SymInt& high, MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
  return randint_like(self, SymInt(0), high, dtype, layout, device, pin, format);
}

// --- fills ------------------------------------------------------------------------------------------------------------------

TensorSpec like_self(const Tensor& self) { return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)}; }
TensorSpec uniform_meta(const Tensor& self, double, double, const MaybeGenerator&) { return like_self(self); }
void uniform_into(const Tensor&, double from, double to, const MaybeGenerator& generator, const Tensor& out) { draw_uniform(out, from, to, generator); }
TensorSpec normal_meta(const Tensor& self, double, double, const MaybeGenerator&) { return like_self(self); }
void normal_into(const Tensor&, double mean, double std, const MaybeGenerator& generator, const Tensor& out) { draw_normal(out, mean, std, generator); }
TensorSpec bernoulli_meta(const Tensor& self, const MaybeGenerator&) { return like_self(self); }
void bernoulli_into(const Tensor& self, const MaybeGenerator& generator, const Tensor& out) { draw_bernoulli(out, self, generator); }
TensorSpec bernoulli_p_meta(const Tensor& self, double p, const MaybeGenerator&) {
  check_probability(p, "bernoulli");
  return like_self(self);
}
void bernoulli_p_into(const Tensor&, double p, const MaybeGenerator& generator, const Tensor& out) { draw_bernoulli(out, p, generator); }
TensorSpec bernoulli_tensor_meta(const Tensor& self, const Tensor&, const MaybeGenerator&) { return like_self(self); }
void bernoulli_tensor_into(const Tensor&, const Tensor& p, const MaybeGenerator& generator, const Tensor& out) { draw_bernoulli(out, p, generator); }

// --- dropout -----------------------------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> native_dropout_meta(const Tensor& input, double, MaybeBool) {
  return {pointwise_spec({&input}, input.dtype()), pointwise_spec({&input}, kBool)};
}
void native_dropout_into(const Tensor& input, double p, MaybeBool train, const Tensor& out, const Tensor& mask) {
  require(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  if (!train.value_or(true)) {
    fill_values(mask, true);
    return copy_values(out, input);
  }
  draw_bernoulli(mask, 1 - p, {});
  Tensor scale = wrapped_number(p == 1 ? 0.0 : 1 / (1 - p)), kept = allocate(pointwise_spec({&input}, input.dtype())), zero = wrapped_number(0);
  run_pointwise(cpu::kMul, input.dtype(), kept, {&input, &scale});
  run_pointwise(cpu::kWhere, input.dtype(), out, {&mask, &kept, &zero});
}
Tensor native_dropout_backward_composite(const Tensor& grad, const Tensor& mask, double scale) { return grad * (mask.to(grad.dtype()) * scale); }

Tensor dropout_composite(const Tensor& input, double p, bool train) {
  require(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  if (p == 0 || !train || guard_or(input.numel() == 0, false)) return input;
  if (p == 1) return input * zeros({}, input.dtype(), std::nullopt, input.device());
  Tensor noise = bernoulli_(empty_like(input), 1 - p);
  div_(noise, 1 - p);
  return input * noise;
}

Batched random_like_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  return {weft::call(call.op(), args), std::vector<int64_t>(call.op().schema().returns.size(), 0)};
}

Value list(std::initializer_list<int64_t> values) { return Value::list_of(std::vector<int64_t>(values)); }
Samples size_samples() { return {{"matrix", {list({2, 3})}}, {"empty", {list({0})}}, {"double", {list({4}), kFloat64}}}; }
Samples like_samples() { return {{"plain", {f32({2, 3})}}, {"transposed", {transposed(f64({3, 4}))}}}; }
constexpr Traits kRandomFactory = Traits::kRandom | Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable;
constexpr Traits kRandomLike = Traits::kRandom | Traits::kUninitialized | Traits::kNotDifferentiable;

}  // namespace

WEFT_OPERATOR(rand) = {
    .schema = "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .traits = kRandomFactory,
    .meta = function<&sized>(),
    .kernel = {.functional = function<&rand_kernel>()},
    .samples = size_samples,
};

WEFT_OPERATOR(randn) = {
    .schema = "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .traits = kRandomFactory,
    .meta = function<&sized>(),
    .kernel = {.functional = function<&randn_kernel>()},
    .samples = size_samples,
};

WEFT_OPERATOR(randint_low) = {
    .schema = "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .traits = kRandomFactory,
    .meta = function<&randint_low_meta>(),
    .kernel = {.functional = function<&randint_low_kernel>()},
    .samples = [] { return Samples{{"plain", {-3, 5, list({2, 3})}}}; },
};

WEFT_OPERATOR(randint) = {
    .schema = "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .traits = Traits::kRandom | Traits::kFactory,
    .composite = {.functional = function<&randint_composite>()},
    .samples = [] { return Samples{{"plain", {5, list({2, 3})}}}; },
};

WEFT_OPERATOR(rand_like) = {
    .schema = "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .traits = kRandomLike,
    .meta = function<&like>(),
    .kernel = {.functional = function<&rand_like_kernel>()},
    .batch = random_like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(randn_like) = {
    .schema = "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .traits = kRandomLike,
    .meta = function<&like>(),
    .kernel = {.functional = function<&randn_like_kernel>()},
    .batch = random_like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(randint_like_low) = {
    .schema = "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .traits = kRandomLike,
    .meta = function<&randint_like_meta>(),
    .kernel = {.functional = function<&randint_like_kernel>()},
    .batch = random_like_batch,
    .samples = [] { return Samples{{"plain", {i64({2, 3}), -2, 4}}}; },
};

WEFT_OPERATOR(randint_like) = {
    .schema = "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .traits = Traits::kRandom,
    .composite = {.functional = function<&randint_like_composite>()},
    .samples = [] { return Samples{{"plain", {i64({2, 3}), 4}}}; },
};

WEFT_OPERATOR(uniform) = {
    .schema = "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
    .inplace = "aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    .out = "aten::uniform.out(Tensor self, float from=0., float to=1., *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kUninitialized,
    .meta = function<&uniform_meta>(),
    .kernel = structured<&uniform_meta, &uniform_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(normal_functional) = {
    .schema = "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
    .inplace = "aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kUninitialized,
    .meta = function<&normal_meta>(),
    .kernel = structured<&normal_meta, &normal_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(bernoulli) = {
    .schema = "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    .out = "aten::bernoulli.out(Tensor self, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&bernoulli_meta>(),
    .kernel = structured<&bernoulli_meta, &bernoulli_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = [] { return Samples{{"plain", {make({3, 4}, kFloat64, 0, 1)}}}; },
};

WEFT_OPERATOR(bernoulli_p) = {
    .schema = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    .inplace = "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    .out = "aten::bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kUninitialized,
    .meta = function<&bernoulli_p_meta>(),
    .kernel = structured<&bernoulli_p_meta, &bernoulli_p_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), 0.3}}}; },
};

WEFT_OPERATOR(bernoulli_tensor) = {
    .schema = "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    .inplace = "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    .out = "aten::bernoulli.Tensor_out(Tensor self, Tensor p, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&bernoulli_tensor_meta>(),
    .kernel = structured<&bernoulli_tensor_meta, &bernoulli_tensor_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad()), Tensor()}; }},
    .batch = loop_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), make({3, 4}, kFloat64, 0, 1)}}}; },
};

WEFT_OPERATOR(native_dropout) = {
    .schema = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    .out = "aten::native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kRandom,
    .meta = function<&native_dropout_meta>(),
    .kernel = structured<&native_dropout_meta, &native_dropout_into>(),
    .vjp = {.saves = outputs(1),
            .rule = [](const Vjp& v) {
              double p = v.arg<double>(1);
              bool train = v.arg<MaybeBool>(2).value_or(true);
              double scale = !train ? 1 : p == 1 ? 0 : 1 / (1 - p);
              return Grads{native_dropout_backward(v.grad(), v.output(1), scale)};
            },
            .differentiable_results = 1},
    .batch = random_like_batch,
    .samples = [] { return Samples{{"train", {f64({3, 4}), 0.5, true}}, {"eval", {f64({3, 4}), 0.5, false}}}; },
};

WEFT_OPERATOR(native_dropout_backward) = {
    .schema = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    .out = "aten::native_dropout_backward.out(Tensor grad_output, Tensor mask, float scale, *, Tensor(a!) out) -> Tensor(a!)",
    .composite = composite<&native_dropout_backward_composite>(),
    .samples = [] { return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), 2.0}}}; },
};

WEFT_OPERATOR(dropout) = {
    .schema = "aten::dropout(Tensor input, float p, bool train) -> Tensor",
    .traits = Traits::kRandom,
    .composite = {.functional = function<&dropout_composite>()},
    .samples = [] { return Samples{{"train", {f64({3, 4}), 0.5, true}}, {"eval", {f64({3, 4}), 0.5, false}}}; },
};

}  // namespace weft::ops
