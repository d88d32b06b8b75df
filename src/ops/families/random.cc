// Random numbers. Element i of a result depends on (seed, offset, i) alone.
#include "ops/decompositions/decompositions.h"
#include "ops/support/checks.h"
#include "ops/support/family.h"
#include "ops/support/fill.h"
#include "ops/support/random_draw.h"
#include "weft/dispatch/layers.h"

namespace weft::ops {
namespace {

using MaybeBool = std::optional<bool>;

// --- fills -----------------------------------------------------------------------------------------------

TensorSpec like_self(const Tensor& self) {
  return {self.dtype(), self.device(), SymInts(self.sizes()), preserved_strides(self)};
}
TensorSpec uniform_meta(const Tensor& self, double, double, const MaybeGenerator&) { return like_self(self); }
void uniform_into(const Tensor&, double from, double to, const MaybeGenerator& generator, const Tensor& out) {
  draw_uniform(out, from, to, generator);
}
TensorSpec normal_meta(const Tensor& self, double, double, const MaybeGenerator&) { return like_self(self); }
void normal_into(const Tensor&, double mean, double std, const MaybeGenerator& generator, const Tensor& out) {
  draw_normal(out, mean, std, generator);
}
// Its result is contiguous where that of the other draws has the layout of `self`.
TensorSpec contiguous_like_self(const Tensor& self) {
  return contiguous_spec(self.sizes(), self.dtype(), self.device());
}
TensorSpec bernoulli_meta(const Tensor& self, const MaybeGenerator&) { return contiguous_like_self(self); }
void bernoulli_into(const Tensor& self, const MaybeGenerator& generator, const Tensor& out) {
  draw_bernoulli(out, self, generator);
}
// A target of any real type takes the zeros and ones.
const Tensor& bernoulli_out_kernel(const Tensor& self, const MaybeGenerator& generator, const Tensor& out) {
  TensorSpec spec = contiguous_like_self(self);
  spec.dtype = out.dtype();
  check_no_internal_overlap(out);
  prepare_out(spec, out);
  check_overlap(out, self);
  draw_bernoulli(out, self, generator);
  return out;
}
TensorSpec bernoulli_p_meta(const Tensor& self, double p, const MaybeGenerator&) {
  check_probability(p, "bernoulli");
  return contiguous_like_self(self);
}
void bernoulli_p_into(const Tensor&, double p, const MaybeGenerator& generator, const Tensor& out) {
  draw_bernoulli(out, p, generator);
}
TensorSpec bernoulli_tensor_meta(const Tensor& self, const Tensor& p, const MaybeGenerator&) {
  check_expandable("bernoulli", "p", p, self.sizes());
  return like_self(self);
}
void bernoulli_tensor_into(const Tensor&, const Tensor& p, const MaybeGenerator& generator,
                           const Tensor& out) {
  draw_bernoulli(out, p, generator);
}

// --- dropout ---------------------------------------------------------------------------------------------

std::tuple<TensorSpec, TensorSpec> native_dropout_meta(const Tensor& input, double, MaybeBool train) {
  bool scales = train.value_or(true) && !is_floating(input.dtype()) && !input.is_complex();
  require(!scales || guard_or(input.numel() == 0, false),
          "native_dropout: result type Float can't be cast to the desired output type {}; the input is {}",
          dtype_name(input.dtype()), describe(input));
  return {pointwise_spec({&input}, input.dtype()), pointwise_spec({&input}, kBool)};
}
void native_dropout_into(const Tensor& input, double p, MaybeBool train, const Tensor& out,
                         const Tensor& mask) {
  require(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  if (!train.value_or(true)) {
    fill_values(mask, true);
    return copy_values(out, input);
  }
  draw_bernoulli(mask, 1 - p, {});
  Tensor scale = wrapped_number(p == 1 ? 0.0 : 1 / (1 - p)),
         kept = allocate(pointwise_spec({&input}, input.dtype())), zero = wrapped_number(0);
  run_pointwise(cpu::kMul, input.dtype(), kept, {&input, &scale});
  run_pointwise(cpu::kWhere, input.dtype(), out, {&mask, &kept, &zero});
}
Tensor native_dropout_backward_composite(const Tensor& grad, const Tensor& mask, double scale) {
  return grad * (mask.to(grad.dtype()) * scale);
}

// Whether anything is dropped at all.
bool drops(const Tensor& input, double p, bool train) {
  require(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  return p != 0 && train && !guard_or(input.numel() == 0, false);
}
// How many numbers that takes.
SymInt dropout_draws(Args args) {
  const Tensor& input = args[0].tensor_ref();
  const double p = args[1].to_double();
  return drops(input, p, args[2].to_bool()) && p != 1 ? input.numel() : SymInt(0);
}
SymInt native_dropout_draws(Args args) {
  return args[2].is_none() || args[2].to_bool() ? args[0].tensor_ref().numel() : SymInt(0);
}
// The mask of inverted dropout: zero, or 1 / (1 - p) for a value that is kept.
Tensor dropout_factors(const Tensor& input, double p) {
  if (p == 1) return zeros({}, input.dtype(), std::nullopt, input.device());
  Tensor noise = bernoulli_(empty_like(input), 1 - p);
  return div_(noise, 1 - p);
}
// Where writes become values, the input itself would be written through the result: as in PyTorch the result
// is a copy there.
Tensor dropout_composite(const Tensor& input, double p, bool train) {
  if (drops(input, p, train)) return input * dropout_factors(input, p);
  return layer_state().active & layer::kFunctionalizeLower ? input.clone() : input;
}
const Tensor& dropout_inplace(const Tensor& self, double p, bool train) {
  return drops(self, p, train) ? mul_(self, dropout_factors(self, p)) : self;
}

Batched random_like_batch(const Batch& call) {
  std::vector<Value> args(call.args().begin(), call.args().end());
  args[0] = batch_first(call.tensor(0), call.batch_dim(0));
  return {weft::call(call.op(), args), std::vector<int64_t>(call.op().schema().returns.size(), 0)};
}

Samples like_samples() { return {{"plain", {f32({2, 3})}}, {"transposed", {transposed(f64({3, 4}))}}}; }

}  // namespace

WEFT_OPERATOR(uniform) = {
    .schema =
        "aten::uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
    .inplace =
        "aten::uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> "
        "Tensor(a!)",
    .out =
        "aten::uniform.out(Tensor self, float from=0., float to=1., *, Generator? generator=None, Tensor(a!) "
        "out) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kUninitialized,
    .meta = function<&uniform_meta>(),
    .kernel = structured<&uniform_meta, &uniform_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = like_samples,
};

WEFT_OPERATOR(normal_functional) = {
    .schema =
        "aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> "
        "Tensor",
    .inplace =
        "aten::normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> "
        "Tensor(a!)",
    .out =
        "aten::normal.out(Tensor self, float mean=0., float std=1., *, Generator? generator=None, Tensor(a!) "
        "out) -> Tensor(a!)",
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
    .kernel = with_out<&bernoulli_out_kernel>(structured<&bernoulli_meta, &bernoulli_into, true>()),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .decompose = function<&bernoulli_parts>(),
    .samples = [] { return Samples{{"plain", {make({3, 4}, kFloat64, 0, 1)}}}; },
};

WEFT_OPERATOR(bernoulli_p) = {
    .schema = "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    .inplace =
        "aten::bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
    .out =
        "aten::bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) "
        "-> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kUninitialized,
    .meta = function<&bernoulli_p_meta>(),
    .kernel = structured_exact<&bernoulli_p_meta, &bernoulli_p_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad())}; }},
    .batch = random_like_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), 0.3}}}; },
};

