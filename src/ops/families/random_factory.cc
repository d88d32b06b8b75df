// Random factories: tensors of given sizes, or like another tensor, with a generator or the default one.
#include "ops/support/family.h"
#include "ops/support/random_draw.h"

namespace weft::ops {
namespace {

using MaybeType = std::optional<DType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

struct Uniform {
  static void draw(const Tensor& out, const MaybeGenerator& generator) { draw_uniform(out, 0, 1, generator); }
};
struct Normal {
  static void draw(const Tensor& out, const MaybeGenerator& generator) { draw_normal(out, 0, 1, generator); }
};

void refuse_pinned(const MaybeBool& pin) {
  require(!pin.value_or(false), "pin_memory: weft has no pinned memory; leave it out");
}
TensorSpec sized(SymIntSpan size, MaybeType dtype, MaybeLayout, MaybeDevice device, MaybeBool pin) {
  refuse_pinned(pin);
  return contiguous_spec(size, dtype.value_or(kFloat32), device.value_or(kCpu));
}
TensorSpec like(const Tensor& self, MaybeType dtype, MaybeLayout, MaybeDevice device, MaybeBool pin,
                MaybeFormat format) {
  refuse_pinned(pin);
  MemoryFormat wanted = format.value_or(MemoryFormat::kPreserve);
  return {
      dtype.value_or(self.dtype()), device.value_or(self.device()), SymInts(self.sizes()),
      wanted == MemoryFormat::kPreserve ? preserved_strides(self) : strides_of_format(self.sizes(), wanted)};
}
// The type and device of a result that is written into `out` are its own.
const Tensor& resized(const TensorSpec& spec, const Tensor& out) {
  check_no_internal_overlap(out);
  prepare_out(contiguous_spec(spec.sizes, out.dtype(), out.device()), out);
  return out;
}

// --- real numbers ----------------------------------------------------------------------------------------

template <typename Numbers>
struct Sized {
  static TensorSpec meta(SymIntSpan size, const MaybeGenerator&, MaybeType dtype, MaybeLayout layout,
                         MaybeDevice device, MaybeBool pin) {
    return sized(size, dtype, layout, device, pin);
  }
  static Tensor with_generator(SymIntSpan size, const MaybeGenerator& generator, MaybeType dtype,
                               MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
    Tensor out = allocate(sized(size, dtype, layout, device, pin));
    Numbers::draw(out, generator);
    return out;
  }
  static Tensor kernel(SymIntSpan size, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                       MaybeBool pin) {
    return with_generator(size, {}, dtype, layout, device, pin);
  }
  static const Tensor& generator_out(SymIntSpan size, const MaybeGenerator& generator, const Tensor& out) {
    Numbers::draw(resized(contiguous_spec(size, out.dtype(), out.device()), out), generator);
    return out;
  }
  static const Tensor& out(SymIntSpan size, const Tensor& out) { return generator_out(size, {}, out); }
};
template <typename Numbers>
struct Like {
  static TensorSpec meta(const Tensor& self, const MaybeGenerator&, MaybeType dtype, MaybeLayout layout,
                         MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return like(self, dtype, layout, device, pin, format);
  }
  static Tensor with_generator(const Tensor& self, const MaybeGenerator& generator, MaybeType dtype,
                               MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    Tensor out = allocate(like(self, dtype, layout, device, pin, format));
    Numbers::draw(out, generator);
    return out;
  }
  static Tensor kernel(const Tensor& self, MaybeType dtype, MaybeLayout layout, MaybeDevice device,
                       MaybeBool pin, MaybeFormat format) {
    return with_generator(self, {}, dtype, layout, device, pin, format);
  }
  static const Tensor& generator_out(const Tensor& self, const MaybeGenerator& generator, MaybeFormat format,
                                     const Tensor& out) {
    Numbers::draw(resized(like(self, {}, {}, {}, {}, format), out), generator);
    return out;
  }
  static const Tensor& out(const Tensor& self, MaybeFormat format, const Tensor& out) {
    return generator_out(self, {}, format, out);
  }
};

// --- integers --------------------------------------------------------------------------------------------

struct Integers {
  static TensorSpec generator_meta(const SymInt&, const SymInt&, SymIntSpan size, const MaybeGenerator&,
                                   MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
    return sized(size, dtype.value_or(kInt64), layout, device, pin);
  }
  static TensorSpec meta(const SymInt&, const SymInt&, SymIntSpan size, MaybeType dtype, MaybeLayout layout,
                         MaybeDevice device, MaybeBool pin) {
    return sized(size, dtype.value_or(kInt64), layout, device, pin);
  }
  static Tensor with_generator(const SymInt& low, const SymInt& high, SymIntSpan size,
                               const MaybeGenerator& generator, MaybeType dtype, MaybeLayout layout,
                               MaybeDevice device, MaybeBool pin) {
    Tensor out = allocate(sized(size, dtype.value_or(kInt64), layout, device, pin));
    draw_integers(out, low.plain(), high.plain(), generator);
    return out;
  }
  static Tensor kernel(const SymInt& low, const SymInt& high, SymIntSpan size, MaybeType dtype,
                       MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
    return with_generator(low, high, size, {}, dtype, layout, device, pin);
  }
  static const Tensor& generator_out(const SymInt& low, const SymInt& high, SymIntSpan size,
                                     const MaybeGenerator& generator, const Tensor& out) {
    draw_integers(resized(contiguous_spec(size, out.dtype(), out.device()), out), low.plain(), high.plain(),
                  generator);
    return out;
  }
  static const Tensor& out(const SymInt& low, const SymInt& high, SymIntSpan size, const Tensor& out) {
    return generator_out(low, high, size, {}, out);
  }

