// What an operator says that a call computes is what its kernel computes: for every operator with a lowering,
// every sample and every type.
#include "ops/lowering.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cpu/convert.h"
#include "ops/cpu/evaluate.h"
#include "ops/support/dense.h"
#include "ops/support/pointwise.h"
#include "support/expect_error.h"
#include "table_support.h"
#include "weft/ops/fake.h"
#include "weft/ops/operators.h"

namespace weft::table {
namespace {

using Bytes = std::vector<char>;
using scalar::ScalarExpr;

constexpr DType kAllDTypes[] = {kBool,    kUInt8,    kInt8,    kInt16,   kInt32,     kInt64,
                                kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128};

// --- varying samples -------------------------------------------------------------------------------------

// The same sizes and strides, numbers of `dtype`. Masks and positions stay what they are.
Tensor numbers_of(const Tensor& tensor, DType dtype, bool with_special) {
  if (tensor.dtype() == kBool || (tensor.dtype() == kInt64 && tensor.flags() & tensor_flag::kWrappedNumber))
    return tensor;
  GradModeScope no_grad(false);
  const bool is_whole = dtype <= kInt64;
  Tensor wide = is_whole && is_floating(tensor.dtype()) ? tensor * 9.7 : tensor;
  Tensor result = laid_out(to(wide, dtype), !tensor.is_contiguous(), 1, 0);
  if (!with_special || is_whole) return result;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double special[] = {-0.0, kInf, std::nan(""), -kInf, 0.0, 1e-42, 6e4, -0.5};
  Tensor flat = reshape(result, {-1});
  for (int64_t i = 0; i < std::min<int64_t>(flat.plain_numel(), 8); ++i)
    copy_(select(flat, 0, i), wrapped_number(special[i]));
  return reshape(flat, result.sizes());
}
std::vector<Value> args_of(const Case& one, DType dtype, bool with_special) {
  return map_tensors(one.args(),
                     [&](const Tensor& tensor) { return numbers_of(tensor, dtype, with_special); });
}

// --- evaluating ------------------------------------------------------------------------------------------

Bytes bytes_of(const Tensor& tensor, SymIntSpan sizes) {
  Tensor dense = dense_as(tensor, sizes, tensor.dtype());
  const char* data = static_cast<const char*>(dense.raw_data());
  return Bytes(data, data + dense.plain_numel() * item_size(dense.dtype()));
}
Bytes converted(const Bytes& from, DType to, DType type) {
  const int64_t n = static_cast<int64_t>(from.size()) / item_size(type);
  Bytes result(static_cast<size_t>(n * item_size(to)));
  char* pointers[] = {result.data(), const_cast<char*>(from.data())};
  cpu::converter(to, type)(n, pointers, nullptr);
  return result;
}
// The parts of complex numbers, interleaved.
Bytes joined(const std::vector<Bytes>& parts, size_t item) {
  if (parts.size() == 1) return parts[0];
  Bytes result;
  for (size_t at = 0; at < parts[0].size(); at += item)
    for (const Bytes& part : parts) result.insert(result.end(), &part[at], &part[at] + item);
  return result;
}
std::vector<const char*> pointers_to(const std::vector<Bytes>& arrays) {
  std::vector<const char*> pointers;
  for (const Bytes& array : arrays) pointers.push_back(array.data());
  return pointers;
}

struct Evaluated {
  Bytes values;  // in the kernel's result type
  bool is_refused = false;
};
Evaluated evaluated(const cpu::PointwiseKernel& kernel, DType compute, int64_t n,
                    const std::vector<Bytes>& inputs, const std::vector<Bytes>& params) {
  scalar::ScalarFunction f = kernel.build(compute);
  std::vector<const char*> in = pointers_to(inputs), uniform = pointers_to(params);
  std::vector<Bytes> outputs = cpu::evaluate(f.outputs, n, {in, uniform});
  Evaluated result{joined(outputs, static_cast<size_t>(item_size(f.outputs[0].node().dtype)))};
  if (!f.error) return result;
  const std::vector<Bytes> refused = cpu::evaluate({&f.error, 1}, n, {in, uniform});
  for (char is_refused : refused[0]) result.is_refused |= is_refused != 0;
  return result;
}

Tensor operand_of(const Value& argument) {
  return argument.is_tensor() ? argument.tensor_ref() : wrapped_number(argument.to_scalar());
}
Evaluated evaluated(const PointwiseCall& call, const std::vector<Value>& args, SymIntSpan sizes) {
  std::vector<Bytes> inputs, params;
  for (int k = 0; k < call.inputs.size(); ++k) {
    Tensor operand = operand_of(args.at(call.inputs[k]));
    inputs.push_back(
        converted(bytes_of(operand, sizes), call.kernel->input_dtype(call.compute, k), operand.dtype()));
  }
  for (int k = 0; k < call.param_count; ++k) {
    params.emplace_back(16);
    cpu::write_param(params.back().data(), call.params[k], cpu::param_dtype(call.compute));
    // The value is the argument, converted.
    if (call.param_arguments[k] == kNoArgument) continue;
    Tensor number = operand_of(args.at(call.param_arguments[k]));
    Bytes again = converted(bytes_of(number, {}), cpu::param_dtype(call.compute), number.dtype());
    EXPECT_EQ(std::memcmp(again.data(), params.back().data(), again.size()), 0);
  }
  int64_t n = 1;
  for (const SymInt& size : sizes) n *= size.plain();
  return evaluated(*call.kernel, call.compute, n, inputs, params);
}

// Bit for bit, but that a NaN is any NaN.
bool is_same_number(const char* a, const char* b, DType dtype) {
  if (is_complex(dtype)) {
    const DType part = dtype == kComplex64 ? kFloat32 : kFloat64;
    return is_same_number(a, b, part) && is_same_number(a + item_size(part), b + item_size(part), part);
  }
  return visit_dtype(dtype, [&]<typename T>() {
    T x, y;
    std::memcpy(&x, a, sizeof(T));
    std::memcpy(&y, b, sizeof(T));
    return std::memcmp(a, b, sizeof(T)) == 0 || (!(x == x) && !(y == y));
  });
}
size_t first_difference(const Bytes& a, const Bytes& b, DType dtype) {
  const auto item = static_cast<size_t>(item_size(dtype));
  for (size_t at = 0; at < a.size(); at += item)
    if (!is_same_number(&a[at], &b[at], dtype)) return at / item;
  return a.size() / item;
}

// --- pointwise calls -------------------------------------------------------------------------------------

bool lowers(const Operator& op) { return static_cast<bool>(op.def().lower); }

// One sample in one type: whether the kernel has it. Differences are added to `texts`.
bool check_pointwise(const Case& one, DType dtype, bool with_special, std::vector<std::string>& texts) {
  const std::vector<Value> args = args_of(one, dtype, with_special);
  Value result;
  std::string error;
  try {
    result = call(*one.op, args);
  } catch (const Error& thrown) {
    error = thrown.message();
  }
  const bool divides_by_zero = error.find("ZeroDivisionError") != std::string::npos;
  if (!error.empty() && !divides_by_zero) return false;
  Lowering lowering = lower(*one.op, args);
  const PointwiseCall* pointwise = lowering.pointwise();
  if (!pointwise) return false;
  auto complain = [&](const std::string& text) {
    texts.push_back(fmt::format("{}{}: {}", short_name(dtype), with_special ? " special" : "", text));
  };
  if (divides_by_zero) {
    // As large as the operands: the kernel's result is not there to ask.
    SymInts sizes = broadcast_sizes({&args[0].tensor_ref()});
    if (args[1].is_tensor())
      sizes = broadcast_sizes(args[0].tensor_ref().sizes(), args[1].tensor_ref().sizes());
    if (!evaluated(*pointwise, args, sizes).is_refused)
      complain("the kernel divides by zero, the formula does not");
    return true;
  }
  const Tensor& out = result.tensor_ref();
  const DType type = pointwise->kernel->result_dtype(pointwise->compute);
  const Evaluated mine = evaluated(*pointwise, args, out.sizes());
  if (mine.is_refused) complain("the formula divides by zero, the kernel does not");
  const Bytes got = converted(mine.values, out.dtype(), type), want = bytes_of(out, out.sizes());
  if (size_t at = first_difference(got, want, out.dtype()); at < static_cast<size_t>(out.plain_numel()))
    complain(fmt::format("element {} of {} in {} differs", at, pointwise->kernel->name,
                         dtype_name(pointwise->compute)));
  return true;
}

TEST(Lowering, FormulasGiveTheBitsOfPointwiseKernels) {
  std::map<std::string, int> types;  // by operator: in how many it was compared
  Findings findings = check_samples(lowers, [&](const Case& one, std::vector<std::string>& texts) {
    if (!lower(*one.op, one.args()).pointwise()) return;
    int& count = types[std::string(one.op->name())];
    for (DType dtype : kAllDTypes)
      for (bool with_special : {false, true}) count += check_pointwise(one, dtype, with_special, texts);
  });
  expect_only(findings, {});
  EXPECT_GT(types.size(), 90u);
  for (const auto& [name, count] : types) EXPECT_GE(count, 2) << name << " was compared in no type";
}

// --- reductions ------------------------------------------------------------------------------------------

Bytes constant_bytes(double value) {
  Bytes bytes(sizeof(double));
  std::memcpy(bytes.data(), &value, sizeof(double));
  return bytes;
}
struct Elements {
  Bytes values;
  DType dtype;
};
Elements stepped(const ReductionStep& step, const Elements& in) {
  const int64_t n = static_cast<int64_t>(in.values.size()) / item_size(in.dtype);
  std::vector<Bytes> inputs = {converted(in.values, step.compute, in.dtype)};
  if (step.operand) {
    Tensor number = wrapped_number(*step.operand);
    inputs.push_back(converted(bytes_of(number, SymInts{n}), step.compute, number.dtype()));
  }
  return {evaluated(*step.kernel, step.compute, n, inputs, {}).values,
          step.kernel->result_dtype(step.compute)};
}

// The reduction formula by formula, one element after the other.
class ReductionRun {
 public:
  ReductionRun(const ReductionCall& call, const Tensor& self)
      : call_(call), f_(call.kernel->build(call.compute)) {
    for (int64_t d = 0; d < self.dim(); ++d) {
      const bool is_reduced = call.dims >> d & 1;
      (is_reduced ? count_ : results_) *= self.plain_sizes()[static_cast<size_t>(d)];
      (is_reduced ? reduced_ : kept_).push_back(d);
    }
    Ints order = reduced_;
    for (int64_t d : kept_) order.push_back(d);
    Tensor by_element = permute(self, order);
    Elements all{bytes_of(by_element, by_element.sizes()), self.dtype()};
    for (const ReductionStep& step : call.before) all = stepped(step, all);
    elements_ = converted(all.values, call.compute, all.dtype);
  }
  int64_t results() const { return results_; }
  int64_t count() const { return count_; }

