// Every pointwise kernel, for every type and instruction set, against plain C++ in long double.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "ops/cpu/pointwise_kernels.h"
#include "raw_array.h"
#include "weft/base/error.h"

namespace weft::cpu::testing {
namespace {

using Real = long double;
using Args = std::vector<Real>;
using Reference = std::function<Real(const Args&)>;

Real nan_or(Real a, Real b, Real otherwise) { return std::isnan(a) ? a : std::isnan(b) ? b : otherwise; }
Real floor_mod(Real a, Real b) {
  Real m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
Real floor_div(Real a, Real b) {
  if (b == 0) return a / b;
  if (std::isinf(b) && std::isfinite(a)) return (a < 0) != (b < 0) && a != 0 ? -1 : 0;
  if (std::isinf(a)) return std::isinf(b) ? NAN : NAN;
  return std::floor((a - floor_mod(a, b)) / b + 0.25L);
}
// Python's way, each step rounded to the type.
Real floor_div_in_steps(DType t, Real a, Real b) {
  auto rounded = [&](Real x) { return round_to(t, static_cast<float>(x)).real(); };
  Real quotient = rounded(a / b);
  if (b == 0) return quotient;
  Real mod = std::fmod(a, b), div = rounded(rounded(a - mod) / b);
  if (mod != 0 && (b < 0) != (mod < 0)) div = rounded(div - 1);
  if (div == 0) return std::copysign(Real(0), quotient);
  Real floored = std::floor(div);
  return div - floored > 0.5L ? floored + 1 : floored;
}
Real cdf(Real x) { return 0.5L * std::erfc(-x * std::sqrt(0.5L)); }
Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
Real hard_gate(Real x) { return std::isnan(x) ? x : std::min(std::max(x + 3, Real(0)), Real(6)); }
Real gelu_inner(Real x) { return std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x); }

// Reals. Comparisons and the like give 0 or 1.
const std::map<std::string, Reference>& real_references() {
  static const std::map<std::string, Reference> table = {
      {"add", [](const Args& a) { return a[0] + (a.size() > 2 ? a[2] : 1) * a[1]; }},
      {"sub", [](const Args& a) { return a[0] - (a.size() > 2 ? a[2] : 1) * a[1]; }},
      {"mul", [](const Args& a) { return a[0] * a[1]; }},
      {"div", [](const Args& a) { return a[0] / a[1]; }},
      {"neg", [](const Args& a) { return -a[0]; }},
      {"abs", [](const Args& a) { return std::fabs(a[0]); }},
      {"sign", [](const Args& a) { return Real((a[0] > 0) - (a[0] < 0)); }},
      {"sgn", [](const Args& a) { return Real((a[0] > 0) - (a[0] < 0)); }},
      {"copy", [](const Args& a) { return a[0]; }},
      {"fill", [](const Args& a) { return a[0]; }},
      {"square", [](const Args& a) { return a[0] * a[0]; }},
      {"squared_difference", [](const Args& a) { return (a[0] - a[1]) * (a[0] - a[1]); }},
      {"reciprocal", [](const Args& a) { return 1 / a[0]; }},
      {"maximum", [](const Args& a) { return nan_or(a[0], a[1], std::max(a[0], a[1])); }},
      {"minimum", [](const Args& a) { return nan_or(a[0], a[1], std::min(a[0], a[1])); }},
      {"clamp_min", [](const Args& a) { return nan_or(a[0], a[1], std::max(a[0], a[1])); }},
      {"clamp_max", [](const Args& a) { return nan_or(a[0], a[1], std::min(a[0], a[1])); }},
      {"clamp",
       [](const Args& a) {
         Real x = nan_or(a[0], a[1], std::max(a[0], a[1]));
         return nan_or(x, a[2], std::min(x, a[2]));
       }},
      {"lerp",
       [](const Args& a) {
         return std::fabs(a[2]) < 0.5L ? a[0] + a[2] * (a[1] - a[0]) : a[1] - (a[1] - a[0]) * (1 - a[2]);
       }},
      {"addcmul", [](const Args& a) { return a[0] + a[3] * a[1] * a[2]; }},
      {"addcdiv", [](const Args& a) { return a[0] + a[3] * a[1] / a[2]; }},
      {"div_floor", [](const Args& a) { return floor_div(a[0], a[1]); }},
      {"div_trunc", [](const Args& a) { return std::trunc(a[0] / a[1]); }},
      {"remainder", [](const Args& a) { return floor_mod(a[0], a[1]); }},
      {"fmod", [](const Args& a) { return std::fmod(a[0], a[1]); }},
      {"pow", [](const Args& a) { return std::pow(a[0], a[1]); }},
#define WEFT_X(name) {#name, [](const Args& a) { return std::name(a[0]); }}
      WEFT_X(exp),
      WEFT_X(exp2),
      WEFT_X(expm1),
      WEFT_X(log),
      WEFT_X(log2),
      WEFT_X(log10),
      WEFT_X(log1p),
      WEFT_X(sqrt),
      WEFT_X(sin),
      WEFT_X(cos),
      WEFT_X(tan),
      WEFT_X(asin),
      WEFT_X(acos),
      WEFT_X(atan),
      WEFT_X(sinh),
      WEFT_X(cosh),
      WEFT_X(tanh),
      WEFT_X(asinh),
      WEFT_X(acosh),
      WEFT_X(atanh),
      WEFT_X(erf),
      WEFT_X(erfc),
      WEFT_X(floor),
      WEFT_X(ceil),
      WEFT_X(trunc),
#undef WEFT_X
      {"round", [](const Args& a) { return std::nearbyint(a[0]); }},
      {"rsqrt", [](const Args& a) { return 1 / std::sqrt(a[0]); }},
      {"hypot", [](const Args& a) { return std::hypot(a[0], a[1]); }},
      {"atan2", [](const Args& a) { return std::atan2(a[0], a[1]); }},
      {"copysign", [](const Args& a) { return std::copysign(a[0], a[1]); }},
      {"tanh_backward", [](const Args& a) { return a[0] * (1 - a[1] * a[1]); }},
      {"sigmoid", [](const Args& a) { return sigmoid(a[0]); }},
      {"sigmoid_backward", [](const Args& a) { return a[0] * ((1 - a[1]) * a[1]); }},
      {"relu", [](const Args& a) { return a[0] < 0 ? 0 : a[0]; }},
      {"threshold", [](const Args& a) { return a[0] <= a[1] ? a[2] : a[0]; }},
      {"threshold_backward", [](const Args& a) { return a[1] <= a[2] ? 0 : a[0]; }},
      {"hardtanh_backward", [](const Args& a) { return a[1] > a[2] && a[1] < a[3] ? a[0] : 0; }},
      {"hardsigmoid", [](const Args& a) { return hard_gate(a[0]) / 6; }},
      {"hardsigmoid_backward", [](const Args& a) { return a[1] > -3 && a[1] < 3 ? a[0] / 6 : 0; }},
      {"hardswish", [](const Args& a) { return a[0] * hard_gate(a[0]) / 6; }},
      {"hardswish_backward",
       [](const Args& a) { return a[1] <= -3 ? 0
                                  : a[1] < 3 ? a[0] * (a[1] / 3 + 0.5L)
                                             : a[0]; }},
      {"leaky_relu", [](const Args& a) { return a[0] > 0 ? a[0] : a[0] * a[1]; }},
      {"leaky_relu_backward", [](const Args& a) { return a[1] > 0 ? a[0] : a[0] * a[2]; }},
      {"elu", [](const Args& a) { return a[0] < 0 ? std::expm1(a[0] * a[3]) * a[1] * a[2] : a[0] * a[2]; }},
      {"elu_backward",
       [](const Args& a) {
         return a[1] > 0 ? a[0] * a[3] : a[0] * a[4] * a[2] * a[3] * std::exp(a[1] * a[4]);
       }},
      {"elu_backward_of_result",
       [](const Args& a) { return a[1] > 0 ? a[0] * a[3] : a[0] * a[4] * (a[1] + a[2] * a[3]); }},
      {"softplus",
       [](const Args& a) { return a[0] * a[1] > a[2] ? a[0] : std::log1p(std::exp(a[0] * a[1])) / a[1]; }},
      {"softplus_backward",
       [](const Args& a) { return a[1] * a[2] > a[3] ? a[0] : a[0] * sigmoid(a[1] * a[2]); }},
      {"silu", [](const Args& a) { return a[0] / (1 + std::exp(-a[0])); }},
      {"silu_backward",
       [](const Args& a) {
         Real s = sigmoid(a[1]);
         return a[0] * s * (1 + a[1] * (1 - s));
       }},
      {"gelu", [](const Args& a) { return a[0] * cdf(a[0]); }},
      {"gelu_backward",
       [](const Args& a) {
         return a[0] * (cdf(a[1]) + a[1] * std::exp(-a[1] * a[1] / 2) / std::sqrt(2 * std::acos(-1.0L)));
       }},
      {"gelu_tanh", [](const Args& a) { return 0.5L * a[0] * (1 + std::tanh(gelu_inner(a[0]))); }},
      {"gelu_tanh_backward",
       [](const Args& a) {
         Real x = a[1], t = std::tanh(gelu_inner(x));
         Real slope = std::sqrt(2 / std::acos(-1.0L)) * (1 + 3 * 0.044715L * x * x);
         return a[0] * (0.5L * (1 + t) + 0.5L * x * (1 - t * t) * slope);
       }},
      {"eq", [](const Args& a) { return Real(a[0] == a[1]); }},
      {"ne", [](const Args& a) { return Real(a[0] != a[1]); }},
      {"lt", [](const Args& a) { return Real(a[0] < a[1]); }},
      {"le", [](const Args& a) { return Real(a[0] <= a[1]); }},
      {"gt", [](const Args& a) { return Real(a[0] > a[1]); }},
      {"ge", [](const Args& a) { return Real(a[0] >= a[1]); }},
      {"isnan", [](const Args& a) { return Real(std::isnan(a[0])); }},
      {"isinf", [](const Args& a) { return Real(std::isinf(a[0])); }},
      {"normal_cdf", [](const Args& a) { return cdf(a[0]); }},
      {"div_floor_half", [](const Args& a) { return floor_div_in_steps(DType::kFloat16, a[0], a[1]); }},
      {"div_floor_bfloat16", [](const Args& a) { return floor_div_in_steps(DType::kBFloat16, a[0], a[1]); }},
      {"div_trunc_half",
       [](const Args& a) { return std::trunc(round_to(DType::kFloat16, a[0] / a[1]).real()); }},
      {"div_trunc_bfloat16",
       [](const Args& a) { return std::trunc(round_to(DType::kBFloat16, a[0] / a[1]).real()); }},
      {"where", [](const Args& a) { return a[0] != 0 ? a[1] : a[2]; }},
      {"logical_not", [](const Args& a) { return Real(a[0] == 0); }},
      {"logical_and", [](const Args& a) { return Real(a[0] != 0 && a[1] != 0); }},
      {"logical_or", [](const Args& a) { return Real(a[0] != 0 || a[1] != 0); }},
      {"logical_xor", [](const Args& a) { return Real((a[0] != 0) != (a[1] != 0)); }},
  };
  return table;
}

// Where the formula itself cancels or amplifies rounding, in units of the type's precision relative to the
// largest argument; 0: compare relative to the result only.
bool cancels(const std::string& name) {
  static const std::vector<std::string> names = {"lerp",
                                                 "addcmul",
                                                 "addcdiv",
                                                 "squared_difference",
                                                 "gelu_backward",
                                                 "gelu_tanh",
                                                 "gelu_tanh_backward",
                                                 "silu_backward",
                                                 "tanh_backward",
                                                 "sigmoid_backward",
                                                 "add",
                                                 "sub",
                                                 "gelu",
                                                 "normal_cdf",
                                                 "hardsigmoid",
                                                 "hardswish",
                                                 "hardswish_backward",
                                                 "elu",
                                                 "elu_backward",
                                                 "elu_backward_of_result",
                                                 "softplus",
                                                 "softplus_backward"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Case {
  const PointwiseKernel* kernel;
  DType compute;
  IsaLevel isa;
};

std::vector<Case> cases(const std::function<bool(DType)>& wanted) {
  std::vector<Case> result;
  for (const PointwiseKernel* kernel : pointwise_kernels())
    for (DType t : all_dtypes())
      for (IsaLevel isa : available_isas())
        if (kernel->supports(t) && wanted(t)) result.push_back({kernel, t, isa});
  return result;
}
std::string name_of(const Case& c) {
  return std::string(c.kernel->name) +
         (c.kernel->params ? "_params" + std::to_string(c.kernel->params) : "") +
         (c.kernel->inputs == 3 ? "_three" : "") + "_" + std::string(short_name(c.compute)) + "_" +
         isa_name(c.isa);
}
std::string case_name(const ::testing::TestParamInfo<Case>& info) { return name_of(info.param); }
void PrintTo(const Case& c, std::ostream* out) { *out << name_of(c); }

// All combinations of the values for every input; parameters cycle through a few.
struct Grid {
  std::vector<RawArray> arrays;  // output, inputs
  std::vector<ParamValue> params;
  std::vector<Number> param_numbers;
};
Grid make_grid(const Case& c, const std::vector<std::vector<Number>>& values) {
  int64_t n = 1;
  for (const auto& v : values) n *= static_cast<int64_t>(v.size());
  Grid grid;
  grid.arrays.push_back(RawArray::contiguous(c.kernel->result_dtype(c.compute), {n}));
  int64_t repeat = 1;
  for (size_t k = 0; k < values.size(); ++k) {
    bool mask = (c.kernel->mask_inputs >> k) & 1;
    RawArray array = RawArray::contiguous(mask ? DType::kBool : c.compute, {n});
    for (int64_t i = 0; i < n; ++i) array.set(i, values[k][i / repeat % values[k].size()]);
    grid.arrays.push_back(std::move(array));
    repeat *= static_cast<int64_t>(values[k].size());
  }
  for (int k = 0; k < c.kernel->params; ++k) {
    grid.params.emplace_back(is_integer_like(c.compute) ? ParamValue(k + 1) : ParamValue(0.75 + k));
    grid.param_numbers.emplace_back(c.compute == DType::kBool    ? 1
                                    : is_integer_like(c.compute) ? k + 1
                                                                 : 0.75L + k);
  }
  return grid;
}
void run(const Case& c, Grid& grid) {
  UseIsa use(c.isa);
  std::vector<Operand> operands;
  for (RawArray& array : grid.arrays) operands.push_back(array.operand());
  run_strided(*c.kernel, c.compute, operands, grid.arrays[0].sizes, grid.params);
}
std::vector<std::vector<Number>> special_inputs(const Case& c) {
  std::vector<std::vector<Number>> result;
  for (int k = 0; k < c.kernel->inputs; ++k) {
    bool mask = (c.kernel->mask_inputs >> k) & 1;
    auto values = special_values(mask ? DType::kBool : c.compute);
    if (c.kernel->inputs == 3 && values.size() > 12) values.resize(12);
    result.push_back(std::move(values));
  }
  return result;
}

std::string describe(const Case& c, const Grid& grid, int64_t i) {
  std::string text = c.kernel->name;
  for (size_t k = 1; k < grid.arrays.size(); ++k)
    text += " " + std::to_string(static_cast<double>(grid.arrays[k].get(i).real()));
  return text;
}

class RealKernel : public ::testing::TestWithParam<Case> {};

TEST_P(RealKernel, AgreesWithLongDouble) {
  const Case& c = GetParam();
  const Reference& reference = real_references().at(c.kernel->name);
  Grid grid = make_grid(c, special_inputs(c));
  run(c, grid);
  DType result = c.kernel->result_dtype(c.compute);
  for (int64_t i = 0; i < grid.arrays[0].count(); ++i) {
    Args args;
    for (size_t k = 1; k < grid.arrays.size(); ++k) args.push_back(grid.arrays[k].get(i).real());
    for (Number p : grid.param_numbers) args.push_back(p.real());
    Real exact = reference(args), want = round_to(result, exact).real(), got = grid.arrays[0].get(i).real();
    std::string name = c.kernel->name;
    // Truncation acts on the rounded quotient.
    if (name == "div_trunc")
      want = round_to(result,
                      std::trunc(round_to(c.compute == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32,
                                          args[0] / args[1])
                                     .real()))
                 .real();
    if (got == want || (std::isnan(got) && std::isnan(want))) continue;
    if (name == "pow" && std::fabs(want) > 1e307L) continue;  // SLEEF overflows a little early
    if (result == DType::kBool) {
      EXPECT_EQ(got, want) << describe(c, grid, i);
      continue;
    }
    Real largest = 0;
    bool finite = true;
    for (Real a : args) {
      finite &= std::isfinite(a);
      largest = std::max(largest, std::fabs(a));
    }
    // Intermediate overflow of a type narrower than long double is no error of the kernel.
    if (!finite && cancels(c.kernel->name)) continue;
    if (cancels(c.kernel->name) && largest > 300) continue;
    // sin and cos of huge numbers: SLEEF is accurate there too, but pow's ulp grows with the result's
    // exponent.
    Real bound = 4;
    if (cancels(c.kernel->name)) {
      Real scale = std::max({largest * largest, Real(1)});
      Real eps = relative_error(result, 1, 2) > 0 ? 0.5L / relative_error(result, 1, 2) : 0;
      EXPECT_LE(std::fabs(got - want), 8 * eps * scale + 1e-30L)
          << describe(c, grid, i) << " got " << got << " want " << want;
      continue;
    }
    EXPECT_LE(relative_error(result, got, want), bound)
        << describe(c, grid, i) << " got " << static_cast<double>(got) << " want "
        << static_cast<double>(want);
  }
}
INSTANTIATE_TEST_SUITE_P(All, RealKernel, ::testing::ValuesIn(cases(is_floating)), case_name);

// ---- integers ---------------------------------------------------------------------------------------------

int64_t wrap(DType t, int64_t x) {
  switch (t) {
    case DType::kUInt8:
      return static_cast<uint8_t>(x);
    case DType::kInt8:
      return static_cast<int8_t>(x);
    case DType::kInt16:
      return static_cast<int16_t>(x);
    case DType::kInt32:
      return static_cast<int32_t>(x);
    default:
      return x;
  }
}
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (uint64_t e = static_cast<uint64_t>(exponent); e; e >>= 1, base = times(base, base))
    if (e & 1) result = times(result, base);
  return result;
}
int64_t divide(int64_t a, int64_t b) { return b == -1 ? times(a, -1) : a / b; }
int64_t modulo(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }
bool rounds(int64_t a, int64_t b) { return modulo(a, b) != 0 && (modulo(a, b) < 0) != (b < 0); }

// Of a type of this many bits; a count outside of them shifts everything out.
int64_t shifted(int64_t x, int64_t count, int bits, bool is_left) {
  bool is_within = count >= 0 && count < bits;
  if (is_left) return is_within ? static_cast<int64_t>(static_cast<uint64_t>(x) << count) : 0;
  return x >> (is_within ? count : 63);
}

int64_t integer_reference(const std::string& name, const std::vector<int64_t>& a, int bits) {
  if (name == "bitwise_left_shift" || name == "bitwise_right_shift")
    return shifted(a[0], a[1], bits, name == "bitwise_left_shift");
  if (name == "add") return plus(a[0], times(a.size() > 2 ? a[2] : 1, a[1]));
  if (name == "sub") return plus(a[0], times(-1, times(a.size() > 2 ? a[2] : 1, a[1])));
  if (name == "mul") return times(a[0], a[1]);
  if (name == "neg") return times(a[0], -1);
  if (name == "abs") return a[0] < 0 ? times(a[0], -1) : a[0];
  if (name == "square") return times(a[0], a[0]);
  if (name == "addcmul") return plus(a[0], times(a[3], times(a[1], a[2])));
  if (name == "threshold") return a[0] <= a[1] ? a[2] : a[0];
  if (name == "div_floor") return divide(a[0], a[1]) - rounds(a[0], a[1]);
  if (name == "div_trunc") return divide(a[0], a[1]);
  if (name == "remainder") return modulo(a[0], a[1]) + (rounds(a[0], a[1]) ? a[1] : 0);
  if (name == "fmod") return modulo(a[0], a[1]);
  if (name == "pow") return power(a[0], a[1]);
  if (name == "bitwise_not") return ~a[0];
  if (name == "bitwise_and") return a[0] & a[1];
  if (name == "bitwise_or") return a[0] | a[1];
  if (name == "bitwise_xor") return a[0] ^ a[1];
  if (name == "where") return a[0] ? a[1] : a[2];
  if (name == "eq") return a[0] == a[1];
  if (name == "ne") return a[0] != a[1];
  if (name == "lt") return a[0] < a[1];
  if (name == "le") return a[0] <= a[1];
  if (name == "gt") return a[0] > a[1];
  if (name == "ge") return a[0] >= a[1];
  if (name == "maximum" || name == "clamp_min") return std::max(a[0], a[1]);
  if (name == "minimum" || name == "clamp_max") return std::min(a[0], a[1]);
  if (name == "clamp") return std::min(std::max(a[0], a[1]), a[2]);
  if (name == "floor" || name == "ceil" || name == "trunc" || name == "round") return a[0];
  if (name == "isnan") return 0;
  if (name == "sign" || name == "sgn") return (a[0] > 0) - (a[0] < 0);
  if (name == "copy" || name == "fill") return a[0];
  if (name == "relu") return std::max<int64_t>(a[0], 0);
  if (name == "threshold_backward") return a[1] <= a[2] ? 0 : a[0];
  ADD_FAILURE() << "no reference for " << name;
  return 0;
}

class IntegerKernel : public ::testing::TestWithParam<Case> {};

TEST_P(IntegerKernel, WrapsAndRoundsExactly) {
  const Case& c = GetParam();
  std::string name = c.kernel->name;
  bool divides = name == "div_floor" || name == "div_trunc" || name == "remainder" || name == "fmod";
  auto values = special_inputs(c);
  if (divides) std::erase(values[1], Number(0));
  Grid grid = make_grid(c, values);
  run(c, grid);
  DType result = c.kernel->result_dtype(c.compute);
  for (int64_t i = 0; i < grid.arrays[0].count(); ++i) {
    std::vector<int64_t> args;
    for (size_t k = 1; k < grid.arrays.size(); ++k)
      args.push_back(static_cast<int64_t>(grid.arrays[k].get(i).real()));
    for (Number p : grid.param_numbers) args.push_back(static_cast<int64_t>(p.real()));
    int64_t want = wrap(result == DType::kBool ? DType::kInt64 : c.compute,
                        integer_reference(name, args, 8 * static_cast<int>(item_size(c.compute))));
    EXPECT_EQ(static_cast<int64_t>(grid.arrays[0].get(i).real()), want) << describe(c, grid, i);
  }
}
INSTANTIATE_TEST_SUITE_P(All, IntegerKernel, ::testing::ValuesIn(cases(is_integral)), case_name);

TEST(IntegerDivision, ByZeroIsAnErrorWhereverItIs) {
  for (IsaLevel isa : available_isas())
    for (const PointwiseKernel* kernel : {&kDivFloor, &kDivTrunc, &kRemainder, &kFmod})
      for (DType t : {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64})
        for (int64_t n : {1, 7, 40}) {
          UseIsa use(isa);
          RawArray a = RawArray::contiguous(t, {n}), b = a, out = a;
          for (int64_t i = 0; i < n; ++i) a.set(i, 5), b.set(i, 2);
          Operand operands[] = {out.operand(), a.operand(), b.operand()};
          EXPECT_NO_THROW(run_strided(*kernel, t, operands, a.sizes));
          b.set(n - 1, 0);
          try {
            run_strided(*kernel, t, operands, a.sizes);
            FAIL() << kernel->name;
          } catch (const UserError& e) {
            EXPECT_NE(e.message().find("ZeroDivisionError"), std::string::npos) << e.message();
          }
        }
}

// ---- booleans ---------------------------------------------------------------------------------------------

class BooleanKernel : public ::testing::TestWithParam<Case> {};

TEST_P(BooleanKernel, IsLogic) {
  const Case& c = GetParam();
  static const std::map<std::string, std::function<bool(const std::vector<bool>&)>> table = {
      {"add", [](auto& a) { return a[0] || a[1]; }},
      {"mul", [](auto& a) { return a[0] && a[1]; }},
      {"abs", [](auto& a) { return a[0]; }},
      {"sign", [](auto& a) { return a[0]; }},
      {"sgn", [](auto& a) { return a[0]; }},
      {"copy", [](auto& a) { return a[0]; }},
      {"fill", [](auto& a) { return a[0]; }},
      {"maximum", [](auto& a) { return a[0] || a[1]; }},
      {"minimum", [](auto& a) { return a[0] && a[1]; }},
      {"clamp_min", [](auto& a) { return a[0] || a[1]; }},
      {"clamp_max", [](auto& a) { return a[0] && a[1]; }},
      {"clamp", [](auto& a) { return (a[0] || a[1]) && a[2]; }},
      {"isnan", [](auto&) { return false; }},
      {"eq", [](auto& a) { return a[0] == a[1]; }},
      {"ne", [](auto& a) { return a[0] != a[1]; }},
      {"lt", [](auto& a) { return !a[0] && a[1]; }},
      {"le", [](auto& a) { return !a[0] || a[1]; }},
      {"gt", [](auto& a) { return a[0] && !a[1]; }},
      {"ge", [](auto& a) { return a[0] || !a[1]; }},
      {"where", [](auto& a) { return a[0] ? a[1] : a[2]; }},
      {"logical_not", [](auto& a) { return !a[0]; }},
      {"logical_and", [](auto& a) { return a[0] && a[1]; }},
      {"logical_or", [](auto& a) { return a[0] || a[1]; }},
      {"logical_xor", [](auto& a) { return a[0] != a[1]; }},
      {"bitwise_not", [](auto& a) { return !a[0]; }},
      {"bitwise_and", [](auto& a) { return a[0] && a[1]; }},
      {"bitwise_or", [](auto& a) { return a[0] || a[1]; }},
      {"bitwise_xor", [](auto& a) { return a[0] != a[1]; }},
  };
  Grid grid = make_grid(c, special_inputs(c));
  run(c, grid);
  for (int64_t i = 0; i < grid.arrays[0].count(); ++i) {
    std::vector<bool> args;
    for (size_t k = 1; k < grid.arrays.size(); ++k) args.push_back(grid.arrays[k].get(i).real() != 0);
    for (Number p : grid.param_numbers) args.push_back(p.real() != 0);
    EXPECT_EQ(grid.arrays[0].get(i).real() != 0, table.at(c.kernel->name)(args)) << describe(c, grid, i);
    EXPECT_LE(grid.arrays[0].get(i).real(), 1) << "a byte other than 0 and 1";
  }
}
INSTANTIATE_TEST_SUITE_P(All, BooleanKernel,
                         ::testing::ValuesIn(cases([](DType t) { return t == DType::kBool; })), case_name);

// ---- complex ----------------------------------------------------------------------------------------------

using C = std::complex<long double>;
const std::map<std::string, std::function<C(const std::vector<C>&)>>& complex_references() {
  static const std::map<std::string, std::function<C(const std::vector<C>&)>> table = {
      {"add", [](auto& a) { return a[0] + (a.size() > 2 ? a[2] : C(1)) * a[1]; }},
      {"sub", [](auto& a) { return a[0] - (a.size() > 2 ? a[2] : C(1)) * a[1]; }},
      {"mul", [](auto& a) { return a[0] * a[1]; }},
      {"div", [](auto& a) { return a[0] / a[1]; }},
      {"neg", [](auto& a) { return -a[0]; }},
      {"abs", [](auto& a) { return C(std::abs(a[0])); }},
      {"square", [](auto& a) { return a[0] * a[0]; }},
      {"cube", [](auto& a) { return a[0] * a[0] * a[0]; }},
      {"inverse_square", [](auto& a) { return C(1) / (a[0] * a[0]); }},
      {"sgn", [](auto& a) { return a[0] == C(0) ? C(0) : a[0] / std::abs(a[0]); }},
      {"copy", [](auto& a) { return a[0]; }},
      {"fill", [](auto& a) { return a[0]; }},
      {"squared_difference", [](auto& a) { return (a[0] - a[1]) * (a[0] - a[1]); }},
      {"reciprocal", [](auto& a) { return C(1) / a[0]; }},
      {"conj", [](auto& a) { return std::conj(a[0]); }},
      {"real", [](auto& a) { return C(a[0].real()); }},
      {"lerp",
       [](auto& a) {
         return std::abs(a[2]) < 0.5L ? a[0] + a[2] * (a[1] - a[0]) : a[1] - (a[1] - a[0]) * (C(1) - a[2]);
       }},
      {"addcmul", [](auto& a) { return a[0] + a[3] * a[1] * a[2]; }},
      {"addcdiv", [](auto& a) { return a[0] + a[3] * a[1] / a[2]; }},
      {"pow", [](auto& a) { return a[1] == C(0)   ? C(1)
                                   : a[0] == C(0) ? C(0)
                                                  : std::pow(a[0], a[1]); }},
      {"exp", [](auto& a) { return std::exp(a[0]); }},
      {"expm1", [](auto& a) { return std::exp(a[0]) - C(1); }},
      {"log", [](auto& a) { return std::log(a[0]); }},
      {"exp2", [](auto& a) { return std::pow(C(2), a[0]); }},
      {"log2", [](auto& a) { return std::log(a[0]) / std::log(2.0L); }},
      {"log10", [](auto& a) { return std::log10(a[0]); }},
      {"silu_backward",
       [](auto& a) {
         C s = C(1) / (C(1) + std::exp(-a[1]));
         return a[0] * s * (C(1) + a[1] * (C(1) - s));
       }},
      {"log1p", [](auto& a) { return std::log(a[0] + C(1)); }},
      {"sqrt", [](auto& a) { return std::sqrt(a[0]); }},
      {"rsqrt", [](auto& a) { return C(1) / std::sqrt(a[0]); }},
      {"sin", [](auto& a) { return std::sin(a[0]); }},
      {"cos", [](auto& a) { return std::cos(a[0]); }},
      {"tan", [](auto& a) { return std::tan(a[0]); }},
      {"sinh", [](auto& a) { return std::sinh(a[0]); }},
      {"cosh", [](auto& a) { return std::cosh(a[0]); }},
      {"tanh", [](auto& a) { return std::tanh(a[0]); }},
      {"tanh_backward", [](auto& a) { return a[0] * std::conj(C(1) - a[1] * a[1]); }},
      {"sigmoid", [](auto& a) { return C(1) / (C(1) + std::exp(-a[0])); }},
      {"sigmoid_backward", [](auto& a) { return a[0] * std::conj((C(1) - a[1]) * a[1]); }},
      {"silu", [](auto& a) { return a[0] / (C(1) + std::exp(-a[0])); }},
      {"eq", [](auto& a) { return C(a[0] == a[1]); }},
      {"ne", [](auto& a) { return C(a[0] != a[1]); }},
      {"isnan", [](auto& a) { return C(std::isnan(a[0].real()) || std::isnan(a[0].imag())); }},
      {"where", [](auto& a) { return a[0] != C(0) ? a[1] : a[2]; }},
  };
  return table;
}

class ComplexKernel : public ::testing::TestWithParam<Case> {};

TEST_P(ComplexKernel, AgreesWithLongDouble) {
  const Case& c = GetParam();
  std::mt19937 rng(1);
  std::vector<std::vector<Number>> values(c.kernel->inputs);
  for (int k = 0; k < c.kernel->inputs; ++k) {
    bool mask = (c.kernel->mask_inputs >> k) & 1;
    if (mask) values[k] = {0, 1};
    for (int i = 0; i < 14 && !mask; ++i) values[k].push_back(random_value(c.compute, rng));
    if (!mask)
      for (Number x : {Number(1, 0), Number(0, 1), Number(-1, 0.5), Number(-2, 0), Number(0.25, -3)})
        values[k].push_back(x);
  }
  Grid grid = make_grid(c, values);
  run(c, grid);
  DType result = c.kernel->result_dtype(c.compute);
  for (int64_t i = 0; i < grid.arrays[0].count(); ++i) {
    std::vector<C> args;
    Real largest = 1;
    for (size_t k = 1; k < grid.arrays.size(); ++k) {
      args.push_back(grid.arrays[k].get(i));
      largest = std::max(largest, std::abs(args.back()));
    }
    for (Number p : grid.param_numbers) args.push_back(p);
    C want = complex_references().at(c.kernel->name)(args), got = grid.arrays[0].get(i);
    if (!std::isfinite(want.real()) || !std::isfinite(want.imag())) continue;  // a pole
    Real eps = c.compute == DType::kComplex64 ? 0x1p-23L : 0x1p-52L;
    Real scale = std::max(std::abs(want), result == DType::kBool    ? 1
                                          : cancels(c.kernel->name) ? largest * largest
                                                                    : Real(0.01));
    Real factor = std::string(c.kernel->name) == "pow" ? 200 : 16;
    EXPECT_LE(std::abs(got - want), factor * eps * scale)
        << c.kernel->name << " of " << args[0] << (args.size() > 1 ? args[1] : C()) << " got " << got
        << " want " << want;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ComplexKernel, ::testing::ValuesIn(cases(is_complex)), case_name);

TEST(ComplexKernels, KeepInfinitiesAndZerosApart) {
  Real inf = std::numeric_limits<Real>::infinity();
  auto apply = [&](const PointwiseKernel& kernel, std::vector<Number> inputs) {
    RawArray out = RawArray::contiguous(DType::kComplex64, {1});
    std::vector<RawArray> arrays(inputs.size(), out);
    std::vector<Operand> operands = {out.operand()};
    for (size_t k = 0; k < inputs.size(); ++k)
      arrays[k].set(0, inputs[k]), operands.push_back(arrays[k].operand());
    run_strided(kernel, DType::kComplex64, operands, out.sizes);
    return out.get(0);
  };
  EXPECT_EQ(apply(kExp, {Number(inf, 0)}), Number(inf, 0));
  EXPECT_EQ(apply(kExp, {Number(-inf, 1)}), Number(0, 0));
  EXPECT_EQ(apply(kAdd, {Number(inf, 1), Number(inf, 2)}), Number(inf, 3));
  EXPECT_EQ(apply(kSqrt, {Number(-inf, 1)}), Number(0, inf));
  EXPECT_EQ(apply(kSqrt, {Number(-1, -0.0L)}), Number(0, -1));
  EXPECT_EQ(apply(kDiv, {Number(1, 1), Number(inf, 0)}), Number(0, 0));
  EXPECT_EQ(apply(kTanh, {Number(100, 2)}).real(), 1);
  // 1 / (1 + exp(-z)) as PyTorch has it: what is too large in both parts has no reciprocal.
  EXPECT_TRUE(std::isnan(apply(kSigmoid, {Number(-100, 2)}).real()));
  EXPECT_EQ(apply(kSigmoid, {Number(-100, 0)}), Number(0, 0));
  Number undecided = apply(kPow, {Number(0), Number(0)});
  EXPECT_TRUE(std::isnan(undecided.real()) && std::isnan(undecided.imag()));
}

}  // namespace
}  // namespace weft::cpu::testing