  // From zero on.
  static Tensor below(const SymInt& high, SymIntSpan size, MaybeType dtype, MaybeLayout layout,
                      MaybeDevice device, MaybeBool pin) {
    return randint(SymInt(0), high, size, dtype, layout, device, pin);
  }
  static const Tensor& below_out(const SymInt& high, SymIntSpan size, const Tensor& out) {
    return randint_out(out, SymInt(0), high, size);
  }
  static Tensor below_generator(const SymInt& high, SymIntSpan size, const MaybeGenerator& generator,
                                MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin) {
    return randint(SymInt(0), high, size, generator, dtype, layout, device, pin);
  }
  static const Tensor& below_generator_out(const SymInt& high, SymIntSpan size,
                                           const MaybeGenerator& generator, const Tensor& out) {
    return randint_out(out, SymInt(0), high, size, generator);
  }
};
struct IntegersLike {
  static TensorSpec generator_meta(const Tensor& self, const SymInt&, const SymInt&, const MaybeGenerator&,
                                   MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin,
                                   MaybeFormat format) {
    return like(self, dtype, layout, device, pin, format);
  }
  static TensorSpec meta(const Tensor& self, const SymInt&, const SymInt&, MaybeType dtype,
                         MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return like(self, dtype, layout, device, pin, format);
  }
  static Tensor with_generator(const Tensor& self, const SymInt& low, const SymInt& high,
                               const MaybeGenerator& generator, MaybeType dtype, MaybeLayout layout,
                               MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    Tensor out = allocate(like(self, dtype, layout, device, pin, format));
    draw_integers(out, low.plain(), high.plain(), generator);
    return out;
  }
  static Tensor kernel(const Tensor& self, const SymInt& low, const SymInt& high, MaybeType dtype,
                       MaybeLayout layout, MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return with_generator(self, low, high, {}, dtype, layout, device, pin, format);
  }
  static const Tensor& generator_out(const Tensor& self, const SymInt& low, const SymInt& high,
                                     const MaybeGenerator& generator, MaybeFormat format, const Tensor& out) {
    draw_integers(resized(like(self, {}, {}, {}, {}, format), out), low.plain(), high.plain(), generator);
    return out;
  }
  static const Tensor& out(const Tensor& self, const SymInt& low, const SymInt& high, MaybeFormat format,
                           const Tensor& out) {
    return generator_out(self, low, high, {}, format, out);
  }

  static Tensor below(const Tensor& self, const SymInt& high, MaybeType dtype, MaybeLayout layout,
                      MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return randint_like(self, SymInt(0), high, dtype, layout, device, pin, format);
  }
  static const Tensor& below_out(const Tensor& self, const SymInt& high, MaybeFormat format,
                                 const Tensor& out) {
    return randint_like_out(out, self, SymInt(0), high, format);
  }
  static Tensor below_generator(const Tensor& self, const SymInt& high, const MaybeGenerator& generator,
                                MaybeType dtype, MaybeLayout layout, MaybeDevice device, MaybeBool pin,
                                MaybeFormat format) {
    return randint_like(self, SymInt(0), high, generator, dtype, layout, device, pin, format);
  }
  static const Tensor& below_generator_out(const Tensor& self, const SymInt& high,
                                           const MaybeGenerator& generator, MaybeFormat format,
                                           const Tensor& out) {
    return randint_like_out(out, self, SymInt(0), high, generator, format);
  }