  // In one go, or as two halves that are combined.
  std::vector<Elements> run(bool in_halves) const {
    const int64_t middle = in_halves ? count_ / 2 : count_;
    std::vector<Bytes> accumulators = reduced(0, middle);
    if (in_halves) {
      std::vector<Bytes> both = accumulators;
      for (Bytes& part : reduced(middle, count_)) both.push_back(std::move(part));
      accumulators = gathered(evaluate(f_.combine, both, {}));
    }
    const std::vector<Bytes> params = {constant_bytes(static_cast<double>(count_)),
                                       constant_bytes(call_.correction)};
    return finished(evaluate(f_.finish, accumulators, params));
  }

 private:
  std::vector<Bytes> evaluate(const std::vector<ScalarExpr>& roots, const std::vector<Bytes>& inputs,
                              const std::vector<Bytes>& params) const {
    std::vector<const char*> in = pointers_to(inputs), uniform = pointers_to(params);
    return cpu::evaluate(roots, results_, {in, uniform});
  }
  // Parts of complex accumulators become arrays of complex numbers again.
  std::vector<Bytes> gathered(std::vector<Bytes> parts) const {
    if (!is_complex(f_.accumulators[0])) return parts;
    return {joined(parts, static_cast<size_t>(item_size(f_.accumulators[0])) / 2)};
  }
  std::vector<Bytes> reduced(int64_t begin, int64_t end) const {
    std::vector<Bytes> accumulators = gathered(evaluate(f_.identity, {}, {}));
    const auto row = static_cast<size_t>(results_ * item_size(call_.compute));
    for (int64_t i = begin; i < end; ++i) {
      std::vector<Bytes> inputs = accumulators;
      const auto from = elements_.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * row);
      inputs.emplace_back(from, from + static_cast<std::ptrdiff_t>(row));
      inputs.push_back(bytes_of(wrapped_number(i), SymInts{results_}));
      accumulators = gathered(evaluate(f_.step, inputs, {}));
    }
    return accumulators;
  }
  std::vector<Elements> finished(const std::vector<Bytes>& parts) const {
    std::vector<Elements> results;
    if (is_complex(f_.accumulators[0])) {
      results.push_back(
          {joined(parts, static_cast<size_t>(item_size(f_.accumulators[0])) / 2), f_.accumulators[0]});
    } else {
      for (size_t k = 0; k < parts.size(); ++k) results.push_back({parts[k], f_.finish[k].node().dtype});
    }
    for (const ReductionStep& step : call_.after)
      results[0] =
          stepped(step, {converted(results[0].values, step.compute, results[0].dtype), step.compute});
    return results;
  }

