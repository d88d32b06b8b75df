#pragma once

#include <cstdint>
#include <span>

#include "ops/cpu/isa.h"
#include "weft/base/dtype.h"

namespace weft::scalar {
struct ScalarFunction;
}

// Pointwise operators on raw memory: any strides, any dtypes, no knowledge of tensors.
namespace weft::cpu {

// Applies an operator to `n` elements. `pointers`: outputs, then inputs, each contiguous and in the type the
// kernel computes in (masks as bytes). `params`: uniform parameters in the compute type, float for 16-bit
// floats, which compute in float and round once at the end. True if some element
// was refused (integer division by zero).
using Loop = bool (*)(int64_t n, char* const* pointers, const void* params);

struct LoopTable {
  Loop loops[kDTypeCount] = {};  // null: the operator does not exist for the type
};

enum class ResultKind : uint8_t {
  kSame,     // the compute type
  kBoolean,  // masks
  kReal,     // the real type of a complex compute type
};

// What runs a kernel may know about it, beside its formula.
enum class KernelRole : uint8_t {
  kPlain,
  kCopies,   // the result is its input: a copy does
  kFills,    // the result is its parameter everywhere
  kDivides,  // integers that are divided by zero are an error; the last input divides
};

// One operator: constant data.
struct PointwiseKernel {
  const char* name;
  int8_t inputs, outputs, params;
  ResultKind result;
  uint8_t mask_inputs;  // a bit for each input that is a mask
  KernelRole role;
  const LoopTable* const loops[kIsaCount];
  scalar::ScalarFunction (*build)(DType compute);  // the formula, for who generates code

  bool supports(DType compute) const { return loops[0]->loops[static_cast<int>(compute)] != nullptr; }
  // The type that input k is converted to.
  DType input_dtype(DType compute, int k) const { return mask_inputs >> k & 1 ? DType::kBool : compute; }
  // The type of the results for a compute type.
  DType result_dtype(DType compute) const {
    if (result == ResultKind::kSame) return compute;
    if (result == ResultKind::kBoolean) return DType::kBool;
    if (!is_complex(compute)) return compute;
    return compute == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
  }
};

// The type of uniform parameters: 16-bit floats take them in the precision they compute in.
constexpr DType param_dtype(DType compute) {
  return compute == DType::kFloat16 || compute == DType::kBFloat16 ? DType::kFloat32 : compute;
}

// Memory of one operand: strides in elements, 0 for a broadcast dimension, any order, negative allowed.
struct Operand {
  char* data;
  DType dtype;
  const int64_t* strides;
};

// A uniform parameter; becomes a number of the compute type.
struct ParamValue {
  double re, im;
  int64_t integer;  // used by integer compute types

  ParamValue() = default;
  ParamValue(double value)  // NOLINT(google-explicit-constructor)
      : re(value), im(0), integer(to_integer(value)) {}
  ParamValue(int64_t value)  // NOLINT(google-explicit-constructor)
      : re(static_cast<double>(value)), im(0), integer(value) {}
  ParamValue(int value) : ParamValue(static_cast<int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  ParamValue(double re, double im) : re(re), im(im), integer(to_integer(re)) {}

 private:
  static int64_t to_integer(double value) {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MIN;
  }
};

// Writes it as a number of `type`, and says how many bytes that took.
int64_t write_param(char* to, const ParamValue& value, DType type);

inline constexpr int kMaxOperands = 8, kMaxParams = 4, kMaxRank = 64;

// Computes outputs = kernel(inputs; params) over `sizes`. `operands`: outputs, then inputs. Inputs are
// converted to `compute` (masks to bool), results from it. An output may be the same memory as an input,
// element for element; other overlap is the caller's error. UserError for an integer division by zero, when
// outputs hold unspecified values.
void run_strided(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                 std::span<const int64_t> sizes, std::span<const ParamValue> params = {});

// The same for operands that are arrays of `n` elements; their strides are not read. Inputs whose bit is set
// in `numbers` have one element, of any type, for all of them; only for n up to kFewElements. False, with
// nothing done, where some other operand is not of the type that the loop computes in.
inline constexpr int64_t kFewElements = 32;
bool run_contiguous(const PointwiseKernel& kernel, DType compute, std::span<const Operand> operands,
                    int64_t n, std::span<const ParamValue> params = {}, uint32_t numbers = 0);

// dst = src, converted to dst's dtype. Both may have any strides.
void copy_strided(const Operand& dst, const Operand& src, std::span<const int64_t> sizes);
// Sets every element to the number, converted to dst's dtype.
void fill_strided(const Operand& dst, std::span<const int64_t> sizes, const void* number, DType dtype);

}  // namespace weft::cpu