  // The bound is the value of a tensor.
  static SymInt bound_of(const Tensor& high) { return item(high).to_sym_int(); }
  static Tensor below_tensor(const Tensor& self, const Tensor& high, MaybeType dtype, MaybeLayout layout,
                             MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return randint_like(self, SymInt(0), bound_of(high), dtype, layout, device, pin, format);
  }
  static const Tensor& below_tensor_out(const Tensor& self, const Tensor& high, MaybeFormat format,
                                        const Tensor& out) {
    return randint_like_out(out, self, SymInt(0), bound_of(high), format);
  }
  static Tensor below_tensor_generator(const Tensor& self, const Tensor& high,
                                       const MaybeGenerator& generator, MaybeType dtype, MaybeLayout layout,
                                       MaybeDevice device, MaybeBool pin, MaybeFormat format) {
    return randint_like(self, SymInt(0), bound_of(high), generator, dtype, layout, device, pin, format);
  }
  static const Tensor& below_tensor_generator_out(const Tensor& self, const Tensor& high,
                                                  const MaybeGenerator& generator, MaybeFormat format,
                                                  const Tensor& out) {
    return randint_like_out(out, self, SymInt(0), bound_of(high), generator, format);
  }
};

Batched like_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  return {weft::call(call.op(), args), {0}};
}

Samples size_samples() {
  return {{"matrix", {ints({2, 3})}}, {"empty", {ints({0})}}, {"double", {ints({4}), kFloat64}}};
}
Samples generator_samples() {
  return {{"own", {ints({2, 3}), Generator(7)}}, {"default", {ints({4}), Value(), kFloat64}}};
}
Samples like_samples() { return {{"plain", {f32({2, 3})}}, {"transposed", {transposed(f64({3, 4}))}}}; }
Samples like_generator_samples() { return {{"own", {f32({2, 3}), Generator(7)}}}; }
constexpr Traits kRandomFactory =
    Traits::kRandom | Traits::kFactory | Traits::kNotDifferentiable | Traits::kNotBatchable;
constexpr Traits kRandomLike = Traits::kRandom | Traits::kUninitialized | Traits::kNotDifferentiable;

}  // namespace

WEFT_OPERATOR(rand) = {
    .schema =
        "aten::rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .out = "aten::rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | kRandomFactory,
    .meta = function<&sized>(),
    .kernel = {.functional = function<&Sized<Uniform>::kernel>(), .out = function<&Sized<Uniform>::out>()},
    .samples = size_samples,
};

WEFT_OPERATOR(rand_generator) = {
    .schema =
        "aten::rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::rand.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomFactory,
    .meta = function<&Sized<Uniform>::meta>(),
    .kernel = {.functional = function<&Sized<Uniform>::with_generator>(),
               .out = function<&Sized<Uniform>::generator_out>()},
    .samples = generator_samples,
};

WEFT_OPERATOR(randn) = {
    .schema =
        "aten::randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .out = "aten::randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kCore | kRandomFactory,
    .meta = function<&sized>(),
    .kernel = {.functional = function<&Sized<Normal>::kernel>(), .out = function<&Sized<Normal>::out>()},
    .samples = size_samples,
};

WEFT_OPERATOR(randn_generator) = {
    .schema =
        "aten::randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::randn.generator_out(SymInt[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomFactory,
    .meta = function<&Sized<Normal>::meta>(),
    .kernel = {.functional = function<&Sized<Normal>::with_generator>(),
               .out = function<&Sized<Normal>::generator_out>()},
    .samples = generator_samples,
};

WEFT_OPERATOR(randint_low) = {
    .schema =
        "aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::randint.low_out(SymInt low, SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomFactory,
    .meta = function<&Integers::meta>(),
    .kernel = {.functional = function<&Integers::kernel>(), .out = function<&Integers::out>()},
    .samples = [] { return Samples{{"plain", {-3, 5, ints({2, 3})}}}; },
};

WEFT_OPERATOR(randint_low_generator) = {
    .schema =
        "aten::randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
        "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out =
        "aten::randint.low_generator_out(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomFactory,
    .meta = function<&Integers::generator_meta>(),
    .kernel = {.functional = function<&Integers::with_generator>(),
               .out = function<&Integers::generator_out>()},
    .samples = [] { return Samples{{"plain", {-3, 5, ints({2, 3}), Generator(7)}}}; },
};

WEFT_OPERATOR(randint) = {
    .schema =
        "aten::randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
        "device=None, bool? pin_memory=None) -> Tensor",
    .out = "aten::randint.out(SymInt high, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kFactory,
    .composite = {.functional = function<&Integers::below>(), .out = function<&Integers::below_out>()},
    .samples = [] { return Samples{{"plain", {5, ints({2, 3})}}}; },
};

WEFT_OPERATOR(randint_generator) = {
    .schema =
        "aten::randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    .out =
        "aten::randint.generator_out(SymInt high, SymInt[] size, *, Generator? generator, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kRandom | Traits::kFactory,
    .composite = {.functional = function<&Integers::below_generator>(),
                  .out = function<&Integers::below_generator_out>()},
    .samples = [] { return Samples{{"plain", {5, ints({2, 3}), Generator(7)}}}; },
};