  const ReductionCall& call_;
  scalar::ReductionFormula f_;
  int64_t count_ = 1, results_ = 1;
  Ints kept_, reduced_;
  Bytes elements_;
};

double epsilon_of(DType dtype) {
  if (dtype == kFloat16) return 0x1p-10;
  if (dtype == kBFloat16) return 0x1p-7;
  return dtype == kFloat64 || dtype == kComplex128 ? 0x1p-52 : 0x1p-23;
}
// Sums in another order: within 32 units of the precision that adds up, relative to the sum of the magnitudes
// and of their squares, and a unit of the result's own type.
double allowed(const Tensor& self, DType result, const Complex<double>& want) {
  double size = 1 + std::abs(want.re) + std::abs(want.im);
  Tensor magnitude = reshape(abs(to(self, self.is_complex() ? kComplex128 : kFloat64)), {-1});
  for (int64_t i = 0; i < magnitude.plain_numel(); ++i) {
    double x = magnitude.data<double>()[i];
    size += x + x * x;
  }
  const bool is_wide = self.dtype() == kFloat64 || self.dtype() == kComplex128;
  return 32 * (is_wide ? 0x1p-52 : 0x1p-23) * size + epsilon_of(result) * std::hypot(want.re, want.im);
}
Complex<double> number_at(const Bytes& bytes, DType dtype, size_t i) {
  const auto item = static_cast<size_t>(item_size(dtype));
  Bytes one(bytes.begin() + static_cast<std::ptrdiff_t>(i * item),
            bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * item));
  Bytes wide = converted(one, kComplex128, dtype);
  Complex<double> z;
  std::memcpy(&z, wide.data(), sizeof(z));
  return z;
}