WEFT_OPERATOR(bernoulli_tensor) = {
    .schema = "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    .inplace =
        "aten::bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
    .out =
        "aten::bernoulli.Tensor_out(Tensor self, Tensor p, *, Generator? generator=None, Tensor(a!) out) -> "
        "Tensor(a!)",
    .traits = Traits::kRandom,
    .meta = function<&bernoulli_tensor_meta>(),
    .kernel = structured<&bernoulli_tensor_meta, &bernoulli_tensor_into, true>(),
    .vjp = {.rule = [](const Vjp& v) { return Grads{zeros_like(v.grad()), Tensor()}; }},
    .batch = loop_batch,
    .samples = [] { return Samples{{"plain", {f64({3, 4}), make({3, 4}, kFloat64, 0, 1)}}}; },
};

WEFT_OPERATOR(native_dropout) = {
    .schema = "aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    .out =
        "aten::native_dropout.out(Tensor input, float p, bool? train, *, Tensor(a!) out0, Tensor(b!) out1) "
        "-> (Tensor(a!), Tensor(b!))",
    .traits = Traits::kCore | Traits::kRandom,
    .meta = function<&native_dropout_meta>(),
    .kernel = structured_exact<&native_dropout_meta, &native_dropout_into>(),
    .vjp = {.saves = outputs(1),
            .rule =
                [](const Vjp& v) {
                  double p = v.arg<double>(1);
                  bool train = v.arg<MaybeBool>(2).value_or(true);
                  double scale = !train ? 1 : p == 1 ? 0 : 1 / (1 - p);
                  return Grads{native_dropout_backward(v.grad(), v.output(1), scale)};
                },
            .differentiable_results = 1},
    .batch = random_like_batch,
    .draws = native_dropout_draws,
    .samples =
        [] { return Samples{{"train", {f64({3, 4}), 0.5, true}}, {"eval", {f64({3, 4}), 0.5, false}}}; },
};

WEFT_OPERATOR(native_dropout_backward) = {
    .schema = "aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    .out =
        "aten::native_dropout_backward.out(Tensor grad_output, Tensor mask, float scale, *, Tensor(a!) out) "
        "-> Tensor(a!)",
    .composite = composite_exact<&native_dropout_backward_composite>(),
    .samples = [] { return Samples{{"plain", {f64({3, 4}), boolean({3, 4}), 2.0}}}; },
};

WEFT_OPERATOR(dropout) = {
    .schema = "aten::dropout(Tensor input, float p, bool train) -> Tensor",
    .inplace = "aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
    .traits = Traits::kRandom | Traits::kMayAlias,
    .composite = {.functional = function<&dropout_composite>(), .inplace = function<&dropout_inplace>()},
    .draws = dropout_draws,
    .samples =
        [] { return Samples{{"train", {f64({3, 4}), 0.5, true}}, {"eval", {f64({3, 4}), 0.5, false}}}; },
};

}  // namespace weft::ops
