#pragma once

#include <optional>
#include <variant>

#include "ops/cpu/pointwise.h"
#include "ops/cpu/reduction.h"
#include "weft/dispatch/op_def.h"

// What a call of an operator computes. Lowering is a function of the call: `gelu(x, "tanh")` is another
// formula than `gelu(x)`. The typed kernels run what these functions say, and whoever generates code asks the
// same functions by `lower`, so that both have one formula. A lowering reads types and sizes of tensors,
// never their memory: fake tensors will do.

namespace weft {

class Operator;

inline constexpr uint8_t kNoArgument = 255;

// Which arguments are operands, in the kernel's order. A single word that is known when the program is
// compiled.
class CallInputs {
 public:
  consteval CallInputs(std::initializer_list<uint8_t> arguments) {  // NOLINT(google-explicit-constructor)
    for (uint8_t argument : arguments) bits_ = (bits_ | uint32_t{argument} << (8 + 8 * size())) + 1;
  }
  constexpr uint8_t size() const { return static_cast<uint8_t>(bits_); }
  constexpr uint8_t operator[](int k) const { return static_cast<uint8_t>(bits_ >> (8 + 8 * k)); }
  // Without a loop, so that the compiler answers.
  constexpr bool has(uint8_t argument) const {
    return (size() > 0 && (*this)[0] == argument) || (size() > 1 && (*this)[1] == argument) ||
           (size() > 2 && (*this)[2] == argument);
  }

 private:
  uint32_t bits_ = 0;  // how many, then a byte each
};

// A call whose every element is kernel(inputs; params), inputs broadcast to the sizes of the result.
//
// Each input is converted to `kernel->input_dtype(compute, k)`. One that is a number is an operand of one
// element in the number's own type (Scalar::dtype), converted likewise. What the kernel gives has the type
// `kernel->result_dtype(compute)`, and is converted to the type of the result, which the meta function tells.
struct PointwiseCall {
  const cpu::PointwiseKernel* kernel;  // its `build(compute)` is the formula
  DType compute;
  uint8_t param_count = 0;
  uint8_t symbolic_params = 0;  // a bit for each whose value only a run can tell: `params` does not have it
  CallInputs inputs;            // which arguments are operands
  // Which arguments are uniform parameters, kNoArgument for a constant of the operator, and their values,
  // which become numbers of cpu::param_dtype(compute).
  uint8_t param_arguments[cpu::kMaxParams];
  cpu::ParamValue params[cpu::kMaxParams];

  PointwiseCall(const cpu::PointwiseKernel& kernel, DType compute, CallInputs inputs)
      : kernel(&kernel), compute(compute), inputs(inputs) {}
  // The next parameter is this argument; an error where the type that computes cannot hold it.
  void add_param(uint8_t argument, const Scalar& number);
  void add_constant(int value) {
    param_arguments[param_count] = kNoArgument;
    params[param_count++] = value;
  }
};

// A pointwise kernel beside a reduction: of the value so far and perhaps a number, converted to `compute`.
// Its result is rounded to the kernel's result type.
struct ReductionStep {
  const cpu::PointwiseKernel* kernel;
  DType compute;
  std::optional<double> operand;
};

// A call whose every result is a reduction of some dims of one argument: each element goes through `before`,
// is converted to `compute` and stepped into an accumulator; `after` is what becomes of the reduction's
// result.
struct ReductionCall {
  const cpu::ReductionKernel* kernel;  // its `build(compute)` has the formulas
  DType compute;
  uint64_t dims;  // those that are reduced, a bit each
  bool keepdim = false;
  uint8_t input = 0;      // which argument
  double correction = 0;  // of a variance
  std::vector<ReductionStep> before = {}, after = {};
};

struct NotLowered {
  const char* reason;
};

using LoweringVariant = std::variant<NotLowered, PointwiseCall, ReductionCall>;
struct Lowering : LoweringVariant {
  using LoweringVariant::variant;
  const PointwiseCall* pointwise() const { return std::get_if<PointwiseCall>(this); }
  const ReductionCall* reduction() const { return std::get_if<ReductionCall>(this); }
};

// What a call of this operator computes, or why that cannot be said. Arguments are those of the functional or
// in-place form, defaults included.
Lowering lower(const Operator& op, Args args);

namespace detail {
template <auto fn, typename Signature = decltype(fn)>
struct LowerTrampoline;
template <auto fn, typename R, typename... A>
struct LowerTrampoline<fn, R (*)(A...)> {
  static Lowering call(Args args) {
    boxing::check_count(args.size(), sizeof...(A));
    return lowered(args, std::index_sequence_for<A...>());
  }

 private:
  template <size_t... i>
  static Lowering lowered(Args args, std::index_sequence<i...>) {
    return Lowering(fn(boxing::Unboxed<std::remove_cvref_t<A>>(args[i]).get()...));
  }
};
}  // namespace detail

// The field of an OpDef from the typed function, which has the arguments of the functional form and returns
// one of the structs above.
template <auto fn>
constexpr LowerRule lowering() {
  return {.of_call = &detail::LowerTrampoline<+fn>::call};
}
constexpr LowerRule not_lowered(const char* reason) { return {.reason = reason}; }

}  // namespace weft