void compare_reduction(const Elements& mine, const Tensor& result, const Tensor& self, bool is_exact,
                       const std::string& what, std::vector<std::string>& texts) {
  const DType type = result.dtype();
  const Bytes got = converted(mine.values, type, mine.dtype), want = bytes_of(result, result.sizes());
  const size_t n = want.size() / static_cast<size_t>(item_size(type));
  for (size_t i = first_difference(got, want, type); i < n; ++i) {
    Complex<double> x = number_at(got, type, i), y = number_at(want, type, i);
    const bool is_near = std::hypot(x.re - y.re, x.im - y.im) <= allowed(self, type, y);
    const bool are_nan = std::isnan(x.re + x.im) && std::isnan(y.re + y.im);
    if (!is_exact && (is_near || are_nan)) continue;
    if (is_exact && (x == y || are_nan)) continue;
    texts.push_back(
        fmt::format("{}: result {} is {} by the formula and {} by the kernel", what, i, x.re, y.re));
    return;
  }
}

bool check_reduction(const Case& one, DType dtype, bool with_special, std::vector<std::string>& texts) {
  const std::vector<Value> args = args_of(one, dtype, with_special);
  Value result;
  try {
    result = call(*one.op, args);
  } catch (const Error&) {
    return false;
  }
  Lowering lowering = lower(*one.op, args);
  const ReductionCall* reduction = lowering.reduction();
  if (!reduction) return false;
  const Tensor& self = args[reduction->input].tensor_ref();
  ReductionRun run(*reduction, self);
  const bool keeps_values = reduction->kernel == &cpu::kAmax || reduction->kernel == &cpu::kAmin;
  const bool is_exact = reduction->compute <= kInt64 || reduction->kernel->ordered || keeps_values;
  if (with_special && !is_exact) return true;  // a bound relative to infinities says nothing
  std::vector<Tensor> outputs = tensors_in(result);
  for (bool in_halves : {false, true}) {
    const std::vector<Elements> mine = run.run(in_halves);
    if (mine.size() != outputs.size()) texts.push_back(fmt::format("{} formulas for results", mine.size()));
    for (size_t k = 0; k < std::min(mine.size(), outputs.size()); ++k) {
      const std::string what = fmt::format("{}{}{}, result {}", short_name(dtype),
                                           with_special ? " special" : "", in_halves ? " in halves" : "", k);
      compare_reduction(mine[k], outputs[k], self, is_exact, what, texts);
    }
  }
  if (outputs[0].plain_numel() != run.results())
    texts.push_back(fmt::format("{} results, {} by the dims", outputs[0].plain_numel(), run.results()));
  if (reduction->keepdim != (outputs[0].dim() == self.dim()) && reduction->dims != 0)
    texts.push_back("the lowering says otherwise whether reduced dims are kept");
  return true;
}