WEFT_OPERATOR(rand_like) = {
    .schema =
        "aten::rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::rand_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&like>(),
    .kernel = {.functional = function<&Like<Uniform>::kernel>(), .out = function<&Like<Uniform>::out>()},
    .batch = like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(rand_like_generator) = {
    .schema =
        "aten::rand_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> "
        "Tensor",
    .out =
        "aten::rand_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? "
        "memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&Like<Uniform>::meta>(),
    .kernel = {.functional = function<&Like<Uniform>::with_generator>(),
               .out = function<&Like<Uniform>::generator_out>()},
    .batch = like_batch,
    .samples = like_generator_samples,
};

WEFT_OPERATOR(randn_like) = {
    .schema =
        "aten::randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::randn_like.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&like>(),
    .kernel = {.functional = function<&Like<Normal>::kernel>(), .out = function<&Like<Normal>::out>()},
    .batch = like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(randn_like_generator) = {
    .schema =
        "aten::randn_like.generator(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
        "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> "
        "Tensor",
    .out =
        "aten::randn_like.generator_out(Tensor self, *, Generator? generator, MemoryFormat? "
        "memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&Like<Normal>::meta>(),
    .kernel = {.functional = function<&Like<Normal>::with_generator>(),
               .out = function<&Like<Normal>::generator_out>()},
    .batch = like_batch,
    .samples = like_generator_samples,
};

WEFT_OPERATOR(randint_like_low) = {
    .schema =
        "aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, "
        "Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) "
        "-> Tensor",
    .out =
        "aten::randint_like.low_dtype_out(Tensor self, SymInt low, SymInt high, *, MemoryFormat? "
        "memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&IntegersLike::meta>(),
    .kernel = {.functional = function<&IntegersLike::kernel>(), .out = function<&IntegersLike::out>()},
    .batch = like_batch,
    .samples = [] { return Samples{{"plain", {i64({2, 3}), -2, 4}}}; },
};

WEFT_OPERATOR(randint_like_low_generator) = {
    .schema =
        "aten::randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, *, Generator? "
        "generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
        "MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::randint_like.low_generator_dtype_out(Tensor self, SymInt low, SymInt high, *, Generator? "
        "generator, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = kRandomLike,
    .meta = function<&IntegersLike::generator_meta>(),
    .kernel = {.functional = function<&IntegersLike::with_generator>(),
               .out = function<&IntegersLike::generator_out>()},
    .batch = like_batch,
    .samples = [] { return Samples{{"plain", {i64({2, 3}), -2, 4, Generator(7)}}}; },
};

WEFT_OPERATOR(randint_like) = {
    .schema =
        "aten::randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::randint_like.out(Tensor self, SymInt high, *, MemoryFormat? memory_format=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .composite = {.functional = function<&IntegersLike::below>(),
                  .out = function<&IntegersLike::below_out>()},
    .samples = [] { return Samples{{"plain", {i64({2, 3}), 4}}}; },
};

WEFT_OPERATOR(randint_like_generator) = {
    .schema =
        "aten::randint_like.generator(Tensor self, SymInt high, *, Generator? generator, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
        "memory_format=None) -> Tensor",
    .out =
        "aten::randint_like.generator_out(Tensor self, SymInt high, *, Generator? generator, MemoryFormat? "
        "memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom,
    .composite = {.functional = function<&IntegersLike::below_generator>(),
                  .out = function<&IntegersLike::below_generator_out>()},
    .samples = [] { return Samples{{"plain", {i64({2, 3}), 4, Generator(7)}}}; },
};

WEFT_OPERATOR(randint_like_tensor) = {
    .schema =
        "aten::randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .out =
        "aten::randint_like.Tensor_out(Tensor self, Tensor high, *, MemoryFormat? memory_format=None, "
        "Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kDataDependent,
    .composite = {.functional = function<&IntegersLike::below_tensor>(),
                  .out = function<&IntegersLike::below_tensor_out>()},
    .samples = [] { return Samples{{"plain", {i64({2, 3}), i64({}, 4, 5)}}}; },
};

WEFT_OPERATOR(randint_like_tensor_generator) = {
    .schema =
        "aten::randint_like.Tensor_generator(Tensor self, Tensor high, *, Generator? generator, ScalarType? "
        "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
        "memory_format=None) -> Tensor",
    .out =
        "aten::randint_like.Tensor_generator_out(Tensor self, Tensor high, *, Generator? generator, "
        "MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kDataDependent,
    .composite = {.functional = function<&IntegersLike::below_tensor_generator>(),
                  .out = function<&IntegersLike::below_tensor_generator_out>()},
    .samples = [] { return Samples{{"plain", {i64({2, 3}), i64({}, 4, 5), Generator(7)}}}; },
};

}  // namespace weft::ops