TEST(Lowering, FormulasReduceAsTheKernelsDo) {
  std::map<std::string, int> types;
  Findings findings = check_samples(lowers, [&](const Case& one, std::vector<std::string>& texts) {
    if (!lower(*one.op, one.args()).reduction()) return;
    int& count = types[std::string(one.op->name())];
    for (DType dtype : kAllDTypes)
      for (bool with_special : {false, true}) count += check_reduction(one, dtype, with_special, texts);
  });
  expect_only(findings, {});
  EXPECT_GT(types.size(), 20u);
  for (const auto& [name, count] : types) EXPECT_GE(count, 2) << name << " was compared in no type";
}

// --- completeness ----------------------------------------------------------------------------------------

TEST(Lowering, EveryPointwiseOperatorAndReductionHasOne) {
  for (const Operator* op : functional_operators()) {
    const LowerRule& rule = op->def().lower;
    EXPECT_FALSE(rule && rule.reason) << op->name() << " has a lowering and a reason for none";
    // What a composite is made of is lowered part by part.
    if (op->is_composite()) {
      EXPECT_FALSE(rule || rule.reason) << op->name() << " is a composite and has a lowering";
      continue;
    }
    if (op->has(Traits::kPointwise) || op->has(Traits::kReduction)) {
      EXPECT_TRUE(rule || rule.reason) << op->name() << " has no lowering, and no reason why";
    }
  }
}

TEST(Lowering, SaysWhatTheTraitsSay) {
  Findings findings = check_samples(lowers, [](const Case& one, std::vector<std::string>& texts) {
    const std::vector<Value> args = one.args();
    Lowering lowering = lower(*one.op, args);
    if (const PointwiseCall* pointwise = lowering.pointwise()) {
      bool reads_tensors = false;
      for (int k = 0; k < pointwise->inputs.size(); ++k)
        reads_tensors |= args[pointwise->inputs[k]].is_tensor();
      if (reads_tensors && !one.op->has(Traits::kPointwise)) texts.push_back("is not kPointwise");
      if (pointwise->inputs.size() != pointwise->kernel->inputs)
        texts.push_back("has another number of inputs");
      if (pointwise->param_count != pointwise->kernel->params)
        texts.push_back("has another number of params");
    } else if (lowering.reduction() && !one.op->has(Traits::kReduction)) {
      texts.push_back("is not kReduction");
    }
  });
  expect_only(findings, {});
}

// Types and sizes are enough: no lowering looks at memory.
TEST(Lowering, IsTheSameForFakeTensors) {
  Findings findings = check_samples(lowers, [](const Case& one, std::vector<std::string>& texts) {
    const std::vector<Value> args = one.args();
    FakeMode fake;
    const std::vector<Value> faked =
        map_tensors(args, [&](const Tensor& tensor) { return fake.fake_of(tensor); });
    Lowering real = lower(*one.op, args), other = lower(*one.op, faked);
    if (real.index() != other.index()) return texts.push_back("another kind of lowering");
    if (const PointwiseCall *a = real.pointwise(), *b = other.pointwise(); a) {
      if (a->kernel != b->kernel || a->compute != b->compute) texts.push_back("another kernel");
    } else if (const ReductionCall* c = real.reduction(), *d = other.reduction(); c) {
      if (c->kernel != d->kernel || c->compute != d->compute || c->dims != d->dims)
        texts.push_back("another reduction");
    }
  });
  expect_only(findings, {});
}

// --- calls that differ by their arguments ----------------------------------------------------------------

std::string formula_of(std::string_view name, const std::vector<Value>& args) {
  const Operator& op = operator_named(name);
  std::vector<Value> all = args;
  for (size_t i = all.size(); i < op.info().defaults.size(); ++i) all.push_back(op.info().defaults[i]);
  Lowering lowering = lower(op, all);
  const PointwiseCall& call = *lowering.pointwise();
  std::string inputs;
  for (int k = 0; k < call.inputs.size(); ++k)
    inputs += fmt::format("{}x{} = {}", k ? ", " : "", k, call.inputs[k]);
  for (int k = 0; k < call.param_count; ++k)
    inputs += fmt::format("{}p{} = {}", inputs.empty() ? "" : ", ", k, call.param_arguments[k]);
  return fmt::format("{} of {}", call.kernel->build(call.compute).outputs[0].to_string(), inputs);
}

TEST(Lowering, FollowsTheArguments) {
  Tensor x = ones({3}), n = ones({3}, kInt64), h = ones({3}, kFloat16), z = ones({3}, kComplex64);
  EXPECT_EQ(formula_of("aten::gelu", {x}), "mul(x0, normal_cdf(x0)) of x0 = 0");
  EXPECT_EQ(formula_of("aten::gelu", {x, "tanh"}).find("normal_cdf"), std::string::npos);
  EXPECT_EQ(formula_of("aten::clamp", {x, 0}), "maximum(x0, p0) of x0 = 0, p0 = 1");
  EXPECT_EQ(formula_of("aten::clamp", {x, Value(), 0}), "minimum(x0, p0) of x0 = 0, p0 = 2");
  EXPECT_EQ(formula_of("aten::clamp", {x, 0, 1}), "minimum(maximum(x0, p0), p1) of x0 = 0, p0 = 1, p1 = 2");
  EXPECT_EQ(formula_of("aten::clamp_max", {x, 0}), "minimum(x0, p0) of x0 = 0, p0 = 1");
  EXPECT_EQ(formula_of("aten::clamp.Tensor", {x, Value(), x}), "minimum(x0, x1) of x0 = 0, x1 = 2");
  EXPECT_EQ(formula_of("aten::add.Tensor", {x, x}), "add(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::add.Tensor", {x, x, 2}), "add(x0, mul(p0, x1)) of x0 = 0, x1 = 1, p0 = 2");
  EXPECT_EQ(formula_of("aten::sub.Scalar", {x, 3}), "sub(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::div.Tensor_mode", {n, n, Value()}), "div(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::div.Tensor_mode", {n, n, "floor"}), "floor_div(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::div.Tensor_mode", {h, h, "trunc"}),
            "f16(trunc(f32(f16(div(f32(x0), f32(x1)))))) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::div.Scalar_mode", {h, 3, "trunc"}), "trunc(div(x0, x1)) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::pow.Tensor_Scalar", {x, 2}), "mul(x0, x0) of x0 = 0");
  EXPECT_EQ(formula_of("aten::pow.Tensor_Scalar", {x, 0.5}), "sqrt(x0) of x0 = 0");
  EXPECT_EQ(formula_of("aten::pow.Tensor_Scalar", {x, 3}), "pow(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_EQ(formula_of("aten::pow.Tensor_Scalar", {z, 0}), "p0.re of p0 = 255");
  EXPECT_EQ(formula_of("aten::pow.Tensor_Scalar", {z, 1}), "x0.re of x0 = 0");
  EXPECT_EQ(formula_of("aten::masked_fill.Scalar", {x, x > 0, 1}),
            "where(x0, x1, x2) of x0 = 1, x1 = 2, x2 = 0");
  EXPECT_EQ(formula_of("aten::_to_copy", {n, kFloat32}), "x0 of x0 = 0");
  EXPECT_EQ(formula_of("aten::full", {Value::list({2}), 7}), "x0 of x0 = 1");
  EXPECT_EQ(formula_of("aten::abs", {z}), "hypot(x0.re, x0.im) of x0 = 0");
}

TEST(Lowering, LeavesSymbolicNumbersOpen) {
  Ref<ShapeEnv> env = ShapeEnv::create();
  SymInt number = env->create_value(5, {});
  Tensor x = ones({3});
  Lowering lowering = lower(operator_named("aten::leaky_relu"), std::vector<Value>{x, number});
  const PointwiseCall& call = *lowering.pointwise();
  EXPECT_EQ(call.param_count, 1);
  EXPECT_EQ(call.param_arguments[0], 1);
  EXPECT_EQ(call.symbolic_params, 1);
  EXPECT_EQ(formula_of("aten::add.Tensor", {x, x, number}), "add(x0, mul(p0, x1)) of x0 = 0, x1 = 1, p0 = 2");
  EXPECT_EQ(formula_of("aten::mul.Scalar", {x, number}), "mul(x0, x1) of x0 = 0, x1 = 1");
  EXPECT_TRUE(env->guards().empty());
}

TEST(Lowering, SaysWhyThereIsNone) {
  Tensor z = ones({2, 3}, kComplex64), x = ones({2, 3});
  auto reason = [](std::string_view name, const std::vector<Value>& args) {
    Lowering lowering = lower(operator_named(name), args);
    const auto* none = std::get_if<NotLowered>(&lowering);
    return std::string(none ? none->reason : "");
  };
  EXPECT_EQ(reason("aten::var.correction", {z, Value(), 1, false}),
            "the variance of complex numbers is two reductions, of their parts");
  EXPECT_EQ(reason("aten::var.correction", {x, Value(), 1, false}), "");
  EXPECT_EQ(reason("aten::relu6", {x}), "it is made of other operators, which are lowered one by one");
  EXPECT_EQ(reason("aten::mm", {x, x}), "it is neither pointwise nor a reduction");
}

}  // namespace
}  // namespace weft::table
